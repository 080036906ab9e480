//! Searches for plans: independent of the number of threads, of processes and of interruptions, and better with more evaluations.

use hopmap_model::{Context, DelayModel, Dependency, Task, TaskDag, WorkUnit};
use hopmap_schedule::{AutoParams, GeneticParams, MachineParams, Plan, Problem, Scheduler, SearchResult};
use hopmap_test_support::{Impatient, on_processes};

/// Tasks in layers of eight, each of which depends on some of the layer before.
fn problem(tasks: u32, model: DelayModel, speeds: &[f64]) -> Problem {
    let work = |task: u32| Task { rank: None, work: f64::from(3 + task * 7 % 11) };
    let mut dependencies = Vec::new();
    for destination in 8..tasks {
        for parent in 0..=destination % 3 {
            let source = destination / 8 * 8 - 8 + (destination * 5 + parent * 3) % 8;
            dependencies.push(Dependency { source, destination, bytes: u64::from(destination * 13 % 17) });
        }
    }
    dependencies.sort_unstable();
    let unit = WorkUnit::Time;
    let dag = TaskDag { tasks: (0..tasks).map(work).collect(), dependencies, unit, ..TaskDag::default() };
    let params = MachineParams { processors: Some(4), speeds: speeds.to_vec(), ..MachineParams::default() };
    Problem::new(&dag, &params.machine(None, dag.unit).unwrap(), model).unwrap()
}

fn auto(value: serde_json::Value) -> Box<dyn Scheduler + Sync> {
    Box::new(serde_json::from_value::<AutoParams>(value).unwrap())
}

fn genetic(value: serde_json::Value) -> Box<dyn Scheduler + Sync> {
    Box::new(serde_json::from_value::<GeneticParams>(value).unwrap())
}

fn schedulers(evaluations: u64) -> Vec<Box<dyn Scheduler + Sync>> {
    let all = serde_json::json!({ "evaluations": evaluations, "islands": 3 });
    let with = |key: &str, value: serde_json::Value| {
        let mut all = all.clone();
        all[key] = value;
        all
    };
    vec![
        auto(all.clone()),
        genetic(all.clone()),
        genetic(with("admissible", "reject".into())),
        genetic(with("seeded", true.into())),
    ]
}

fn problems() -> [Problem; 3] {
    [
        problem(60, DelayModel::Overlap, &[]),
        problem(60, DelayModel::Overlap, &[1.0, 2.0, 2.0, 4.0]),
        problem(60, DelayModel::Receive, &[]),
    ]
}

#[test]
fn results_are_independent_of_threads_and_processes() {
    for problem in problems() {
        for scheduler in schedulers(1500) {
            let alone = scheduler.schedule(&problem, &Context::detached()).unwrap();
            assert!(alone.best.is_admissible(&problem));
            for threads in [2, 4] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let (patient, run) =
                    (Impatient::new(u64::MAX), |cx: &Context<'_>| scheduler.schedule(&problem, cx));
                let found = pool.install(|| run(&Context::new(threads, None, &patient))).unwrap();
                assert_eq!(found, alone);
            }
            for processes in [2, 4] {
                for found in on_processes(processes, |cx| scheduler.schedule(&problem, &cx).unwrap()) {
                    assert_eq!(found, alone);
                }
            }
        }
    }
}

#[test]
fn a_stopped_search_resumes() {
    let problem = problem(60, DelayModel::Overlap, &[]);
    for scheduler in schedulers(60_000) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state");
        let run = |patience| -> SearchResult<Plan> {
            let observer = Impatient::new(patience);
            scheduler.schedule(&problem, &Context::new(1, None, &observer).with_state(&file)).unwrap()
        };
        let stopped = run(5);
        assert!(!stopped.complete && file.exists());
        let resumed = run(u64::MAX);
        std::fs::remove_file(&file).unwrap();
        let whole = run(u64::MAX);
        assert_eq!((resumed.best, resumed.makespan), (whole.best, whole.makespan));
    }
}

#[test]
fn more_evaluations_give_better_plans() {
    let problem = problem(60, DelayModel::Overlap, &[]);
    for (little, much) in schedulers(150).into_iter().zip(schedulers(20_000)) {
        let [little, much] = [little, much].map(|one| one.schedule(&problem, &Context::detached()).unwrap());
        assert!(much.makespan < little.makespan, "{} {}", much.makespan, little.makespan);
        assert!(much.lower_bound <= much.makespan);
    }
}

#[test]
fn large_programs_respect_their_budget() {
    let problem = problem(20_000, DelayModel::Overlap, &[]);
    for scheduler in [
        auto(serde_json::json!({ "evaluations": 2000, "islands": 1 })),
        genetic(serde_json::json!({ "evaluations": 120, "islands": 1 })),
    ] {
        let found = scheduler.schedule(&problem, &Context::detached()).unwrap();
        assert!(found.best.is_admissible(&problem) && found.evaluations <= 2100);
    }
}
