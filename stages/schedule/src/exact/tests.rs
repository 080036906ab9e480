//! Proven optima agree with an exhaustive search.

use hopmap_test_support::soak;
use proptest::prelude::*;

use super::*;
use crate::tests::{Program, alike, machines, models, optimum, programs};

fn best(problem: &Problem) -> SearchResult<Plan> {
    search(problem, &Plan::serial(problem, 0), u64::MAX, || false)
}

fn params(json: &str) -> ExactParams {
    serde_json::from_str(json).unwrap()
}

/// Ten tasks of different lengths on three processors, which no bound proves.
fn ten() -> Problem {
    let work = vec![7, 9, 4, 8, 6, 5, 9, 3, 7, 4];
    let edges = vec![
        (0, 3, 5),
        (1, 3, 4),
        (1, 4, 6),
        (2, 5, 3),
        (3, 6, 2),
        (4, 7, 7),
        (5, 8, 4),
        (4, 8, 3),
        (6, 9, 5),
    ];
    Program { work, edges }.problem(&alike(3), hopmap_model::DelayModel::Overlap)
}

#[test]
fn a_budget_ends_the_search_and_leaves_a_bound() {
    let problem = ten();
    let schedule = |json: &str| params(json).schedule(&problem, &Context::detached()).unwrap();
    let (short, long) = (schedule(r#"{"max_search_nodes": 3}"#), schedule("{}"));
    assert!(short.evaluations <= 3 && short.complete);
    assert!(long.is_proven() && long.complete);
    assert!(short.lower_bound <= long.makespan && long.makespan <= short.makespan);
    assert_eq!(schedule("{}"), long);
}

#[test]
fn a_stopped_search_is_not_complete() {
    let problem = ten();
    let found = search(&problem, &Plan::serial(&problem, 0), u64::MAX, || true);
    assert!(!found.complete && !found.is_proven() && found.evaluations == 0);
}

#[test]
fn large_problems_get_a_bound() {
    let program = Program { work: vec![3; 200], edges: Vec::new() };
    let problem = program.problem(&alike(7), hopmap_model::DelayModel::Overlap);
    let found = search(&problem, &Plan::serial(&problem, 0), u64::MAX, || false);
    assert_eq!((found.makespan, found.lower_bound, found.evaluations), (600, 87, 0));
}

#[test]
fn empty_budgets_are_rejected() {
    for json in [r#"{"max_search_nodes": 0}"#, r#"{"time_limit_s": 0}"#, r#"{"time_limit_s": -1}"#] {
        assert!(params(json).check().is_err(), "{json}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if soak() { 4000 } else { 64 }))]

    #[test]
    fn what_is_proven_is_the_optimum(
        program in programs(1..6, 20), machine in machines(3), model in models(),
    ) {
        let problem = program.problem(&machine, model);
        let found = best(&problem);
        prop_assert!(found.is_proven() && found.best.is_admissible(&problem));
        prop_assert_eq!(found.makespan, Evaluator::new(&problem).makespan(&found.best));
        prop_assert_eq!(found.makespan, optimum(&problem));
    }

    #[test]
    fn what_is_proven_of_larger_ones_is_the_optimum(
        program in programs(6..8, 40), processors in 2usize..4, model in models(),
    ) {
        let problem = program.problem(&alike(processors), model);
        let found = best(&problem);
        prop_assert!(found.is_proven());
        prop_assert_eq!(found.makespan, optimum(&problem));
    }

    /// Trees, forks and joins have many equivalent tasks.
    #[test]
    fn what_is_proven_of_trees_is_the_optimum(
        work in prop::collection::vec(0u32..4, 6..8),
        parents in prop::collection::vec((any::<u32>(), 0u64..3), 8),
        wide in any::<bool>(),
        joins in 0u8..3,
        processors in 2usize..4,
        model in models(),
    ) {
        let tasks = work.len() as u32;
        let parent = |task: u32, drawn: u32| if wide { 0 } else { drawn % task };
        let edges = (1..tasks).zip(parents).map(|(task, (drawn, bytes))| (parent(task, drawn), task, 4 * bytes));
        let mut edges: Vec<_> = edges.collect();
        match joins {
            1 => edges.iter_mut().for_each(|edge| *edge = (tasks - 1 - edge.1, tasks - 1 - edge.0, edge.2)),
            2 if wide => edges.extend((1..tasks - 1).map(|task| (task, tasks - 1, u64::from(7 - task.min(7))))),
            _ => {}
        }
        let problem = Program { work, edges }.problem(&alike(processors), model);
        let found = best(&problem);
        prop_assert!(found.is_proven());
        prop_assert_eq!(found.makespan, optimum(&problem));
    }
}
