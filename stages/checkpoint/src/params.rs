//! The keys of the stages of this room.

use hopmap_model::InputPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of `checkpoint/delta`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeltaParams {
    /// The series: a folder whose folders (or files) are the checkpoints, in the order of their names; numbers in names count as
    /// numbers.
    pub series: InputPath,
    /// Bytes of a block, 256 to 65536 and a power of two; several are compared in one pass.
    #[serde(default = "pages")]
    pub block: Vec<u32>,
    /// The rules that choose bases.
    #[serde(default = "all_rules")]
    pub rules: Vec<Rule>,
    /// ADCA switches to the previous checkpoint when that saves more than this part of a delta.
    #[serde(default = "fifth")]
    pub epsilon: f64,
    /// What ADCA stores when it switches; several are compared in one pass.
    #[serde(default = "both_readings")]
    pub reading: Vec<Reading>,
    /// Which blocks are compared.
    #[serde(default)]
    pub align: Align,
    /// Bytes of a delta that say where a block belongs: its place and its hash.
    #[serde(default = "place_and_hash")]
    pub block_overhead: u32,
    /// Whether to look for the best base of every checkpoint as well; keeps the hashes of all checkpoints in memory.
    #[serde(default)]
    pub optimum: bool,
    /// A folder on the disk that checkpoints would go to: how long writing takes is measured there, with 260 MB in all.
    #[serde(default)]
    pub target: Option<InputPath>,
    /// Seconds that writing a checkpoint takes whatever its size; 0 unless given or measured.
    #[serde(default)]
    pub write_latency_s: Option<f64>,
    /// Bytes written per second; a gigabyte unless given or measured.
    #[serde(default)]
    pub write_bytes_per_s: Option<f64>,
}

/// A rule that chooses bases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Every checkpoint is told by the first.
    First,
    /// Every checkpoint is told by the previous one.
    Incremental,
    /// The base stays until the previous checkpoint is better by more than `epsilon`.
    Adca,
}

/// How the paper's ADCA is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// The delta against the old base; what follows is told by the checkpoint before this one.
    Literal,
    /// The delta against the previous checkpoint.
    Immediate,
}

/// Which blocks of two checkpoints are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Align {
    /// Those at the same place in the file, as HBICT does.
    #[default]
    Position,
    /// In images of DMTCP (v4) those at the same address of memory; their headers and records are stored always. In other files
    /// those at the same place.
    Address,
}

fn pages() -> Vec<u32> {
    vec![4096]
}

fn all_rules() -> Vec<Rule> {
    vec![Rule::First, Rule::Incremental, Rule::Adca]
}

fn fifth() -> f64 {
    0.2
}

fn both_readings() -> Vec<Reading> {
    vec![Reading::Literal, Reading::Immediate]
}

fn place_and_hash() -> u32 {
    24
}

/// Keys of `checkpoint/store`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreParams {
    /// The series: a folder whose folders (or files) are the checkpoints, in the order of their names; numbers in names count as numbers.
    pub series: InputPath,
}
