//! `schedule/exact` for tasks that may run anywhere: depth-first branch and bound over all schedules that could be better than
//! the incumbent.

mod state;
#[cfg(test)]
mod tests;
mod windows;

use std::time::{Duration, Instant};

use hopmap_islands::Point;
use hopmap_model::{Context, Error, require, require_above_zero};

use self::state::{Fixed, State, Step, is_small};
use self::windows::{NEVER, Windows, has_room};
use crate::bounds::lower_bound;
use crate::list;
use crate::params::ExactParams;
use crate::plan::{Evaluator, Plan, Scheduler, SearchResult};
use crate::problem::Problem;

/// Default limit of states.
const DEFAULT_NODES: u64 = 20_000_000;
/// States of the first round.
const FIRST_ROUND: u64 = 2000;
/// Growth factor of the states of a round.
const GROWTH: u64 = 4;
/// Maximum number of cached states.
const REMEMBERED: u64 = 1 << 20;

/// Branch and bound.
impl Scheduler for ExactParams {
    fn check(&self) -> Result<(), Error> {
        require_above_zero("max_search_nodes", self.max_search_nodes)?;
        let limit = self.time_limit_s.unwrap_or(1.0);
        Ok(require(limit > 0.0 && limit < 1e9, "time_limit_s", limit, "above 0 and below 1e9")?)
    }

    fn schedule(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult<Plan>, Error> {
        self.check()?;
        let started = Instant::now();
        let tried = list::all(problem);
        let mut evaluator = Evaluator::new(problem);
        let best = tried.into_iter().map(|(_, plan)| plan).min_by_key(|plan| evaluator.makespan(plan));
        let best = best.unwrap_or_else(|| Plan::serial(problem, 0));
        if !is_small(problem) {
            cx.log("the problem is too large for branch and bound: the result is only a lower bound");
        }
        let time = self.time_limit_s.map(Duration::from_secs_f64);
        let default = if time.is_some() { u64::MAX } else { DEFAULT_NODES };
        let is_over = || time.is_some_and(|time| started.elapsed() >= time);
        let nodes = self.max_search_nodes.unwrap_or(default);
        let mut found = search(problem, &best, nodes, || is_over() || cx.should_stop());
        found.complete = found.is_proven() || !cx.should_stop();
        Ok(found)
    }
}

/// Searches for a better plan than the known one, or a proof that there is none, within a limit of partial schedules or until
/// stopped. [`SearchResult::complete`] is whether it was not stopped.
///
/// It makes a short search for every makespan that it tries: half-way between the incumbent and the bound, and just below the
/// incumbent. Every round has a larger limit than the one before. For problems with more than 128 tasks, or with that many on
/// more than 500 different processors, it returns only a bound.
///
/// The tree contains all orders in which tasks start, on any processor (exhaustive list scheduling of Sinnen 2014, *Reducing the
/// solution space of optimal task scheduling*). Duplicate states, identical processors, identical tasks and interchangeable
/// neighbours on a processor are pruned. The rest is pruned by bounds for every task on every processor: its earliest start there
/// and the remaining time after it. Tasks that cannot run in parallel are sequenced.
pub fn search(
    problem: &Problem,
    incumbent: &Plan,
    nodes: u64,
    stop: impl Fn() -> bool,
) -> SearchResult<Plan> {
    let makespan = Evaluator::new(problem).makespan(incumbent);
    let mut found = SearchResult {
        best: incumbent.clone(),
        makespan,
        lower_bound: lower_bound(problem).min(makespan),
        evaluations: 0,
        convergence: vec![Point { island: 0, evaluations: 0, cost: makespan }],
        complete: true,
    };
    if !is_small(problem) || found.is_proven() {
        return found;
    }
    let backward = problem.reversed();
    let (fixed, mirrored) = (Fixed::new(problem), backward.as_ref().map(Fixed::new));
    let mut trees = vec![Tree::new(&fixed, nodes, &stop)];
    trees.extend(mirrored.as_ref().map(|mirrored| Tree::new(mirrored, nodes, &stop)));
    // Start at the end with fewer ready tasks: with more entry than exit tasks, search the reversed problem first.
    let count = |ends: &dyn Fn(u32) -> bool| (0..problem.tasks() as u32).filter(|&task| ends(task)).count();
    let begin = count(&|task| problem.parents(task).is_empty());
    if begin > count(&|task| problem.children(task).is_empty()) {
        trees.reverse();
    }
    let mut rounds = Rounds { problem, found: &mut found, nodes, stop: &stop };
    let mut size = FIRST_ROUND;
    while trees.iter_mut().all(|tree| rounds.round(tree, size)) {
        size = size.saturating_mul(GROWTH);
    }
    found.complete = found.is_proven() || !stop();
    found
}

/// Iteratively longer searches.
struct Rounds<'r, 'p, S> {
    problem: &'p Problem,
    found: &'r mut SearchResult<Plan>,
    nodes: u64,
    stop: &'r S,
}

impl<S: Fn() -> bool> Rounds<'_, '_, S> {
    /// One round; returns whether another is useful.
    fn round(&mut self, tree: &mut Tree<'_, '_, &S>, size: u64) -> bool {
        // Half-way between bound and incumbent as long as short searches decide.
        let mut low = self.found.lower_bound;
        while low < self.found.makespan - 1 && !self.is_over() {
            let middle = low + (self.found.makespan - 1 - low) / 2;
            low =
                if self.try_limit(tree, middle, size) { self.found.lower_bound.max(low) } else { middle + 1 };
        }
        while !self.is_over() && self.try_limit(tree, self.found.makespan - 1, size) {}
        !self.is_over()
    }

