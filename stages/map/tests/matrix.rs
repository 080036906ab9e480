//! Machines with a cost matrix: all mappers find the optimum found by enumeration.

use hopmap_map::{AnnealingParams, AnnealingStage, TabuParams, TabuStage};
use hopmap_model::{CostModel, Matrix, SystemGraph, TaskGraph};
use proptest::prelude::*;

use crate::common::{graph, run, tree};

/// A machine of `n` slots with these costs between them.
fn machine(n: usize, costs: Vec<f64>) -> SystemGraph {
    let mut system = tree(&[1, n as u32]);
    system.cost = CostModel::Matrix(Matrix { costs });
    system
}

/// A value for every ordered pair of `n`, symmetric or not; zero on the diagonal.
fn numbers(n: usize, values: &[u64], alike: bool) -> Vec<u64> {
    let value = |a: usize, b: usize| if a == b { 0 } else { values[a * n + b] };
    let place = |at: usize| (at / n, at % n);
    (0..n * n).map(place).map(|(a, b)| if alike { value(a.min(b), a.max(b)) } else { value(a, b) }).collect()
}

/// The minimum F, by enumeration.
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

fn searched(weights: &[u64], costs: &[u64], n: usize) -> [f64; 2] {
    let (graph, system) = (program(weights, n), machine(n, costs.iter().map(|&cost| cost as f64).collect()));
    let annealed = run::<AnnealingStage>(
        AnnealingParams { evaluations: Some(20_000), ..AnnealingParams::default() },
        &graph,
        &system,
    );
    let tabu =
        run::<TabuStage>(TabuParams { evaluations: Some(20_000), ..TabuParams::default() }, &graph, &system);
    [annealed.metrics["F"], tabu.metrics["F"]]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn searches_find_the_optimum(
        weights in prop::collection::vec(0u64..9, 36), costs in prop::collection::vec(0u64..50, 36), which in any::<bool>()
    ) {
        let n = 6;
        let (weights, costs) = (numbers(n, &weights, which), numbers(n, &costs, !which));
        let least = best(&weights, &costs, n) as f64;
        for found in searched(&weights, &costs, n) {
            prop_assert!((found - least).abs() < 1e-6, "{found} and not {least}");
        }
    }

    #[test]
    fn searches_find_the_optimum_of_asymmetric_problems(
        weights in prop::collection::vec(prop_oneof![Just(0u64), 0u64..9], 36),
        costs in prop::collection::vec(0u64..50, 36),
    ) {
        let n = 6;
        let least = best(&weights, &costs, n) as f64;
        for found in searched(&weights, &costs, n) {
            prop_assert!((found - least).abs() < 1e-6, "{found} and not {least}");
        }
    }
}

#[test]
fn ranks_that_only_send_to_themselves_take_their_cheapest_slots() {
    let mut weights = vec![0; 25];
    let mut costs = vec![7; 25];
    for at in 0..5u64 {
        weights[6 * at as usize] = 1 + at;
        costs[6 * at as usize] = 10 + at;
    }
    let least = (0..5).map(|at| (1 + at) * (14 - at)).sum::<u64>() as f64;
    for found in searched(&weights, &costs, 5) {
        assert!((found - least).abs() < 1e-6, "{found} and not {least}");
    }
}

#[test]
fn a_rank_that_sends_to_itself_stays_on_the_only_slot() {
    assert_eq!(searched(&[3], &[5], 1).map(|found| found as u64), [15, 15]);
}
