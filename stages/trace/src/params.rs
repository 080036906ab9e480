//! Parameters of the stages: the keys of `with` in a pipeline file.

use hopmap_model::InputPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `trace/otf2`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Otf2Params {
    /// The anchor file of the archive, such as `traces.otf2`, or a folder that holds exactly one.
    pub archive: InputPath,
}

/// Parameters of `trace/otf`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OtfParams {
    /// The master file of the archive, such as `lu.otf`, or a folder that holds exactly one.
    pub archive: InputPath,
}

/// Parameters of `trace/csv`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CsvParams {
    /// The file: a header `source,destination,messages,bytes`, then a line for every pair of ranks. Lines that
    /// begin with `#` are comments; pairs that stand several times are added up.
    pub file: InputPath,
    /// Number of ranks; without it, one more than the highest rank in the file.
    #[serde(default)]
    pub ranks: Option<u32>,
}
