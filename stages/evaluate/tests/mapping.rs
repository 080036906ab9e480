//! The stage `evaluate/mapping` from its inputs to its metrics.

use std::sync::Arc;

use hopmap_evaluate::{MappingParams, MappingStage};
use hopmap_model::{
    Context, CostModel, Edge, Inputs, Levels, Link, Mapping, Metrics, Node, NodeKind, Observer, Outcome,
    PlacementOrigin, Process, Slot, Stage, SystemGraph, TaskGraph, Weight,
};

/// Hosts of two cores under one switch; costs 1 and 10.
pub(crate) fn machine(hosts: u32) -> SystemGraph {
    let node = |name, kind| Node::new(name, kind);
    let mut nodes: Vec<_> = (0..hosts).map(|host| node(format!("host{host}"), NodeKind::Host)).collect();
    nodes.push(node("switch".into(), NodeKind::Switch));
    let link = |(source, destination)| Link::new(source, destination);
    let slots = 2 * hosts;
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes,
        links: (0..hosts).flat_map(|host| [(host, hosts), (hosts, host)]).map(link).collect(),
        slots: (0..slots).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect(),
        cost: CostModel::Levels(Levels {
            costs: vec![1.0, 10.0],
            groups: vec![(0..slots).map(|slot| slot / 2).collect(), vec![0; slots as usize]],
        }),
        calibration: Vec::new(),
    }
}

/// Rank i sends bytes to rank i + ranks / 2.
fn far_pairs(ranks: u32) -> TaskGraph {
    let edge = |source| Edge { source, destination: source + ranks / 2, messages: 2, bytes: 100 };
    TaskGraph {
        processes: vec![Process::default(); ranks as usize],
        edges: (0..ranks / 2).map(edge).collect(),
        ..TaskGraph::default()
    }
}

fn evaluate(
    graph: &TaskGraph,
    system: &SystemGraph,
    mapping: Mapping,
    params: MappingParams,
    cx: &Context<'_>,
) -> Result<Outcome, hopmap_model::Error> {
    let mut inputs = Inputs::new();
    inputs.connect("task-graph", Arc::new(graph.clone()), "1".into(), "program".into());
    inputs.connect("system", Arc::new(system.clone()), "2".into(), "machine".into());
    inputs.connect("mapping", Arc::new(mapping), "3".into(), "placement".into());
    MappingStage::run(params, inputs, cx)
}

fn metrics(outcome: &Outcome) -> Metrics {
    let (Outcome::Done(outputs) | Outcome::Partial(outputs)) = outcome else { panic!("{outcome:?}") };
    outputs.get("metrics").unwrap().downcast_ref::<Metrics>().unwrap().clone()
}

fn best(system: &SystemGraph, weight: Weight) -> Mapping {
    Mapping::new(&[0, 2, 4, 6, 1, 3, 5, 7], system, weight).unwrap()
}

#[test]
fn a_mapping_is_compared_with_linear_round_robin_and_twenty_random_ones() {
    let (graph, system) = (far_pairs(8), machine(4));
    let mapping = best(&system, Weight::Bytes);
    let outcome = evaluate(&graph, &system, mapping, MappingParams::default(), &Context::detached()).unwrap();
    assert!(matches!(outcome, Outcome::Done(_)));
    let metrics = metrics(&outcome);
    let origins: Vec<_> = metrics.placements.iter().map(|row| (row.origin, row.sample)).collect();
    assert_eq!(
        origins[..4],
        [
            (PlacementOrigin::Mapping, 0),
            (PlacementOrigin::Linear, 0),
            (PlacementOrigin::RoundRobin, 0),
            (PlacementOrigin::Random, 0)
        ]
    );
    assert_eq!((origins.len(), origins[22]), (23, (PlacementOrigin::Random, 19)));
    let close = |name: &str, value: f64| {
        assert!((metrics.summary[name] - value).abs() < 1e-12, "{name} is {}", metrics.summary[name]);
    };
    close("F", 400.0);
    close("F_linear", 4000.0);
    close("F_over_linear", 0.1);
    // With four hosts, ranks i and i + 4 share a host.
    close("F_round_robin", 400.0);
    close("F_over_round_robin", 1.0);
    close("hop_bytes", 0.0);
    close("hop_bytes_linear", 800.0);
    close("hop_bytes_over_linear", 0.0);
    let mut random: Vec<_> = metrics.placements[3..].iter().map(|row| row.values["F"]).collect();
    random.sort_by(f64::total_cmp);
    close("F_random", f64::midpoint(random[9], random[10]));
    assert!(metrics.placements[3..].iter().any(|row| row.values != metrics.placements[3].values));
}

