//! Branch and bound: optimal, valid bounds at any limit, independent of the number of threads, stoppable.

mod maxima;

use std::path::Path;

use hopmap_map::{Exact, ExactParams, ExactStage, Mapper, SearchResult};
use hopmap_model::{
    Context, CostModel, Mapping, Matrix, Observer, Outcome, Stage, SystemGraph, TaskGraph, Weight,
};
use hopmap_objective::Problem;
use hopmap_test_support::{Impatient, given_data};
use proptest::prelude::*;

use crate::common::{Silent, double_sums, exhaustive, graph, grid, inputs, mapping, run, tree};

fn exact(nodes: Option<u64>, graph: &TaskGraph, system: &SystemGraph) -> Mapping {
    run::<ExactStage>(ExactParams { max_search_nodes: nodes, ..ExactParams::default() }, graph, system)
}

fn refused(params: ExactParams, graph: &TaskGraph, system: &SystemGraph) -> String {
    ExactStage::run(params, inputs(graph, system), &Context::detached()).unwrap_err().to_string()
}

/// A machine of `n` slots with these costs between them.
fn machine(n: usize, costs: Vec<f64>) -> SystemGraph {
    let mut system = tree(&[1, n as u32]);
    system.cost = CostModel::Matrix(Matrix { costs });
    system
}

/// F of a mapping as a double sum.
fn cost(weights: &[u64], costs: &[u64], slots: &[u32], n: usize) -> u64 {
    let ranks = slots.len();
    let pairs = (0..ranks).flat_map(|i| (0..ranks).map(move |j| (i, j)));
    pairs.map(|(i, j)| weights[i * ranks + j] * costs[slots[i] as usize * n + slots[j] as usize]).sum()
}

/// The minimum F, by enumeration.
fn least(weights: &[u64], costs: &[u64], ranks: usize, n: usize, slots: &mut Vec<u32>) -> u64 {
    if slots.len() == ranks {
        return cost(weights, costs, slots, n);
    }
    let mut best = u64::MAX;
    for slot in 0..n as u32 {
        if !slots.contains(&slot) {
            slots.push(slot);
            best = best.min(least(weights, costs, ranks, n, slots));
            slots.pop();
        }
    }
    best
}

fn program(weights: &[u64], ranks: usize) -> TaskGraph {
    let edges = weights.iter().enumerate().filter(|(_, weight)| **weight > 0);
    graph(ranks, edges.map(|(at, weight)| ((at / ranks) as u32, (at % ranks) as u32, *weight)))
}

