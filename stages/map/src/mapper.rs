//! What every mapping algorithm is.

use hopmap_model::{Context, ConvergencePoint};
use hopmap_objective::{ObjectiveError, Problem};

/// An algorithm that places the ranks of a problem.
pub trait Mapper {
    /// Places every rank on a slot of its own.
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<Found, ObjectiveError>;
}

/// What a mapper found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The slot of every rank.
    pub slots: Vec<u32>,
    /// Changes to a placement whose cost was computed, by all islands together.
    pub evaluations: u64,
    /// The best F of every island over its evaluations, island by island.
    pub convergence: Vec<ConvergencePoint>,
    /// Whether the search came to its end and was not told to stop before.
    pub complete: bool,
}

impl Found {
    /// A placement that took no search.
    #[must_use]
    pub fn at_once(slots: Vec<u32>) -> Self {
        Self { slots, evaluations: 0, convergence: Vec::new(), complete: true }
    }
}
