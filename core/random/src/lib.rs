//! Random draws that are reproducible on every machine.
//!
//! `rand` may change the formulas of its distributions between versions, but results of searches and
//! generators must not change. [`Draw`] has the few distributions that hopmap needs, for any generator.

pub use rand_pcg::Pcg64;
pub use rand_pcg::rand_core::{Rng, SeedableRng};

/// An index below a bound of at most 2³² from 32 random bits, by multiplication and shift. The bias is at
/// most bound / 2³², which is fine for moves of a search.
#[inline]
#[must_use]
pub fn index_below(bits: u32, bound: usize) -> usize {
    ((u64::from(bits) * bound as u64) >> 32) as usize
}

/// Distributions for a generator.
pub trait Draw: Rng {
    /// A number below a bound, uniform up to a bias of bound / 2⁶⁴; 0 if the bound is 0.
    #[inline]
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// A number below a positive bound, exactly uniform (Lemire 2019, "Fast random integer generation in an
    /// interval").
    fn below_unbiased(&mut self, bound: u32) -> u32 {
        let rejected = bound.wrapping_neg() % bound;
        loop {
            let product = u64::from((self.next_u64() >> 32) as u32) * u64::from(bound);
            if product as u32 >= rejected {
                return (product >> 32) as u32;
            }
        }
    }

    /// A number between two others, inclusive, exactly uniform.
    fn between(&mut self, least: u32, most: u32) -> u32 {
        least + self.below_unbiased(most - least + 1)
    }

    /// [`index_below`] of the next 32 bits.
    #[inline]
    fn index(&mut self, bound: usize) -> usize {
        index_below(self.next_u32(), bound)
    }

    /// A number in [0, 1) with 53 bits.
    #[inline]
    fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// An exponentially distributed number of mean 1. The Metropolis rule accepts a proposal that is worse
    /// by at most this times the temperature.
    fn exponential(&mut self) -> f64 {
        // Avoids the logarithm of zero.
        let uniform = ((self.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        -libm::log(uniform)
    }

    /// Shuffles values (Fisher and Yates), uniform up to the bias of [`below`](Self::below).
    fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
    }

    /// [`shuffle`](Self::shuffle), exactly uniform.
    fn shuffle_unbiased<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below_unbiased(last as u32 + 1) as usize);
        }
    }

    /// `count` of the values, or all if there are fewer, in random order.
    fn choose<T: Clone>(&mut self, values: &[T], count: usize) -> Vec<T> {
        let mut values = values.to_vec();
        for place in 0..count.min(values.len()) {
            let other = place + self.below(values.len() - place);
            values.swap(place, other);
        }
        values.truncate(count);
        values
    }
}

impl<R: Rng + ?Sized> Draw for R {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn draws_of_a_seed_never_change() {
        let draws = || Pcg64::from_seed([7; 32]);
        let mut random = draws();
        assert_eq!([100; 4].map(|bound| random.below(bound)), [56, 61, 54, 74]);
        let mut random = draws();
        assert_eq!([100; 4].map(|bound| random.below_unbiased(bound)), [56, 61, 54, 74]);
        let millionths = |number: f64| (number * 1e6) as u32;
        assert_eq!([draws().unit(), draws().exponential()].map(millionths), [560_099, 579_641]);
        assert_eq!((draws().choose(&[1, 2, 3, 4, 5], 3), draws().index(100)), (vec![3, 4, 2], 82));
    }

    #[test]
    fn every_order_is_equally_likely() {
        let mut random = Pcg64::from_seed([1; 32]);
        let mut counts = BTreeMap::new();
        for _ in 0..12_000 {
            let mut order = [0, 1, 2];
            random.shuffle_unbiased(&mut order);
            *counts.entry((order, random.between(5, 6))).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 12);
        assert!(counts.values().all(|&count| (900..1100).contains(&count)), "{counts:?}");
    }
}
