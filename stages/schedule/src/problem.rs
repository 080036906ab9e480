//! A program on a machine whose tasks may run anywhere, in integer ticks.

use std::collections::BTreeMap;

use hopmap_model::{DelayModel, Dependency, TaskDag};
use hopmap_replay::{Delays, Distances, Machine, Network, ProblemError, SizedMessages, TickScale};

/// Largest number of processor pairs for exact statistics.
const MOST_PAIRS: usize = 1 << 22;
/// Maximum number of times that are looked up for all sizes together.
const MOST_TIMES: usize = 1 << 24;

/// Tasks, their dependencies, and all execution times in integer ticks.
#[derive(Debug, Clone)]
pub struct Problem {
    tasks: usize,
    processors: usize,
    model: DelayModel,
    scale: TickScale,
    /// Execution time of task `t` on processor `p`, at `t * processors + p`, or at `t` if all processors are equally fast.
    work: Vec<i64>,
    equally_fast: bool,
    available: Vec<i64>,
    delays: Delays,
    parents: ByTask<Message>,
    children: ByTask<Message>,
    order: Vec<u32>,
    alike: bool,
}

/// A message from the point of view of the task at one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// The task at the other end.
    pub task: u32,
    /// Its size as an index of [`Delays`].
    pub size: u32,
}

/// Lists of all tasks, concatenated.
#[derive(Debug, Clone)]
pub(crate) struct ByTask<T> {
    /// Start of the list of every task, and the end of the last one.
    starts: Vec<u32>,
    all: Vec<T>,
}

impl<T> ByTask<T> {
    pub(crate) fn new<I: Iterator<Item = T>>(tasks: usize, of_task: impl Fn(u32) -> I) -> Self {
        let mut rows = Self { starts: vec![0], all: Vec::new() };
        for task in 0..tasks as u32 {
            rows.all.extend(of_task(task));
            rows.starts.push(rows.all.len() as u32);
        }
        rows
    }

    #[inline]
    pub(crate) fn of(&self, task: u32) -> &[T] {
        let task = task as usize;
        &self.all[self.starts[task] as usize..self.starts[task + 1] as usize]
    }
}

impl Problem {
    /// The problem of a validated program on a machine; every task may run anywhere.
    pub fn new(dag: &TaskDag, machine: &Machine, model: DelayModel) -> Result<Self, ProblemError> {
        if dag.tasks.is_empty() {
            return Err(ProblemError::Empty);
        }
        let (tasks, processors) = (dag.tasks.len(), machine.processors.len());
        let messages = SizedMessages::new(dag, machine);
        let scale = TickScale::new(dag, &messages, machine)?;
        let equally_fast = machine.pace.windows(2).all(|pair| pair[0].to_bits() == pair[1].to_bits());
        let paces = if equally_fast { &machine.pace[..1] } else { &machine.pace[..] };
        let work = dag.tasks.iter().flat_map(|task| paces.iter().map(|pace| scale.ticks(task.work * pace)));
        let delays = Delays::new(machine, &messages.sizes, model, scale);
        let available: Vec<i64> = machine.processors.iter().map(|one| scale.ticks(one.available)).collect();
        let parents = group_messages(tasks, &messages, |edge| (edge.destination, edge.source));
        let children = group_messages(tasks, &messages, |edge| (edge.source, edge.destination));
        let is_flat = matches!(&machine.network, Network::Linear { distances: Distances::Alike, .. });
        let alike = equally_fast && is_flat && available.windows(2).all(|pair| pair[0] == pair[1]);
        let order = dag.order().unwrap_or_default();
        Ok(Self {
            tasks,
            processors,
            model,
            scale,
            work: work.collect(),
            equally_fast,
            available,
            delays,
            parents,
            children,
            order,
            alike,
        })
    }

    /// Number of tasks.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// Number of processors.
    #[must_use]
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// Cost model of messages.
    #[must_use]
    pub fn model(&self) -> DelayModel {
        self.model
    }

    /// Execution time of a task on a processor.
    #[inline]
    #[must_use]
    pub fn work(&self, task: u32, processor: u32) -> i64 {
        match self.equally_fast {
            true => self.work[task as usize],
            false => self.work[task as usize * self.processors + processor as usize],
        }
    }

    /// Execution times of a task on every processor, or one value if all are equally fast.
    #[must_use]
    pub fn works(&self, task: u32) -> &[i64] {
        let count = if self.equally_fast { 1 } else { self.processors };
        &self.work[task as usize * count..][..count]
    }

    /// Time of a message of a size from one processor to another, or from a processor to itself.
    #[inline]
    #[must_use]
    pub fn delay(&self, size: u32, from: u32, to: u32) -> i64 {
        self.delays.ticks(size, from, to)
    }

    /// Message times.
    #[must_use]
    pub fn delays(&self) -> &Delays {
        &self.delays
    }

