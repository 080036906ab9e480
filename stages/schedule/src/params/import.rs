//! Parameters of `schedule/import`.

use hopmap_model::InputPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A task graph from a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportParams {
    /// The file.
    pub file: InputPath,
    /// Its format; by default what its contents look like.
    #[serde(default)]
    pub format: Option<GraphFormat>,
}

/// A format of task graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GraphFormat {
    /// `.grf` of PARUS.
    Parus,
    /// DOT of Graphviz with weights.
    Dot,
    /// Standard Task Graph Set.
    Stg,
    /// `WfFormat` of `WfCommons`, JSON.
    Wfformat,
}
