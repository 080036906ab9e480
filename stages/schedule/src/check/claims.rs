//! What a schedule claims: where and when its tasks run, and how good it is.

use std::collections::HashMap;

use hopmap_model::{Error, Schedule, ScheduledTask};

use super::order::{arrivals, earliest_times, takes};
use super::parus_order::accepts;
use super::program::{ANOTHER, CheckError, Program, transfer};

const BROKEN: &str = "the schedule is wrong: it was changed, or whatever made it has a defect";

/// Checks when and where tasks run.
pub(super) fn check(program: &Program<'_>, schedule: &Schedule) -> Result<(), CheckError> {
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
fn check_origin(program: &Program<'_>, schedule: &Schedule) -> Result<(), CheckError> {
    let (tasks, there) = (schedule.tasks.len(), program.dag.tasks.len());
    if tasks != there {
        return Err(CheckError::new(
            format!("the schedule has {tasks} tasks and the program {there}"),
            ANOTHER,
        ));
    }
    if schedule.names != program.dag.names {
        let differs = |&task: &u32| schedule.name(task) != program.dag.name(task);
        let task = (0..tasks as u32).find(differs).unwrap_or_default();
        return Err(CheckError::new(
            format!(
                "{} of the program is task `{}` of the schedule",
                program.name(task),
                schedule.name(task)
            ),
            ANOTHER,
        ));
    }
    let of_another = |&(task, rank): &(u32, Option<u32>)| schedule.tasks[task as usize].process != rank;
    match (0..).zip(program.dag.tasks.iter().map(|task| task.rank)).find(of_another) {
        Some((task, _)) => Err(CheckError::new(
            format!("{} belongs to another rank in the schedule than in the program", program.name(task)),
            ANOTHER,
        )),
        None => Ok(()),
    }
}

/// Checks that the schedule is for this machine.
fn check_machine(program: &Program<'_>, schedule: &Schedule) -> Result<(), CheckError> {
    if schedule.model != program.model {
        return Err(CheckError::new(
            format!(
                "the schedule is of the model `{}`, and is checked by `{}`",
                schedule.model.name(),
                program.model.name()
            ),
            "give `model` the same value in both stages",
        ));
    }
    let (processors, there) = (schedule.processors.len(), program.machine.processors.len());
    if processors != there {
        return Err(CheckError::new(
            format!("the schedule has {processors} processors and the machine {there}"),
            ANOTHER,
        ));
    }
    for (own, other) in schedule.processors.iter().zip(&program.machine.processors) {
        if own.name != other.name {
            let problem =
                format!("processor `{}` of the machine is `{}` in the schedule", other.name, own.name);
            return Err(CheckError::new(problem, ANOTHER));
        }
        let apart = own.available - other.available;
        if apart.is_nan() || apart.abs() > program.tolerance() {
            let problem = format!(
                "processor `{}` is available from {} in the schedule, and from {} in truth",
                own.name, own.available, other.available
            );
            return Err(CheckError::new(problem, "give `available` the same values in both stages"));
        }
    }
    Ok(())
}

fn check_times(program: &Program<'_>, schedule: &Schedule, task: u32) -> Result<(), CheckError> {
    let ScheduledTask { processor, start, finish, .. } = schedule.tasks[task as usize];
    let Some(there) = program.machine.processors.get(processor as usize) else {
        let problem = format!(
            "{} runs on processor {processor}, counted from 0, and there are {}",
            program.name(task),
            schedule.processors.len()
        );
        return Err(CheckError::new(problem, ANOTHER));
    };
    if !(start.is_finite() && finish.is_finite()) {
        return Err(CheckError::new(format!("{} runs from {start} to {finish}", program.name(task)), BROKEN));
    }
    if start < there.available - program.tolerance() {
        let problem = format!(
            "{} begins at {start}, before its processor `{}` is available at {}",
            program.name(task),
            there.name,
            there.available
        );
        return Err(CheckError::new(problem, BROKEN));
    }
    Ok(())
}

/// Checks that the tasks of every processor count their turns and run one after the other, and tells the one before each.
fn check_turns(program: &Program<'_>, schedule: &Schedule) -> Result<Vec<Option<u32>>, CheckError> {
    let mut turns: Vec<Vec<u32>> = vec![Vec::new(); schedule.processors.len()];
    for (number, task) in (0..).zip(&schedule.tasks) {
        turns[task.processor as usize].push(number);
    }
    let mut before = vec![None; schedule.tasks.len()];
    for tasks in &mut turns {
        tasks.sort_by_key(|&task| schedule.tasks[task as usize].turn);
        for (turn, &task) in (0..).zip(tasks.iter()) {
            let claimed = schedule.tasks[task as usize].turn;
            if claimed != turn {
                let problem = format!(
                    "{} has turn {claimed} on its processor, and turn {turn} is nobody's",
                    program.name(task)
                );
                return Err(CheckError::new(problem, BROKEN));
            }
        }
        for pair in tasks.windows(2) {
            let [first, second] = [pair[0], pair[1]].map(|task| &schedule.tasks[task as usize]);
            if second.start < first.finish - program.tolerance() {
                let problem = format!(
                    "{} begins at {} while {}, whose turn is before it on the same processor, runs until {}",
                    program.name(pair[1]),
                    second.start,
                    program.name(pair[0]),
                    first.finish
                );
                return Err(CheckError::new(problem, BROKEN));
            }
            before[pair[1] as usize] = Some(pair[0]);
        }
    }
    Ok(before)
}

/// Checks that a task waits for its messages, takes its time, and says truly what it waits for.
fn check_task(
    program: &Program<'_>,
    tasks: &[ScheduledTask],
    task: u32,
    before: Option<u32>,
) -> Result<(), CheckError> {
    let scheduled = &tasks[task as usize];
    let tolerance = program.tolerance();
    if let Some((source, time)) =
        arrivals(program, tasks, task).find(|(_, time)| scheduled.start < time - tolerance)
    {
        let problem = format!(
            "{} begins at {}, and may not before {time} because of {}",
            program.name(task),
            scheduled.start,
            program.name(source)
        );
        return Err(CheckError::new(problem, BROKEN));
    }
    let takes = takes(program, task, &|task| tasks[task as usize].processor);
    if (scheduled.finish - scheduled.start - takes).abs() > tolerance {
        let problem = format!(
            "{} takes {takes}, and runs from {} to {}",
            program.name(task),
            scheduled.start,
            scheduled.finish
        );
        return Err(CheckError::new(problem, BROKEN));
    }
    check_cause(program, tasks, task, before)
}

/// A task that begins when its processor or something else lets it says so; one that begins later waits for nothing.
fn check_cause(
    program: &Program<'_>,
    tasks: &[ScheduledTask],
    task: u32,
    before: Option<u32>,
) -> Result<(), CheckError> {
    let ScheduledTask { start, processor, waits_for, .. } = tasks[task as usize];
    let turn = before.map(|before| (before, tasks[before as usize].finish));
    let mut causes = arrivals(program, tasks, task).chain(turn);
    let is_now = |time: f64| (start - time).abs() <= program.tolerance();
    match waits_for {
        Some(claimed) if !causes.any(|(cause, time)| cause == claimed && is_now(time)) => {
            let claimed = match program.dag.tasks.get(claimed as usize) {
                Some(_) => program.name(claimed),
                None => format!("task {claimed}, which there is none of"),
            };
            let problem = format!(
                "{} begins at {start}, and that it waits until then for {claimed} is not true",
                program.name(task)
            );
            Err(CheckError::new(problem, BROKEN))
        }
        None if !is_now(program.machine.processors[processor as usize].available) => {
            match causes.find(|(_, time)| is_now(*time)) {
                Some((cause, _)) => {
                    let problem = format!(
                        "{} begins at {start} because of {}, and says that it waits for nothing",
                        program.name(task),
                        program.name(cause)
                    );
                    Err(CheckError::new(problem, BROKEN))
                }
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Checks that all tasks of a rank run on a processor that no other rank has.
pub(super) fn check_ranks(program: &Program<'_>, schedule: &Schedule) -> Result<(), CheckError> {
    const HELP: &str = "use `ranks = \"free\"` if tasks may run where they like";
    let mut processor_of: HashMap<u32, u32> = HashMap::new();
    let mut rank_on: HashMap<u32, u32> = HashMap::new();
    for (number, (task, scheduled)) in (0..).zip(program.dag.tasks.iter().zip(&schedule.tasks)) {
        let Some(rank) = task.rank else { continue };
        let processor = scheduled.processor;
        let (own, there) =
            (*processor_of.entry(rank).or_insert(processor), *rank_on.entry(processor).or_insert(rank));
        let name = |index: u32| schedule.processors[index as usize].name.as_str();
        let problem = if own != processor {
            format!(
                "{} of rank {rank} runs on `{}`, and others of the rank on `{}`",
                program.name(number),
                name(processor),
                name(own)
            )
        } else if there != rank {
            format!(
                "{} of rank {rank} runs on `{}`, as rank {there} does",
                program.name(number),
                name(processor)
            )
        } else {
            continue;
        };
        return Err(CheckError::new(problem, HELP));
    }
    Ok(())
}

/// Checks what is claimed of the schedule as a whole.
pub(super) fn check_metrics(
    program: &Program<'_>,
    schedule: &Schedule,
    measures: &Measures,
) -> Result<(), CheckError> {
    let claimed = |name: &str| schedule.metrics.get(name).copied();
    let differ = |a: f64, b: f64| a.is_nan() || (a - b).abs() > program.tolerance().max(1e-9 * b.abs());
    for (name, found) in measures.metrics() {
        if let Some(claimed) = claimed(name).filter(|claimed| differ(*claimed, found)) {
            return Err(CheckError::new(format!("{name} is said to be {claimed} and is {found}"), BROKEN));
        }
    }
    let makespan = measures.makespan;
    let Some(bound) = claimed("lower_bound") else {
        return match claimed("proven") {
            Some(proven) if proven > 0.0 => {
                Err(CheckError::new("the schedule is said to be optimal without a lower bound", BROKEN))
            }
            _ => Ok(()),
        };
    };
    if bound.is_nan() || bound > makespan + program.tolerance() {
        let problem =
            format!("the lower bound is said to be {bound}, and the makespan is {makespan}, below it");
        return Err(CheckError::new(problem, BROKEN));
    }
    if claimed("proven").is_some_and(|proven| proven > 0.0) && bound < makespan - program.tolerance() {
        let problem = format!(
            "the schedule is said to be optimal, but the lower bound {bound} is below the makespan {makespan}"
        );
        return Err(CheckError::new(problem, BROKEN));
    }
    match claimed("gap") {
        Some(gap) if bound > 0.0 && differ(gap, (makespan - bound) / bound) => Err(CheckError::new(
            format!("the gap is said to be {gap} and is {}", (makespan - bound) / bound),
            BROKEN,
        )),
        _ => Ok(()),
    }
}

/// What is measured of a schedule.
pub(super) struct Measures {
    /// When the last task is done.
    pub(super) makespan: f64,
    /// When it would be done if every task began as early as the turns let it.
    earliest_makespan: f64,
    /// The share of time in which processors idle between when they can begin and the makespan.
    idle: f64,
    /// What PARUS takes for the makespan: the most that any processor computes and receives, without any waiting.
    parus_time: f64,
    /// Whether `check_schedule` of PARUS takes the order.
    parus_accepts: bool,
    /// Number of tasks on the critical path.
    critical_tasks: f64,
    /// How long they compute, without what they receive.
    critical_work: f64,
}

impl Measures {
    /// Measures a schedule of which everything else was checked.
    pub(super) fn new(program: &Program<'_>, schedule: &Schedule) -> Result<Self, Error> {
        // Before the critical path is followed: tasks without work could wait for each other in a cycle.
        schedule.check()?;
        let earliest = earliest_times(program, &schedule.turns())?;
        let path = schedule.critical_path();
        let on = |task: &u32| schedule.tasks[*task as usize].processor;
        let idle = schedule.idle();
        let makespan = schedule.makespan();
        let earliest_makespan = earliest.iter().map(|task| task.finish).fold(0.0, f64::max);
        // Here times are added up in doubles along whole paths, and not in ticks.
        let is_same = (earliest_makespan - makespan).abs() <= 1e-9 * makespan;
        Ok(Self {
            makespan,
            earliest_makespan: if is_same { makespan } else { earliest_makespan },
            idle: idle.iter().sum::<f64>() / idle.len().max(1) as f64,
            parus_time: parus_time(program, schedule),
            parus_accepts: accepts(program.dag, &schedule.turns()),
            critical_tasks: path.len() as f64,
            critical_work: path.iter().map(|task| program.work(*task, on(task))).sum(),
        })
    }

    pub(super) fn metrics(&self) -> [(&'static str, f64); 7] {
        [
            ("makespan", self.makespan),
            ("earliest_makespan", self.earliest_makespan),
            ("idle", self.idle),
            ("parus_time", self.parus_time),
            ("parus_accepts", f64::from(u8::from(self.parus_accepts))),
            ("critical_tasks", self.critical_tasks),
            ("critical_work", self.critical_work),
        ]
    }

    /// What people want to know of it.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "makespan {}, {:.2} % idle, {} tasks on the critical path; PARUS would say {}",
            self.makespan,
            100.0 * self.idle,
            self.critical_tasks,
            self.parus_time
        )];
        if self.earliest_makespan < self.makespan {
            lines.push(format!(
                "tasks begin later than they have to: in the same order the makespan could be {}",
                self.earliest_makespan
            ));
        }
        lines
    }

    /// The schedule with these metrics beside those that it has.
    pub(super) fn written_into(&self, mut schedule: Schedule) -> Schedule {
        schedule.metrics.extend(self.metrics().map(|(name, value)| (name.to_owned(), value)));
        schedule
    }
}

/// PARUS adds up, for every processor, what its tasks compute and receive, and never waits for what is on other processors.
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
