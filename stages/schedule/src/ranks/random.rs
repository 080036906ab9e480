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
