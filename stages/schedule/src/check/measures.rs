//! How good a schedule is.

use hopmap_model::{Error, Schedule};

use super::order;
use super::parus_order::accepts;
use super::program::{Program, transfer};

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
        // Before the critical path is followed: tasks without work could wait for each other in a circle.
        schedule.check()?;
        let earliest = order::earliest(program, &schedule.turns())?;
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
