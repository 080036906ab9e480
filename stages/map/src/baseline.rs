//! The placements that searches have to beat.

use hopmap_model::{Context, Error, Stage, SystemGraph, seed_stream};
use hopmap_objective::{Problem, round_robin};

use crate::{Found, Mapper, RandomStage};

/// Rank `i` on slot `i`, as launchers do it.
#[derive(Debug, Clone, Copy)]
pub struct Linear;

/// Hosts take turns: rank `i` on host `i` modulo the hosts, on its next free slot. A host without one has no more turns.
#[derive(Debug, Clone)]
pub struct RoundRobin {
    /// Slots in the order in which they are taken.
    order: Vec<u32>,
}

impl RoundRobin {
    /// The turns of the hosts of a machine.
    #[must_use]
    pub fn new(system: &SystemGraph) -> Self {
        Self { order: round_robin(system) }
    }
}

/// Ranks on slots drawn at random from all slots.
#[derive(Debug, Clone, Copy)]
pub struct Random {
    /// Another seed gives another placement.
    pub seed: u64,
}

impl Mapper for Linear {
    fn map(&self, problem: &Problem, _cx: &Context<'_>) -> Result<Found, Error> {
        Ok(Found::at_once(problem.linear()))
    }
}

impl Mapper for RoundRobin {
    fn map(&self, problem: &Problem, _cx: &Context<'_>) -> Result<Found, Error> {
        Ok(Found::at_once(problem.in_order(&self.order)))
    }
}

impl Mapper for Random {
    fn map(&self, problem: &Problem, _cx: &Context<'_>) -> Result<Found, Error> {
        let stream = seed_stream(RandomStage::KIND, self.seed, 0);
        Ok(Found::at_once(problem.random(stream)))
    }
}
