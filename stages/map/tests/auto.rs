//! Properties of every search: never worse than linear, reproducible, continued by a larger budget,
//! stoppable.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hopmap_map::{
    Auto, AutoParams, AutoStage, LinearParams, LinearStage, Mapper, RandomParams, RandomStage,
    RoundRobinStage, Tabu, TabuParams,
};
use hopmap_model::{
    Context, CostModel, Mapping, Matrix, Observer, Outcome, Stage, SystemGraph, TaskGraph, Weight,
};
use hopmap_objective::{EVALUATIONS, METRICS, Problem};
use hopmap_test_support::{Impatient, soak};
use proptest::prelude::*;

use crate::common::{
    Listener, Silent, anneal, double_sums, exhaustive, graph, grid, inputs, mapping, run, tree,
};

fn linear(graph: &TaskGraph, system: &SystemGraph) -> Mapping {
    run::<LinearStage>(LinearParams::default(), graph, system)
}

fn random(seed: u64, graph: &TaskGraph, system: &SystemGraph) -> Mapping {
    run::<RandomStage>(RandomParams { seed, ..RandomParams::default() }, graph, system)
}

/// A short search.
fn short(evaluations: u64) -> AutoParams {
    AutoParams { evaluations: Some(evaluations), islands: 2, ..AutoParams::default() }
}

#[test]
fn linear_puts_rank_i_on_slot_i_and_random_uses_all_slots() {
    let (graph, system) = (grid(3, 3), tree(&[2, 4, 2]));
    assert_eq!(linear(&graph, &system).slots(), (0..9).collect::<Vec<_>>());
    let used: std::collections::BTreeSet<_> =
        (1..20).flat_map(|seed| random(seed, &graph, &system).slots()).collect();
    assert_eq!(used.len(), 16);
    assert_eq!(random(1, &graph, &system), random(1, &graph, &system));
    assert_ne!(random(1, &graph, &system).slots(), random(2, &graph, &system).slots());
}

#[test]
fn round_robin_gives_every_host_its_turn() {
    let (graph, system) = (grid(3, 3), tree(&[2, 4, 2]));
    let mapping = run::<RoundRobinStage>(LinearParams::default(), &graph, &system);
    assert_eq!(mapping.slots(), [0, 2, 4, 6, 8, 10, 12, 14, 1]);
    let (f, t) = double_sums(&graph, &[2, 4, 2], &mapping.slots());
    assert!((mapping.metrics["F"] - f).abs() < 1e-9 && (mapping.metrics["T"] - t).abs() < 1e-9);
}

#[test]
fn a_grid_is_cut_into_squares() {
    // Squares of 4 x 4 on every switch, of 2 x 2 on every host: the minimum cut.
    let (graph, system) = (grid(8, 8), tree(&[4, 4, 4]));
    let best = 16.0 * (16.0 * 100.0 + 32.0 * 10.0 + 64.0 * 1.0);
    for seed in 1..=5 {
        assert!((anneal(seed, &graph, &system).metrics["F"] - best).abs() < 0.5);
    }
}

#[test]
fn metrics_and_convergence_are_complete() {
    let (graph, system) = (grid(4, 4), tree(&[2, 2, 4]));
    let mapping = anneal(1, &graph, &system);
    let names: BTreeSet<_> = mapping.metrics.keys().map(String::as_str).collect();
    let expected = METRICS.iter().chain([&EVALUATIONS]).map(|metric| metric.name);
    assert_eq!(names, expected.collect());
    for island in 0..2 {
        let points: Vec<_> = mapping.convergence.iter().filter(|point| point.island == island).collect();
        assert_eq!(points[0].evaluations, 0);
        assert!(points[0].cost <= linear(&graph, &system).metrics["F"]);
        assert!(points.windows(2).all(|p| p[0].evaluations < p[1].evaluations && p[0].cost > p[1].cost));
    }
    let best = mapping.convergence.iter().map(|point| point.cost).fold(f64::INFINITY, f64::min);
    assert!((best - mapping.metrics["F"]).abs() < 1e-9);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let (graph, system) = (grid(6, 5), tree(&[2, 4, 4]));
    let search = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let cx = Context::new(threads, None, &Silent);
        match pool.install(|| AutoStage::run(short(20_000), inputs(&graph, &system), &cx)).unwrap() {
            Outcome::Done(outputs) => mapping(&outputs),
            other => panic!("{other:?}"),
        }
    };
    let one = search(1);
    assert_eq!(one, search(2));
    assert_eq!(one, search(7));
}

