//! `schedule/genetic` of ranks.

use hopmap_model::{Context, Error};

use super::RankProblem;
use crate::{Found, GeneticParams};

/// `schedule/genetic`.
pub fn genetic(_: &GeneticParams, problem: &RankProblem, cx: &Context<'_>) -> Result<Found<Vec<u32>>, Error> {
    super::best_start(problem, cx)
}
