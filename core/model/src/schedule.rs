//! The schedule: start, finish and processor of every task.

use std::collections::BTreeMap;

use miette::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mapping::ConvergencePoint;
use crate::stage::Artifact;

/// Start, finish and processor of every task of a program.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Schedule {
    /// The scheduled tasks; the index is the number of the task.
    pub tasks: Vec<ScheduledTask>,
    /// The processors.
    pub processors: Vec<Processor>,
    /// Names of the tasks; empty if they have numbers only.
    pub names: Vec<String>,
    /// Cost model of messages.
    pub model: DelayModel,
    /// Quality metrics by name, such as `makespan`.
    pub metrics: BTreeMap<String, f64>,
    /// The best makespan during the search.
    pub convergence: Vec<ConvergencePoint>,
    /// Whether the search ended by itself.
    pub complete: bool,
}

/// A scheduled task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScheduledTask {
    /// Index into [`Schedule::processors`].
    pub processor: u32,
    /// Position in the order of the processor, from 0: the rank in PARUS.
    pub turn: u32,
    /// When it begins.
    pub start: f64,
    /// When it is done.
    pub finish: f64,
    /// The critical predecessor, without which it could have started earlier: the previous task on the
    /// processor, or a sender.
    pub waits_for: Option<u32>,
    /// Process of the program, if assigned.
    pub process: Option<u32>,
}

/// A unit that runs one task at a time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Processor {
    /// The name.
    pub name: String,
    /// Time from which it is available.
    pub available: f64,
    /// Its slot of the machine, if there is a machine.
    pub slot: Option<u32>,
}

crate::named_values! {
    /// Cost model of messages between tasks.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum DelayModel {
        /// A task starts when all its messages have arrived. Messages between processors overlap with
        /// computation; messages within a processor take no time. The classic delay model.
        #[default]
        Overlap = "overlap",
        /// A task starts when all its predecessors have finished. Its processor first receives, for as long as
        /// the longest message takes, and then computes. The model of PARUS.
        Receive = "receive",
    }
}

impl Schedule {
    /// Finish time of the last task.
    #[must_use]
    pub fn makespan(&self) -> f64 {
        self.tasks.iter().map(|task| task.finish).fold(0.0, f64::max)
    }

    /// The tasks of each processor in order.
    #[must_use]
    pub fn turns(&self) -> Vec<Vec<u32>> {
        let mut turns = vec![Vec::new(); self.processors.len()];
        for (number, task) in (0..).zip(&self.tasks) {
            turns[task.processor as usize].push(number);
        }
        for tasks in &mut turns {
            tasks.sort_by_key(|&task| self.tasks[task as usize].turn);
        }
        turns
    }

    /// For each task its position among the tasks of its process, from 0 (the segment of a trace); `None`
    /// without a process.
    #[must_use]
    pub fn segments(&self) -> Vec<Option<u32>> {
        let mut segments = vec![None; self.tasks.len()];
        let mut next: BTreeMap<u32, u32> = BTreeMap::new();
        for task in self.turns().into_iter().flatten() {
            if let Some(process) = self.tasks[task as usize].process {
                let segment = next.entry(process).or_default();
                segments[task as usize] = Some(*segment);
                *segment += 1;
            }
        }
        segments
    }

    /// The critical path, first to last: none of its tasks can start or finish later without delaying the
    /// last one.
    #[must_use]
    pub fn critical_path(&self) -> Vec<u32> {
        let last = (0..self.tasks.len() as u32)
            .rev()
            .max_by(|&a, &b| self.tasks[a as usize].finish.total_cmp(&self.tasks[b as usize].finish));
        let mut path: Vec<u32> = last.into_iter().collect();
        while let Some(before) = path.last().and_then(|&task| self.tasks[task as usize].waits_for) {
            path.push(before);
        }
        path.reverse();
        path
    }