/// Checks the properties of every answer.
fn check(mapping: &Mapping, optimum: f64) -> Result<(), TestCaseError> {
    let metrics = &mapping.metrics;
    prop_assert!(metrics["bound"] <= optimum * (1.0 + 1e-12), "{} > {optimum}", metrics["bound"]);
    prop_assert!(metrics["F"] >= optimum * (1.0 - 1e-12));
    prop_assert!(metrics["bound"] <= metrics["F"]);
    if metrics["proven"] > 0.0 {
        prop_assert!((metrics["F"] - optimum).abs() <= 1e-9 * optimum, "{} and not {optimum}", metrics["F"]);
        prop_assert!(metrics["gap"].abs() < 1e-12);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn on_a_matrix_results_are_optimal_and_bounds_valid_at_any_limit(
        ranks in 2usize..7, free in 0usize..3, dense in any::<bool>(), limit in 1u64..12,
        weights in prop::collection::vec(0u64..12, 64), costs in prop::collection::vec(0u64..20, 64)
    ) {
        let n = ranks + free;
        let keep = |weight: u64| if dense || weight > 8 { weight } else { 0 };
        let weights: Vec<u64> = (0..ranks * ranks)
            .map(|at| if at / ranks == at % ranks { 0 } else { keep(weights[at]) }).collect();
        let costs: Vec<u64> = (0..n * n).map(|at| (at / n, at % n))
            .map(|(a, b)| if a == b { 0 } else { costs[a.min(b) * 8 + a.max(b)] }).collect();
        let optimum = least(&weights, &costs, ranks, n, &mut Vec::new()) as f64;
        let (graph, system) = (program(&weights, ranks), machine(n, costs.iter().map(|&cost| cost as f64).collect()));
        let proven = exact(None, &graph, &system);
        prop_assert!((proven.metrics["proven"] - 1.0).abs() < f64::EPSILON);
        check(&proven, optimum)?;
        let own = cost(&weights, &costs, &proven.slots(), n) as f64;
        prop_assert!((own - proven.metrics["F"]).abs() < 1e-9);
        let limited = exact(Some(limit), &graph, &system);
        prop_assert!(limited.metrics["nodes"] <= limit as f64);
        check(&limited, optimum)?;
    }

    /// With both diagonals, symmetric or not.
    #[test]
    fn on_any_two_matrices_results_are_optimal_and_bounds_valid_at_any_limit(
        ranks in 1usize..6, free in 0usize..3, is_symmetric in any::<bool>(), limit in 1u64..12,
        weights in prop::collection::vec(0u64..12, 64), costs in prop::collection::vec(0u64..20, 64)
    ) {
        let n = ranks + free;
        let value = |values: &[u64], a: usize, b: usize| match is_symmetric {
            true => values[a.min(b) * 8 + a.max(b)],
            false => values[a * 8 + b],
        };
        let weights: Vec<u64> = (0..ranks * ranks).map(|at| value(&weights, at / ranks, at % ranks)).collect();
        let costs: Vec<u64> = (0..n * n).map(|at| value(&costs, at / n, at % n)).collect();
        let optimum = least(&weights, &costs, ranks, n, &mut Vec::new()) as f64;
        let (graph, system) = (program(&weights, ranks), machine(n, costs.iter().map(|&cost| cost as f64).collect()));
        let proven = exact(None, &graph, &system);
        prop_assert!((proven.metrics["proven"] - 1.0).abs() < f64::EPSILON);
        check(&proven, optimum)?;
        check(&exact(Some(limit), &graph, &system), optimum)?;
    }

    #[test]
    fn on_a_tree_nothing_is_better(
        ranks in 2usize..7, edges in prop::collection::vec((0u32..6, 0u32..6, 1u64..9), 1..12)
    ) {
        let shape = [2, 2, 2];
        let graph = graph(ranks, edges.into_iter().map(|(i, j, b)| (i % ranks as u32, j % ranks as u32, b)));
        let optimum = exhaustive(&graph, &shape, &mut Vec::new());
        let proven = exact(None, &graph, &tree(&shape));
        prop_assert!((proven.metrics["proven"] - 1.0).abs() < f64::EPSILON);
        check(&proven, optimum)?;
        prop_assert!((double_sums(&graph, &shape, &proven.slots()).0 - proven.metrics["F"]).abs() < 1e-9);
    }
}

#[test]
fn a_grid_on_a_tree_is_proven() {
    // 4 x 4 on 2 cores per host, 4 hosts per switch: 4 edges between the halves, 12 inside a half and 8 inside hosts, both ways.
    let mapping = exact(None, &grid(4, 4), &tree(&[2, 4, 2]));
    assert!((mapping.metrics["F"] - 16.0 * (8.0 + 120.0 + 400.0)).abs() < 1e-9, "{:?}", mapping.metrics);
    assert!((mapping.metrics["proven"] - 1.0).abs() < f64::EPSILON);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let (graph, system) = (grid(4, 3), machine(12, steps_of_a_grid(4, 3)));
    for nodes in [None, Some(7), Some(60)] {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let cx = Context::new(threads, None, &Silent);
            let params = ExactParams { max_search_nodes: nodes, ..ExactParams::default() };
            match pool.install(|| ExactStage::run(params, inputs(&graph, &system), &cx)).unwrap() {
                Outcome::Done(outputs) => mapping(&outputs),
                other => panic!("{other:?}"),
            }
        };
        let one = with(1);
        assert_eq!(one, with(2));
        assert_eq!(one, with(7));
    }
}

