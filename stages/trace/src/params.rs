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
    /// Who reads the events: hopmap itself (`native`) or `libotf2`. `auto` is hopmap, unless the archive uses something
    /// that only libotf2 may know. All give the same.
    #[serde(default)]
    pub reader: Reader,
}

/// Who reads the events of an OTF2 archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reader {
    /// hopmap, unless the archive uses something that only libotf2 may know.
    #[default]
    Auto,
    /// hopmap, several times as fast.
    Native,
    /// libotf2.
    Libotf2,
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
