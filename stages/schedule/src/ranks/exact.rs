//! `schedule/exact` of ranks.

use hopmap_model::{Context, Error};

use super::RankProblem;
use crate::{ExactParams, Found};

/// `schedule/exact`.
pub fn exact(_: &ExactParams, problem: &RankProblem, cx: &Context<'_>) -> Result<Found<Vec<u32>>, Error> {
    super::best_start(problem, cx)
}
