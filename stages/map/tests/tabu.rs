//! Robust tabu search: optimal on small problems, never worse than linear, reproducible, stoppable.

use hopmap_map::{
    Annealing, AnnealingParams, LinearParams, LinearStage, Mapper, Tabu, TabuParams, TabuStage,
};
use hopmap_model::{Context, Mapping, Observer, Outcome, Stage, SystemGraph, TaskGraph, Weight};
use hopmap_objective::Problem;
use proptest::prelude::*;

use crate::common::{Silent, double_sums, exhaustive, graph, grid, inputs, mapping, run, tree};

fn search(params: TabuParams, graph: &TaskGraph, system: &SystemGraph) -> Mapping {
    run::<TabuStage>(params, graph, system)
}

/// A short search.
fn short(evaluations: u64) -> TabuParams {
    TabuParams { evaluations: Some(evaluations), islands: 2, ..TabuParams::default() }
}

fn refused(params: TabuParams, graph: &TaskGraph, system: &SystemGraph) -> String {
    TabuStage::run(params, inputs(graph, system), &Context::detached()).unwrap_err().to_string()
}

#[test]
fn a_grid_is_cut_into_squares() {
    // Squares of 4 x 4 on every switch, of 2 x 2 on every host: the minimum cut.
    let (graph, system) = (grid(8, 8), tree(&[4, 4, 4]));
    let best = 16.0 * (16.0 * 100.0 + 32.0 * 10.0 + 64.0 * 1.0);
    for seed in 1..=3 {
        let mapping = search(TabuParams { seed, ..TabuParams::default() }, &graph, &system);
        assert!((mapping.metrics["F"] - best).abs() < 0.5, "{} with seed {seed}", mapping.metrics["F"]);
    }
}

#[test]
fn convergence_is_complete() {
    let (graph, system) = (grid(4, 4), tree(&[2, 2, 4]));
    let mapping = search(short(50_000), &graph, &system);
    for island in 0..2 {
        let points: Vec<_> = mapping.convergence.iter().filter(|point| point.island == island).collect();
        assert_eq!(points[0].evaluations, 0);
        assert!(points.windows(2).all(|p| p[0].evaluations < p[1].evaluations && p[0].cost > p[1].cost));
    }
    let best = mapping.convergence.iter().map(|point| point.cost).fold(f64::INFINITY, f64::min);
    assert!((best - mapping.metrics["F"]).abs() < 1e-9);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let (graph, system) = (grid(6, 5), tree(&[2, 4, 4]));
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let cx = Context::new(threads, None, &Silent);
        let params = TabuParams { islands: 3, ..short(200_000) };
        match pool.install(|| TabuStage::run(params, inputs(&graph, &system), &cx)).unwrap() {
            Outcome::Done(outputs) => mapping(&outputs),
            other => panic!("{other:?}"),
        }
    };
    let one = with(1);
    assert_eq!(one, with(2));
    assert_eq!(one, with(7));
}

#[test]
fn a_larger_budget_continues_the_search() {
    let (graph, system) = (grid(6, 6), tree(&[2, 4, 8]));
    let steps = |steps: u64| {
        let pairs = 36 * 35 / 2 + 36 * 28;
        let mapping = search(short(pairs * (steps + 1)), &graph, &system);
        let searched = |point: &&hopmap_model::ConvergencePoint| point.evaluations <= pairs * 101;
        mapping.convergence.iter().filter(searched).copied().collect::<Vec<_>>()
    };
    assert_eq!(steps(100), steps(150));
    assert_eq!(steps(100), steps(700));
}

#[test]
fn another_seed_gives_another_search() {
    let (graph, system) = (grid(6, 6), tree(&[2, 4, 8]));
    let seeded = |seed| search(TabuParams { seed, ..short(100_000) }, &graph, &system).convergence;
    assert_eq!(seeded(1), seeded(1));
    assert_ne!(seeded(1), seeded(2));
}

#[test]
fn nothing_to_search_is_linear() {
    let silent = graph(4, []);
    assert_eq!(search(TabuParams::default(), &silent, &tree(&[2, 4])).slots(), [0, 1, 2, 3]);
    assert_eq!(search(TabuParams::default(), &grid(2, 2), &tree(&[4])).slots(), [0, 1, 2, 3]);
    assert_eq!(search(TabuParams::default(), &graph(1, [(0, 0, 5)]), &tree(&[1])).slots(), [0]);
}

#[test]
fn a_stopped_search_returns_its_incumbent() {
    struct Impatient;
    impl Observer for Impatient {
        fn progress(&self, done: u64, total: u64) {
            assert!(total == 0 || done <= total);
        }
        fn log(&self, _: &str) {}
        fn cancelled(&self) -> bool {
            true
        }
    }
    let (graph, system) = (grid(8, 8), tree(&[4, 4, 4]));
    let params = TabuParams { evaluations: Some(u64::MAX), ..TabuParams::default() };
    let cx = Context::new(1, None, &Impatient);
    let Outcome::Partial(outputs) = TabuStage::run(params, inputs(&graph, &system), &cx).unwrap() else {
        panic!("the search did not stop")
    };
    let mapping = mapping(&outputs);
    mapping.check().unwrap();
    let linear = run::<LinearStage>(LinearParams::default(), &graph, &system);
    assert!(!mapping.complete && mapping.metrics["F"] <= linear.metrics["F"]);
}

#[test]
fn a_search_with_a_time_limit_is_marked_and_ends() {
    let (graph, system) = (grid(4, 4), tree(&[2, 2, 4]));
    let params = TabuParams { time_limit_s: Some(0.05), ..TabuParams::default() };
    let outcome = TabuStage::run(params, inputs(&graph, &system), &Context::detached()).unwrap();
    let Outcome::Done(outputs) = outcome else { panic!("{outcome:?}") };
    assert!(outputs.is_timed() && mapping(&outputs).complete);
}

