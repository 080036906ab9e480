//! The stages of this crate.

use hopmap_model::{
    Context, Error, InputPath, Inputs, Mapping, Metrics, Outcome, Outputs, Port, Stage, SystemGraph,
    TaskGraph, TextFile,
};

use crate::{AccuracyParams, MappingParams, Search, accuracy, compare};

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
        let outputs = Outputs::new().with("metrics", comparison.metrics);
        Ok(if comparison.complete { Outcome::Done(outputs) } else { Outcome::Partial(outputs) })
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
        Ok(params.known.iter().map(|file| InputPath::named(file.path(), "known.csv")).collect())
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mappings = inputs.many::<Mapping>("mappings")?;
        let searches: Vec<_> =
            mappings.iter().map(|mapping| Search::new(&mapping.label, &mapping.value)).collect();
        let table = accuracy(&searches, &params, cx)?;
        let file = |name: &str, text| TextFile { name: name.to_owned(), text };
        let outputs = Outputs::new()
            .with("csv", file("accuracy.csv", table.csv()))
            .with("markdown", file("accuracy.md", table.markdown()));
        Ok(Outcome::Done(outputs))
    }
}
