//! A problem as list heuristics see it: from its beginning, or from its end.

use hopmap_model::DelayModel;

use crate::problem::Message;
use crate::{Plan, Problem};

/// A problem from either end, and what is known of tasks and messages before their processors are.
#[derive(Debug)]
pub(super) struct View<'p> {
    pub(super) problem: &'p Problem,
    /// Whether messages go from those who get them to those who send them. Then it is always the classic delay model.
    backward: bool,
    /// The tasks, none before one that it waits for.
    pub(super) order: Vec<u32>,
    /// What every task takes, averaged over processors.
    pub(super) mean_work: Vec<i64>,
    /// What every task takes on the processor that is fastest for it.
    pub(super) least_work: Vec<i64>,
    /// What messages of every size take between different processors, on average.
    mean_delay: Vec<i64>,
    /// The same where it is the same between all processors.
    uniform: Option<Vec<i64>>,
}

impl<'p> View<'p> {
    pub(super) fn forward(problem: &'p Problem) -> Self {
        let tasks = 0..problem.tasks() as u32;
        let mean = |task| {
            let works = problem.works(task);
            let sum: i128 = works.iter().map(|&work| i128::from(work)).sum();
            (sum / works.len().max(1) as i128) as i64
        };
        let least = |task| problem.works(task).iter().copied().min().unwrap_or(0);
        Self {
            problem,
            backward: false,
            order: problem.order().to_vec(),
            mean_work: tasks.clone().map(mean).collect(),
            least_work: tasks.map(least).collect(),
            mean_delay: problem.delay_summary().mean,
            uniform: problem.delays().uniform(),
        }
    }

    /// The same problem from its end.
    pub(super) fn backward(&self) -> Self {
        Self {
            problem: self.problem,
            backward: !self.backward,
            order: self.order.iter().rev().copied().collect(),
            mean_work: self.mean_work.clone(),
            least_work: self.least_work.clone(),
            mean_delay: self.mean_delay.clone(),
            uniform: self.uniform.clone(),
        }
    }

    pub(super) fn tasks(&self) -> usize {
        self.problem.tasks()
    }

    pub(super) fn processors(&self) -> usize {
        self.problem.processors()
    }

    pub(super) fn parents(&self, task: u32) -> &'p [Message] {
        if self.backward { self.problem.children(task) } else { self.problem.parents(task) }
    }

    pub(super) fn children(&self, task: u32) -> &'p [Message] {
        if self.backward { self.problem.parents(task) } else { self.problem.children(task) }
    }

    /// What a message takes on average.
    pub(super) fn mean_delay(&self, message: Message) -> i64 {
        self.mean_delay[message.size as usize]
    }

    /// When processors can begin.
    pub(super) fn available(&self) -> Vec<i64> {
        if self.backward { vec![0; self.processors()] } else { self.problem.available().to_vec() }
    }

    /// Whether a processor receives before it computes.
    pub(super) fn receives(&self) -> bool {
        !self.backward && self.problem.model() == DelayModel::Receive
    }

    /// Calls a function with what a message takes to every processor.
    pub(super) fn for_every(&self, size: u32, from: u32, mut take: impl FnMut(usize, i64)) {
        match &self.uniform {
            Some(uniform) => {
                let (far, from) = (uniform[size as usize], from as usize);
                (0..from).for_each(|processor| take(processor, far));
                take(from, 0);
                (from + 1..self.processors()).for_each(|processor| take(processor, far));
            }
            None if self.backward => {
                let every = 0..self.processors() as u32;
                every.for_each(|to| take(to as usize, self.problem.delay(size, to, from)));
            }
            None => {
                let every = 0..self.processors() as u32;
                every.for_each(|to| take(to as usize, self.problem.delay(size, from, to)));
            }
        }
    }

    /// The plan in which tasks run where and when they were put.
    pub(super) fn plan(&self, start: &[i64], finish: &[i64], processor: Vec<u32>) -> Plan {
        if !self.backward {
            return Plan::of_times(self.problem, start, finish, processor);
        }
        let last = finish.iter().copied().max().unwrap_or(0);
        let mirrored = |times: &[i64]| times.iter().map(|time| last - time).collect::<Vec<_>>();
        Plan::of_times(self.problem, &mirrored(finish), &mirrored(start), processor)
    }
}
