//! `objective = "makespan"`: the optimum of small programs, the makespan of the steps, and earlier results.

use std::sync::Arc;

use hopmap_map::{
    AutoGoal, AutoParams, AutoStage, ExactParams, ExactStage, Pin, TabuParams, TabuStage, TaskGoal,
};
use hopmap_model::{
    Context, DelayModel, Dependency, Inputs, Mapping, Outcome, Stage, SystemGraph, TaskDag, Weight,
    WeightChoice,
};
use hopmap_replay::{Distance, Linear, Machine, MakespanEvaluator, ReplayProblem};
use hopmap_test_support::traced::{Stencil, messages, scattered, sweep, tree, writers};
use hopmap_test_support::{Impatient, on_processes, small_programs};
use proptest::prelude::*;

const LATENCY: f64 = 0.5e-6;
const BANDWIDTH: f64 = 20e9;

fn weight() -> WeightChoice {
    Weight::Time { latency_s: LATENCY, bandwidth_bytes_per_s: BANDWIDTH }.into()
}

fn auto(evaluations: u64) -> AutoParams {
    let objective = AutoGoal::Makespan;
    AutoParams {
        objective,
        weight: weight(),
        evaluations: Some(evaluations),
        islands: 1,
        ..AutoParams::default()
    }
}

fn tabu(evaluations: u64) -> TabuParams {
    let (objective, evaluations) = (TaskGoal::Makespan, Some(evaluations));
    TabuParams { objective, weight: weight(), evaluations, islands: 2, ..TabuParams::default() }
}

fn exact() -> ExactParams {
    ExactParams { objective: TaskGoal::Makespan, weight: weight(), ..ExactParams::default() }
}

fn inputs(dag: &TaskDag, system: &SystemGraph) -> Inputs {
    let mut inputs = Inputs::new();
    inputs.connect("task-graph", Arc::new(messages(dag)), "1".into(), "program".into());
    inputs.connect("task-dag", Arc::new(dag.clone()), "2".into(), "tasks".into());
    inputs.connect("system", Arc::new(system.clone()), "3".into(), "machine".into());
    inputs
}

fn mapped<S: Stage>(params: S::Params, dag: &TaskDag, system: &SystemGraph, cx: &Context<'_>) -> Mapping {
    match S::run(params, inputs(dag, system), cx).unwrap() {
        Outcome::Done(outputs) | Outcome::Partial(outputs) => {
            outputs.get("mapping").unwrap().downcast_ref::<Mapping>().unwrap().clone()
        }
        Outcome::Infeasible(why) => panic!("{why:?}"),
    }
}

fn replay(dag: &TaskDag, system: &SystemGraph) -> ReplayProblem {
    let linear = Linear::new(LATENCY, BANDWIDTH).unwrap();
    let machine = Machine::of_system(system, None, linear, Some(Distance::Costs)).unwrap();
    ReplayProblem::new(dag, &machine, DelayModel::Overlap).unwrap()
}

/// The finish of the last task, task by task, in seconds.
fn makespan(dag: &TaskDag, system: &SystemGraph, mapping: &Mapping) -> f64 {
    let (slots, costs) = (mapping.slots(), system.costs());
    let slot = |task: usize| slots[dag.tasks[task].rank.unwrap() as usize];
    let (mut finish, mut free) = (vec![0.0f64; dag.tasks.len()], vec![0.0f64; system.slots.len()]);
    for (task, one) in dag.tasks.iter().enumerate() {
        let own = slot(task);
        let received = dag.dependencies.iter().filter(|edge| edge.destination as usize == task);
        let arrivals = received.map(|edge| {
            let from = slot(edge.source as usize);
            let cost = if from == own { 0.0 } else { costs.between(from, own) };
            finish[edge.source as usize] + cost * (LATENCY + edge.bytes as f64 / BANDWIDTH)
        });
        let start = arrivals.fold(free[own as usize], f64::max);
        finish[task] = start + one.work;
        free[own as usize] = finish[task];
    }
    finish.into_iter().fold(0.0, f64::max)
}

