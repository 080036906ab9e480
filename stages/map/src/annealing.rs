//! Simulated annealing over exchanges of ranks.

use hopmap_islands::SearchError;
use hopmap_model::{Context, Error};
use hopmap_objective::Problem;

use crate::{AnnealingParams, Auto, AutoParams, Found, Mapper};

/// Simulated annealing on independent islands, of which the best wins.
#[derive(Debug, Clone, PartialEq)]
pub struct Annealing(Auto);

impl Annealing {
    /// Checks the parameters.
    pub fn new(params: &AnnealingParams) -> Result<Self, SearchError> {
        let &AnnealingParams { seed, evaluations, seconds, islands, weight, .. } = params;
        Ok(Self(Auto::new(&AutoParams { seed, evaluations, seconds, islands, weight })?))
    }
}

impl Mapper for Annealing {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<Found, Error> {
        self.0.map(problem, cx)
    }
}
