//! What solves linear programs.

#[cfg(feature = "highs")]
mod highs;

use hopmap_model::Library;

use crate::SolverError;
use crate::engine::StopCondition;
use crate::linear::LinearProgram;

#[cfg(feature = "highs")]
pub use self::highs::Highs;

/// Something that solves linear programs.
pub trait Solver {
    /// The best values before it has to stop.
    fn solve(&self, program: &LinearProgram, stop: &StopCondition<'_>) -> Result<Solution, SolverError>;
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
    /// Nodes of the search tree; 1 where the solver does not tell, and all that it might look at if it stopped for that.
    pub nodes: u64,
}

pub(crate) const HIGHS: &Library = &Library {
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
