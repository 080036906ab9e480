//! How many islands search and how long, and islands that know nothing of each other.

use std::time::{Duration, Instant};

use hopmap_model::{Context, Error};
use rayon::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::meter::{Meter, Progress};
use crate::spread::Spread;
use crate::{Candidate, SearchError};

/// Most islands of a search.
pub(crate) const MAX_ISLANDS: u32 = 4096;
/// Part of a budget in seconds that is left to the final descent.
const DESCENT_SHARE: f64 = 0.1;

/// How many islands search, and how long.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    evaluations: Option<u64>,
    time: Option<Duration>,
    islands: u32,
}

/// What one island found.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Island<S> {
    /// The best.
    pub best: Candidate<S>,
    /// Evaluations that it took.
    pub evaluations: u64,
    /// Evaluations and the cost that they led to.
    pub convergence: Vec<(u64, i64)>,
    /// Whether the context asked it to stop.
    pub interrupted: bool,
}

/// What all islands found.
#[derive(Debug, Clone)]
pub struct Found<S> {
    /// The best of all islands, the lowest of equals.
    pub best: Candidate<S>,
    /// The best of every island.
    pub bests: Vec<Candidate<S>>,
    /// Evaluations of all islands together.
    pub evaluations: u64,
    /// The best cost of every island over its evaluations, island by island.
    pub convergence: Vec<Point>,
    /// Whether the search came to its end and was not told to stop before.
    pub complete: bool,
}

/// The best cost of an island after a number of evaluations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// The island.
    pub island: u32,
    /// Evaluations spent by the island.
    pub evaluations: u64,
    /// Its best cost so far.
    pub cost: i64,
}

impl Budget {
    /// Checks the parameters.
    pub fn new(evaluations: Option<u64>, seconds: Option<f64>, islands: u32) -> Result<Self, SearchError> {
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

    /// Number of islands.
    #[must_use]
    pub fn islands(&self) -> u32 {
        self.islands
    }

    /// How long all islands may take together, if that is limited.
    #[must_use]
    pub fn time(&self) -> Option<Duration> {
        self.time
    }

    /// A part of the budget for work that comes first, at most so many evaluations for every island.
    #[must_use]
    pub fn part(&self, share: f64, most: u64) -> Self {
        let evaluations = self.evaluations.map_or(most, |all| most.min((share * all as f64) as u64)).max(1);
        Self {
            evaluations: Some(evaluations),
            time: self.time.map(|time| time.mul_f64(share)),
            islands: self.islands,
        }
    }

    /// What is left of the budget after so many evaluations of every island and so much time.
    #[must_use]
    pub fn after(&self, evaluations: u64, time: Duration) -> Self {
        Self {
            evaluations: self.evaluations.map(|all| all.saturating_sub(evaluations).max(1)),
            time: self.time.map(|all| all.saturating_sub(time).max(Duration::from_millis(1))),
            islands: self.islands,
        }
    }

    /// Evaluations of one island before its descent; `default` where nothing is limited.
    #[must_use]
    pub fn evaluations(&self, default: u64) -> u64 {
        match (self.evaluations, self.time) {
            (Some(evaluations), _) => evaluations,
            (None, Some(_)) => u64::MAX,
            (None, None) => default,
        }
    }

    /// Time of one of so many islands of which only some can search at once.
    fn time_of_island(&self, islands: u32, at_once: u32) -> Option<Duration> {
        let turns = islands.div_ceil(at_once.clamp(1, islands.max(1)));
        self.time.map(|time| time / turns)
    }

    /// Searches on every island, on as many threads and processes as the context has.
    ///
    /// Every island gets `evaluations`, or `default` where nothing is limited. Of a budget in seconds, islands that have to take
    /// turns share the time, and a tenth is left to what comes after [`Meter::begin_descent`].
    pub fn search<S, E>(
        &self,
        default: u64,
        cx: &Context<'_>,
        search: impl Fn(u32, Meter<'_>) -> Result<Island<S>, E> + Sync,
    ) -> Result<Found<S>, Error>
    where
        S: Clone + Serialize + DeserializeOwned + Send,
        E: Into<Error> + Send,
    {
        let spread = Spread::new(self.islands, cx.communicator());
        let own = spread.own();
        let evaluations = self.evaluations(default);
        let progress = Progress::new(evaluations.checked_mul(own.len() as u64));
        let at_once = cx.threads().max(1);
        let meter = || {
            let begin = Instant::now();
            let time = self.time_of_island(own.len() as u32, u32::try_from(at_once).unwrap_or(u32::MAX));
            let searched = time.and_then(|time| begin.checked_add(time.mul_f64(1.0 - DESCENT_SHARE)));
            let ended = time.and_then(|time| begin.checked_add(time));
            Meter::new(evaluations, [searched, ended], *cx, &progress)
        };
        let found = own
            .clone()
            .into_par_iter()
            .with_min_len(own.len().div_ceil(at_once).max(1))
            .map(|island| search(island, meter()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(Into::<Error>::into)?;
        Ok(join(spread.gather(found)?)?)
    }
}

/// Joins the islands; the best one wins, the lowest of equals.
pub(crate) fn join<S: Clone>(islands: Vec<Island<S>>) -> Result<Found<S>, SearchError> {
    let mut evaluations = 0;
    let mut complete = true;
    let mut convergence = Vec::new();
    let mut bests = Vec::new();
    for (number, island) in islands.into_iter().enumerate() {
        evaluations += island.evaluations;
        complete &= !island.interrupted;
        let points = island.convergence.iter();
        convergence.extend(points.map(|&(evaluations, cost)| Point {
            island: number as u32,
            evaluations,
            cost,
        }));
        bests.push(island.best);
    }
    let best = bests.iter().min_by_key(|best| best.cost).cloned();
    let best = best.ok_or(SearchError::Islands { islands: 0 })?;
    Ok(Found { best, bests, evaluations, convergence, complete })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn islands_that_take_turns_share_the_time() {
        let budget = Budget::new(None, Some(6.0), 5).unwrap();
        let seconds = |at_once| budget.time_of_island(5, at_once).unwrap().as_secs();
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
