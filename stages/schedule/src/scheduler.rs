//! What every scheduling algorithm is.

use hopmap_islands::Point;
use hopmap_model::{Context, Error};

use crate::{Plan, Problem};

/// An algorithm that schedules the tasks of a problem.
pub trait Scheduler {
    /// Gives every task a processor and a turn.
    fn schedule(&self, problem: &Problem, cx: &Context<'_>) -> Result<Found<Plan>, Error>;
}

/// What a scheduler found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found<S> {
    /// The best: a [`Plan`], or the slot of every rank.
    pub best: S,
    /// Its makespan in ticks.
    pub makespan: i64,
    /// A makespan in ticks that no schedule of the problem is below.
    pub lower_bound: i64,
    /// Schedules whose makespan was computed, or nodes of a search tree, by all islands together.
    pub evaluations: u64,
    /// The least makespan of every island over its evaluations, island by island.
    pub convergence: Vec<Point>,
    /// Whether the search came to its end and was not told to stop before.
    pub complete: bool,
}

impl<S> Found<S> {
    /// Whether nothing can be better.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.lower_bound >= self.makespan
    }
}
