//! The stages of this crate.

use hopmap_model::{
    Context, Error, InputPath, Inputs, Mapping, Metrics, Outcome, Outputs, Port, Stage, SystemGraph,
    TaskGraph, TextFile,
};

use hopmap_objective::check_weight;

use crate::{
    AccuracyParams, CollectivesParams, MappingParams, Search, accuracy, compare, compare_collectives,
};

/// `evaluate/mapping`: metrics of a mapping beside linear, round-robin and random placements.
#[derive(Debug)]
pub struct MappingStage;

impl Stage for MappingStage {
    type Params = MappingParams;
    const KIND: &'static str = MappingParams::KIND;
    const SUMMARY: &'static str = "Metrics of a mapping beside linear, round-robin and random placements";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<TaskGraph>("task-graph"),
                Port::input::<SystemGraph>("system"),
                Port::input::<Mapping>("mapping"),
                Port::output::<Metrics>("metrics"),
            ]
        }
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        let mapping = inputs.one::<Mapping>("mapping")?.value;
        let comparison = compare(&graph, &system, &mapping, &params, cx)?;
        Ok(finish(Outputs::new().with("metrics", comparison.metrics), comparison.complete))
    }
}

/// `evaluate/accuracy`: searches of problems whose best costs are known, as a table.
#[derive(Debug)]
pub struct AccuracyStage;

impl Stage for AccuracyStage {
    type Params = AccuracyParams;
    const KIND: &'static str = "evaluate/accuracy";
    const SUMMARY: &'static str = "Many mappings as a table: best, mean and median beside known values";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::many::<Mapping>("mappings"),
                Port::output::<TextFile>("csv"),
                Port::output::<TextFile>("markdown"),
            ]
        }
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        // Always under the same name, so that renaming the file changes no key.
        Ok(params.best_known.iter().map(|file| InputPath::named(file.path(), "known.csv")).collect())
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mappings = inputs.many::<Mapping>("mappings")?;
        let searches: Vec<_> =
            mappings.iter().map(|mapping| Search::new(&mapping.label, &mapping.value)).collect();
        let table = accuracy(&searches, &params, cx)?;
        Ok(finish(files("accuracy", table.csv(), table.markdown()), true))
    }
}

/// `evaluate/collectives`: the algorithms for collective operations beside each other, under a mapping.
///
/// A row for every communicator, operation, size and algorithm, and before them all communicators and sizes of an
/// operation together. `MPICH` marks the algorithm that MPICH takes. `total` is Σ weight × cost of all messages, their
/// share in F; `path` estimates the time: the sum over rounds of the largest weight × cost that a process sends or gets.
/// `rounds` are messages of one call that follow each other. `total linear` and `path linear` are those of the linear
/// placement. `best` says which algorithm has the least `total`, `path` or both under the mapping.
#[derive(Debug)]
pub struct CollectivesStage;

impl Stage for CollectivesStage {
    type Params = CollectivesParams;
    const KIND: &'static str = "evaluate/collectives";
    const SUMMARY: &'static str = "Collective operations by algorithm, under a mapping and beside linear";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<TaskGraph>("task-graph"),
                Port::input::<SystemGraph>("system"),
                Port::input::<Mapping>("mapping"),
                Port::output::<TextFile>("csv"),
                Port::output::<TextFile>("markdown"),
            ]
        }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Ok(params.weight.map_or(Ok(()), |weight| check_weight(weight.or(0.0, 1.0)))?)
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        let mapping = inputs.one::<Mapping>("mapping")?.value;
        let comparison = compare_collectives(&graph, &system, &mapping, &params, cx)?;
        let outputs = files("collectives", comparison.csv, comparison.markdown);
        Ok(finish(outputs, comparison.complete))
    }
}

/// A table as files of both forms.
fn files(name: &str, csv: String, markdown: String) -> Outputs {
    let file = |ending: &str, text| TextFile { name: format!("{name}.{ending}"), text };
    Outputs::new().with("csv", file("csv", csv)).with("markdown", file("md", markdown))
}

/// What a stage gives, whether it is all or not.
fn finish(outputs: Outputs, complete: bool) -> Outcome {
    if complete { Outcome::Done(outputs) } else { Outcome::Partial(outputs) }
}
