//! Random numbers of searches.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// A number below a bound, which is more than zero.
pub(super) fn below(random: &mut Pcg64, bound: usize) -> usize {
    ((u128::from(random.next_u64()) * bound as u128) >> 64) as usize
}

/// A number of mean one, exponentially distributed.
pub(super) fn exponential(random: &mut Pcg64) -> f64 {
    // Of 53 bits, never zero.
    let uniform = ((random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
    -libm::log(uniform)
}

/// A number from zero to one, without one.
pub(super) fn uniform(random: &mut Pcg64) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// So many different numbers below a bound, in random order.
pub(super) fn shuffled(random: &mut Pcg64, bound: usize, count: usize) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..bound as u32).collect();
    for place in 0..count.min(bound) {
        let other = place + below(random, bound - place);
        numbers.swap(place, other);
    }
    numbers.truncate(count);
    numbers
}
