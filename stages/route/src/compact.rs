//! A smaller program than that of the paper: hosts are parts of their switches.

use hopmap_model::Error;

use crate::engine::{Engine, Found, Watch};
use crate::paper::Paper;
use crate::problem::{Plan, Problem};
use crate::solver::Solver;

/// The compact program, solved by a solver of linear programs.
#[derive(Clone, Copy)]
pub struct Compact<'a> {
    /// The solver.
    pub solver: &'a dyn Solver,
}

impl Engine for Compact<'_> {
    fn solve(&self, problem: &Problem<'_>, best: Option<&Plan>, watch: &Watch<'_>) -> Result<Found, Error> {
        Paper { solver: self.solver }.solve(problem, best, watch)
    }
}
