//! `HiGHS` (Huangfu and Hall 2018), one thread and a fixed seed, so that it does the same every time.

use std::num::NonZeroU32;

use highs::{HighsModelStatus, HighsSolutionStatus, RowProblem, Sense as Goal};

use super::{Solution, Solver};
use crate::SolverError;
use crate::engine::Watch;
use crate::linear::{Domain, LinearProgram, Sense};

/// `HiGHS`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Highs;

impl Solver for Highs {
    fn solve(&self, program: &LinearProgram, watch: &Watch<'_>) -> Result<Solution, SolverError> {
        let failed = |problem: String| SolverError::Failed { problem };
        let mut model = problem(program).optimise(Goal::Minimise);
        model.make_quiet();
        model.set_threads(NonZeroU32::MIN);
        model.set_option("random_seed", 0);
        model.set_option("mip_rel_gap", 0.0);
        model.set_option("mip_abs_gap", if is_whole(program) { 0.999 } else { 0.0 });
        if let Some(seconds) = watch.seconds_left() {
            model.set_option("time_limit", seconds.max(0.01));
        }
        if let Some(nodes) = watch.limits.nodes {
            model.set_option("mip_max_nodes", i32::try_from(nodes).unwrap_or(i32::MAX));
        }
        let solved = model.try_solve().map_err(|status| failed(format!("HiGHS ends with {status:?}")))?;
        let nodes = solved.int_info_value(c"mip_node_count").unwrap_or_default().max(0) as u64;
        let status = solved.status();
        if status == HighsModelStatus::Infeasible {
            return Ok(Solution { values: None, bound: f64::INFINITY, proven: true, nodes });
        }
        let is_there = solved.primal_solution_status() == HighsSolutionStatus::Feasible;
        let proven = status == HighsModelStatus::Optimal;
        if !proven
            && !matches!(
                status,
                HighsModelStatus::ReachedTimeLimit
                    | HighsModelStatus::ReachedSolutionLimit
                    | HighsModelStatus::ReachedIterationLimit
                    | HighsModelStatus::Unknown
            )
        {
            return Err(failed(format!("HiGHS ends with {status:?}")));
        }
        let bound = solved.double_info_value(c"mip_dual_bound").unwrap_or(f64::NEG_INFINITY);
        let bound = if is_whole(program) { (bound - 1e-6).ceil() } else { bound };
        Ok(Solution {
            values: is_there.then(|| solved.get_solution().columns().to_vec()),
            bound: if proven { solved.objective_value().max(bound) } else { bound },
            proven,
            nodes,
        })
    }
}

fn problem(program: &LinearProgram) -> RowProblem {
    let mut problem = RowProblem::default();
    let columns: Vec<_> = program
        .variables
        .iter()
        .map(|variable| match variable.domain {
            Domain::Binary => problem.add_integer_column(variable.cost, 0.0..=1.0),
            Domain::NotNegative => problem.add_column(variable.cost, 0.0..),
        })
        .collect();
    for constraint in &program.constraints {
        let terms: Vec<_> =
            constraint.terms.iter().map(|&(index, factor)| (columns[index], factor)).collect();
        let (least, most) = match constraint.sense {
            Sense::AtMost => (f64::NEG_INFINITY, constraint.bound),
            Sense::Equal => (constraint.bound, constraint.bound),
            Sense::AtLeast => (constraint.bound, f64::INFINITY),
        };
        problem.add_row(least..=most, terms);
    }
    problem
}

/// Whether every solution costs a whole number: all factors of the cost are whole, and the one variable that is not binary is the length
/// of the longest route.
fn is_whole(program: &LinearProgram) -> bool {
    program.variables.iter().all(|variable| variable.cost.fract() == 0.0)
}
