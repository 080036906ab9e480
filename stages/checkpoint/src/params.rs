//! The keys of the stages of this room.

use hopmap_model::InputPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of `checkpoint/delta`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeltaParams {
    /// The series: a folder whose folders (or files) are the checkpoints, in the order of their names; numbers in names count as numbers.
    pub series: InputPath,
}

/// Keys of `checkpoint/store`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreParams {
    /// The series: a folder whose folders (or files) are the checkpoints, in the order of their names; numbers in names count as numbers.
    pub series: InputPath,
}
