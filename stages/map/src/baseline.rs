//! The placements that searches have to beat.

use hopmap_model::{Context, Error, Stage, seed_stream};
use hopmap_objective::Problem;

use crate::{Found, Mapper, RandomStage};

/// Rank `i` on slot `i`, as launchers do it.
#[derive(Debug, Clone, Copy)]
pub struct Linear;

/// Ranks on slots drawn at random from all slots.
#[derive(Debug, Clone, Copy)]
pub struct Random {
    /// Another seed gives another placement.
    pub seed: u64,
}

impl Mapper for Linear {
    fn map(&self, problem: &Problem, _cx: &Context<'_>) -> Result<Found, Error> {
        Ok(Found::at_once(problem.linear()))
    }
}

impl Mapper for Random {
    fn map(&self, problem: &Problem, _cx: &Context<'_>) -> Result<Found, Error> {
        let stream = seed_stream(RandomStage::KIND, self.seed, 0);
        Ok(Found::at_once(problem.random(stream)))
    }
}
