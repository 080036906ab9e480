//! No border separates its groups, and what stays below a switch is mapped as well as it can be.

use std::collections::BTreeMap;

use hopmap_map::{
    AutoGoal, AutoParams, AutoStage, BOUND, BlockName, Blocks, ExactParams, ExactStage, LinearParams,
    LinearStage, PROVEN, Pin,
};
use hopmap_model::{Context, Edge, Mapping, Phase, Process, Stage, SystemGraph, TaskGraph, Weight};
use hopmap_test_support::soak;
use proptest::prelude::*;

use crate::common::{double_sums, graph, inputs, run, switches};

/// A program with a phase that connects the ranks of each group.
fn grouped(mut graph: TaskGraph, name: &str, groups: &[impl AsRef<[u32]>]) -> TaskGraph {
    let pairs = groups.iter().flat_map(|group| group.as_ref().windows(2).map(|pair| (pair[0], pair[1])));
    let edge = |(source, destination)| Edge { source, destination, messages: 1, bytes: 1 };
    let mut edges: Vec<Edge> = pairs.map(edge).collect();
    edges.sort_by_key(Edge::pair);
    for edge in &edges {
        match graph.edges.iter_mut().find(|other| other.pair() == edge.pair()) {
            Some(other) => other.messages += 1,
            None => graph.edges.push(*edge),
        }
    }
    graph.edges.sort_by_key(Edge::pair);
    let compute_s = vec![None; graph.processes.len()];
    graph.phases.push(Phase { name: Some(name.to_owned()), compute_s, edges, ..Phase::default() });
    graph
}

fn border(kind: &str, level: u32) -> BTreeMap<String, u32> {
    BTreeMap::from([(kind.to_owned(), level)])
}

fn exact(borders: &BTreeMap<String, u32>) -> ExactParams {
    ExactParams { borders: borders.clone(), weight: Weight::Bytes.into(), ..ExactParams::default() }
}

/// The error of a mapper.
fn refused(params: LinearParams, graph: &TaskGraph, system: &SystemGraph) -> String {
    LinearStage::run(params, inputs(graph, system), &Context::detached()).unwrap_err().to_string()
}

/// Whether the slots of every group are below one switch of `below` slots.
fn is_kept(mapping: &Mapping, groups: &[&[u32]], below: u32) -> bool {
    let slots = mapping.slots();
    let area = |rank: &u32| slots[*rank as usize] / below;
    groups.iter().all(|group| group.iter().all(|rank| area(rank) == area(&group[0])))
}

/// The minimum F of all mappings that keep the groups below switches of `below` slots, by enumeration.
fn least(graph: &TaskGraph, shape: &[u32], groups: &[&[u32]], below: u32, slots: &mut Vec<u32>) -> f64 {
    if slots.len() == graph.processes.len() {
        let kept = groups.iter().all(|group| {
            group.iter().all(|rank| slots[*rank as usize] / below == slots[group[0] as usize] / below)
        });
        return if kept { double_sums(graph, shape, slots).0 } else { f64::INFINITY };
    }
    let mut best = f64::INFINITY;
    for slot in 0..shape.iter().product() {
        if !slots.contains(&slot) {
            slots.push(slot);
            best = best.min(least(graph, shape, groups, below, slots));
            slots.pop();
        }
    }
    best
}

const PAIRS: [&[u32]; 3] = [&[0, 3], &[1, 4], &[2, 5]];

