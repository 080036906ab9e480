//! The reference of the checker: times in doubles from the machine, and the earliest times of tasks with given processors and
//! turns, as in a file of PARUS, which contains nothing else.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display};
use std::path::Path;

use hopmap_model::{DelayModel, Dependency, Error, Schedule, ScheduledTask, TaskDag};
use hopmap_replay::{Distances, Hosts, Lookup, Machine, Measured, Network, Tree};

use crate::error::{InvalidInput, invalid};
use crate::export::node_numbers;
use crate::formats::read_file;
use crate::formats::sch::Sch;

/// Maximum number of named tasks of a cycle.
const MOST_NAMED: usize = 12;
const ANOTHER_GRAPH: &str = "the `.sch` file belongs to another graph: import its `.grf` file";

/// The finest ticks of a schedule, and the maximum total number of ticks: 10⁻¹² units and 2⁵².
const FINEST: f64 = 1e-12;
const MOST_TICKS: f64 = (1u64 << 52) as f64;

/// A program on a machine.
pub(super) struct Program<'a> {
    pub(super) dag: &'a TaskDag,
    pub(super) machine: &'a Machine,
    pub(super) model: DelayModel,
    /// Tolerance of a time. Zero if all times are integers; otherwise one tick plus the last digits of a double. Schedulers use
    /// the largest power of ten, at most 10¹², of ticks per unit such that all times together take at most 2⁵² ticks, so a tick
    /// is less than 10 · total / 2⁵². They round execution and message times by at most half a tick each.
    pub(super) tolerance: f64,
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

    /// Incoming messages of a task.
    pub(super) fn messages(&self, task: u32) -> &[Dependency] {
        &self.messages[self.starts[task as usize]..self.starts[task as usize + 1]]
    }

    /// Execution time of a task on a processor.
    pub(super) fn work(&self, task: u32, processor: u32) -> f64 {
        self.dag.tasks[task as usize].work * self.machine.pace[processor as usize]
    }

    /// Message time that the model charges.
    pub(super) fn transfer(&self, bytes: u64, from: u32, to: u32) -> f64 {
        match self.model {
            DelayModel::Overlap if from == to => 0.0,
            _ => transfer(self.machine, bytes, from, to),
        }
    }

    /// Name of a task in messages.
    pub(super) fn name(&self, task: u32) -> impl Display {
        fmt::from_fn(move |f| write!(f, "task `{}`", self.dag.name(task)))
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

/// All times of messages of a size, with duplicates.
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

/// Message time on the machine, also from a processor to itself.
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

/// The distance class of two processors.
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

/// Measured message time between two processors, interpolated.
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

/// Earliest times of tasks with given orders on each processor. Fails if the orders form a cycle.
pub(super) fn earliest_times(
    program: &Program<'_>,
    turns: &[Vec<u32>],
) -> Result<Vec<ScheduledTask>, InvalidInput> {
    let count = program.dag.tasks.len();
    let idle =
        ScheduledTask { processor: 0, turn: 0, start: 0.0, finish: 0.0, waits_for: None, process: None };
    let mut tasks = vec![idle; count];
    let (mut before, mut after) = (vec![None; count], vec![None; count]);
    for (processor, turns) in (0..).zip(turns) {
        for (turn, &task) in (0..).zip(turns) {
            let process = program.dag.tasks[task as usize].rank;
            tasks[task as usize] = ScheduledTask { processor, turn, process, ..idle };
        }
        for pair in turns.windows(2) {
            before[pair[1] as usize] = Some(pair[0]);
            after[pair[0] as usize] = Some(pair[1]);
        }
    }
    let mut waiting: Vec<usize> = (0..count as u32)
        .map(|task| program.messages(task).len() + usize::from(before[task as usize].is_some()))
        .collect();
    let mut ready: Vec<u32> = (0..count as u32).filter(|&task| waiting[task as usize] == 0).collect();
    let starts = program.dag.starts();
    let mut done = 0;
    while let Some(task) = ready.pop() {
        done += 1;
        let index = task as usize;
        set_times(program, &mut tasks, task, before[index]);
        let messages = &program.dag.dependencies[starts[index]..starts[index + 1]];
        for next in messages.iter().map(|message| message.destination).chain(after[index]) {
            waiting[next as usize] -= 1;
            if waiting[next as usize] == 0 {
                ready.push(next);
            }
        }
    }
    if done == count { Ok(tasks) } else { Err(report_cycle(program, &waiting, &before)) }
}

/// Sets the times of a task whose predecessors are settled.
fn set_times(program: &Program<'_>, tasks: &mut [ScheduledTask], task: u32, before: Option<u32>) {
    let processor = tasks[task as usize].processor;
    let mut start = program.machine.processors[processor as usize].available;
    let mut waits_for = None;
    for (source, time) in
        arrivals(program, tasks, task).chain(before.map(|before| (before, tasks[before as usize].finish)))
    {
        if time > start || (time >= start && waits_for.is_none()) {
            (start, waits_for) = (time, Some(source));
        }
    }
    let takes = takes(program, task, &|task| tasks[task as usize].processor);
    let finish = start + takes;
    let settled = &mut tasks[task as usize];
    (settled.start, settled.finish, settled.waits_for) = (start, finish, waits_for);
}

/// Earliest start of a task with respect to each message to it, with the sender.
pub(super) fn arrivals(
    program: &Program<'_>,
    tasks: &[ScheduledTask],
    task: u32,
) -> impl Iterator<Item = (u32, f64)> {
    let to = tasks[task as usize].processor;
    program.messages(task).iter().map(move |message| {
        let sender = &tasks[message.source as usize];
        let time = match program.model {
            DelayModel::Overlap => program.transfer(message.bytes, sender.processor, to),
            DelayModel::Receive => 0.0,
        };
        (message.source, sender.finish + time)
    })
}

/// Time for which a task occupies its processor, including the longest message if the model receives.
pub(super) fn takes(program: &Program<'_>, task: u32, on: &dyn Fn(u32) -> u32) -> f64 {
    let own = on(task);
    let work = program.work(task, own);
    match program.model {
        DelayModel::Overlap => work,
        DelayModel::Receive => {
            let messages = program.messages(task).iter();
            let times = messages.map(|message| program.transfer(message.bytes, on(message.source), own));
            times.fold(0.0, f64::max) + work
        }
    }
}

/// A cycle of waiting tasks, found backwards from one of them.
fn report_cycle(program: &Program<'_>, waiting: &[usize], before: &[Option<u32>]) -> InvalidInput {
    let still = |task: &u32| waiting[*task as usize] > 0;
    let mut path: Vec<u32> = (0..waiting.len() as u32).find(|task| still(task)).into_iter().collect();
    let mut place = vec![usize::MAX; waiting.len()];
    while let Some(&task) = path.last() {
        if place[task as usize] != usize::MAX {
            path.drain(..=place[task as usize]);
            break;
        }
        place[task as usize] = path.len() - 1;
        let senders = program.messages(task).iter().map(|message| message.source);
        path.extend(before[task as usize].into_iter().chain(senders).find(still));
    }
    path.reverse();
    let shown = path.iter().take(MOST_NAMED).map(|&task| format!("`{}`", program.dag.name(task)));
    let names = shown.collect::<Vec<_>>().join(", ");
    let more = if path.len() > MOST_NAMED { ", …" } else { "" };
    InvalidInput::new(
        format!(
            "the order is infeasible: tasks {names}{more} form a cycle in which each waits for the previous one"
        ),
        "a task precedes one of its direct or indirect predecessors on a processor: the schedule belongs to another graph, or was modified",
    )
}

/// The schedule in a file, with the earliest times.
pub(super) fn read_sch(program: &Program<'_>, path: &Path) -> Result<Schedule, Error> {
    Ok(schedule_of_sch(program, &read_file(path, Sch::read)?)?)
}

/// The schedule with the earliest times.
pub(super) fn schedule_of_sch(program: &Program<'_>, sch: &Sch) -> Result<Schedule, InvalidInput> {
    let turns = turns_of_sch(program, sch)?;
    Ok(Schedule {
        tasks: earliest_times(program, &turns)?,
        processors: program.machine.processors.clone(),
        names: program.dag.names.clone(),
        model: program.model,
        metrics: BTreeMap::new(),
        convergence: Vec::new(),
        complete: true,
    })
}

/// The tasks of every processor in their order.
fn turns_of_sch(program: &Program<'_>, sch: &Sch) -> Result<Vec<Vec<u32>>, InvalidInput> {
    let processors = program.machine.processors.len();
    let numbers = node_numbers(&program.dag.names, program.dag.tasks.len());
    let mut task_of: HashMap<u64, u32> = numbers.iter().copied().zip(0..).collect();
    let mut turns = vec![None; processors];
    for processor in &sch.processors {
        let name = processor.name;
        let index = name.checked_sub(1).filter(|&index| index < processors as u64);
        let Some(turns) = index.and_then(|index| turns.get_mut(index as usize)) else {
            return invalid(
                format!("processor {name} does not exist: the machine has {processors}, counted from 1"),
                "describe the machine of the `.sch` file with `processors`, `procs`, `network` or a `system`; \
                 process 0 of PARUS is its coordinator and runs no tasks (`coordinator = true`)",
            );
        };
        let task = |node: &u64| {
            task_of.remove(node).ok_or_else(|| {
                let problem = match numbers.contains(node) {
                    true => format!("the schedule contains node {node} twice"),
                    false => format!("node {node} of the schedule is not a task of the program"),
                };
                InvalidInput::new(problem, ANOTHER_GRAPH)
            })
        };
        let tasks = processor.nodes.iter().map(task).collect::<Result<Vec<u32>, _>>()?;
        if turns.replace(tasks).is_some() {
            let problem = format!("the schedule contains processor {name} twice");
            return invalid(problem, "remove or rename one of them");
        }
    }
    let Some(&task) = task_of.values().min() else {
        return Ok(turns.into_iter().map(Option::unwrap_or_default).collect());
    };
    let others = match task_of.len() - 1 {
        0 => String::new(),
        count => format!(", and neither are {count} others"),
    };
    invalid(format!("{} is not in the schedule{others}", program.name(task)), ANOTHER_GRAPH)
}
