//! The tasks of a program and their dependencies.

use std::borrow::Cow;

use miette::Diagnostic;

use crate::stage::Artifact;

/// Tasks and their dependencies: a directed acyclic graph.
///
/// Tasks of one rank run on the same processor. Their order is part of the dependencies.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskDag {
    /// The tasks; the index is the number of the task.
    pub tasks: Vec<Task>,
    /// Dependencies, sorted by source, destination and bytes. Several between two tasks are separate
    /// messages.
    pub dependencies: Vec<Dependency>,
    /// Names of the tasks in their source file; empty if they have numbers only.
    pub names: Vec<String>,
    /// Units of work and bytes.
    pub unit: WorkUnit,
    /// Run time of the recorded program in seconds: of its longest process, from the first to the last event.
    pub recorded_s: Option<f64>,
}

/// Units of a [`TaskDag`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkUnit {
    /// Work in seconds, messages in bytes.
    #[default]
    Seconds,
    /// Dimensionless numbers of a benchmark or model: the weight of a message is its transfer time between
    /// two processors with default attributes.
    Time,
}

/// A task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Task {
    /// Its process, if assigned.
    pub rank: Option<u32>,
    /// Amount of work; in seconds if it comes from a trace.
    pub work: f64,
}

/// A task that depends on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// The predecessor.
    pub source: u32,
    /// The successor.
    pub destination: u32,
    /// Bytes of the message between them.
    pub bytes: u64,
}

/// Ranks that may have no task: what is kept for every rank must not take more memory than there is.
const MOST_IDLE_RANKS: usize = 1 << 20;

impl TaskDag {
    /// Checks that dependencies connect existing tasks, are sorted and acyclic, that work is
    /// non-negative, and that ranks are no larger than a file of this size can mean.
    pub fn check(&self) -> Result<(), TaskDagError> {
        if !self.names.is_empty() && self.names.len() != self.tasks.len() {
            return Err(TaskDagError::Names { names: self.names.len(), tasks: self.tasks.len() });
        }
        if let Some(task) = self.tasks.iter().position(|task| !(task.work.is_finite() && task.work >= 0.0)) {
            return Err(TaskDagError::Work { task, work: self.tasks[task].work });
        }
        let tasks = self.tasks.len();
        let most = tasks + MOST_IDLE_RANKS;
        if let Some(rank) = self.tasks.iter().filter_map(|task| task.rank).find(|&rank| rank as usize >= most)
        {
            return Err(TaskDagError::Rank { rank, tasks });
        }
        let missing = |edge: &Dependency| edge.source.max(edge.destination) as usize >= tasks;
        if let Some(index) = self.dependencies.iter().position(missing) {
            return Err(TaskDagError::NoSuchTask { index, tasks });
        }
        if let Some(index) = self.dependencies.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(TaskDagError::Unsorted(index + 1));
        }
        self.order().map(drop).map_err(TaskDagError::Cycle)
    }

    /// Display name of a task: its name, otherwise its number.
    #[must_use]
    pub fn name(&self, task: u32) -> Cow<'_, str> {
        match self.names.get(task as usize) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(task.to_string()),
        }
    }

    /// Number of processes: one more than the highest rank.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.tasks.iter().filter_map(|task| task.rank).max().map_or(0, |rank| rank + 1)
    }

    /// Offsets of the dependencies of each task in [`TaskDag::dependencies`], including the end of the last.
    #[must_use]
    pub fn starts(&self) -> Vec<usize> {
        let mut starts = vec![0; self.tasks.len() + 1];
        for dependency in &self.dependencies {
            starts[dependency.source as usize + 1] += 1;
        }
        for task in 0..self.tasks.len() {
            starts[task + 1] += starts[task];
        }
        starts
    }

    /// A topological order, by task number among the ready tasks. If there is a cycle, a task on it.
    pub fn order(&self) -> Result<Vec<u32>, u32> {
        let mut waiting = vec![0u32; self.tasks.len()];
        for dependency in &self.dependencies {
            waiting[dependency.destination as usize] += 1;
        }
        let starts = self.starts();
        let mut order: Vec<u32> = Vec::with_capacity(self.tasks.len());
        order.extend((0..self.tasks.len() as u32).filter(|task| waiting[*task as usize] == 0));
        let mut next = 0;
        while let Some(&task) = order.get(next) {
            next += 1;
            for dependency in &self.dependencies[starts[task as usize]..starts[task as usize + 1]] {
                let left = &mut waiting[dependency.destination as usize];
                *left -= 1;
                if *left == 0 {
                    order.push(dependency.destination);
                }
            }
        }
        if order.len() == self.tasks.len() { Ok(order) } else { Err(self.in_cycle(&waiting)) }
    }

    /// A task on a cycle: following unfinished predecessors from an unfinished task must revisit one.
    fn in_cycle(&self, waiting: &[u32]) -> u32 {
        let mut before = vec![u32::MAX; self.tasks.len()];
        for dependency in &self.dependencies {
            if waiting[dependency.source as usize] > 0 && waiting[dependency.destination as usize] > 0 {
                before[dependency.destination as usize] = dependency.source;
            }
        }
        let stuck = (0..self.tasks.len() as u32).find(|task| before[*task as usize] != u32::MAX);
        let mut task = stuck.unwrap_or(0);
        for _ in 0..self.tasks.len() {
            task = match before[task as usize] {
                u32::MAX => return task,
                source => source,
            };
        }
        task
    }

    /// Total work.
    #[must_use]
    pub fn work(&self) -> f64 {
        self.tasks.iter().map(|task| task.work).sum()
    }

    /// Largest total work of a dependency chain, ignoring messages; `None` if there is a cycle.
    #[must_use]
    pub fn critical_work(&self) -> Option<f64> {
        let starts = self.starts();
        let mut begin = vec![0.0f64; self.tasks.len()];
        let mut longest = 0.0f64;
        for task in self.order().ok()? {
            let task = task as usize;
            let end = begin[task] + self.tasks[task].work;
            longest = longest.max(end);
            for dependency in &self.dependencies[starts[task]..starts[task + 1]] {
                let next = &mut begin[dependency.destination as usize];
                *next = next.max(end);
            }
        }
        Some(longest)
    }
}

