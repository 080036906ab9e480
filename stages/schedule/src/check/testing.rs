//! Small schedules of all kinds, made by the schedulers' own code.

use std::fmt;

use hopmap_model::{DelayModel, Dependency, Processor, Schedule, Task, TaskDag, WorkUnit};
use proptest::prelude::*;

use crate::{CheckParams, Evaluator, Plan, Problem};
use hopmap_replay::{Distances, Linear, Lookup, Machine, Measured, Network};

/// A schedule with what it was made of.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) dag: TaskDag,
    pub(crate) machine: Machine,
    pub(crate) model: DelayModel,
    pub(crate) plan: Plan,
    pub(crate) schedule: Schedule,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#?}\n{:#?}\n{:#?}", self.dag, self.machine, self.schedule)
    }
}

impl Case {
    /// The parameters that the case is checked with.
    pub(crate) fn params(&self) -> CheckParams {
        let model = self.model.name();
        serde_json::from_value(serde_json::json!({ "model": model, "ranks": "free" })).unwrap()
    }

    /// When every task of a plan begins and ends at the earliest, as the schedulers have it.
    pub(crate) fn earliest(&self, plan: &Plan) -> Vec<(f64, f64)> {
        let problem = Problem::new(&self.dag, &self.machine, self.model).unwrap();
        let times = Evaluator::new(&problem).times(plan);
        let real = |ticks: &i64| problem.real(*ticks);
        times.start.iter().map(real).zip(times.finish.iter().map(real)).collect()
    }
}

/// Whole numbers, and others.
fn time(whole: bool) -> impl Strategy<Value = f64> {
    (0u32..40).prop_map(move |value| if whole { f64::from(value) } else { f64::from(value) / 7.0 })
}

fn any_machine(whole: bool) -> impl Strategy<Value = Machine> {
    let linear = (time(whole), time(whole)).prop_map(|(latency, per_byte)| Linear { latency, per_byte });
    let processors = prop::collection::vec((time(whole), 1u32..4), 1..5);
    (processors, prop::collection::vec(linear, 3), prop::collection::vec(time(whole), 48), 0..4usize)
        .prop_map(move |(processors, classes, times, kind)| {
            let count = processors.len();
            let network = match kind {
                0 => Network::Linear {
                    distances: Distances::Alike,
                    classes: vec![Linear { latency: 0.0, per_byte: 0.0 }, classes[0]],
                },
                1 => {
                    let pairs = (0..count * count).map(|pair| (pair * 7 % 3) as u32).collect();
                    Network::Linear {
                        distances: Distances::Pairs { processors: count, classes: pairs },
                        classes,
                    }
                }
                _ => {
                    let lookup = if kind == 2 { Lookup::Linear } else { Lookup::Parus };
                    let times = times.chunks(16).map(|times| times[..count * count].to_vec()).collect();
                    Network::Measured(Measured::new(count, vec![2, 5, 20], times, lookup))
                }
            };
            let processor = |(index, (available, _)): (usize, &(f64, u32))| Processor {
                name: format!("p{index}"),
                available: *available,
                slot: None,
            };
            let pace = |(_, pace): &(f64, u32)| if whole { f64::from(*pace) } else { 1.0 / f64::from(*pace) };
            Machine {
                processors: processors.iter().enumerate().map(processor).collect(),
                pace: processors.iter().map(pace).collect(),
                network,
            }
        })
}

fn any_dag(whole: bool) -> impl Strategy<Value = TaskDag> {
    (1..12usize).prop_flat_map(move |count| {
        let edge = (0..count as u32, 0..count as u32, 0u64..30);
        let numbers = Just((0..count as u32).collect::<Vec<_>>()).prop_shuffle();
        (prop::collection::vec(time(whole), count), prop::collection::vec(edge, 0..2 * count), numbers)
            .prop_map(|(work, edges, number)| {
                let edges = edges.into_iter().filter(|(a, b, _)| a != b);
                let mut dependencies: Vec<Dependency> = edges
                    .map(|(a, b, bytes)| Dependency {
                        source: number[a.min(b) as usize],
                        destination: number[a.max(b) as usize],
                        bytes,
                    })
                    .collect();
                dependencies.sort_unstable();
                let tasks = work.into_iter().map(|work| Task { rank: None, work }).collect();
                TaskDag { tasks, dependencies, names: Vec::new(), unit: WorkUnit::Time }
            })
    })
}

/// A schedule of a program on a machine, tasks anywhere and in any order that can be.
pub(crate) fn any_case() -> impl Strategy<Value = Case> {
    let model = prop_oneof![Just(DelayModel::Overlap), Just(DelayModel::Receive)];
    let choices = prop::collection::vec((any::<u32>(), any::<u32>()), 12);
    any::<bool>()
        .prop_flat_map(move |whole| (any_dag(whole), any_machine(whole), model.clone(), choices.clone()))
        .prop_map(|(dag, machine, model, choices)| {
            let problem = Problem::new(&dag, &machine, model).unwrap();
            let mut plan = Plan::serial(&problem, 0);
            let key = |task: &u32| choices[*task as usize].0;
            plan.order.sort_by_key(key);
            plan.order = admissible(&dag, &plan.order);
            for (task, processor) in plan.processor.iter_mut().enumerate() {
                *processor = choices[task].1 % machine.processors.len() as u32;
            }
            let mut schedule = plan.schedule(&problem, &dag, &machine.processors);
            let makespan = schedule.makespan();
            schedule
                .metrics
                .extend([("makespan".to_owned(), makespan), ("lower_bound".to_owned(), makespan / 2.0)]);
            Case { dag, machine, model, plan, schedule }
        })
}

/// The tasks as nearly in an order as dependencies let them be.
fn admissible(dag: &TaskDag, wanted: &[u32]) -> Vec<u32> {
    let mut order: Vec<u32> = Vec::new();
    while order.len() < wanted.len() {
        let is_ready = |task: &&u32| {
            let mut senders = dag.dependencies.iter().filter(|message| message.destination == **task);
            !order.contains(*task) && senders.all(|message| order.contains(&message.source))
        };
        let next = *wanted.iter().find(is_ready).unwrap();
        order.push(next);
    }
    order
}
