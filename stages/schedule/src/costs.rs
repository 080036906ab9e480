//! Finish times of tasks, with a specialised kernel for every kind of machine.

use crate::problem::{ByTask, Message, Problem};

/// Dependencies, and lower bounds of what follows.
#[derive(Debug, Clone)]
pub(crate) struct Graph {
    parents: ByTask<u32>,
    children: ByTask<u32>,
    /// Lower bound of the remaining time after each task: the longest chain of work that follows it, on the fastest processors.
    tails: Vec<i64>,
}

impl Graph {
    pub(crate) fn new(problem: &Problem) -> Self {
        let tasks = problem.tasks();
        let mut tails = vec![0i64; tasks];
        for &task in problem.order().iter().rev() {
            let least = problem.works(task).iter().copied().min().unwrap_or(0);
            let through = least + tails[task as usize];
            for message in problem.parents(task) {
                let tail = &mut tails[message.task as usize];
                *tail = (*tail).max(through);
            }
        }
        Self {
            parents: ByTask::new(tasks, |task| problem.parents(task).iter().map(|message| message.task)),
            children: ByTask::new(tasks, |task| problem.children(task).iter().map(|message| message.task)),
            tails,
        }
    }

    #[inline]
    pub(crate) fn parents(&self, task: u32) -> &[u32] {
        self.parents.of(task)
    }

    #[inline]
    pub(crate) fn children(&self, task: u32) -> &[u32] {
        self.children.of(task)
    }

    #[inline]
    pub(crate) fn tail(&self, task: u32) -> i64 {
        self.tails[task as usize]
    }
}

/// Execution and message times of a machine.
pub(crate) trait Costs: Sync {
    /// The dependencies.
    fn graph(&self) -> &Graph;

    /// The problem.
    fn problem(&self) -> &Problem;

    /// Execution time of a task on a processor.
    fn work(&self, task: u32, processor: u32) -> i64;

    /// Finish time of a task on a processor that is free from a given time, from the finish times and processors of its parents.
    fn finish(&self, task: u32, processor: u32, free: i64, finish: &[i64], on: &[u32]) -> i64;

    /// The parent whose result arrives last, and its message time, at the earliest start of a task with respect to its parents;
    /// `None` without parents.
    fn last_parent(&self, task: u32, finish: &[i64], on: &[u32]) -> Option<(u32, i64)>;
}

/// A machine of equally fast processors on which a message takes the same time between any two of them.
#[derive(Debug, Clone)]
pub(crate) struct Uniform<'p, const RECEIVE: bool> {
    problem: &'p Problem,
    graph: Graph,
    works: Vec<i64>,
    /// The parents of every task, as in the graph, with the message times between processors.
    arrivals: ByTask<Arrival>,
}

#[derive(Debug, Clone, Copy)]
struct Arrival {
    task: u32,
    delay: i64,
}

impl<'p, const RECEIVE: bool> Uniform<'p, RECEIVE> {
    /// `None` if the machine is not that uniform.
    pub(crate) fn new(problem: &'p Problem) -> Option<Self> {
        let delays = problem.delays().uniform()?;
        let is_local_free = (0..delays.len() as u32).all(|size| problem.delay(size, 0, 0) == 0);
        if !is_local_free || problem.works(0).len() != 1 {
            return None;
        }
        let works = (0..problem.tasks() as u32).map(|task| problem.work(task, 0)).collect();
        let arrival =
            |message: &Message| Arrival { task: message.task, delay: delays[message.size as usize] };
        let arrivals = ByTask::new(problem.tasks(), |task| problem.parents(task).iter().map(arrival));
        Some(Self { problem, graph: Graph::new(problem), works, arrivals })
    }
}

impl<const RECEIVE: bool> Costs for Uniform<'_, RECEIVE> {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn problem(&self) -> &Problem {
        self.problem
    }

    #[inline]
    fn work(&self, task: u32, _: u32) -> i64 {
        self.works[task as usize]
    }

    #[inline]
    fn finish(&self, task: u32, processor: u32, free: i64, finish: &[i64], on: &[u32]) -> i64 {
        let mut start = free;
        let mut receives = 0;
        for arrival in self.arrivals.of(task) {
            let delay = arrival.delay * i64::from(on[arrival.task as usize] != processor);
            let done = finish[arrival.task as usize];
            if RECEIVE {
                start = start.max(done);
                receives = receives.max(delay);
            } else {
                start = start.max(done + delay);
            }
        }
        start + receives + self.works[task as usize]
    }

    fn last_parent(&self, task: u32, finish: &[i64], on: &[u32]) -> Option<(u32, i64)> {
        let there = |arrival: &Arrival| {
            let is_far = !RECEIVE && on[arrival.task as usize] != on[task as usize];
            (arrival.task, finish[arrival.task as usize] + arrival.delay * i64::from(is_far))
        };
        self.arrivals.of(task).iter().map(there).max_by_key(|&(_, there)| there)
    }
}

/// Any machine.
#[derive(Debug, Clone)]
pub(crate) struct General<'p, const RECEIVE: bool> {
    problem: &'p Problem,
    graph: Graph,
}

impl<'p, const RECEIVE: bool> General<'p, RECEIVE> {
    pub(crate) fn new(problem: &'p Problem) -> Self {
        Self { problem, graph: Graph::new(problem) }
    }
}

impl<const RECEIVE: bool> Costs for General<'_, RECEIVE> {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn problem(&self) -> &Problem {
        self.problem
    }

    #[inline]
    fn work(&self, task: u32, processor: u32) -> i64 {
        self.problem.work(task, processor)
    }

    #[inline]
    fn finish(&self, task: u32, processor: u32, free: i64, finish: &[i64], on: &[u32]) -> i64 {
        let mut start = free;
        let mut receives = 0;
        for message in self.problem.parents(task) {
            let delay = self.problem.delay(message.size, on[message.task as usize], processor);
            let done = finish[message.task as usize];
            if RECEIVE {
                start = start.max(done);
                receives = receives.max(delay);
            } else {
                start = start.max(done + delay);
            }
        }
        start + receives + self.problem.work(task, processor)
    }

    fn last_parent(&self, task: u32, finish: &[i64], on: &[u32]) -> Option<(u32, i64)> {
        let parents = self.problem.parents(task).iter();
        let there = parents.map(|message| {
            let delay = match RECEIVE {
                true => 0,
                false => self.problem.delay(message.size, on[message.task as usize], on[task as usize]),
            };
            (message.task, finish[message.task as usize] + delay)
        });
        there.max_by_key(|&(_, there)| there)
    }
}

/// Calls a function with the fastest kernel for a problem; monomorphised for every kind of machine.
macro_rules! with_costs {
    ($problem:expr, |$costs:ident| $run:expr) => {
        match $problem.model() {
            hopmap_model::DelayModel::Overlap => match $crate::costs::Uniform::<false>::new($problem) {
                Some($costs) => $run,
                None => {
                    let $costs = $crate::costs::General::<false>::new($problem);
                    $run
                }
            },
            hopmap_model::DelayModel::Receive => match $crate::costs::Uniform::<true>::new($problem) {
                Some($costs) => $run,
                None => {
                    let $costs = $crate::costs::General::<true>::new($problem);
                    $run
                }
            },
        }
    };
}

pub(crate) use with_costs;
