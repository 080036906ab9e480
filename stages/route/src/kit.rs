//! Machines built from a kit of nodes, switches and boards.

use hopmap_model::{
    Context, Diagnosis, Error, InputPath, Inputs, Mapping, Outcome, Outputs, Port, Routes, Stage,
    SystemGraph, Tables, TaskGraph,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `route/build`: a machine from a kit.
#[derive(Debug)]
pub struct BuildStage;

/// A machine from a kit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BuildParams {
    /// A file of TOML or JSON with nodes, switches and boards.
    pub kit: InputPath,
}

impl Stage for BuildStage {
    type Params = BuildParams;
    const KIND: &'static str = "route/build";
    const SUMMARY: &'static str = "A machine for a program from a kit of nodes, switches and boards";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<TaskGraph>("task-graph"),
                Port::possible::<SystemGraph>("system"),
                Port::possible::<Mapping>("mapping"),
                Port::possible::<Routes>("routes"),
                Port::possible::<Tables>("tables"),
                Port::possible::<Diagnosis>("diagnosis"),
            ]
        }
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        Ok(vec![InputPath::named(params.kit.path(), "kit")])
    }

    fn run(_: Self::Params, _: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        Ok(Outcome::Infeasible(Outputs::new()))
    }
}
