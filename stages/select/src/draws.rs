//! Random choices that are the same everywhere.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

use hopmap_model::seed_stream;

/// A stream of random numbers.
pub(crate) struct Draws(Pcg64);

impl Draws {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self(Pcg64::from_seed(seed_stream("select/nodes", seed, stream)))
    }

    /// A number below `bound`, which is at least one. Its bias is less than one in four billion for a million.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.0.next_u64()) * bound as u128) >> 64) as usize
    }

    /// `count` of the elements, in their order.
    pub(crate) fn choose(&mut self, elements: &[u32], count: usize) -> Vec<u32> {
        let mut elements = elements.to_vec();
        for index in 0..count.min(elements.len()) {
            let other = index + self.below(elements.len() - index);
            elements.swap(index, other);
        }
        elements.truncate(count);
        elements.sort_unstable();
        elements
    }
}
