//! What a search spends its time on.

use std::time::{Duration, Instant};

/// What most shares are a part of: the time limit, or all evaluations.
pub const LIMIT: &str = "the limit";
/// How what [`TimePlan::words`] says begins.
pub const TIME_PLAN: &str = "time limit ";
/// The local search at the end, for which time is reserved.
pub const DESCENT: Phase = Phase { most: 1 << 22, ..Phase::new("final local search", 0.1, LIMIT) };

/// A phase of a search.
#[derive(Debug, Clone, Copy)]
pub struct Phase {
    /// Its name.
    pub name: &'static str,
    /// The share that it may take.
    pub share: f64,
    /// Of what: [`LIMIT`], the rest of it, or what another phase took.
    pub whole: &'static str,
    /// Most evaluations of an island.
    pub most: u64,
}

impl Phase {
    /// A phase without a limit of evaluations.
    #[must_use]
    pub const fn new(name: &'static str, share: f64, whole: &'static str) -> Self {
        Self { name, share, whole, most: u64::MAX }
    }

    /// This share of a number of evaluations.
    #[must_use]
    pub fn of(&self, evaluations: u64) -> u64 {
        self.most.min((self.share * evaluations as f64) as u64)
    }
}

/// All phases of a search, and what those took that have ended, one after the other.
pub struct TimePlan {
    phases: &'static [Phase],
    last: Instant,
    took: Vec<(&'static str, Duration)>,
}

impl TimePlan {
    /// The first phase begins.
    #[must_use]
    pub fn begin(phases: &'static [Phase]) -> Self {
        Self { phases, last: Instant::now(), took: Vec::new() }
    }

    /// A phase has ended, and the next one begins.
    pub fn ended(&mut self, phase: &Phase) {
        let now = Instant::now();
        self.took.push((phase.name, now - std::mem::replace(&mut self.last, now)));
    }

    /// What the phases may take of a time limit, if there is one, and what they took.
    #[must_use]
    pub fn words(&self, limit: Option<Duration>) -> Option<String> {
        let words = |&Phase { name, share, whole, .. }: &Phase| {
            let took =
                self.took.iter().filter(|(ended, _)| *ended == name).map(|(_, time)| time.as_secs_f64());
            let took = took.reduce(|one, other| one + other).map(|seconds| format!(" (took {seconds:.2} s)"));
            format!("{name} {:.0} % of {whole}{}", 100.0 * share, took.unwrap_or_default())
        };
        let phases: Vec<String> = self.phases.iter().map(words).collect();
        limit.map(|limit| format!("{TIME_PLAN}{} s, at most: {}", limit.as_secs_f64(), phases.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_says_what_its_phases_may_take_and_took() {
        const SEARCH: Phase = Phase { most: 1 << 50, ..Phase::new("search", 1.0 / 3.0, "the rest") };
        let second = Duration::from_secs(1);
        let took = vec![("search", second), ("search", 5 * second)];
        let words = TimePlan { took, ..TimePlan::begin(&[SEARCH, DESCENT]) }.words(Some(10 * second));
        let expected = "time limit 10 s, at most: search 33 % of the rest (took 6.00 s), final local search 10 % of the limit";
        assert_eq!(words.as_deref(), Some(expected));
        assert!((0..1 << 16).chain([1 << 40, 3 << 40, (3 << 41) - 1]).all(|all| SEARCH.of(all) == all / 3));
    }
}
