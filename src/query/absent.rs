//! What is said where SQL is missing.

use super::{AnsweredTable, WITHOUT_ANALYTICS};
use crate::engine::{Catalogue, RunSummary, Store};
use crate::pipeline::{Pipeline, Problem, Problems};

/// Without SQL no question can be asked.
pub fn check(_: &str, _: &[&str]) -> Result<(), Problem> {
    Err(Problem::new("this hopmap was built without SQL", &(0..0)).help(WITHOUT_ANALYTICS))
}

/// No pipeline gets as far as asking.
#[must_use]
pub fn ask(
    _: &Pipeline,
    _: &Store,
    _: &Catalogue,
    _: &[RunSummary],
) -> (Vec<AnsweredTable>, Option<Problems>) {
    (Vec::new(), None)
}
