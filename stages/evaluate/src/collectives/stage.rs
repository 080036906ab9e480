//! The stage.

use hopmap_model::{
    Context, Error, Inputs, Mapping, Outcome, Outputs, Port, Stage, SystemGraph, TaskGraph, TextFile,
};
use hopmap_objective::check_weight;

use super::{CollectivesParams, compare_collectives};

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
        let file = |name: &str, text| TextFile { name: name.to_owned(), text };
        let outputs = Outputs::new()
            .with("csv", file("collectives.csv", comparison.csv))
            .with("markdown", file("collectives.md", comparison.markdown));
        Ok(if comparison.complete { Outcome::Done(outputs) } else { Outcome::Partial(outputs) })
    }
}