/// Squared distances between the points of a grid.
fn steps_of_a_grid(width: u32, height: u32) -> Vec<f64> {
    let places = move || (0..width * height).map(move |at| (at % width, at / width));
    let steps = |a: (u32, u32), b: (u32, u32)| f64::from((a.0.abs_diff(b.0) + a.1.abs_diff(b.1)).pow(2));
    places().flat_map(|a| places().map(move |b| steps(a, b))).collect()
}

#[test]
fn fractional_costs_are_compared_exactly() {
    let costs: Vec<f64> = steps_of_a_grid(3, 2).iter().map(|cost| cost / 3.0).collect();
    let weights: Vec<u64> = (0..36).map(|at| if at % 7 == 0 { 0 } else { at * at % 11 }).collect();
    let weight = Weight::Time { latency_s: 2.5e-6, bandwidth_bytes_per_s: 1e9 };
    let params = ExactParams { weight: weight.into(), ..ExactParams::default() };
    let mapping = run::<ExactStage>(params, &program(&weights, 6), &machine(6, costs));
    assert!((mapping.metrics["proven"] - 1.0).abs() < f64::EPSILON);
    assert!((mapping.metrics["bound"] - mapping.metrics["F"]).abs() < f64::EPSILON);
}

#[test]
fn silent_ranks_cost_nothing() {
    let mapping = exact(None, &graph(5, []), &tree(&[2, 4]));
    let metrics = &mapping.metrics;
    let values = [metrics["F"], metrics["bound"], metrics["gap"], metrics["proven"] - 1.0];
    assert!(values.iter().all(|value| value.abs() < f64::EPSILON), "{metrics:?}");
    // Two communicating ranks and six silent ones.
    let mapping = exact(None, &graph(8, [(2, 6, 5)]), &tree(&[2, 4]));
    assert!((mapping.metrics["F"] - 5.0).abs() < 1e-9);
}

#[test]
fn a_large_problem_has_a_bound_and_a_very_large_one_is_refused() {
    let (graph, system) = (grid(8, 8), tree(&[4, 4, 4]));
    let mapping = exact(None, &graph, &system);
    let best = 16.0 * (16.0 * 100.0 + 32.0 * 10.0 + 64.0);
    check(&mapping, best).unwrap();
    assert!(mapping.metrics["bound"] > 0.0);
    assert!(mapping.metrics["nodes"] < 1.0);
    let message = refused(ExactParams::default(), &graph, &tree(&[257, 256]));
    assert_eq!(message, "the machine has 65792 slots, but map/exact supports at most 65536");
}

/// 192 groups of twelve, whose ranks all send to each other, on 2304 hosts, 16 on a leaf switch and twelve of these on a
/// spine. Twelve groups of a spine are whole, and four are cut into three pieces of four for the places left.
#[test]
fn thousands_of_hosts_have_a_bound() {
    let shape = [16, 12, 12];
    let pairs = (0..2304u32).flat_map(|a| (0..12).map(move |b| (a, a / 12 * 12 + b))).filter(|(a, b)| a != b);
    let graph = graph(2304, pairs.map(|(a, b)| (a, b, 1)));
    let slot = |rank: u32| match (rank / 192, rank % 192 / 12, rank % 12) {
        (spine, whole, place) if whole < 12 => 192 * spine + 16 * whole + place,
        (spine, cut, place) => 192 * spine + 16 * (3 * (cut - 12) + place / 4) + 12 + place % 4,
    };
    let known: Vec<u32> = (0..2304).map(slot).collect();
    let known = double_sums(&graph, &shape, &known).0;
    let mapping = exact(None, &graph, &tree(&shape));
    check(&mapping, known.min(mapping.metrics["F"])).unwrap();
    assert!(mapping.metrics["bound"] > 0.999 * known, "{:?} and {known}", mapping.metrics);
}

/// Three groups of six are whole on leaves of eight, and pairs of the fourth are in the places left.
#[test]
fn groups_that_do_not_fill_leaves_are_proven_without_a_search() {
    let pairs = (0..24u32).flat_map(|a| (0..6).map(move |b| (a, a / 6 * 6 + b))).filter(|(a, b)| a != b);
    let mapping = exact(Some(1), &graph(24, pairs.map(|(a, b)| (a, b, 1))), &tree(&[8, 3]));
    let metrics = &mapping.metrics;
    assert!((metrics["F"] - 2.0 * f64::from(48 + 12 * 10)).abs() < 1e-9, "{metrics:?}");
    assert!(metrics["proven"] > 0.0 && metrics["nodes"] < 1.0, "{metrics:?}");
}

