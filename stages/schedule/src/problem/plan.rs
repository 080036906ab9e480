//! Who runs what, and when it is whose turn.

use std::collections::BTreeMap;

use hopmap_model::{Processor, Schedule, ScheduledTask, TaskDag};
use serde::{Deserialize, Serialize};

use super::Problem;
use crate::{Evaluator, Times};

/// The processor of every task, and an order of all tasks: on every processor they take their turns in it. None comes before
/// one that it waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The tasks, first to last.
    pub order: Vec<u32>,
    /// The processor of every task; the index is the task.
    pub processor: Vec<u32>,
}

impl Plan {
    /// All tasks on one processor.
    #[must_use]
    pub fn serial(problem: &Problem, processor: u32) -> Self {
        Self { order: problem.order().to_vec(), processor: vec![processor; problem.tasks()] }
    }

    /// The plan in which tasks begin in the order in which they are known to begin. Of two that begin together, one without work
    /// comes first; else they stay in the order of the problem, in which none comes before one that it waits for.
    #[must_use]
    pub fn of_times(problem: &Problem, start: &[i64], finish: &[i64], processor: Vec<u32>) -> Self {
        let mut order = problem.order().to_vec();
        order.sort_by_key(|&task| (start[task as usize], finish[task as usize]));
        Self { order, processor }
    }

    /// Whether every task stands once and none before one that it waits for.
    #[must_use]
    pub fn is_admissible(&self, problem: &Problem) -> bool {
        let mut place = vec![usize::MAX; problem.tasks()];
        for (at, &task) in self.order.iter().enumerate() {
            match place.get_mut(task as usize) {
                Some(place) if *place == usize::MAX => *place = at,
                _ => return false,
            }
        }
        let is_somewhere = |&processor: &u32| (processor as usize) < problem.processors();
        let waits = |task: u32| {
            problem.parents(task).iter().all(|from| place[from.task as usize] < place[task as usize])
        };
        self.order.len() == problem.tasks()
            && self.processor.len() == problem.tasks()
            && self.processor.iter().all(is_somewhere)
            && self.order.iter().all(|&task| waits(task))
    }

    /// The schedule in the units of the program, without metrics.
    #[must_use]
    pub fn schedule(&self, problem: &Problem, dag: &TaskDag, processors: &[Processor]) -> Schedule {
        let times = Evaluator::new(problem).times(self);
        let mut turns = vec![0; problem.processors()];
        let mut turn_of = vec![0; problem.tasks()];
        for &task in &self.order {
            let turn = &mut turns[self.processor[task as usize] as usize];
            turn_of[task as usize] = *turn;
            *turn += 1;
        }
        let Times { start, finish, waits_for } = times;
        let task = |task: usize| ScheduledTask {
            processor: self.processor[task],
            turn: turn_of[task],
            start: problem.real(start[task]),
            finish: problem.real(finish[task]),
            waits_for: waits_for[task],
            process: dag.tasks[task].rank,
        };
        // In ticks as all times are, so that no task begins before its processor can.
        let processor = |(one, &available): (&Processor, &i64)| Processor {
            available: problem.real(available),
            ..one.clone()
        };
        Schedule {
            tasks: (0..problem.tasks()).map(task).collect(),
            processors: processors.iter().zip(problem.available()).map(processor).collect(),
            names: dag.names.clone(),
            model: problem.model(),
            metrics: BTreeMap::new(),
            convergence: Vec::new(),
            complete: true,
        }
    }
}
