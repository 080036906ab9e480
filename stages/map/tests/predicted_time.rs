//! `objective = "predicted-time"`: no objective finds a faster mapping, and `predict/time` gives the seconds that it says.

use std::collections::BTreeMap;
use std::sync::Arc;

use hopmap_map::{AutoGoal, AutoParams, AutoStage, Blocks, Pin};
use hopmap_model::{
    Context, Edge, Envelope, Inputs, Link, Mapping, Node, NodeKind, Outcome, Phase, Program, ProgramBuilder,
    Stage, SystemGraph, TaskGraph, Weight,
};
use hopmap_objective::Objective;
use hopmap_prediction::{Options, replay};
use hopmap_test_support::Random;
use proptest::prelude::*;

use crate::common::{Listener, Silent, graph, inputs, mapping, tree};

/// Hosts of two slots, two of them under each leaf switch, and a root; the links between switches are the slowest.
fn machine_of(leaves: u32) -> SystemGraph {
    let hosts = 2 * leaves;
    let rated = |(source, destination): (u32, u32)| {
        let bandwidth = if source.max(destination) < hosts + leaves { 1e8 } else { 4e7 };
        Link {
            latency_s: Some(2e-5),
            bandwidth_bytes_per_s: Some(bandwidth),
            ..Link::new(source, destination)
        }
    };
    let ends =
        (0..hosts + leaves).map(|node| (node, if node < hosts { hosts + node / 2 } else { hosts + leaves }));
    let kind = |node| if node < hosts { NodeKind::Host } else { NodeKind::Switch };
    SystemGraph {
        nodes: (0..=hosts + leaves).map(|node| Node::new(format!("n{node}"), kind(node))).collect(),
        links: ends.flat_map(|(a, b)| [(a, b), (b, a)]).map(rated).collect(),
        ..tree(&[2, 2, leaves])
    }
}

fn machine() -> SystemGraph {
    machine_of(2)
}

/// Every rank sends its edges, receives, waits and computes, twice.
fn program(graph: &TaskGraph) -> Program {
    let mut program = ProgramBuilder::new(graph.ranks() as u32);
    let envelope = |peer| Envelope { peer, tag: 0, communicator: 0 };
    for _ in 0..2 {
        for &Edge { source, destination, bytes, .. } in &graph.edges {
            program.irecv(destination, envelope(source), bytes);
            program.isend(source, envelope(destination), bytes);
        }
        for rank in 0..graph.ranks() as u32 {
            program.waitall(rank);
            program.compute(rank, 1e-4 * f64::from(1 + rank % 3));
        }
    }
    program.finish().unwrap()
}

fn ring(ranks: u32) -> TaskGraph {
    graph(ranks as usize, (0..ranks).map(|rank| (3 * rank % ranks, 3 * (rank + 1) % ranks, 50_000)))
}

fn with_program(graph: &TaskGraph, system: &SystemGraph) -> Inputs {
    let mut inputs = inputs(graph, system);
    inputs.connect("program", Arc::new(program(graph)), "3".into(), "operations".into());
    inputs
}

fn params() -> AutoParams {
    let objective = AutoGoal::PredictedTime;
    AutoParams { objective, evaluations: Some(2000), replays: Some(40), ..AutoParams::default() }
}

fn search(params: AutoParams, graph: &TaskGraph, system: &SystemGraph, cx: &Context<'_>) -> Mapping {
    match AutoStage::run(params, with_program(graph, system), cx).unwrap() {
        Outcome::Done(outputs) => mapping(&outputs),
        other => panic!("{other:?}"),
    }
}

fn seconds(graph: &TaskGraph, system: &SystemGraph, mapping: &Mapping) -> f64 {
    replay(&program(graph), system, mapping, &Options::default(), &|| false).unwrap().seconds()
}

