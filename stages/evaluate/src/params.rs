//! Parameters of the stages.

use hopmap_model::InputPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Metrics of a mapping beside linear, round-robin and random placements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MappingParams {
    /// Number of random placements.
    pub samples: u32,
    /// Another seed gives other random placements.
    pub seed: u64,
}

/// A table of searches beside known values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccuracyParams {
    /// The matrix keys that tell rows apart, such as `["instance", "mapper"]`, and `stage` for the names of the stages; mappings
    /// that differ in other keys only, such as `seed`, are runs of one row. A mapping without a key that others have shows a dash.
    pub group_by: Vec<String>,
    /// A CSV file with a header and known values; the columns with the names of keys say of which rows, and an empty one says
    /// of all.
    #[serde(default)]
    pub best_known: Option<InputPath>,
    /// Columns of `best_known` with costs that the runs are compared with, in percent above them.
    #[serde(default)]
    pub baseline: Vec<String>,
    /// The metric of the mappings that is compared.
    #[serde(default = "total_cost")]
    pub metric: String,
}

impl MappingParams {
    /// Random placements are drawn by the kind of their stage.
    pub(crate) const KIND: &'static str = "evaluate/mapping";
}

impl Default for MappingParams {
    fn default() -> Self {
        Self { samples: 20, seed: 1 }
    }
}

fn total_cost() -> String {
    "F".to_owned()
}
