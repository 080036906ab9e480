//! Routes and tables for processes that are where they are, without a solver of linear programs.

mod fabric;
mod quick;
mod turns;
mod ways;

use hopmap_model::Error;

use crate::engine::{Engine, Found, Watch};
use crate::problem::{Plan, Problem};

pub use quick::{Quick, QuickRouter};

/// Finds routes for a given mapping.
#[derive(Debug, Clone, Copy, Default)]
pub struct Router {}

impl Engine for Router {
    fn solve(&self, problem: &Problem<'_>, _: Option<&Plan>, _: &Watch<'_>) -> Result<Found, Error> {
        let Some(hosts) = &problem.mapped else { return Ok(Found::nothing()) };
        let quick = quick(problem, hosts);
        let plan = quick.keeps_rules.then(|| Plan { hosts: hosts.clone(), routes: quick.routes });
        Ok(Found { plan, ..Found::nothing() })
    }
}

/// Routes for processes on given hosts, quickly. The same for the same problem and hosts. [`QuickRouter`] is faster for several mappings.
#[must_use]
pub fn quick(problem: &Problem<'_>, hosts: &[u32]) -> Quick {
    QuickRouter::new(problem).route(hosts)
}
