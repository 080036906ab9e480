//! Every mapper satisfies constraints, and searches find the best mapping under them.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_map::{
    AnnealingParams, AnnealingStage, AutoParams, AutoStage, CompositeStage, ExactParams, ExactStage,
    GeneticStage, HierarchicalStage, LinearParams, LinearStage, Pin, RandomParams, RandomStage,
    RoundRobinStage, TabuParams, TabuStage,
};
use hopmap_model::{Context, Mapping, Outcome, ProcessDemand, Stage, SystemGraph, TaskGraph};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::{double_sums, graph, grid, inputs, mapping, run, tree};

fn slot(rank: u32, slot: u32) -> Pin {
    Pin { rank, slot: Some(slot), host: None }
}

fn host(rank: u32, host: &str) -> Pin {
    Pin { rank, slot: None, host: Some(host.into()) }
}

/// The results of all mappers: linear, round-robin, random, and the searches.
fn all(pinned: &[Pin], forbidden: &[&str], graph: &TaskGraph, system: &SystemGraph) -> [Mapping; 6] {
    let pinned = || pinned.to_vec();
    let forbidden = || forbidden.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let evaluations = Some(5000);
    let linear = LinearParams { pinned: pinned(), forbidden: forbidden(), ..LinearParams::default() };
    let random = RandomParams { pinned: pinned(), forbidden: forbidden(), ..RandomParams::default() };
    let annealing = AnnealingParams {
        pinned: pinned(),
        forbidden: forbidden(),
        evaluations,
        ..AnnealingParams::default()
    };
    let auto = AutoParams { pinned: pinned(), forbidden: forbidden(), evaluations, ..AutoParams::default() };
    let tabu = TabuParams { pinned: pinned(), forbidden: forbidden(), evaluations, ..TabuParams::default() };
    [
        run::<LinearStage>(linear.clone(), graph, system),
        run::<RoundRobinStage>(linear, graph, system),
        run::<RandomStage>(random, graph, system),
        run::<AnnealingStage>(annealing, graph, system),
        run::<AutoStage>(auto, graph, system),
        run::<TabuStage>(tabu, graph, system),
    ]
}

/// The minimum F of all mappings that satisfy the constraints, by enumeration.
fn best(
    graph: &TaskGraph,
    shape: &[u32],
    admitted: &dyn Fn(usize, u32) -> bool,
    slots: &mut Vec<u32>,
) -> f64 {
    if slots.len() == graph.ranks() {
        return double_sums(graph, shape, slots).0;
    }
    let mut least = f64::INFINITY;
    for slot in 0..shape.iter().product() {
        if !slots.contains(&slot) && admitted(slots.len(), slot) {
            slots.push(slot);
            least = least.min(best(graph, shape, admitted, slots));
            slots.pop();
        }
    }
    least
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn searches_find_the_constrained_optimum(
        edges in prop::collection::vec((0u32..5, 0u32..5, 1u64..1000), 0..15),
        fixed in 0u32..5,
    ) {
        // Four hosts of two slots; a rank pinned to a slot of host 3, its successor to host 0, host 1 forbidden.
        let shape = [2, 2, 2];
        let (graph, system) = (graph(5, edges), tree(&shape));
        let other = (fixed + 1) % 5;
        let admitted = |rank: usize, slot: u32| {
            slot / 2 != 1 && (rank as u32 != fixed || slot == 7) && (rank as u32 != other || slot / 2 == 0)
        };
        let least = best(&graph, &shape, &admitted, &mut Vec::new());
        let found = all(&[slot(fixed, 7), host(other, "host0")], &["host1"], &graph, &system);
        for (index, mapping) in found.iter().enumerate() {
            let slots = mapping.slots();
            prop_assert!((0..5).all(|rank| admitted(rank, slots[rank])), "{:?}", slots);
            prop_assert!(mapping.metrics["F"] >= least - 1e-6);
            prop_assert!(index < 3 || mapping.metrics["F"] < least + 1e-6, "{} and not {}", mapping.metrics["F"], least);
        }
        let params = ExactParams {
            pinned: vec![slot(fixed, 7), host(other, "host0")],
            forbidden: vec!["host1".into()],
            ..ExactParams::default()
        };
        let proven = run::<ExactStage>(params, &graph, &system);
        let slots = proven.slots();
        prop_assert!((0..5).all(|rank| admitted(rank, slots[rank])), "{:?}", slots);
        let metrics = [proven.metrics["F"], proven.metrics["bound"]];
        prop_assert!(proven.metrics["proven"] > 0.0);
        prop_assert!(metrics.iter().all(|value| (value - least).abs() < 1e-6), "{metrics:?} and not {least}");
    }
}

