//! Lower bounds never exceed the optimum.

use proptest::prelude::*;

use super::*;
use crate::list;
use crate::plan::Evaluator;
use crate::tests::{Program, alike, machines, models, optimum, programs};

fn bound(work: &[u32], edges: &[(u32, u32, u64)], processors: usize, model: DelayModel) -> i64 {
    let program = Program { work: work.to_vec(), edges: edges.to_vec() };
    lower_bound(&program.problem(&alike(processors), model))
}

#[test]
fn work_and_chains_count() {
    assert_eq!(bound(&[4, 4, 4], &[], 2, DelayModel::Overlap), 8);
    assert_eq!(bound(&[3; 5], &[], 2, DelayModel::Overlap), 9);
    assert_eq!(bound(&[2, 2, 2, 1, 1], &[], 2, DelayModel::Overlap), 4);
    assert_eq!(bound(&[4, 4, 4], &[(0, 1, 9), (1, 2, 9)], 2, DelayModel::Overlap), 12);
}

#[test]
fn parents_on_the_same_processor_are_sequenced() {
    // Both messages take longer than both tasks: 0, 1 and 2 run on one processor, or one message delays 2.
    let edges = [(0, 2, 10), (1, 2, 10)];
    assert_eq!(bound(&[5, 6, 1], &edges, 2, DelayModel::Overlap), 12);
    assert_eq!(bound(&[5, 6, 1], &edges, 2, DelayModel::Receive), 12);
    let edges = [(0, 2, 3), (1, 2, 3)];
    assert_eq!(bound(&[5, 6, 1], &edges, 2, DelayModel::Overlap), 9);
    assert_eq!(bound(&[5, 6, 1], &edges, 2, DelayModel::Receive), 10);
    // The same for the reversed problem.
    let edges = [(0, 1, 10), (0, 2, 10)];
    assert_eq!(bound(&[1, 5, 6], &edges, 2, DelayModel::Overlap), 12);
}

#[test]
fn intervals_count() {
    // Between the first and the last task there are three tasks of work 4 on two processors.
    let edges = [(0, 1, 0), (0, 2, 0), (0, 3, 0), (1, 4, 0), (2, 4, 0), (3, 4, 0)];
    assert_eq!(bound(&[3, 4, 4, 4, 3], &edges, 2, DelayModel::Overlap), 14);
}

proptest! {
    #[test]
    fn no_bound_is_above_the_optimum(
        program in programs(1..6, 20), machine in machines(3), model in models(),
    ) {
        let problem = program.problem(&machine, model);
        prop_assert!(lower_bound(&problem) <= optimum(&problem));
    }

    #[test]
    fn no_bound_is_above_a_list(program in programs(1..40, 20), machine in machines(5), model in models()) {
        let problem = program.problem(&machine, model);
        let bound = lower_bound(&problem);
        for (_, plan) in list::all(&problem) {
            prop_assert!(bound <= Evaluator::new(&problem).makespan(&plan));
        }
    }
}
