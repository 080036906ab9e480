//! The interface of solvers of linear programs.

use hopmap_model::Library;

use crate::engine::StopCondition;
use crate::error::Result;
use crate::linear::LinearProgram;

#[cfg(feature = "highs")]
pub use self::highs::Highs;

/// A solver of linear programs.
pub trait Solver {
    /// Returns the best values found before the stop condition.
    fn solve(&self, program: &LinearProgram, stop: &StopCondition<'_>) -> Result<Solution>;
}

/// The result of a solver.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// The value of every variable of the incumbent, if there is one.
    pub values: Option<Vec<f64>>,
    /// Lower bound of the cost; infinite if the program is infeasible.
    pub bound: f64,
    /// Whether the search completed: the values are optimal, or the program is infeasible.
    pub proven: bool,
    /// Nodes of the search tree. 1 if the solver does not report them, and the limit if it stopped there.
    pub nodes: u64,
}

/// The solver of linear programs that a build may have.
pub const HIGHS: &Library = &Library {
    name: "HiGHS",
    install: Some("cmake, a C++ compiler and libclang (Debian: cmake g++ libclang-dev)"),
    is_built: cfg!(feature = "highs"),
};

/// The solver of this build, if it has one.
#[must_use]
pub fn default() -> Option<Box<dyn Solver>> {
    #[cfg(feature = "highs")]
    return Some(Box::new(Highs));
    #[cfg(not(feature = "highs"))]
    None
}

#[cfg(feature = "highs")]
mod highs {
    //! `HiGHS` (Huangfu and Hall 2018), with one thread and a fixed seed for reproducible results.
    //!
    //! It runs on a separate thread because a running solve cannot be stopped; after a stop request, that thread is abandoned.
    //! Some releases have reported wrong solutions as optimal (ERGO-Code/HiGHS#2349), so each solution is checked against the
    //! program.

    use std::num::NonZeroU32;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    use highs::{HighsModelStatus, HighsSolutionStatus, Model, RowProblem, Sense as Goal, SolvedModel};

    use super::{Solution, Solver};
    use crate::engine::{Limits, StopCondition};
    use crate::error::{Result, RouteError};
    use crate::linear::{Domain, LinearProgram, Sense};

    /// Interval between checks of the stop condition.
    const POLL: Duration = Duration::from_millis(20);
    /// Grace period of `HiGHS` after its time limit, in seconds: stages end within a second of it.
    const GRACE: f64 = 0.5;
    /// Tolerance of constraints; that of `HiGHS` is a tenth of it.
    const TOLERANCE: f64 = 1e-5;

    /// `HiGHS`.
    #[derive(Debug, Clone, Copy, Default)]
    pub struct Highs;

