//! A program on a machine, in whole ticks.

mod delays;
mod plan;
mod reversed;
mod scale;

use hopmap_model::{DelayModel, Dependency, TaskDag};

use crate::ProblemError;
use crate::machine::{Distances, Machine, Network};

pub(crate) use delays::DelaySummary;
pub use delays::Delays;
pub use plan::Plan;
pub(crate) use scale::{Scale, is_whole};

/// Tasks, what they wait for, and how long everything takes on every processor, in whole ticks.
#[derive(Debug, Clone)]
pub struct Problem {
    tasks: usize,
    processors: usize,
    model: DelayModel,
    scale: Scale,
    /// What task `t` takes on processor `p`, at `t * processors + p`, or at `t` where all processors are equally fast.
    work: Vec<i64>,
    equally_fast: bool,
    available: Vec<i64>,
    delays: Delays,
    parent_starts: Vec<u32>,
    parents: Vec<Message>,
    child_starts: Vec<u32>,
    children: Vec<Message>,
    order: Vec<u32>,
    alike: bool,
}

/// A message as the task at one end sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// The task at the other end.
    pub task: u32,
    /// Its size, as [`Delays`] knows it.
    pub size: u32,
}

impl Problem {
    /// The problem of a program that was checked on a machine; every task may run anywhere.
    pub fn new(dag: &TaskDag, machine: &Machine, model: DelayModel) -> Result<Self, ProblemError> {
        if dag.tasks.is_empty() {
            return Err(ProblemError::Empty);
        }
        let (tasks, processors) = (dag.tasks.len(), machine.processors.len());
        let dependencies = needed(dag, machine);
        let (sizes, size_of) = sizes(&dependencies);
        let scale = Scale::new(dag, &dependencies, machine)?;
        let equally_fast = machine.pace.windows(2).all(|pair| pair[0].to_bits() == pair[1].to_bits());
        let paces = if equally_fast { &machine.pace[..1] } else { &machine.pace[..] };
        let work = dag.tasks.iter().flat_map(|task| paces.iter().map(|pace| scale.ticks(task.work * pace)));
        let delays = Delays::new(machine, &sizes, model, scale);
        let available: Vec<i64> = machine.processors.iter().map(|one| scale.ticks(one.available)).collect();
        let (parent_starts, parents) =
            messages(tasks, &dependencies, &size_of, |edge| (edge.destination, edge.source));
        let (child_starts, children) =
            messages(tasks, &dependencies, &size_of, |edge| (edge.source, edge.destination));
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
            parent_starts,
            parents,
            child_starts,
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

    /// What a message costs.
    #[must_use]
    pub fn model(&self) -> DelayModel {
        self.model
    }

    /// What a task takes on a processor.
    #[inline]
    #[must_use]
    pub fn work(&self, task: u32, processor: u32) -> i64 {
        match self.equally_fast {
            true => self.work[task as usize],
            false => self.work[task as usize * self.processors + processor as usize],
        }
    }

    /// What a task takes on every processor, or one value where all are equally fast.
    #[must_use]
    pub fn works(&self, task: u32) -> &[i64] {
        let count = if self.equally_fast { 1 } else { self.processors };
        &self.work[task as usize * count..][..count]
    }

    /// What a message of a size takes from one processor to another, or from a processor to itself.
    #[inline]
    #[must_use]
    pub fn delay(&self, size: u32, from: u32, to: u32) -> i64 {
        self.delays.ticks(size, from, to)
    }

    /// What messages take.
    #[must_use]
    pub fn delays(&self) -> &Delays {
        &self.delays
    }

    /// What messages of every size take between processors that are not known yet.
    pub(crate) fn delay_summary(&self) -> DelaySummary {
        let sizes = self.parents.iter().map(|message| message.size as usize + 1).max().unwrap_or(0);
        DelaySummary::new(&self.delays, sizes, self.processors)
    }

    /// When every processor can begin.
    #[must_use]
    pub fn available(&self) -> &[i64] {
        &self.available
    }

    /// The messages to a task, by the tasks that send them.
    #[inline]
    #[must_use]
    pub fn parents(&self, task: u32) -> &[Message] {
        let range =
            self.parent_starts[task as usize] as usize..self.parent_starts[task as usize + 1] as usize;
        &self.parents[range]
    }

    /// The messages from a task, by the tasks that get them.
    #[inline]
    #[must_use]
    pub fn children(&self, task: u32) -> &[Message] {
        let range = self.child_starts[task as usize] as usize..self.child_starts[task as usize + 1] as usize;
        &self.children[range]
    }

    /// The tasks in an order in which none comes before one that it waits for.
    #[must_use]
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Whether processors can change their names and nothing is different: all are equally fast, available at the same
    /// time, and equally far from each other.
    #[must_use]
    pub fn is_alike(&self) -> bool {
        self.alike
    }

    /// A time in the units of the program.
    #[must_use]
    pub fn real(&self, ticks: i64) -> f64 {
        self.scale.real(ticks)
    }
}

/// The dependencies that matter: of several messages between two tasks the largest, where larger ones never take less.
fn needed(dag: &TaskDag, machine: &Machine) -> Vec<Dependency> {
    let mut dependencies = dag.dependencies.clone();
    dependencies.dedup();
    if matches!(machine.network, Network::Linear { .. }) {
        dependencies.reverse();
        dependencies.dedup_by_key(|edge| (edge.source, edge.destination));
        dependencies.reverse();
    }
    dependencies
}

/// The different numbers of bytes, rising, and which of them every dependency has.
fn sizes(dependencies: &[Dependency]) -> (Vec<u64>, Vec<u32>) {
    let mut sizes: Vec<u64> = dependencies.iter().map(|edge| edge.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let size_of = dependencies.iter().map(|edge| sizes.partition_point(|&size| size < edge.bytes) as u32);
    let size_of = size_of.collect();
    (sizes, size_of)
}

/// Messages by the task at one end.
fn messages(
    tasks: usize,
    dependencies: &[Dependency],
    size_of: &[u32],
    ends: impl Fn(&Dependency) -> (u32, u32),
) -> (Vec<u32>, Vec<Message>) {
    let mut starts = vec![0u32; tasks + 1];
    for edge in dependencies {
        starts[ends(edge).0 as usize + 1] += 1;
    }
    for task in 0..tasks {
        starts[task + 1] += starts[task];
    }
    let mut next = starts.clone();
    let mut messages = vec![Message { task: 0, size: 0 }; dependencies.len()];
    for (edge, &size) in dependencies.iter().zip(size_of) {
        let (own, other) = ends(edge);
        messages[next[own as usize] as usize] = Message { task: other, size };
        next[own as usize] += 1;
    }
    (starts, messages)
}
