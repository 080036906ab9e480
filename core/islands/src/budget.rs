//! How many islands search and how long, and islands that know nothing of each other.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hopmap_model::{Context, Error};
use miette::Diagnostic;
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::meter::{Meter, Progress, share};
use crate::spread::Spread;

/// Most islands of a search.
const MAX_ISLANDS: u32 = 4096;
/// Part of a budget in seconds that is left to the final descent.
const DESCENT_SHARE: f64 = 0.1;

/// How many islands search, and how long.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    evaluations: Option<u64>,
    time: Option<Duration>,
    islands: u32,
}

/// A solution and what it costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate<S> {
    /// Its cost; less is better.
    pub cost: i64,
    /// The solution.
    pub solution: S,
}

/// What one island found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Island<S> {
    /// The best.
    pub best: Candidate<S>,
    /// Evaluations that it took.
    pub evaluations: u64,
    /// Evaluations and the cost that they led to.
    pub convergence: Vec<(u64, i64)>,
    /// Whether the context asked it to stop.
    pub interrupted: bool,
    /// How often it did something, by name.
    pub counts: Counts,
}

/// How often something was done, by name.
pub type Counts = BTreeMap<String, u64>;

/// What all islands found.
#[derive(Debug, Clone)]
pub struct SearchResult<S> {
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
    /// How often the island that did it most did something.
    pub counts: Counts,
}

impl<S: Clone> SearchResult<S> {
    /// What took no search.
    pub fn at_once(best: Candidate<S>) -> Self {
        let (bests, convergence, counts) = (vec![best.clone()], Vec::new(), Counts::new());
        Self { best, bests, evaluations: 0, convergence, complete: true, counts }
    }
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
    pub fn new(
        evaluations: Option<u64>,
        time_limit_s: Option<f64>,
        islands: u32,
    ) -> Result<Self, SearchError> {
        if !(1..=MAX_ISLANDS).contains(&islands) {
            return Err(SearchError::Islands { islands });
        }
        if evaluations == Some(0) {
            return Err(SearchError::Evaluations);
        }
        Ok(Self { evaluations, time: time_limit(time_limit_s)?, islands })
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

    /// Searches on every island, on as many threads and processes as the context has.
    ///
    /// Every island gets `evaluations`, or `default` where nothing is limited. A budget in seconds is the time of all islands
    /// together, from now on: those that have to take turns share what is left of it, and a tenth of the share of each is left to
    /// what comes after [`Meter::begin_descent`].
    pub fn search<S, E>(
        &self,
        default: u64,
        cx: &Context<'_>,
        search: impl Fn(u32, Meter<'_>) -> Result<Island<S>, E> + Sync,
    ) -> Result<SearchResult<S>, Error>
    where
        S: Clone + Serialize + DeserializeOwned + Send,
        E: Into<Error> + Send,
    {
        let spread = Spread::new(self.islands, cx.communicator());
        let own = spread.own();
        let evaluations = self.evaluations(default);
        let progress = Progress::new(evaluations.checked_mul(own.len() as u64));
        let end = self.time.and_then(|time| Instant::now().checked_add(time));
        let meter = |turns| {
            let now = Instant::now();
            let left = end.map(|end| share(end.saturating_duration_since(now), turns));
            let after = |part: f64| left.map(|left| now + left.mul_f64(part));
            Meter::new(evaluations, [after(1.0 - DESCENT_SHARE), after(1.0)], *cx, &progress)
        };
        let take_turns = |row: &[u32]| {
            let turns = (1..=row.len()).rev();
            let found = row.iter().zip(turns).map(|(&island, turns)| search(island, meter(turns)));
            found.collect::<Result<Vec<_>, _>>()
        };
        let own: Vec<u32> = own.collect();
        let rows = own.par_chunks(row(own.len(), cx)).map(take_turns).collect::<Result<Vec<_>, _>>();
        let found = rows.map_err(Into::<Error>::into)?.into_iter().flatten().collect();
        Ok(join(spread.gather(found)?)?)
    }
}

/// A limit in seconds as a time above zero.
pub fn time_limit(seconds: Option<f64>) -> Result<Option<Duration>, SearchError> {
    let time = |seconds| match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err(SearchError::TimeLimit { seconds }),
    };
    seconds.map(time).transpose()
}

/// How many of so many islands take turns on one thread.
pub(crate) fn row(islands: usize, cx: &Context<'_>) -> usize {
    let threads = cx.threads().min(rayon::current_num_threads()).max(1);
    islands.div_ceil(threads).max(1)
}

/// Joins the islands; the best one wins, the lowest of equals.
pub(crate) fn join<S: Clone>(islands: Vec<Island<S>>) -> Result<SearchResult<S>, SearchError> {
    let mut evaluations = 0;
    let mut complete = true;
    let mut convergence = Vec::new();
    let mut bests = Vec::new();
    let mut counts = Counts::new();
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
        for (name, count) in island.counts {
            let most = counts.entry(name).or_default();
            *most = count.max(*most);
        }
    }
    let best = bests.iter().min_by_key(|best| best.cost).cloned();
    let best = best.ok_or(SearchError::Islands { islands: 0 })?;
    Ok(SearchResult { best, bests, evaluations, convergence, complete, counts })
}

/// Parameters that make no search.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum SearchError {
    /// There are no islands, or far too many.
    #[error("islands is {islands}")]
    #[diagnostic(help("give a number of islands from 1 to {MAX_ISLANDS}"))]
    Islands {
        /// The parameter.
        islands: u32,
    },
    /// The budget is empty.
    #[error("evaluations is 0")]
    #[diagnostic(help("give every island at least one evaluation, or leave `evaluations` out"))]
    Evaluations,
    /// The budget is not a time.
    #[error("time_limit_s is {seconds}")]
    #[diagnostic(help("give a time above zero, or leave `time_limit_s` out"))]
    TimeLimit {
        /// The parameter.
        seconds: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An island that searches, and then descends, for as long as it may.
    fn spend(meter: &mut Meter<'_>) -> Island<()> {
        let begin = Instant::now();
        while meter.look() {
            std::thread::sleep(Duration::from_millis(1));
        }
        meter.begin_descent();
        while meter.look() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let took = begin.elapsed().as_millis() as u64;
        let best = Candidate { cost: 0, solution: () };
        Island {
            best,
            evaluations: took,
            convergence: vec![(took, 0)],
            interrupted: false,
            counts: Counts::new(),
        }
    }

    #[test]
    fn all_islands_of_a_search_have_one_deadline_and_take_fair_turns() {
        // More threads than the pool has must not make it longer.
        for (islands, threads, in_pool) in [(4, 1, 1), (4, 4, 1), (3, 2, 2), (5, 2, 2), (2, 2, 2)] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(in_pool).build().unwrap();
            let budget = Budget::new(None, Some(0.3), islands).unwrap();
            let cx = Context::detached().with_threads(threads);
            let search = || budget.search(1, &cx, |_, mut meter| Ok::<_, Error>(spend(&mut meter)));
            let found = pool.install(search).unwrap();
            let case = format!("{islands} islands on {threads} of {in_pool} threads");
            let turn = 300 / u64::from(islands).div_ceil(in_pool as u64);
            for point in found.convergence {
                assert!(point.evaluations >= turn / 2, "{case}: {point:?} of {turn} ms");
            }
        }
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
            assert_eq!(message(None, Some(seconds), 1), format!("time_limit_s is {seconds}"));
        }
    }
}
