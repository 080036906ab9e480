//! Hierarchical mapping: one-to-one on any tree, independent of the number of threads, optimal on stencils.

use hopmap_map::{
    Goal, HierarchicalParams, HierarchicalStage, LevelChoice, LinearParams, LinearStage, OtherLevels, Pin,
};
use hopmap_model::{
    Context, CostModel, Levels, Mapping, Matrix, Outcome, Stage, SystemGraph, TaskGraph, Weight,
};
use hopmap_objective::Objective;
use proptest::prelude::*;

use crate::common::{
    self, Listener, Silent, double_sums, exhaustive, graph, grid, inputs, mapping, run, tree,
};

fn place(params: HierarchicalParams, graph: &TaskGraph, system: &SystemGraph) -> Mapping {
    run::<HierarchicalStage>(params, graph, system)
}

fn default(graph: &TaskGraph, system: &SystemGraph) -> Mapping {
    place(HierarchicalParams::default(), graph, system)
}

fn linear(graph: &TaskGraph, system: &SystemGraph) -> Mapping {
    run::<LinearStage>(LinearParams::default(), graph, system)
}

fn refused(params: HierarchicalParams, graph: &TaskGraph, system: &SystemGraph) -> String {
    HierarchicalStage::run(params, inputs(graph, system), &Context::detached()).unwrap_err().to_string()
}

/// A tree whose hosts and switches have different numbers of slots: host `i` has `cores[i]`, and three hosts share a switch.
fn uneven(cores: &[u32]) -> SystemGraph {
    let mut system = tree(&[1, cores.iter().sum()]);
    let hosts = (0..).zip(cores).flat_map(|(host, &cores)| std::iter::repeat_n(host, cores as usize));
    let hosts: Vec<u32> = hosts.collect();
    for (slot, &host) in system.slots.iter_mut().zip(&hosts) {
        slot.host = host;
    }
    let switches = hosts.iter().map(|host| host / 3).collect();
    let all = vec![0; hosts.len()];
    system.cost =
        CostModel::Levels(Levels { costs: vec![1.0, 10.0, 100.0], groups: vec![hosts, switches, all] });
    system
}

fn shuffled(graph_of: &TaskGraph, factor: u32) -> TaskGraph {
    let n = graph_of.ranks() as u32;
    let renamed = |rank: u32| (rank * factor) % n;
    let edges = graph_of.edges.iter().map(|e| (renamed(e.source), renamed(e.destination), e.bytes));
    graph(n as usize, edges)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn slots_are_distinct_with_any_number_of_threads(
        cores in prop::collection::vec(1u32..7, 1..12),
        share in 0.05f64..1.0,
        edges in prop::collection::vec((0u32..70, 0u32..70, prop_oneof![Just(0u64), 1..1000u64, Just(1 << 54)]), 0..200),
        seed in 0u64..3,
    ) {
        let slots: u32 = cores.iter().sum();
        let ranks = ((f64::from(slots) * share) as u32).max(1);
        let edges = edges.into_iter().filter(|edge| edge.0 < ranks && edge.1 < ranks);
        // The sum of all costs must fit 64 bits.
        let edges: Vec<_> = edges.enumerate().map(|(i, (a, b, w))| (a, b, if i == 0 { w } else { w.min(1 << 40) })).collect();
        let (graph, system) = (graph(ranks as usize, edges), uneven(&cores));
        let params = HierarchicalParams { seed, ..HierarchicalParams::default() };
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let cx = Context::new(threads, None, &Silent);
            match pool.install(|| HierarchicalStage::run(params.clone(), inputs(&graph, &system), &cx)).unwrap() {
                Outcome::Done(outputs) => mapping(&outputs),
                other => panic!("{other:?}"),
            }
        };
        let one = with(1);
        one.check().unwrap();
        let taken: std::collections::BTreeSet<_> = one.slots().into_iter().collect();
        prop_assert_eq!(taken.len(), ranks as usize);
        prop_assert!(one.metrics["F"] <= linear(&graph, &system).metrics["F"]);
        prop_assert_eq!(&one, &with(2));
        prop_assert_eq!(&one, &with(4));
    }

    #[test]
    fn tiny_problems_are_solved_almost_optimally(edges in prop::collection::vec((0u32..6, 0u32..6, 1u64..100), 0..12)) {
        let (graph, system) = (graph(6, edges), tree(&[2, 2, 2]));
        let best = exhaustive(&graph, &[2, 2, 2], &mut Vec::new());
        let found = default(&graph, &system);
        prop_assert!((double_sums(&graph, &[2, 2, 2], &found.slots()).0 - found.metrics["F"]).abs() < 1e-6);
        prop_assert!(found.metrics["F"] <= 2.0 * best + 1e-6, "{} and not {best}", found.metrics["F"]);
    }
}