#[test]
fn a_grid_is_kept_off_a_switch() {
    let (graph, system) = (grid(6, 8), tree(&[4, 4, 4]));
    let forbidden = ["host4", "host5", "host6", "host7"];
    for mapping in all(&[host(0, "host15"), slot(47, 0)], &forbidden, &graph, &system) {
        let slots = mapping.slots();
        mapping.check().unwrap();
        assert!(slots.iter().all(|slot| !(16..32).contains(slot)));
        assert_eq!((slots[0] / 4, slots[47]), (15, 0));
    }
}

#[test]
fn nothing_is_searched_if_every_rank_is_pinned() {
    let (graph, system) = (grid(2, 2), tree(&[2, 2]));
    let pinned: Vec<_> = (0..4).map(|rank| slot(rank, 3 - rank)).collect();
    for mapping in all(&pinned, &[], &graph, &system) {
        assert_eq!(mapping.slots(), [3, 2, 1, 0]);
    }
}

#[test]
fn contradictions_are_named() {
    let refused = |params: TabuParams| {
        let checked = TabuStage::check(&params).err().map(|error| error.to_string());
        let ran = TabuStage::run(params, inputs(&grid(2, 2), &tree(&[2, 2])), &Context::detached());
        (checked, ran.unwrap_err().to_string())
    };
    let pinned = |pin: Pin| refused(TabuParams { pinned: vec![pin], ..TabuParams::default() });
    let message = "rank 1 in `pinned` has both `slot` and `host`".to_owned();
    let both = Pin { rank: 1, slot: Some(0), host: Some("host0".into()) };
    assert_eq!(pinned(both), (Some(message.clone()), message));
    let message = "rank 2 in `pinned` has neither `slot` nor `host`".to_owned();
    assert_eq!(pinned(Pin { rank: 2, slot: None, host: None }), (Some(message.clone()), message));
    let unknown = refused(TabuParams { forbidden: vec!["node7".into()], ..TabuParams::default() });
    assert_eq!(unknown, (None, "the machine has no host `node7` with slots".into()));
}

