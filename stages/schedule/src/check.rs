//! Recomputes schedules; shares no code with the schedulers.
//!
//! Times are doubles in the units of the program, while schedulers count in ticks, a power of ten per unit. If all times of the
//! problem are integers, so are the ticks, and no difference is allowed. Otherwise every number of a schedule may differ by one
//! tick: see [`Program::tolerance`](program::Program::tolerance).

mod parus_order;
mod program;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use hopmap_model::{Context, DelayModel, Error, Schedule, ScheduledTask, TaskDag};
use hopmap_replay::Machine;
use hopmap_text::decimal;

use crate::error::{InvalidInput, invalid};
use crate::params::{CheckParams, MachineParams, Ranks};
pub(crate) use parus_order::{KIND, accepts};
use program::{Program, arrivals, earliest_times, read_sch, takes, transfer};

const BROKEN: &str = "the schedule is invalid: it was modified, or its scheduler has a bug";
const ANOTHER: &str = "connect the program and the machine of the schedule, with the same parameters";

/// Recomputes the times of the schedule in the parameters' file or of the given one; fails if it is invalid.
pub fn check(
    dag: &TaskDag,
    machine: &Machine,
    params: &CheckParams,
    given: Option<&Schedule>,
    cx: &Context<'_>,
) -> Result<Schedule, Error> {
    let program = Program::new(dag, machine, MachineParams::from(params).delay_model());
    let mut schedule = match (given, &params.path) {
        (Some(_), Some(_)) => {
            return invalid("a `schedule` cannot be combined with a `path`", "omit one of them");
        }
        (None, None) => {
            let help = "connect a `schedule`, or set `path` to a `.sch` file";
            return invalid("there is no schedule to check", help);
        }
        (None, Some(file)) => read_sch(&program, file.path())?,
        (Some(given), None) => {
            check_claims(&program, given)?;
            given.clone()
        }
    };
    let are_together = params.ranks == Ranks::Together;
    if params.parus_order {
        let stays = are_together && dag.tasks.iter().any(|task| task.rank.is_some());
        schedule = parus_order::ordered(&program, schedule, stays, cx);
    }
    if are_together {
        check_ranks(&program, &schedule)?;
    }
    let measured = measure(&program, &schedule)?;
    check_metrics(&program, &schedule, &measured)?;
    schedule.metrics.extend(measured.map(|(name, value)| (name.to_owned(), value)));
    let metric = |name: &str| schedule.metrics[name];
    let [makespan, earliest] = ["makespan", "earliest_makespan"].map(metric);
    // Only who comes from PARUS knows its sums.
    let is_parus = params.procs.is_some() || params.network.is_some() || params.path.is_some();
    let parus = match is_parus || params.parus_order {
        true => format!("; PARUS would report {}", decimal(metric("parus_time"))),
        false => String::new(),
    };
    cx.log(format_args!(
        "makespan {}, {:.2} % idle, {} tasks on the critical path{parus}",
        decimal(makespan),
        100.0 * metric("idle"),
        metric("critical_tasks"),
    ));
    if earliest < makespan {
        cx.log(format_args!(
            "tasks start later than necessary: the makespan of the same order can be {}",
            decimal(earliest)
        ));
    }
    Ok(schedule)
}

/// Checks processors and times of tasks.
fn check_claims(program: &Program<'_>, schedule: &Schedule) -> Result<(), InvalidInput> {
    check_origin(program, schedule)?;
    check_machine(program, schedule)?;
    for task in 0..schedule.tasks.len() as u32 {
        check_times(program, schedule, task)?;
    }
    let before = check_turns(program, schedule)?;
    for (task, before) in (0..).zip(before) {
        check_task(program, &schedule.tasks, task, before)?;
    }
    Ok(())
}

/// Checks that the schedule is of this program.
fn check_origin(program: &Program<'_>, schedule: &Schedule) -> Result<(), InvalidInput> {
    let (tasks, there) = (schedule.tasks.len(), program.dag.tasks.len());
    if tasks != there {
        return invalid(format!("the schedule has {tasks} tasks, but the program has {there}"), ANOTHER);
    }
    if schedule.names != program.dag.names {
        let differs = |&task: &u32| schedule.name(task) != program.dag.name(task);
        let task = (0..tasks as u32).find(differs).unwrap_or_default();
        let (own, other) = (program.name(task), schedule.name(task));
        return invalid(format!("{own} of the program is task `{other}` in the schedule"), ANOTHER);
    }
    let mut ranks = program.dag.tasks.iter().map(|task| task.rank).zip(&schedule.tasks);
    match ranks.position(|(rank, scheduled)| scheduled.process != rank) {
        Some(task) => {
            let name = program.name(task as u32);
            invalid(format!("{name} belongs to another rank in the schedule than in the program"), ANOTHER)
        }
        None => Ok(()),
    }
}

