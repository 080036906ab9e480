//! The mapper that chooses what suits the problem.

use hopmap_islands::{Budget, SearchError};
use hopmap_model::{Context, Error};
use hopmap_objective::Problem;

use crate::cycles::Cycles;
use crate::{AutoParams, Cooling, Found, Mapper};

/// Chooses how to search by looking at the problem.
#[derive(Debug, Clone, PartialEq)]
pub struct Auto {
    seed: u64,
    budget: Budget,
}

impl Auto {
    /// Checks the parameters.
    pub fn new(params: &AutoParams) -> Result<Self, SearchError> {
        let &AutoParams { seed, evaluations, seconds, islands, .. } = params;
        Ok(Self { seed, budget: Budget::new(evaluations, seconds, islands)? })
    }
}

impl Mapper for Auto {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<Found, Error> {
        Cycles::new(self.seed, self.budget.clone(), Cooling::Proportional).map(problem, cx)
    }
}
