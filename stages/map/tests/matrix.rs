//! Machines whose costs are a matrix: all mappers find what trying all placements finds.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{graph, inputs, run, tree};
use hopmap_map::{AnnealingParams, AnnealingStage, LinearParams, LinearStage, TabuParams, TabuStage};
use hopmap_model::{Context, CostModel, Matrix, Stage, SystemGraph, TaskGraph};
use proptest::prelude::*;

/// A machine of `n` slots with these costs between them.
fn machine(n: usize, costs: Vec<f64>) -> SystemGraph {
    let mut system = tree(&[1, n as u32]);
    system.cost = CostModel::Matrix(Matrix { costs });
    system
}

/// Numbers for every ordered pair of `n`, the same both ways or not; zero on the diagonal.
fn numbers(n: usize, values: &[u64], alike: bool) -> Vec<u64> {
    let value = |a: usize, b: usize| if a == b { 0 } else { values[a * n + b] };
    let place = |at: usize| (at / n, at % n);
    (0..n * n).map(place).map(|(a, b)| if alike { value(a.min(b), a.max(b)) } else { value(a, b) }).collect()
}

/// F of the best placement of all ranks, by trying all.
fn best(weights: &[u64], costs: &[u64], n: usize) -> u64 {
    fn place(taken: &mut Vec<usize>, weights: &[u64], costs: &[u64], n: usize, least: &mut u64) {
        if taken.len() == n {
            let pairs = (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
            let f: u64 = pairs.map(|(i, j)| weights[i * n + j] * costs[taken[i] * n + taken[j]]).sum();
            *least = f.min(*least);
            return;
        }
        for slot in 0..n {
            if !taken.contains(&slot) {
                taken.push(slot);
                place(taken, weights, costs, n, least);
                taken.pop();
            }
        }
    }
    let mut least = u64::MAX;
    place(&mut Vec::new(), weights, costs, n, &mut least);
    least
}

fn program(weights: &[u64], n: usize) -> TaskGraph {
    let edges = weights.iter().enumerate().filter(|(_, weight)| **weight > 0);
    graph(n, edges.map(|(at, weight)| ((at / n) as u32, (at % n) as u32, *weight)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn searches_find_the_best_of_all_placements(
        weights in prop::collection::vec(0u64..9, 36), costs in prop::collection::vec(0u64..50, 36), which in any::<bool>()
    ) {
        let n = 6;
        let (weights, costs) = (numbers(n, &weights, which), numbers(n, &costs, !which));
        let (graph, system) = (program(&weights, n), machine(n, costs.iter().map(|&cost| cost as f64).collect()));
        let least = best(&weights, &costs, n) as f64;
        let annealed = run::<AnnealingStage>(
            AnnealingParams { evaluations: Some(20_000), ..AnnealingParams::default() }, &graph, &system);
        let searched = run::<TabuStage>(
            TabuParams { evaluations: Some(20_000), ..TabuParams::default() }, &graph, &system);
        prop_assert!((annealed.metrics["F"] - least).abs() < 1e-6, "{} and not {least}", annealed.metrics["F"]);
        prop_assert!((searched.metrics["F"] - least).abs() < 1e-6, "{} and not {least}", searched.metrics["F"]);
    }
}

fn refused(graph: &TaskGraph, system: &SystemGraph) -> String {
    LinearStage::run(LinearParams::default(), inputs(graph, system), &Context::detached())
        .unwrap_err()
        .to_string()
}

#[test]
fn what_differs_both_ways_on_both_sides_is_refused() {
    let one_way = graph(3, [(0, 1, 5), (1, 2, 6)]);
    let uneven = machine(3, vec![0.0, 1.0, 2.0, 3.0, 0.0, 4.0, 5.0, 6.0, 0.0]);
    assert!(refused(&one_way, &uneven).contains("the same both ways"));
    let to_itself = graph(3, [(0, 0, 5), (1, 2, 6)]);
    let priced = machine(3, vec![1.0; 9]);
    assert_eq!(
        refused(&to_itself, &priced),
        "ranks send to themselves, and a slot costs something to itself"
    );
    // One of the two alone does no harm.
    let mapping = run::<LinearStage>(LinearParams::default(), &one_way, &priced);
    assert!((mapping.metrics["F"] - 11.0).abs() < 1e-9);
}
