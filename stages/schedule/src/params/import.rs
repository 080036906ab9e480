//! Parameters of `schedule/import`.

use std::path::PathBuf;

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
    /// What weights of edges are multiplied by, since they have to be whole: 1000 counts in thousandths. The `bandwidth` of a scheduler
    /// takes it back.
    #[serde(default = "unscaled")]
    pub scale: f64,
    /// The attribute of nodes of a DOT file that is their work. By default the first that any node has of `Weight`, `weight`,
    /// `cost` and `size`.
    #[serde(default)]
    pub node_weight: Option<String>,
    /// The attribute of edges of a DOT file that is what they send. By default the first that any edge has of `Weight`, `weight`,
    /// `cost` and `size`; messages are empty if none has one.
    #[serde(default)]
    pub edge_weight: Option<String>,
}

impl ImportParams {
    /// The graph in a file, in the format that its contents look like.
    #[must_use]
    pub fn of(file: impl Into<PathBuf>) -> Self {
        Self {
            file: InputPath::new(file),
            format: None,
            scale: unscaled(),
            node_weight: None,
            edge_weight: None,
        }
    }
}

fn unscaled() -> f64 {
    1.0
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
