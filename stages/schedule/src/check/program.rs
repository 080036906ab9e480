//! What a schedule is checked against: how long everything takes, computed in doubles from what the machine says, and what can be wrong.

use hopmap_model::{DelayModel, Dependency, TaskDag};
use hopmap_replay::{Distances, Hosts, Lookup, Machine, Measured, Network, Tree};
use miette::Diagnostic;

/// The finest ticks of a schedule, and the most ticks that there are in all: 10⁻¹² units and 2⁵².
const FINEST: f64 = 1e-12;
const MOST_TICKS: f64 = (1u64 << 52) as f64;

/// A program on a machine.
pub(super) struct Program<'a> {
    pub(super) dag: &'a TaskDag,
    pub(super) machine: &'a Machine,
    pub(super) model: DelayModel,
    /// How far times may be from what they should be.
    tolerance: f64,
    starts: Vec<usize>,
    messages: Vec<Dependency>,
}

impl<'a> Program<'a> {
    pub(super) fn new(dag: &'a TaskDag, machine: &'a Machine, model: DelayModel) -> Self {
        let mut messages = dag.dependencies.clone();
        messages.sort_by_key(|message| message.destination);
        let mut starts = vec![0; dag.tasks.len() + 1];
        messages.iter().for_each(|message| starts[message.destination as usize + 1] += 1);
        (0..dag.tasks.len()).for_each(|task| starts[task + 1] += starts[task]);
        Self { dag, machine, model, tolerance: tolerance(dag, machine), starts, messages }
    }

    /// The messages to a task.
    pub(super) fn messages(&self, task: u32) -> &[Dependency] {
        &self.messages[self.starts[task as usize]..self.starts[task as usize + 1]]
    }

    /// What a task takes on a processor.
    pub(super) fn work(&self, task: u32, processor: u32) -> f64 {
        self.dag.tasks[task as usize].work * self.machine.pace[processor as usize]
    }

    /// What a message takes that the model charges for.
    pub(super) fn transfer(&self, bytes: u64, from: u32, to: u32) -> f64 {
        match self.model {
            DelayModel::Overlap if from == to => 0.0,
            _ => transfer(self.machine, bytes, from, to),
        }
    }

    /// What the longest message to a task takes, each of which comes from the processor of its task.
    pub(super) fn receives(&self, task: u32, on: &dyn Fn(u32) -> u32) -> f64 {
        let own = on(task);
        let times =
            self.messages(task).iter().map(|message| self.transfer(message.bytes, on(message.source), own));
        times.fold(0.0, f64::max)
    }

    /// How far a time may be from what it should be. Nothing, if every time is whole. Else a tick and the last digits of a double:
    /// schedulers have as many ticks in a unit, a power of ten and at most 10¹², as let everything together take at most 2⁵² of them, so
    /// that a tick is less than 10 · total / 2⁵²; they round what a task and what a message takes by half a tick each.
    pub(super) fn tolerance(&self) -> f64 {
        self.tolerance
    }

    pub(super) fn name(&self, task: u32) -> String {
        format!("task `{}`", self.dag.name(task))
    }
}

fn tolerance(dag: &TaskDag, machine: &Machine) -> f64 {
    let mut paces = machine.pace.clone();
    paces.sort_by(f64::total_cmp);
    paces.dedup();
    let slowest = paces.last().copied().unwrap_or(0.0);
    let available = || machine.processors.iter().map(|processor| processor.available);
    let mut total = dag.work() * slowest + available().fold(0.0, f64::max);
    let is_whole = |time: f64| time.fract() == 0.0;
    let mut whole = available().all(is_whole);
    whole = whole && dag.tasks.iter().all(|task| paces.iter().all(|pace| is_whole(task.work * pace)));
    let mut sizes: Vec<u64> = dag.dependencies.iter().map(|message| message.bytes).collect();
    sizes.sort_unstable();
    for alike in sizes.chunk_by(|a, b| a == b) {
        let times = all_transfers(machine, alike[0]);
        total += alike.len() as f64 * times.iter().copied().fold(0.0, f64::max);
        whole = whole && times.into_iter().all(is_whole);
    }
    if whole { 0.0 } else { FINEST.max(10.0 * total / MOST_TICKS) + 4.0 * f64::EPSILON * total }
}

