//! The stages of this crate.

use hopmap_model::{
    Context, Error, InputPath, Inputs, Mapping, Metrics, Outcome, Outputs, Port, Prediction, Stage,
    SystemGraph, TaskGraph, TextFile, Trials,
};

use hopmap_objective::check_weight;

use crate::accuracy::{Search, accuracy};
use crate::collectives::{CollectivesParams, compare_collectives};
use crate::compare::compare;
use crate::correlation::{CorrelationParams, Given, correlate};
use crate::groups::{GroupsParams, groups};
use crate::params::{AccuracyParams, MappingParams};

/// `evaluate/mapping`: metrics of a mapping compared with linear, round-robin and random baselines.
#[derive(Debug)]
pub struct MappingStage;

impl Stage for MappingStage {
    type Params = MappingParams;
    const KIND: &'static str = MappingParams::KIND;
    const SUMMARY: &'static str = "Compare a mapping with linear, round-robin and random baselines";
    const REVISION: u32 = 4;
    const PORTS: &'static [Port] = &[
        Port::input::<TaskGraph>("task-graph"),
        Port::input::<SystemGraph>("system"),
        Port::input::<Mapping>("mapping"),
        Port::output::<Metrics>("metrics"),
    ];

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        let mapping = inputs.one::<Mapping>("mapping")?.value;
        let comparison = compare(&graph, &system, &mapping, &params, cx)?;
        Ok(finish(Outputs::new().with("metrics", comparison.metrics), comparison.complete))
    }
}

/// `evaluate/accuracy`: table of searches on problems with known best costs.
#[derive(Debug)]
pub struct AccuracyStage;

impl Stage for AccuracyStage {
    type Params = AccuracyParams;
    const KIND: &'static str = "evaluate/accuracy";
    const SUMMARY: &'static str = "Tabulate best, mean and median of many mappings against known values";
    const REVISION: u32 = 1;
    const PORTS: &'static [Port] = &[
        Port::many::<Mapping>("mappings"),
        Port::output::<TextFile>("csv"),
        Port::output::<TextFile>("markdown"),
    ];

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        // The name is constant, so that renaming the file does not change the key.
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

/// `evaluate/collectives`: comparison of the algorithms for collective operations under a mapping.
///
/// One row per communicator, operation, size and algorithm, after the totals over all communicators and sizes
/// of each operation. `MPICH` and `Open MPI` mark the algorithm that each library chooses. `total` is Σ weight × cost of all
/// messages, their contribution to F; `path` estimates the time: the sum over rounds of the largest weight ×
/// cost that a process sends or receives. `rounds` counts the sequential messages of one call. `total linear`
/// and `path linear` are for the linear mapping. `best` marks the algorithm with the smallest `total`, `path`
/// or both under the mapping.
#[derive(Debug)]
pub struct CollectivesStage;

impl Stage for CollectivesStage {
    type Params = CollectivesParams;
    const KIND: &'static str = "evaluate/collectives";
    const SUMMARY: &'static str = "Compare collective algorithms under a mapping and the linear baseline";
    const REVISION: u32 = 2;
    const PORTS: &'static [Port] = &[
        Port::input::<TaskGraph>("task-graph"),
        Port::input::<SystemGraph>("system"),
        Port::input::<Mapping>("mapping"),
        Port::output::<TextFile>("csv"),
        Port::output::<TextFile>("markdown"),
    ];

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

/// `evaluate/correlation`: rank correlation of metrics and predictions with run times.
///
/// A row per metric, predictions first: Spearman's ρ, Kendall's τ-b, the same over the pairs of mappings whose run times
/// differ by more than the noise, and the regret of choosing by it: the measured seconds of the mapping with the
/// smallest value, divided by those of the fastest mapping, minus 1; of several such mappings their mean. A pair differs
/// by more than the noise if the intervals of both medians are apart: those of the sign test at 95 % from six runs on,
/// from the shortest to the longest run below. Mappings without a complete run are left out.
#[derive(Debug)]
pub struct CorrelationStage;

impl Stage for CorrelationStage {
    type Params = CorrelationParams;
    const KIND: &'static str = "evaluate/correlation";
    const SUMMARY: &'static str = "Correlate metrics and predictions of mappings with their run times";
    const REVISION: u32 = 1;
    const PORTS: &'static [Port] = &[
        Port::input::<TaskGraph>("task-graph"),
        Port::input::<SystemGraph>("system"),
        Port::many::<Mapping>("mappings"),
        Port::many::<Prediction>("predictions"),
        Port::many::<Trials>("trials"),
        Port::output::<Metrics>("metrics"),
        Port::output::<TextFile>("csv"),
        Port::output::<TextFile>("markdown"),
    ];

    fn check(params: &Self::Params) -> Result<(), Error> {
        params.check()
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        Ok(params.seconds.iter().map(|file| InputPath::named(file.path(), "seconds.csv")).collect())
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let (graph, system) = (inputs.one::<TaskGraph>("task-graph")?, inputs.one::<SystemGraph>("system")?);
        let mappings = inputs.many::<Mapping>("mappings")?;
        let predictions = inputs.many::<Prediction>("predictions")?;
        let trials = inputs.many::<Trials>("trials")?;
        let given = Given {
            graph: &graph.value,
            system: &system.value,
            mappings: &mappings,
            predictions: &predictions,
            trials: &trials,
        };
        let found = correlate(&given, &params, cx)?;
        let outputs = files("correlation", found.csv, found.markdown).with("metrics", found.metrics);
        Ok(finish(outputs, true))
    }
}

/// `evaluate/groups`: the groups of ranks that a mapping spreads over several switches.
///
/// A group is what the messages of a phase connect, as in the phases of `instance/parallel`. Switches have levels: 1 for
/// those that hosts are linked to, such as leaf switches or accelerator domains, 2 for those above them. A group crosses a level if its hosts
/// are connected only by switches above it. The CSV file has a row per group, with the number of areas of each level that
/// it is in.
#[derive(Debug)]
pub struct GroupsStage;

impl Stage for GroupsStage {
    type Params = GroupsParams;
    const KIND: &'static str = "evaluate/groups";
    const SUMMARY: &'static str = "Count the groups of ranks that cross each level of switches";
    const REVISION: u32 = 2;
    const PORTS: &'static [Port] = &[
        Port::input::<TaskGraph>("task-graph"),
        Port::input::<SystemGraph>("system"),
        Port::input::<Mapping>("mapping"),
        Port::output::<Metrics>("metrics"),
        Port::output::<TextFile>("csv"),
        Port::output::<TextFile>("markdown"),
    ];

    fn run(_: Self::Params, inputs: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        let mapping = inputs.one::<Mapping>("mapping")?.value;
        let found = groups(&graph, &system, &mapping)?;
        Ok(finish(files("groups", found.csv, found.markdown).with("metrics", found.metrics), true))
    }
}

/// Writes a table in both formats.
fn files(name: &str, csv: String, markdown: String) -> Outputs {
    let file = |ending: &str, text| TextFile { name: format!("{name}.{ending}"), text };
    Outputs::new().with("csv", file("csv", csv)).with("markdown", file("md", markdown))
}

/// The outcome of a stage, complete or partial.
fn finish(outputs: Outputs, complete: bool) -> Outcome {
    if complete { Outcome::Done(outputs) } else { Outcome::Partial(outputs) }
}
