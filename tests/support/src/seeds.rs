//! Loops over seeds: about a second in a normal run, unlimited in a soak.

use std::env;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Duration of a loop in a normal run.
const BUDGET: Duration = Duration::from_secs(1);

/// Whether `HOPMAP_SOAK` enables the long loops.
#[must_use]
pub fn soak() -> bool {
    env::var_os("HOPMAP_SOAK").is_some()
}

/// The single seed of `HOPMAP_SEED`; checks over all seeds are then not possible.
///
/// # Panics
///
/// If it is not a number.
#[must_use]
pub fn only_seed() -> Option<u64> {
    env::var("HOPMAP_SEED").ok().map(|seed| seed.parse().expect("HOPMAP_SEED is a number"))
}

/// Seeds from 0 in ascending order: `usual` of them, or as many as fit into a second, but at least a tenth;
/// with `HOPMAP_SOAK` all of `soak`; with `HOPMAP_SEED=N` only `N`. A failing test prints the seed.
#[must_use]
pub fn seeds(usual: u64, soak: u64) -> Seeds {
    let (left, least) = match only_seed() {
        Some(seed) => (seed..seed + 1, u64::MAX),
        None if self::soak() => (0..soak, soak),
        None => (0..usual, usual.div_ceil(10)),
    };
    Seeds { left, least, begun: Instant::now() }
}

/// The iterator of [`seeds`].
#[derive(Debug)]
pub struct Seeds {
    left: Range<u64>,
    least: u64,
    begun: Instant,
}

impl Iterator for Seeds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let is_over = self.left.start >= self.least && self.begun.elapsed() > BUDGET;
        if is_over { None } else { self.left.next() }
    }
}

impl Drop for Seeds {
    #[expect(clippy::print_stderr, reason = "a failing test prints how to repeat it")]
    fn drop(&mut self) {
        if std::thread::panicking() && self.left.start > 0 {
            eprintln!("HOPMAP_SEED={} repeats it", self.left.start - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BUDGET, Seeds};
    use std::time::Instant;

    fn late(usual: u64) -> Seeds {
        let begun = Instant::now().checked_sub(2 * BUDGET).expect("the machine has been on for seconds");
        Seeds { begun, left: 0..usual, least: usual.div_ceil(10) }
    }

    #[test]
    fn at_least_a_tenth_is_done_after_the_deadline() {
        assert_eq!(late(25).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(late(1).count(), 1);
        assert_eq!(late(0).count(), 0);
    }

    #[test]
    fn all_is_done_in_time() {
        assert_eq!(Seeds { begun: Instant::now(), left: 0..25, least: 3 }.count(), 25);
    }
}