/// Whether ranks can be put into areas with these numbers of slots, with the groups of each border in one of its areas, by enumeration.
fn is_possible(ranks: usize, borders: &[(Vec<Vec<u32>>, u32)], slots: &mut Vec<u32>, all: u32) -> bool {
    if slots.len() == ranks {
        let kept = |(groups, below): &(Vec<Vec<u32>>, u32)| {
            groups.iter().all(|group| {
                group.iter().all(|rank| slots[*rank as usize] / below == slots[group[0] as usize] / below)
            })
        };
        return borders.iter().all(kept);
    }
    (0..all).any(|slot| {
        if slots.contains(&slot) {
            return false;
        }
        slots.push(slot);
        let is_possible = is_possible(ranks, borders, slots, all);
        slots.pop();
        is_possible
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if soak() { 5000 } else { 60 }))]
    #[test]
    fn a_refusal_of_borders_means_that_an_enumeration_finds_nothing(
        ranks in 3usize..8,
        shape in prop::sample::select(vec![&[1, 2, 2, 2][..], &[1, 3, 2], &[1, 4, 2], &[1, 2, 4], &[2, 1, 3]]),
        inner in prop::collection::vec(0usize..5, 7),
        outer in prop::collection::vec(0usize..4, 7),
    ) {
        let all: u32 = shape.iter().product();
        let ranks = ranks.min(all as usize);
        // Group 0 is none.
        let groups = |of: &[usize]| -> Vec<Vec<u32>> {
            let group = |group| (0..ranks as u32).filter(|rank| of[*rank as usize] == group).collect();
            (1..5).map(group).filter(|group: &Vec<u32>| group.len() > 1).collect()
        };
        let (inner, outer) = (groups(&inner), groups(&outer));
        prop_assume!(!inner.is_empty() && !outer.is_empty());
        let below = shape[0] * shape[1];
        let mut graph = grouped(graph(ranks, [(0, 1, 5), (1, 2, 7)]), "in", &inner);
        let (mut borders, mut named) = (vec![(inner, below)], border("in", 1));
        if shape.len() == 4 {
            graph = grouped(graph, "out", &outer);
            named.extend(border("out", 2));
            borders.push((outer, below * shape[2]));
        }
        let system = switches(shape);
        let found = ExactStage::run(exact(&named), inputs(&graph, &system), &Context::detached());
        let is_expected = is_possible(ranks, &borders, &mut Vec::new(), all);
        match found {
            Ok(_) => prop_assert!(is_expected),
            Err(error) => prop_assert!(!is_expected, "{error}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn the_optimum_within_borders_is_that_of_an_enumeration(
        edges in prop::collection::vec((0u32..6, 0u32..6, 1u64..1000), 0..20),
    ) {
        // Pairs cross the switches of three hosts unless a border holds them.
        let edges = edges.into_iter().filter(|(a, b, _)| a != b);
        let (graph, shape) = (grouped(graph(6, edges), "ep", &PAIRS), [1, 4, 2]);
        let system = switches(&shape);
        let found = run::<ExactStage>(exact(&border("ep", 1)), &graph, &system);
        let expected = least(&graph, &shape, &PAIRS, 4, &mut Vec::new());
        prop_assert!(is_kept(&found, &PAIRS, 4));
        prop_assert!((found.metrics["F"] - expected).abs() <= 1e-9 * expected, "{} and not {expected}", found.metrics["F"]);
        prop_assert!((found.metrics[BOUND.name] - expected).abs() <= 1e-9 * expected);
        prop_assert!(found.metrics[PROVEN.name] > 0.0);
    }

    #[test]
    fn no_bound_within_borders_is_above_the_optimum(
        edges in prop::collection::vec((0u32..6, 0u32..6, 1u64..1000), 0..12),
    ) {
        // Groups of three below spines of two leaves of two hosts.
        let groups: [&[u32]; 2] = [&[0, 2, 4], &[1, 3, 5]];
        let edges = edges.into_iter().filter(|(a, b, _)| a != b);
        let (graph, shape) = (grouped(graph(6, edges), "ep", &groups), [1, 2, 2, 2]);
        let found = run::<ExactStage>(exact(&border("ep", 2)), &graph, &switches(&shape));
        let expected = least(&graph, &shape, &groups, 4, &mut Vec::new());
        let (cost, bound) = (found.metrics["F"], found.metrics[BOUND.name]);
        prop_assert!(is_kept(&found, &groups, 4) && cost >= expected * (1.0 - 1e-9));
        prop_assert!(bound <= expected * (1.0 + 1e-9), "{bound} and {expected}");
        prop_assert!(found.metrics[PROVEN.name] < 1.0 || cost <= expected * (1.0 + 1e-9));
    }

    #[test]
    fn groups_stay_below_switches_that_have_levels_of_their_own(
        edges in prop::collection::vec((0u32..12, 0u32..12, 1u64..1000), 0..60),
    ) {
        // Groups of three below spines of two leaves of two hosts.
        let groups: [&[u32]; 4] = [&[0, 4, 8], &[1, 5, 9], &[2, 6, 10], &[3, 7, 11]];
        let edges = edges.into_iter().filter(|(a, b, _)| a != b);
        let (graph, system) = (grouped(graph(12, edges), "ep", &groups), switches(&[1, 2, 2, 4]));
        let mut params = exact(&border("ep", 2));
        let found = run::<ExactStage>(params.clone(), &graph, &system);
        prop_assert!(is_kept(&found, &groups, 4));
        // No exchange of two ranks below a switch lowers F.
        let (slots, f) = (found.slots(), |slots: &[u32]| double_sums(&graph, &[1, 2, 2, 4], slots).0);
        for (a, b) in (0..12).flat_map(|a| (0..a).map(move |b| (a, b))).filter(|&(a, b)| slots[a] / 4 == slots[b] / 4) {
            let mut other = slots.clone();
            other.swap(a, b);
            prop_assert!(f(&other) >= f(&slots) * (1.0 - 1e-9));
        }
        params.borders = border("ep", 1);
        let error = ExactStage::run(params, inputs(&graph, &system), &Context::detached()).unwrap_err().to_string();
        prop_assert_eq!(error, "the group of `ep` with rank 0 needs 3 slots, but no switch of level 1 has more than 2 below it");
    }
}

/// Eight hosts of two slots, two below a leaf, two leaves below a spine.
fn cluster() -> SystemGraph {
    switches(&[2, 2, 2, 2])
}

/// Sixteen ranks on eight hosts: tensor groups of two hosts, which are pairs in expert groups.
fn job() -> TaskGraph {
    let mut graph = graph(16, (0..16).map(|rank| (rank, (rank + 8) % 16, 100)));
    graph.processes =
        (0..16).map(|rank| Process { host: Some(format!("n{}", rank / 2)), ..Process::default() }).collect();
    let tensor: Vec<Vec<u32>> = (0..4).map(|group| (4 * group..4 * group + 4).collect()).collect();
    let expert: Vec<Vec<u32>> = (0..2).map(|group| vec![4 * group, 4 * group + 8]).collect();
    grouped(grouped(graph, "tp", &tensor), "ep", &expert)
}

#[test]
fn borders_of_several_levels_hold_with_blocks() {
    let borders = BTreeMap::from([("tp".to_owned(), 1), ("ep".to_owned(), 2)]);
    let params = AutoParams {
        blocks: Some(Blocks::Named(BlockName::Host)),
        borders,
        weight: Weight::Bytes.into(),
        ..AutoParams::default()
    };
    let slots = run::<AutoStage>(params, &job(), &cluster()).slots();
    for group in 0..4 {
        assert!((4 * group..4 * group + 4).all(|rank| slots[rank] / 4 == slots[4 * group] / 4), "{slots:?}");
    }
    for rank in 0..8 {
        assert_eq!(slots[rank] / 8, slots[rank + 8] / 8, "{slots:?}");
        assert_eq!(slots[rank] % 2, rank as u32 % 2, "local ranks stay: {slots:?}");
    }
}

#[test]
fn what_does_not_fit_is_one_message() {
    let linear = |borders| LinearParams {
        borders,
        blocks: Some(Blocks::Named(BlockName::Host)),
        ..LinearParams::default()
    };
    let of = |borders| refused(linear(borders), &job(), &cluster());
    assert_eq!(of(border("xp", 1)), "`borders` has `xp`, but the program has no groups of that name");
    assert_eq!(of(border("tp", 4)), "`borders` has level 4 for `tp`, but the machine has no such level");
    // All hosts are below one switch of level 3.
    let kept = AutoParams { borders: border("tp", 3), ..AutoParams::default() };
    let free = AutoParams::default();
    let [kept, free] = [kept, free].map(|params| run::<AutoStage>(params, &job(), &cluster()).slots());
    assert_eq!(kept, free);
    assert!(of(border("tp", 0)).starts_with("`borders` has level 0 for `tp`"));
    let both = BTreeMap::from([("tp".to_owned(), 1), ("ep".to_owned(), 1)]);
    assert_eq!(
        of(both),
        "the group of `ep`, `tp` with rank 0 needs 4 hosts, but no switch of level 1 has more than 2 below it"
    );
    let small = grouped(graph(6, [(0, 1, 5)]), "ep", &[&[0, 1], &[2, 3], &[4, 5]]);
    let wide = LinearParams { borders: border("ep", 1), ..LinearParams::default() };
    assert_eq!(
        refused(wide, &small, &switches(&[1, 3, 2])),
        "3 groups of `ep` of 2 slots must not cross switches of level 1, below which there is room for 2"
    );
}

#[test]
fn borders_exclude_what_moves_single_ranks() {
    let pinned = vec![Pin { rank: 0, slot: Some(0), host: None }];
    let params = LinearParams { borders: border("ep", 1), pinned, ..LinearParams::default() };
    assert!(LinearStage::check(&params).unwrap_err().to_string().contains("pinned ranks prevent"));
    let params =
        AutoParams { borders: border("ep", 1), objective: AutoGoal::Makespan, ..AutoParams::default() };
    assert!(AutoStage::check(&params).is_err());
}
