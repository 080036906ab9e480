//! Random numbers of a subproblem.

use hopmap_model::seed_stream;
use hopmap_random::{Pcg64, SeedableRng};

/// The random stream of a subproblem, which depends on nothing but the seed and the place of the subproblem.
pub(crate) fn stream(seed: u64, path: u64) -> Pcg64 {
    Pcg64::from_seed(seed_stream("partition", seed, path))
}
