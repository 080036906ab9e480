//! Exact deltas against full recomputation, and integer costs against real ones, over random graphs and machines.

use hopmap_model::{CostModel, Edge, Levels, Node, Process, Slot, SystemGraph, TaskGraph, Weight};
use hopmap_objective::{Assignment, Problem, Quality};
use proptest::prelude::*;

/// A tree over slots with groups of any size, and costs with a fraction.
fn machines() -> impl Strategy<Value = SystemGraph> {
    (2usize..24, 1usize..5).prop_flat_map(|(slots, levels)| {
        let groups = prop::collection::vec(prop::collection::vec(0u32..4, slots), levels - 1);
        let steps = prop::collection::vec(prop_oneof![Just(0.0), Just(9.0), 0.1..50.0], levels);
        (Just(slots), groups, steps).prop_map(|(slots, branches, steps)| machine(slots, &branches, &steps))
    })
}

/// Splits every group by branch, level by level from the root.
fn machine(slots: usize, branches: &[Vec<u32>], steps: &[f64]) -> SystemGraph {
    let mut groups = vec![vec![0; slots]];
    for branch in branches {
        let outer = groups[0].clone();
        groups.insert(0, outer.iter().zip(branch).map(|(group, branch)| group * 4 + branch).collect());
    }
    let costs = steps.iter().scan(0.0, |sum, step| {
        *sum += step;
        Some(*sum)
    });
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes: vec![Node::host("host")],
        links: Vec::new(),
        slots: (0..slots as u32).map(|core| Slot { host: 0, core }).collect(),
        cost: CostModel::Levels(Levels { costs: costs.collect(), groups }),
        calibration: Vec::new(),
    }
}

fn graphs(ranks: usize) -> impl Strategy<Value = TaskGraph> {
    let edge = (0..ranks as u32, 0..ranks as u32, 0u64..100, 0u64..1_000_000);
    prop::collection::btree_map((edge.0, edge.1), (edge.2, edge.3), 0..60).prop_map(move |edges| TaskGraph {
        processes: vec![Process::default(); ranks],
        edges: edges
            .into_iter()
            .map(|((source, destination), (messages, bytes))| Edge { source, destination, messages, bytes })
            .collect(),
        ..TaskGraph::default()
    })
}

fn weights() -> impl Strategy<Value = Weight> {
    let time = (0.0..1e-3, 1.0..1e10)
        .prop_map(|(latency_s, bandwidth_bytes_per_s)| Weight::Time { latency_s, bandwidth_bytes_per_s });
    prop_oneof![Just(Weight::Bytes), Just(Weight::Messages), time]
}

/// A machine, a program that fits on it, a mapping, and exchanges of a rank with a slot.
type Case = (SystemGraph, TaskGraph, Weight, Vec<u32>, Vec<(u32, u32)>);

fn cases() -> impl Strategy<Value = Case> {
    let sized = machines().prop_flat_map(|machine| {
        let slots = machine.slots.len();
        (Just(machine), 1..=slots)
    });
    sized.prop_flat_map(|(machine, ranks)| {
        let slots = machine.slots.len() as u32;
        let exchanges = prop::collection::vec((0..ranks as u32, 0..slots), 1..40);
        let placement = Just((0..slots).collect::<Vec<_>>()).prop_shuffle();
        (Just(machine), graphs(ranks), weights(), placement.prop_map(move |p| p[..ranks].to_vec()), exchanges)
    })
}

/// F as a double sum over all pairs of ranks.
fn double_sum(graph: &TaskGraph, machine: &SystemGraph, weight: Weight, slots: &[u32]) -> f64 {
    let mut sum = 0.0;
    for i in 0..graph.ranks() as u32 {
        for j in 0..graph.ranks() as u32 {
            let between: f64 = graph.edges.iter().filter(|e| e.pair() == (i, j)).map(|e| weight.of(e)).sum();
            sum += between * machine.costs().between(slots[i as usize], slots[j as usize]);
        }
    }
    sum
}

