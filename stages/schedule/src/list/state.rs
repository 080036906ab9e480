//! Data of list heuristics: the problem in either direction, static priorities of tasks, and the partial schedule.

use std::cmp::Reverse;

use hopmap_model::DelayModel;

use crate::plan::Plan;
use crate::problem::{Message, Problem};

/// A problem in either direction, with averages over processors.
#[derive(Debug, Clone)]
pub(super) struct View<'p> {
    pub(super) problem: &'p Problem,
    /// Whether messages are reversed. The model is then always the classic delay model.
    backward: bool,
    /// The tasks in topological order.
    pub(super) order: Vec<u32>,
    /// Mean execution time of every task.
    pub(super) mean_work: Vec<i64>,
    /// Execution time of every task on its fastest processor.
    pub(super) least_work: Vec<i64>,
    /// Mean message time between different processors, for every size.
    mean_delay: Vec<i64>,
    /// The same if it is equal between all processors.
    uniform: Option<Vec<i64>>,
}

impl<'p> View<'p> {
    pub(super) fn forward(problem: &'p Problem) -> Self {
        let tasks = 0..problem.tasks() as u32;
        let mean = |task| {
            let works = problem.works(task);
            let sum: i128 = works.iter().map(|&work| i128::from(work)).sum();
            (sum / works.len().max(1) as i128) as i64
        };
        let least = |task| problem.works(task).iter().copied().min().unwrap_or(0);
        Self {
            problem,
            backward: false,
            order: problem.order().to_vec(),
            mean_work: tasks.clone().map(mean).collect(),
            least_work: tasks.map(least).collect(),
            mean_delay: problem.delay_summary().mean,
            uniform: problem.delays().uniform(),
        }
    }

    /// The reversed problem.
    pub(super) fn backward(&self) -> Self {
        let order = self.order.iter().rev().copied().collect();
        Self { backward: !self.backward, order, ..self.clone() }
    }

    pub(super) fn tasks(&self) -> usize {
        self.problem.tasks()
    }

    pub(super) fn processors(&self) -> usize {
        self.problem.processors()
    }

    pub(super) fn parents(&self, task: u32) -> &'p [Message] {
        if self.backward { self.problem.children(task) } else { self.problem.parents(task) }
    }

    pub(super) fn children(&self, task: u32) -> &'p [Message] {
        if self.backward { self.problem.parents(task) } else { self.problem.children(task) }
    }

    /// Mean time of a message.
    pub(super) fn mean_delay(&self, message: Message) -> i64 {
        self.mean_delay[message.size as usize]
    }

    /// Availability of processors.
    pub(super) fn available(&self) -> Vec<i64> {
        if self.backward { vec![0; self.processors()] } else { self.problem.available().to_vec() }
    }

    /// Whether a processor receives before it computes.
    pub(super) fn receives(&self) -> bool {
        !self.backward && self.problem.model() == DelayModel::Receive
    }

    /// Calls a function with the message time to every processor.
    pub(super) fn for_every(&self, size: u32, from: u32, mut take: impl FnMut(usize, i64)) {
        match &self.uniform {
            Some(uniform) => {
                let (far, from) = (uniform[size as usize], from as usize);
                (0..from).for_each(|processor| take(processor, far));
                take(from, 0);
                (from + 1..self.processors()).for_each(|processor| take(processor, far));
            }
            None if self.backward => {
                let every = 0..self.processors() as u32;
                every.for_each(|to| take(to as usize, self.problem.delay(size, to, from)));
            }
            None => {
                let every = 0..self.processors() as u32;
                every.for_each(|to| take(to as usize, self.problem.delay(size, from, to)));
            }
        }
    }

    /// The plan with the processors and times of the schedule.
    pub(super) fn plan(&self, start: &[i64], finish: &[i64], processor: Vec<u32>) -> Plan {
        if !self.backward {
            return Plan::of_times(self.problem, start, finish, processor);
        }
        let last = finish.iter().copied().max().unwrap_or(0);
        let mirrored = |times: &[i64]| times.iter().map(|time| last - time).collect::<Vec<_>>();
        Plan::of_times(self.problem, &mirrored(finish), &mirrored(start), processor)
    }
}

