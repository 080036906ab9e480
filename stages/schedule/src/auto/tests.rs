use proptest::prelude::*;

use super::*;
use crate::tests::{diamond, machines, models, optimum, programs};

fn auto(value: serde_json::Value) -> AutoParams {
    serde_json::from_value(value).unwrap()
}

fn found(problem: &Problem, evaluations: u64, islands: u32) -> SearchResult<Plan> {
    let scheduler = auto(serde_json::json!({ "evaluations": evaluations, "islands": islands }));
    scheduler.schedule(problem, &Context::detached()).unwrap()
}

/// Proposes and commits, and compares with the evaluator of plans.
fn walk(costs: &impl Costs, seed: u64) {
    let mut timeline = Timeline::new(costs, &Plan::serial(costs.problem(), 0));
    let mut random = Pcg64::seed_from_u64(seed);
    let (mut moves, mut evaluator) = (Moves::new(), Evaluator::new(costs.problem()));
    for step in 0..60 {
        let before = (timeline.plan(), timeline.makespan());
        moves.propose(&mut timeline, &mut random);
        let proposed = timeline.plan();
        assert!(proposed.is_admissible(costs.problem()));
        let makespan = evaluator.makespan(&proposed);
        let limit = before.1 + i64::from(random.next_u32() % 8) - 2;
        let is_accepted = timeline.commit(limit);
        assert_eq!(is_accepted, makespan <= limit);
        if is_accepted {
            assert_eq!((timeline.plan(), timeline.makespan()), (proposed, makespan));
            moves.note_change();
        } else {
            assert_eq!((timeline.plan(), timeline.makespan()), before);
        }
        if step % 4 == 0 {
            timeline.sort();
            assert!(timeline.plan().is_admissible(costs.problem()));
            assert_eq!(evaluator.makespan(&timeline.plan()), timeline.makespan());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_changes_is_computed_as_if_all_was(
        program in programs(1..24, 12), machine in machines(4), model in models(), seed in any::<u64>(),
    ) {
        let problem = program.problem(&machine, model);
        with_costs!(&problem, |costs| walk(&costs, seed));
    }

    #[test]
    fn nothing_is_better_than_the_optimum_and_nothing_worse_than_a_list(
        program in programs(1..6, 20), machine in machines(3), model in models(),
    ) {
        let problem = program.problem(&machine, model);
        let optimum = optimum(&problem);
        let found = found(&problem, 20_000, 1);
        prop_assert!(found.best.is_admissible(&problem));
        prop_assert_eq!(Evaluator::new(&problem).makespan(&found.best), found.makespan);
        prop_assert_eq!(found.makespan, optimum);
        prop_assert!(found.lower_bound <= optimum);
    }

    #[test]
    fn no_list_is_better(
        program in programs(1..40, 20), machine in machines(5), model in models(),
    ) {
        let problem = program.problem(&machine, model);
        let found = found(&problem, 200, 2);
        prop_assert!(found.best.is_admissible(&problem) && found.lower_bound <= found.makespan);
        for (_, plan) in list::all(&problem) {
            prop_assert!(found.makespan <= Evaluator::new(&problem).makespan(&plan));
        }
    }
}

#[test]
fn default_budgets_shrink_with_the_number_of_tasks() {
    let defaults = [1, 64, 128, 1 << 14, 1 << 20].map(default_evaluations);
    assert_eq!(defaults, [1 << 21, 1 << 21, 1 << 20, 1 << 13, 1 << 10]);
}

#[test]
fn a_plan_that_equals_the_bound_ends_the_search() {
    let found = found(&diamond(), u64::MAX, 1);
    assert!(found.is_proven() && found.complete);
}

#[test]
fn invalid_budgets_are_rejected() {
    let refused = |value| auto(value).check().unwrap_err().to_string();
    assert_eq!(refused(serde_json::json!({ "evaluations": 0 })), "`evaluations` = 0 is out of range");
    assert_eq!(refused(serde_json::json!({ "islands": 0 })), "`islands` = 0 is out of range");
    assert_eq!(refused(serde_json::json!({ "time_limit_s": -1.0 })), "`time_limit_s` = -1 is out of range");
}