    fn is_over(&self) -> bool {
        self.found.is_proven() || self.found.evaluations >= self.nodes || (self.stop)()
    }

    /// Searches for a schedule within a limit; returns whether the question is decided.
    fn try_limit(&mut self, tree: &mut Tree<'_, '_, &S>, limit: i64, size: u64) -> bool {
        let left = self.nodes.saturating_sub(self.found.evaluations);
        let before = tree.nodes;
        let end = tree.search(limit, size.min(left));
        self.found.evaluations += tree.nodes - before;
        let better = tree.best.take();
        let is_better = better.is_some();
        if let Some((makespan, plan)) = better {
            let problem = tree.fixed.problem;
            // A solution of the reversed problem is reversed again.
            let plan = if std::ptr::eq(problem, self.problem) { plan } else { plan.reversed(problem) };
            let makespan = Evaluator::new(self.problem).makespan(&plan).min(makespan);
            (self.found.makespan, self.found.best) = (makespan, plan);
            let point = Point { island: 0, evaluations: self.found.evaluations, cost: makespan };
            self.found.convergence.push(point);
        }
        if end == End::Complete {
            // Nothing is better than the incumbent, or the limit is infeasible.
            let proven = if is_better { self.found.makespan } else { limit + 1 };
            self.found.lower_bound = self.found.lower_bound.max(proven);
        }
        is_better || end == End::Complete
    }
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The search was exhaustive.
    Complete,
    /// It was stopped, or reached the state limit.
    Stopped,
}

/// A search tree.
struct Tree<'f, 'p, S> {
    fixed: &'f Fixed<'p>,
    state: State,
    /// Windows by number of scheduled tasks.
    windows: Vec<Windows>,
    /// Half of the hash of a state, at an index from the other half.
    seen: Vec<u64>,
    /// Size of the table: a power of two.
    remembered: usize,
    /// Distinguishes states of different searches.
    epoch: u128,
    /// Limit of the makespan.
    limit: i64,
    best: Option<(i64, Plan)>,
    nodes: u64,
    most: u64,
    stop: S,
    children: Vec<Step>,
}

impl<'f, 'p, S: Fn() -> bool> Tree<'f, 'p, S> {
    /// The tree of a problem with a state limit.
    fn new(fixed: &'f Fixed<'p>, nodes: u64, stop: S) -> Self {
        let remembered = nodes.min(REMEMBERED).next_power_of_two();
        Self {
            fixed,
            state: State::new(fixed),
            windows: vec![Windows::new(fixed); fixed.tasks + 1],
            remembered: remembered as usize,
            seen: Vec::new(),
            epoch: 0,
            limit: 0,
            best: None,
            nodes: 0,
            most: 0,
            stop,
            children: Vec::new(),
        }
    }

