//! Simulated annealing over exchanges of ranks.

mod chain;
mod incumbent;
mod meter;
mod temperature;

use std::time::{Duration, Instant};

use hopmap_model::{Context, ConvergencePoint, Stage, seed_stream};
use hopmap_objective::{Assignment, ObjectiveError, Problem, linear};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;
use rayon::prelude::*;

use crate::{AnnealingError, AnnealingParams, AnnealingStage, Cooling, Found, Mapper, greedy};
use chain::{Chain, sweeps_of_cycle};
use meter::{Meter, Progress};
use temperature::{Acceptance, mean_change};

/// Most islands of a search.
pub(crate) const MAX_ISLANDS: u32 = 4096;
/// The default budget is whole cycles, at most so many, that fit so many evaluations.
const DEFAULT_CYCLES: u32 = 8;
const DEFAULT_EVALUATIONS: u64 = 1 << 23;
/// The final descent may take as many evaluations as the annealing, and never fewer than this.
const DESCENT_EVALUATIONS: u64 = 1 << 22;
/// Part of a budget in seconds that is left to the final descent.
const DESCENT_SHARE: f64 = 0.1;

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
pub struct Annealing {
    seed: u64,
    evaluations: Option<u64>,
    time: Option<Duration>,
    islands: u32,
    cooling: Cooling,
}

impl Annealing {
    /// Checks the parameters.
    pub fn new(params: &AnnealingParams) -> Result<Self, AnnealingError> {
        let &AnnealingParams { seed, evaluations, seconds, islands, cooling, .. } = params;
        if !(1..=MAX_ISLANDS).contains(&islands) {
            return Err(AnnealingError::Islands { islands });
        }
        if evaluations == Some(0) {
            return Err(AnnealingError::Evaluations);
        }
        let time = |seconds| match Duration::try_from_secs_f64(seconds) {
            Ok(time) if !time.is_zero() => Ok(time),
            _ => Err(AnnealingError::Seconds { seconds }),
        };
        Ok(Self { seed, evaluations, time: seconds.map(time).transpose()?, islands, cooling })
    }

    /// Evaluations of one island before its descent.
    fn budget(&self, movable: u64) -> u64 {
        match (self.evaluations, self.time) {
            (Some(evaluations), _) => evaluations,
            (None, Some(_)) => u64::MAX,
            (None, None) => default_evaluations(movable),
        }
    }

    /// Time of one island where only so many can search at once.
    fn time_of_island(&self, at_once: u32) -> Option<Duration> {
        let turns = self.islands.div_ceil(at_once.clamp(1, self.islands));
        self.time.map(|time| time / turns)
    }

    /// Searches on one island.
    fn search(
        &self,
        ground: &Ground<'_>,
        island: u32,
        cx: &Context<'_>,
        progress: &Progress,
    ) -> Result<Island, ObjectiveError> {
        let random = Pcg64::from_seed(seed_stream(AnnealingStage::KIND, self.seed, u64::from(island)));
        let begin = Instant::now();
        let time = self.time_of_island(u32::try_from(cx.threads()).unwrap_or(u32::MAX));
        let annealed = time.and_then(|time| begin.checked_add(time.mul_f64(1.0 - DESCENT_SHARE)));
        let ended = time.and_then(|time| begin.checked_add(time));
        let budget = self.budget(ground.movable.len() as u64);
        let mut meter = Meter::new(budget, annealed, *cx, progress);
        let start = Assignment::new(ground.problem, &ground.start)?;
        let mut chain = Chain::new(ground, start, random, self.cooling);
        chain.run(&mut meter);
        if !meter.interrupted() {
            meter.extend(budget.max(DESCENT_EVALUATIONS), ended);
            chain.descend(&mut meter)?;
        }
        Ok(Island {
            slots: chain.incumbent.slots,
            cost: chain.incumbent.cost,
            evaluations: meter.spent(),
            convergence: chain.incumbent.improvements,
            interrupted: meter.interrupted(),
        })
    }
}

impl Mapper for Annealing {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<Found, ObjectiveError> {
        let Some(ground) = Ground::new(problem)? else {
            return Ok(Found::at_once(linear(problem.ranks())));
        };
        let progress =
            Progress::new(self.budget(ground.movable.len() as u64).checked_mul(u64::from(self.islands)));
        let at_once = cx.threads().max(1);
        let found = (0..self.islands)
            .into_par_iter()
            .with_min_len((self.islands as usize).div_ceil(at_once))
            .map(|island| self.search(&ground, island, cx, &progress))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(best(problem, found))
    }
}

/// What all islands share.
struct Ground<'p> {
    problem: &'p Problem,
    /// Ranks with neighbours; where the others are costs nothing.
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
            (0..problem.ranks() as u32).filter(|&rank| !problem.neighbours(rank).is_empty()).collect();
        if movable.is_empty() || problem.distance().levels() < 2 {
            return Ok(None);
        }
        let starts = [linear(problem.ranks()), greedy(problem)];
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

/// What one island found.
struct Island {
    slots: Vec<u32>,
    cost: i64,
    evaluations: u64,
    /// Evaluations and the cost that they led to.
    convergence: Vec<(u64, i64)>,
    interrupted: bool,
}

/// Joins the islands; the best one wins, the lowest of equals.
fn best(problem: &Problem, islands: Vec<Island>) -> Found {
    let mut found = Found::at_once(Vec::new());
    let mut best_cost = None;
    for (number, island) in islands.into_iter().enumerate() {
        found.evaluations += island.evaluations;
        found.complete &= !island.interrupted;
        found.convergence.extend(island.convergence.iter().map(|&(evaluations, cost)| ConvergencePoint {
            island: number as u32,
            evaluations,
            cost: problem.real(cost),
        }));
        if best_cost.is_none_or(|best| island.cost < best) {
            best_cost = Some(island.cost);
            found.slots = island.slots;
        }
    }
    found
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

    #[test]
    fn islands_that_take_turns_share_the_time() {
        let params = AnnealingParams { seconds: Some(6.0), islands: 5, ..AnnealingParams::default() };
        let mapper = Annealing::new(&params).unwrap();
        let seconds = |at_once| mapper.time_of_island(at_once).unwrap().as_secs();
        assert_eq!([0, 1, 2, 4, 5, 64].map(seconds), [1, 1, 2, 3, 6, 6]);
    }

    #[test]
    fn senseless_parameters_are_refused() {
        let message = |params: AnnealingParams| Annealing::new(&params).unwrap_err().to_string();
        let params = AnnealingParams::default;
        assert_eq!(message(AnnealingParams { islands: 0, ..params() }), "islands is 0");
        assert_eq!(message(AnnealingParams { islands: 5000, ..params() }), "islands is 5000");
        assert_eq!(message(AnnealingParams { evaluations: Some(0), ..params() }), "evaluations is 0");
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let expected = format!("seconds is {seconds}");
            assert_eq!(message(AnnealingParams { seconds: Some(seconds), ..params() }), expected);
        }
    }
}
