//! When every task of a plan begins and ends.

use hopmap_model::DelayModel;

use crate::{Plan, Problem};

/// When every task begins and ends, in ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    /// When every task begins.
    pub start: Vec<i64>,
    /// When every task is done.
    pub finish: Vec<i64>,
    /// The task without which a task would have begun earlier.
    pub waits_for: Vec<Option<u32>>,
}

/// Computes makespans of plans of one problem.
#[derive(Debug, Clone)]
pub struct Evaluator<'p> {
    problem: &'p Problem,
    finish: Vec<i64>,
    free: Vec<i64>,
}

impl<'p> Evaluator<'p> {
    /// An evaluator with room for one plan.
    #[must_use]
    pub fn new(problem: &'p Problem) -> Self {
        Self { problem, finish: vec![0; problem.tasks()], free: problem.available().to_vec() }
    }

    /// When the last task of an admissible plan is done.
    #[must_use]
    pub fn makespan(&mut self, plan: &Plan) -> i64 {
        match self.problem.model() {
            DelayModel::Overlap => self.overlap(plan),
            DelayModel::Receive => self.receive(plan),
        }
    }

    fn overlap(&mut self, plan: &Plan) -> i64 {
        let problem = self.problem;
        self.free.copy_from_slice(problem.available());
        let mut last = 0;
        for &task in &plan.order {
            let processor = plan.processor[task as usize];
            let mut start = self.free[processor as usize];
            for message in problem.parents(task) {
                let delay = problem.delay(message.size, plan.processor[message.task as usize], processor);
                start = start.max(self.finish[message.task as usize] + delay);
            }
            last = last.max(self.end(task, processor, start + problem.work(task, processor)));
        }
        last
    }

    fn receive(&mut self, plan: &Plan) -> i64 {
        let problem = self.problem;
        self.free.copy_from_slice(problem.available());
        let mut last = 0;
        for &task in &plan.order {
            let processor = plan.processor[task as usize];
            let mut start = self.free[processor as usize];
            let mut receives = 0;
            for message in problem.parents(task) {
                let delay = problem.delay(message.size, plan.processor[message.task as usize], processor);
                start = start.max(self.finish[message.task as usize]);
                receives = receives.max(delay);
            }
            last = last.max(self.end(task, processor, start + receives + problem.work(task, processor)));
        }
        last
    }

    #[inline]
    fn end(&mut self, task: u32, processor: u32, finish: i64) -> i64 {
        self.finish[task as usize] = finish;
        self.free[processor as usize] = finish;
        finish
    }

    /// When every task of an admissible plan begins and ends, and why not earlier: because of a message rather than of its turn,
    /// where both are as late.
    #[must_use]
    pub fn times(&mut self, plan: &Plan) -> Times {
        let problem = self.problem;
        let _ = self.makespan(plan);
        let finish = self.finish.clone();
        let mut times = Times {
            start: vec![0; finish.len()],
            waits_for: vec![None; finish.len()],
            finish: finish.clone(),
        };
        let mut before: Vec<Option<u32>> = vec![None; problem.processors()];
        for &task in &plan.order {
            let processor = plan.processor[task as usize];
            let (mut start, mut cause) = (problem.available()[processor as usize], None);
            let mut wait = |time: i64, task: u32| {
                if time > start || (time == start && cause.is_none()) {
                    (start, cause) = (time, Some(task));
                }
            };
            for message in problem.parents(task) {
                let delay = match problem.model() {
                    DelayModel::Overlap => {
                        problem.delay(message.size, plan.processor[message.task as usize], processor)
                    }
                    DelayModel::Receive => 0,
                };
                wait(finish[message.task as usize] + delay, message.task);
            }
            if let Some(task) = before[processor as usize] {
                wait(finish[task as usize], task);
            }
            before[processor as usize] = Some(task);
            (times.start[task as usize], times.waits_for[task as usize]) = (start, cause);
        }
        times
    }
}
