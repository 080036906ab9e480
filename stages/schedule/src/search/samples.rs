//! Small problems for tests.

use hopmap_model::{DelayModel, Dependency, Task, TaskDag, WorkUnit};
use proptest::prelude::*;

use crate::{Machine, MachineParams, Problem};

/// One task, then two, then one, on two processors.
pub(crate) fn diamond() -> Problem {
    let edges = [(0, 1, 3), (0, 2, 1), (1, 3, 2), (2, 3, 2)];
    problem(&[2, 3, 4, 1], &edges, &MachineParams { processors: Some(2), ..MachineParams::default() })
}

/// The problem of tasks and messages in whole units of time.
pub(crate) fn problem(work: &[u32], edges: &[(u32, u32, u64)], machine: &MachineParams) -> Problem {
    let tasks = work.iter().map(|&work| Task { rank: None, work: f64::from(work) }).collect();
    let edge = |&(source, destination, bytes)| Dependency { source, destination, bytes };
    let mut dependencies: Vec<_> = edges.iter().map(edge).collect();
    dependencies.sort_unstable();
    let dag = TaskDag { tasks, dependencies, unit: WorkUnit::Time, ..TaskDag::default() };
    dag.check().unwrap();
    let model = machine.model;
    let machine = Machine::new(machine, None, dag.unit).unwrap();
    Problem::new(&dag, &machine, model).unwrap()
}

/// Programs of up to so many tasks on machines of several kinds.
pub(crate) fn problems(most_tasks: usize, most_processors: u32) -> impl Strategy<Value = Problem> {
    let edges = prop::collection::vec((0u32..64, 0u32..64, 0u64..12), 0..2 * most_tasks);
    let machine = (1..=most_processors, any::<bool>(), any::<bool>(), 0u32..3);
    (prop::collection::vec(0u32..10, 1..=most_tasks), edges, machine).prop_map(
        |(work, edges, (processors, is_uniform, receives, latency))| {
            let tasks = work.len() as u32;
            let edges = edges.into_iter().map(|(one, other, bytes)| (one % tasks, other % tasks, bytes));
            let edges: Vec<_> = edges
                .filter(|(one, other, _)| one != other)
                .map(|(one, other, bytes)| (one.min(other), one.max(other), bytes))
                .collect();
            let model = if receives { DelayModel::Receive } else { DelayModel::Overlap };
            let each = |value: fn(u32) -> f64| match is_uniform {
                true => Vec::new(),
                false => (0..processors).map(value).collect(),
            };
            let machine = MachineParams {
                processors: Some(processors),
                speeds: each(|one| f64::from(1 << (one % 2))),
                available: each(|one| f64::from(3 * (one % 3))),
                latency: Some(f64::from(latency)),
                model,
                ..MachineParams::default()
            };
            problem(&work, &edges, &machine)
        },
    )
}

/// The least makespan of all plans, found by trying each.
pub(crate) fn optimum(problem: &Problem) -> i64 {
    let mut search = Everything { problem, order: Vec::new(), on: vec![0; problem.tasks()], best: i64::MAX };
    search.extend();
    search.best
}

struct Everything<'p> {
    problem: &'p Problem,
    order: Vec<u32>,
    on: Vec<u32>,
    best: i64,
}

impl Everything<'_> {
    fn extend(&mut self) {
        let tasks = self.problem.tasks();
        if self.order.len() == tasks {
            let plan = crate::Plan { order: self.order.clone(), processor: self.on.clone() };
            self.best = self.best.min(crate::Evaluator::new(self.problem).makespan(&plan));
            return;
        }
        for task in 0..tasks as u32 {
            let is_done = |other: u32| self.order.contains(&other);
            let is_ready = self.problem.parents(task).iter().all(|message| is_done(message.task));
            if is_done(task) || !is_ready {
                continue;
            }
            for processor in 0..self.problem.processors() as u32 {
                self.order.push(task);
                self.on[task as usize] = processor;
                self.extend();
                self.order.pop();
            }
        }
    }
}
