//! Invariants of every heuristic.

use proptest::prelude::*;

use super::*;
use crate::tests::{Program, alike, machines, models, optimum, programs};

fn makespan(problem: &Problem, plan: &Plan) -> i64 {
    Evaluator::new(problem).makespan(plan)
}

#[test]
fn heft_fills_a_gap() {
    // The second processor waits for a message from 0 to 1 and is idle for 2 before.
    let program = Program { work: vec![2, 9, 9, 1], edges: vec![(0, 1, 1), (0, 2, 0)] };
    let problem = program.problem(&alike(2), hopmap_model::DelayModel::Overlap);
    let plan = plan(&problem, Heuristic::Heft);
    assert!(plan.is_admissible(&problem));
    assert_eq!(makespan(&problem, &plan), 11);
}

#[test]
fn a_chain_with_long_messages_stays_together() {
    let program = Program { work: vec![3; 6], edges: (0..5).map(|task| (task, task + 1, 100)).collect() };
    let problem = program.problem(&alike(3), hopmap_model::DelayModel::Overlap);
    for (heuristic, plan) in all(&problem) {
        assert_eq!(makespan(&problem, &plan), 18, "{}", heuristic.name());
    }
}

#[test]
fn large_problems_skip_quadratic_heuristics() {
    let program = Program { work: vec![1; 9000], edges: Vec::new() };
    let problem = program.problem(&alike(2), hopmap_model::DelayModel::Overlap);
    let tried = all(&problem);
    assert!(tried.iter().all(|(heuristic, _)| !heuristic.is_quadratic()));
    assert_eq!(best_of(&problem, &tried).2, 4500);
}

#[test]
fn names_are_those_of_pipelines() {
    for heuristic in Heuristic::tried() {
        assert_eq!(serde_json::to_value(heuristic).unwrap(), heuristic.name());
    }
}

proptest! {
    #[test]
    fn plans_are_admissible_and_none_is_below_the_optimum(
        program in programs(1..6, 9), machine in machines(3), model in models(),
    ) {
        let problem = program.problem(&machine, model);
        let optimum = optimum(&problem);
        for (heuristic, plan) in all(&problem) {
            prop_assert!(plan.is_admissible(&problem), "{}", heuristic.name());
            prop_assert!(makespan(&problem, &plan) >= optimum, "{}", heuristic.name());
        }
        let found = ListParams::default().schedule(&problem, &Context::detached()).unwrap();
        prop_assert!(found.lower_bound <= optimum);
    }

    #[test]
    fn a_plan_is_never_later_than_what_was_put(
        program in programs(1..30, 30), machine in machines(4), model in models(), backward in any::<bool>(),
    ) {
        let problem = program.problem(&machine, model);
        let view = View::forward(&problem);
        let view = if backward { view.backward() } else { view };
        let mut partial = state::Partial::new(&view, true);
        let mut arrivals = state::Arrivals::default();
        for &task in &view.order {
            partial.put_first_done(task, &mut arrivals);
        }
        let own = partial.makespan();
        let plan = partial.plan();
        prop_assert!(plan.is_admissible(&problem));
        // Reversed, the model and the availability differ.
        if !backward {
            prop_assert!(makespan(&problem, &plan) <= own);
        }
    }
}
