//! A plan with its finish times, updated incrementally.

use crate::costs::Costs;
use crate::plan::Plan;

/// Maximum number of tasks that are sorted by insertion, which is fast for few or mostly sorted tasks.
const INSERTED: usize = 256;

/// A plan with all finish times. Steps change the plan; [`Timeline::commit`] then recomputes only what they affect, and reverts
/// them if the makespan is too large.
#[derive(Debug, Clone)]
pub(crate) struct Timeline<'c, C> {
    costs: &'c C,
    order: Vec<u32>,
    /// The position of every task in the order.
    place: Vec<u32>,
    on: Vec<u32>,
    /// Predecessor and successor of every task on its processor. Entry `tasks + p` is a sentinel for processor `p`: before the
    /// first and after the last of its tasks.
    before: Vec<u32>,
    after: Vec<u32>,
    /// Finish time of every task; for a processor, its availability.
    finish: Vec<i64>,
    makespan: i64,
    /// The steps so far, in sequence.
    steps: Vec<Step>,
    /// Tasks whose time may have changed because of the steps.
    touched: Vec<u32>,
    /// Previous values of changed times.
    changed: Vec<(u32, i64)>,
    /// Bit set of positions whose tasks have to be updated.
    dirty: Vec<u64>,
}

/// The place of a task before a step.
#[derive(Debug, Clone, Copy)]
enum Step {
    Transferred { task: u32, from: u32 },
    Shifted { task: u32, from: u32 },
}

impl<'c, C: Costs> Timeline<'c, C> {
    /// The timeline of a feasible plan.
    pub(crate) fn new(costs: &'c C, plan: &Plan) -> Self {
        let (tasks, processors) = (plan.order.len(), costs.problem().processors());
        let mut finish = vec![0; tasks];
        finish.extend_from_slice(costs.problem().available());
        let mut timeline = Self {
            costs,
            order: plan.order.clone(),
            place: vec![0; tasks],
            on: plan.processor.clone(),
            before: vec![0; tasks + processors],
            after: vec![0; tasks + processors],
            finish,
            makespan: 0,
            steps: Vec::new(),
            touched: Vec::new(),
            changed: Vec::new(),
            dirty: vec![0; tasks.div_ceil(64)],
        };
        timeline.rebuild();
        timeline
    }

    /// Replaces the plan.
    pub(crate) fn set(&mut self, plan: &Plan) {
        self.order.copy_from_slice(&plan.order);
        self.on.copy_from_slice(&plan.processor);
        self.rebuild();
    }

    fn rebuild(&mut self) {
        let tasks = self.order.len();
        for head in tasks..self.finish.len() {
            (self.before[head], self.after[head]) = (head as u32, head as u32);
        }
        let mut makespan = 0;
        for at in 0..tasks {
            let task = self.order[at];
            self.place[task as usize] = at as u32;
            let processor = self.on[task as usize];
            let head = tasks + processor as usize;
            let last = self.before[head];
            self.join(last, task);
            self.join(task, head as u32);
            let free = self.finish[last as usize];
            let finish = self.costs.finish(task, processor, free, &self.finish, &self.on);
            self.finish[task as usize] = finish;
            makespan = makespan.max(finish);
        }
        self.makespan = makespan;
    }

    /// The plan.
    pub(crate) fn plan(&self) -> Plan {
        Plan { order: self.order.clone(), processor: self.on.clone() }
    }

    /// The makespan.
    pub(crate) fn makespan(&self) -> i64 {
        self.makespan
    }

    pub(crate) fn tasks(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn costs(&self) -> &'c C {
        self.costs
    }

    /// The processor of a task.
    #[inline]
    pub(crate) fn on(&self, task: u32) -> u32 {
        self.on[task as usize]
    }

    /// The task at a position of the order.
    #[inline]
    pub(crate) fn at(&self, place: usize) -> u32 {
        self.order[place]
    }

    /// The position of a task in the order.
    #[inline]
    pub(crate) fn place(&self, task: u32) -> usize {
        self.place[task as usize] as usize
    }