/// Checks that the schedule is for this machine.
fn check_machine(program: &Program<'_>, schedule: &Schedule) -> Result<(), InvalidInput> {
    if schedule.model != program.model {
        let [own, other] = [schedule.model, program.model].map(DelayModel::name);
        let help = "use the same `model` in both stages";
        return invalid(format!("the schedule uses the model `{own}`, but the check uses `{other}`"), help);
    }
    let (processors, there) = (schedule.processors.len(), program.machine.processors.len());
    if processors != there {
        return invalid(
            format!("the schedule has {processors} processors, but the machine has {there}"),
            ANOTHER,
        );
    }
    for (own, other) in schedule.processors.iter().zip(&program.machine.processors) {
        let name = &own.name;
        if *name != other.name {
            let problem = format!("processor `{}` of the machine is `{name}` in the schedule", other.name);
            return invalid(problem, ANOTHER);
        }
        let (own, other) = (own.available, other.available);
        let apart = own - other;
        if apart.is_nan() || apart.abs() > program.tolerance {
            let problem = format!(
                "processor `{name}` is available from {own} in the schedule, but from {other} on the machine"
            );
            return invalid(problem, "use the same `available` in both stages");
        }
    }
    Ok(())
}

fn check_times(program: &Program<'_>, schedule: &Schedule, task: u32) -> Result<(), InvalidInput> {
    let ScheduledTask { processor, start, finish, .. } = schedule.tasks[task as usize];
    let name = program.name(task);
    let Some(there) = program.machine.processors.get(processor as usize) else {
        let count = schedule.processors.len();
        let problem =
            format!("{name} runs on processor {processor} (counted from 0), but there are only {count}");
        return invalid(problem, ANOTHER);
    };
    if !(start.is_finite() && finish.is_finite()) {
        return invalid(format!("{name} runs from {start} to {finish}"), BROKEN);
    }
    if start < there.available - program.tolerance {
        let (there, available) = (&there.name, there.available);
        let problem =
            format!("{name} starts at {start}, but its processor `{there}` is available only at {available}");
        return invalid(problem, BROKEN);
    }
    Ok(())
}

/// Checks that tasks on every processor have consecutive turns and do not overlap; passes the predecessor to each.
fn check_turns(program: &Program<'_>, schedule: &Schedule) -> Result<Vec<Option<u32>>, InvalidInput> {
    let mut before = vec![None; schedule.tasks.len()];
    for tasks in schedule.turns() {
        for (turn, &task) in (0..).zip(&tasks) {
            let claimed = schedule.tasks[task as usize].turn;
            if claimed != turn {
                let name = program.name(task);
                let problem =
                    format!("{name} has turn {claimed} on its processor, but no task has turn {turn}");
                return invalid(problem, BROKEN);
            }
        }
        for pair in tasks.windows(2) {
            let start = schedule.tasks[pair[1] as usize].start;
            let finish = schedule.tasks[pair[0] as usize].finish;
            if start < finish - program.tolerance {
                let [first, second] = [pair[0], pair[1]].map(|task| program.name(task));
                let problem = format!(
                    "{second} starts at {start}, but {first}, the previous task on the same processor, runs until {finish}"
                );
                return invalid(problem, BROKEN);
            }
            before[pair[1] as usize] = Some(pair[0]);
        }
    }
    Ok(before)
}

/// Checks start times, durations and the stated cause of each start. A task that starts as soon as its processor or a message
/// allows must name that cause; a task that starts later must name none.
fn check_task(
    program: &Program<'_>,
    tasks: &[ScheduledTask],
    task: u32,
    before: Option<u32>,
) -> Result<(), InvalidInput> {
    let ScheduledTask { start, finish, processor, waits_for, .. } = tasks[task as usize];
    let (name, tolerance) = (program.name(task), program.tolerance);
    if let Some((source, time)) = arrivals(program, tasks, task).find(|(_, time)| start < time - tolerance) {
        let source = program.name(source);
        let problem = format!("{name} starts at {start}, but {source} allows no start before {time}");
        return invalid(problem, BROKEN);
    }
    let takes = takes(program, task, &|task| tasks[task as usize].processor);
    if (finish - start - takes).abs() > tolerance {
        return invalid(format!("{name} takes {takes}, but runs from {start} to {finish}"), BROKEN);
    }
    let turn = before.map(|before| (before, tasks[before as usize].finish));
    let mut causes = arrivals(program, tasks, task).chain(turn);
    let is_now = |time: f64| (start - time).abs() <= tolerance;
    match waits_for {
        Some(claimed) if !causes.any(|(cause, time)| cause == claimed && is_now(time)) => {
            let claimed = match program.dag.tasks.get(claimed as usize) {
                Some(_) => program.name(claimed).to_string(),
                None => format!("task {claimed}, which does not exist"),
            };
            let problem = format!("{name} starts at {start}, but it does not wait until then for {claimed}");
            invalid(problem, BROKEN)
        }
        None if !is_now(program.machine.processors[processor as usize].available) => {
            let Some((cause, _)) = causes.find(|(_, time)| is_now(*time)) else { return Ok(()) };
            let cause = program.name(cause);
            let problem = format!("{name} starts at {start} because of {cause}, but names no cause");
            invalid(problem, BROKEN)
        }
        _ => Ok(()),
    }
}

