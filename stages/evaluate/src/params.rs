//! Parameters of the stages.

use hopmap_model::InputPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

hopmap_model::parameters! {
    /// Parameters of `evaluate/mapping`.
    #[derive(Eq)]
    pub struct MappingParams {
        /// Number of random mappings.
        pub samples: u32 = 20,
        /// Random seed.
        pub seed: u64 = 1,
    }
}

/// Parameters of `evaluate/accuracy`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccuracyParams {
    /// Matrix keys by which mappings are grouped into rows, such as `["instance", "mapper"]`; `stage` is the
    /// name of the stage. Mappings that differ only in other keys, such as `seed`, are runs of one row.
    /// Missing keys are shown as a dash.
    pub group_by: Vec<String>,
    /// CSV file with known values and a header. Columns named as keys select the rows to which values apply;
    /// an empty cell matches any value.
    #[serde(default)]
    pub best_known: Option<InputPath>,
    /// Columns of `best_known` with which the runs are compared, as a relative gap in percent.
    #[serde(default)]
    pub baseline: Vec<String>,
    /// Metric to compare.
    #[serde(default = "total_cost")]
    pub metric: String,
}

impl MappingParams {
    /// The random stream of the samples is derived from the stage kind.
    pub(crate) const KIND: &'static str = "evaluate/mapping";
}

fn total_cost() -> String {
    "F".to_owned()
}
