//! Whole checkpoints as deltas against one base each, and the chain of deltas that restores one.
//!
//! `K_t = Δ⁻¹(C_t, K_b)`, and so on to the first. A manifest says of every block which `C` of the chain has it, so the steps of a chain
//! are taken at once, and a block is read once however long the chain is.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::manifest::Manifest;
use super::{Store, in_words};
use crate::CheckpointError;
use crate::params::{Matching, StoreRule};

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

/// `C_t`: the delta that is stored of a whole checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Delta {
    /// The base that the rule holds on to after it.
    pub held: u32,
    /// Blocks that are stored.
    pub blocks: u64,
    /// S(C): their bytes, and those that the rule counts for their places and hashes. Of the first checkpoint its bytes.
    pub bytes: u64,
    /// Deltas to be undone to restore it: 0 of the first.
    pub depth: u32,
}

impl Store {
    /// The rule that chooses the base.
    #[must_use]
    pub fn rule(&self) -> StoreRule {
        self.settings().deltas.map(|deltas| deltas.rule).unwrap_or_default()
    }

    /// Those of these that the delta of the next checkpoint of a name may have as base.
    pub(crate) fn bases_to_come(&self, numbers: &[u32]) -> BTreeSet<u32> {
        let mut names = BTreeSet::new();
        let mut bases = BTreeSet::new();
        if self.settings().deltas.is_none() {
            return bases;
        }
        for manifest in numbers.iter().rev().filter_map(|&number| self.manifest(number).ok()) {
            if names.insert(manifest.name) {
                bases.extend(manifest.delta.map(|delta| delta.held));
            }
        }
        bases
    }

    /// Says of damage which `C` of the chain of a checkpoint it is in, and which others need that.
    pub(crate) fn in_chain(&self, manifest: &Manifest, error: CheckpointError) -> CheckpointError {
        let (CheckpointError::DamagedPack { path, .. } | CheckpointError::DamagedBlock { path, .. }) = &error
        else {
            return error;
        };
        let damaged = packs(manifest).into_iter().find(|&pack| self.pack_path(pack) == *path);
        match damaged.filter(|_| self.settings().deltas.is_some()) {
            Some(damaged) => CheckpointError::DamagedChain {
                number: manifest.number,
                damaged,
                others: in_words(&self.needing(damaged)),
                source: Box::new(error),
            },
            None => error,
        }
    }

    /// The checkpoints that need blocks of a pack.
    fn needing(&self, pack: u32) -> Vec<u32> {
        let numbers = self.numbers().unwrap_or_default();
        let needs = |number: &u32| self.manifest(*number).is_ok_and(|other| packs(&other).contains(&pack));
        numbers.into_iter().filter(needs).collect()
    }
}

/// The packs that the blocks of a checkpoint are in.
fn packs(manifest: &Manifest) -> BTreeSet<u32> {
    let runs = manifest.recipes.values().flat_map(|recipe| &recipe.runs);
    runs.filter_map(|run| run.first).map(|first| first.pack).collect()
}
