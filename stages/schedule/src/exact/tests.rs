//! What is called optimal is, by another search that leaves nothing out.

use proptest::prelude::*;

use super::*;
use crate::samples::{machines, models, optimum, programs};

fn best(problem: &Problem) -> Found<Plan> {
    search(problem, &Plan::serial(problem, 0), u64::MAX, || false)
}

proptest! {
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
        let problem = program.problem(&crate::samples::alike(processors), model);
        let found = best(&problem);
        prop_assert!(found.is_proven());
        prop_assert_eq!(found.makespan, optimum(&problem));
    }
}
