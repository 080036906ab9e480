//! The interface to `HiGHS`: integers, bounds, starts, cutoffs, limits and stops (with the feature `highs`).
#![cfg(feature = "highs")]

use std::sync::atomic::{AtomicUsize, Ordering};

use hopmap_routing::compact::Compact;
use hopmap_routing::engine::{Engine, Limits, StopCondition};
use hopmap_routing::linear::{Domain, LinearProgram, Sense};
use hopmap_routing::problem::Problem;
use hopmap_routing::problem::{Rules, Weights};
use hopmap_routing::solver::{Highs, Solution, Solver};

use crate::support::samples::Mesh;

/// Minimise 3 a − 2 b + c with integer a from −4 to 9, integer b up to 6, real c from −1.5; a + b ≥ 2, 2 b − c ≤ 9. The optimum
/// is −3 with a = −2, b = 4 and c = −1; the relaxation is lower.
fn program() -> LinearProgram {
    let mut program = LinearProgram::default();
    let a = program.variable("a".to_owned(), Domain::Whole, 3.0);
    let b = program.variable("b".to_owned(), Domain::Whole, -2.0);
    let c = program.variable("c".to_owned(), Domain::NotNegative, 1.0);
    program.limit(a, -4.0, 9.0);
    program.limit(b, f64::NEG_INFINITY, 6.0);
    program.limit(c, -1.5, f64::INFINITY);
    program.constrain("together".to_owned(), vec![(a, 1.0), (b, 1.0)], Sense::AtLeast, 2.0);
    program.constrain("twice".to_owned(), vec![(b, 2.0), (c, -1.0)], Sense::AtMost, 9.0);
    program
}

fn solved(program: &LinearProgram) -> Solution {
    Highs.solve(program, &StopCondition::endless()).unwrap()
}

#[test]
fn integers_keep_their_bounds() {
    let program = program();
    let best = every_value(&program);
    let solution = solved(&program);
    assert!(solution.proven);
    assert!((program.cost(&solution.values.unwrap()) - best).abs() < 1e-6, "{best}");
    assert!((solution.bound - best).abs() < 1e-6);
}

/// The optimum by enumeration of all integers; the real variable is as small as possible.
fn every_value(program: &LinearProgram) -> f64 {
    let mut best = f64::INFINITY;
    for a in -4..=9 {
        for b in -20..=6 {
            let c = (2.0 * f64::from(b) - 9.0).max(-1.5);
            let values = [f64::from(a), f64::from(b), c];
            if program.violated(&values, 1e-9).is_none() {
                best = best.min(program.cost(&values));
            }
        }
    }
    best
}

#[test]
fn solutions_at_the_cutoff_are_excluded() {
    let mut program = program();
    let best = every_value(&program);
    program.cutoff = Some(best);
    let solution = solved(&program);
    assert_eq!((solution.values, solution.proven), (None, true));
    assert!((solution.bound - best).abs() < 1e-6);
    program.cutoff = Some(best + 0.25);
    assert!(solved(&program).values.is_some());
}

#[test]
fn a_feasible_start_is_used() {
    let mut program = program();
    program.start = Some(vec![9.0, 0.0, 0.0]);
    assert!(program.violated(&[9.0, 0.0, 0.0], 1e-9).is_none());
    let over = StopCondition::new(Limits { nodes: None, seconds: Some(0.0) }, &|| false);
    let solution = Highs.solve(&program, &over).unwrap();
    assert_eq!((solution.values.as_deref(), solution.proven), (Some(&[9.0, 0.0, 0.0][..]), false));
    assert!((solved(&program).bound - every_value(&program)).abs() < 1e-6);
    program.start = Some(vec![0.5, 9.0, 0.0]);
    assert!(program.violated(&[0.5, 9.0, 0.0], 1e-9).is_some());
    assert_eq!(Highs.solve(&program, &over).unwrap().values, None);
}

#[test]
fn infeasible_programs_are_reported() {
    let mut program = program();
    program.constrain("too_much".to_owned(), vec![(0, 1.0)], Sense::AtLeast, 10.0);
    let solution = solved(&program);
    assert_eq!((solution.values, solution.bound, solution.proven), (None, f64::INFINITY, true));
    assert!(solved(&LinearProgram::default()).proven);
}

fn mesh() -> Mesh {
    Mesh {
        rows: 3,
        columns: 4,
        hosts: 2,
        processes: 24,
        streams: 30,
        bandwidth: 100,
        switch_type: 1,
        seed: 1,
    }
}

#[test]
fn a_stop_request_abandons_the_solver() {
    let instance = mesh().instance(false).unwrap();
    let rules = Rules::from(Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 });
    let problem = Problem::new(&instance.graph, &instance.system, None, rules).unwrap();
    let asked = AtomicUsize::new(0);
    let should_stop = || asked.fetch_add(1, Ordering::Relaxed) > 5;
    // The complete solve would take minutes.
    let condition = StopCondition::new(Limits::default(), &should_stop);
    let found = Compact { solver: &Highs }.solve(&problem, None, &condition).unwrap();
    assert!(!found.proven && found.plan.is_none());
    assert!(found.bound >= 3000.0 && found.bound.is_finite(), "{}", found.bound);
}

#[test]
fn node_limits_are_deterministic() {
    let instance =
        Mesh { rows: 2, columns: 3, processes: 12, streams: 14, seed: 2, ..mesh() }.instance(false).unwrap();
    let rules = Rules::from(Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 });
    let problem = Problem::new(&instance.graph, &instance.system, None, rules).unwrap();
    let run = |nodes| {
        let condition = StopCondition::new(Limits { nodes, seconds: None }, &|| false);
        Compact { solver: &Highs }.solve(&problem, None, &condition).unwrap()
    };
    let (short, all) = (run(Some(2)), run(None));
    assert_eq!(short, run(Some(2)));
    assert!(all.proven && short.bound <= all.bound, "{} {}", short.bound, all.bound);
}