/// All times that messages of a size take, some of them several times.
fn all_transfers(machine: &Machine, bytes: u64) -> Vec<f64> {
    match &machine.network {
        Network::Linear { classes, .. } => {
            classes.iter().map(|class| class.latency + class.per_byte * bytes as f64).collect()
        }
        Network::Measured(_) => {
            let all = 0..machine.processors.len() as u32;
            let pairs = all.clone().flat_map(|from| all.clone().map(move |to| (from, to)));
            pairs.map(|(from, to)| transfer(machine, bytes, from, to)).collect()
        }
    }
}

/// What a message takes, as the machine says it, also from a processor to itself.
pub(super) fn transfer(machine: &Machine, bytes: u64, from: u32, to: u32) -> f64 {
    match &machine.network {
        Network::Linear { distances, classes } => {
            let class = &classes[class_of(distances, from as usize, to as usize) as usize];
            class.latency + class.per_byte * bytes as f64
        }
        Network::Measured(measured) => {
            interpolated(measured, bytes, to as usize * machine.processors.len() + from as usize)
        }
    }
}

/// The class of two processors, by what the machine says of its kinds of distances.
fn class_of(distances: &Distances, from: usize, to: usize) -> u32 {
    let meet = |tree: &Tree| {
        let level = tree.levels.iter().find(|level| level.groups[from] == level.groups[to]);
        level.filter(|_| from != to).map_or(tree.own, |level| level.class)
    };
    match distances {
        Distances::Alike => u32::from(from != to),
        Distances::Pairs { processors, classes } => classes[from * processors + to],
        Distances::Tree(tree) => meet(tree),
        Distances::Hosts(Hosts { host, hosts, between, inside }) => match (host[from], host[to]) {
            (a, b) if a == b => meet(inside),
            (a, b) => between[a as usize * hosts + b as usize],
        },
    }
}

/// What a message takes between two processors for which some lengths were measured.
fn interpolated(measured: &Measured, bytes: u64, pair: usize) -> f64 {
    let (lengths, times, lookup) = measured.parts();
    let longer =
        Some(lengths.partition_point(|&length| length < bytes)).filter(|&index| index < lengths.len());
    let at = |index: usize| times[index][pair];
    let line = |low: usize, high: usize| {
        let step = (at(high) - at(low)) / (lengths[high] - lengths[low]) as f64;
        (at(low) + (bytes as f64 - lengths[low] as f64) * step).max(0.0)
    };
    match (lookup, longer) {
        (Lookup::Parus, None) => at(lengths.len() - 1),
        (Lookup::Parus, Some(index)) => at(index),
        (Lookup::Linear, Some(index)) if index == 0 || lengths[index] == bytes => at(index),
        (Lookup::Linear, Some(index)) => line(index - 1, index),
        (Lookup::Linear, None) if lengths.len() == 1 => at(0),
        (Lookup::Linear, None) => line(lengths.len() - 2, lengths.len() - 1),
    }
}

/// What is wrong with a schedule, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("{problem}")]
#[diagnostic(help("{help}"))]
pub struct CheckError {
    /// What is wrong, with the task that it is about.
    pub problem: String,
    /// What it should be, or what to do.
    pub help: String,
}

/// What helps where a schedule was not made for what it is checked with.
pub(super) const ANOTHER: &str =
    "connect the program and the machine that the schedule was made for, with the same parameters";

impl CheckError {
    pub(super) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { problem: problem.into(), help: help.into() }
    }

    pub(super) fn no_schedule() -> Self {
        Self::new("there is no schedule to check", "connect a `schedule`, or name a `.sch` file in `file`")
    }

    pub(super) fn two_schedules() -> Self {
        Self::new("there is a `schedule`, and a `file` beside it", "leave one of them out")
    }
}