/// Run times that differ less are equal.
const SAME: f64 = 1e-9;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn no_objective_is_faster_and_the_seconds_are_those_of_a_replay(
        edges in prop::collection::vec((0u32..7, 0u32..7, 1u64..200_000), 1..20), seed in 0u64..100,
    ) {
        let edges = edges.into_iter().filter(|(source, destination, _)| source != destination);
        let (graph, system) = (graph(7, edges), machine());
        let found = search(AutoParams { seed, ..params() }, &graph, &system, &Context::detached());
        found.check().unwrap();
        let predicted = found.metrics["predicted_s"];
        prop_assert_eq!(predicted.to_bits(), seconds(&graph, &system, &found).to_bits());
        for index in 0..Objective::NAMES.len() {
            let mut weights = Objective::NAMES.map(|_| 0.0);
            weights[index] = 1.0;
            let objective = Objective::of_weights(weights).into();
            let single = search(AutoParams { objective, seed, ..params() }, &graph, &system, &Context::detached());
            prop_assert!(predicted <= seconds(&graph, &system, &single) * (1.0 + SAME), "{}", Objective::NAMES[index]);
        }
    }
}

#[test]
fn exchanges_shorten_the_run_until_none_does() {
    let (graph, system) = (ring(8), machine());
    let judged = search(AutoParams { replays: Some(0), ..params() }, &graph, &system, &Context::detached());
    let found = search(AutoParams { replays: Some(2000), ..params() }, &graph, &system, &Context::detached());
    let best = seconds(&graph, &system, &found);
    assert!(best <= judged.metrics["predicted_s"] && judged.metrics["replays"] < 0.5);
    assert!(found.convergence.windows(2).all(|points| points[0].cost > points[1].cost));
    let slots = found.slots();
    for (one, other) in (0..8).flat_map(|one| (0..one).map(move |other| (one, other))) {
        let mut exchanged = slots.clone();
        exchanged.swap(one, other);
        let exchanged = Mapping::new(&exchanged, &system, found.weight).unwrap();
        assert!(seconds(&graph, &system, &exchanged) >= best * (1.0 - SAME), "{one} and {other}");
    }
}

/// The mapping of blocks of two ranks to hosts.
fn of_blocks(hosts: &[u32], system: &SystemGraph, weight: Weight) -> Mapping {
    let slots: Vec<u32> = hosts.iter().flat_map(|host| [2 * host, 2 * host + 1]).collect();
    Mapping::new(&slots, system, weight).unwrap()
}

/// All orders of some of the hosts.
fn orders(hosts: u32, length: usize) -> Vec<Vec<u32>> {
    let Some(length) = length.checked_sub(1) else { return vec![Vec::new()] };
    let longer = |order: Vec<u32>| {
        let others = (0..hosts).filter(|host| !order.contains(host)).collect::<Vec<_>>();
        others.into_iter().map(move |host| [&order[..], &[host]].concat())
    };
    orders(hosts, length).into_iter().flat_map(longer).collect()
}

#[test]
fn no_order_of_hosts_is_faster_than_that_of_blocks() {
    let system = machine();
    let blocks = Some(Blocks::Listed((0..4).map(|block| vec![2 * block, 2 * block + 1]).collect()));
    for graph in [ring(8), graph(8, [(0, 4, 90_000), (2, 6, 70_000), (1, 7, 50_000), (3, 5, 10_000)])] {
        let params = AutoParams { blocks: blocks.clone(), replays: Some(200), ..params() };
        let found = search(params, &graph, &system, &Context::detached());
        let times = orders(4, 4)
            .into_iter()
            .map(|order| seconds(&graph, &system, &of_blocks(&order, &system, found.weight)));
        let best = times.fold(f64::INFINITY, f64::min);
        assert_eq!(found.metrics["predicted_s"].to_bits(), seconds(&graph, &system, &found).to_bits());
        assert!(found.metrics["predicted_s"] <= best * (1.0 + SAME));
        assert!(found.slots().chunks(2).all(|block| block[0] % 2 == 0 && block[1] == block[0] + 1));
    }
}

