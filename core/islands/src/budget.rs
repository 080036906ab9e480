//! Search budgets, and searches of independent islands.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hopmap_model::{Context, Error, OutOfRange, require, require_above_zero};
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::meter::{Meter, Progress, share};
use crate::plan::{DESCENT, Phase};
use crate::spread::Spread;

/// Largest number of islands of a search.
const MAX_ISLANDS: u32 = 4096;

/// Number of islands and their budget: evaluations or wall-clock time.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    evaluations: Option<u64>,
    time: Option<Duration>,
    islands: u32,
}

/// A solution and its cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate<S> {
    /// The cost; lower is better.
    pub cost: i64,
    /// The solution.
    pub solution: S,
}

/// The result of one island.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Island<S> {
    /// The best solution.
    pub best: Candidate<S>,
    /// Evaluations spent.
    pub evaluations: u64,
    /// Best cost over evaluations, for the convergence curve.
    pub convergence: Vec<(u64, i64)>,
    /// Whether the context stopped the search.
    pub interrupted: bool,
    /// Event counts by name.
    pub counts: Counts,
}

/// How often an event occurred, by name.
pub type Counts = BTreeMap<String, u64>;

/// The combined result of all islands.
#[derive(Debug, Clone)]
pub struct SearchResult<S> {
    /// The best solution of all islands; ties go to the lowest island.
    pub best: Candidate<S>,
    /// The islands of this process and their best solutions.
    pub own: Vec<(u32, S)>,
    /// Evaluations of all islands.
    pub evaluations: u64,
    /// Best cost of each island over its evaluations, island by island.
    pub convergence: Vec<Point>,
    /// Whether the search ended by itself, rather than being stopped.
    pub complete: bool,
    /// Event counts: for each event, the maximum over the islands.
    pub counts: Counts,
}

impl<S> SearchResult<S> {
    /// The result of a solution that needed no search.
    pub fn at_once(best: Candidate<S>) -> Self {
        let (own, convergence, counts) = (Vec::new(), Vec::new(), Counts::new());
        Self { best, own, evaluations: 0, convergence, complete: true, counts }
    }
}

/// One point of a convergence curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Island index.
    pub island: u32,
    /// Evaluations spent by the island.
    pub evaluations: u64,
    /// Best cost so far.
    pub cost: i64,
}

impl Budget {
    /// Validates the parameters.
    pub fn new(
        evaluations: Option<u64>,
        time_limit_s: Option<f64>,
        islands: u32,
    ) -> Result<Self, OutOfRange> {
        let is_right = (1..=MAX_ISLANDS).contains(&islands);
        require(is_right, "islands", islands, format!("1 to {MAX_ISLANDS}"))?;
        require_above_zero("evaluations", evaluations)?;
        Ok(Self { evaluations, time: time_limit(time_limit_s)?, islands })
    }

    /// Number of islands.
    #[must_use]
    pub fn islands(&self) -> u32 {
        self.islands
    }

    /// Time limit of all islands together, if there is one.
    #[must_use]
    pub fn time(&self) -> Option<Duration> {
        self.time
    }

    /// The part of the budget that a phase may take.
    #[must_use]
    pub fn part(&self, phase: &Phase) -> Self {
        let evaluations = self.evaluations.map_or(phase.most, |all| phase.of(all)).max(1);
        Self {
            evaluations: Some(evaluations),
            time: self.time.map(|time| time.mul_f64(phase.share)),
            islands: self.islands,
        }
    }

    /// The budget that remains after `evaluations` of each island and after `time`.
    #[must_use]
    pub fn after(&self, evaluations: u64, time: Duration) -> Self {
        Self {
            evaluations: self.evaluations.map(|all| all.saturating_sub(evaluations).max(1)),
            time: self.time.map(|all| all.saturating_sub(time).max(Duration::from_millis(1))),
            islands: self.islands,
        }
    }

    /// Evaluations of one island before its final local search; `default` without a limit.
    #[must_use]
    pub fn evaluations(&self, default: u64) -> u64 {
        match (self.evaluations, self.time) {
            (Some(evaluations), _) => evaluations,
            (None, Some(_)) => u64::MAX,
            (None, None) => default,
        }
    }

