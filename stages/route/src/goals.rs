//! What is as good as possible before the objective is.

use hopmap_model::{Error, Mapping};

use crate::answer::{Answer, answer};
use crate::engine::Watch;
use crate::problem::Problem;
use crate::solver::Solver;
use crate::{Goal, Method};

/// The best answer by a goal, and by the objective among those; nothing if there is no answer.
pub fn reach(
    problem: &Problem<'_>,
    mapping: Option<&Mapping>,
    _goal: Goal,
    method: Method,
    solver: Option<&dyn Solver>,
    watch: &Watch<'_>,
) -> Result<Option<Answer>, Error> {
    answer(problem, mapping, method, solver, watch)
}
