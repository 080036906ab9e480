//! The earliest times of tasks whose processors and turns are settled.

use hopmap_model::{DelayModel, ScheduledTask};

use super::CheckError;
use super::program::Program;

/// Tasks of a circle that are named.
const MOST_NAMED: usize = 12;

/// When every task runs at the earliest, if the tasks of each processor run in this order. Fails if that is no order in which they can.
pub(super) fn earliest(program: &Program<'_>, turns: &[Vec<u32>]) -> Result<Vec<ScheduledTask>, CheckError> {
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
        begin(program, &mut tasks, task, before[index]);
        let messages = &program.dag.dependencies[starts[index]..starts[index + 1]];
        for next in messages.iter().map(|message| message.destination).chain(after[index]) {
            waiting[next as usize] -= 1;
            if waiting[next as usize] == 0 {
                ready.push(next);
            }
        }
    }
    if done == count { Ok(tasks) } else { Err(circle(program, &waiting, &before)) }
}

/// Settles when a task runs, as all that it waits for is settled.
fn begin(program: &Program<'_>, tasks: &mut [ScheduledTask], task: u32, before: Option<u32>) {
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
fn circle(program: &Program<'_>, waiting: &[usize], before: &[Option<u32>]) -> CheckError {
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