    /// Runs independent searches on all islands, distributed over the threads and processes of the context.
    ///
    /// Each island gets `evaluations`, or `default` without a limit. A time limit applies to all islands
    /// together, starting now. Islands that share a thread run one after the other and divide the remaining
    /// time; of each share, that of [`DESCENT`] is reserved for the phase after [`Meter::begin_descent`].
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
            Meter::new(evaluations, [after(1.0 - DESCENT.share), after(1.0)], *cx, &progress)
        };
        let take_turns = |row: &[u32]| {
            let turns = (1..=row.len()).rev();
            let found = row.iter().zip(turns).map(|(&island, turns)| search(island, meter(turns)));
            found.collect::<Result<Vec<_>, _>>()
        };
        let own: Vec<u32> = own.collect();
        let rows = own.par_chunks(row(own.len(), cx)).map(take_turns).collect::<Result<Vec<_>, _>>();
        join(&spread, rows.map_err(Into::<Error>::into)?.into_iter().flatten().collect())
    }
}

/// A time limit in seconds as a positive duration.
pub fn time_limit(seconds: Option<f64>) -> Result<Option<Duration>, OutOfRange> {
    let time = |seconds| match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err(OutOfRange::new("time_limit_s", seconds, "more than 0 s")),
    };
    seconds.map(time).transpose()
}

/// Number of islands that run one after the other on one thread.
pub(crate) fn row(islands: usize, cx: &Context<'_>) -> usize {
    let threads = cx.threads().min(rayon::current_num_threads()).max(1);
    islands.div_ceil(threads).max(1)
}

/// Combines the results of the islands of all processes; the best island wins, ties go to the lowest index.
///
/// Only the winner sends its solution: those of all islands may be too large for a message.
pub(crate) fn join<S>(spread: &Spread<'_>, own: Vec<Island<S>>) -> Result<SearchResult<S>, Error>
where
    S: Clone + Serialize + DeserializeOwned,
{
    let (mut solutions, mut results) = (Vec::new(), Vec::new());
    for Island { best, evaluations, convergence, interrupted, counts } in own {
        let Candidate { cost, solution } = best;
        solutions.push(solution);
        results.push(Island {
            best: Candidate { cost, solution: () },
            evaluations,
            convergence,
            interrupted,
            counts,
        });
    }
    let results = spread.gather(results)?;
    let winner = (0..).zip(&results).min_by_key(|(_, island)| island.best.cost);
    let nothing = || OutOfRange::new("islands", 0, format!("1 to {MAX_ISLANDS}"));
    let (winner, cost) = winner.map(|(number, island)| (number, island.best.cost)).ok_or_else(nothing)?;
    let own: Vec<_> = spread.own().zip(solutions).collect();
    let sent = own.iter().filter(|(number, _)| *number == winner).map(|(_, solution)| solution.clone());
    let sent = spread.gather(sent.collect())?;
    let best = Candidate { cost, solution: sent.into_iter().next().ok_or_else(nothing)? };
    let mut found = SearchResult { own, ..SearchResult::at_once(best) };
    for (number, island) in (0..).zip(results) {
        found.evaluations += island.evaluations;
        found.complete &= !island.interrupted;
        let points = island.convergence.iter();
        found.convergence.extend(points.map(|&(evaluations, cost)| Point {
            island: number,
            evaluations,
            cost,
        }));
        for (name, count) in island.counts {
            let most = found.counts.entry(name).or_default();
            *most = count.max(*most);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An island that spends its search budget, then its local-search budget.
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
        // More threads than the pool has must not extend the time.
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
    fn invalid_parameters_are_rejected() {
        let message = |evaluations, seconds, islands| {
            Budget::new(evaluations, seconds, islands).unwrap_err().to_string()
        };
        assert_eq!(message(None, None, 0), "`islands` = 0 is out of range");
        assert_eq!(message(None, None, 5000), "`islands` = 5000 is out of range");
        assert_eq!(message(Some(0), None, 1), "`evaluations` = 0 is out of range");
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(
                message(None, Some(seconds), 1),
                format!("`time_limit_s` = {seconds} is out of range")
            );
        }
    }
}
