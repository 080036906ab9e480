//! Simulated annealing in cycles of sweeps, with exchanges towards neighbours.

mod chain;
mod incumbent;
mod temperature;

use hopmap_islands::{Budget, Candidate, Island, Meter};
use hopmap_model::{Context, Error, Stage, seed_stream};
use hopmap_objective::{Assignment, ObjectiveError, Problem};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use crate::{AutoStage, Cooling, Found, Mapper, greedy};
use chain::{Chain, sweeps_of_cycle};
use temperature::{Acceptance, mean_change};

/// The default budget is whole cycles, at most so many, that fit so many evaluations.
const DEFAULT_CYCLES: u32 = 8;
const DEFAULT_EVALUATIONS: u64 = 1 << 23;

/// Simulated annealing on independent islands, of which the best wins.
///
/// Every island starts from the linear or a greedy placement, whichever costs less, and anneals in cycles. A cycle is a number
/// of sweeps, in each of which every rank with a neighbour proposes one exchange; the temperature falls from sweep to sweep.
/// Cycle k has 64 · 2^k sweeps whatever the budget is, so a larger budget continues the search of a smaller one. The
/// temperature is measured in the mean change of cost M of random moves in random placements: a cycle cools from 2 M to
/// M / 50, the first one, which refines the start, from 3/10 M.
///
/// An exchange is proposed towards a neighbour: the rank draws one of its neighbours and goes to a random slot of the largest
/// group that holds the neighbour and not the rank. If it already lies as close as it can to three drawn neighbours, it goes
/// to a random slot outside its own innermost group. Exchanges inside such a group change nothing and are never tried.
///
/// The best placement ever seen then descends to one that no exchange improves.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cycles {
    seed: u64,
    budget: Budget,
    cooling: Cooling,
}

impl Cycles {
    pub(crate) fn new(seed: u64, budget: Budget, cooling: Cooling) -> Self {
        Self { seed, budget, cooling }
    }

    /// Searches on one island.
    fn search(
        &self,
        ground: &Ground<'_>,
        island: u32,
        mut meter: Meter<'_>,
    ) -> Result<Island<Vec<u32>>, ObjectiveError> {
        let random = Pcg64::from_seed(seed_stream(AutoStage::KIND, self.seed, u64::from(island)));
        let start = Assignment::new(ground.problem, &ground.start)?;
        let mut chain = Chain::new(ground, start, random, self.cooling);
        chain.run(&mut meter);
        if meter.begin_descent() {
            chain.descend(&mut meter)?;
        }
        Ok(Island {
            best: Candidate { cost: chain.incumbent.cost, solution: chain.incumbent.slots },
            evaluations: meter.spent(),
            convergence: chain.incumbent.improvements,
            interrupted: meter.interrupted(),
        })
    }
}

impl Mapper for Cycles {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<Found, Error> {
        let Some(ground) = Ground::new(problem)? else {
            return Ok(Found::at_once(problem.linear()));
        };
        let default = default_evaluations(ground.movable.len() as u64);
        let found = self.budget.search(default, cx, |island, meter| self.search(&ground, island, meter))?;
        Ok(Found::of_islands(found, problem))
    }
}

/// What all islands share.
struct Ground<'p> {
    problem: &'p Problem,
    /// Ranks for which it makes a difference where they are, and that no constraint keeps on their slots.
    movable: Vec<u32>,
    start: Vec<u32>,
    /// Mean change of cost of random moves in random placements.
    mean_change: f64,
    acceptance: Acceptance,
}

impl<'p> Ground<'p> {
    /// `None` if all placements cost the same.
    fn new(problem: &'p Problem) -> Result<Option<Self>, ObjectiveError> {
        let movable: Vec<u32> =
            problem.movable().iter().copied().filter(|&rank| !problem.is_fixed(rank)).collect();
        if movable.is_empty() || problem.distance().levels() < 2 {
            return Ok(None);
        }
        let starts = [problem.linear(), greedy(problem)];
        let [linear, greedy] = starts.each_ref().map(|start| problem.cost(start));
        let [linear_start, greedy_start] = starts;
        let mean_change = mean_change(problem, &movable)?;
        Ok(Some(Self {
            problem,
            movable,
            start: if greedy < linear { greedy_start } else { linear_start },
            mean_change,
            acceptance: Acceptance::new(),
        }))
    }
}

/// Whole cycles, at most eight, that fit eight million evaluations; eight million for a program too large for one cycle.
fn default_evaluations(movable: u64) -> u64 {
    let cycles = (0..DEFAULT_CYCLES).scan(0, |sweeps, cycle| {
        *sweeps += sweeps_of_cycle(cycle);
        Some(*sweeps * movable)
    });
    cycles.take_while(|&evaluations| evaluations <= DEFAULT_EVALUATIONS).last().unwrap_or(DEFAULT_EVALUATIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_budget_is_whole_cycles() {
        assert_eq!(default_evaluations(16), 64 * 255 * 16);
        assert_eq!(default_evaluations(1024), 64 * 127 * 1024);
        assert_eq!(default_evaluations(65_536), 64 * 65_536);
        assert_eq!(default_evaluations(1 << 20), DEFAULT_EVALUATIONS);
    }
}
