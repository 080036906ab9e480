//! Partition of the ranks down the tree of the machine.
//!
//! # Algorithm
//!
//! The ranks' graph is cut into as many parts as a node of the tree has children, of exactly as many ranks as these have slots, and so
//! are the parts, down to the slots (`hierarchical/multisection.rs`). Fewer ranks than slots are filled up with vertices without edges.
//! `core/partition` cuts: contraction by heavy edges, recursive bisection of the smallest graph, then pairs of parts refined side by side by
//! Fiduccia and Mattheyses' moves from their boundaries, with vertices moved on cheapest ways until sizes are exact, and cycles of contraction
//! inside the parts, as long as a budget of work, counted in edges, lasts. More than 64 parts are cut in two rounds (`multilevel.rs`): every pair
//! of a few dozen large parts can be refined, which of a thousand small ones it cannot. Boxes of a grid, where ranks are one
//! (`hierarchical/grid.rs`), and rank order stand beside the partition; the cheapest of them then descends for a moment, since exchanges between groups of
//! different levels are what partitions do not know. `map/auto` anneals from there where there are 512 ranks and more.

mod grid;
mod multisection;

pub(crate) use multisection::METIS;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hopmap_islands::{Budget, Meter, Progress};
use hopmap_model::{Context, ConvergencePoint, Error};
use hopmap_objective::{Assignment, Problem};
use hopmap_partition::Effort;

use crate::MapError;
use crate::mapper::is_flat;
use crate::{HierarchicalParams, LevelChoice, Mapper, Partitioner, SearchResult, descend};
use grid::Grid;
use multisection::{Multisection, Tree};

/// Part of a budget in seconds that is left to the descent.
const DESCENT_SHARE: f64 = 0.2;
/// What the construction takes for every rank, on two cores.
const CONSTRUCTION: Duration = Duration::from_micros(15);
/// Evaluations of the descent for every rank where no budget says how many: groups of different levels are exchanged for each other,
/// which partitions do one by one.
const DESCENT_SHORT: u64 = 32;
/// Ranks that count for that at most: the descent is one thread's work.
const DESCENT_RANKS: usize = 1 << 12;
/// All evaluations of the descent where the partition knew neither the objective nor the constraints.
const DESCENT_EVALUATIONS: u64 = 1 << 21;

/// Recursive multisection (`HierarchicalMap`: the graph of the ranks is cut into as many parts as a node of the machine has children, of
/// exactly their sizes, and so are the parts, down to the slots).
#[derive(Debug, Clone, PartialEq)]
pub struct Hierarchical {
    params: HierarchicalParams,
    partition_only: bool,
    effort: Effort,
}

impl Hierarchical {
    /// Checks the parameters.
    pub fn new(params: &HierarchicalParams) -> Result<Self, MapError> {
        let HierarchicalParams { levels, evaluations, time_limit_s, .. } = params;
        params.partitioner.check()?;
        if let LevelChoice::Listed(levels) = levels {
            if levels.is_empty() {
                let help = "give `levels = \"all\"`, a list such as `[1, 2]`, or use `map/linear`";
                return Err(MapError::new("the list of levels is empty", help));
            }
            if levels.contains(&0) {
                let problem = "level 0 is none: levels are counted from the root, which is 1";
                return Err(MapError::new(
                    problem,
                    "give `levels = \"all\"`, or a list such as `[1]` or `[1, 2]`",
                ));
            }
        }
        Budget::new(*evaluations, *time_limit_s, 1)?;
        let partition_only = params.partition_only.unwrap_or(*levels != LevelChoice::All);
        Ok(Self { params: params.clone(), partition_only, effort: Effort::default() })
    }

    /// The same with another effort of the partitioner.
    #[must_use]
    pub fn with_effort(self, effort: Effort) -> Self {
        Self { effort, ..self }
    }

    fn check_levels(&self, problem: &Problem) -> Result<(), MapError> {
        let levels = problem.distance().levels();
        let LevelChoice::Listed(listed) = &self.params.levels else { return Ok(()) };
        match listed.iter().find(|&&level| level as usize > levels) {
            Some(&level) => Err(MapError::new(
                format!("there is no level {level}: the machine has {levels} levels on which slots meet"),
                "levels are counted from the root; those on which the costs do not change are left out",
            )),
            None => Ok(()),
        }
    }
}

impl Mapper for Hierarchical {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult, Error> {
        let begin = Instant::now();
        if !problem.distance().is_tree() {
            let problem = "the machine is no tree: its costs are given pair by pair";
            let help = "use `map/auto`, which takes any costs, or a machine with levels";
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
                "there is no time to cut {ranks} ranks into parts: takes the best of what is quick"
            ));
        } else {
            best.offer(problem, PARTITION, self.multisection(0).place(problem, &tree)?);
        }
        if let Some(seconds) = self.params.time_limit_s {
            self.begin_again(problem, &tree, begin, seconds, &mut best, cx)?;
        }
        cx.log(format_args!("the best start is {}", best.name));
        let found = self.refine(problem, &best.slots, begin, cx)?;
        // What a budget of seconds leaves out belongs to its result; what a deadline leaves out does not.
        let is_cut_short = is_hurried && self.params.time_limit_s.is_none();
        Ok(SearchResult { complete: found.complete && !is_cut_short, ..found })
    }
}

const PARTITION: &str = "the partition";

/// The best placement so far, and what it is.
struct Incumbent {
    name: &'static str,
    cost: i64,
    slots: Vec<u32>,
}

impl Incumbent {
    fn nothing() -> Self {
        Self { name: "", cost: i64::MAX, slots: Vec::new() }
    }

    /// Takes a placement if it is better, or what comes closest to it of those that constraints admit.
    fn offer(&mut self, problem: &Problem, name: &'static str, slots: Vec<u32>) {
        let slots = problem.admit(slots);
        let cost = problem.cost(&slots);
        if cost < self.cost || self.slots.is_empty() {
            *self = Self { name, cost, slots };
        }
    }
}

impl Hierarchical {
    /// What the construction is likely to take.
    pub(crate) fn time_for(problem: &Problem) -> Duration {
        CONSTRUCTION * problem.ranks() as u32
    }

    /// When the budget of seconds ends, if there is one.
    fn end(&self, begin: Instant) -> Option<Instant> {
        let time = self.params.time_limit_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        begin.checked_add(time?)
    }

    /// Whether the deadline, or the budget of seconds, leaves no time for the construction.
    fn is_too_late(&self, problem: &Problem, begin: Instant, cx: &Context<'_>) -> bool {
        let needed = Self::time_for(problem);
        let end = self.end(begin);
        let now = Instant::now();
        cx.should_stop() || [end, cx.deadline()].into_iter().flatten().any(|end| end < now + needed)
    }

    /// The construction, the first one or another.
    fn multisection(&self, turn: u32) -> Multisection<'_> {
        // Every other turn has twice the cycles: what takes longest finds most.
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

    /// Constructs again, with more effort, for as long as the next time is likely to fit.
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
            if cx.should_stop() || before + 2.5 * last > (1.0 - DESCENT_SHARE) * seconds {
                break;
            }
            best.offer(problem, PARTITION, self.multisection(turn).place(problem, tree)?);
            last = begin.elapsed().as_secs_f64() - before;
        }
        Ok(())
    }

    /// Descends; far only where a budget says so or the partition knew less than the problem does.
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
        Ok(SearchResult {
            slots: assignment.slots().to_vec(),
            evaluations: meter.spent(),
            convergence,
            complete: !meter.interrupted(),
            metrics: BTreeMap::new(),
        })
    }
}
