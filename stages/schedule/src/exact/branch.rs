//! Depth first through all schedules that could be better than the best.

use super::room::has_room;
use super::state::{Fixed, State, Step};
use super::windows::{NEVER, Windows};
use crate::{Plan, Problem};

/// Most states that are remembered.
const REMEMBERED: u64 = 1 << 20;

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It looked at everything.
    Complete,
    /// It was told to stop, or saw as many states as it might.
    Stopped,
}

/// A search tree.
pub(super) struct Tree<'f, 'p, S> {
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
    pub(super) best: Option<(i64, Plan)>,
    pub(super) nodes: u64,
    most: u64,
    stop: S,
    children: Vec<Step>,
}

impl<'f, 'p, S: Fn() -> bool> Tree<'f, 'p, S> {
    /// The tree of a problem, in which so many states will be looked at at most.
    pub(super) fn new(fixed: &'f Fixed<'p>, nodes: u64, stop: S) -> Self {
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
    pub(super) fn search(&mut self, limit: i64, nodes: u64) -> End {
        self.seen.resize(self.remembered, 0);
        self.epoch = self.epoch.wrapping_add(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        self.limit = limit;
        self.most = self.nodes.saturating_add(nodes);
        self.children.clear();
        let end = self.go(0);
        while !self.state.steps.is_empty() {
            self.state.take_back(self.fixed);
        }
        end
    }

    /// Its problem.
    pub(super) fn problem(&self) -> &'p Problem {
        self.fixed.problem
    }

    /// Whether it is the tree of a problem, and not of the reversed one.
    pub(super) fn is_of(&self, problem: &Problem) -> bool {
        std::ptr::eq(self.fixed.problem, problem)
    }

    fn go(&mut self, depth: usize) -> End {
        if depth == self.fixed.tasks {
            let makespan = self.state.free.iter().copied().zip(&self.state.last);
            let makespan =
                makespan.filter(|(_, last)| last.is_some()).map(|(free, _)| free).max().unwrap_or(0);
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
            end = self.go(depth + 1);
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
                if step.turn(fixed) > state.began && !self.yields(&step) {
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
    fn yields(&self, step: &Step) -> bool {
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
