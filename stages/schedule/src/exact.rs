//! `schedule/exact` where tasks may run anywhere: branch and bound, depth first through all schedules that could be better than the best.

mod state;
#[cfg(test)]
mod tests;
mod windows;

use std::time::{Duration, Instant};

use hopmap_islands::Point;
use hopmap_model::{Context, Error};

use self::state::{Fixed, State, Step, is_small};
use self::windows::{NEVER, Windows, has_room};
use crate::bounds::lower_bound;
use crate::error::invalid;
use crate::{Evaluator, ExactParams, Plan, Problem, Scheduler, SearchResult, list};

/// States that are looked at where nobody says how many.
const DEFAULT_NODES: u64 = 20_000_000;
/// States of the first round.
const FIRST_ROUND: u64 = 2000;
/// How many times as many states the next round may see.
const GROWTH: u64 = 4;
/// Most states that are remembered.
const REMEMBERED: u64 = 1 << 20;

/// Branch and bound.
impl Scheduler for ExactParams {
    fn check(&self) -> Result<(), Error> {
        if self.max_search_nodes == Some(0) {
            return invalid("max_search_nodes is 0", "give at least 1");
        }
        match self.time_limit_s {
            Some(limit) if !(limit.is_finite() && limit > 0.0 && limit < 1e9) => {
                invalid(format!("time_limit_s is {limit}"), "give more than 0")
            }
            _ => Ok(()),
        }
    }

    fn schedule(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult<Plan>, Error> {
        self.check()?;
        let started = Instant::now();
        let tried = list::all(problem);
        let mut evaluator = Evaluator::new(problem);
        let best = tried.into_iter().map(|(_, plan)| plan).min_by_key(|plan| evaluator.makespan(plan));
        let best = best.unwrap_or_else(|| Plan::serial(problem, 0));
        if !is_small(problem) {
            cx.log("the problem is too large to be searched: there is a bound only");
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

/// Looks for a better plan than one that is known, or for the proof that there is none, through so many partial schedules at most or
/// until it is told to stop. [`SearchResult::complete`] says whether it was not told to.
///
/// It begins with a short search for every makespan that it tries: half-way between the best and the bound, and just below the best.
/// Every round may look at more than the one before. Of problems with more than 128 tasks, or that many on more than 500
/// different processors, there is only a bound.
///
/// The tree is that of all orders in which tasks begin one after the other, on any processor (exhaustive list scheduling of Sinnen
/// 2014, *Reducing the solution space of optimal task scheduling*), without states that were seen before, processors that are alike,
/// tasks that are the same, and neighbours on a processor that could as well change places. What is left is narrowed, for every
/// task on every processor, by when it could begin there and what would follow; tasks that cannot be apart in time take turns.
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
    // What waits for little is quick to begin with: where more tasks end a program than begin one, from the beginning.
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

/// Ever longer searches.
struct Rounds<'r, 'p, S> {
    problem: &'p Problem,
    found: &'r mut SearchResult<Plan>,
    nodes: u64,
    stop: &'r S,
}

impl<S: Fn() -> bool> Rounds<'_, '_, S> {
    /// One round. Whether another makes sense.
    fn round(&mut self, tree: &mut Tree<'_, '_, &S>, size: u64) -> bool {
        // Half-way between bound and best as long as short searches settle it.
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

    /// Looks for a schedule that is done by a limit, and says whether there was one or is none.
    fn try_limit(&mut self, tree: &mut Tree<'_, '_, &S>, limit: i64, size: u64) -> bool {
        let left = self.nodes.saturating_sub(self.found.evaluations);
        let before = tree.nodes;
        let end = tree.search(limit, size.min(left));
        self.found.evaluations += tree.nodes - before;
        let better = tree.best.take();
        let is_better = better.is_some();
        if let Some((makespan, plan)) = better {
            let problem = tree.fixed.problem;
            // Of the reversed problem it goes back.
            let plan = if std::ptr::eq(problem, self.problem) { plan } else { plan.reversed(problem) };
            let makespan = Evaluator::new(self.problem).makespan(&plan).min(makespan);
            (self.found.makespan, self.found.best) = (makespan, plan);
            let point = Point { island: 0, evaluations: self.found.evaluations, cost: makespan };
            self.found.convergence.push(point);
        }
        if end == End::Complete {
            // Nothing is better than what was found, or nothing is done by the limit.
            let proven = if is_better { self.found.makespan } else { limit + 1 };
            self.found.lower_bound = self.found.lower_bound.max(proven);
        }
        is_better || end == End::Complete
    }
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It looked at everything.
    Complete,
    /// It was told to stop, or saw as many states as it might.
    Stopped,
}

/// A search tree.
struct Tree<'f, 'p, S> {
    fixed: &'f Fixed<'p>,
    state: State,
    /// Windows by the number of tasks that are done.
    windows: Vec<Windows>,
    /// Half of the key of a state, at a place that the other half says.
    seen: Vec<u64>,
    /// Number of those places: a power of two.
    remembered: usize,
    /// Makes states of different searches different.
    epoch: u128,
    /// No schedule is looked for that is done later.
    limit: i64,
    best: Option<(i64, Plan)>,
    nodes: u64,
    most: u64,
    stop: S,
    children: Vec<Step>,
}

impl<'f, 'p, S: Fn() -> bool> Tree<'f, 'p, S> {
    /// The tree of a problem, in which so many states will be looked at at most.
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

    /// Looks for schedules that are done by a limit, and for ever better ones, through so many states at most.
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
            // The limit may have fallen since.
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

    /// Whether the state may end by the limit.
    fn may_end(&mut self, depth: usize) -> bool {
        let (before, after) = self.windows.split_at_mut(depth);
        let windows = &mut after[0];
        if let Some(before) = before.last() {
            windows.tail.copy_from_slice(&before.tail);
            let opened = self.state.steps.last().is_some_and(|(_, _, last)| last.is_none());
            if self.fixed.alike && opened && self.state.used < self.fixed.processors {
                // What was known of one that runs nothing is known of all of those.
                windows.split(self.fixed, self.state.used);
            }
        } else {
            *windows = Windows::new(self.fixed);
        }
        windows.narrow(self.fixed, &self.state, self.limit)
            && has_room(self.fixed, &self.state, windows, self.limit)
    }

    /// What can begin next and where, what begins first and is most urgent first.
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

    /// Whether a task could as well come before the last one of its processor and comes before it by what follows. All
    /// schedules that go on from here are no better than others then.
    fn can_come_before_last(&self, step: &Step) -> bool {
        let fixed = self.fixed;
        let Some(last) = self.state.last[step.processor].as_ref().filter(|_| fixed.row.is_none()) else {
            return false;
        };
        let (one, other) = (last.task as usize, step.task as usize);
        // What takes no time may have others at the same moment on its other side.
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
