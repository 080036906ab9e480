//! Parameters of `map/exact`.

use hopmap_model::WeightChoice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Goal, Pin, first_seed};

/// Branch and bound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExactParams {
    /// Another seed gives another placement to begin with.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// How many nodes may be bounded. Without it, and without `seconds`: until the optimum is proven, however long that takes.
    #[serde(default)]
    pub nodes: Option<u64>,
    /// How long the search may take, in seconds. The result cannot be made again bit for bit.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// What an edge of the task graph weighs.
    #[serde(default)]
    pub weight: WeightChoice,
    /// What is minimised: `F`, `T`, `hop-bytes` or `max-link-load`, or their weighted sum, as in `{ F = 1.0, T = 0.5 }`.
    #[serde(default)]
    pub objective: Goal,
    /// Ranks that have to be on a slot or a host.
    #[serde(default)]
    pub pinned: Vec<Pin>,
    /// Names of hosts that no rank may be on.
    #[serde(default)]
    pub forbidden: Vec<String>,
}

impl Default for ExactParams {
    fn default() -> Self {
        Self {
            seed: first_seed(),
            nodes: None,
            seconds: None,
            weight: WeightChoice::default(),
            objective: Goal::default(),
            pinned: Vec::new(),
            forbidden: Vec::new(),
        }
    }
}
