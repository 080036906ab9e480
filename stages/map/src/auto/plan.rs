//! How much work a population is given.

/// The default budget is so many sweeps over all ranks, or as many as fit so many evaluations.
const DEFAULT_SWEEPS: u64 = 1 << 15;
const DEFAULT_EVALUATIONS: u64 = 1 << 24;

/// Sweeps of a whole population at one temperature: of the first one, and the fewest that pay.
const FIRST_WORK: u64 = 64;
/// Sweeps of one placement at one temperature, in multiples of the number of placements.
const SWEEPS_PER_MEMBER: u64 = 4;
/// Temperatures that a population is expected to take before one has been annealed.
const EXPECTED_STEPS: u64 = 80;
/// A population that leaves less than this multiple of its own evaluations to the next takes them all itself.
const REST: f64 = 1.2;
/// Part of the budget that a population is planned to take at most; the number of its steps is not known before.
const SAFE: f64 = 0.9;

/// Evaluations of an island where nothing is limited.
pub(super) fn default_evaluations(movable: u64) -> u64 {
    DEFAULT_EVALUATIONS.min(DEFAULT_SWEEPS * movable)
}

/// How a population is annealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// Placements in it.
    pub(super) members: u64,
    /// Sweeps of each at one temperature.
    pub(super) sweeps: u64,
}

/// What an island has learned about its populations.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(super) struct Plan {
    /// Sweeps of the whole population at one temperature, of the next one.
    work: u64,
    /// Temperatures that the last one took.
    steps: u64,
}

impl Plan {
    pub(super) fn new() -> Self {
        Self { work: FIRST_WORK, steps: EXPECTED_STEPS }
    }

    /// The next population, where so many evaluations are left; `None` if they are too few for the smallest one.
    pub(super) fn next(&mut self, ranks: u64, left: u64) -> Option<Size> {
        let affordable = (left as f64 * SAFE / (ranks * self.steps) as f64) as u64;
        if affordable < FIRST_WORK / 2 {
            return None;
        }
        let work = match affordable as f64 > (1.0 + REST) * self.work as f64 {
            true => self.work,
            false => affordable.min(4 * self.work),
        };
        self.work = 2 * work;
        Some(Size::of_work(work))
    }

    /// Notes how many temperatures a population took.
    pub(super) fn note(&mut self, steps: u64) {
        self.steps = steps.max(1);
    }
}

impl Size {
    /// Shares out sweeps at one temperature.
    fn of_work(work: u64) -> Self {
        let members = (work / SWEEPS_PER_MEMBER).isqrt().max(2);
        Self { members, sweeps: (work / members).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn populations_grow_until_the_last_takes_what_is_left() {
        let mut plan = Plan::new();
        let mut left = 10_000_000;
        let mut sizes = Vec::new();
        while let Some(size) = plan.next(50, left) {
            left -= size.members * size.sweeps * 50 * EXPECTED_STEPS;
            sizes.push((size.members, size.sweeps));
        }
        assert_eq!(sizes, [(4, 16), (5, 25), (8, 32), (11, 46), (18, 77), (6, 24)]);
        assert!(left < 10_000_000 / 8);
    }

    #[test]
    fn a_small_budget_has_no_population() {
        assert_eq!(Plan::new().next(1000, 1000), None);
    }
}