#[test]
fn no_island_exceeds_its_budget_and_a_local_search() {
    let (graph, system) = (grid(6, 6), tree(&[2, 4, 8]));
    let worse = run::<AutoStage>(short(36), &graph, &system);
    for sweeps in [100, 3000, 50_000] {
        let mapping = run::<AutoStage>(short(36 * sweeps), &graph, &system);
        assert!(mapping.metrics["evaluations"] <= (2 * 36 * sweeps + (1 << 20)) as f64);
        assert!(mapping.metrics["F"] <= worse.metrics["F"]);
    }
}

#[test]
fn the_search_beats_a_bad_linear_mapping() {
    let stride = |rank: u32| (rank * 5) % 16;
    let graph = graph(16, (0..8).map(|pair| (stride(2 * pair), stride(2 * pair + 1), 100)));
    let system = tree(&[2, 2, 4]);
    let mapping = run::<AutoStage>(short(20_000), &graph, &system);
    assert!((mapping.metrics["F"] - 800.0).abs() < 1e-9);
}

#[test]
fn nothing_to_search_is_linear() {
    let silent = graph(4, []);
    assert_eq!(anneal(1, &silent, &tree(&[2, 4])).slots(), [0, 1, 2, 3]);
    assert_eq!(anneal(1, &grid(2, 2), &tree(&[4])).slots(), [0, 1, 2, 3]);
    assert_eq!(anneal(1, &graph(1, [(0, 0, 5)]), &tree(&[1])).slots(), [0]);
}

#[test]
fn a_stopped_search_returns_its_incumbent() {
    struct Impatient(AtomicU64);
    impl Observer for Impatient {
        fn progress(&self, done: u64, total: u64) {
            assert!(total == 0 || done <= total);
            self.0.fetch_max(done, Ordering::Relaxed);
        }
        fn log(&self, _: &str) {}
        fn cancelled(&self) -> bool {
            self.0.load(Ordering::Relaxed) > 20_000
        }
    }
    let (graph, system) = (grid(8, 8), tree(&[4, 4, 4]));
    let observer = Impatient(AtomicU64::new(0));
    let params = AutoParams { evaluations: Some(u64::MAX), ..AutoParams::default() };
    let outcome = AutoStage::run(params, inputs(&graph, &system), &Context::new(1, None, &observer)).unwrap();
    let Outcome::Partial(outputs) = outcome else { panic!("{outcome:?}") };
    let mapping = mapping(&outputs);
    mapping.check().unwrap();
    assert!(!mapping.complete && mapping.metrics["F"] <= linear(&graph, &system).metrics["F"]);
}

/// A program and a machine without structure, of as many ranks as slots.
fn unstructured(size: u32) -> (TaskGraph, SystemGraph) {
    let value = |a: u32, b: u32| u64::from((a * b * 7919 + a + b) % 97);
    let pairs = (0..size).flat_map(|a| (0..a).map(move |b| (a, b)));
    let graph = graph(size as usize, pairs.map(|(a, b)| (a, b, value(a, b))));
    let cost = |a: u32, b: u32| if a == b { 0.0 } else { value(a.min(b) + 31, a.max(b) + 31) as f64 };
    let costs = (0..size).flat_map(|a| (0..size).map(move |b| cost(a, b))).collect();
    let system =
        SystemGraph { cost: CostModel::Matrix(Matrix { costs }), links: Vec::new(), ..tree(&[1, size]) };
    (graph, system)
}

/// Once no test stopped a population, or a tabu walk, between two epochs.
#[test]
fn a_search_that_walks_resumes_where_it_was_stopped() {
    let (graph, system) = unstructured(40);
    let problem = Problem::new(&graph, &system, Weight::Bytes).unwrap();
    let mapper = Auto::new(&short(6_000_000)).unwrap();
    let uninterrupted = mapper.map(&problem, &Context::detached()).unwrap();
    for patience in [400, 1500, 2500] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state");
        let observer = Impatient::new(patience);
        let first = mapper.map(&problem, &Context::new(1, None, &observer).with_state(&file)).unwrap();
        assert!(!first.complete && file.exists() && first.evaluations < uninterrupted.evaluations);
        assert_eq!(mapper.map(&problem, &Context::detached().with_state(&file)).unwrap(), uninterrupted);
    }
}

/// Once only populations searched problems without structure, and a single tabu walk found better mappings
/// in the same time.
#[test]
fn a_problem_without_structure_is_no_worse_than_with_tabu_search_alone() {
    let (graph, system) = unstructured(40);
    let problem = Problem::new(&graph, &system, Weight::Bytes).unwrap();
    let tabu = TabuParams { evaluations: Some(24_000_000), islands: 1, ..TabuParams::default() };
    let walk = Tabu::new(&tabu).unwrap().map(&problem, &Context::detached()).unwrap();
    let found = Auto::new(&short(6_000_000)).unwrap().map(&problem, &Context::detached()).unwrap();
    assert!(problem.cost(&found.slots) <= problem.cost(&walk.slots));
}

