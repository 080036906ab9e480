//! The stages of this room.

use hopmap_model::{
    Context, Error, Inputs, Mapping, Metrics, Outcome, Outputs, Port, Stage, SystemGraph, TaskGraph,
};

use crate::{MappingParams, compare};

/// `evaluate/mapping`: metrics of a mapping beside linear and random placements.
#[derive(Debug)]
pub struct MappingStage;

impl Stage for MappingStage {
    type Params = MappingParams;
    const KIND: &'static str = "evaluate/mapping";
    const SUMMARY: &'static str = "Metrics of a mapping beside linear and random placements";
    const REVISION: u32 = 1;

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
