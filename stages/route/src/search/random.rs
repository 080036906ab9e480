//! Random numbers.

use hopmap_model::seed_stream;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Names the streams of random numbers of the search.
const KIND: &str = "route/search";
/// The seed; the problem has none.
const SEED: u64 = 1;

/// The random numbers of an island.
pub(super) fn stream(island: u64) -> Pcg64 {
    Pcg64::from_seed(seed_stream(KIND, SEED, island))
}

/// How much worse a proposal may be at a temperature: the rule of Metropolis.
pub(super) fn slack(random: &mut Pcg64, temperature: f64) -> f64 {
    -libm::log((f64::from(random.next_u32()) + 0.5) / 4_294_967_296.0) * temperature
}
