//! Which versions new chunks are deltas against: ADCA (Seed 002), for what is smaller than a page.
//!
//! As published, ADCA decides for a whole checkpoint whether it is a delta against the base kept so far (C) or the checkpoint before (C'), and
//! changes the base when C' saves more than ε of C. Here it decides for some blocks which versions of their pages are the bases,
//! stores what it found smaller at once (the reading `immediate`), and the blocks after them do the same.
//!
//! Chains are bounded. A version whose chain is as long as the store allows cannot be a base; the version that it was a delta against can.
//! Such patches grow with every checkpoint. So when a delta against the base of that base, or the block without any base, costs little more than
//! the bound costs now, that is done: the next checkpoints then have a base that is near again.

use super::Store;
use crate::CheckpointError;
use crate::chunk::ChunkId;

/// A base that is near is worth the bytes that the bound costs now, and half as many more: more checkpoints will come, and
/// they cost more. In halves.
const WORTH: usize = 3;

/// Compare bases in the first block and in every so many after it.
const EVERY: u64 = 8;

/// The same when so many comparisons in a row came to the same.
const EVERY_STEADY: u64 = 32;
const STEADY: u32 = 4;

/// The versions that a new chunk may be a delta against, and its last version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Candidates {
    /// The version before, whether it can be a base or not.
    pub(crate) last: Option<ChunkId>,
    /// The version before, or the base kept if its chain is too long.
    pub(crate) previous: Option<ChunkId>,
    /// The version that the one before was a delta against, or that version itself.
    pub(crate) kept: Option<ChunkId>,
    /// The version that the base kept was a delta against, or that base itself.
    pub(crate) root: Option<ChunkId>,
}

/// The versions that a chunk may be a delta against whose last version is `last`.
pub(crate) fn candidates(store: &Store, last: ChunkId, deepest: u8) -> Result<Candidates, CheckpointError> {
    let (depth, base) = look(store, last)?;
    let allowed = (depth < deepest).then_some(last);
    let kept = base.or(allowed);
    let root = match kept {
        Some(kept) => look(store, kept)?.1.or(Some(kept)),
        None => None,
    };
    Ok(Candidates { last: Some(last), previous: allowed.or(kept), kept, root })
}

/// How deep a chunk is, and what it is a delta against.
fn look(store: &Store, id: ChunkId) -> Result<(u8, Option<ChunkId>), CheckpointError> {
    let pack = store.pack(id.pack)?;
    let entry = pack.block(id.block).ok_or_else(|| pack.damaged_block(id.block, "it is missing"))?;
    Ok((entry.depth, entry.bases.get(usize::from(id.chunk)).copied().flatten()))
}

/// What a block is a delta against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Choice {
    /// The bases kept.
    #[default]
    Kept,
    /// The versions before, as far as they can be bases.
    Previous,
    /// The bases of the bases kept.
    Root,
    /// Nothing.
    Fresh,
}

/// Bytes that a block takes, as deltas against what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) kept: usize,
    pub(crate) previous: usize,
    /// The rest is known when the bound of chains keeps some version from being a base.
    pub(crate) bound: Option<Bound>,
}

/// Bytes that a block takes where chains are too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound {
    /// By the versions before, were there no bound.
    pub(crate) last: usize,
    pub(crate) root: usize,
    pub(crate) fresh: usize,
}

impl Sizes {
    /// What to take.
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

/// Decides what blocks are deltas against.
#[derive(Debug, Clone, Default)]
pub(crate) struct BaseRule {
    choice: Choice,
    /// Blocks to go until bases are compared.
    left: u64,
    /// Comparisons in a row that came to the same.
    steady: u32,
}

impl BaseRule {
    /// Whether to compare in the next block.
    pub(crate) fn compares(&mut self) -> bool {
        let compares = self.left == 0;
        if compares {
            self.left = if self.steady >= STEADY { EVERY_STEADY } else { EVERY };
        }
        self.left -= 1;
        compares
    }

    /// What the next block is a delta against if nothing is compared.
    pub(crate) fn choice(&self) -> Choice {
        self.choice
    }

    /// Hears what came out of a comparison.
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
    fn bases_are_compared_less_often_while_that_comes_to_the_same() {
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
    fn a_bound_that_costs_more_than_a_new_base_leads_to_one() {
        let sizes =
            |last, root, fresh| Sizes { kept: 31, previous: 31, bound: Some(Bound { last, root, fresh }) };
        assert_eq!(sizes(16, 43, 95).choice(0.2), Choice::Root);
        assert_eq!(sizes(16, 55, 95).choice(0.2), Choice::Kept);
        assert_eq!(sizes(16, 55, 40).choice(0.2), Choice::Fresh);
        assert_eq!(sizes(31, 31, 31).choice(0.2), Choice::Kept);
    }
}