/// Of orders that were equally fast, the first one was taken whatever it costs: often the linear one.
#[test]
fn of_equally_fast_orders_none_costs_less() {
    let (system, mut random, mut differing) = (machine_of(3), Random(7), 0);
    let costs = system.costs();
    for round in 0..40 {
        let ranks = 2 * (2 + random.below(3));
        // One pair takes most of the time, so that many orders are equally fast.
        let light = (0..=random.below(8)).map(|_| {
            let [source, destination] = [0; 2].map(|_| random.below(ranks) as u32);
            (source, destination, 2_000 * (1 + random.below(3) as u64))
        });
        let edges = light.chain([(0, 2, 2_000_000)]);
        let graph = graph(ranks, edges.filter(|(source, destination, _)| source != destination));
        let blocks = (0..ranks as u32).step_by(2).map(|rank| vec![rank, rank + 1]).collect();
        let (blocks, weight) = (Some(Blocks::Listed(blocks)), Weight::Bytes.into());
        let params = AutoParams { blocks, weight, evaluations: Some(200), replays: Some(200), ..params() };
        let found = search(params, &graph, &system, &Context::detached());
        let judged = |mapping: &Mapping| {
            let slots = mapping.slots();
            let cost = |edge: &Edge| {
                let [from, to] = [edge.source, edge.destination].map(|rank| slots[rank as usize]);
                edge.bytes as f64 * costs.between(from, to)
            };
            (seconds(&graph, &system, mapping), graph.edges.iter().map(cost).sum::<f64>())
        };
        let all =
            orders(6, ranks / 2).into_iter().map(|order| judged(&of_blocks(&order, &system, found.weight)));
        let all: Vec<(f64, f64)> = all.collect();
        let least = all.iter().map(|(seconds, _)| *seconds).fold(f64::INFINITY, f64::min);
        let equal = all.iter().filter(|(seconds, _)| *seconds <= least * (1.0 + SAME)).map(|(_, cost)| *cost);
        let (best, worst) = (equal.clone().fold(f64::INFINITY, f64::min), equal.fold(0.0, f64::max));
        differing += usize::from(best < worst * (1.0 - SAME));
        let (seconds, cost) = judged(&found);
        assert!(seconds <= least * (1.0 + SAME) && cost <= best * (1.0 + SAME), "{round}: {cost}, {best}");
    }
    assert!(differing > 5, "{differing} rounds have fast orders of different costs");
}

#[test]
fn given_mappings_are_candidates_unless_they_break_a_border() {
    let (graph, system) = (ring(8), machine());
    let mut graph = TaskGraph { phases: vec![Phase::default()], ..graph };
    let edge = |(source, destination)| Edge { source, destination, messages: 1, bytes: 8 };
    graph.phases[0] = Phase {
        name: Some("dp".into()),
        compute_s: vec![None; 8],
        edges: [(0, 4), (2, 6)].map(edge).to_vec(),
        ..Phase::default()
    };
    let blocks = Some(Blocks::Listed((0..4).map(|block| vec![2 * block, 2 * block + 1]).collect()));
    let search = |given: &Mapping, borders| {
        let listener = Listener::default();
        let mut inputs = with_program(&graph, &system);
        inputs.connect("mappings", Arc::new(given.clone()), "4".into(), "given".into());
        let params = AutoParams { blocks: blocks.clone(), borders, replays: Some(0), ..params() };
        let found = AutoStage::run(params, inputs, &Context::new(1, None, &listener)).unwrap();
        let Outcome::Done(outputs) = found else { panic!("{found:?}") };
        (mapping(&outputs), listener.lines.into_inner().unwrap().join("\n"))
    };
    for order in orders(4, 4) {
        let given = of_blocks(&order, &system, Weight::Bytes);
        let (found, log) = search(&given, BTreeMap::new());
        let most = seconds(&graph, &system, &given) * (1.0 + SAME);
        assert!(seconds(&graph, &system, &found) <= most, "{order:?}");
        assert!(log.contains("candidate given: predicted"), "{log}");
        let (found, log) = search(&given, BTreeMap::from([("dp".to_owned(), 1)]));
        let is_kept = |order: &[u32]| order[0] / 2 == order[2] / 2 && order[1] / 2 == order[3] / 2;
        let hosts: Vec<u32> = found.slots().iter().step_by(2).map(|slot| slot / 2).collect();
        assert!(is_kept(&hosts), "{hosts:?}");
        assert_eq!(
            log.contains("candidate given: none, because it is not possible here"),
            !is_kept(&order),
            "{log}"
        );
    }
}

