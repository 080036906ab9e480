//! What every mapping algorithm is, what it finds, and how the searches of the papers begin and end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hopmap_islands::{Budget, Meter, Point, Progress, SearchError};
use hopmap_model::{Context, ConvergencePoint, Error};
use hopmap_objective::{Assignment, Problem};

use crate::descend;
use crate::moves::movable;

/// An algorithm that places the ranks of a problem.
pub trait Mapper {
    /// Places every rank on a slot of its own.
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult, Error>;
}

/// What a mapper found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// The slot of every rank.
    pub slots: Vec<u32>,
    /// Changes to a placement whose cost was computed, by all islands together.
    pub evaluations: u64,
    /// The least cost of every island over its evaluations, island by island.
    pub convergence: Vec<ConvergencePoint>,
    /// Whether the search came to its end and was not told to stop before.
    pub complete: bool,
    /// Metrics that only this mapper has, by their names.
    pub metrics: BTreeMap<String, f64>,
}

impl SearchResult {
    /// A placement that took no search.
    #[must_use]
    pub fn at_once(slots: Vec<u32>) -> Self {
        Self { slots, evaluations: 0, convergence: Vec::new(), complete: true, metrics: BTreeMap::new() }
    }

    /// What islands found, in the units of the problem.
    pub(crate) fn of_islands(found: hopmap_islands::SearchResult<Vec<u32>>, problem: &Problem) -> Self {
        let point = |point: Point| ConvergencePoint {
            island: point.island,
            evaluations: point.evaluations,
            cost: problem.real(point.cost),
        };
        Self {
            slots: found.best.solution,
            evaluations: found.evaluations,
            convergence: found.convergence.into_iter().map(point).collect(),
            complete: found.complete,
            metrics: found.counts.into_iter().map(|(name, count)| (name, count as f64)).collect(),
        }
    }
}

/// Part of a budget in seconds that is left to the descent.
const DESCENT_SHARE: f64 = 0.1;
/// Most evaluations of the descent.
const DESCENT_EVALUATIONS: u64 = 1 << 22;

/// Metrics of what searches do now and then: exchanges after which solvers go on, complete iterations of breeding, and children that
/// annealing accepted.
pub(crate) const EXCHANGES: &str = "exchanges";
pub(crate) const GENERATIONS: &str = "generations";
pub(crate) const ACCEPTED_CHILDREN: &str = "accepted_children";

/// What it means if none of it happened.
const NEVER: [(&str, &str); 3] = [
    (EXCHANGES, "the search ended before its first exchange (`exchange_interval`)"),
    (GENERATIONS, "the search ended before its first generation"),
    (ACCEPTED_CHILDREN, "annealing accepted no child of the islands that bred"),
];

/// Whether all placements cost the same.
pub(crate) fn is_flat(problem: &Problem) -> bool {
    problem.distance().levels() < 2 || problem.slots() < 2 || movable(problem).is_empty()
}

/// A descent of the best placement of all islands to one that no exchange improves.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FinalSearch {
    descends: bool,
    /// Whether rank order is the result where the search found nothing better.
    falls_back: bool,
    time: Option<Duration>,
}

impl FinalSearch {
    /// The ending of a search, and the budget that it leaves to it: a descent takes a tenth of a budget in seconds.
    pub(crate) fn new(
        evaluations: Option<u64>,
        time_limit_s: Option<f64>,
        islands: u32,
        [descends, falls_back]: [bool; 2],
    ) -> Result<(Self, Budget), SearchError> {
        let time = time_limit_s.and_then(|limit| Duration::try_from_secs_f64(DESCENT_SHARE * limit).ok());
        let share = if descends { 1.0 - DESCENT_SHARE } else { 1.0 };
        let budget = Budget::new(evaluations, time_limit_s.map(|limit| share * limit), islands)?;
        Ok((Self { descends, falls_back, time }, budget))
    }

    /// Descends if it should, and says what was found in the units of the problem. Every process does the same. By default, what
    /// costs more than rank order is given up for that: random starts are no match for it where there are thousands of ranks.
    pub(crate) fn finish(
        &self,
        mut found: hopmap_islands::SearchResult<Vec<u32>>,
        problem: &Problem,
        cx: &Context<'_>,
    ) -> Result<SearchResult, Error> {
        for (name, consequence) in NEVER {
            if found.counts.get(name) == Some(&0) {
                cx.log(format_args!("warning: {consequence}"));
            }
        }
        let linear = problem.linear();
        if self.falls_back && problem.cost(&linear) < found.best.cost {
            note(&mut found, problem.cost(&linear), 0);
            found.best.solution = linear;
        }
        if self.descends && found.complete {
            let progress = Progress::new(None);
            let deadline = self.time.and_then(|time| Instant::now().checked_add(time));
            let mut meter = Meter::new(DESCENT_EVALUATIONS, [deadline; 2], *cx, &progress);
            let mut assignment = Assignment::new(problem, &found.best.solution)?;
            descend(&mut assignment, || meter.take());
            found.evaluations += meter.spent();
            if assignment.cost() < found.best.cost {
                note(&mut found, assignment.cost(), meter.spent());
                found.best.solution.copy_from_slice(assignment.slots());
            }
            found.complete &= !meter.interrupted();
        }
        Ok(SearchResult::of_islands(found, problem))
    }
}

/// Notes a better cost on the island whose placement it came from.
fn note(found: &mut hopmap_islands::SearchResult<Vec<u32>>, cost: i64, evaluations: u64) {
    if let Some(at) = found.convergence.iter().position(|point| point.cost == found.best.cost) {
        let before = found.convergence[at];
        let point = Point { cost, evaluations: before.evaluations + evaluations, ..before };
        found.convergence.insert(at + 1, point);
    }
    found.best.cost = cost;
}
