//! Mappings and routes without a solver of linear programs.

use hopmap_model::Error;

use crate::engine::{Engine, Found, Watch};
use crate::problem::{Plan, Problem};

/// Finds mappings and routes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Search {}

impl Engine for Search {
    fn solve(&self, _: &Problem<'_>, _: Option<&Plan>, _: &Watch<'_>) -> Result<Found, Error> {
        Ok(Found::nothing())
    }
}
