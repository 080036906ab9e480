//! Compares two schedules: where and when tasks run, the makespan and its causes.

use std::collections::BTreeSet;

use hopmap_model::Schedule;
use serde::Serialize;

use crate::common::{MOST_SHOWN, more, percent};

/// A task that runs on another processor or at another time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskChange {
    /// Name of the task, otherwise its number.
    pub task: String,
    /// Names of its processors before and after.
    pub processors: [String; 2],
    /// Start time before and after.
    pub starts: [f64; 2],
}

/// The differences between two schedules.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScheduleChanges {
    /// Number of tasks before and after.
    pub tasks: [u64; 2],
    /// Number of tasks on other processors.
    pub moved: u64,
    /// Number of tasks that start at another time.
    pub shifted: u64,
    /// Some tasks that moved or start at another time, the largest shift first.
    pub largest: Vec<TaskChange>,
    /// Makespan before and after.
    pub makespan: [f64; 2],
    /// Tasks of the critical path before and after.
    pub critical_path: [Vec<String>; 2],
}

/// Compares task by task.
pub(super) fn compare(before: &Schedule, after: &Schedule) -> ScheduleChanges {
    let path = |schedule: &Schedule| {
        schedule.critical_path().into_iter().map(|task| schedule.name(task)).collect::<Vec<_>>()
    };
    let mut found = ScheduleChanges {
        tasks: [before.tasks.len() as u64, after.tasks.len() as u64],
        moved: 0,
        shifted: 0,
        largest: Vec::new(),
        makespan: [before.makespan(), after.makespan()],
        critical_path: [path(before), path(after)],
    };
    for (number, (old, new)) in (0..).zip(before.tasks.iter().zip(&after.tasks)) {
        let processors = [(before, old), (after, new)]
            .map(|(all, task)| all.processors[task.processor as usize].name.clone());
        let is_moved = processors[0] != processors[1];
        let is_shifted = old.start.to_bits() != new.start.to_bits();
        found.moved += u64::from(is_moved);
        found.shifted += u64::from(is_shifted);
        if is_moved || is_shifted {
            found.largest.push(TaskChange {
                task: after.name(number),
                processors,
                starts: [old.start, new.start],
            });
        }
    }
    found.largest.sort_by(|a, b| b.shift().abs().total_cmp(&a.shift().abs()));
    found.largest.truncate(MOST_SHOWN);
    found
}

impl TaskChange {
    fn shift(&self) -> f64 {
        self.starts[1] - self.starts[0]
    }

    fn words(&self) -> String {
        let Self { task, processors: [from, to], starts: [old, new] } = self;
        format!("  task {task}: {from} → {to}, starts at {old} → {new}")
    }
}

impl ScheduleChanges {
    pub(super) fn words(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let [before, after] = self.tasks;
        if before != after {
            lines.push(format!("tasks: {before} → {after}"));
        }
        let [old, new] = self.makespan;
        let relative = (new - old) / old;
        let relative =
            if relative.is_finite() { format!("  ({})", percent(relative)) } else { String::new() };
        lines.push(format!("makespan: {old} → {new}{relative}"));
        let (moved, shifted) = (self.moved, self.shifted);
        lines.push(format!("{moved} tasks on other processors, {shifted} start at another time"));
        lines.extend(self.largest.iter().map(TaskChange::words));
        lines.extend(more(moved.max(shifted), self.largest.len()));
        let [old, new] = [0, 1].map(|side| self.critical_path[side].iter().collect::<BTreeSet<_>>());
        let (left, joined) = (old.difference(&new).count(), new.difference(&old).count());
        let [old, new] = [0, 1].map(|side| self.critical_path[side].len());
        lines.push(format!("critical path: {old} → {new} tasks, {left} left it, {joined} joined it"));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{Processor, ScheduledTask};

    fn schedule(tasks: &[(u32, f64, f64)]) -> Schedule {
        let task = |&(processor, start, finish)| ScheduledTask {
            processor,
            turn: 0,
            start,
            finish,
            waits_for: None,
            process: None,
        };
        let processor = |name: &str| Processor { name: name.into(), ..Processor::default() };
        Schedule {
            tasks: tasks.iter().map(task).collect(),
            processors: vec![processor("p0"), processor("p1")],
            ..Schedule::default()
        }
    }

    #[test]
    fn moved_and_shifted_tasks_are_reported() {
        let (before, after) =
            (schedule(&[(0, 0.0, 2.0), (0, 2.0, 4.0)]), schedule(&[(0, 0.0, 2.0), (1, 0.0, 3.0)]));
        assert_eq!(
            compare(&before, &after).words(),
            [
                "makespan: 4 → 3  (-25.0 %)",
                "1 tasks on other processors, 1 start at another time",
                "  task 1: p0 → p1, starts at 2 → 0",
                "critical path: 1 → 1 tasks, 0 left it, 0 joined it",
            ]
        );
        let same = compare(&before, &before);
        assert_eq!((same.moved, same.shifted, same.largest.len()), (0, 0, 0));
    }
}
