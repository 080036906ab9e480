//! Parameters of the stages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Metrics of a mapping beside linear and random placements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MappingParams {
    /// Number of random placements.
    #[serde(default = "twenty")]
    pub samples: u32,
    /// Another seed gives other random placements.
    #[serde(default = "first_seed")]
    pub seed: u64,
}

impl Default for MappingParams {
    fn default() -> Self {
        Self { samples: twenty(), seed: first_seed() }
    }
}

fn twenty() -> u32 {
    20
}

fn first_seed() -> u64 {
    1
}