#[test]
fn stencils_are_cut_into_boxes_in_any_rank_order() {
    // 16 x 16 on 4:16:4: squares of 8 x 8 and of 2 x 2, each edge in both directions.
    let best = 2.0 * (100.0 * 32.0 + 10.0 * 192.0 + 256.0);
    let system = tree(&[4, 16, 4]);
    for graph in [grid(16, 16), shuffled(&grid(16, 16), 77)] {
        let found = default(&graph, &system);
        assert!((found.metrics["F"] / 8.0 - best).abs() < 1e-6, "{}", found.metrics["F"]);
    }
    // 4 x 16, where squares of 4 x 4 are cut into those of 2 x 2.
    let found = default(&shuffled(&grid(4, 16), 5), &tree(&[4, 4, 4]));
    assert!((found.metrics["F"] / 8.0 - 2.0 * (12.0 * 100.0 + 32.0 * 10.0 + 64.0)).abs() < 1e-6);
}

#[test]
fn cliques_are_found_without_a_grid() {
    // Sixteen cliques of four on sixteen hosts, numbered across.
    let pairs = (0..64u32).flat_map(|i| (0..64u32).map(move |j| (i, j, 8)));
    let cliques = graph(64, pairs.filter(|&(i, j, _)| i % 16 == j % 16 && i != j));
    let found = default(&cliques, &tree(&[4, 4, 4]));
    assert!((found.metrics["F"] - 8.0 * 16.0 * 12.0).abs() < 1e-6);
}

#[test]
fn ranks_that_fit_into_a_part_of_the_machine_stay_close() {
    let ring = graph(6, (0..6).map(|i| (i, (i + 1) % 6, 8)));
    let found = default(&ring, &tree(&[4, 2, 64]));
    assert!(found.metrics["F"] <= 8.0 * (2.0 * 10.0 + 4.0) + 1e-6, "{}", found.metrics["F"]);
}

#[test]
fn levels_are_counted_from_the_root() {
    let (graph, system) = (shuffled(&grid(8, 8), 13), tree(&[4, 4, 4]));
    let f = |levels: LevelChoice| {
        let params = HierarchicalParams { levels, ..HierarchicalParams::default() };
        place(params, &graph, &system).metrics["F"]
    };
    let listed = |levels: &[u32]| f(LevelChoice::Listed(levels.to_vec()));
    let linear = linear(&graph, &system).metrics["F"];
    let (first, second, both) = (listed(&[1]), listed(&[2]), listed(&[1, 2]));
    assert!(both < first && first < linear && second < linear, "{both} {first} {second} {linear}");
    assert!(f(LevelChoice::All) <= both);
    let params = HierarchicalParams { levels: LevelChoice::Listed(vec![1]), ..HierarchicalParams::default() };
    assert!(place(params, &graph, &system).metrics["evaluations"] < 0.5);
}

#[test]
fn a_partition_on_listed_levels_is_kept_even_if_linear_is_better() {
    // Three ranks of every host communicate, and so do hosts of a switch; the fourth ranks communicate across
    // switches. The partition maps these to one switch, and the others then spread across hosts.
    let threes =
        (0..16).flat_map(|host| [(0, 1), (1, 2), (0, 2)].map(|(a, b)| (4 * host + a, 4 * host + b, 100)));
    let fourths = (0..16).map(|host| (4 * host + 3, (4 * host + 19) % 64, 4));
    let switches = (0..16).filter(|host| host % 4 < 3).map(|host| (4 * host, 4 * host + 4, 50));
    let (graph, system) = (graph(64, threes.chain(fourths).chain(switches)), tree(&[4, 4, 4]));
    let f = |partition_only| {
        let levels = LevelChoice::Listed(vec![1]);
        let params = HierarchicalParams { levels, partition_only, ..HierarchicalParams::default() };
        place(params, &graph, &system).metrics["F"] as u64
    };
    let linear = linear(&graph, &system).metrics["F"] as u64;
    assert!(f(None) > linear, "{} {linear}", f(None));
    assert_eq!(f(None), f(Some(true)));
    assert!(f(Some(false)) <= linear);
}

