//! `map/hierarchical`: recursive multisection of the ranks along the machine tree.
//!
//! # Algorithm
//!
//! The communication graph is cut into as many parts as a tree node has children, each with as many ranks as
//! the child has slots; the parts are cut in the same way, down to single slots
//! (`hierarchical/multisection.rs`). If there are fewer ranks than slots, isolated vertices are added.
//! `core/partition` cuts: heavy-edge coarsening, recursive bisection of the coarsest graph, then pairwise
//! Fiduccia–Mattheyses refinement from the boundaries in parallel. Vertices move along cheapest paths until
//! part sizes are exact, and V-cycles follow within a work limit counted in edges. More than 64 parts are cut
//! in two rounds (`multilevel.rs`), because every pair of a few dozen large parts can be refined, but not
//! every pair of a thousand small ones. Further candidates are boxes, if the ranks form a grid
//! (`hierarchical/grid.rs`), and the linear mapping. A short local search improves the cheapest candidate by
//! exchanges between groups of different levels, which partitions do not consider. From 512 ranks, `map/auto`
//! anneals from this mapping.

mod grid;
mod multisection;

pub(crate) use multisection::METIS;

use std::time::{Duration, Instant};

use hopmap_islands::{Budget, Meter, Progress, TimePlan};
use hopmap_model::{Context, ConvergencePoint, Error};
use hopmap_objective::{Assignment, Problem};
use hopmap_partition::Effort;

use crate::error::MapError;
use crate::mapper::{Mapper, SearchResult, is_flat};
use crate::moves::descend;
use crate::params::{HierarchicalParams, LevelChoice, Partitioner};
use crate::plan::{HIERARCHICAL, LOCAL_SEARCH, PARTITIONS};
use grid::Grid;
use multisection::{Multisection, Tree};

/// Expected time of the construction per rank, on two cores.
const CONSTRUCTION: Duration = Duration::from_micros(15);
/// Default evaluations of local search per rank: it exchanges groups of different levels, which partitions
/// treat one by one.
const DESCENT_SHORT: u64 = 32;
/// Maximum ranks counted for it: local search runs on one thread.
const DESCENT_RANKS: usize = 1 << 12;
/// Evaluations of local search if the partition did not consider the objective or the constraints.
const DESCENT_EVALUATIONS: u64 = 1 << 21;

/// Recursive multisection (`HierarchicalMap`): cuts the graph of the ranks along the machine tree into parts
/// of exact sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Hierarchical {
    params: HierarchicalParams,
    partition_only: bool,
    effort: Effort,
}

impl Hierarchical {
    /// Checks the parameters.
    pub fn new(params: &HierarchicalParams) -> Result<Self, Error> {
        let HierarchicalParams { levels, evaluations, time_limit_s, .. } = params;
        params.partitioner.check()?;
        if let LevelChoice::Listed(levels) = levels {
            if levels.is_empty() {
                let help = "set `levels = \"all\"` or a list such as `[1, 2]`, or use `map/linear`";
                return Err(MapError::new("the list of levels is empty", help).into());
            }
            if levels.contains(&0) {
                let problem = "level 0 does not exist: levels are counted from the root, which is level 1";
                let help = "set `levels = \"all\"` or a list such as `[1]` or `[1, 2]`";
                return Err(MapError::new(problem, help).into());
            }
        }
        Budget::new(*evaluations, *time_limit_s, 1)?;
        let partition_only = params.partition_only.unwrap_or(*levels != LevelChoice::All);
        Ok(Self { params: params.clone(), partition_only, effort: Effort::default() })
    }

    /// Sets the effort of the partitioner.
    #[must_use]
    pub fn with_effort(self, effort: Effort) -> Self {
        Self { effort, ..self }
    }

    fn check_levels(&self, problem: &Problem) -> Result<(), MapError> {
        let levels = problem.distance().levels() - problem.distance().first_shared_level();
        let LevelChoice::Listed(listed) = &self.params.levels else { return Ok(()) };
        match listed.iter().find(|&&level| level as usize > levels) {
            Some(&level) => Err(MapError::new(
                format!("level {level} does not exist: the machine has {levels} levels with different costs"),
                "levels are counted from the root; adjacent levels with equal costs count once",
            )),
            None => Ok(()),
        }
    }
}

impl Mapper for Hierarchical {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult, Error> {
        let (begin, mut plan) = (Instant::now(), TimePlan::begin(HIERARCHICAL));
        if !problem.distance().is_tree() {
            let problem = "the machine is not a tree: its costs are a matrix";
            let help = "use `map/auto`, which supports any costs, or a machine with levels";
            return Err(MapError::new(problem, help).into());
        }
        self.check_levels(problem)?;
        if is_flat(problem) {
            return Ok(SearchResult::at_once(problem.linear()));
        }
        let tree = Tree::new(problem);
        let is_hurried = self.is_too_late(problem, begin, cx);
        let mut best = Incumbent::nothing();
        if is_hurried || !self.partition_only {
            best.offer(problem, "rank order", problem.linear());
            if self.params.levels == LevelChoice::All && self.params.partitioner == Partitioner::Own {
                let boxes = Grid::recognise(problem).and_then(|grid| grid.place(problem, &tree));
                boxes.into_iter().for_each(|slots| best.offer(problem, "boxes of a grid", slots));
            }
        }
        if is_hurried {
            let ranks = problem.ranks();
            cx.log(format!(
                "not enough time to partition {ranks} ranks: using the best of the quick starting points"
            ));
        } else {
            best.offer(problem, PARTITION, self.multisection(0).place(problem, &tree)?);
        }
        if let Some(seconds) = self.params.time_limit_s {
            self.begin_again(problem, &tree, begin, seconds, &mut best, cx)?;
        }
        cx.log(format_args!("the best start is {}", best.name));
        plan.ended(&PARTITIONS);
        let found = self.refine(problem, &best.slots, begin, cx)?;
        plan.ended(&LOCAL_SEARCH);
        // A result cut short by the time limit is complete; one cut short by a deadline is partial.
        let is_cut_short = is_hurried && self.params.time_limit_s.is_none();
        let phases = plan.words(self.end(begin).map(|end| end - begin));
        Ok(SearchResult { complete: found.complete && !is_cut_short, phases, ..found })
    }
}

