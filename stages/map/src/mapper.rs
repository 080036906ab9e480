//! The `Mapper` trait, its result, and the final steps that searches share.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hopmap_islands::{Budget, DESCENT, Meter, Point, Progress, TimePlan};
use hopmap_model::{Context, ConvergencePoint, Error, OutOfRange};
use hopmap_objective::{Assignment, Problem};

use crate::moves::{descend, movable};
use crate::plan::FINAL_SEARCH;

/// A mapping algorithm.
pub trait Mapper {
    /// Assigns every rank a distinct slot.
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult, Error>;

    /// Whether it minimises the objective.
    fn is_search(&self) -> bool {
        true
    }
}

/// Result of a mapper.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// The slot of every rank.
    pub slots: Vec<u32>,
    /// Evaluated exchanges of all islands.
    pub evaluations: u64,
    /// Best cost of every island over its evaluations, island by island.
    pub convergence: Vec<ConvergencePoint>,
    /// Whether the search finished without being stopped.
    pub complete: bool,
    /// Metrics specific to this mapper, by name.
    pub metrics: BTreeMap<String, f64>,
    /// What its phases may take of a time limit, and took.
    pub phases: Option<String>,
}

impl SearchResult {
    /// A mapping found without search.
    #[must_use]
    pub fn at_once(slots: Vec<u32>) -> Self {
        let (convergence, metrics) = (Vec::new(), BTreeMap::new());
        Self { slots, evaluations: 0, convergence, complete: true, metrics, phases: None }
    }

    /// Converts the result of islands to the units of the problem.
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
            phases: None,
        }
    }
}

/// Metrics of rare events: exchanges after which solvers continue, complete generations, and children that
/// annealing accepted.
pub(crate) const EXCHANGES: &str = "exchanges";
pub(crate) const GENERATIONS: &str = "generations";
pub(crate) const ACCEPTED_CHILDREN: &str = "accepted_children";

/// Warnings if a counter is zero.
const NEVER: [(&str, &str); 3] = [
    (EXCHANGES, "the search ended before its first exchange (`exchange_interval`)"),
    (GENERATIONS, "the search ended before its first generation"),
    (ACCEPTED_CHILDREN, "annealing accepted no child of the islands that bred"),
];

/// Whether all mappings cost the same.
pub(crate) fn is_flat(problem: &Problem) -> bool {
    problem.distance().levels() < 2 || problem.slots() < 2 || movable(problem).is_empty()
}

/// Local search from the best mapping of all islands to a local optimum.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FinalSearch {
    descends: bool,
    /// Whether to return the linear mapping if the search found nothing better.
    falls_back: bool,
    limit: Option<Duration>,
}

impl FinalSearch {
    /// The final search and the budget of the main search.
    pub(crate) fn new(
        evaluations: Option<u64>,
        time_limit_s: Option<f64>,
        islands: u32,
        [descends, falls_back]: [bool; 2],
    ) -> Result<(Self, Budget), OutOfRange> {
        let budget = Budget::new(evaluations, time_limit_s, islands)?;
        let (limit, time) = (budget.time(), budget.part(&DESCENT).time().filter(|_| descends));
        Ok((Self { descends, falls_back, limit }, budget.after(0, time.unwrap_or_default())))
    }

    /// Runs the final local search if requested and converts the result to the units of the problem. All
    /// processes compute the same. By default a result worse than the linear mapping is replaced by it:
    /// random starts rarely beat it with thousands of ranks.
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
            let deadline =
                self.limit.and_then(|limit| Instant::now().checked_add(limit.mul_f64(DESCENT.share)));
            let mut meter = Meter::new(DESCENT.most, [deadline; 2], *cx, &progress);
            let mut assignment = Assignment::new(problem, &found.best.solution)?;
            descend(&mut assignment, || meter.take());
            found.evaluations += meter.spent();
            if assignment.cost() < found.best.cost {
                note(&mut found, assignment.cost(), meter.spent());
                found.best.solution.copy_from_slice(assignment.slots());
            }
            found.complete &= !meter.interrupted();
        }
        let phases = TimePlan::begin(FINAL_SEARCH).words(self.limit);
        Ok(SearchResult { phases, ..SearchResult::of_islands(found, problem) })
    }
}

/// Records a better cost for the island that found the mapping.
fn note(found: &mut hopmap_islands::SearchResult<Vec<u32>>, cost: i64, evaluations: u64) {
    if let Some(at) = found.convergence.iter().position(|point| point.cost == found.best.cost) {
        let before = found.convergence[at];
        let point = Point { cost, evaluations: before.evaluations + evaluations, ..before };
        found.convergence.insert(at + 1, point);
    }
    found.best.cost = cost;
}
