//! Maxima: the busiest link and the most expensive rank, compared with enumeration.

use hopmap_map::{Exact, ExactParams, ExactStage, Mapper, Pin};
use hopmap_model::{
    Context, CostModel, Levels, Link, Mapping, Matrix, Node, Paths, RouteCosts, RouteMetric, Routing, Slot,
    SystemGraph, TaskGraph, Ties, Weight,
};
use hopmap_objective::{Objective, Problem};
use hopmap_test_support::Impatient;
use proptest::prelude::*;

use crate::common::{graph, run, switches, tree};

/// Hosts in a torus, of which the links of the second dimension are slower; the route between two hosts takes the
/// first link that leads closer.
fn torus(width: u32, height: u32, cores: u32) -> SystemGraph {
    let host = |x: u32, y: u32| y % height * width + x % width;
    let all = || (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let mut ends = Vec::new();
    for (x, y) in all() {
        if width > 1 {
            ends.push((host(x, y), host(x + 1, y), 1e9));
            ends.push((host(x, y), host(x + width - 1, y), 1e9));
        }
        if height > 1 {
            ends.push((host(x, y), host(x, y + 1), 2.5e8));
            ends.push((host(x, y), host(x, y + height - 1), 2.5e8));
        }
    }
    ends.sort_by_key(|&(from, to, _)| (from, to));
    ends.dedup();
    let link = |(source, destination, bandwidth)| Link {
        bandwidth_bytes_per_s: Some(bandwidth),
        ..Link::new(source, destination)
    };
    let slots = width * height * cores;
    let hosts: Vec<u32> = (0..slots).map(|slot| slot / cores).collect();
    SystemGraph {
        nodes: (0..width * height).map(|host| Node::host(format!("host{host}"))).collect(),
        links: ends.into_iter().map(link).collect(),
        slots: (0..slots).map(|slot| Slot { host: slot / cores, core: slot % cores }).collect(),
        cost: CostModel::Routes(RouteCosts {
            metric: RouteMetric::Hops,
            inside: Levels { costs: vec![0.5], groups: vec![hosts] },
        }),
        routing: Routing { ties: Ties::First, ..Routing::default() },
        calibration: Vec::new(),
    }
}

/// The value of an objective, and the name of its metric.
type Value = (&'static str, fn(&TaskGraph, &SystemGraph, &[u32]) -> f64);

/// The largest of what links carry, each times a factor.
fn busiest(graph: &TaskGraph, system: &SystemGraph, slots: &[u32], factor: impl Fn(&Link) -> f64) -> f64 {
    let paths = Paths::new(system).unwrap();
    let mut loads = vec![0.0; system.links.len()];
    for edge in graph.edges.iter().filter(|edge| edge.source != edge.destination) {
        let node = |rank: u32| system.slots[slots[rank as usize] as usize].host;
        for link in paths.path(node(edge.source), node(edge.destination)).unwrap() {
            loads[link as usize] += edge.bytes as f64;
        }
    }
    loads.iter().zip(&system.links).map(|(load, link)| load * factor(link)).fold(0.0, f64::max)
}

const LOAD: Value = ("max_link_load_bytes", |graph, system, slots| busiest(graph, system, slots, |_| 1.0));
const TIME: Value = ("max_link_time_s", |graph, system, slots| {
    busiest(graph, system, slots, |link| 1.0 / link.bandwidth_bytes_per_s.unwrap())
});
const SHARE: Value = ("T", |graph, system, slots| {
    let matrix = system.matrix().unwrap().costs;
    let mut shares = vec![0.0; slots.len()];
    for edge in &graph.edges {
        let [from, to] = [edge.source, edge.destination].map(|rank| slots[rank as usize] as usize);
        let cost = edge.bytes as f64 * matrix[from * system.slots.len() + to];
        shares[edge.source as usize] += cost / 2.0;
        shares[edge.destination as usize] += cost / 2.0;
    }
    shares.into_iter().fold(0.0, f64::max)
});

/// The least value of all mappings that satisfy a constraint.
fn least(
    value: Value,
    graph: &TaskGraph,
    system: &SystemGraph,
    admits: &dyn Fn(usize, u32) -> bool,
    slots: &mut Vec<u32>,
) -> f64 {
    if slots.len() == graph.ranks() {
        return value.1(graph, system, slots);
    }
    let mut best = f64::INFINITY;
    for slot in 0..system.slots.len() as u32 {
        if !slots.contains(&slot) && admits(slots.len(), slot) {
            slots.push(slot);
            best = best.min(least(value, graph, system, admits, slots));
            slots.pop();
        }
    }
    best
}

fn exact(objective: Objective, params: ExactParams, graph: &TaskGraph, system: &SystemGraph) -> Mapping {
    let params = ExactParams { objective: objective.into(), weight: Weight::Bytes.into(), ..params };
    run::<ExactStage>(params, graph, system)
}

/// Checks a proof and the bounds of interrupted ones against enumeration.
fn check(
    (objective, value): (Objective, Value),
    graph: &TaskGraph,
    system: &SystemGraph,
    limit: u64,
    pinned: Option<u32>,
) -> Result<(), TestCaseError> {
    let admits = |rank: usize, slot: u32| rank > 0 || pinned.is_none_or(|pinned| pinned == slot);
    let optimum = least(value, graph, system, &admits, &mut Vec::new());
    let pinned: Vec<Pin> =
        pinned.map(|slot| Pin { rank: 0, slot: Some(slot), host: None }).into_iter().collect();
    let params =
        |nodes| ExactParams { max_search_nodes: nodes, pinned: pinned.clone(), ..ExactParams::default() };
    let is_near = |value: f64| (value - optimum).abs() <= 1e-9 * optimum;
    let proven = exact(objective, params(None), graph, system);
    prop_assert!(proven.metrics["proven"] > 0.0);
    prop_assert!(is_near(proven.metrics[value.0]) && is_near(value.1(graph, system, &proven.slots())));
    prop_assert!(is_near(proven.metrics["bound"]), "{:?} and not {optimum}", proven.metrics);
    prop_assert!(proven.slots().iter().enumerate().all(|(rank, &slot)| admits(rank, slot)));
    let limited = exact(objective, params(Some(limit)), graph, system);
    prop_assert!(limited.metrics["bound"] <= optimum * (1.0 + 1e-9), "{:?} above {optimum}", limited.metrics);
    prop_assert!(limited.metrics[value.0] >= optimum * (1.0 - 1e-9));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_busiest_link_is_proven_minimal_and_bounds_are_valid(
        which in 0usize..5, ranks in 2usize..7, seconds in any::<bool>(), limit in 1u64..30,
        edges in prop::collection::vec((0u32..6, 0u32..6, 1u64..9), 1..20), pinned in prop::option::of(0u32..6)
    ) {
        let system = match which {
            0 => switches(&[2, 2, 2]),
            1 => switches(&[1, 2, 3]),
            2 => torus(3, 2, 1),
            3 => torus(4, 2, 1),
            _ => torus(4, 1, 2),
        };
        let graph = graph(ranks, edges.into_iter().map(|(i, j, bytes)| (i % ranks as u32, j % ranks as u32, bytes)));
        let goal = if seconds { (Objective::MAX_LINK_TIME, TIME) } else { (Objective::MAX_LINK_LOAD, LOAD) };
        check(goal, &graph, &system, limit, pinned)?;
    }

    #[test]
    fn the_most_expensive_rank_is_proven_minimal_and_bounds_are_valid(
        which in 0usize..4, ranks in 2usize..7, limit in 1u64..30, pinned in prop::option::of(0u32..6),
        edges in prop::collection::vec((0u32..6, 0u32..6, 1u64..9), 1..20),
        costs in prop::collection::vec(0u64..20, 49)
    ) {
        let cost = |a: usize, b: usize| costs[a * 7 + b] as f64;
        let matrix = |symmetric: bool| {
            let pairs = (0..49).map(|at| (at / 7, at % 7));
            let value = |(a, b): (usize, usize)| match symmetric {
                true if a == b => 0.0,
                true => cost(a.min(b), a.max(b)),
                false => cost(a, b),
            };
            SystemGraph { cost: CostModel::Matrix(Matrix { costs: pairs.map(value).collect() }), ..tree(&[1, 7]) }
        };
        let system = match which {
            0 => switches(&[2, 2, 2]),
            1 => torus(3, 2, 1),
            2 => matrix(true),
            _ => matrix(false),
        };
        let graph = graph(ranks, edges.into_iter().map(|(i, j, bytes)| (i % ranks as u32, j % ranks as u32, bytes)));
        check((Objective::T, SHARE), &graph, &system, limit, pinned)?;
    }
}

/// All pairs of ranks with a few bytes each.
fn all_to_all(ranks: u32) -> TaskGraph {
    let pairs = (0..ranks).flat_map(|i| (0..ranks).map(move |j| (i, j))).filter(|(i, j)| i != j);
    graph(ranks as usize, pairs.map(|(i, j)| (i, j, 1 + u64::from(i * i * 7 + j * j * 3 + i * j) % 11)))
}

#[test]
fn a_stopped_search_for_a_maximum_resumes_where_it_was_interrupted() {
    let (graph, system) = (all_to_all(8), torus(4, 2, 1));
    let objective = Objective::MAX_LINK_LOAD;
    let problem = Problem::with_objective(&graph, &system, Weight::Bytes, &objective).unwrap();
    let exact = Exact::new(&ExactParams::default()).unwrap();
    let whole = exact.map(&problem, &Context::detached()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    let observer = Impatient::new(4000);
    let first = exact.map(&problem, &Context::new(1, None, &observer).with_state(&file)).unwrap();
    assert!(!first.complete && file.exists() && first.metrics["nodes"] < whole.metrics["nodes"]);
    assert_eq!(exact.map(&problem, &Context::detached().with_state(&file)).unwrap(), whole);
}

#[test]
fn a_sum_with_a_maximum_is_refused() {
    let objective = Objective { t: 0.5, ..Objective::F };
    let problem = Problem::with_objective(&all_to_all(4), &tree(&[2, 2]), Weight::Bytes, &objective).unwrap();
    let error = Exact::new(&ExactParams::default()).unwrap().map(&problem, &Context::detached()).unwrap_err();
    assert_eq!(error.to_string(), "map/exact proves one metric, not a sum of several");
}