    /// Idle fraction of each processor between its availability and the makespan; `None` if that interval is
    /// empty.
    #[must_use]
    pub fn idle(&self) -> Vec<f64> {
        let makespan = self.makespan();
        let mut idle: Vec<f64> =
            self.processors.iter().map(|processor| (makespan - processor.available).max(0.0)).collect();
        for task in &self.tasks {
            idle[task.processor as usize] -= task.finish - task.start;
        }
        for (idle, processor) in idle.iter_mut().zip(&self.processors) {
            let there = makespan - processor.available;
            *idle = if there > 0.0 { (*idle / there).clamp(0.0, 1.0) } else { 0.0 };
        }
        idle
    }

    /// Display name of a task: its name, otherwise its number.
    #[must_use]
    pub fn name(&self, task: u32) -> String {
        self.names.get(task as usize).cloned().unwrap_or_else(|| task.to_string())
    }

    /// Checks that tasks run on existing processors, one at a time in their order and not before the
    /// processor is available, and that critical predecessors finish first.
    pub fn check(&self) -> Result<(), ScheduleError> {
        if !self.names.is_empty() && self.names.len() != self.tasks.len() {
            return Err(ScheduleError::Names { names: self.names.len(), tasks: self.tasks.len() });
        }
        let processors = self.processors.len();
        for (task, scheduled) in (0..).zip(&self.tasks) {
            let ScheduledTask { processor, start, finish, waits_for, .. } = *scheduled;
            if processor as usize >= processors {
                return Err(ScheduleError::NoSuchProcessor { task, processor, processors });
            }
            let begins = self.processors[processor as usize].available;
            if !(start.is_finite() && finish.is_finite() && begins <= start && start <= finish) {
                return Err(ScheduleError::Times { task, start, finish });
            }
            if let Some(before) = waits_for
                && self.tasks.get(before as usize).is_none_or(|before| before.finish > start)
            {
                return Err(ScheduleError::WaitsForLater { task, before });
            }
        }
        self.check_turns()?;
        // Tasks without work may start and finish at the same time; only these could wait for each other.
        let mut steps = vec![0u8; self.tasks.len()];
        for first in 0..self.tasks.len() {
            let mut at = Some(first);
            while let Some(task) = at.filter(|&task| steps[task] == 0) {
                steps[task] = 1;
                at = self.tasks[task].waits_for.map(|before| before as usize);
            }
            if let Some(task) = at.filter(|&task| steps[task] == 1) {
                return Err(ScheduleError::WaitsForLater { task: task as u32, before: task as u32 });
            }
            let mut at = Some(first);
            while let Some(task) = at.filter(|&task| steps[task] == 1) {
                steps[task] = 2;
                at = self.tasks[task].waits_for.map(|before| before as usize);
            }
        }
        Ok(())
    }

    fn check_turns(&self) -> Result<(), ScheduleError> {
        for tasks in self.turns() {
            for (turn, &task) in (0..).zip(&tasks) {
                let found = self.tasks[task as usize].turn;
                if found != turn {
                    return Err(ScheduleError::Turns { task, turn: found, expected: turn });
                }
            }
            for pair in tasks.windows(2) {
                let [first, second] = [pair[0], pair[1]];
                if self.tasks[first as usize].finish > self.tasks[second as usize].start {
                    return Err(ScheduleError::Overlap { first, second });
                }
            }
        }
        Ok(())
    }
}

impl Artifact for Schedule {
    const KIND: &'static str = "schedule";
}

