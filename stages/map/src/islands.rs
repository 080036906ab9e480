//! Independent searches side by side, within a budget.

use std::time::{Duration, Instant};

use hopmap_model::{Context, ConvergencePoint};
use hopmap_objective::{ObjectiveError, Problem};
use rayon::prelude::*;

use crate::meter::{Meter, Progress};
use crate::{Found, SearchError};

/// Most islands of a search.
pub(crate) const MAX_ISLANDS: u32 = 4096;
/// Part of a budget in seconds that is left to the final descent.
const DESCENT_SHARE: f64 = 0.1;

/// How many islands search, and how long.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Budget {
    evaluations: Option<u64>,
    time: Option<Duration>,
    islands: u32,
}

/// What one island found.
pub(crate) struct Island {
    pub(crate) slots: Vec<u32>,
    pub(crate) cost: i64,
    pub(crate) evaluations: u64,
    /// Evaluations and the cost that they led to.
    pub(crate) convergence: Vec<(u64, i64)>,
    pub(crate) interrupted: bool,
}

impl Budget {
    /// Checks the parameters.
    pub(crate) fn new(
        evaluations: Option<u64>,
        seconds: Option<f64>,
        islands: u32,
    ) -> Result<Self, SearchError> {
        if !(1..=MAX_ISLANDS).contains(&islands) {
            return Err(SearchError::Islands { islands });
        }
        if evaluations == Some(0) {
            return Err(SearchError::Evaluations);
        }
        let time = |seconds| match Duration::try_from_secs_f64(seconds) {
            Ok(time) if !time.is_zero() => Ok(time),
            _ => Err(SearchError::Seconds { seconds }),
        };
        Ok(Self { evaluations, time: seconds.map(time).transpose()?, islands })
    }

    /// Evaluations of one island before its descent; `default` where nothing is limited.
    fn evaluations(&self, default: u64) -> u64 {
        match (self.evaluations, self.time) {
            (Some(evaluations), _) => evaluations,
            (None, Some(_)) => u64::MAX,
            (None, None) => default,
        }
    }

    /// Time of one island where only so many can search at once.
    fn time_of_island(&self, at_once: u32) -> Option<Duration> {
        let turns = self.islands.div_ceil(at_once.clamp(1, self.islands));
        self.time.map(|time| time / turns)
    }

    /// The budget of one island that begins now.
    fn meter<'a>(&self, evaluations: u64, cx: &Context<'a>, progress: &'a Progress) -> Meter<'a> {
        let begin = Instant::now();
        let time = self.time_of_island(u32::try_from(cx.threads()).unwrap_or(u32::MAX));
        let searched = time.and_then(|time| begin.checked_add(time.mul_f64(1.0 - DESCENT_SHARE)));
        let ended = time.and_then(|time| begin.checked_add(time));
        Meter::new(evaluations, [searched, ended], *cx, progress)
    }

    /// Searches on every island, on as many threads as the context has; the best one wins.
    pub(crate) fn run(
        &self,
        problem: &Problem,
        default: u64,
        cx: &Context<'_>,
        search: impl Fn(u32, Meter<'_>) -> Result<Island, ObjectiveError> + Sync,
    ) -> Result<Found, ObjectiveError> {
        let evaluations = self.evaluations(default);
        let progress = Progress::new(evaluations.checked_mul(u64::from(self.islands)));
        let at_once = cx.threads().max(1);
        let found = (0..self.islands)
            .into_par_iter()
            .with_min_len((self.islands as usize).div_ceil(at_once))
            .map(|island| search(island, self.meter(evaluations, cx, &progress)))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(best(problem, found))
    }
}

/// Joins the islands; the best one wins, the lowest of equals.
fn best(problem: &Problem, islands: Vec<Island>) -> Found {
    let mut found = Found::at_once(Vec::new());
    let mut best_cost = None;
    for (number, island) in islands.into_iter().enumerate() {
        found.evaluations += island.evaluations;
        found.complete &= !island.interrupted;
        found.convergence.extend(island.convergence.iter().map(|&(evaluations, cost)| ConvergencePoint {
            island: number as u32,
            evaluations,
            cost: problem.real(cost),
        }));
        if best_cost.is_none_or(|best| island.cost < best) {
            best_cost = Some(island.cost);
            found.slots = island.slots;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn islands_that_take_turns_share_the_time() {
        let budget = Budget::new(None, Some(6.0), 5).unwrap();
        let seconds = |at_once| budget.time_of_island(at_once).unwrap().as_secs();
        assert_eq!([0, 1, 2, 4, 5, 64].map(seconds), [1, 1, 2, 3, 6, 6]);
    }

    #[test]
    fn senseless_parameters_are_refused() {
        let message = |evaluations, seconds, islands| {
            Budget::new(evaluations, seconds, islands).unwrap_err().to_string()
        };
        assert_eq!(message(None, None, 0), "islands is 0");
        assert_eq!(message(None, None, 5000), "islands is 5000");
        assert_eq!(message(Some(0), None, 1), "evaluations is 0");
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(message(None, Some(seconds), 1), format!("seconds is {seconds}"));
        }
    }
}