const PARTITION: &str = "the partition";

/// The best mapping so far and its name.
struct Incumbent {
    name: &'static str,
    cost: i64,
    slots: Vec<u32>,
}

impl Incumbent {
    fn nothing() -> Self {
        Self { name: "", cost: i64::MAX, slots: Vec::new() }
    }

    /// Keeps a mapping, repaired to satisfy the constraints, if it is better.
    fn offer(&mut self, problem: &Problem, name: &'static str, slots: Vec<u32>) {
        let slots = problem.admit(slots);
        let cost = problem.cost(&slots);
        if cost < self.cost || self.slots.is_empty() {
            *self = Self { name, cost, slots };
        }
    }
}

impl Hierarchical {
    /// Expected time of the construction.
    pub(crate) fn time_for(problem: &Problem) -> Duration {
        CONSTRUCTION * problem.ranks() as u32
    }

    /// End of the time limit, if any.
    fn end(&self, begin: Instant) -> Option<Instant> {
        let time = self.params.time_limit_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        begin.checked_add(time?)
    }

    /// Whether the deadline or the time limit leaves no time for the construction.
    fn is_too_late(&self, problem: &Problem, begin: Instant, cx: &Context<'_>) -> bool {
        let needed = Self::time_for(problem);
        let end = self.end(begin);
        let now = Instant::now();
        cx.should_stop() || [end, cx.deadline()].into_iter().flatten().any(|end| end < now + needed)
    }

    /// Runs the construction, the first one or a further one.
    fn multisection(&self, turn: u32) -> Multisection<'_> {
        // Every other attempt doubles the cycles: longer runs find better partitions.
        let more = 1 << (turn / 2).min(10);
        let effort = self.effort;
        let cycles = effort.cycles.saturating_mul(more);
        let work = effort.work.saturating_mul(more);
        Multisection {
            levels: &self.params.levels,
            other_levels: self.params.other_levels,
            partitioner: self.params.partitioner,
            effort: Effort { cycles, work, ..effort },
            seed: self.params.seed.wrapping_add(u64::from(turn) << 48),
        }
    }

    /// Repeats the construction with more effort while the next attempt is expected to fit.
    fn begin_again(
        &self,
        problem: &Problem,
        tree: &Tree,
        begin: Instant,
        seconds: f64,
        best: &mut Incumbent,
        cx: &Context<'_>,
    ) -> Result<(), MapError> {
        let mut last = begin.elapsed().as_secs_f64();
        for turn in 1.. {
            let before = begin.elapsed().as_secs_f64();
            if cx.should_stop() || before + 2.5 * last > PARTITIONS.share * seconds {
                break;
            }
            best.offer(problem, PARTITION, self.multisection(turn).place(problem, tree)?);
            last = begin.elapsed().as_secs_f64() - before;
        }
        Ok(())
    }

    /// Runs local search; a long one only with an explicit budget or if the partition ignored part of the
    /// problem.
    fn refine(
        &self,
        problem: &Problem,
        slots: &[u32],
        begin: Instant,
        cx: &Context<'_>,
    ) -> Result<SearchResult, Error> {
        let knew_all = problem.is_quadratic() && !problem.is_constrained();
        let limit = match (self.params.evaluations, self.params.time_limit_s) {
            (Some(evaluations), _) => evaluations,
            (None, Some(_)) => u64::MAX,
            (None, None) if self.partition_only => return Ok(SearchResult::at_once(slots.to_vec())),
            (None, None) if knew_all => DESCENT_SHORT * problem.ranks().min(DESCENT_RANKS) as u64,
            (None, None) => DESCENT_EVALUATIONS,
        };
        let deadline = self.end(begin);
        let progress = Progress::new(Some(limit));
        let mut meter = Meter::new(limit, [deadline; 2], *cx, &progress);
        let mut assignment = Assignment::new(problem, slots)?;
        let before = assignment.cost();
        descend(&mut assignment, || meter.take());
        let point = |evaluations, cost| ConvergencePoint { island: 0, evaluations, cost: problem.real(cost) };
        let mut convergence = vec![point(0, before)];
        if assignment.cost() < before {
            convergence.push(point(meter.spent(), assignment.cost()));
        }
        let found = SearchResult::at_once(assignment.slots().to_vec());
        Ok(SearchResult { evaluations: meter.spent(), convergence, complete: !meter.interrupted(), ..found })
    }
}
