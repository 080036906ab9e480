//! The earliest times of tasks whose processors and turns are settled, also in a file of PARUS, which says nothing else.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use hopmap_model::{DelayModel, Error, Schedule, ScheduledTask};

use super::program::{CheckError, Program};
use crate::export::sch::node_numbers;
use crate::formats::MOST_BYTES;
use crate::formats::sch::Sch;

/// Tasks of a cycle that are named.
const MOST_NAMED: usize = 12;
const ANOTHER_GRAPH: &str = "the `.sch` is for another graph: import the `.grf` that it was made from";

/// When every task runs at the earliest, if the tasks of each processor run in this order. Fails if that is no order in which they can.
pub(super) fn earliest_times(
    program: &Program<'_>,
    turns: &[Vec<u32>],
) -> Result<Vec<ScheduledTask>, CheckError> {
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

/// Sets when a task runs, as all that it waits for is settled.
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

/// From when on a task may begin as far as each message to it goes, with the task that sends it.
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

/// How long a task keeps its processor.
pub(super) fn takes(program: &Program<'_>, task: u32, on: &dyn Fn(u32) -> u32) -> f64 {
    let work = program.work(task, on(task));
    match program.model {
        DelayModel::Overlap => work,
        DelayModel::Receive => program.receives(task, on) + work,
    }
}

/// Some tasks that wait for each other: going back from one that still waits to another that does comes round.
fn report_cycle(program: &Program<'_>, waiting: &[usize], before: &[Option<u32>]) -> CheckError {
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
    let names: Vec<String> =
        path.iter().take(MOST_NAMED).map(|&task| format!("`{}`", program.dag.name(task))).collect();
    let more = if path.len() > MOST_NAMED { ", and so on" } else { "" };
    CheckError::new(
        format!(
            "the order cannot be kept: tasks {}{more} wait for each other, each for the one before it and the first for the last",
            names.join(", ")
        ),
        "on its processor a task stands before one that it waits for, by way of others: the schedule is for another graph, or was changed",
    )
}

/// The schedule in a file, with the earliest times.
pub(super) fn read_sch(program: &Program<'_>, path: &Path) -> Result<Schedule, Error> {
    let bytes = hopmap_text::read(path, MOST_BYTES)?;
    let sch = Sch::read(&bytes).map_err(|error| error.in_file(path))?;
    Ok(schedule_of_sch(program, &sch)?)
}

/// The schedule with the earliest times.
pub(super) fn schedule_of_sch(program: &Program<'_>, sch: &Sch) -> Result<Schedule, CheckError> {
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
fn turns_of_sch(program: &Program<'_>, sch: &Sch) -> Result<Vec<Vec<u32>>, CheckError> {
    let processors = program.machine.processors.len();
    let numbers = node_numbers(&program.dag.names, program.dag.tasks.len());
    let mut task_of: HashMap<u64, u32> = numbers.iter().copied().zip(0..).collect();
    let mut turns = vec![None; processors];
    for processor in &sch.processors {
        let index = processor.name.checked_sub(1).filter(|&index| index < processors as u64);
        let Some(turns) = index.and_then(|index| turns.get_mut(index as usize)) else {
            return Err(CheckError::new(
                format!(
                    "there is no processor {}: the machine has {processors}, counted from 1",
                    processor.name
                ),
                "describe the machine that the `.sch` was made for with `processors`, `procs`, `network` or a `system`; \
                 process 0 of PARUS is its coordinator and runs no task (`coordinator = true`)",
            ));
        };
        let mut tasks = Vec::with_capacity(processor.nodes.len());
        for node in &processor.nodes {
            let task = task_of.remove(node).ok_or_else(|| match numbers.contains(node) {
                true => CheckError::new(format!("node {node} stands twice in the schedule"), ANOTHER_GRAPH),
                false => CheckError::new(
                    format!("node {node} of the schedule is no task of the program"),
                    ANOTHER_GRAPH,
                ),
            })?;
            tasks.push(task);
        }
        if turns.replace(tasks).is_some() {
            return Err(CheckError::new(
                format!("processor {} stands twice in the schedule", processor.name),
                "leave one of them out, or give it another name",
            ));
        }
    }
    match task_of.values().min() {
        Some(&task) => Err(CheckError::new(
            format!("{} is not in the schedule{}", program.name(task), others(task_of.len() - 1)),
            ANOTHER_GRAPH,
        )),
        None => Ok(turns.into_iter().map(Option::unwrap_or_default).collect()),
    }
}

fn others(count: usize) -> String {
    if count == 0 { String::new() } else { format!(", nor are {count} others") }
}