    /// Statistics of message times for every size, without known processors.
    pub(crate) fn delay_summary(&self) -> DelaySummary {
        let sizes = self.parents.all.iter().map(|message| message.size as usize + 1).max().unwrap_or(0);
        DelaySummary::new(&self.delays, sizes, self.processors)
    }

    /// The time from which every processor is available.
    #[must_use]
    pub fn available(&self) -> &[i64] {
        &self.available
    }

    /// Incoming messages of a task, by sender.
    #[inline]
    #[must_use]
    pub fn parents(&self, task: u32) -> &[Message] {
        self.parents.of(task)
    }

    /// Outgoing messages of a task, by receiver.
    #[inline]
    #[must_use]
    pub fn children(&self, task: u32) -> &[Message] {
        self.children.of(task)
    }

    /// The tasks in topological order.
    #[must_use]
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Whether processors are interchangeable: all are equally fast, available at the same time, and equally far from each other.
    #[must_use]
    pub fn is_alike(&self) -> bool {
        self.alike
    }

    /// A time in the units of the program.
    #[must_use]
    pub fn real(&self, ticks: i64) -> f64 {
        self.scale.real(ticks)
    }

    /// The problem with reversed messages. It has the same optimum if all processors are identical and messages overlap with
    /// computation at both ends.
    pub(crate) fn reversed(&self) -> Option<Self> {
        if !self.alike || self.model != DelayModel::Overlap {
            return None;
        }
        let mut reversed = self.clone();
        std::mem::swap(&mut reversed.parents, &mut reversed.children);
        reversed.order.reverse();
        Some(reversed)
    }
}

/// Counting sort of messages by the task at one end.
fn group_messages(
    tasks: usize,
    messages: &SizedMessages,
    ends: impl Fn(&Dependency) -> (u32, u32),
) -> ByTask<Message> {
    let mut starts = vec![0u32; tasks + 1];
    for edge in &messages.dependencies {
        starts[ends(edge).0 as usize + 1] += 1;
    }
    for task in 0..tasks {
        starts[task + 1] += starts[task];
    }
    let mut next = starts.clone();
    let mut grouped = vec![Message { task: 0, size: 0 }; messages.dependencies.len()];
    for (edge, size) in messages.with_sizes() {
        let (own, other) = ends(edge);
        grouped[next[own as usize] as usize] = Message { task: other, size };
        next[own as usize] += 1;
    }
    ByTask { starts, all: grouped }
}

/// Message times for every size, independent of the endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DelaySummary {
    /// The mean over pairs of different processors; over a sample if there are too many.
    pub(crate) mean: Vec<i64>,
    /// The minimum between two different processors; 0 if there are too many pairs.
    pub(crate) shortest: Vec<i64>,
    /// The minimum from a processor to itself; 0 if there are too many.
    pub(crate) local: Vec<i64>,
}

impl DelaySummary {
    /// The summary for sizes 0 to `sizes` on the given number of processors.
    pub(crate) fn new(delays: &Delays, sizes: usize, processors: usize) -> Self {
        if let Some(mut far) = delays.uniform() {
            far.resize(sizes, 0);
            let far = if processors > 1 { far } else { vec![0; sizes] };
            return Self { mean: far.clone(), shortest: far, local: vec![0; sizes] };
        }
        let (pairs, all) = pairs_of_classes(delays, sizes, processors);
        let total = pairs.iter().map(|pair| i128::from(pair.2)).sum::<i128>().max(1);
        let size = |size: u32| {
            let times = pairs.iter().map(|&(from, to, count)| (delays.ticks(size, from, to), count));
            let sum: i128 = times.clone().map(|(time, count)| i128::from(time) * i128::from(count)).sum();
            let shortest = if all { times.map(|(time, _)| time).min().unwrap_or(0) } else { 0 };
            let own = (0..processors as u32).map(|processor| delays.ticks(size, processor, processor));
            let local = if all { own.min().unwrap_or(0) } else { 0 };
            ((sum / total) as i64, shortest, local.min(shortest))
        };
        let (mean, shortest, local) = (0..sizes as u32).map(size).collect();
        Self { mean, shortest, local }
    }
}

/// A pair of different processors of every class with the number of pairs in it, and whether these are all.
fn pairs_of_classes(delays: &Delays, sizes: usize, processors: usize) -> (Vec<(u32, u32, u64)>, bool) {
    let all = processors.saturating_mul(processors) <= MOST_PAIRS;
    let step = if all { 1 } else { processors.div_ceil(64) };
    let mut classes: BTreeMap<usize, (u32, u32, u64)> = BTreeMap::new();
    for from in (0..processors as u32).step_by(step) {
        for to in (0..processors as u32).step_by(step).filter(|&to| to != from) {
            let class = delays.distances().class(from, to);
            classes.entry(class).or_insert((from, to, 0)).2 += 1;
        }
    }
    let pairs: Vec<_> = classes.into_values().collect();
    let every = pairs.len().saturating_mul(sizes).div_ceil(MOST_TIMES).max(1);
    let all = all && every == 1;
    (pairs.into_iter().step_by(every).collect(), all)
}
