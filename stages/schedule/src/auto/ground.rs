//! What all islands of a search set out from.

use hopmap_islands::Candidate;

use crate::Plan;
use crate::search::{Acceptance, Costs};

/// What all islands set out from.
pub(super) struct Ground<'g, C> {
    pub(super) costs: &'g C,
    pub(super) acceptance: Acceptance,
    /// Plans to begin with, at least one; the best first.
    pub(super) starts: Vec<Candidate<Plan>>,
    /// No makespan is below.
    pub(super) bound: i64,
    /// The mean time of a task.
    pub(super) unit: f64,
}

impl<'g, C: Costs> Ground<'g, C> {
    pub(super) fn new(costs: &'g C, starts: Vec<Candidate<Plan>>, bound: i64) -> Self {
        let tasks = costs.problem().tasks();
        let work: i64 = (0..tasks as u32).map(|task| costs.work(task, 0)).sum();
        Self { costs, acceptance: Acceptance::new(), starts, bound, unit: work as f64 / tasks as f64 }
    }
}