#[test]
fn the_weight_is_that_of_the_mapping() {
    let (graph, system) = (far_pairs(8), machine(4));
    let mapping = best(&system, Weight::Messages);
    let outcome = evaluate(&graph, &system, mapping, MappingParams::default(), &Context::detached()).unwrap();
    assert!((metrics(&outcome).summary["F"] - 8.0).abs() < 1e-12);
}

#[test]
fn samples_and_seed_determine_the_random_mappings() {
    let (graph, system) = (far_pairs(8), machine(6));
    let rows = |samples, seed| {
        let mapping = best(&system, Weight::Bytes);
        let params = MappingParams { samples, seed };
        metrics(&evaluate(&graph, &system, mapping, params, &Context::detached()).unwrap())
    };
    assert_eq!(rows(5, 1), rows(5, 1));
    assert_ne!(rows(5, 1), rows(5, 2));
    assert_eq!(rows(5, 1).placements[..], rows(9, 1).placements[..8]);
    let none = rows(0, 1);
    assert_eq!(none.placements.len(), 3);
    assert!(!none.summary.contains_key("F_random") && none.summary.contains_key("F_linear"));
}

#[test]
fn mappings_of_other_programs_and_machines_are_refused() {
    let (graph, system) = (far_pairs(8), machine(4));
    let message = |graph: &TaskGraph, system: &SystemGraph, mapping: Mapping| {
        let run = evaluate(graph, system, mapping, MappingParams::default(), &Context::detached());
        run.unwrap_err().to_string()
    };
    let mapping = || best(&system, Weight::Bytes);
    assert_eq!(
        message(&far_pairs(6), &system, mapping()),
        "the mapping has 8 ranks, but the task graph has 6"
    );
    let expected = "the mapping is for 4 hosts, but the system graph has 5";
    assert_eq!(message(&graph, &machine(5), mapping()), expected);
    let mut renamed = machine(4);
    renamed.nodes[2].name = "other".into();
    let expected = "host 2 is `host2` with 2 slots in the mapping, but `other` with 2 in the system graph";
    assert_eq!(message(&graph, &renamed, mapping()), expected);
    let mut broken = mapping();
    broken.ranks[1].slot = 0;
    assert_eq!(message(&graph, &system, broken), "ranks 0 and 1 are both on slot 0");
}

#[test]
fn a_stopped_comparison_returns_its_partial_result() {
    struct Stopped;
    impl Observer for Stopped {
        fn progress(&self, _: u64, _: u64) {}
        fn log(&self, _: &str) {}
        fn cancelled(&self) -> bool {
            true
        }
    }
    let (graph, system) = (far_pairs(8), machine(4));
    let cx = Context::new(2, None, &Stopped);
    let outcome =
        evaluate(&graph, &system, best(&system, Weight::Bytes), MappingParams::default(), &cx).unwrap();
    assert!(matches!(outcome, Outcome::Partial(_)));
    assert_eq!(metrics(&outcome).placements.len(), 3);
}

#[test]
fn parameters_of_a_pipeline_file() {
    assert_eq!(serde_json::from_str::<MappingParams>("{}").unwrap(), MappingParams { samples: 20, seed: 1 });
    assert!(serde_json::from_str::<MappingParams>(r#"{"sample": 3}"#).is_err());
}