    /// The predecessor of a task on its processor.
    #[inline]
    pub(crate) fn before(&self, task: u32) -> Option<u32> {
        let before = self.before[task as usize];
        ((before as usize) < self.order.len()).then_some(before)
    }

    /// The first and the last position that a task can take while all others keep their order.
    #[inline]
    pub(crate) fn window(&self, task: u32) -> (usize, usize) {
        let graph = self.costs.graph();
        let (mut first, mut last) = (0, self.order.len() as u32 - 1);
        for &parent in graph.parents(task) {
            first = first.max(self.place[parent as usize] + 1);
        }
        for &child in graph.children(task) {
            last = last.min(self.place[child as usize] - 1);
        }
        (first as usize, last as usize)
    }

    /// The parent of a task whose result arrives last.
    pub(crate) fn last_parent(&self, task: u32) -> Option<u32> {
        self.costs.last_parent(task, &self.finish, &self.on).map(|(parent, _)| parent)
    }

    /// The critical path, last to first.
    pub(crate) fn critical_path(&self, path: &mut Vec<u32>) {
        path.clear();
        let tasks = self.order.len();
        let lasts = self.before[tasks..].iter().copied().filter(|&last| (last as usize) < tasks);
        let mut at = lasts.max_by_key(|&last| self.finish[last as usize]);
        while let Some(task) = at {
            path.push(task);
            let free = self.finish[self.before[task as usize] as usize];
            at = match self.costs.last_parent(task, &self.finish, &self.on) {
                Some((parent, there)) if there >= free => Some(parent),
                _ => self.before(task),
            };
        }
    }

    /// Moves a task to a processor; it keeps its position in the order.
    #[inline]
    pub(crate) fn transfer(&mut self, task: u32, processor: u32) {
        let from = self.on[task as usize];
        if from != processor {
            self.steps.push(Step::Transferred { task, from });
            self.relink(task, processor);
        }
    }

    /// Moves a task to a position within its window.
    #[inline]
    pub(crate) fn shift(&mut self, task: u32, place: usize) {
        let from = self.place[task as usize];
        if from as usize != place {
            self.steps.push(Step::Shifted { task, from });
            self.rotate(task, place);
        }
    }

    fn relink(&mut self, task: u32, processor: u32) {
        self.take_out(task);
        self.on[task as usize] = processor;
        self.put_in(task);
        for &child in self.costs.graph().children(task) {
            self.touched.push(child);
        }
    }

    fn rotate(&mut self, task: u32, place: usize) {
        self.take_out(task);
        let from = self.place[task as usize] as usize;
        if from < place {
            for at in from..place {
                let other = self.order[at + 1];
                self.order[at] = other;
                self.place[other as usize] = at as u32;
            }
        } else {
            for at in (place..from).rev() {
                let other = self.order[at];
                self.order[at + 1] = other;
                self.place[other as usize] = at as u32 + 1;
            }
        }
        self.order[place] = task;
        self.place[task as usize] = place as u32;
        self.put_in(task);
    }

    fn join(&mut self, one: u32, next: u32) {
        self.after[one as usize] = next;
        self.before[next as usize] = one;
    }

    fn touch(&mut self, task: u32) {
        if (task as usize) < self.order.len() {
            self.touched.push(task);
        }
    }

    /// Removes a task from its processor.
    #[inline]
    fn take_out(&mut self, task: u32) {
        let (before, after) = (self.before[task as usize], self.after[task as usize]);
        self.join(before, after);
        self.touch(after);
    }

    /// Inserts a task into its processor by its position.
    #[inline]
    fn put_in(&mut self, task: u32) {
        let before = self.turn_before(task);
        let after = self.after[before as usize];
        self.join(before, task);
        self.join(task, after);
        self.touched.push(task);
        self.touch(after);
    }

