//! Results of rules that choose the base of each delta in a series of checkpoints.

use std::collections::BTreeMap;

use crate::stage::Artifact;

/// Results of rules that choose the base of each delta in a series of checkpoints (Seed 002, eq. 4 and 5).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Deltas {
    /// One row per checkpoint, rule and block length; the rows of one rule are consecutive, in checkpoint
    /// order.
    pub checkpoints: Vec<CheckpointDelta>,
    /// One row per rule and block length, in the same order.
    pub rules: Vec<RuleTotals>,
    /// Sums by name, such as `E_adca_immediate_4096`.
    pub metrics: BTreeMap<String, f64>,
}

/// Metric of a block length: the fraction of its deltas against the first checkpoint that the best rule saves.
pub const SAVING_AGAINST_FIRST: &str = "saving_against_first_";

/// Whether the first checkpoint suffices as base, as the paper reports for its programs, by block length: the test of ADCA applied to
/// the sum of all deltas. `metrics` are those of [`Deltas`].
#[must_use]
pub fn first_as_base(metrics: &BTreeMap<String, f64>) -> Vec<String> {
    let epsilon = metrics.get("epsilon").copied().unwrap_or_default();
    let block = |name: &str| name.strip_prefix(SAVING_AGAINST_FIRST)?.parse::<u32>().ok();
    let mut savings: Vec<(u32, f64)> =
        metrics.iter().filter_map(|(name, &saving)| Some((block(name)?, saving))).collect();
    savings.sort_unstable_by_key(|&(block, _)| block);
    let verdict = |(block, saving): (u32, f64)| {
        let suffices = if saving > epsilon { "does not suffice" } else { "suffices" };
        let (saving, epsilon) = (100.0 * saving, 100.0 * epsilon);
        format!(
            "the first checkpoint {suffices} as base, blocks of {block} bytes: the best rule saves {saving:.1} % of its deltas, and epsilon is {epsilon:.0} %"
        )
    };
    savings.into_iter().map(verdict).collect()
}

/// The stored delta of one checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointDelta {
    /// The rule.
    pub rule: DeltaRule,
    /// Block length in bytes.
    pub block: u32,
    /// Number t of the checkpoint, from 1.
    pub checkpoint: u32,
    /// Its name.
    pub name: String,
    /// Number of the checkpoint that the delta is based on, b of t − 1; `None` for the first, which is stored
    /// in full.
    pub base: Option<u32>,
    /// Size S(K) in bytes.
    pub full_bytes: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Number of stored blocks.
    pub changed_blocks: u64,
    /// Stored bytes, S(C).
    pub stored_bytes: u64,
    /// Number of deltas to apply on restore; 0 for the first.
    pub depth: u32,
    /// Seconds to write the stored bytes, W(S(C)).
    pub write_s: f64,
    /// The quantity that ADCA compares with ε: the fraction that the previous checkpoint as base would save.
    /// `None` for other rules, for the first checkpoint, and without changes.
    pub saving: Option<f64>,
}

/// Totals of a rule over the series.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleTotals {
    /// The rule.
    pub rule: DeltaRule,
    /// Block length in bytes.
    pub block: u32,
    /// The vector b: number of the base of each checkpoint from the second on.
    pub bases: Vec<u32>,
    /// Σ b (eq. 5).
    pub sum_of_bases: u64,
    /// How often a base differs from the previous one.
    pub base_changes: u32,
    /// Bytes of all checkpoints stored in full.
    pub full_bytes: u64,
    /// Stored bytes.
    pub stored_bytes: u64,
    /// E(C(b)) in seconds (eq. 4).
    pub write_s: f64,
    /// Largest number of deltas to apply on a restore.
    pub depth: u32,
}

/// Rules that choose the base of a delta.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum DeltaRule {
    /// The first checkpoint.
    #[default]
    First,
    /// The previous checkpoint.
    Incremental,
    /// ADCA; when its test fires, the delta against the old base is stored.
    AdcaLiteral,
    /// ADCA; when its test fires, the delta against the previous checkpoint is stored.
    AdcaImmediate,
    /// The base with the smallest delta; ties go to the oldest.
    Optimum,
}

impl DeltaRule {
    /// All rules, in table order.
    pub const ALL: [Self; 5] =
        [Self::First, Self::Incremental, Self::AdcaLiteral, Self::AdcaImmediate, Self::Optimum];

    /// Names in tables, readings of the paper, and both combined.
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

    /// The reading of ADCA; empty for other rules.
    #[must_use]
    pub fn reading(self) -> &'static str {
        Self::NAMES[self as usize][1]
    }

    /// Display name of rule and reading, such as `adca immediate`.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize][2]
    }

    /// The rule with a given name and reading.
    #[must_use]
    pub fn of(rule: &str, reading: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.rule() == rule && known.reading() == reading)
    }
}

impl Artifact for Deltas {
    const KIND: &'static str = "deltas";
}