proptest! {
    #[test]
    fn a_delta_is_the_difference_of_full_costs((machine, graph, weight, mut slots, exchanges) in cases()) {
        let problem = Problem::new(&graph, &machine, weight).unwrap();
        let mut assignment = Assignment::new(&problem, &slots).unwrap();
        for (rank, slot) in exchanges {
            let own = slots[rank as usize];
            if let Some(other) = slots.iter().position(|&taken| taken == slot) {
                slots[other] = own;
            }
            slots[rank as usize] = slot;
            let before = assignment.cost();
            let delta = assignment.delta(rank, slot);
            assignment.exchange(rank, slot, delta);
            prop_assert_eq!(assignment.slots(), &slots);
            prop_assert_eq!(before + delta, problem.cost(&slots));
            prop_assert_eq!(assignment.cost(), problem.cost(&slots));
            for (rank, &slot) in slots.iter().enumerate() {
                prop_assert_eq!(assignment.rank_at(slot), Some(rank as u32));
            }
        }
    }

    #[test]
    fn integer_costs_are_close_to_real_ones((machine, graph, weight, slots, _) in cases()) {
        let problem = Problem::new(&graph, &machine, weight).unwrap();
        let real = Quality::new(&graph, &machine, None, &slots, weight).unwrap().f;
        let scaled = problem.real(problem.cost(&slots));
        let naive = double_sum(&graph, &machine, weight, &slots);
        prop_assert!((naive - real).abs() <= 1e-12 * real);
        let CostModel::Levels(levels) = &machine.cost else { unreachable!() };
        let total: f64 = graph.edges.iter().map(|edge| weight.of(edge)).sum();
        let largest = total * levels.costs.last().unwrap();
        prop_assert!((scaled - real).abs() <= 1e-6 * largest, "{} is not {}", scaled, real);
    }

    #[test]
    fn costs_of_three_decimals_keep_nine_digits((machine, graph, _, slots, _) in cases()) {
        let mut machine = machine;
        let CostModel::Levels(levels) = &mut machine.cost else { unreachable!() };
        for cost in &mut levels.costs {
            *cost = (*cost * 1000.0).round() / 1000.0;
        }
        let weight = Weight::Time { latency_s: 1.5e-6, bandwidth_bytes_per_s: 2e9 };
        let problem = Problem::new(&graph, &machine, weight).unwrap();
        let real = Quality::new(&graph, &machine, None, &slots, weight).unwrap().f;
        let scaled = problem.real(problem.cost(&slots));
        prop_assert!((scaled - real).abs() <= 2e-9 * real, "{} is not {}", scaled, real);
    }

    #[test]
    fn integers_are_exact((machine, graph, _, slots, _) in cases()) {
        let mut machine = machine;
        let CostModel::Levels(levels) = &mut machine.cost else { unreachable!() };
        for cost in &mut levels.costs {
            *cost = cost.round();
        }
        let problem = Problem::new(&graph, &machine, Weight::Bytes).unwrap();
        let real = Quality::new(&graph, &machine, None, &slots, Weight::Bytes).unwrap().f;
        prop_assert!((problem.scale() - 1.0).abs() < f64::EPSILON);
        prop_assert_eq!(problem.cost(&slots), real as i64);
    }
}

#[test]
fn mappings_of_other_programs_and_machines_are_refused() {
    let machine = machine(4, &[], &[1.0]);
    let graph = TaskGraph { processes: vec![Process::default(); 2], ..TaskGraph::default() };
    let problem = Problem::new(&graph, &machine, Weight::Bytes).unwrap();
    let message = |slots: &[u32]| Assignment::new(&problem, slots).unwrap_err().to_string();
    assert_eq!(message(&[0]), "the mapping has 1 ranks, but the task graph has 2");
    assert_eq!(message(&[0, 4]), "rank 1 is on slot 4, but the machine has 4 slots");
    assert_eq!(message(&[3, 3]), "ranks 0 and 1 are both on slot 3");
    let quality =
        |slots: &[u32]| Quality::new(&graph, &machine, None, slots, Weight::Bytes).unwrap_err().to_string();
    assert_eq!(quality(&[0]), "the mapping has 1 ranks, but the task graph has 2");
    assert_eq!(quality(&[0, 4]), "rank 1 is on slot 4, but the machine has 4 slots");
}
