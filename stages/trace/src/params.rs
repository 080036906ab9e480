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

/// Parameters of `trace/generate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GenerateParams {
    /// Who sends to whom in every round: the neighbours in a grid with borders (`stencil2d`, `stencil3d`), the two beside
    /// one in its row through a communicator of the row (`rows`), everyone to everyone (`alltoall`), down and right in
    /// turn with up and left (`wavefront`), or to 8 ranks drawn at random (`random`).
    pub pattern: Pattern,
    /// Number of ranks, from 2 to 65536.
    pub ranks: u32,
    /// Number of events of all ranks together; rounds are whole, so it is met as nearly as they can.
    #[serde(default = "million")]
    pub events: u64,
    /// Another seed gives other lengths and times, and other ranks in `random`.
    #[serde(default = "one")]
    pub seed: u64,
}

fn million() -> u64 {
    1_000_000
}

fn one() -> u64 {
    1
}

/// Who sends to whom in a generated trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Four neighbours in a grid with borders.
    Stencil2d,
    /// Six neighbours in a grid with borders.
    Stencil3d,
    /// The two beside one in its row, through a communicator of the row.
    Rows,
    /// Everyone to everyone.
    AllToAll,
    /// Down and right, in turn with up and left.
    Wavefront,
    /// Some ranks drawn at random.
    Random,
}

impl Pattern {
    /// All patterns.
    pub const ALL: [Self; 6] =
        [Self::Stencil2d, Self::Stencil3d, Self::Rows, Self::AllToAll, Self::Wavefront, Self::Random];
}
