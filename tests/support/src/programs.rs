//! Random programs.

use hopmap_model::{Dependency, Task, TaskDag, WorkUnit};
use proptest::prelude::*;

/// A program of four ranks: works, ranks, and edges from lower to higher numbers.
pub fn small_programs() -> impl Strategy<Value = TaskDag> {
    let task = (0u32..4, 0u32..20);
    let edge = (0usize..24, 0usize..24, 0u64..4);
    (prop::collection::vec(task, 1..24), prop::collection::vec(edge, 0..50)).prop_map(|(tasks, edges)| {
        let count = tasks.len();
        let edges =
            edges.into_iter().map(|(a, b, bytes)| (a % count, b % count, bytes)).filter(|(a, b, _)| a != b);
        let mut dependencies: Vec<_> = edges
            .map(|(a, b, bytes)| Dependency { source: a.min(b) as u32, destination: a.max(b) as u32, bytes })
            .collect();
        dependencies.sort_unstable();
        let task = |(rank, work)| Task { rank: Some(rank), work: f64::from(work) };
        let tasks = tasks.into_iter().map(task).collect();
        TaskDag { tasks, dependencies, names: Vec::new(), unit: WorkUnit::Time }
    })
}
