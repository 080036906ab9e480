//! Simulated annealing of the makespan, along the critical path.
//!
//! `neighbourhood.rs` has the starts and the proposals. Most rejected exchanges take no pass over the program
//! (`ExchangeEvaluator`).

use std::time::Instant;

use hopmap_islands::{Budget, Candidate as Best, Evolution, Exchange, Meter};
use hopmap_model::{Context, Error, seed_stream};
use hopmap_random::{Draw, Pcg64, SeedableRng};
use serde::{Deserialize, Serialize};

use super::Makespan;
use super::neighbourhood::Neighbourhood;
use crate::mapper::SearchResult;
use crate::params::{AutoParams, kind};

/// Number of epochs of a search, and the epochs at which annealing cycles begin and end. Each cycle is twice as
/// long as the one before.
const EPOCHS: u64 = 32;
const CYCLES: [u64; 4] = [0, 4, 12, EPOCHS];
/// Temperatures of a cycle relative to the possible gain: the makespan of the best candidate less the bound.
const HOT: f64 = 0.05;
const COLD: f64 = 0.0003;

/// The search on all islands.
struct Annealing<'a> {
    neighbourhood: Neighbourhood<'a>,
    seed: u64,
    /// Evaluations per epoch.
    epoch: u64,
}

/// An island between two epochs.
#[derive(Clone, Serialize, Deserialize)]
struct Island {
    random: Pcg64,
    slots: Vec<u32>,
    best: Best<Vec<u32>>,
    number: usize,
    cycle: usize,
}

impl Makespan<'_> {
    /// The best mapping within the budget; never worse than a candidate.
    pub(crate) fn anneal(&self, params: &AutoParams, cx: &Context<'_>) -> Result<SearchResult, Error> {
        let begin = Instant::now();
        let budget = Budget::new(params.evaluations, params.time_limit_s, params.islands)?;
        let neighbourhood = Neighbourhood::new(self, params.seed, &budget, cx)?;
        let budget = budget.after(0, begin.elapsed());
        let default = self.default_evaluations();
        let epoch = match params.time_limit_s {
            Some(_) if params.evaluations.is_none() => self.passes_between_looks().clamp(64, 4096),
            _ => budget.evaluations(default).div_ceil(EPOCHS).max(1),
        };
        let bound = neighbourhood.bound;
        let annealing = Annealing { neighbourhood, seed: params.seed, epoch };
        // Islands of a start that was interrupted cannot be resumed identically.
        let cx = if cx.should_stop() { cx.without_state() } else { *cx };
        Ok(self.result(budget.evolve(&annealing, default, &cx)?, bound))
    }
}

impl Evolution for Annealing<'_> {
    type Island = Island;
    type Solution = Vec<u32>;

    fn begin(&self, island: u32, _: &mut Meter<'_>) -> Result<Island, Error> {
        Ok(Island {
            random: Pcg64::from_seed(seed_stream(kind::AUTO, self.seed, u64::from(island))),
            slots: self.neighbourhood.start(island as usize).to_vec(),
            best: self.neighbourhood.best(),
            number: island as usize,
            cycle: 0,
        })
    }

    fn advance(&self, island: &mut Island, _: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        let neighbourhood = &self.neighbourhood;
        let cooling = self.cooling(meter);
        if cooling.cycle > island.cycle {
            island.cycle = cooling.cycle;
            // The longest cycle goes on from the incumbent, the others from candidates.
            island.slots = match cooling.cycle + 2 < CYCLES.len() {
                true => neighbourhood.start(island.number + cooling.cycle).to_vec(),
                false => island.best.solution.clone(),
            };
        }
        let mut placed = neighbourhood.placed(&island.slots);
        let mut next_look = neighbourhood.makespan.passes_between_looks();
        for turn in 0..self.epoch {
            let is_done = island.best.cost <= neighbourhood.bound || placed.is_tight();
            if is_done || !meter.take() {
                return Ok(false);
            }
            let (rank, slot) = neighbourhood.propose(&placed, &mut island.random);
            let limit = placed.energy() + (cooling.temperature(turn) * island.random.exponential()) as i64;
            if neighbourhood.admits(&placed, rank, slot)
                && placed.exchange(rank, slot, limit)
                && placed.makespan() < island.best.cost
            {
                island.best = Best { cost: placed.makespan(), solution: placed.slots().to_vec() };
                meter.record(island.best.cost);
            }
            if placed.passes() >= next_look {
                next_look = placed.passes() + neighbourhood.makespan.passes_between_looks();
                if !meter.look() {
                    return Ok(false);
                }
            }
        }
        island.slots.copy_from_slice(placed.slots());
        Ok(true)
    }

    fn best(&self, island: &Island) -> Best<Vec<u32>> {
        island.best.clone()
    }

    fn exchange(&self, epoch: u64) -> Exchange {
        let ends = CYCLES.contains(&(epoch + 1)) || epoch % EPOCHS == EPOCHS - 1;
        if ends { Exchange::Ring } else { Exchange::Nobody }
    }

    fn receive(&self, island: &mut Island, _: u64, migrants: Vec<Best<Vec<u32>>>) {
        let best = migrants.into_iter().min_by_key(|migrant| migrant.cost);
        if let Some(best) = best.filter(|best| best.cost < island.best.cost) {
            island.best = best;
        }
    }
}

/// The temperatures of an epoch.
struct Cooling {
    cycle: usize,
    begin: f64,
    /// Logarithm of the factor per evaluation.
    fall: f64,
}

impl Cooling {
    fn temperature(&self, turn: u64) -> f64 {
        self.begin * libm::exp(self.fall * turn as f64)
    }
}

impl Annealing<'_> {
    /// The temperatures of the next epoch, from the share of the budget that is spent.
    fn cooling(&self, meter: &Meter<'_>) -> Cooling {
        let spent = meter.spent() as f64;
        let total = (spent + meter.outlook() as f64).max(1.0);
        let at = EPOCHS as f64 * (spent / total);
        let cycle = CYCLES[1..].iter().position(|&end| at < end as f64).unwrap_or(CYCLES.len() - 2);
        let [begin, end] = [CYCLES[cycle], CYCLES[cycle + 1]].map(|end| end as f64);
        let fall = libm::log(COLD / HOT);
        let part = ((at - begin) / (end - begin)).clamp(0.0, 1.0);
        let evaluations = total * (end - begin) / EPOCHS as f64;
        Cooling {
            cycle,
            begin: self.neighbourhood.gain * HOT * libm::exp(fall * part),
            fall: fall / evaluations,
        }
    }
}
