//! Plans (processors and turns of tasks), their start and finish times, and the interface of schedulers.

use std::collections::BTreeMap;

use hopmap_islands::Point;
use hopmap_model::{Context, DelayModel, Error, Processor, Schedule, ScheduledTask, TaskDag};
use serde::{Deserialize, Serialize};

use crate::problem::Problem;

/// The processor of every task, and a topological order of all tasks, which determines the turns on every processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The tasks in order.
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

    /// The plan of known start times. Of tasks that start together, one without work comes first; otherwise they keep the
    /// topological order of the problem.
    #[must_use]
    pub fn of_times(problem: &Problem, start: &[i64], finish: &[i64], processor: Vec<u32>) -> Self {
        let mut order = problem.order().to_vec();
        order.sort_by_key(|&task| (start[task as usize], finish[task as usize]));
        Self { order, processor }
    }

    /// Whether the order contains every task once, after its predecessors.
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
        // In ticks, like all times, so that no task starts before its processor is available.
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

    /// The plan for the reversed problem, with at most the same makespan.
    pub(crate) fn reversed(&self, problem: &Problem) -> Self {
        let times = Evaluator::new(problem).times(self);
        let last = times.finish.iter().copied().max().unwrap_or(0);
        let mut order = self.order.clone();
        order.reverse();
        order.sort_by_key(|&task| (last - times.finish[task as usize], last - times.start[task as usize]));
        Self { order, processor: self.processor.clone() }
    }
}

/// Start and finish times of all tasks, in ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    /// The start time of every task.
    pub start: Vec<i64>,
    /// The finish time of every task.
    pub finish: Vec<i64>,
    /// The task that determines the start time.
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
    /// An evaluator with reusable buffers.
    #[must_use]
    pub fn new(problem: &'p Problem) -> Self {
        Self { problem, finish: vec![0; problem.tasks()], free: problem.available().to_vec() }
    }

    /// The makespan of a feasible plan.
    #[must_use]
    pub fn makespan(&mut self, plan: &Plan) -> i64 {
        match self.problem.model() {
            DelayModel::Overlap => self.pass::<false>(plan),
            DelayModel::Receive => self.pass::<true>(plan),
        }
    }

    fn pass<const RECEIVE: bool>(&mut self, plan: &Plan) -> i64 {
        let problem = self.problem;
        self.free.copy_from_slice(problem.available());
        let mut last = 0;
        for &task in &plan.order {
            let processor = plan.processor[task as usize];
            let (mut start, mut receives) = (self.free[processor as usize], 0);
            for message in problem.parents(task) {
                let delay = problem.delay(message.size, plan.processor[message.task as usize], processor);
                let done = self.finish[message.task as usize];
                if RECEIVE {
                    (start, receives) = (start.max(done), receives.max(delay));
                } else {
                    start = start.max(done + delay);
                }
            }
            let finish = start + receives + problem.work(task, processor);
            self.finish[task as usize] = finish;
            self.free[processor as usize] = finish;
            last = last.max(finish);
        }
        last
    }

    /// Start and finish times of all tasks of a feasible plan, and what determines them: of a message and a turn that are equally
    /// late, the message.
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

/// The parameters of a scheduling algorithm.
pub trait Scheduler {
    /// Checks the parameters, as far as they do not depend on the problem.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Computes a plan.
    fn schedule(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult<Plan>, Error>;
}

/// The result of a scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult<S> {
    /// The best [`Plan`].
    pub best: S,
    /// Its makespan in ticks.
    pub makespan: i64,
    /// Lower bound of the makespan in ticks.
    pub lower_bound: i64,
    /// Evaluated schedules, or nodes of a search tree, of all islands together.
    pub evaluations: u64,
    /// The best makespan of every island over its evaluations, island by island.
    pub convergence: Vec<Point>,
    /// Whether the search completed without being stopped.
    pub complete: bool,
}

impl<S> SearchResult<S> {
    /// The result of islands, with a bound.
    pub(crate) fn of_islands(found: hopmap_islands::SearchResult<S>, lower_bound: i64) -> Self {
        Self {
            makespan: found.best.cost,
            lower_bound: lower_bound.min(found.best.cost),
            best: found.best.solution,
            evaluations: found.evaluations,
            convergence: found.convergence,
            complete: found.complete,
        }
    }

    /// Whether the result is proven optimal.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.lower_bound >= self.makespan
    }
}
