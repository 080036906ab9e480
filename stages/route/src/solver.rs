//! What solves linear programs.

#[cfg(feature = "highs")]
mod highs;

use crate::SolverError;
use crate::linear::LinearProgram;

#[cfg(feature = "highs")]
pub use self::highs::Highs;

/// Something that solves linear programs.
pub trait Solver {
    /// The best values within the limits.
    fn solve(&self, program: &LinearProgram, limits: Limits) -> Result<Solution, SolverError>;
}

/// When a solver stops before it has proven anything.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// Nodes of the search tree.
    pub nodes: Option<u64>,
    /// Seconds.
    pub seconds: Option<f64>,
}

/// What a solver found.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// The value of every variable of the best solution, if there is one.
    pub values: Option<Vec<f64>>,
    /// No solution costs less; infinite where there is none.
    pub bound: f64,
    /// Whether that is all there is to know: the values are best, or there are none.
    pub proven: bool,
    /// Nodes of the search tree.
    pub nodes: u64,
}

/// The solver of this build.
pub fn default() -> Result<Box<dyn Solver>, SolverError> {
    #[cfg(feature = "highs")]
    return Ok(Box::new(Highs));
    #[cfg(not(feature = "highs"))]
    Err(SolverError::Missing)
}
