//! By which versions new chunks are told: ADCA (Seed 002), for what is smaller than a page.
//!
//! As published, ADCA decides for a whole checkpoint whether it is told by the base kept so far (C) or by the checkpoint before (C'), and
//! changes the base when C' saves more than ε of C. Here it decides block by block which versions of the pages of the block are the
//! bases, and stores what it found smaller at once (the reading `immediate`). A version whose chain is as long as the store allows
//! cannot be a base; the version that it was told by can.

use super::Store;
use crate::CheckpointError;
use crate::chunk::ChunkId;

/// Compare both bases in the first block and in every so many after it.
const EVERY: u64 = 8;

/// The versions by which a new chunk may be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Candidates {
    /// The version that the one before was told by, or that version itself.
    pub(crate) kept: Option<ChunkId>,
    /// The version before; none if its chain is too long.
    pub(crate) previous: Option<ChunkId>,
}

/// The versions by which a chunk may be told whose last version is `twin`.
pub(crate) fn candidates(store: &Store, twin: ChunkId, deepest: u8) -> Result<Candidates, CheckpointError> {
    let pack = store.pack(twin.pack)?;
    let Some(entry) = pack.block(twin.block) else { return Ok(Candidates::default()) };
    let previous = (entry.depth < deepest).then_some(twin);
    let kept = entry.bases.get(usize::from(twin.chunk)).copied().flatten();
    Ok(Candidates { kept: kept.or(previous), previous })
}

/// Decides which base is used.
#[derive(Debug, Clone, Default)]
pub(crate) struct BaseRule {
    epsilon: f64,
    takes_previous: bool,
    blocks: u64,
    /// How often both were compared, and how often the version before was taken.
    pub(crate) comparisons: (u64, u64),
}

impl BaseRule {
    pub(crate) fn new(epsilon: f64) -> Self {
        Self { epsilon, ..Self::default() }
    }

    /// Whether to encode the next block both ways.
    pub(crate) fn compares(&mut self) -> bool {
        self.blocks += 1;
        (self.blocks - 1).is_multiple_of(EVERY)
    }

    /// Which of the two is used without comparing.
    pub(crate) fn takes_previous(&self) -> bool {
        self.takes_previous
    }

    /// Whether the version before is better by ADCA's rule.
    pub(crate) fn prefers_previous(epsilon: f64, kept: usize, previous: usize) -> bool {
        kept > 0 && (kept as f64 - previous as f64) / kept as f64 > epsilon
    }

    /// Hears how a comparison came out.
    pub(crate) fn learn(&mut self, kept: usize, previous: usize) {
        self.takes_previous = Self::prefers_previous(self.epsilon, kept, previous);
        self.comparisons.0 += 1;
        self.comparisons.1 += u64::from(self.takes_previous);
    }
}
