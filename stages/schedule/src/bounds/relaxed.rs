//! What is certain of a problem: what every task takes at least, and when it can begin at the earliest.

use hopmap_model::DelayModel;

use super::heads::{ancestors, earliest, received};
use crate::Problem;

/// Most tasks for which all pairs of tasks are looked at.
const MOST_TASKS: usize = 2048;

/// A problem in which every task runs on the processor that is the fastest for it and every message is the shortest.
#[derive(Debug, Clone)]
pub(crate) struct Relaxed {
    /// The tasks, none before one that it waits for.
    pub(crate) order: Vec<u32>,
    /// What every task takes at least.
    pub(crate) work: Vec<i64>,
    /// No task begins before.
    pub(crate) head: Vec<i64>,
    /// What is left at least when a task is done.
    pub(crate) tail: Vec<i64>,
    /// When processors can begin, rising.
    pub(crate) available: Vec<i64>,
    /// The messages to every task.
    pub(crate) parents: Vec<Vec<Link>>,
    /// The messages from every task.
    pub(crate) children: Vec<Vec<Link>>,
}

/// A message as the task at one end sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// The task at the other end.
    pub(crate) task: u32,
    /// What it takes at least between two processors.
    pub(crate) far: i64,
    /// What it takes at least on one processor, no more than `far`.
    pub(crate) near: i64,
}

impl Relaxed {
    pub(crate) fn new(problem: &Problem) -> Self {
        let summary = problem.delay_summary();
        let link = |message: &crate::Message| {
            let (far, near) = (summary.shortest[message.size as usize], summary.local[message.size as usize]);
            Link { task: message.task, far, near: near.min(far) }
        };
        let tasks = 0..problem.tasks() as u32;
        let links = |messages: &[crate::Message]| messages.iter().map(link).collect::<Vec<_>>();
        let least = |task| problem.works(task).iter().copied().min().unwrap_or(0);
        let mut available = problem.available().to_vec();
        available.sort_unstable();
        let mut relaxed = Self {
            order: problem.order().to_vec(),
            work: tasks.clone().map(least).collect(),
            head: vec![available.first().copied().unwrap_or(0); problem.tasks()],
            tail: vec![0; problem.tasks()],
            available,
            parents: tasks.clone().map(|task| links(problem.parents(task))).collect(),
            children: tasks.map(|task| links(problem.children(task))).collect(),
        };
        relaxed.find_windows(problem.model());
        relaxed
    }

    fn find_windows(&mut self, model: DelayModel) {
        let quick = self.work.len() <= MOST_TASKS;
        let backward: Vec<u32> = self.order.iter().rev().copied().collect();
        let before = if quick { ancestors(&self.order, &self.parents) } else { Vec::new() };
        let after = if quick { ancestors(&backward, &self.children) } else { Vec::new() };
        let processors = self.available.len();
        match model {
            DelayModel::Overlap => {
                earliest(&self.order, &self.parents, &self.work, &mut self.head, &before, processors);
            }
            DelayModel::Receive => received(self, &before),
        }
        // From the end both models are alike: what is sent to another processor takes its time before the work.
        earliest(&backward, &self.children, &self.work, &mut self.tail, &after, processors);
    }

    /// The longest chain.
    pub(crate) fn chain(&self) -> i64 {
        let windows = self.head.iter().zip(&self.work).zip(&self.tail);
        windows.map(|((head, work), tail)| head + work + tail).max().unwrap_or(0)
    }

    /// Of one more task than `count` on every processor, some processor runs `count + 1`: at least the shortest of them, all between
    /// the earliest beginning and the least tail.
    pub(crate) fn crowded(&self) -> i64 {
        let processors = self.available.len();
        let mut longest: Vec<usize> = (0..self.work.len()).collect();
        longest.sort_unstable_by_key(|&task| (std::cmp::Reverse(self.work[task]), task));
        let (mut head, mut tail, mut most, mut taken) = (i64::MAX, i64::MAX, 0, 0);
        for (count, group) in longest.chunks(processors).enumerate() {
            // The group begins with the task that is one too many.
            let one = group[0];
            (head, tail) = (head.min(self.head[one]), tail.min(self.tail[one]));
            taken += 1;
            let shortest = &longest[taken - 1 - count..taken];
            let work: i64 = shortest.iter().map(|&task| self.work[task]).sum();
            most = most.max(head + work + tail);
            for &task in &group[1..] {
                (head, tail) = (head.min(self.head[task]), tail.min(self.tail[task]));
                taken += 1;
            }
            if count > MOST_TASKS {
                break;
            }
        }
        most
    }
}
