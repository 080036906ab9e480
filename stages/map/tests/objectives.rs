//! Searches find the enumerated optimum of every objective, and objectives disagree where they should.

use hopmap_map::{
    AnnealingParams, AnnealingStage, Auto, AutoParams, AutoStage, Goal, HierarchicalParams,
    HierarchicalStage, LevelChoice, LinearParams, LinearStage, Mapper, TabuParams, TabuStage,
};
use hopmap_model::{
    Context, Link, Mapping, NetworkSpeed, Paths, Stage, SystemGraph, TaskGraph, Weight, WeightChoice,
    WeightName,
};
use hopmap_objective::{Objective, Problem, Quality, random};
use hopmap_test_support::Impatient;
use proptest::prelude::*;

use crate::common::{graph, grid, inputs, run, switches, tree};

/// The minimum over all mappings, by enumeration.
fn best(objective: &Objective, graph: &TaskGraph, system: &SystemGraph, slots: &mut Vec<u32>) -> f64 {
    if slots.len() == graph.ranks() {
        let paths = Paths::new(system);
        let quality = Quality::new(graph, system, paths.as_ref(), slots, Weight::Bytes).unwrap();
        return objective.of_metrics(&quality.metrics()).unwrap();
    }
    let mut least = f64::INFINITY;
    for slot in 0..system.slots.len() as u32 {
        if !slots.contains(&slot) {
            slots.push(slot);
            least = least.min(best(objective, graph, system, slots));
            slots.pop();
        }
    }
    least
}

fn annealed(objective: Objective, evaluations: u64, graph: &TaskGraph, system: &SystemGraph) -> Mapping {
    let params =
        AutoParams { objective: objective.into(), evaluations: Some(evaluations), ..AutoParams::default() };
    run::<AutoStage>(params, graph, system)
}

fn tabu(objective: Objective, evaluations: u64, graph: &TaskGraph, system: &SystemGraph) -> Mapping {
    let params =
        TabuParams { objective: objective.into(), evaluations: Some(evaluations), ..TabuParams::default() };
    run::<TabuStage>(params, graph, system)
}

fn objectives() -> impl Strategy<Value = Objective> {
    // 1, 1/2, 1/4 and so on.
    let mut weight = 2.0;
    let sum = Objective::of_weights(Objective::NAMES.map(|_| {
        weight /= 2.0;
        weight
    }));
    // At 1 GB/s, a second weighs as much as the bytes that pass in it.
    let sum = Objective { max_link_time: 1e9 * sum.max_link_time, ..sum };
    prop_oneof![each(), Just(Objective { t: 0.5, ..Objective::F }), Just(sum)]
}

