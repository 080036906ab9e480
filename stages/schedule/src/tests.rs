//! Small programs, machines and schedules for tests, and the optimum by exhaustive search.

use std::fmt;

use hopmap_model::{DelayModel, Dependency, Processor, Schedule, Task, TaskDag, WorkUnit};
use hopmap_replay::{Distances, Linear, Lookup, Machine, Measured, Network};
use proptest::prelude::*;

use crate::params::CheckParams;
use crate::plan::{Evaluator, Plan};
use crate::problem::Problem;

/// A program of integers: work of tasks, and edges from lower to higher numbers.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) work: Vec<u32>,
    pub(crate) edges: Vec<(u32, u32, u64)>,
}

impl Program {
    pub(crate) fn dag(&self) -> TaskDag {
        let mut dependencies: Vec<_> = self
            .edges
            .iter()
            .map(|&(source, destination, bytes)| Dependency { source, destination, bytes })
            .collect();
        dependencies.sort_unstable();
        dependencies.dedup_by_key(|edge| (edge.source, edge.destination));
        let tasks = self.work.iter().map(|&work| Task { rank: None, work: f64::from(work) }).collect();
        TaskDag { tasks, dependencies, unit: WorkUnit::Time, ..TaskDag::default() }
    }

    pub(crate) fn problem(&self, machine: &Machine, model: DelayModel) -> Problem {
        Problem::new(&self.dag(), machine, model).unwrap()
    }
}

/// One task, then two, then one, on two processors.
pub(crate) fn diamond() -> Problem {
    let program = Program { work: vec![2, 3, 4, 1], edges: vec![(0, 1, 3), (0, 2, 1), (1, 3, 2), (2, 3, 2)] };
    program.problem(&alike(2), DelayModel::Overlap)
}

/// Identical processors.
pub(crate) fn alike(processors: usize) -> Machine {
    let network = Network::Linear {
        distances: Distances::Alike,
        classes: vec![Linear { latency: 0.0, per_byte: 0.0 }, Linear { latency: 0.0, per_byte: 1.0 }],
    };
    machine(&vec![1.0; processors], &vec![0.0; processors], network)
}

fn machine(pace: &[f64], available: &[f64], network: Network) -> Machine {
    let processor = |&available: &f64| Processor { available, ..Processor::default() };
    Machine { processors: available.iter().map(processor).collect(), pace: pace.to_vec(), network }
}

/// Random programs with a maximum number of tasks and a maximum message time.
pub(crate) fn programs(tasks: std::ops::Range<usize>, longest: u64) -> impl Strategy<Value = Program> {
    let work = prop::collection::vec(0u32..12, tasks);
    let edges = prop::collection::vec((any::<u32>(), any::<u32>(), 0..=longest), 0..14);
    (work, edges).prop_map(|(work, edges)| {
        let tasks = work.len() as u32;
        let between =
            |(a, b, bytes): (u32, u32, u64)| ((a % tasks).min(b % tasks), (a % tasks).max(b % tasks), bytes);
        let edges = edges.into_iter().map(between).filter(|edge| edge.0 < edge.1).collect();
        Program { work, edges }
    })
}

/// Random machines with a maximum number of processors: all identical, or all different.
pub(crate) fn machines(most: usize) -> impl Strategy<Value = Machine> {
    let different = (1..=most).prop_flat_map(|processors| {
        let pace = prop::collection::vec(1u32..4, processors);
        let available = prop::collection::vec(0u32..6, processors);
        let classes = prop::collection::vec(0u32..3, processors * processors);
        (pace, available, classes).prop_map(move |(pace, available, mut classes)| {
            (0..processors).for_each(|one| classes[one * (processors + 1)] = 3);
            let distances = Distances::Pairs { processors, classes };
            let linear = |latency, per_byte| Linear { latency, per_byte };
            let classes = vec![linear(0.0, 1.0), linear(2.0, 1.0), linear(1.0, 2.0), linear(0.0, 0.0)];
            let real = |values: Vec<u32>| values.into_iter().map(f64::from).collect::<Vec<_>>();
            machine(&real(pace), &real(available), Network::Linear { distances, classes })
        })
    });
    prop_oneof![(1..=most).prop_map(alike), different]
}

/// Both models.
pub(crate) fn models() -> impl Strategy<Value = DelayModel> {
    prop_oneof![Just(DelayModel::Overlap), Just(DelayModel::Receive)]
}

/// The least makespan, by trying all ready tasks on all processors in turn.
pub(crate) fn optimum(problem: &Problem) -> i64 {
    let mut search = Every {
        problem,
        finish: vec![None; problem.tasks()],
        on: vec![0; problem.tasks()],
        free: problem.available().to_vec(),
        best: i64::MAX,
    };
    search.go(0, 0);
    search.best
}

struct Every<'p> {
    problem: &'p Problem,
    finish: Vec<Option<i64>>,
    on: Vec<u32>,
    free: Vec<i64>,
    best: i64,
}

impl Every<'_> {
    fn go(&mut self, done: usize, last: i64) {
        if done == self.problem.tasks() {
            self.best = self.best.min(last);
            return;
        }
        for task in 0..self.problem.tasks() as u32 {
            let is_ready = |search: &Self| {
                let mut parents = search.problem.parents(task).iter();
                parents.all(|parent| search.finish[parent.task as usize].is_some())
            };
            if self.finish[task as usize].is_some() || !is_ready(self) {
                continue;
            }
            for processor in 0..self.problem.processors() as u32 {
                let free = self.free[processor as usize];
                let finish = self.finish_of(task, processor, free);
                if finish >= self.best {
                    continue;
                }
                self.finish[task as usize] = Some(finish);
                self.on[task as usize] = processor;
                self.free[processor as usize] = finish;
                self.go(done + 1, last.max(finish));
                self.finish[task as usize] = None;
                self.free[processor as usize] = free;
            }
        }
    }

    fn finish_of(&self, task: u32, processor: u32, free: i64) -> i64 {
        let (mut start, mut receives) = (free, 0);
        for parent in self.problem.parents(task) {
            let delay = self.problem.delay(parent.size, self.on[parent.task as usize], processor);
            let sent = self.finish[parent.task as usize].unwrap();
            match self.problem.model() {
                DelayModel::Overlap => start = start.max(sent + delay),
                DelayModel::Receive => (start, receives) = (start.max(sent), receives.max(delay)),
            }
        }
        start + receives + self.problem.work(task, processor)
    }
}

/// A schedule with its program and machine.
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

    /// Earliest start and finish times of all tasks of a plan, as computed by the schedulers.
    pub(crate) fn earliest(&self, plan: &Plan) -> Vec<(f64, f64)> {
        let problem = Problem::new(&self.dag, &self.machine, self.model).unwrap();
        let times = Evaluator::new(&problem).times(plan);
        let real = |ticks: &i64| problem.real(*ticks);
        times.start.iter().map(real).zip(times.finish.iter().map(real)).collect()
    }
}

/// Integers, and others.
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
                TaskDag { tasks, dependencies, unit: WorkUnit::Time, ..TaskDag::default() }
            })
    })
}

/// A random valid schedule of a program on a machine.
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

/// The tasks in the topological order closest to a given order.
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