/// Runs a mapper with the parameters of a pipeline file.
fn place<S: Stage>(params: &Value, graph: &TaskGraph, system: &SystemGraph) -> Result<Mapping, String> {
    let params: S::Params = serde_json::from_value(params.clone()).unwrap();
    S::check(&params).map_err(|error| error.to_string())?;
    match S::run(params, inputs(graph, system), &Context::detached()) {
        Ok(Outcome::Done(outputs)) => Ok(mapping(&outputs)),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

/// A mapper, whether it searches, and whether it takes a number of evaluations.
type Row = (fn(&Value, &TaskGraph, &SystemGraph) -> Result<Mapping, String>, bool, bool);

/// All mappers that take constraints.
const MAPPERS: [Row; 10] = [
    (place::<LinearStage>, false, false),
    (place::<RoundRobinStage>, false, false),
    (place::<RandomStage>, false, false),
    (place::<AnnealingStage>, true, true),
    (place::<GeneticStage>, true, true),
    (place::<CompositeStage>, true, false),
    (place::<HierarchicalStage>, true, true),
    (place::<TabuStage>, true, true),
    (place::<AutoStage>, true, true),
    (place::<ExactStage>, true, false),
];

/// Runs all mappers with these parameters; whether each searches, and what it says.
fn each(params: &Value, graph: &TaskGraph, system: &SystemGraph) -> Vec<(bool, Result<Mapping, String>)> {
    let run = |&(place, searches, counts): &Row| {
        let mut params = params.clone();
        if counts {
            params["evaluations"] = json!(3000);
        }
        (searches, place(&params, graph, system))
    };
    MAPPERS.iter().map(run).collect()
}

#[test]
fn hosts_offer_no_more_slots_than_their_devices_suffice_for() {
    let (shape, mut system) = ([2, 2, 2], tree(&[2, 2, 2]));
    let memory = [3, 9, 1, 4];
    for (node, memory) in system.nodes.iter_mut().zip(memory) {
        node.traits.devices = BTreeMap::from([("gpu".to_owned(), 2), ("memory_gib".to_owned(), memory)]);
    }
    // One, two, no and two ranks.
    let graph = graph(5, [(0, 1, 9), (1, 2, 5), (2, 3, 7), (3, 4, 8), (4, 0, 1), (0, 3, 6)]);
    let admitted = |_: usize, slot: u32| [0, 2, 3, 6, 7].contains(&slot);
    let least = best(&graph, &shape, &admitted, &mut Vec::new());
    let params = json!({ "devices_per_rank": { "memory_gib": 2, "gpu": 1 } });
    for (index, (_, found)) in each(&params, &graph, &system).into_iter().enumerate() {
        let mapping = found.unwrap();
        assert!(mapping.slots().iter().all(|&slot| admitted(0, slot)), "{index}: {:?}", mapping.slots());
        // Tabu search, the portfolio and branch and bound.
        assert!(index < 7 || (mapping.metrics["F"] - least).abs() < 1e-6, "{index}: {:?}", mapping.metrics);
    }
    let blocks = json!({ "devices_per_rank": { "memory_gib": 2 }, "blocks": [[0, 1], [2, 3]] });
    let slots = place::<AutoStage>(&blocks, &crate::common::graph(4, [(0, 2, 1)]), &system).unwrap().slots();
    assert_eq!(slots.iter().map(|slot| slot / 2).collect::<BTreeSet<_>>(), BTreeSet::from([1, 3]));
}

#[test]
fn devices_that_are_too_few_or_unknown_are_named() {
    let (graph, mut system) = (grid(2, 2), tree(&[2, 2]));
    let refused = |params: &Value, system: &SystemGraph, message: &str| {
        for (_, found) in each(params, &graph, system) {
            assert_eq!(found.unwrap_err(), message);
        }
    };
    let params = json!({ "devices_per_rank": { "memory_gib": 2 } });
    refused(&params, &system, "the machine does not say how many `memory_gib` its hosts have");
    system.nodes[0].traits.devices.insert("memory_gib".into(), 7);
    refused(&params, &system, "4 ranks do not fit on the 2 slots that they may use");
    let none = json!({ "devices_per_rank": { "memory_gib": 0 } });
    refused(&none, &system, "a rank reserves no `memory_gib` in `devices_per_rank`");
    system.nodes[1].traits.devices.insert("memory_gib".into(), 2);
    let pinned = json!({ "devices_per_rank": { "memory_gib": 2 }, "pinned": [{ "rank": 0, "slot": 3 }] });
    refused(&pinned, &system, "rank 0 is pinned to slot 3, for which its host has too few devices");
}

/// Once a warning was all.
#[test]
fn what_searches_do_not_count_is_refused() {
    let (graph, mut system) = (grid(2, 2), tree(&[2, 3]));
    system.nodes[1].traits.performance = Some(2.0);
    let told = |params: Value, graph: &TaskGraph, message: Option<&str>| {
        for (searches, found) in each(&params, graph, &system) {
            assert_eq!(found.err().as_deref(), message.filter(|_| searches));
        }
    };
    let message = "hosts `host0` and `host1` differ in performance, which this objective does not count";
    told(json!({}), &graph, Some(message));
    told(json!({ "ignore_performance": true }), &graph, None);
    told(json!({ "forbidden": ["host1"] }), &graph, None);
    let mut demanding = graph.clone();
    demanding.demands.processes = vec![ProcessDemand::default(); 4];
    told(json!({ "forbidden": ["host1"] }), &demanding, None);
    demanding.demands.processes[2] = ProcessDemand {
        name: "camera".into(),
        capabilities: vec!["fpga".into()],
        ..ProcessDemand::default()
    };
    let message = "process `camera` has demands on its host, which mappers do not count";
    told(json!({ "forbidden": ["host1"] }), &demanding, Some(message));
}

#[test]
fn parameters_of_a_pipeline_file() {
    let text =
        r#"{"pinned": [{"rank": 0, "slot": 5}, {"rank": 1, "host": "node07"}], "forbidden": ["node01"]}"#;
    let params: TabuParams = serde_json::from_str(text).unwrap();
    assert_eq!(params.pinned, [slot(0, 5), host(1, "node07")]);
    assert_eq!(params.forbidden, ["node01"]);
    assert!(serde_json::from_str::<TabuParams>(r#"{"pinned": [{"rank": 0, "node": "a"}]}"#).is_err());
}