impl Artifact for TaskDag {
    const KIND: &'static str = "task-dag";
}

/// An inconsistent task graph.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Diagnostic)]
pub enum TaskDagError {
    /// Negative or non-finite work.
    #[error("task {task} has invalid work {work}")]
    #[diagnostic(code(model::work))]
    Work {
        /// The task.
        task: usize,
        /// Its work.
        work: f64,
    },
    /// A rank is much larger than the number of tasks.
    #[error("there are {tasks} tasks, but one is of rank {rank}")]
    #[diagnostic(code(model::task_dag_rank))]
    Rank {
        /// The rank.
        rank: u32,
        /// Number of tasks.
        tasks: usize,
    },
    /// Only some tasks have names.
    #[error("there are {names} names for {tasks} tasks")]
    #[diagnostic(code(model::task_dag_names))]
    Names {
        /// Number of names.
        names: usize,
        /// Number of tasks.
        tasks: usize,
    },
    /// A dependency refers to a task that does not exist.
    #[error("dependency {index} refers to a task that does not exist; there are {tasks} tasks")]
    #[diagnostic(code(model::no_such_task))]
    NoSuchTask {
        /// Index of the dependency.
        index: usize,
        /// Number of tasks.
        tasks: usize,
    },
    /// Dependencies are not sorted.
    #[error("dependency {0} is out of order: dependencies must be sorted by source, destination and bytes")]
    #[diagnostic(code(model::task_dag_unsorted))]
    Unsorted(usize),
    /// The dependencies have a cycle.
    #[error("task {0} is on a dependency cycle")]
    #[diagnostic(code(model::cycle))]
    Cycle(u32),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dag(work: &[f64], pairs: &[(u32, u32)]) -> TaskDag {
        let tasks = work.iter().map(|&work| Task { rank: Some(0), work }).collect();
        let mut dependencies: Vec<_> =
            pairs.iter().map(|&(source, destination)| Dependency { source, destination, bytes: 0 }).collect();
        dependencies.sort_unstable();
        TaskDag { tasks, dependencies, ..TaskDag::default() }
    }

    #[test]
    fn the_longest_chain_counts() {
        let diamond = dag(&[1.0, 2.0, 5.0, 1.0], &[(0, 1), (0, 2), (1, 3), (2, 3)]);
        assert_eq!(diamond.check(), Ok(()));
        assert_eq!(diamond.order(), Ok(vec![0, 1, 2, 3]));
        assert_eq!((diamond.work(), diamond.critical_work(), diamond.ranks()), (9.0, Some(7.0), 1));
        assert_eq!(TaskDag::default().critical_work(), Some(0.0));
    }

    #[test]
    fn inconsistent_graphs_are_rejected() {
        assert_eq!(dag(&[1.0], &[(0, 1)]).check(), Err(TaskDagError::NoSuchTask { index: 0, tasks: 1 }));
        assert_eq!(dag(&[-1.0], &[]).check(), Err(TaskDagError::Work { task: 0, work: -1.0 }));
        let nameless = TaskDag { names: vec!["first".into()], ..dag(&[1.0; 2], &[]) };
        assert_eq!(nameless.check(), Err(TaskDagError::Names { names: 1, tasks: 2 }));
        // `ranks` overflowed, and a replay had a list for each of billions of ranks.
        for rank in [u32::MAX, i32::MAX as u32] {
            let mut large = dag(&[1.0], &[]);
            large.tasks[0].rank = Some(rank);
            assert_eq!(large.check(), Err(TaskDagError::Rank { rank, tasks: 1 }));
        }
        let mut unsorted = dag(&[0.0; 3], &[(0, 1), (0, 2)]);
        unsorted.dependencies.reverse();
        assert_eq!(unsorted.check(), Err(TaskDagError::Unsorted(1)));
        // Task 3 depends on the cycle of 1 and 2 but is not on it.
        let cycle = dag(&[0.0; 4], &[(0, 1), (1, 2), (2, 1), (2, 3)]).check();
        assert!(matches!(cycle, Err(TaskDagError::Cycle(1 | 2))), "{cycle:?}");
    }

    proptest! {
        #[test]
        fn every_order_respects_every_dependency(pairs in prop::collection::vec((0u32..12, 0u32..12), 0..40)) {
            let graph = dag(&[1.0; 12], &pairs);
            match graph.order() {
                Ok(order) => {
                    let mut place = [0; 12];
                    order.iter().enumerate().for_each(|(at, task)| place[*task as usize] = at);
                    prop_assert!(pairs.iter().all(|&(from, to)| place[from as usize] < place[to as usize]));
                }
                Err(task) => {
                    let mut reached: Vec<u32> = vec![task];
                    let mut at = 0;
                    while at < reached.len() {
                        let after = pairs.iter().filter(|(from, _)| *from == reached[at]).map(|(_, to)| *to);
                        let new: Vec<u32> = after.filter(|to| !reached[1..].contains(to)).collect();
                        reached.extend(new);
                        at += 1;
                    }
                    prop_assert!(reached[1..].contains(&task), "{} is not on a cycle", task);
                }
            }
        }
    }
}
