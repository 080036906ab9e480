//! Why there is no answer, and what would have to be different.

use hopmap_model::{Diagnosis, Error};

use crate::engine::Watch;
use crate::problem::Problem;
use crate::solver::Solver;

/// Why a problem has no answer.
pub fn diagnose(_: &Problem<'_>, _: Option<&dyn Solver>, _: &Watch<'_>) -> Result<Diagnosis, Error> {
    Ok(Diagnosis::default())
}