    impl Solver for Highs {
        fn solve(&self, program: &LinearProgram, condition: &StopCondition<'_>) -> Result<Solution> {
            let stop = Limits { nodes: condition.limits.nodes, seconds: condition.seconds_left() };
            if stop.seconds.is_some_and(|left| left <= 0.0) || condition.should_stop() {
                return Ok(unknown(program));
            }
            if program.variables.is_empty() {
                // `HiGHS` rejects such programs.
                return Ok(match program.violated(&[], TOLERANCE) {
                    None => Solution { values: Some(Vec::new()), bound: 0.0, proven: true, nodes: 0 },
                    Some(_) => Solution { values: None, bound: f64::INFINITY, proven: true, nodes: 0 },
                });
            }
            let own = program.clone();
            let (sender, receiver) = channel();
            let work = move || drop(sender.send(solve(&own, stop)));
            let thread = std::thread::Builder::new().name("highs".to_owned()).spawn(work);
            thread.map_err(|error| failed(format!("cannot start a thread for HiGHS: {error}")))?;
            loop {
                match receiver.recv_timeout(POLL) {
                    Ok(result) => return result,
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(failed("HiGHS ended without a result".to_owned()));
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        if condition.should_stop()
                            || condition.seconds_left().is_some_and(|left| left < -GRACE)
                        {
                            return Ok(unknown(program));
                        }
                    }
                }
            }
        }
    }

    fn failed(problem: String) -> RouteError {
        RouteError::of_solver(problem)
    }

    /// The result without a solver.
    fn unknown(program: &LinearProgram) -> Solution {
        Solution { values: start(program).cloned(), bound: f64::NEG_INFINITY, proven: false, nodes: 0 }
    }

    /// The start of a program, if it is feasible and costs less than the cutoff.
    fn start(program: &LinearProgram) -> Option<&Vec<f64>> {
        let cutoff = program.cutoff.unwrap_or(f64::INFINITY);
        program
            .start
            .as_ref()
            .filter(|start| program.violated(start, TOLERANCE).is_none() && program.cost(start) < cutoff)
    }

    fn solve(program: &LinearProgram, stop: Limits) -> Result<Solution> {
        let is_mixed = program.variables.iter().any(|variable| variable.domain != Domain::NotNegative);
        let model = model(program, stop, is_mixed)?;
        let solved = model.try_solve().map_err(|status| failed(format!("HiGHS ended with {status:?}")))?;
        // The crate does not expose the 64-bit node count; assume the limit if the solver stopped there.
        let nodes = match (solved.status(), stop.nodes) {
            (
                HighsModelStatus::ReachedSolutionLimit | HighsModelStatus::ReachedIterationLimit,
                Some(most),
            ) => most,
            _ => 1,
        };
        let proven = match solved.status() {
            HighsModelStatus::Infeasible | HighsModelStatus::ObjectiveBound => return none(program, nodes),
            HighsModelStatus::UnboundedOrInfeasible if is_bounded(program) => return none(program, nodes),
            HighsModelStatus::Optimal => true,
            HighsModelStatus::ReachedTimeLimit
            | HighsModelStatus::ReachedSolutionLimit
            | HighsModelStatus::ReachedIterationLimit
            | HighsModelStatus::Unknown => false,
            status => return Err(failed(format!("HiGHS ended with {status:?}"))),
        };
        let values = values(program, &solved, proven)?;
        let bound = match is_mixed {
            true => solved.double_info_value(c"mip_dual_bound").unwrap_or(f64::NEG_INFINITY),
            false => f64::NEG_INFINITY,
        };
        let bound = if program.is_whole() { (bound - 1e-6).ceil() } else { bound };
        let bound = match (&values, proven) {
            (Some(values), true) => program.cost(values),
            (Some(values), false) => bound.min(program.cost(values)),
            (None, _) => bound,
        };
        Ok(Solution { values, bound, proven, nodes })
    }

    /// Infeasible, or nothing below the cutoff. A known start contradicts that.
    fn none(program: &LinearProgram, nodes: u64) -> Result<Solution> {
        match start(program) {
            Some(_) => Err(failed("HiGHS reports infeasibility, but a solution is known".to_owned())),
            None => {
                let bound = program.cutoff.unwrap_or(f64::INFINITY);
                Ok(Solution { values: None, bound, proven: true, nodes })
            }
        }
    }

    /// The values of the incumbent, with integers rounded; an error if they violate the program.
    fn values(program: &LinearProgram, solved: &SolvedModel, proven: bool) -> Result<Option<Vec<f64>>> {
        if solved.primal_solution_status() != HighsSolutionStatus::Feasible {
            return match proven {
                true => {
                    Err(failed("HiGHS reports a solution as optimal that violates constraints".to_owned()))
                }
                false => Ok(None),
            };
        }
        let mut values = solved.get_solution().columns().to_vec();
        for (value, variable) in values.iter_mut().zip(&program.variables) {
            if variable.domain != Domain::NotNegative && (*value - value.round()).abs() <= TOLERANCE {
                *value = value.round();
            }
        }
        match program.violated(&values, TOLERANCE) {
            Some(what) => Err(failed(format!("a solution of HiGHS violates its program: {what}"))),
            None => Ok(Some(values)),
        }
    }

    /// Whether the cost of all solutions is bounded below.
    fn is_bounded(program: &LinearProgram) -> bool {
        let is_bounded = |variable: &crate::linear::Variable| {
            variable.cost == 0.0
                || (variable.cost > 0.0 && variable.least.is_finite())
                || (variable.cost < 0.0 && variable.most.is_finite())
        };
        program.variables.iter().all(is_bounded)
    }

    fn model(program: &LinearProgram, stop: Limits, is_mixed: bool) -> Result<Model> {
        let status = |status| failed(format!("HiGHS rejects the program: {status:?}"));
        let mut model = rows(program).try_optimise(Goal::Minimise).map_err(status)?;
        model.make_quiet();
        model.set_threads(NonZeroU32::MIN);
        model.set_option("random_seed", 0);
        model.set_option("mip_rel_gap", 0.0);
        model.set_option("mip_abs_gap", if program.is_whole() { 0.999 } else { 0.0 });
        if let Some(seconds) = stop.seconds {
            model.set_option("time_limit", seconds.max(0.01));
        }
        if let Some(nodes) = stop.nodes {
            model.set_option("mip_max_nodes", i32::try_from(nodes).unwrap_or(i32::MAX));
        }
        if let Some(cutoff) = program.cutoff.filter(|cutoff| is_mixed && cutoff.is_finite()) {
            // Solutions that cost exactly the cutoff are not sought either.
            let below =
                if program.is_whole() { cutoff.ceil() - 0.5 } else { cutoff - 1e-7 * cutoff.abs().max(1.0) };
            model.set_option("objective_bound", below);
        }
        if let Some(start) = start(program) {
            model.try_set_solution(Some(start), None, None, None).map_err(status)?;
        }
        Ok(model)
    }

    fn rows(program: &LinearProgram) -> RowProblem {
        let mut problem = RowProblem::default();
        let columns: Vec<_> = program
            .variables
            .iter()
            .map(|variable| match variable.domain {
                Domain::NotNegative => problem.add_column(variable.cost, variable.least..=variable.most),
                _ => problem.add_integer_column(variable.cost, variable.least..=variable.most),
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
}