#[test]
fn few_ranks_are_mapped_to_many_equivalent_slots() {
    // A ring of six on 256 slots: two hosts of four cores under one switch.
    let ring = graph(6, (0..6).flat_map(|i| [(i, (i + 1) % 6, 1), ((i + 1) % 6, i, 1)]));
    let mapping = exact(None, &ring, &tree(&[4, 8, 8]));
    assert!((mapping.metrics["F"] - 2.0 * (4.0 + 2.0 * 10.0)).abs() < 1e-9, "{:?}", mapping.metrics);
    assert!((mapping.metrics["proven"] - 1.0).abs() < f64::EPSILON);
    let pair = exact(None, &graph(2, [(0, 1, 3)]), &tree(&[2, 400]));
    assert!((pair.metrics["F"] - 3.0).abs() < 1e-9 && pair.metrics["proven"] > 0.0);
}

#[test]
fn an_interrupt_leaves_a_mapping_and_a_valid_bound() {
    struct Impatient;
    impl Observer for Impatient {
        fn progress(&self, _: u64, _: u64) {}
        fn log(&self, _: &str) {}
        fn cancelled(&self) -> bool {
            true
        }
    }
    let weights: Vec<u64> = (0..256u64).map(|at| if at % 17 == 0 { 0 } else { at * at % 97 }).collect();
    let (graph, system) = (program(&weights, 16), machine(16, steps_of_a_grid(4, 4)));
    let found = exact(Some(1), &graph, &system).metrics["F"];
    let cx = Context::new(1, None, &Impatient);
    match ExactStage::run(ExactParams::default(), inputs(&graph, &system), &cx).unwrap() {
        Outcome::Partial(outputs) => {
            let mapping = mapping(&outputs);
            assert!(!mapping.complete);
            assert!(mapping.metrics["proven"] < 1.0);
            assert!(
                mapping.metrics["bound"] > 0.0 && mapping.metrics["bound"] <= found.min(mapping.metrics["F"])
            );
        }
        other => panic!("{other:?}"),
    }
}

/// A program on a hypercube, where many mappings cost nearly the same.
fn hypercube() -> (TaskGraph, SystemGraph) {
    let n = 16usize;
    let steps = (0..n * n).map(|at| f64::from(((at / n) ^ (at % n)).count_ones().saturating_sub(1)));
    let weight =
        |a: usize, b: usize| if (a * b + a + b) % 7 < 2 && a != b { 1 + (a * b) as u64 % 3 } else { 0 };
    let weights: Vec<u64> = (0..n * n).map(|at| weight(at / n, at % n)).collect();
    (program(&weights, n), machine(n, steps.collect()))
}

/// Runs a search until it has polled its context so often.
fn stopped(exact: &Exact, problem: &Problem, patience: u64, threads: usize, file: &Path) -> SearchResult {
    let observer = Impatient::new(patience);
    exact.map(problem, &Context::new(threads, None, &observer).with_state(file)).unwrap()
}

/// Once a search that was killed or reached the deadline of a run began again.
#[test]
fn a_stopped_search_resumes_where_it_was_interrupted() {
    let (graph, system) = hypercube();
    let problem = Problem::new(&graph, &system, Weight::Bytes).unwrap();
    let exact = Exact::new(&ExactParams { max_search_nodes: Some(8000), ..ExactParams::default() }).unwrap();
    let whole = exact.map(&problem, &Context::detached()).unwrap();
    for (patience, threads) in [(5500, 1), (9000, 2)] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state");
        let first = stopped(&exact, &problem, patience, threads, &file);
        assert!(!first.complete && file.exists() && first.metrics["proven"] < 1.0);
        assert!(
            first.metrics["bound"] <= whole.metrics["bound"]
                && first.metrics["nodes"] < whole.metrics["nodes"]
        );
        assert_eq!(exact.map(&problem, &Context::detached().with_state(&file)).unwrap(), whole);
    }
}

