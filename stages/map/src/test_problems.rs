//! Problems for unit tests.

use hopmap_model::{CostModel, Edge, Matrix, Node, Process, Routing, Slot, SystemGraph, TaskGraph, Weight};
use hopmap_objective::{Objective, Problem};

/// A problem of as many slots as ranks, from weights and costs.
pub(crate) fn dense(
    size: usize,
    weight: impl Fn(usize, usize) -> u64,
    cost: impl Fn(usize, usize) -> f64,
) -> Problem {
    dense_with(&Objective::F, size, weight, cost)
}

/// The same with another objective.
pub(crate) fn dense_with(
    objective: &Objective,
    size: usize,
    weight: impl Fn(usize, usize) -> u64,
    cost: impl Fn(usize, usize) -> f64,
) -> Problem {
    let pairs = || (0..size).flat_map(|a| (0..size).map(move |b| (a, b)));
    let edge = |(a, b): (usize, usize)| Edge {
        source: a as u32,
        destination: b as u32,
        messages: 1,
        bytes: weight(a, b),
    };
    let graph = TaskGraph {
        processes: vec![Process::default(); size],
        edges: pairs().map(edge).filter(|edge| edge.bytes > 0).collect(),
        ..TaskGraph::default()
    };
    let system = SystemGraph {
        routing: Routing::default(),
        nodes: (0..size).map(|host| Node::host(format!("host{host}"))).collect(),
        links: Vec::new(),
        slots: (0..size as u32).map(|host| Slot { host, core: 0 }).collect(),
        cost: CostModel::Matrix(Matrix { costs: pairs().map(|(a, b)| cost(a, b)).collect() }),
        calibration: Vec::new(),
    };
    Problem::with_objective(&graph, &system, Weight::Bytes, objective).expect("a problem")
}
