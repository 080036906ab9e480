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

impl<C: Costs> Ground<'_, C> {
    pub(super) fn best_start(&self) -> &Candidate<Plan> {
        &self.starts[0]
    }

    /// Proposals of the first cycle.
    pub(super) fn first_cycle(&self) -> u64 {
        400 * self.costs.problem().tasks() as u64
    }
}