/// Remaining time from the start of every task to the end of the program: the longest chain of work and messages that begins with
/// it. The upward rank of HEFT (equation 8 of Topcuoglu, Hariri, Wu 2002), with mean execution times.
pub(super) fn upward(view: &View<'_>, work: &[i64], with_messages: bool) -> Vec<i64> {
    let mut rank = vec![0i64; view.tasks()];
    for &task in view.order.iter().rev() {
        let longest = view.children(task).iter().map(|message| {
            let delay = if with_messages { view.mean_delay(*message) } else { 0 };
            delay + rank[message.task as usize]
        });
        rank[task as usize] = work[task as usize] + longest.max().unwrap_or(0);
    }
    rank
}

/// The longest chain of work and messages before every task: the downward rank (equation 10 of the same).
pub(super) fn downward(view: &View<'_>) -> Vec<i64> {
    let mut rank = vec![0i64; view.tasks()];
    for &task in &view.order {
        let longest = view.parents(task).iter().map(|message| {
            let before = message.task as usize;
            rank[before] + view.mean_work[before] + view.mean_delay(*message)
        });
        rank[task as usize] = longest.max().unwrap_or(0);
    }
    rank
}

/// Descending priority; ties in topological order.
pub(super) fn most_urgent_first(view: &View<'_>, rank: &[i64]) -> Vec<u32> {
    let mut order = view.order.clone();
    order.sort_by_key(|&task| Reverse(rank[task as usize]));
    order
}

/// The order of MCP: ascending latest start; ties by the smallest latest start of a child.
pub(super) fn latest_first(view: &View<'_>) -> Vec<u32> {
    let rank = upward(view, &view.mean_work, true);
    let child = |task: u32| view.children(task).iter().map(|message| rank[message.task as usize]).max();
    let mut order = view.order.clone();
    order.sort_by_cached_key(|&task| Reverse((rank[task as usize], child(task).unwrap_or(0))));
    // A child with the latest start of its parent takes no time, and could precede its parent in this order.
    let falls =
        |&task: &u32| view.children(task).iter().all(|child| rank[child.task as usize] < rank[task as usize]);
    if view.order.iter().all(falls) { order } else { most_urgent_first(view, &rank) }
}

/// Least time from the end of every task on every processor to the end of the program, without resource conflicts: the optimistic
/// cost table of PEFT (equation 5 of Arabnejad, Barbosa 2014), at `task * processors + processor`.
pub(super) fn optimistic_costs(view: &View<'_>) -> Vec<i64> {
    let processors = view.processors();
    let mut table = vec![0i64; view.tasks() * processors];
    let mut row = vec![0i64; processors];
    for &task in view.order.iter().rev() {
        row.fill(0);
        for message in view.children(task) {
            let child = message.task as usize;
            let works = view.problem.works(message.task);
            let costs = &table[child * processors..][..processors];
            let there = |at: usize| costs[at] + if works.len() == 1 { works[0] } else { works[at] };
            let elsewhere = (0..processors).map(there).min().unwrap_or(0) + view.mean_delay(*message);
            row.iter_mut().enumerate().for_each(|(at, cost)| *cost = (*cost).max(there(at).min(elsewhere)));
        }
        table[task as usize * processors..][..processors].copy_from_slice(&row);
    }
    table
}

/// A partial schedule, and the gaps of processors.
#[derive(Debug)]
pub(super) struct Partial<'v, 'p> {
    pub(super) view: &'v View<'p>,
    pub(super) start: Vec<i64>,
    pub(super) finish: Vec<i64>,
    /// The processor of every scheduled task; undefined for others.
    pub(super) processor: Vec<u32>,
    /// Idle intervals of every processor, ascending; the last one is unbounded.
    free: Vec<Vec<(i64, i64)>>,
    /// Whether tasks are inserted into gaps.
    inserts: bool,
}

/// The options of a task on every processor.
#[derive(Debug, Clone, Default)]
pub(super) struct Arrivals {
    /// Its earliest start if nothing else ran there.
    pub(super) ready: Vec<i64>,
    /// The time for which it occupies the processor.
    pub(super) takes: Vec<i64>,
}

impl<'v, 'p> Partial<'v, 'p> {
    /// An empty schedule.
    pub(super) fn new(view: &'v View<'p>, inserts: bool) -> Self {
        let tasks = view.tasks();
        Self {
            view,
            start: vec![0; tasks],
            finish: vec![0; tasks],
            processor: vec![0; tasks],
            free: view.available().into_iter().map(|from| vec![(from, i64::MAX)]).collect(),
            inserts,
        }
    }

