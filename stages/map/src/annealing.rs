//! Simulated annealing over exchanges of ranks.

use hopmap_islands::{Budget, SearchError};
use hopmap_model::{Context, Error};
use hopmap_objective::Problem;

use crate::cycles::Cycles;
use crate::{AnnealingParams, Found, Mapper};

/// Simulated annealing on independent islands, of which the best wins.
#[derive(Debug, Clone, PartialEq)]
pub struct Annealing(Cycles);

impl Annealing {
    /// Checks the parameters.
    pub fn new(params: &AnnealingParams) -> Result<Self, SearchError> {
        let &AnnealingParams { seed, evaluations, seconds, islands, cooling, .. } = params;
        Ok(Self(Cycles::new(seed, Budget::new(evaluations, seconds, islands)?, cooling)))
    }
}

impl Mapper for Annealing {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<Found, Error> {
        self.0.map(problem, cx)
    }
}
