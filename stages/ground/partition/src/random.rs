//! Random numbers of a subproblem.

use hopmap_model::seed_stream;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// The random stream of a subproblem, which depends on nothing but the seed and the place of the subproblem.
pub(crate) struct Random(Pcg64);

impl Random {
    pub(crate) fn new(seed: u64, path: u64) -> Self {
        Self(Pcg64::from_seed(seed_stream("partition", seed, path)))
    }

    /// A number below a bound, which is more than zero.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        let product = u128::from(self.0.next_u64()) * u128::from(bound);
        (product >> 64) as u32
    }

    /// Puts values in random order.
    pub(crate) fn shuffle(&mut self, values: &mut [u32]) {
        for end in (1..values.len()).rev() {
            values.swap(end, self.below(end as u32 + 1) as usize);
        }
    }
}
