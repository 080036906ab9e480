//! What every mapping algorithm is.

use std::collections::BTreeMap;

use hopmap_islands::Point;
use hopmap_model::{Context, ConvergencePoint, Error};
use hopmap_objective::Problem;

/// An algorithm that places the ranks of a problem.
pub trait Mapper {
    /// Places every rank on a slot of its own.
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<Found, Error>;
}

/// What a mapper found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The slot of every rank.
    pub slots: Vec<u32>,
    /// Changes to a placement whose cost was computed, by all islands together.
    pub evaluations: u64,
    /// The least cost of every island over its evaluations, island by island.
    pub convergence: Vec<ConvergencePoint>,
    /// Whether the search came to its end and was not told to stop before.
    pub complete: bool,
    /// Metrics that only this mapper has, by their names.
    pub metrics: BTreeMap<String, f64>,
}

impl Found {
    /// A placement that took no search.
    #[must_use]
    pub fn at_once(slots: Vec<u32>) -> Self {
        Self { slots, evaluations: 0, convergence: Vec::new(), complete: true, metrics: BTreeMap::new() }
    }

    /// What islands found, in the units of the problem.
    pub(crate) fn of_islands(found: hopmap_islands::Found<Vec<u32>>, problem: &Problem) -> Self {
        let point = |point: Point| ConvergencePoint {
            island: point.island,
            evaluations: point.evaluations,
            cost: problem.real(point.cost),
        };
        Self {
            slots: found.best.solution,
            evaluations: found.evaluations,
            convergence: found.convergence.into_iter().map(point).collect(),
            complete: found.complete,
            metrics: found.counts.into_iter().map(|(name, count)| (name, count as f64)).collect(),
        }
    }
}
