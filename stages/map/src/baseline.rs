//! Mappings without search: baselines and greedy construction.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hopmap_model::{Context, Error, SystemGraph, seed_stream};
use hopmap_objective::{Distance, Problem, round_robin};

use crate::mapper::{Mapper, SearchResult};
use crate::params::kind;

/// Linear mapping: rank `i` on slot `i`, the default of most launchers.
#[derive(Debug, Clone, Copy)]
pub struct Linear;

/// Cyclic mapping: ranks go to hosts in turn, each to the next free slot. Full hosts are skipped.
#[derive(Debug, Clone)]
pub struct RoundRobin {
    /// Slots in the order of the ranks.
    order: Vec<u32>,
}

impl RoundRobin {
    /// The slots of a machine in cyclic host order.
    #[must_use]
    pub fn new(system: &SystemGraph) -> Self {
        Self { order: round_robin(system) }
    }
}

/// Random mapping to all slots.
#[derive(Debug, Clone, Copy)]
pub struct Random {
    /// Random seed.
    pub seed: u64,
}

impl Mapper for Linear {
    fn map(&self, problem: &Problem, _cx: &Context<'_>) -> Result<SearchResult, Error> {
        Ok(SearchResult::at_once(problem.linear()))
    }

    fn is_search(&self) -> bool {
        false
    }
}

impl Mapper for RoundRobin {
    fn map(&self, problem: &Problem, _cx: &Context<'_>) -> Result<SearchResult, Error> {
        Ok(SearchResult::at_once(problem.in_order(&self.order)))
    }

    fn is_search(&self) -> bool {
        false
    }
}

impl Mapper for Random {
    fn map(&self, problem: &Problem, _cx: &Context<'_>) -> Result<SearchResult, Error> {
        let stream = seed_stream(kind::RANDOM, self.seed, 0);
        Ok(SearchResult::at_once(problem.random(stream)))
    }

    fn is_search(&self) -> bool {
        false
    }
}

/// Greedy mapping: fills the slots in tree order, each with the rank that costs least given those already
/// mapped.
///
/// Ties go to the lowest rank. Ranks that violate constraints are moved at the end. Takes E · L · log E steps
/// for E edges and L levels.
#[must_use]
pub fn greedy(problem: &Problem) -> Vec<u32> {
    let distance = problem.distance();
    if distance.levels() == 0 {
        return problem.linear();
    }
    let mut growth = Growth::new(problem);
    let order = &distance.order()[..problem.ranks()];
    for (index, &slot) in order.iter().enumerate() {
        if index > 0 {
            growth.leave(order[index - 1], slot);
        }
        growth.place_best(slot);
    }
    problem.admit(growth.slots)
}

/// The linear or the greedy mapping, whichever costs less.
pub(crate) fn linear_or_greedy(problem: &Problem) -> Vec<u32> {
    let (linear, greedy) = (problem.linear(), greedy(problem));
    if problem.cost(&greedy) < problem.cost(&linear) { greedy } else { linear }
}

/// A mapping under construction, slot by slot.
struct Growth<'p> {
    problem: &'p Problem,
    distance: &'p Distance,
    /// Cost that a rank saves on the current slot, compared with meeting all neighbours on the outermost
    /// level.
    savings: Vec<i64>,
    /// Savings and ranks, largest first; outdated entries stay until they are drawn.
    candidates: BinaryHeap<(i64, Reverse<u32>)>,
    /// Slot of every rank.
    slots: Vec<u32>,
    /// Mapped ranks in the order of their slots.
    placed: Vec<u32>,
}

const UNPLACED: u32 = u32::MAX;

impl<'p> Growth<'p> {
    fn new(problem: &'p Problem) -> Self {
        let ranks = problem.ranks();
        Self {
            problem,
            distance: problem.distance(),
            savings: vec![0; ranks],
            candidates: (0..ranks as u32).map(|rank| (0, Reverse(rank))).collect(),
            slots: vec![UNPLACED; ranks],
            placed: Vec::with_capacity(ranks),
        }
    }

    /// Advances to the next slot: ranks in groups that end here become more distant.
    fn leave(&mut self, from: u32, to: u32) {
        let level = self.distance.meeting_level(from, to);
        if level == 0 {
            return;
        }
        for index in self.distance.group(level - 1, from) {
            let rank = self.placed[index];
            let before = self.distance.meeting_level(from, self.slots[rank as usize]);
            let lost = self.distance.level_cost(level) - self.distance.level_cost(before);
            self.change(rank, -lost);
        }
    }

    /// Maps the rank that saves most.
    fn place_best(&mut self, slot: u32) {
        while let Some((savings, Reverse(rank))) = self.candidates.pop() {
            if self.slots[rank as usize] == UNPLACED && self.savings[rank as usize] == savings {
                self.slots[rank as usize] = slot;
                self.placed.push(rank);
                let outermost = self.distance.levels() - 1;
                self.change(rank, self.distance.level_cost(outermost) - self.distance.level_cost(0));
                return;
            }
        }
    }

    /// Updates the savings of the unmapped neighbours of a mapped rank, per unit of weight.
    fn change(&mut self, placed: u32, per_weight: i64) {
        for neighbour in self.problem.neighbours(placed) {
            let rank = neighbour.rank as usize;
            if self.slots[rank] == UNPLACED {
                self.savings[rank] += neighbour.weight * per_weight;
                self.candidates.push((self.savings[rank], Reverse(neighbour.rank)));
            }
        }
    }
}