    /// The last task on the processor of a task that precedes it in the order, or the processor sentinel.
    #[inline]
    fn turn_before(&self, task: u32) -> u32 {
        let tasks = self.order.len();
        let processor = self.on[task as usize];
        let head = tasks + processor as usize;
        let place = self.place[task as usize];
        let [first, last] = [self.after[head], self.before[head]];
        if first as usize == head || self.place[first as usize] > place {
            return head as u32;
        }
        if self.place[last as usize] < place {
            return last;
        }
        // The processor has tasks on both sides.
        let mut at = place as usize;
        while at > 0 {
            at -= 1;
            let other = self.order[at];
            if self.on[other as usize] == processor {
                return other;
            }
        }
        head as u32
    }

    /// Whether there are uncommitted steps.
    pub(crate) fn is_changed(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Recomputes the times after the steps; reverts them if the makespan exceeds a limit. Returns whether they were kept.
    pub(crate) fn commit(&mut self, limit: i64) -> bool {
        for index in 0..self.touched.len() {
            self.mark(self.touched[index]);
        }
        self.touched.clear();
        let is_within = self.sweep(limit) && {
            let makespan = self.last();
            let is_within = makespan <= limit;
            if is_within {
                self.makespan = makespan;
            }
            is_within
        };
        if is_within {
            self.steps.clear();
        } else {
            self.take_back();
        }
        self.changed.clear();
        is_within
    }

    #[inline]
    fn mark(&mut self, task: u32) {
        let place = self.place[task as usize];
        self.dirty[place as usize / 64] |= 1 << (place % 64);
    }

    /// Updates all marked positions in order; returns `false` early if a task finishes too late.
    fn sweep(&mut self, limit: i64) -> bool {
        let graph = self.costs.graph();
        for word in 0..self.dirty.len() {
            while self.dirty[word] != 0 {
                let bits = self.dirty[word];
                self.dirty[word] = bits & (bits - 1);
                let task = self.order[word * 64 + bits.trailing_zeros() as usize];
                let index = task as usize;
                let free = self.finish[self.before[index] as usize];
                let finish = self.costs.finish(task, self.on[index], free, &self.finish, &self.on);
                if finish == self.finish[index] {
                    continue;
                }
                if finish + graph.tail(task) > limit {
                    self.dirty[word..].fill(0);
                    return false;
                }
                self.changed.push((task, self.finish[index]));
                self.finish[index] = finish;
                let after = self.after[index];
                if (after as usize) < self.order.len() {
                    self.mark(after);
                }
                for &child in graph.children(task) {
                    self.mark(child);
                }
            }
        }
        true
    }

    /// The makespan of the current times.
    fn last(&self) -> i64 {
        let tasks = self.order.len();
        let lasts = self.before[tasks..].iter().filter(|&&last| (last as usize) < tasks);
        lasts.map(|&last| self.finish[last as usize]).max().unwrap_or(0)
    }

    /// Reverts the uncommitted steps.
    pub(crate) fn take_back(&mut self) {
        for &(task, finish) in self.changed.iter().rev() {
            self.finish[task as usize] = finish;
        }
        while let Some(step) = self.steps.pop() {
            match step {
                Step::Transferred { task, from } => {
                    self.take_out(task);
                    self.on[task as usize] = from;
                    self.put_in(task);
                }
                Step::Shifted { task, from } => self.rotate(task, from as usize),
            }
        }
        self.touched.clear();
    }

    /// Sorts the order by start times, which changes nothing else: tasks that later change their processor are inserted by time.
    pub(crate) fn sort(&mut self) {
        let key = |timeline: &Self, task: u32| {
            let finish = timeline.finish[task as usize];
            (finish - timeline.costs.work(task, timeline.on[task as usize]), finish)
        };
        if self.order.len() > INSERTED {
            let mut order = std::mem::take(&mut self.order);
            order.sort_by_key(|&task| key(self, task));
            (0..).zip(&order).for_each(|(at, &task)| self.place[task as usize] = at);
            self.order = order;
            return;
        }
        for at in 1..self.order.len() {
            let task = self.order[at];
            let own = key(self, task);
            let mut to = at;
            while to > 0 && key(self, self.order[to - 1]) > own {
                self.order[to] = self.order[to - 1];
                self.place[self.order[to] as usize] = to as u32;
                to -= 1;
            }
            self.order[to] = task;
            self.place[task as usize] = to as u32;
        }
    }
}
