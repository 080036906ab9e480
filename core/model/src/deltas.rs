//! What rules for the base of a delta store of a series of checkpoints.

use std::collections::BTreeMap;

use crate::Artifact;

/// What rules for the base of a delta store of a series of checkpoints (Seed 002, eq. 4 and 5).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Deltas {
    /// One row for every checkpoint under every rule and block length; those of one rule follow each other from the first on.
    pub checkpoints: Vec<CheckpointDelta>,
    /// One row for every rule and block length, in the same order.
    pub rules: Vec<RuleTotals>,
    /// Sums by name, such as `E_adca_immediate_4096`.
    pub metrics: BTreeMap<String, f64>,
}

/// What is stored of one checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointDelta {
    /// The rule.
    pub rule: DeltaRule,
    /// Bytes of a block.
    pub block: u32,
    /// Number t of the checkpoint, from 1.
    pub checkpoint: u32,
    /// Its name.
    pub name: String,
    /// Number of the checkpoint that it is a delta against, b of t − 1; nothing for the first, which is stored as it is.
    pub base: Option<u32>,
    /// Its bytes S(K).
    pub full_bytes: u64,
    /// Its blocks.
    pub blocks: u64,
    /// Blocks that are stored.
    pub changed_blocks: u64,
    /// Bytes that are stored, S(C).
    pub stored_bytes: u64,
    /// Deltas that have to be applied to restore it; 0 for the first.
    pub depth: u32,
    /// Seconds to write what is stored, W(S(C)).
    pub write_s: f64,
    /// What the test of ADCA compares with ε: the part that the previous checkpoint as base would save. Nothing of other rules,
    /// of the first checkpoint, and where nothing has changed.
    pub saving: Option<f64>,
}

/// A rule over the whole series.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleTotals {
    /// The rule.
    pub rule: DeltaRule,
    /// Bytes of a block.
    pub block: u32,
    /// The vector b: number of the base of every checkpoint from the second on.
    pub bases: Vec<u32>,
    /// Σ b (eq. 5).
    pub sum_of_bases: u64,
    /// How often a base differs from the one before.
    pub base_changes: u32,
    /// Bytes of all checkpoints as they are.
    pub full_bytes: u64,
    /// Bytes that are stored.
    pub stored_bytes: u64,
    /// E(C(b)) in seconds (eq. 4).
    pub write_s: f64,
    /// Deltas that have to be applied to restore the checkpoint that needs most.
    pub depth: u32,
}

/// How the base of a delta is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeltaRule {
    /// The first checkpoint.
    First,
    /// The previous checkpoint.
    Incremental,
    /// ADCA; when its test fires, the delta against the old base is what is stored.
    AdcaLiteral,
    /// ADCA; when its test fires, the delta against the previous checkpoint is what is stored.
    AdcaImmediate,
    /// The base with the smallest delta, of equal ones the oldest.
    Optimum,
}

impl DeltaRule {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 5] =
        [Self::First, Self::Incremental, Self::AdcaLiteral, Self::AdcaImmediate, Self::Optimum];

    /// Their names in tables, readings of the paper, and both together.
    const NAMES: [[&'static str; 3]; 5] = [
        ["first", "", "first"],
        ["incremental", "", "incremental"],
        ["adca", "literal", "adca literal"],
        ["adca", "immediate", "adca immediate"],
        ["optimum", "", "optimum"],
    ];

    /// Name of the rule in tables and parameters.
    #[must_use]
    pub fn rule(self) -> &'static str {
        Self::NAMES[self as usize][0]
    }

    /// How ADCA is read; empty for other rules.
    #[must_use]
    pub fn reading(self) -> &'static str {
        Self::NAMES[self as usize][1]
    }

    /// Name of rule and reading for people, such as `adca immediate`.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize][2]
    }

    /// The rule of a name and a reading.
    #[must_use]
    pub fn of(rule: &str, reading: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.rule() == rule && known.reading() == reading)
    }
}

impl Artifact for Deltas {
    const KIND: &'static str = "deltas";
}