#[test]
fn infeasible_problems_are_refused() {
    let params = TabuParams::default;
    assert_eq!(refused(params(), &grid(3, 3), &tree(&[2, 4])), "9 ranks do not fit on 8 slots");
    assert_eq!(
        refused(params(), &grid(64, 64), &tree(&[4, 64, 16])),
        "tabu search would store 16777216 exchanges of ranks and slots, but supports at most 4194304"
    );
    let weight = Weight::Time { latency_s: 1e-6, bandwidth_bytes_per_s: 0.0 };
    let bad = TabuParams { weight: weight.into(), ..params() };
    assert_eq!(
        refused(bad, &grid(2, 2), &tree(&[4])),
        "`weight.time.bandwidth_bytes_per_s` = 0 is out of range"
    );
    let alone = TabuParams { islands: 0, ..params() };
    assert_eq!(refused(alone, &grid(2, 2), &tree(&[4])), "`islands` = 0 is out of range");
}

#[test]
fn parameters_of_a_pipeline_file() {
    let params: TabuParams = serde_json::from_str(r#"{"seed": 7, "islands": 2, "evaluations": 9}"#).unwrap();
    assert_eq!(params, TabuParams { seed: 7, ..short(9) });
    assert_eq!(serde_json::from_str::<TabuParams>("{}").unwrap(), TabuParams::default());
    assert!(serde_json::from_str::<TabuParams>(r#"{"tenure": 7}"#).is_err());
}

#[test]
fn the_kernel_for_dense_programs_changes_no_result() {
    let pairs = (0..24u32).flat_map(|i| (0..24).map(move |j| (i, j)));
    let graph = graph(24, pairs.map(|(i, j)| (i, j, u64::from(1 + (i * 13 + j * 7) % 40))));
    let problem = Problem::new(&graph, &tree(&[2, 4, 4]), Weight::Bytes).unwrap();
    let plain = problem.clone().neighbour_by_neighbour();
    let annealing = AnnealingParams { evaluations: Some(20_000), ..AnnealingParams::default() };
    let mappers: [Box<dyn Mapper>; 2] =
        [Box::new(Annealing::new(&annealing).unwrap()), Box::new(Tabu::new(&short(100_000)).unwrap())];
    for mapper in mappers {
        let found = mapper.map(&problem, &Context::detached()).unwrap();
        assert_eq!(found, mapper.map(&plain, &Context::detached()).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn small_programs_get_an_optimal_mapping(
        edges in prop::collection::vec((0u32..5, 0u32..5, 1u64..1000), 0..15),
        shape in prop_oneof![Just(vec![2, 3]), Just(vec![3, 2]), Just(vec![1, 6, 1]), Just(vec![2, 2, 2])],
        seed in 0u64..100,
    ) {
        let (graph, system) = (graph(5, edges), tree(&shape));
        let mapping = search(TabuParams { seed, ..short(4000) }, &graph, &system);
        let best = exhaustive(&graph, &shape, &mut Vec::new());
        prop_assert!((mapping.metrics["F"] - best).abs() < 1e-6, "{} is not {}", mapping.metrics["F"], best);
    }

    #[test]
    fn a_mapping_is_valid_correctly_measured_and_never_worse_than_linear(
        edges in prop::collection::vec((0u32..20, 0u32..20, 1u64..1000), 0..200),
        seed in 0u64..100,
        evaluations in 1u64..30_000,
    ) {
        let shape = [2, 3, 4];
        let (graph, system) = (graph(20, edges), tree(&shape));
        let mapping = search(TabuParams { seed, ..short(evaluations) }, &graph, &system);
        mapping.check().unwrap();
        let mut used = mapping.slots();
        used.sort_unstable();
        used.dedup();
        prop_assert!(used.len() == 20 && used[19] < 24);
        let (f, t) = double_sums(&graph, &shape, &mapping.slots());
        prop_assert!((mapping.metrics["F"] - f).abs() < 1e-6 && (mapping.metrics["T"] - t).abs() < 1e-6);
        prop_assert!(f <= double_sums(&graph, &shape, &(0..20).collect::<Vec<_>>()).0);
    }
}

/// Two ranks once cost as many evaluations as two hundred.
#[test]
fn a_search_of_few_mappings_ends_when_all_are_seen() {
    let graph = graph(2, [(0, 1, 8)]);
    let mapping = search(TabuParams::default(), &graph, &tree(&[1, 2, 2]));
    assert!((mapping.metrics["evaluations"] - 12.0).abs() < 1e-9, "{:?}", mapping.metrics);
    assert!((mapping.metrics["F"] - 80.0).abs() < 1e-9 && mapping.complete);
}

#[test]
fn eight_ranks_get_an_optimal_mapping() {
    let weights = |i: u32, j: u32| u64::from((i * 13 + j * 7) % 11);
    let pairs = (0..8).flat_map(|i| (0..8).filter(move |&j| j != i).map(move |j| (i, j)));
    let graph = graph(8, pairs.map(|(i, j)| (i, j, weights(i, j) * weights(j, i))));
    let shape = [2, 2, 2];
    let best = exhaustive(&graph, &shape, &mut Vec::new());
    for seed in 1..=10 {
        let mapping = search(TabuParams { seed, ..short(20_000) }, &graph, &tree(&shape));
        assert!((mapping.metrics["F"] - best).abs() < 1e-6, "seed {seed}");
    }
}
