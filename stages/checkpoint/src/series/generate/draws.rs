//! Random numbers that are the same on every machine.

use hopmap_model::{Stage, seed_stream};
use hopmap_random::{Pcg64, SeedableRng};

use crate::Generate;

/// What random numbers are for. One change more leaves those of the others as they are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    /// Rank; the contents of libraries have the last number.
    pub(super) rank: u32,
    /// Checkpoint; the first contents have 0.
    pub(super) checkpoint: u32,
    /// Place among the changes, or of an area among the areas.
    pub(super) change: u32,
}

impl Stream {
    /// The numbers.
    pub(super) fn draws(self, seed: u64) -> Pcg64 {
        // Ranks and checkpoints have four digits, which are 14 bits; changes have what is left.
        let island = u64::from(self.rank) << 32 | u64::from(self.checkpoint & 0xffff) << 16;
        Pcg64::from_seed(seed_stream(Generate::KIND, seed, island ^ u64::from(self.change)))
    }
}
