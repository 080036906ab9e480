//! Chooses the bases of new chunks: ADCA (Seed 002) at the granularity of pages.
//!
//! As published, ADCA decides for a whole checkpoint whether it is a delta against the current base (C) or
//! the previous checkpoint (C'), and changes the base when C' saves more than ε of C. Here it decides for
//! some blocks which versions of their pages are the bases and stores the smaller delta at once (the reading
//! `immediate`); the following blocks use the same choice.
//!
//! Chains are bounded. A version whose chain has the maximum length cannot be a base, but its own base can.
//! Such patches grow with every checkpoint. So when a delta against the base of that base, or the block
//! without any base, costs little more than the limit costs now, it is chosen: the next checkpoints then have
//! a near base again.

use super::Store;
use crate::chunk::ChunkId;
use crate::error::CheckpointError;

/// A near base is worth the extra bytes that the limit causes now, and half as many more, because the limit
/// costs more in later checkpoints. In halves.
const WORTH: usize = 3;

/// Compare bases in the first block and in every n-th one after it.
const EVERY: u64 = 8;

/// The same after some comparisons with equal results.
const EVERY_STEADY: u64 = 32;
const STEADY: u32 = 4;

/// The versions that may be the base of a new chunk, and the previous version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Candidates {
    /// The previous version, whether it can be a base or not.
    pub(crate) last: Option<ChunkId>,
    /// The previous version, or the current base if its chain is too long.
    pub(crate) previous: Option<ChunkId>,
    /// The base of the previous version, or that version itself.
    pub(crate) kept: Option<ChunkId>,
    /// The base of the current base, or that base itself.
    pub(crate) root: Option<ChunkId>,
}

/// The possible bases of a chunk whose previous version is `last`.
pub(crate) fn candidates(store: &Store, last: ChunkId, deepest: u8) -> Result<Candidates, CheckpointError> {
    let (depth, base) = depth_and_base(store, last)?;
    let allowed = (depth < deepest).then_some(last);
    let kept = base.or(allowed);
    let root = match kept {
        Some(kept) => depth_and_base(store, kept)?.1.or(Some(kept)),
        None => None,
    };
    Ok(Candidates { last: Some(last), previous: allowed.or(kept), kept, root })
}

/// The depth of a chunk, and its base.
fn depth_and_base(store: &Store, id: ChunkId) -> Result<(u8, Option<ChunkId>), CheckpointError> {
    let pack = store.pack(id.pack)?;
    let entry = pack.block(id.block).ok_or_else(|| pack.damaged_block(id.block, "it is missing"))?;
    Ok((entry.depth, entry.bases.get(usize::from(id.chunk)).copied().flatten()))
}

/// The base of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Choice {
    /// The current bases.
    #[default]
    Kept,
    /// The previous versions, where they can be bases.
    Previous,
    /// The bases of the current bases.
    Root,
    /// No base.
    Fresh,
}

/// Size of a block by base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) kept: usize,
    pub(crate) previous: usize,
    /// Only known if the limit of chains excludes a version.
    pub(crate) bound: Option<Bound>,
}

/// Sizes of a block if chains are too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound {
    /// Against the previous versions, without the limit.
    pub(crate) last: usize,
    pub(crate) root: usize,
    pub(crate) fresh: usize,
}

impl Sizes {
    /// The best choice.
    pub(crate) fn choice(&self, epsilon: f64) -> Choice {
        let (kept, previous) = (self.kept as f64, self.previous as f64);
        let adca = kept > 0.0 && (kept - previous) / kept > epsilon;
        let (choice, size) = if adca { (Choice::Previous, self.previous) } else { (Choice::Kept, self.kept) };
        let Some(Bound { last, root, fresh }) = self.bound else { return choice };
        let bound_costs = size.saturating_sub(last);
        let costs_less = |other: usize| other.saturating_sub(size) < bound_costs * WORTH / 2;
        match () {
            () if costs_less(root) => Choice::Root,
            () if costs_less(fresh) => Choice::Fresh,
            () => choice,
        }
    }
}

/// Decides the bases of blocks.
#[derive(Debug, Clone, Default)]
pub(crate) struct BaseRule {
    choice: Choice,
    /// Number of blocks until the next comparison.
    left: u64,
    /// Number of successive comparisons with equal results.
    steady: u32,
}

impl BaseRule {
    /// Whether to compare bases in the next block.
    pub(crate) fn compares(&mut self) -> bool {
        let compares = self.left == 0;
        if compares {
            self.left = if self.steady >= STEADY { EVERY_STEADY } else { EVERY };
        }
        self.left -= 1;
        compares
    }

    /// The bases of the next block without a comparison.
    pub(crate) fn choice(&self) -> Choice {
        self.choice
    }

    /// Records the result of a comparison.
    pub(crate) fn learn(&mut self, choice: Choice) {
        self.steady = if choice == self.choice { self.steady.saturating_add(1) } else { 0 };
        self.choice = choice;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_changes_when_that_saves_more_than_epsilon() {
        let sizes = |kept, previous| Sizes { kept, previous, bound: None };
        assert_eq!(sizes(100, 81).choice(0.2), Choice::Kept);
        assert_eq!(sizes(100, 79).choice(0.2), Choice::Previous);
        assert_eq!(sizes(0, 0).choice(0.2), Choice::Kept);
    }

    #[test]
    fn bases_are_compared_less_often_while_results_are_stable() {
        let mut rule = BaseRule::default();
        let mut compared = Vec::new();
        for block in 0..120 {
            if rule.compares() {
                compared.push(block);
                rule.learn(if block < 100 { Choice::Kept } else { Choice::Previous });
            }
        }
        assert_eq!(compared, [0, 8, 16, 24, 32, 64, 96]);
    }

    #[test]
    fn a_limit_that_costs_more_than_a_new_base_changes_the_base() {
        let sizes =
            |last, root, fresh| Sizes { kept: 31, previous: 31, bound: Some(Bound { last, root, fresh }) };
        assert_eq!(sizes(16, 43, 95).choice(0.2), Choice::Root);
        assert_eq!(sizes(16, 55, 95).choice(0.2), Choice::Kept);
        assert_eq!(sizes(16, 55, 40).choice(0.2), Choice::Fresh);
        assert_eq!(sizes(31, 31, 31).choice(0.2), Choice::Kept);
    }
}
