//! Random numbers that are the same on every machine.

use hopmap_model::{Stage, seed_stream};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

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
    pub(super) fn draws(self, seed: u64) -> Draws {
        // Ranks and checkpoints have four digits, which are 14 bits; changes have what is left.
        let island = u64::from(self.rank) << 32 | u64::from(self.checkpoint & 0xffff) << 16;
        Draws(Pcg64::from_seed(seed_stream(Generate::KIND, seed, island ^ u64::from(self.change))))
    }
}

/// A stream of random numbers.
pub(super) struct Draws(Pcg64);

impl Draws {
    /// A number.
    pub(super) fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below a bound, each equally likely but for a part in 2^64 / bound; 0 when the bound is.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.0.next_u64()) * bound as u128) >> 64) as usize
    }

    /// A number from 0 to 1, without 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Whether something happens that has this share.
    pub(super) fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }
}
