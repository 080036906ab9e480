//! Settings of a store, and checkpoint numbers as ranges.

use serde::{Deserialize, Serialize};

use super::pack::DEEPEST;
use crate::chunk::LONGEST_CHUNK;
use crate::error::CheckpointError;
use crate::params::{Matching, StoreParams, StoreRule};

/// Settings of a store.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Version of the format.
    pub format: u32,
    /// Maximum length of delta chains: 0 to 16.
    pub depth: u8,
    /// Fraction of a patch that ADCA must save before it changes the base: 0 to 1.
    pub epsilon: f64,
    /// Lower bound of the number of the next checkpoint: numbers are never reused.
    pub next: u32,
    /// Every n-th checkpoint of a name is stored in full, so that damage affects at most n. 0: never.
    #[serde(default)]
    pub whole_every: u32,
    /// Ranges of the numbers of pruned checkpoints, first and last of each. `None` in stores of format 1,
    /// where all numbers without manifest are pruned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<Ranges>,
    /// Settings of deltas of whole checkpoints. `None`: every block has its own base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deltas: Option<DeltaSettings>,
    /// Seed of chunk hashes: random unless the store has to be reproducible.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        let StoreParams { depth, epsilon, .. } = StoreParams::default();
        let removed = Some(Ranges::new());
        Self { format: FORMAT, depth, epsilon, next: 1, whole_every: 0, removed, deltas: None, seed: 0 }
    }
}

/// Format 1 does not record pruned checkpoints; stores get format 2 when they are written to.
pub(super) const FORMAT: u32 = 2;

/// Format of stores with deltas of whole checkpoints.
pub(super) const FORMAT_OF_DELTAS: u32 = 3;

/// How a store encodes whole checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeltaSettings {
    /// The rule for the base; not `block-wise`.
    pub rule: StoreRule,
    /// Block length in bytes.
    pub block: u32,
    /// Where the base is searched for a block.
    pub matching: Matching,
    /// Overhead of each block of a delta that the rule assumes, in bytes.
    pub block_overhead: u32,
}

impl DeltaSettings {
    /// The defaults of HBICT: aligned pages; `None` for block-wise bases.
    #[must_use]
    pub fn of(rule: StoreRule) -> Option<Self> {
        let pages = Self { rule, block: 4096, matching: Matching::Address, block_overhead: 24 };
        (rule != StoreRule::BlockWise).then_some(pages)
    }
}

impl Settings {
    /// Checks the ranges.
    pub fn check(&self) -> Result<(), CheckpointError> {
        if self.depth > DEEPEST {
            return Err(CheckpointError::Setting { name: "depth", range: "from 0 to 16" });
        }
        if !(0.0..=1.0).contains(&self.epsilon) {
            return Err(CheckpointError::Setting { name: "epsilon", range: "from 0 to 1" });
        }
        let Some(deltas) = self.deltas else { return Ok(()) };
        if deltas.rule == StoreRule::BlockWise {
            return Err(CheckpointError::Setting { name: "rule", range: "one for whole checkpoints" });
        }
        if !(deltas.block.is_power_of_two() && (256..=LONGEST_CHUNK as u32).contains(&deltas.block)) {
            let range = "256, 512, 1024 … or 16384 bytes, in a store with a rule";
            return Err(CheckpointError::Setting { name: "block_bytes", range });
        }
        Ok(())
    }

    /// The format of a store with these settings.
    pub(super) fn newest_format(&self) -> u32 {
        if self.deltas.is_some() { FORMAT_OF_DELTAS } else { FORMAT }
    }
}

/// Ranges of numbers, first and last of each.
pub(crate) type Ranges = Vec<(u32, u32)>;

/// Sorted and merged ranges.
pub(crate) fn merged(ranges: impl IntoIterator<Item = (u32, u32)>) -> Ranges {
    let mut ranges: Ranges = ranges.into_iter().filter(|(first, last)| first <= last).collect();
    ranges.sort_unstable();
    let mut merged = Ranges::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ => merged.push((first, last)),
        }
    }
    merged
}

/// Numbers as text, such as `1-7, 9`.
#[must_use]
pub fn in_words(numbers: &[u32]) -> String {
    let ranges = merged(numbers.iter().map(|&number| (number, number)));
    let words = ranges.iter().map(|&(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}
