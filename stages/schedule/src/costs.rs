//! When a task is done, by a kernel for every kind of machine.

use hopmap_model::DelayModel;

use crate::Problem;

/// What waits for what, and what follows at least.
#[derive(Debug, Clone)]
pub(crate) struct Graph {
    parent_starts: Vec<u32>,
    parents: Vec<u32>,
    child_starts: Vec<u32>,
    children: Vec<u32>,
    /// What is left at least when a task is done: the work of the longest chain behind it on the fastest processors.
    tails: Vec<i64>,
}

impl Graph {
    pub(crate) fn new(problem: &Problem) -> Self {
        let tasks = problem.tasks() as u32;
        let (mut parent_starts, mut child_starts) = (vec![0], vec![0]);
        let (mut parents, mut children) = (Vec::new(), Vec::new());
        for task in 0..tasks {
            parents.extend(problem.parents(task).iter().map(|message| message.task));
            children.extend(problem.children(task).iter().map(|message| message.task));
            parent_starts.push(parents.len() as u32);
            child_starts.push(children.len() as u32);
        }
        let mut tails = vec![0i64; tasks as usize];
        for &task in problem.order().iter().rev() {
            let least = problem.works(task).iter().copied().min().unwrap_or(0);
            let through = least + tails[task as usize];
            for message in problem.parents(task) {
                let tail = &mut tails[message.task as usize];
                *tail = (*tail).max(through);
            }
        }
        Self { parent_starts, parents, child_starts, children, tails }
    }

    #[inline]
    pub(crate) fn parents(&self, task: u32) -> &[u32] {
        let task = task as usize;
        &self.parents[self.parent_starts[task] as usize..self.parent_starts[task + 1] as usize]
    }

    #[inline]
    pub(crate) fn children(&self, task: u32) -> &[u32] {
        let task = task as usize;
        &self.children[self.child_starts[task] as usize..self.child_starts[task + 1] as usize]
    }

    #[inline]
    pub(crate) fn tail(&self, task: u32) -> i64 {
        self.tails[task as usize]
    }
}

/// What a machine makes of a task.
pub(crate) trait Costs: Sync {
    /// What waits for what.
    fn graph(&self) -> &Graph;

    /// The problem.
    fn problem(&self) -> &Problem;

    /// What a task takes on a processor.
    fn work(&self, task: u32, processor: u32) -> i64;

    /// When a task is done on a processor that is free from some time on, by when others are done and where they run.
    fn finish(&self, task: u32, processor: u32, free: i64, finish: &[i64], on: &[u32]) -> i64;

    /// The parent whose result is there last and what it takes to be there at the earliest moment that a task could begin because of
    /// its parents alone; `None` without parents.
    fn last_parent(&self, task: u32, finish: &[i64], on: &[u32]) -> Option<(u32, i64)>;
}

/// A machine on which every message takes the same between any two processors, and which are equally fast.
#[derive(Debug, Clone)]
pub(crate) struct Uniform<'p, const RECEIVE: bool> {
    problem: &'p Problem,
    graph: Graph,
    works: Vec<i64>,
    /// The parents of every task, as in the graph, and what their messages take between processors.
    arrivals: Vec<Arrival>,
}

#[derive(Debug, Clone, Copy)]
struct Arrival {
    task: u32,
    delay: i64,
}

impl<'p, const RECEIVE: bool> Uniform<'p, RECEIVE> {
    /// `None` where the machine is not that simple.
    pub(crate) fn new(problem: &'p Problem) -> Option<Self> {
        let delays = problem.delays().uniform()?;
        let is_local_free = (0..delays.len() as u32).all(|size| problem.delay(size, 0, 0) == 0);
        let works: Option<Vec<i64>> = (0..problem.tasks() as u32)
            .map(|task| match problem.works(task) {
                [work] => Some(*work),
                _ => None,
            })
            .collect();
        if !is_local_free {
            return None;
        }
        let arrivals = (0..problem.tasks() as u32).flat_map(|task| problem.parents(task));
        let arrivals =
            arrivals.map(|message| Arrival { task: message.task, delay: delays[message.size as usize] });
        Some(Self { problem, graph: Graph::new(problem), works: works?, arrivals: arrivals.collect() })
    }

    #[inline]
    fn arrivals(&self, task: u32) -> &[Arrival] {
        let starts = &self.graph.parent_starts;
        &self.arrivals[starts[task as usize] as usize..starts[task as usize + 1] as usize]
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
        for arrival in self.arrivals(task) {
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
        self.arrivals(task).iter().map(there).max_by_key(|&(_, there)| there)
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

/// Work that is compiled anew for every kind of machine.
pub(crate) trait WithCosts {
    /// What comes of it.
    type Output;

    /// Does it.
    fn run<C: Costs>(self, costs: &C) -> Self::Output;
}

/// Does something with the fastest costs that a problem allows.
pub(crate) fn with_costs<W: WithCosts>(problem: &Problem, work: W) -> W::Output {
    match problem.model() {
        DelayModel::Overlap => match Uniform::<false>::new(problem) {
            Some(costs) => work.run(&costs),
            None => work.run(&General::<false>::new(problem)),
        },
        DelayModel::Receive => match Uniform::<true>::new(problem) {
            Some(costs) => work.run(&costs),
            None => work.run(&General::<true>::new(problem)),
        },
    }
}
