//! What a store was made with, and numbers of checkpoints as ranges.

use serde::{Deserialize, Serialize};

use super::pack::DEEPEST;
use crate::chunk::LONGEST_CHUNK;
use crate::{CheckpointError, Matching, StoreParams, StoreRule};

/// What a store was made with.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Version of the format.
    pub format: u32,
    /// Blocks that have to be decoded, one after the other, before a chunk that is a delta against others: 0 to 16.
    pub depth: u8,
    /// What part of a patch ADCA has to save before it changes the base: 0 to 1.
    pub epsilon: f64,
    /// The number of the next checkpoint is at least this one: numbers are never given twice.
    pub next: u32,
    /// After so many checkpoints of a name the next is stored whole, as a delta against none before: what is damaged touches no more than these.
    /// 0: never.
    #[serde(default)]
    pub whole_every: u32,
    /// The numbers of the checkpoints that were pruned, from the first to the last of each range. None when nobody wrote them down, as
    /// in stores of format 1: then they are those without manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<Ranges>,
    /// How deltas of whole checkpoints are made. None: every block has a base of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deltas: Option<DeltaSettings>,
    /// By which chunks are hashed: drawn at random for a store that is not to be made again byte for byte.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        let StoreParams { depth, epsilon, .. } = StoreParams::default();
        let removed = Some(Ranges::new());
        Self { format: FORMAT, depth, epsilon, next: 1, whole_every: 0, removed, deltas: None, seed: 0 }
    }
}

/// Stores of format 1 do not say which checkpoints were pruned; they are of format 2 once they have been written to.
pub(super) const FORMAT: u32 = 2;

/// That of stores with deltas of whole checkpoints.
pub(super) const FORMAT_OF_DELTAS: u32 = 3;

/// How a store makes the deltas of whole checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeltaSettings {
    /// The rule for the base; not `block-wise`.
    pub rule: StoreRule,
    /// Bytes of a block.
    pub block: u32,
    /// Where the base has to have a block that is not stored.
    pub matching: Matching,
    /// Bytes that the rule counts for the place and the hash of every block of a delta.
    pub block_overhead: u32,
}

impl DeltaSettings {
    /// Pages at their places, counted as HBICT's; none where every block has a base of its own.
    #[must_use]
    pub fn of(rule: StoreRule) -> Option<Self> {
        let pages = Self { rule, block: 4096, matching: Matching::Place, block_overhead: 24 };
        (rule != StoreRule::BlockWise).then_some(pages)
    }
}

impl Settings {
    /// Whether they are in their ranges.
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

    /// The format that a store of these settings is written in.
    pub(super) fn newest_format(&self) -> u32 {
        if self.deltas.is_some() { FORMAT_OF_DELTAS } else { FORMAT }
    }
}

/// Numbers from the first to the last of each.
pub(crate) type Ranges = Vec<(u32, u32)>;

/// Ranges in order, each once; those that touch are one.
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

/// Numbers as people write them, such as `1-7, 9`.
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
