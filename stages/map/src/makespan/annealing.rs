//! Simulated annealing of the makespan, along the critical path.
//!
//! Most proposals move one end of a message on the critical path closer to the other end. A surrogate, the squared
//! delays of all messages that can delay the end, breaks the ties between mappings of equal makespan. Most rejected
//! exchanges take no pass over the program (`ExchangeEvaluator`).

use std::time::Instant;

use hopmap_islands::{Budget, Candidate as Best, Evolution, Exchange, Meter};
use hopmap_model::{Context, Error, seed_stream};
use hopmap_random::{Draw, Pcg64, Rng, SeedableRng};
use hopmap_replay::ExchangeEvaluator;
use serde::{Deserialize, Serialize};

use super::{Candidate, Makespan};
use crate::moves::draw_closer;
use crate::params::kind;
use crate::{AutoParams, SearchResult};

/// Default nodes and messages of all passes together, and the least and largest number of evaluations.
const WORK: u64 = 4_000_000_000;
const EVALUATIONS: [u64; 2] = [4_000, 400_000];
/// Number of epochs of a search, and the epochs at which annealing cycles begin and end. Each cycle is twice as
/// long as the one before.
const EPOCHS: u64 = 32;
const CYCLES: [u64; 4] = [0, 4, 12, EPOCHS];
/// Temperatures of a cycle relative to the possible gain: the makespan of the best candidate less the bound.
const HOT: f64 = 0.05;
const COLD: f64 = 0.0003;
/// Weight of the surrogate of the best candidate, relative to the possible gain.
const SURROGATE: f64 = 0.3;
/// One in this many proposals is unrestricted.
const ANYWHERE: usize = 8;
/// Excess over the best candidate, relative to the possible gain, up to which a cycle begins with another one.
const AS_GOOD: f64 = 0.3;

/// The search on all islands.
struct Annealing<'a> {
    makespan: &'a Makespan<'a>,
    starts: Vec<Candidate>,
    bound: i64,
    /// The possible gain.
    gain: f64,
    seed: u64,
    /// Ticks per unit of the surrogate.
    weight: f64,
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
        let starts = self.candidates(params.seed, &budget, cx)?;
        let budget = budget.after(0, begin.elapsed());
        let (bound, best) = (self.replay.lower_bound(), &starts[0]);
        let gain = (best.makespan - bound).max(1) as f64;
        let default = (WORK / self.size()).clamp(EVALUATIONS[0], EVALUATIONS[1]);
        let epoch = match params.time_limit_s {
            Some(_) if params.evaluations.is_none() => self.passes_between_looks().clamp(64, 4096),
            _ => budget.evaluations(default).div_ceil(EPOCHS).max(1),
        };
        let weight = SURROGATE * gain / self.replay.surrogate(&best.slots).max(1) as f64;
        let annealing = Annealing { makespan: self, starts, bound, gain, seed: params.seed, weight, epoch };
        // Islands of a start that was interrupted cannot be resumed identically.
        let cx = if cx.should_stop() { cx.without_state() } else { *cx };
        Ok(self.result(budget.evolve(&annealing, default, &cx)?, bound))
    }
}

impl Evolution for Annealing<'_> {
    type Island = Island;
    type Solution = Vec<u32>;

    fn begin(&self, island: u32, _: &mut Meter<'_>) -> Result<Island, Error> {
        let best = &self.starts[0];
        Ok(Island {
            random: Pcg64::from_seed(seed_stream(kind::AUTO, self.seed, u64::from(island))),
            slots: self.start(island as usize).to_vec(),
            best: Best { cost: best.makespan, solution: best.slots.clone() },
            number: island as usize,
            cycle: 0,
        })
    }

    fn advance(&self, island: &mut Island, _: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        let cooling = self.cooling(meter);
        if cooling.cycle > island.cycle {
            island.cycle = cooling.cycle;
            // The longest cycle goes on from the incumbent, the others from candidates.
            island.slots = match cooling.cycle + 2 < CYCLES.len() {
                true => self.start(island.number + cooling.cycle).to_vec(),
                false => island.best.solution.clone(),
            };
        }
        let mut placed = ExchangeEvaluator::new(&self.makespan.replay, &island.slots, self.weight);
        let mut next_look = self.makespan.passes_between_looks();
        for turn in 0..self.epoch {
            let is_done = island.best.cost <= self.bound || placed.is_tight();
            if is_done || !meter.take() {
                return Ok(false);
            }
            let (rank, slot) = self.propose(&placed, &mut island.random);
            let limit = placed.energy() + (cooling.temperature(turn) * island.random.exponential()) as i64;
            if self.admits(&placed, rank, slot)
                && placed.exchange(rank, slot, limit)
                && placed.makespan() < island.best.cost
            {
                island.best = Best { cost: placed.makespan(), solution: placed.slots().to_vec() };
                meter.record(island.best.cost);
            }
            if placed.passes() >= next_look {
                next_look = placed.passes() + self.makespan.passes_between_looks();
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
    /// A candidate that is about as good as the best one.
    fn start(&self, number: usize) -> &[u32] {
        let worst = self.starts[0].makespan + (self.gain * AS_GOOD) as i64;
        let good = self.starts.iter().take_while(|start| start.makespan <= worst).count();
        &self.starts[number % good].slots
    }

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
        Cooling { cycle, begin: self.gain * HOT * libm::exp(fall * part), fall: fall / evaluations }
    }

    /// A rank and a slot for it: usually an end of a message on the critical path, and a slot closer to the other
    /// end.
    fn propose(&self, placed: &ExchangeEvaluator<'_>, random: &mut Pcg64) -> (u32, u32) {
        let draw = random.next_u64();
        if let Some(channel) = placed.critical_channel(draw).filter(|_| random.below(ANYWHERE) > 0) {
            let channel = self.makespan.replay.program().channels().all[channel as usize];
            let bits = random.next_u64();
            let ends = [(channel.from, channel.to), (channel.to, channel.from)];
            let (rank, other) = ends[usize::from(bits.is_multiple_of(2))];
            let [here, there] = [rank, other].map(|rank| placed.slots()[rank as usize]);
            let distance = self.makespan.problem.distance();
            if let Some(slot) = draw_closer(distance, here, there, (bits >> 32) as u32) {
                return (rank, slot);
            }
        }
        let replay = &self.makespan.replay;
        (random.below(replay.ranks()) as u32, random.below(replay.slots()) as u32)
    }

    /// Whether an exchange changes the mapping and satisfies the constraints.
    fn admits(&self, placed: &ExchangeEvaluator<'_>, rank: u32, slot: u32) -> bool {
        let here = placed.slots()[rank as usize];
        self.makespan.admits(placed.rank_at(slot), rank, slot, here)
    }
}
