//! Tabu search of the makespan, along the critical path.
//!
//! A step evaluates some exchanges of the neighbourhood and makes the best one that is not tabu, even if the makespan
//! rises, as in Nowicki and Smutnicki (1996), whose moves for job shops are also those of the critical path. A rank
//! may not return to a slot for a random number of steps after it left (Taillard 1991), except to a new best
//! makespan. Only exchanges that may be the best of their step take a pass over the program.

use std::time::Instant;

use hopmap_islands::{Budget, Candidate as Best, Evolution, Meter};
use hopmap_model::{Context, Error, seed_stream};
use hopmap_random::{Draw, Pcg64, SeedableRng};
use hopmap_replay::ExchangeEvaluator;
use serde::{Deserialize, Serialize};

use super::Makespan;
use super::neighbourhood::Neighbourhood;
use crate::mapper::SearchResult;
use crate::params::{TabuParams, kind};

/// Exchanges of a step.
const EXCHANGES: u64 = 32;
/// Steps of an epoch.
const STEPS: u64 = 128;
/// Steps for which a slot is tabu: at least this many, and fewer than these times the ranks more.
const SHORTEST: usize = 4;
const PER_RANK: usize = 2;

/// The search on all islands.
struct Search<'a> {
    neighbourhood: Neighbourhood<'a>,
    seed: u64,
}

/// An island between two epochs.
#[derive(Clone, Serialize, Deserialize)]
struct Island {
    random: Pcg64,
    slots: Vec<u32>,
    best: Best<Vec<u32>>,
    step: u64,
    tabu: Vec<Tabu>,
}

/// A slot to which a rank may not return before a step.
#[derive(Clone, Serialize, Deserialize)]
struct Tabu {
    rank: u32,
    slot: u32,
    until: u64,
}

impl Makespan<'_> {
    /// The best mapping of independent tabu searches; never worse than a candidate.
    pub(crate) fn tabu(&self, params: &TabuParams, cx: &Context<'_>) -> Result<SearchResult, Error> {
        let begin = Instant::now();
        let budget = Budget::new(params.evaluations, params.time_limit_s, params.islands)?;
        let neighbourhood = Neighbourhood::new(self, params.seed, &budget, cx)?;
        let budget = budget.after(0, begin.elapsed());
        let bound = neighbourhood.bound;
        let search = Search { neighbourhood, seed: params.seed };
        // Islands of a start that was interrupted cannot be resumed identically.
        let cx = if cx.should_stop() { cx.without_state() } else { *cx };
        Ok(self.result(budget.evolve(&search, self.default_evaluations(), &cx)?, bound))
    }
}

impl Evolution for Search<'_> {
    type Island = Island;
    type Solution = Vec<u32>;

    fn begin(&self, island: u32, _: &mut Meter<'_>) -> Result<Island, Error> {
        Ok(Island {
            random: Pcg64::from_seed(seed_stream(kind::TABU, self.seed, u64::from(island))),
            slots: self.neighbourhood.start(island as usize).to_vec(),
            best: self.neighbourhood.best(),
            step: 0,
            tabu: Vec::new(),
        })
    }

    fn advance(&self, island: &mut Island, _: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        let mut placed = self.neighbourhood.placed(&island.slots);
        for _ in 0..STEPS {
            let is_done = island.best.cost <= self.neighbourhood.bound || placed.is_tight();
            if is_done || !self.step(island, &mut placed, meter) {
                return Ok(false);
            }
        }
        island.slots.copy_from_slice(placed.slots());
        Ok(true)
    }

    fn best(&self, island: &Island) -> Best<Vec<u32>> {
        island.best.clone()
    }
}

impl Search<'_> {
    /// Makes the best exchange; `false` if the meter stopped the search.
    fn step(&self, island: &mut Island, placed: &mut ExchangeEvaluator<'_>, meter: &mut Meter<'_>) -> bool {
        let between = self.neighbourhood.makespan.passes_between_looks();
        let mut next_look = placed.passes() + between;
        island.step += 1;
        island.tabu.retain(|tabu| tabu.until > island.step);
        let (mut found, mut limit) = (None, i64::MAX);
        for _ in 0..EXCHANGES {
            let is_due = placed.passes() >= next_look;
            if !meter.take() || (is_due && !meter.look()) {
                return false;
            }
            next_look = if is_due { placed.passes() + between } else { next_look };
            let (rank, slot) = self.neighbourhood.propose(placed, &mut island.random);
            if !self.neighbourhood.admits(placed, rank, slot) {
                continue;
            }
            let here = placed.slots()[rank as usize];
            let aspired = if island.is_tabu(placed, rank, slot) { island.best.cost - 1 } else { limit };
            if placed.exchange(rank, slot, limit.min(aspired)) {
                (found, limit) = (Some((rank, slot)), placed.energy() - 1);
                if placed.makespan() < island.best.cost {
                    island.best = Best { cost: placed.makespan(), solution: placed.slots().to_vec() };
                    meter.record(island.best.cost);
                }
                placed.exchange(rank, here, i64::MAX);
            }
        }
        if let Some((rank, slot)) = found {
            island.forbid(placed, rank);
            placed.rank_at(slot).into_iter().for_each(|other| island.forbid(placed, other));
            placed.exchange(rank, slot, i64::MAX);
        }
        true
    }
}

impl Island {
    /// Whether an exchange brings a rank back.
    fn is_tabu(&self, placed: &ExchangeEvaluator<'_>, rank: u32, slot: u32) -> bool {
        let other = placed.rank_at(slot).map(|other| (other, placed.slots()[rank as usize]));
        self.tabu
            .iter()
            .any(|tabu| (tabu.rank, tabu.slot) == (rank, slot) || Some((tabu.rank, tabu.slot)) == other)
    }

    /// Keeps a rank from its slot once it has left.
    fn forbid(&mut self, placed: &ExchangeEvaluator<'_>, rank: u32) {
        let tenure = SHORTEST + self.random.below(PER_RANK * self.slots.len());
        let slot = placed.slots()[rank as usize];
        self.tabu.push(Tabu { rank, slot, until: self.step + tenure as u64 });
    }
}