    /// Searches for schedules within a limit, and for ever better ones, within a state limit.
    fn search(&mut self, limit: i64, nodes: u64) -> End {
        self.seen.resize(self.remembered, 0);
        self.epoch = self.epoch.wrapping_add(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        self.limit = limit;
        self.most = self.nodes.saturating_add(nodes);
        self.children.clear();
        let end = self.branch(0);
        while !self.state.steps.is_empty() {
            self.state.take_back(self.fixed);
        }
        end
    }

    fn branch(&mut self, depth: usize) -> End {
        if depth == self.fixed.tasks {
            let used = self.state.free.iter().zip(&self.state.last).filter(|(_, last)| last.is_some());
            let makespan = used.map(|(free, _)| *free).max().unwrap_or(0);
            self.best = Some((makespan, self.state.plan()));
            self.limit = makespan - 1;
            return End::Complete;
        }
        if self.nodes >= self.most || (self.nodes.is_multiple_of(256) && (self.stop)()) {
            return End::Stopped;
        }
        self.nodes += 1;
        let key = self.state.key(self.fixed).wrapping_add(self.epoch);
        let slot = key as usize & (self.remembered - 1);
        let half = (key >> 64) as u64;
        if self.seen[slot] == half || !self.may_end(depth) {
            return End::Complete;
        }
        let first = self.children.len();
        self.list_children(depth);
        let mut end = End::Complete;
        for at in first..self.children.len() {
            let step = self.children[at];
            let task = step.task as usize;
            // The limit may have decreased since.
            let tail = self.windows[depth].tail[task * self.fixed.processors + step.processor];
            if step.start + step.takes + tail > self.limit {
                continue;
            }
            self.state.put(self.fixed, step);
            end = self.branch(depth + 1);
            self.state.take_back(self.fixed);
            if end == End::Stopped {
                break;
            }
        }
        self.children.truncate(first);
        if end == End::Complete {
            self.seen[slot] = half;
        }
        end
    }

    /// Whether the state may finish within the limit.
    fn may_end(&mut self, depth: usize) -> bool {
        let (before, after) = self.windows.split_at_mut(depth);
        let windows = &mut after[0];
        if let Some(before) = before.last() {
            windows.tail.copy_from_slice(&before.tail);
            let opened = self.state.steps.last().is_some_and(|(_, _, last)| last.is_none());
            if self.fixed.alike && opened && self.state.used < self.fixed.processors {
                // The value of one empty processor holds for all of them.
                windows.split(self.fixed, self.state.used);
            }
        } else {
            *windows = Windows::new(self.fixed);
        }
        windows.narrow(self.fixed, &self.state, self.limit)
            && has_room(self.fixed, &self.state, windows, self.limit)
    }

    /// The possible next tasks and processors, ordered by earliest start and then by remaining time.
    fn list_children(&mut self, depth: usize) {
        let (fixed, state, windows) = (self.fixed, &self.state, &self.windows[depth]);
        let first = self.children.len();
        let columns = state.columns(fixed);
        if let Some(next) = state.next_in_row(fixed) {
            let steps = (0..columns).map(|processor| state.step(fixed, next, processor));
            self.children.extend(steps);
            self.children[first..].sort_unstable_by_key(|step| (step.start + step.takes, step.processor));
            return;
        }
        let ready = (0..fixed.tasks).filter(|&task| !state.is_done(task) && state.waits[task] == 0);
        for task in ready {
            if fixed.twin[task].is_some_and(|twin| !state.is_done(twin as usize)) {
                continue;
            }
            let soonest = (0..columns).min_by_key(|&processor| state.free[processor]);
            let processors = if fixed.silent { soonest.map_or(0..0, |one| one..one + 1) } else { 0..columns };
            for processor in processors {
                if windows.finish[task * fixed.processors + processor] == NEVER {
                    continue;
                }
                let step = state.step(fixed, task as u32, processor);
                if step.turn(fixed) > state.began && !self.can_come_before_last(&step) {
                    self.children.push(step);
                }
            }
        }
        let urgency = |step: &Step| {
            let row = step.task as usize * fixed.processors;
            (step.start, -(step.takes + windows.tail[row + step.processor]), step.task, step.processor)
        };
        self.children[first..].sort_unstable_by_key(urgency);
    }

    /// Whether a task could be swapped with the last one of its processor and precedes it by remaining time. Then this branch is
    /// dominated.
    fn can_come_before_last(&self, step: &Step) -> bool {
        let fixed = self.fixed;
        let Some(last) = self.state.last[step.processor].as_ref().filter(|_| fixed.row.is_none()) else {
            return false;
        };
        let (one, other) = (last.task as usize, step.task as usize);
        // A task without duration may share its start with others.
        if last.takes == 0 || step.takes == 0 {
            return false;
        }
        if fixed.yields[one] >> other & 1 == 0 || fixed.rank[other] > fixed.rank[one] {
            return false;
        }
        if fixed.relaxed.children[one].iter().any(|child| child.task == step.task) {
            return false;
        }
        let changed = last.free.max(step.ready) + step.takes;
        changed.max(last.ready) + last.takes <= step.start + step.takes
    }
}