/// A placement of ranks on six slots, by its number.
fn placement(mut number: usize, ranks: usize) -> Vec<u32> {
    let mut left: Vec<u32> = (0..6).collect();
    let mut next = |bound: usize| {
        let digit = number % bound;
        number /= bound;
        left.remove(digit)
    };
    let all = [6, 5, 4, 3].map(&mut next);
    all[..ranks].to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// `map/exact` finds the best of all placements and proves it; the searches are between it and a bound.
    #[test]
    fn nothing_is_better_than_what_is_proven(mut dag in small_programs()) {
        dag.unit = hopmap_model::WorkUnit::Seconds;
        dag.tasks.iter_mut().for_each(|task| task.work *= 1e-6);
        dag.dependencies.iter_mut().for_each(|edge| edge.bytes *= 50_000);
        // As in a trace, every task follows the one before on its rank.
        for rank in 0..4 {
            let own: Vec<u32> = (0..).zip(&dag.tasks).filter(|(_, task)| task.rank == Some(rank)).map(|(task, _)| task).collect();
            let order = own.windows(2).map(|pair| Dependency { source: pair[0], destination: pair[1], bytes: 0 });
            dag.dependencies.extend(order);
        }
        dag.dependencies.sort_unstable();
        let system = tree(&[2, 3], &[1.0, 4.0]);
        let problem = replay(&dag, &system);
        let mut evaluator = MakespanEvaluator::new(&problem);
        let all = (0..360).map(|number| evaluator.makespan(&placement(number, problem.ranks())));
        let best = problem.real(all.min().unwrap());
        let cx = Context::detached();
        let proven = mapped::<ExactStage>(exact(), &dag, &system, &cx);
        let found = ["makespan", "lower_bound", "proven"].map(|name| proven.metrics[name].to_bits());
        prop_assert_eq!(found, [best, best, 1.0].map(f64::to_bits));
        let annealed = mapped::<AutoStage>(auto(200), &dag, &system, &cx);
        let tabu = mapped::<TabuStage>(tabu(200), &dag, &system, &cx);
        for mapping in [&proven, &annealed, &tabu] {
            mapping.check().unwrap();
            prop_assert!(mapping.metrics["makespan"] >= best && mapping.metrics["lower_bound"] <= best);
            let (expected, found) = (makespan(&dag, &system, mapping), mapping.metrics["makespan"]);
            prop_assert!((expected - found).abs() < 1e-11, "{expected} and {found}");
        }
    }
}

/// The makespans of `schedule/auto`, which searched for the slots of ranks before, in microseconds with equal evaluations.
#[test]
fn results_are_not_worse_than_those_of_schedule_auto() {
    let stencil = |sums, imbalance| Stencil {
        width: 8,
        height: 8,
        iterations: 100,
        bytes: [100_000, 20_000],
        sums,
        imbalance,
        scramble: true,
    };
    let large = tree(&[16, 4, 2], &[1.0, 8.0, 24.0]);
    let of_four = |ranks: u32| tree(&[4, (ranks / 4 + 2u32).div_ceil(2), 2], &[1.0, 4.0, 10.0]);
    for (dag, system, before) in [
        (stencil(None, 0.0).dag(), large.clone(), 11_188.0),
        (writers(4, 100, true), tree(&[16, 4, 3], &[1.0, 8.0, 24.0]), 558.817),
        (scattered(12, 2, 40, 1), of_four(12), 698.9),
        (scattered(16, 3, 40, 2), of_four(16), 931.3),
        (scattered(48, 2, 40, 2), of_four(48), 798.4),
        (scattered(64, 4, 40, 4), of_four(64), 1395.0),
    ] {
        let found = mapped::<AutoStage>(auto(4000), &dag, &system, &Context::detached());
        let found = 1e6 * found.metrics["makespan"];
        assert!(found <= before + 0.01, "{found} µs, before {before}");
    }
}

#[test]
fn results_are_independent_of_threads_and_processes() {
    let (dag, system) = (sweep(6, 6, 4, 20_000, true), tree(&[4, 10], &[1.0, 8.0]));
    let params = AutoParams { islands: 3, ..auto(1000) };
    let alone = mapped::<AutoStage>(params.clone(), &dag, &system, &Context::detached());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let patient = Impatient::new(u64::MAX);
    let cx = Context::new(2, None, &patient);
    assert_eq!(pool.install(|| mapped::<AutoStage>(params.clone(), &dag, &system, &cx)), alone);
    for found in on_processes(2, |cx| mapped::<AutoStage>(params.clone(), &dag, &system, &cx)) {
        assert_eq!(found, alone);
    }
}

