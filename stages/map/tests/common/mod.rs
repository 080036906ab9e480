//! Machines, programs, and a checker independent of the mappers.
#![allow(dead_code, reason = "every test uses a part of it")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use hopmap_map::{AutoParams, AutoStage};
use hopmap_model::{
    Context, CostModel, Edge, Inputs, Levels, Link, Mapping, Node, NodeKind, Observer, Outcome, Outputs,
    Process, Slot, Stage, SystemGraph, TaskGraph,
};

/// A tree with costs 1, 10, 100, …; hosts are the groups of the innermost level, all under one switch. Links have a
/// bandwidth, but no latency.
pub(crate) fn tree(shape: &[u32]) -> SystemGraph {
    let slots: u32 = shape.iter().product();
    let sizes: Vec<u32> = (1..=shape.len()).map(|levels| shape[..levels].iter().product()).collect();
    let hosts = slots / shape[0];
    let node = |name, kind| Node::new(name, kind);
    let mut nodes: Vec<_> = (0..hosts).map(|host| node(format!("host{host}"), NodeKind::Host)).collect();
    nodes.push(node("switch".into(), NodeKind::Switch));
    let link =
        |(source, destination)| Link { bandwidth_bytes_per_s: Some(1e9), ..Link::new(source, destination) };
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes,
        links: (0..hosts).flat_map(|host| [(host, hosts), (hosts, host)]).map(link).collect(),
        slots: (0..slots).map(|slot| Slot { host: slot / shape[0], core: slot % shape[0] }).collect(),
        cost: CostModel::Levels(Levels {
            costs: (0..shape.len()).map(|level| (0..level).fold(1.0, |cost, _| 10.0 * cost)).collect(),
            groups: sizes.iter().map(|size| (0..slots).map(|slot| slot / size).collect()).collect(),
        }),
        calibration: Vec::new(),
    }
}

/// A tree of switches with costs 1, 10, 100, …: `shape[0]` slots on a host, `shape[1]` hosts on a switch, and
/// so on.
pub(crate) fn switches(shape: &[u32]) -> SystemGraph {
    let mut system = tree(shape);
    let mut below = system.slots.len() as u32 / shape[0];
    system.nodes.truncate(below as usize);
    system.links.clear();
    let mut first = 0;
    for width in &shape[1..] {
        let switch = first + below;
        for node in 0..below {
            for (a, b) in [(first + node, switch + node / width), (switch + node / width, first + node)] {
                system.links.push(Link { bandwidth_bytes_per_s: Some(1e9), ..Link::new(a, b) });
            }
        }
        (first, below) = (switch, below / width);
        system.nodes.extend((switch..switch + below).map(|n| Node::new(format!("s{n}"), NodeKind::Switch)));
    }
    system
}

pub(crate) fn graph(ranks: usize, edges: impl IntoIterator<Item = (u32, u32, u64)>) -> TaskGraph {
    let edges: BTreeMap<_, _> = edges.into_iter().map(|(i, j, bytes)| ((i, j), bytes)).collect();
    let edge = |((source, destination), bytes)| Edge { source, destination, messages: 1, bytes };
    TaskGraph {
        processes: vec![Process::default(); ranks],
        edges: edges.into_iter().map(edge).collect(),
        ..TaskGraph::default()
    }
}

/// A grid in which every rank sends to its four neighbours.
pub(crate) fn grid(width: u32, height: u32) -> TaskGraph {
    let rank = move |x: u32, y: u32| y * width + x;
    let right = (1..width).flat_map(move |x| (0..height).map(move |y| (rank(x - 1, y), rank(x, y))));
    let down = (0..width).flat_map(move |x| (1..height).map(move |y| (rank(x, y - 1), rank(x, y))));
    let both = right.chain(down).flat_map(|(a, b)| [(a, b, 8), (b, a, 8)]);
    graph((width * height) as usize, both)
}

/// F and T as double sums over a matrix, with the cost of a tree of this shape from divisions.
pub(crate) fn double_sums(graph: &TaskGraph, shape: &[u32], slots: &[u32]) -> (f64, f64) {
    let n = graph.ranks();
    let mut bytes = vec![vec![0.0; n]; n];
    for edge in &graph.edges {
        bytes[edge.source as usize][edge.destination as usize] = edge.bytes as f64;
    }
    let cost = |mut a: u32, mut b: u32| {
        let mut cost = 0.0;
        let mut next = 1.0;
        for branches in shape {
            if a != b {
                cost = next;
            }
            (a, b) = (a / branches, b / branches);
            next *= 10.0;
        }
        cost
    };
    let (mut f, mut t) = (0.0, 0.0f64);
    for i in 0..n {
        let mut of_rank = 0.0;
        for j in 0..n {
            f += bytes[i][j] * cost(slots[i], slots[j]);
            of_rank +=
                0.5 * (bytes[i][j] * cost(slots[i], slots[j]) + bytes[j][i] * cost(slots[j], slots[i]));
        }
        t = t.max(of_rank);
    }
    (f, t)
}

/// The minimum F of all mappings, by enumeration.
pub(crate) fn exhaustive(graph: &TaskGraph, shape: &[u32], slots: &mut Vec<u32>) -> f64 {
    if slots.len() == graph.ranks() {
        return double_sums(graph, shape, slots).0;
    }
    let mut best = f64::INFINITY;
    for slot in 0..shape.iter().product() {
        if !slots.contains(&slot) {
            slots.push(slot);
            best = best.min(exhaustive(graph, shape, slots));
            slots.pop();
        }
    }
    best
}

pub(crate) fn inputs(graph: &TaskGraph, system: &SystemGraph) -> Inputs {
    let mut inputs = Inputs::new();
    inputs.connect("task-graph", Arc::new(graph.clone()), "1".into(), "program".into());
    inputs.connect("system", Arc::new(system.clone()), "2".into(), "machine".into());
    inputs
}

pub(crate) fn mapping(outputs: &Outputs) -> Mapping {
    outputs.get("mapping").unwrap().downcast_ref::<Mapping>().unwrap().clone()
}

/// An observer that ignores everything and never stops a stage.
pub(crate) struct Silent;

impl Observer for Silent {
    fn progress(&self, _: u64, _: u64) {}
    fn log(&self, _: &str) {}
    fn cancelled(&self) -> bool {
        false
    }
}

/// Records the log of a stage, and stops it if requested.
#[derive(Default)]
pub(crate) struct Listener {
    pub(crate) lines: Mutex<Vec<String>>,
    pub(crate) impatient: bool,
}

impl Observer for Listener {
    fn progress(&self, _: u64, _: u64) {}
    fn log(&self, line: &str) {
        self.lines.lock().unwrap().push(line.to_owned());
    }
    fn cancelled(&self) -> bool {
        self.impatient
    }
}

/// Runs a stage to its end.
pub(crate) fn run<S: Stage>(params: S::Params, graph: &TaskGraph, system: &SystemGraph) -> Mapping {
    match S::run(params, inputs(graph, system), &Context::detached()).unwrap() {
        Outcome::Done(outputs) => mapping(&outputs),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn anneal(seed: u64, graph: &TaskGraph, system: &SystemGraph) -> Mapping {
    run::<AutoStage>(AutoParams { seed, ..AutoParams::default() }, graph, system)
}