#[test]
fn levels_above_may_be_ignored() {
    let (graph, system) = (shuffled(&grid(8, 8), 13), tree(&[4, 4, 4]));
    let f = |other_levels, levels: &[u32]| {
        let levels = LevelChoice::Listed(levels.to_vec());
        let params = HierarchicalParams { levels, other_levels, ..HierarchicalParams::default() };
        place(params, &graph, &system).metrics["F"] as u64
    };
    // Hosts get communicating ranks from the full range, not only from sixteen consecutive ranks.
    assert!(f(OtherLevels::Ignored, &[2]) < f(OtherLevels::InOrder, &[2]));
    assert_eq!(f(OtherLevels::Ignored, &[1, 2]), f(OtherLevels::InOrder, &[1, 2]));
}

#[test]
fn the_preset_of_the_paper_is_the_partition_alone() {
    let (graph, system) = (shuffled(&grid(8, 8), 13), tree(&[4, 4, 4]));
    let paper = place(HierarchicalParams::paper(), &graph, &system);
    assert_eq!(paper.metrics["evaluations"] as u64, 0);
    let all =
        HierarchicalParams { levels: LevelChoice::Listed(vec![1, 2, 3]), ..HierarchicalParams::default() };
    assert_eq!(paper.metrics["F"] as u64, place(all, &graph, &system).metrics["F"] as u64);
}

#[test]
fn the_log_names_the_best_start() {
    let system = tree(&[4, 4, 4]);
    let won = |params: HierarchicalParams, graph: &TaskGraph| {
        let listener = Listener::default();
        HierarchicalStage::run(params, inputs(graph, &system), &Context::new(1, None, &listener)).unwrap();
        let lines = listener.lines.into_inner().unwrap();
        lines.iter().find_map(|line| line.strip_prefix("the best start is ")).unwrap().to_owned()
    };
    let default = HierarchicalParams::default;
    assert_eq!(won(default(), &shuffled(&grid(8, 8), 13)), "boxes of a grid");
    // Pairs of neighbours in rank order.
    assert_eq!(won(default(), &graph(64, (0..32).map(|pair| (2 * pair, 2 * pair + 1, 8)))), "rank order");
    assert_eq!(won(HierarchicalParams::paper(), &grid(8, 8)), "the partition");
}

#[test]
fn constraints_are_kept() {
    let (graph, system) = (shuffled(&grid(6, 8), 5), tree(&[4, 4, 4]));
    let params = HierarchicalParams {
        pinned: vec![
            Pin { rank: 0, slot: None, host: Some("host15".into()) },
            Pin { rank: 47, slot: Some(0), host: None },
        ],
        forbidden: ["host4", "host5", "host6", "host7"].map(String::from).into(),
        ..HierarchicalParams::default()
    };
    let found = place(params, &graph, &system);
    found.check().unwrap();
    let slots = found.slots();
    assert!(slots.iter().all(|slot| !(16..32).contains(slot)));
    assert_eq!((slots[0] / 4, slots[47]), (15, 0));
    assert!(found.metrics["F"] < linear(&graph, &system).metrics["F"]);
}

#[test]
fn other_objectives_are_refined() {
    let (graph, system) = (shuffled(&grid(8, 8), 13), tree(&[4, 4, 4]));
    let objective = Goal(Objective::T);
    let found = place(HierarchicalParams { objective, ..HierarchicalParams::default() }, &graph, &system);
    assert!(found.metrics["T"] <= default(&graph, &system).metrics["T"]);
    assert!(found.metrics["evaluations"] > 0.0);
}

