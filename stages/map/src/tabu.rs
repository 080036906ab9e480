//! Robust tabu search.

mod bans;
mod walk;

use hopmap_islands::{Budget, Candidate, Counts, Island, Meter, SearchError};
use hopmap_model::{Context, Error, Stage, seed_stream};
use hopmap_objective::{Assignment, Deltas, ObjectiveError, Problem};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use crate::{Found, Mapper, TabuParams, TabuStage, descend, greedy};
pub(crate) use walk::Walk;

/// The default budget, which is never less than so many steps for every rank.
const DEFAULT_EVALUATIONS: u64 = 1 << 25;
const DEFAULT_STEPS: u64 = 4;
/// Most deltas that are kept, of eight bytes each, by every island at work.
const MOST_DELTAS: u64 = 1 << 22;

/// Robust tabu search (Taillard 1991) on independent islands, of which the best wins.
///
/// Every step makes the best exchange of all that are allowed, whether it lowers the cost or not. What leaves a group of the
/// innermost level may not come back for a random number of steps; exchanges inside such a group change nothing and are never
/// made. An exchange is forbidden if it brings both ranks back to where they may not be; it is made all the same where it gives
/// the best placement so far. A rank that was not in a group for very long is sent there, whatever it costs. The deltas of all
/// exchanges are kept, so that a step takes one product for every pair, not one for every pair and neighbour.
///
/// The first island starts from the linear or a greedy placement, whichever costs less, the others from random ones. The best
/// placement ever seen then descends to one that no exchange improves.
#[derive(Debug, Clone, PartialEq)]
pub struct Tabu {
    seed: u64,
    budget: Budget,
}

impl Tabu {
    /// Checks the parameters.
    pub fn new(params: &TabuParams) -> Result<Self, SearchError> {
        let &TabuParams { seed, evaluations, seconds, islands, .. } = params;
        Ok(Self { seed, budget: Budget::new(evaluations, seconds, islands)? })
    }

    /// Where an island begins.
    fn start(&self, problem: &Problem, island: u32) -> Vec<u32> {
        let (linear, greedy) = (problem.linear(), greedy(problem));
        match island {
            0 if problem.cost(&greedy) < problem.cost(&linear) => greedy,
            0 => linear,
            _ => {
                let stream = seed_stream(TabuStage::KIND, self.seed, u64::MAX - u64::from(island));
                problem.random(stream)
            }
        }
    }

    /// Searches on one island.
    fn search(
        &self,
        problem: &Problem,
        island: u32,
        mut meter: Meter<'_>,
    ) -> Result<Island<Vec<u32>>, ObjectiveError> {
        let start = Assignment::new(problem, &self.start(problem, island))?;
        let mut best = (start.slots().to_vec(), start.cost());
        let mut convergence = vec![(0, start.cost())];
        let random = Pcg64::from_seed(seed_stream(TabuStage::KIND, self.seed, u64::from(island)));
        if let Some(deltas) = Deltas::new(start, |evaluations| meter.take_all(evaluations)) {
            let mut walk = Walk::new(deltas, random);
            let pairs = Deltas::pairs(problem);
            while meter.take_all(pairs) {
                walk.step(best.1);
                let assignment = walk.assignment();
                if assignment.cost() < best.1 {
                    best.0.copy_from_slice(assignment.slots());
                    best.1 = assignment.cost();
                    convergence.push((meter.spent(), best.1));
                }
            }
        }
        if meter.begin_descent() {
            let mut assignment = Assignment::new(problem, &best.0)?;
            descend(&mut assignment, || meter.take());
            if assignment.cost() < best.1 {
                best = (assignment.slots().to_vec(), assignment.cost());
                convergence.push((meter.spent(), best.1));
            }
        }
        let (solution, cost) = best;
        Ok(Island {
            best: Candidate { cost, solution },
            evaluations: meter.spent(),
            convergence,
            interrupted: meter.interrupted(),
            counts: Counts::new(),
        })
    }
}

impl Mapper for Tabu {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<Found, Error> {
        let pairs = Deltas::pairs(problem);
        if pairs == 0 || problem.distance().levels() < 2 {
            return Ok(Found::at_once(problem.linear()));
        }
        let stored = Deltas::stored(problem);
        if stored > MOST_DELTAS {
            return Err(ObjectiveError::TooManyDeltas { deltas: stored, most: MOST_DELTAS }.into());
        }
        let default = DEFAULT_EVALUATIONS.max(DEFAULT_STEPS * problem.ranks() as u64 * pairs);
        let found = self.budget.search(default, cx, |island, meter| self.search(problem, island, meter))?;
        Ok(Found::of_islands(found, problem))
    }
}