    /// The options of a task on every processor, with respect to the given predecessors only.
    pub(super) fn arrivals_of(
        &self,
        task: u32,
        parents: impl Iterator<Item = Message>,
        arrivals: &mut Arrivals,
    ) {
        let Arrivals { ready, takes } = arrivals;
        ready.clear();
        ready.resize(self.view.processors(), 0);
        takes.clear();
        takes.resize(self.view.processors(), 0);
        for message in parents {
            let (from, sent) = (self.processor[message.task as usize], self.finish[message.task as usize]);
            if self.view.receives() {
                ready.iter_mut().for_each(|ready| *ready = sent.max(*ready));
                self.view.for_every(message.size, from, |to, delay| takes[to] = delay.max(takes[to]));
            } else {
                self.view.for_every(message.size, from, |to, delay| ready[to] = ready[to].max(sent + delay));
            }
        }
        match self.view.problem.works(task) {
            [work] => takes.iter_mut().for_each(|takes| *takes += work),
            works => takes.iter_mut().zip(works).for_each(|(takes, work)| *takes += work),
        }
    }

    /// The options of a task whose parents are all scheduled.
    pub(super) fn arrivals(&self, task: u32, arrivals: &mut Arrivals) {
        self.arrivals_of(task, self.view.parents(task).iter().copied(), arrivals);
    }

    /// The time at which a processor completes its tasks.
    pub(super) fn end(&self, processor: usize) -> i64 {
        self.free[processor].last().map_or(0, |gap| gap.0)
    }

    /// The earliest start of a task on a processor.
    pub(super) fn earliest(&self, arrivals: &Arrivals, processor: usize) -> i64 {
        let (ready, takes) = (arrivals.ready[processor], arrivals.takes[processor]);
        if !self.inserts || ready >= self.end(processor) {
            return self.end(processor).max(ready);
        }
        let gaps = &self.free[processor];
        let first = gaps.partition_point(|gap| gap.1 < ready + takes);
        let fits = |gap: &&(i64, i64)| gap.1 - takes >= gap.0.max(ready);
        let gap = gaps[first..].iter().find(fits);
        gap.map_or(self.end(processor), |gap| gap.0).max(ready)
    }

    /// The processor that minimises a function of the processor and the earliest start there, and that start.
    pub(super) fn least(&self, arrivals: &Arrivals, value: impl Fn(usize, i64) -> i64) -> (u32, i64) {
        let mut best = (i64::MAX, 0, 0);
        for processor in 0..self.view.processors() {
            let start = self.earliest(arrivals, processor);
            let value = value(processor, start);
            if value < best.0 {
                best = (value, processor as u32, start);
            }
        }
        (best.1, best.2)
    }

    /// Schedules a task where it finishes first.
    pub(super) fn put_first_done(&mut self, task: u32, arrivals: &mut Arrivals) {
        self.arrivals(task, arrivals);
        let (processor, start) = self.least(arrivals, |processor, start| start + arrivals.takes[processor]);
        self.put(task, processor, start, arrivals.takes[processor as usize]);
    }

    /// Schedules a task on a processor, as early as possible.
    pub(super) fn put_on(&mut self, task: u32, processor: u32, arrivals: &mut Arrivals) {
        self.arrivals(task, arrivals);
        let start = self.earliest(arrivals, processor as usize);
        self.put(task, processor, start, arrivals.takes[processor as usize]);
    }

    /// Schedules a task on a processor at a time.
    pub(super) fn put(&mut self, task: u32, processor: u32, start: i64, takes: i64) {
        self.start[task as usize] = start;
        self.finish[task as usize] = start + takes;
        self.processor[task as usize] = processor;
        let gaps = &mut self.free[processor as usize];
        if !self.inserts {
            gaps[0].0 = start + takes;
            return;
        }
        let at = gaps.partition_point(|gap| gap.1 < start + takes);
        // For a task without duration between two adjacent gaps: the first gap that contains its time.
        let Some(gap) = gaps.get_mut(at) else { return };
        let (before, after) = ((gap.0, start), (start + takes, gap.1));
        match (before.0 < before.1, after.0 < after.1) {
            (true, true) => {
                *gap = after;
                gaps.insert(at, before);
            }
            (true, false) => *gap = before,
            (false, true) => *gap = after,
            (false, false) => drop(gaps.remove(at)),
        }
    }

    /// The makespan of the scheduled tasks.
    #[cfg(test)]
    pub(super) fn makespan(&self) -> i64 {
        self.finish.iter().copied().max().unwrap_or(0)
    }

    /// The completed plan.
    pub(super) fn plan(self) -> Plan {
        self.view.plan(&self.start, &self.finish, self.processor)
    }
}