/// Every metric alone.
fn each() -> impl Strategy<Value = Objective> {
    (0..Objective::NAMES.len()).prop_map(|index| {
        let mut weights = Objective::NAMES.map(|_| 0.0);
        weights[index] = 1.0;
        Objective::of_weights(weights)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn searches_find_the_optimum(
        edges in prop::collection::vec((0u32..5, 0u32..5, 1u64..1000), 0..15), objective in objectives(),
    ) {
        let (graph, system) = (graph(5, edges), tree(&[2, 3]));
        let least = best(&objective, &graph, &system, &mut Vec::new());
        for mapping in [annealed(objective, 4000, &graph, &system), tabu(objective, 4000, &graph, &system)] {
            let found = objective.of_metrics(&mapping.metrics).unwrap();
            prop_assert!((found - least).abs() <= 1e-6 * least, "{} and not {}", found, least);
            let last = mapping.convergence.iter().map(|point| point.cost).fold(f64::INFINITY, f64::min);
            prop_assert!(mapping.convergence.is_empty() || (last - found).abs() <= 1e-6 * found);
        }
    }
}

#[test]
fn minimising_the_maximum_lowers_the_maximum_of_a_grid() {
    let (graph, system) = (grid(8, 8), tree(&[4, 4, 4]));
    let linear = run::<LinearStage>(LinearParams::default(), &graph, &system);
    let f = annealed(Objective::F, 60_000, &graph, &system);
    let t = annealed(Objective::T, 60_000, &graph, &system);
    let load = annealed(Objective::MAX_LINK_LOAD, 60_000, &graph, &system);
    // Squares have the smallest F, but their corners have two distant neighbours; those of strips do not.
    assert!(f.metrics["F"] < t.metrics["F"] && t.metrics["T"] < f.metrics["T"]);
    assert!(t.metrics["T"] <= linear.metrics["T"]);
    assert!(load.metrics["max_link_load_bytes"] <= linear.metrics["max_link_load_bytes"]);
}

#[test]
fn minimising_the_link_load_is_not_worse_than_minimising_hops() {
    let (graph, system) = (grid(8, 8), tree(&[4, 4, 4]));
    let load = |objective: Objective| {
        let params =
            AutoParams { objective: objective.into(), evaluations: Some(60_000), ..AutoParams::default() };
        run::<AutoStage>(params, &graph, &system).metrics["max_link_load_bytes"]
    };
    let (fewest_hops, least) = (load(Objective::HOP_BYTES), load(Objective::MAX_LINK_LOAD));
    assert!(least <= fewest_hops, "{least} and {fewest_hops}");
}

/// Of four hosts, the first has links at a hundredth of the bandwidth: a pair that exchanges more bytes belongs elsewhere.
#[test]
fn a_slow_link_is_busier_than_one_with_more_bytes() {
    let (graph, mut system) = (graph(4, [(0, 1, 1000), (2, 3, 300)]), tree(&[1, 4]));
    for link in system.links.iter_mut().filter(|link| link.source == 0 || link.destination == 0) {
        link.bandwidth_bytes_per_s = Some(1e7);
    }
    let load = annealed(Objective::MAX_LINK_LOAD, 4000, &graph, &system);
    let time = annealed(Objective::MAX_LINK_TIME, 4000, &graph, &system);
    assert!((load.metrics["max_link_load_bytes"] - time.metrics["max_link_load_bytes"]).abs() < 1e-9);
    assert!(time.slots()[2] == 0 || time.slots()[3] == 0, "{:?}", time.slots());
    assert!((time.metrics["max_link_time_s"] - 300.0 / 1e7).abs() < 1e-15);
    assert!(load.metrics["max_link_time_s"] >= time.metrics["max_link_time_s"]);
}

#[test]
fn the_default_objective_is_f() {
    let (graph, system) = (grid(4, 4), tree(&[2, 2, 4]));
    let params = AnnealingParams { evaluations: Some(5000), ..AnnealingParams::default() };
    let named =
        AnnealingParams { objective: serde_json::from_str(r#"{"F": 2.0}"#).unwrap(), ..params.clone() };
    let [default, named] = [params, named].map(|params| run::<AnnealingStage>(params, &graph, &system));
    assert_eq!(default.slots(), named.slots());
    let costs = |mapping: &Mapping| mapping.convergence.iter().map(|point| point.cost).collect::<Vec<_>>();
    assert_eq!(costs(&named), costs(&default).iter().map(|cost| 2.0 * cost).collect::<Vec<_>>());
}

#[test]
fn a_machine_without_links_has_no_link_loads() {
    let (graph, mut system) = (grid(2, 2), tree(&[2, 2]));
    system.links.clear();
    let params = AutoParams { objective: Objective::MAX_LINK_LOAD.into(), ..AutoParams::default() };
    let refused = AutoStage::run(params, inputs(&graph, &system), &Context::detached()).unwrap_err();
    assert_eq!(refused.to_string(), "the machine has no links, so hops and link loads are undefined");
    let params =
        AutoParams { objective: Objective { t: -1.0, ..Objective::F }.into(), ..AutoParams::default() };
    assert_eq!(AutoStage::check(&params).unwrap_err().to_string(), "a weight of the objective is -1");
}

/// Two hosts of two slots, 3 µs and 2 GB/s apart; ranks 0 and 1 and ranks 0 and 2 send to each other.
#[test]
fn time_uses_the_machine_latency_and_bandwidth_by_default() {
    let (graph, mut system) = (graph(4, [(0, 1, 4000), (0, 2, 8000)]), tree(&[2, 2]));
    for link in &mut system.links {
        (link.latency_s, link.bandwidth_bytes_per_s) = (Some(1.5e-6), Some(2e9));
    }
    let placed = |weight: WeightChoice| {
        run::<LinearStage>(LinearParams { weight, ..LinearParams::default() }, &graph, &system)
    };
    let near = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 1e-12, "{found} {wanted}");
    let measured = placed(WeightChoice::Named(WeightName::Time));
    assert_eq!(measured, placed(WeightChoice::default()));
    // Ranks 0 and 1 share a host, at a cost of 1; between hosts it is 10.
    near(measured.metrics["F"], (3e-6 + 4000.0 / 2e9) + 10.0 * (3e-6 + 8000.0 / 2e9));
    assert_eq!(measured.weight, Weight::Time { latency_s: 3e-6, bandwidth_bytes_per_s: 2e9 });
    let names = ["latency_s", "bandwidth_bytes_per_s"];
    names.into_iter().zip([3e-6, 2e9]).for_each(|(name, wanted)| near(measured.metrics[name], wanted));
    let time = NetworkSpeed { latency_s: Some(1.0), bandwidth_bytes_per_s: None };
    near(placed(WeightChoice::Time { time }).metrics["F"], (1.0 + 2e-6) + 10.0 * (1.0 + 4e-6));
    let given = placed(Weight::Time { latency_s: 1.0, bandwidth_bytes_per_s: 1.0 }.into());
    near(given.metrics["F"], 4001.0 + 10.0 * 8001.0);
    assert!(names.iter().all(|name| !given.metrics.contains_key(*name)));
    // Errors are found before anything runs.
    let time = NetworkSpeed { latency_s: Some(-1.0), bandwidth_bytes_per_s: None };
    let wrong = LinearParams { weight: WeightChoice::Time { time }, ..LinearParams::default() };
    assert_eq!(
        LinearStage::check(&wrong).unwrap_err().to_string(),
        "`weight.time.latency_s` = -1 is out of range"
    );
}

/// A stencil in three dimensions, in shuffled rank order.
fn shuffled_stencil(side: u32) -> TaskGraph {
    let ranks = side * side * side;
    let order = random(ranks as usize, ranks as usize, [7; 32]);
    let rank = |at: u32| order[at as usize];
    let steps = [1, side, side * side];
    let pairs = (0..ranks).flat_map(|at| steps.map(|step| (at, step)));
    let pairs = pairs.filter(|(at, step)| at / step % side + 1 < side);
    let both = |(at, step)| [(rank(at), rank(at + step), 1000), (rank(at + step), rank(at), 1000)];
    graph(ranks as usize, pairs.flat_map(both))
}

#[test]
fn a_maximum_of_many_ranks_is_not_above_that_of_the_partition() {
    let (graph, system) = (shuffled_stencil(8), switches(&[8, 8, 4, 2]));
    for objective in [Objective::T, Objective::MAX_LINK_LOAD, Objective { t: 1.0, ..Objective::F }] {
        let params = HierarchicalParams { objective: Goal(objective), ..HierarchicalParams::default() };
        let partition = run::<HierarchicalStage>(params, &graph, &system);
        let value = |mapping: &Mapping| objective.of_metrics(&mapping.metrics).unwrap();
        let found = annealed(objective, 10_000, &graph, &system);
        assert!(value(&found) <= value(&partition), "{objective:?}");
    }
}

/// Hosts of one slot are groups of a tree as well.
#[test]
fn trees_of_hosts_with_one_slot_are_partitioned_for_every_objective() {
    let (graph, system) = (grid(8, 8), switches(&[1, 8, 8]));
    let hops = Objective { hop_bytes: 1.0, ..Objective::F };
    for objective in [Objective::MAX_LINK_LOAD, hops] {
        let params = HierarchicalParams { objective: Goal(objective), ..HierarchicalParams::default() };
        let mapping = run::<HierarchicalStage>(params.clone(), &graph, &system);
        // Boxes of two by four at the border, where rows have 128.
        assert!(mapping.metrics["max_link_load_bytes"] <= 80.0, "{:?}", mapping.metrics);
        let levels = LevelChoice::Listed(vec![3]);
        let stage = HierarchicalStage::run(
            HierarchicalParams { levels, ..params },
            inputs(&graph, &system),
            &Context::detached(),
        );
        let problem = "level 3 does not exist: the machine has 2 levels with different costs";
        assert_eq!(stage.unwrap_err().to_string(), problem);
    }
}

/// Ranks that form a ring, in a shuffled order, on hosts in a ring.
#[test]
fn the_busiest_link_of_a_ring_carries_one_message() {
    let order = random(16, 16, [3; 32]);
    let next = |at: u32| (order[at as usize], order[(at as usize + 1) % 16], 1000);
    let program = graph(16, (0..16).map(next));
    let mut system = tree(&[1, 16]);
    system.nodes.truncate(16);
    let ends = (0..16).flat_map(|host| [(host, (host + 1) % 16), ((host + 1) % 16, host)]);
    system.links = ends.map(|(a, b)| Link { bandwidth_bytes_per_s: Some(1e9), ..Link::new(a, b) }).collect();
    for objective in [Objective::MAX_LINK_LOAD, Objective::MAX_LINK_TIME] {
        let found = annealed(objective, 30_000, &program, &system);
        assert!((found.metrics["max_link_load_bytes"] - 1000.0).abs() < 1e-9, "{:?}", found.metrics);
    }
}

/// Also in the first phase, the start, of which nothing is saved.
#[test]
fn a_stopped_search_for_a_maximum_resumes_where_it_was() {
    let (graph, system) = (grid(5, 4), switches(&[2, 3, 4]));
    let problem = Problem::with_objective(&graph, &system, Weight::Bytes, &Objective::MAX_LINK_LOAD).unwrap();
    let params = AutoParams { evaluations: Some(1_300_000), islands: 1, ..AutoParams::default() };
    let auto = Auto::new(&params).unwrap();
    let whole = auto.map(&problem, &Context::detached()).unwrap();
    for (patience, is_saved) in [(0, false), (300, true)] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state");
        let observer = Impatient::new(patience);
        let first = auto.map(&problem, &Context::new(1, None, &observer).with_state(&file)).unwrap();
        assert_eq!((first.complete, file.exists()), (false, is_saved));
        assert_eq!(auto.map(&problem, &Context::detached().with_state(&file)).unwrap(), whole);
    }
}
