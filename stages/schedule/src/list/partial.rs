//! A schedule that is being made, task by task.

use crate::Plan;
use crate::problem::Message;

use super::view::View;

/// Where some tasks run already, and when processors are free.
#[derive(Debug)]
pub(super) struct Partial<'v, 'p> {
    pub(super) view: &'v View<'p>,
    pub(super) start: Vec<i64>,
    pub(super) finish: Vec<i64>,
    /// The processor of every task that has one; of the others it means nothing.
    pub(super) processor: Vec<u32>,
    /// When every processor is free, from and to, rising; the last goes on for ever.
    free: Vec<Vec<(i64, i64)>>,
    /// Whether tasks are put between others.
    inserts: bool,
}

/// What a task would find on every processor.
#[derive(Debug, Clone, Default)]
pub(super) struct Arrivals {
    /// When it could begin if nothing else ran there.
    pub(super) ready: Vec<i64>,
    /// How long it would keep the processor.
    pub(super) takes: Vec<i64>,
}

impl<'v, 'p> Partial<'v, 'p> {
    /// Nothing runs anywhere.
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

    /// What a task would find on every processor, of those before it only the given ones counting.
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

    /// What a task would find on every processor, whose parents all run somewhere.
    pub(super) fn arrivals(&self, task: u32, arrivals: &mut Arrivals) {
        self.arrivals_of(task, self.view.parents(task).iter().copied(), arrivals);
    }

    /// When a processor has done all it has.
    pub(super) fn end(&self, processor: usize) -> i64 {
        self.free[processor].last().map_or(0, |gap| gap.0)
    }

    /// When a task could begin on a processor.
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

    /// The processor where a value that depends on the processor and the earliest beginning there is least, and that beginning.
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

    /// Puts a task where it is done first.
    pub(super) fn put_first_done(&mut self, task: u32, arrivals: &mut Arrivals) {
        self.arrivals(task, arrivals);
        let (processor, start) = self.least(arrivals, |processor, start| start + arrivals.takes[processor]);
        self.put(task, processor, start, arrivals.takes[processor as usize]);
    }

    /// Puts a task somewhere, as early as it can begin there.
    pub(super) fn put_on(&mut self, task: u32, processor: u32, arrivals: &mut Arrivals) {
        self.arrivals(task, arrivals);
        let start = self.earliest(arrivals, processor as usize);
        self.put(task, processor, start, arrivals.takes[processor as usize]);
    }

    /// Puts a task somewhere.
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
        // Between two gaps that touch the moment of a task without work, the first that holds it.
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

    /// When the last task is done that runs somewhere.
    #[cfg(test)]
    pub(super) fn makespan(&self) -> i64 {
        self.finish.iter().copied().max().unwrap_or(0)
    }

    /// The plan that was made.
    pub(super) fn plan(self) -> Plan {
        self.view.plan(&self.start, &self.finish, self.processor)
    }
}