/// An inconsistent schedule.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Diagnostic)]
pub enum ScheduleError {
    /// Only some tasks have names.
    #[error("there are {names} names for {tasks} tasks")]
    #[diagnostic(code(model::names))]
    Names {
        /// Number of names.
        names: usize,
        /// Number of tasks.
        tasks: usize,
    },
    /// A task is on a processor that does not exist.
    #[error("task {task} runs on processor {processor}, but there are {processors}")]
    #[diagnostic(code(model::no_such_processor))]
    NoSuchProcessor {
        /// The task.
        task: u32,
        /// Its processor.
        processor: u32,
        /// Number of processors.
        processors: usize,
    },
    /// A task finishes before it starts, or starts before its processor is available.
    #[error("task {task} runs from {start} to {finish}, which is impossible")]
    #[diagnostic(code(model::times))]
    Times {
        /// The task.
        task: u32,
        /// Start time.
        start: f64,
        /// Finish time.
        finish: f64,
    },
    /// A task starts before its critical predecessor finishes.
    #[error("task {task} waits for task {before} but starts before that finishes")]
    #[diagnostic(code(model::waits_for_later))]
    WaitsForLater {
        /// The task.
        task: u32,
        /// Its predecessor.
        before: u32,
    },
    /// The turns on a processor are not consecutive from zero.
    #[error("task {task} has turn {turn} on its processor instead of turn {expected}")]
    #[diagnostic(code(model::turns))]
    Turns {
        /// The task.
        task: u32,
        /// Its turn.
        turn: u32,
        /// The expected turn.
        expected: u32,
    },
    /// Two tasks overlap on one processor, or are out of order.
    #[error("task {second} starts before task {first} finishes, which precedes it on the processor")]
    #[diagnostic(code(model::overlap))]
    Overlap {
        /// The earlier task.
        first: u32,
        /// The later task.
        second: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks 0 and 1 on the first processor; task 2 on the second waits for a message from 0.
    fn small() -> Schedule {
        let task = |processor, turn, start, finish, waits_for| ScheduledTask {
            processor,
            turn,
            start,
            finish,
            waits_for,
            process: Some(processor),
        };
        let processor = |name: &str| Processor { name: name.into(), ..Processor::default() };
        Schedule {
            tasks: vec![
                task(0, 0, 0.0, 2.0, None),
                task(0, 1, 2.0, 3.0, Some(0)),
                task(1, 0, 3.0, 5.0, Some(0)),
            ],
            processors: vec![processor("p0"), processor("p1")],
            complete: true,
            ..Schedule::default()
        }
    }

    #[test]
    fn the_makespan_has_a_critical_path() {
        let schedule = small();
        assert_eq!(schedule.check(), Ok(()));
        assert_eq!((schedule.makespan(), schedule.critical_path()), (5.0, vec![0, 2]));
        assert_eq!(schedule.turns(), [vec![0, 1], vec![2]]);
        assert_eq!(schedule.segments(), [Some(0), Some(1), Some(0)]);
        assert_eq!(schedule.idle(), [0.4, 0.6]);
        assert_eq!((Schedule::default().makespan(), Schedule::default().critical_path()), (0.0, vec![]));
    }

    #[test]
    fn inconsistencies_are_reported() {
        let broken = |change: fn(&mut Schedule)| {
            let mut schedule = small();
            change(&mut schedule);
            schedule.check().unwrap_err().to_string()
        };
        assert!(broken(|s| s.names = vec!["a".into()]).contains("1 names for 3 tasks"));
        assert!(broken(|s| s.tasks[2].processor = 7).contains("processor 7, but there are 2"));
        assert!(broken(|s| s.tasks[2].finish = 1.0).contains("runs from 3 to 1"));
        assert!(broken(|s| s.processors[0].available = 1.0).contains("task 0 runs from 0"));
        assert!(broken(|s| s.tasks[1].turn = 2).contains("turn 2 on its processor instead of turn 1"));
        assert!(broken(|s| s.tasks[1].start = 1.0).contains("waits for task 0"));
        let overlapping = broken(|s| (s.tasks[1].start, s.tasks[1].waits_for) = (1.0, None));
        assert!(overlapping.contains("starts before task 0"));
        let circle = broken(|s| {
            s.tasks[0].finish = 0.0;
            s.tasks[1].start = 0.0;
            s.tasks[1].finish = 0.0;
            (s.tasks[0].waits_for, s.tasks[1].waits_for) = (Some(1), Some(0));
        });
        assert!(circle.contains("waits for task"), "{circle}");
    }
}