/// Checks that all tasks of a rank run on a processor that no other rank uses.
fn check_ranks(program: &Program<'_>, schedule: &Schedule) -> Result<(), InvalidInput> {
    let mut processor_of: HashMap<u32, u32> = HashMap::new();
    let mut rank_on: HashMap<u32, u32> = HashMap::new();
    for (number, (task, scheduled)) in (0..).zip(program.dag.tasks.iter().zip(&schedule.tasks)) {
        let Some(rank) = task.rank else { continue };
        let processor = scheduled.processor;
        let own = *processor_of.entry(rank).or_insert(processor);
        let there = *rank_on.entry(processor).or_insert(rank);
        let [on, other] = [processor, own].map(|one| schedule.processors[one as usize].name.as_str());
        let what = if own != processor {
            format!("; other tasks of the rank run on `{other}`")
        } else if there != rank {
            format!(", which rank {there} also uses")
        } else {
            continue;
        };
        let problem = format!("{} of rank {rank} runs on `{on}`{what}", program.name(number));
        return invalid(problem, "use `ranks = \"free\"` if tasks may run on any processor");
    }
    Ok(())
}

/// Checks the claimed metrics of the schedule.
fn check_metrics(
    program: &Program<'_>,
    schedule: &Schedule,
    measured: &[(&str, f64)],
) -> Result<(), InvalidInput> {
    let claimed = |name: &str| schedule.metrics.get(name).copied();
    let differ = |a: f64, b: f64| a.is_nan() || (a - b).abs() > program.tolerance.max(1e-9 * b.abs());
    for &(name, found) in measured {
        if let Some(claimed) = claimed(name).filter(|claimed| differ(*claimed, found)) {
            return invalid(format!("the claimed {name} is {claimed}, but its value is {found}"), BROKEN);
        }
    }
    let makespan = schedule.makespan();
    let is_proven = claimed("proven").is_some_and(|proven| proven > 0.0);
    let Some(bound) = claimed("lower_bound") else {
        return match is_proven {
            true => invalid("the schedule claims to be optimal without a lower bound", BROKEN),
            false => Ok(()),
        };
    };
    if bound.is_nan() || bound > makespan + program.tolerance {
        let problem = format!("the claimed lower bound {bound} is invalid: the makespan is {makespan}");
        return invalid(problem, BROKEN);
    }
    if is_proven && bound < makespan - program.tolerance {
        let problem = format!(
            "the schedule claims to be optimal, but the lower bound {bound} is below the makespan {makespan}"
        );
        return invalid(problem, BROKEN);
    }
    let gap = (makespan - bound) / bound;
    match claimed("gap").filter(|claimed| bound > 0.0 && differ(*claimed, gap)) {
        Some(claimed) => invalid(format!("the claimed gap is {claimed}, but its value is {gap}"), BROKEN),
        None => Ok(()),
    }
}

/// Metrics of a schedule that passed the other checks, by name. `parus_time` is the makespan that PARUS reports; `critical_work`
/// is the computing time of the critical path, without receiving.
fn measure(program: &Program<'_>, schedule: &Schedule) -> Result<[(&'static str, f64); 7], Error> {
    // Before the critical path is followed: tasks without work could form a cycle.
    schedule.check()?;
    let turns = schedule.turns();
    let earliest = earliest_times(program, &turns)?;
    let path = schedule.critical_path();
    let work = |task: &u32| program.work(*task, schedule.tasks[*task as usize].processor);
    let idle = schedule.idle();
    let makespan = schedule.makespan();
    let earliest = earliest.iter().map(|task| task.finish).fold(0.0, f64::max);
    // Sums of doubles along complete paths, not of ticks.
    let is_same = (earliest - makespan).abs() <= 1e-9 * makespan;
    Ok([
        ("makespan", makespan),
        ("earliest_makespan", if is_same { makespan } else { earliest }),
        ("idle", idle.iter().sum::<f64>() / idle.len().max(1) as f64),
        ("parus_time", parus_time(program, schedule)),
        ("parus_accepts", f64::from(u8::from(accepts(program.dag, &turns)))),
        ("critical_tasks", path.len() as f64),
        ("critical_work", path.iter().map(work).sum()),
    ])
}

/// PARUS sums computing and receiving times per processor, and ignores waiting for other processors.
fn parus_time(program: &Program<'_>, schedule: &Schedule) -> f64 {
    let mut busy = vec![0.0f64; schedule.processors.len()];
    for (number, task) in (0..).zip(&schedule.tasks) {
        let times = program.messages(number).iter().map(|message| {
            let from = schedule.tasks[message.source as usize].processor;
            transfer(program.machine, message.bytes, from, task.processor)
        });
        busy[task.processor as usize] += program.work(number, task.processor) + times.fold(0.0, f64::max);
    }
    busy.into_iter().fold(0.0, f64::max)
}