#[test]
fn a_stopped_search_resumes() {
    let (dag, system) = (scattered(48, 3, 20, 1), tree(&[4, 14], &[1.0, 8.0]));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    let run = |patience| {
        let observer = Impatient::new(patience);
        let cx = Context::new(1, None, &observer).with_state(&file);
        mapped::<AutoStage>(auto(400_000), &dag, &system, &cx)
    };
    let whole = run(u64::MAX);
    let _ = std::fs::remove_file(&file);
    let stopped = run(40);
    assert!(!stopped.complete);
    let resumed = run(u64::MAX);
    assert_eq!((resumed.slots(), resumed.metrics["makespan"]), (whole.slots(), whole.metrics["makespan"]));
}

/// Once `map/tabu` refused the makespan.
#[test]
fn tabu_search_finds_optima_that_no_candidate_is() {
    let mut improved = 0;
    for seed in 0..8 {
        let (dag, system) = (scattered(8, 2, 20, seed), tree(&[2, 4], &[1.0, 8.0]));
        let cx = Context::detached();
        let least = mapped::<ExactStage>(exact(), &dag, &system, &cx).metrics["makespan"];
        let [start, found] =
            [1, 4000].map(
                |evaluations| mapped::<TabuStage>(tabu(evaluations), &dag, &system, &cx).metrics["makespan"],
            );
        assert_eq!(found.to_bits(), least.to_bits(), "{found} of {least}, from {start}");
        improved += usize::from(found < start);
    }
    assert!(improved > 0);
}

#[test]
fn a_stopped_tabu_search_resumes_and_processes_change_nothing() {
    let (dag, system) = (scattered(48, 3, 20, 1), tree(&[4, 14], &[1.0, 8.0]));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    let run = |patience| {
        let observer = Impatient::new(patience);
        let cx = Context::new(1, None, &observer).with_state(&file);
        mapped::<TabuStage>(tabu(40_000), &dag, &system, &cx)
    };
    let whole = run(u64::MAX);
    let _ = std::fs::remove_file(&file);
    assert!(!run(40).complete);
    assert_eq!(run(u64::MAX).slots(), whole.slots());
    for found in on_processes(2, |cx| mapped::<TabuStage>(tabu(40_000), &dag, &system, &cx)) {
        assert_eq!(found, whole);
    }
}

#[test]
fn constraints_hold() {
    let (dag, system) = (scattered(8, 2, 10, 1), tree(&[2, 6], &[1.0, 4.0]));
    let pinned = vec![Pin { rank: 3, slot: Some(11), host: None }];
    let forbidden = vec!["n0".to_owned()];
    let cx = Context::detached();
    let found = [
        mapped::<AutoStage>(
            AutoParams { pinned: pinned.clone(), forbidden: forbidden.clone(), ..auto(2000) },
            &dag,
            &system,
            &cx,
        ),
        mapped::<TabuStage>(
            TabuParams { pinned: pinned.clone(), forbidden: forbidden.clone(), ..tabu(2000) },
            &dag,
            &system,
            &cx,
        ),
        mapped::<ExactStage>(
            ExactParams { pinned, forbidden, max_search_nodes: Some(2000), ..exact() },
            &dag,
            &system,
            &cx,
        ),
    ];
    for mapping in found {
        assert_eq!(mapping.slots()[3], 11);
        assert!(mapping.slots().iter().all(|&slot| slot > 1), "{:?}", mapping.slots());
    }
}

#[test]
fn what_is_missing_is_said() {
    let (dag, system) = (scattered(4, 1, 2, 1), tree(&[2, 2], &[1.0, 4.0]));
    let refused = |params: AutoParams, inputs: Inputs| {
        AutoStage::check(&params)
            .and_then(|()| AutoStage::run(params, inputs, &Context::detached()))
            .unwrap_err()
            .to_string()
    };
    let mut without = Inputs::new();
    without.connect("task-graph", Arc::new(messages(&dag)), "1".into(), "program".into());
    without.connect("system", Arc::new(system.clone()), "3".into(), "machine".into());
    assert_eq!(refused(auto(10), without), "the objective `makespan` needs the tasks of the program");
    let unrated = AutoParams { weight: WeightChoice::default(), ..auto(10) };
    assert!(refused(unrated, inputs(&dag, &system)).contains("the links of the machine have no bandwidth"));
    let blocks = serde_json::from_value(serde_json::json!([[0, 1], [2, 3]])).unwrap();
    let blocks = AutoParams { blocks: Some(blocks), ..auto(10) };
    assert!(refused(blocks, inputs(&dag, &system)).contains("exchanges single ranks"));
}