/// With a deadline for each run, as long as it takes.
#[test]
fn a_search_that_is_stopped_again_and_again_ends_with_the_same_proof() {
    let (graph, system) = hypercube();
    let problem = Problem::new(&graph, &system, Weight::Bytes).unwrap();
    let exact = Exact::new(&ExactParams { max_search_nodes: Some(8000), ..ExactParams::default() }).unwrap();
    let whole = exact.map(&problem, &Context::detached()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    let mut runs = 0;
    let last = loop {
        let found = stopped(&exact, &problem, 5500, 1 + runs % 2, &file);
        if found.complete {
            break found;
        }
        runs += 1;
        assert!(runs < 20);
    };
    assert!(runs > 1, "{runs}");
    assert_eq!(last, whole);
}

#[test]
fn a_damaged_state_is_ignored() {
    let (graph, system) = hypercube();
    let problem = Problem::new(&graph, &system, Weight::Bytes).unwrap();
    let exact = Exact::new(&ExactParams { max_search_nodes: Some(4000), ..ExactParams::default() }).unwrap();
    let whole = exact.map(&problem, &Context::detached()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    stopped(&exact, &problem, 5500, 1, &file);
    let state = std::fs::read_to_string(&file).unwrap();
    for text in ["", "{", &state[..state.len() / 2]] {
        std::fs::write(&file, text).unwrap();
        assert_eq!(exact.map(&problem, &Context::detached().with_state(&file)).unwrap(), whole);
    }
    // Branches that this search does not have.
    std::fs::write(&file, state.replace("\"choices\":[[", "\"choices\":[[1")).unwrap();
    let again = exact.map(&problem, &Context::detached().with_state(&file)).unwrap();
    assert!(again.complete && again.slots == whole.slots && again.metrics["bound"] <= whole.metrics["bound"]);
}

#[test]
fn a_time_limit_ends_the_search() {
    let weights: Vec<u64> = (0..400u64).map(|at| if at % 21 == 0 { 0 } else { at * at % 97 }).collect();
    let params = ExactParams { time_limit_s: Some(0.2), ..ExactParams::default() };
    let mapping = run::<ExactStage>(params, &program(&weights, 20), &machine(20, steps_of_a_grid(5, 4)));
    assert!(mapping.metrics["bound"] > 0.0 && mapping.metrics["bound"] <= mapping.metrics["F"]);
}

#[test]
fn invalid_parameters_are_refused() {
    let (graph, system) = (grid(2, 2), tree(&[2, 2]));
    let nodes = ExactParams { max_search_nodes: Some(0), ..ExactParams::default() };
    assert_eq!(refused(nodes, &graph, &system), "`max_search_nodes` = 0 is out of range");
    for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let params = ExactParams { time_limit_s: Some(seconds), ..ExactParams::default() };
        assert_eq!(refused(params, &graph, &system), format!("`time_limit_s` = {seconds} is out of range"));
    }
}

#[test]
fn known_optima_of_qaplib_are_proven() {
    let Some(data) = given_data() else { return };
    for name in ["nug12", "had12", "tai12a", "scr12", "chr12a", "esc16e", "esc16g"] {
        let numbers = |extension| -> Vec<u64> {
            let path = data.join("qap/qaplib").join(format!("{name}.{extension}"));
            let text = std::fs::read_to_string(path).unwrap().replace(',', " ");
            text.split_whitespace().map(|word| word.parse().unwrap()).collect()
        };
        let (instance, optimum) = (numbers("dat"), numbers("sln")[1]);
        let n = instance[0] as usize;
        let (weights, costs) = instance[1..].split_at(n * n);
        let mapping =
            exact(None, &program(weights, n), &machine(n, costs.iter().map(|&cost| cost as f64).collect()));
        assert!((mapping.metrics["proven"] - 1.0).abs() < f64::EPSILON, "{name}");
        assert_eq!(cost(weights, costs, &mapping.slots(), n), optimum, "{name}");
    }
}