#[test]
fn a_budget_of_evaluations_refines_and_is_kept() {
    let pairs =
        (0..96u32).flat_map(|i| (1..5u32).map(move |j| (i, (i * 7 + j * j * 11) % 96, u64::from(i % 9 + j))));
    let (graph, system) = (graph(96, pairs), uneven(&[5, 3, 6, 4, 7, 1, 8, 2, 6, 6, 5, 8, 9, 13, 13]));
    let fast = default(&graph, &system);
    assert!(fast.metrics["evaluations"] <= 32.0 * 96.0);
    let params = HierarchicalParams { evaluations: Some(20_000), ..HierarchicalParams::default() };
    let refined = place(params, &graph, &system);
    assert!(refined.metrics["F"] <= fast.metrics["F"]);
    assert!((1.0..=20_000.0).contains(&refined.metrics["evaluations"]));
    let params = HierarchicalParams { time_limit_s: Some(0.05), ..HierarchicalParams::default() };
    assert!(place(params, &graph, &system).metrics["F"] <= fast.metrics["F"]);
}

#[test]
fn a_deadline_skips_steps_that_do_not_fit() {
    let (graph, system) = (shuffled(&grid(16, 16), 77), tree(&[4, 4, 16]));
    let cx = Context::new(1, Some(std::time::Instant::now()), &Silent);
    let outcome =
        HierarchicalStage::run(HierarchicalParams::default(), inputs(&graph, &system), &cx).unwrap();
    // Partial results are never taken for the complete ones of a run without a deadline.
    let Outcome::Partial(outputs) = outcome else { panic!("{outcome:?}") };
    let found = outputs.get("mapping").unwrap().downcast_ref::<Mapping>().unwrap().clone();
    let mut slots = found.slots();
    slots.sort_unstable();
    assert_eq!(slots, (0..256).collect::<Vec<_>>());
    assert!(!found.complete && found.metrics["F"] <= linear(&graph, &system).metrics["F"]);
}

#[test]
fn nothing_to_choose_is_linear() {
    assert_eq!(default(&graph(4, []), &tree(&[2, 4])).slots(), [0, 1, 2, 3]);
    assert_eq!(default(&grid(2, 2), &tree(&[4])).slots(), [0, 1, 2, 3]);
    assert_eq!(default(&graph(1, [(0, 0, 5)]), &tree(&[1])).slots(), [0]);
    assert_eq!(default(&graph(1, [(0, 0, 5)]), &tree(&[2, 2])).slots(), [0]);
}

#[test]
fn contradictions_are_named() {
    let (graph, system) = (grid(2, 4), tree(&[2, 2, 2]));
    let with = |levels: &[u32]| HierarchicalParams {
        levels: LevelChoice::Listed(levels.to_vec()),
        ..HierarchicalParams::default()
    };
    assert!(refused(with(&[]), &graph, &system).contains("the list of levels is empty"));
    assert!(refused(with(&[0]), &graph, &system).contains("level 0"));
    assert!(refused(with(&[1, 4]), &graph, &system).contains("level 4 does not exist: the machine has 3"));
    let none = HierarchicalParams { evaluations: Some(0), ..HierarchicalParams::default() };
    assert!(HierarchicalStage::check(&none).is_err());
    let mut matrix = system.clone();
    let costs = (0..64u32).map(|pair| f64::from((pair / 8).abs_diff(pair % 8))).collect();
    matrix.cost = CostModel::Matrix(Matrix { costs });
    assert!(refused(HierarchicalParams::default(), &graph, &matrix).contains("the machine is not a tree"));
    assert!(
        refused(HierarchicalParams::default(), &common::grid(3, 3), &system).contains("9 ranks do not fit")
    );
}

#[test]
fn parameters_of_a_pipeline_file() {
    let read = |text: &str| serde_json::from_str::<HierarchicalParams>(text);
    let params = read(r#"{"levels": [1, 2], "partitioner": "own", "weight": "messages"}"#).unwrap();
    assert_eq!((params.levels, params.weight), (LevelChoice::Listed(vec![1, 2]), Weight::Messages.into()));
    assert_eq!(read(r#"{"levels": "all"}"#).unwrap(), HierarchicalParams::default());
    assert!(read(r#"{"levels": "some"}"#).unwrap_err().to_string().contains("expected `all`, or a list"));
    assert!(read(r#"{"partitioner": "gpart"}"#).is_err());
}
