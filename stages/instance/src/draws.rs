//! Random numbers that are the same on every machine.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// A stream of random numbers.
pub(crate) struct Draws(Pcg64);

impl Draws {
    /// The stream of a seed, which is one of [`hopmap_model::seed_stream`].
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self(Pcg64::from_seed(seed))
    }

    /// A number below a bound above zero, each equally likely (Lemire 2019, Fast random integer generation in an interval).
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        let rejected = bound.wrapping_neg() % bound;
        loop {
            let product = u64::from((self.0.next_u64() >> 32) as u32) * u64::from(bound);
            if product as u32 >= rejected {
                return (product >> 32) as u32;
            }
        }
    }

    /// A number below a bound of up to 2^62, each equally likely but for a part in 2^64 / bound.
    pub(crate) fn below_wide(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number below 2^31.
    pub(crate) fn coordinate(&mut self) -> u32 {
        (self.0.next_u64() >> 33) as u32
    }

    /// A number between two others, both among them.
    pub(crate) fn between(&mut self, least: u32, most: u32) -> u32 {
        least + self.below(most - least + 1)
    }

    /// Puts values into an order of which each is equally likely (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last as u32 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_and_every_order_is_equally_likely() {
        let mut draws = Draws::new([1; 32]);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..12_000 {
            let mut order = [0, 1, 2];
            draws.shuffle(&mut order);
            *counts.entry((order, draws.between(5, 6))).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 12);
        assert!(counts.values().all(|&count| (900..1100).contains(&count)), "{counts:?}");
    }

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let mut draws = Draws::new([7; 32]);
        assert_eq!([100, 100, 100, 100].map(|bound| draws.below(bound)), [56, 61, 54, 74]);
        let mut draws = Draws::new([7; 32]);
        assert_eq!([100, 100, 100, 100].map(|bound| draws.below_wide(bound)), [56, 61, 54, 74]);
    }
}