#[test]
fn a_search_with_a_time_limit_is_marked_and_ends() {
    let (graph, system) = (grid(4, 4), tree(&[2, 2, 4]));
    let (begin, limit) = (Instant::now(), if soak() { 1.0 } else { 0.0625 });
    let params = AutoParams { time_limit_s: Some(limit), ..AutoParams::default() };
    let observer = Listener::default();
    let outcome = AutoStage::run(params, inputs(&graph, &system), &Context::new(1, None, &observer)).unwrap();
    let Outcome::Done(outputs) = outcome else { panic!("{outcome:?}") };
    assert!(outputs.is_timed() && mapping(&outputs).complete);
    assert!(!soak() || begin.elapsed().as_secs_f64() < 1.5 * limit, "{:?}", begin.elapsed());
    let plan = observer.lines.lock().unwrap().pop().unwrap();
    assert!(
        plan.starts_with(&format!("time limit {limit} s, at most: clusters 15 % of the limit, ")),
        "{plan}"
    );
}

#[test]
fn infeasible_problems_are_refused() {
    let message = |graph: &TaskGraph, system: &SystemGraph, params: AutoParams| {
        let run = AutoStage::run(params, inputs(graph, system), &Context::detached());
        run.unwrap_err().to_string()
    };
    let params = AutoParams::default;
    assert_eq!(message(&grid(3, 3), &tree(&[2, 4]), params()), "9 ranks do not fit on 8 slots");
    assert_eq!(message(&graph(0, []), &tree(&[2, 4]), params()), "the task graph has no processes");
    let weight = Weight::Time { latency_s: 1e-6, bandwidth_bytes_per_s: 0.0 };
    let bad = AutoParams { weight: weight.into(), ..params() };
    assert_eq!(
        message(&grid(2, 2), &tree(&[4]), bad),
        "`weight.time.bandwidth_bytes_per_s` = 0 is out of range"
    );
}

#[test]
fn parameters_of_a_pipeline_file() {
    let params: AutoParams =
        serde_json::from_str(r#"{"seed": 7, "islands": 2, "weight": "messages"}"#).unwrap();
    let expected =
        AutoParams { seed: 7, islands: 2, weight: Weight::Messages.into(), ..AutoParams::default() };
    assert_eq!(params, expected);
    assert_eq!(serde_json::from_str::<AutoParams>("{}").unwrap(), AutoParams::default());
    assert!(serde_json::from_str::<AutoParams>(r#"{"sead": 7}"#).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn small_programs_get_an_optimal_mapping(
        edges in prop::collection::vec((0u32..5, 0u32..5, 1u64..1000), 0..15),
        shape in prop_oneof![Just([2, 3]), Just([3, 2])],
        seed in 0u64..100,
    ) {
        let (graph, system) = (graph(5, edges), tree(&shape));
        let params = AutoParams { seed, ..short(2000) };
        let mapping = run::<AutoStage>(params, &graph, &system);
        let best = exhaustive(&graph, &shape, &mut Vec::new());
        prop_assert!((mapping.metrics["F"] - best).abs() < 1e-6, "{} is not {}", mapping.metrics["F"], best);
    }

    #[test]
    fn results_are_local_optima_and_never_worse_than_linear(
        edges in prop::collection::vec((0u32..20, 0u32..20, 1u64..1000), 0..60),
        seed in 0u64..100,
        evaluations in 1u64..3000,
    ) {
        let shape = [2, 3, 4];
        let (graph, system) = (graph(20, edges), tree(&shape));
        let params = AutoParams { seed, islands: 1, ..short(evaluations) };
        let mapping = run::<AutoStage>(params, &graph, &system);
        let (f, t) = double_sums(&graph, &shape, &mapping.slots());
        prop_assert!((mapping.metrics["F"] - f).abs() < 1e-6 && (mapping.metrics["T"] - t).abs() < 1e-6);
        prop_assert!(f <= linear(&graph, &system).metrics["F"]);
        let slots = mapping.slots();
        for rank in 0..20 {
            for slot in 0..24 {
                let mut other = slots.clone();
                if let Some(taken) = slots.iter().position(|&taken| taken == slot) {
                    other[taken] = slots[rank];
                }
                other[rank] = slot;
                prop_assert!(double_sums(&graph, &shape, &other).0 >= f - 1e-6);
            }
        }
    }
}