#[test]
fn the_number_of_threads_changes_no_prediction() {
    let (graph, system) = (ring(7), machine());
    let search = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let cx = Context::new(threads, None, &Silent);
        pool.install(|| search(params(), &graph, &system, &cx))
    };
    assert_eq!(search(1), search(3));
}

#[test]
fn the_log_says_the_seconds_of_every_candidate() {
    let listener = Listener::default();
    let cx = Context::new(1, None, &listener);
    let found = search(params(), &ring(7), &machine(), &cx);
    let lines = listener.lines.into_inner().unwrap();
    let names = [
        "linear",
        "round-robin",
        "F by time",
        "T by time",
        "F by bytes",
        "hop-bytes",
        "max-link-load",
        "max-link-time",
    ];
    for name in names {
        let start = format!("candidate {name}: predicted run time 0.");
        assert!(lines.iter().any(|line| line.starts_with(&start)), "{name}: {lines:#?}");
    }
    let last = format!("predicted run time {:.6} s, ", found.metrics["predicted_s"]);
    assert!(lines.last().unwrap().starts_with(&last), "{lines:#?}");
}

#[test]
fn constraints_hold_after_exchanges() {
    let pinned = vec![Pin { rank: 3, slot: Some(6), host: None }];
    let params = AutoParams { pinned, forbidden: vec!["n0".into()], ..params() };
    let found = search(params, &ring(6), &machine(), &Context::detached());
    let slots = found.slots();
    assert!(slots[3] == 6 && slots.iter().all(|&slot| slot >= 2), "{slots:?}");
}

#[test]
fn an_interrupted_search_keeps_a_mapping_and_a_time_limit_ends_it() {
    let (graph, system) = (ring(8), machine());
    let listener = Listener { impatient: true, ..Listener::default() };
    let cx = Context::new(1, None, &listener);
    let outcome = AutoStage::run(params(), with_program(&graph, &system), &cx).unwrap();
    let Outcome::Partial(outputs) = outcome else { panic!("{outcome:?}") };
    mapping(&outputs).check().unwrap();
    let params = AutoParams { evaluations: None, replays: None, time_limit_s: Some(0.3), ..params() };
    let outcome = AutoStage::run(params, with_program(&graph, &system), &Context::detached()).unwrap();
    let Outcome::Done(outputs) = outcome else { panic!("{outcome:?}") };
    let found = mapping(&outputs);
    assert!(outputs.is_timed() && found.complete);
    assert_eq!(found.metrics["predicted_s"].to_bits(), seconds(&graph, &system, &found).to_bits());
}

#[test]
fn what_cannot_be_predicted_is_an_error() {
    let (graph, mut system) = (ring(7), machine());
    let refused = |inputs| AutoStage::run(params(), inputs, &Context::detached()).unwrap_err().to_string();
    let without = inputs(&graph, &system);
    assert_eq!(refused(without), "the objective `predicted-time` needs the operations of the program");
    let mut other = inputs(&graph, &system);
    other.connect("program", Arc::new(program(&ring(5))), "3".into(), "operations".into());
    assert_eq!(refused(other), "the program has 5 ranks, but the task graph has 7");
    system.links[2].latency_s = None;
    assert_eq!(refused(with_program(&graph, &system)), "the link from `n1` to `n4` has no latency");
    system.links.clear();
    let no_rates = "the machine has no links, and no latencies and bandwidths between its slots are known";
    assert_eq!(refused(with_program(&graph, &system)), no_rates);
}
