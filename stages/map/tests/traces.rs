//! Real programs with known optima: traces of NPB, ASCI Sweep and LULESH.

use std::fs;

use hopmap_map::{AnnealingParams, AnnealingStage, LinearParams, LinearStage, TabuParams, TabuStage};
use hopmap_model::TaskGraph;
use hopmap_test_support::given_data;

use crate::common::{anneal, double_sums, graph, run, tree};

/// Messages and bytes between ranks as recorded, or `None` without the data.
fn trace(name: &str, ranks: usize) -> Option<TaskGraph> {
    let data = given_data()?;
    let path = data.join("traces/expected").join(format!("{name}.p2p.txt"));
    let text = fs::read_to_string(path).unwrap();
    let edge = |line: &str| {
        let numbers: Vec<u64> = line.split_whitespace().map(|number| number.parse().unwrap()).collect();
        (numbers[0] as u32, numbers[1] as u32, numbers[3])
    };
    Some(graph(ranks, text.lines().map(edge)))
}

/// Checks that every seed reaches the optimum, found by enumeration of all mappings.
fn reaches(name: &str, ranks: usize, shape: &[u32], optimum: f64, at_most_of_linear: f64) {
    let Some(graph) = trace(name, ranks) else { return };
    let system = tree(shape);
    let linear = run::<LinearStage>(LinearParams::default(), &graph, &system);
    assert!(optimum <= at_most_of_linear * linear.metrics["F"]);
    for seed in 1..=5 {
        // A quarter of the default, which continues it.
        let params = TabuParams { seed, evaluations: Some(1 << 23), ..TabuParams::default() };
        let tabu = run::<TabuStage>(params, &graph, &system);
        let annealing = AnnealingParams { seed, ..AnnealingParams::default() };
        let annealing = run::<AnnealingStage>(annealing, &graph, &system);
        for (mapper, mapping) in
            [("auto", anneal(seed, &graph, &system)), ("tabu", tabu), ("annealing", annealing)]
        {
            mapping.check().unwrap();
            assert!(mapping.complete);
            let (f, t) = double_sums(&graph, shape, &mapping.slots());
            assert!((f - optimum).abs() < 0.5, "{name}, {mapper} with seed {seed}: {f}, not {optimum}");
            assert!((mapping.metrics["F"] - f).abs() < 0.5 && (mapping.metrics["T"] - t).abs() < 0.5);
        }
    }
}

#[test]
fn lu_on_four_switches() {
    reaches("eztrace-lu.S.16", 16, &[2, 2, 4], 366_877_824.0, 0.72);
}

#[test]
fn sweep3d_on_four_switches() {
    reaches("eztrace-sweep3d-16", 16, &[2, 2, 4], 409_190_400.0, 0.72);
}

#[test]
fn mg_on_two_switches() {
    reaches("eztrace-mg.A.16", 16, &[2, 4, 2], 6_126_182_400.0, 0.97);
}

#[test]
fn mg_on_four_switches() {
    reaches("eztrace-mg.A.16", 16, &[2, 2, 4], 10_755_724_800.0, 0.98);
}

#[test]
fn lulesh_on_half_of_the_slots_is_best_linear() {
    reaches("eztrace-lulesh-8", 8, &[2, 4, 2], 27_904_384.0, 1.0);
}
