//! What a traced program asks of a machine.

use hopmap_model::{Context, Error, Inputs, Outcome, Outputs, Port, Stage, SystemGraph, TaskGraph};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `route/demands`: streams from traffic.
#[derive(Debug)]
pub struct DemandsStage;

/// Streams from traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DemandsParams {}

impl Stage for DemandsStage {
    type Params = DemandsParams;
    const KIND: &'static str = "route/demands";
    const SUMMARY: &'static str = "Streams and their bandwidth from the traffic of a traced program";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<TaskGraph>("task-graph"),
                Port::input::<SystemGraph>("system"),
                Port::output::<TaskGraph>("task-graph"),
                Port::output::<SystemGraph>("system"),
            ]
        }
    }

    fn run(_: Self::Params, inputs: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        Ok(Outcome::Done(
            Outputs::new().with("task-graph", (*graph).clone()).with("system", (*system).clone()),
        ))
    }
}
