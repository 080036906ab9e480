//! `schedule/auto` for ranks: simulated annealing of the makespan, along the critical path.
//!
//! Islands start from the best initial placements. Every annealing cycle begins with a fast one on the surrogate objective, which
//! needs no pass over the program. Then most proposals move one end of a message on the critical path closer to the other.

use hopmap_islands::{Candidate, Evolution, Exchange, Meter};
use hopmap_model::{Context, Error, seed_stream};
use hopmap_random::{Draw, Pcg64, Rng, SeedableRng};
use hopmap_replay::{ExchangeEvaluator, MakespanEvaluator, ReplayProblem};
use serde::{Deserialize, Serialize};

use super::search::RankSearch;
use super::starts::{Start, starts};
use crate::{AutoParams, SearchResult};

/// Default nodes and messages of all passes together, and the minimum and maximum number of evaluations.
const WORK: u64 = 4_000_000_000;
const EVALUATIONS: [u64; 2] = [4_000, 400_000];
/// Number of epochs of a search.
const EPOCHS: u64 = 32;
/// Annealing cycles of a search: each has twice as many epochs as the one before.
const CYCLES: [u64; 4] = [0, 4, 12, EPOCHS];
/// Proposals of annealing on the surrogate objective, per rank and at most per evaluation; and the fraction of a time limit after
/// which it ends.
const PROPOSALS: u64 = 400;
const RELAXING: f64 = 0.7;
/// Temperatures of a cycle relative to the possible gain.
const HOT: f64 = 0.005;
const COLD: f64 = 0.00003;
/// Weight of the surrogate objective of the best start, relative to the possible gain.
const SURROGATE: f64 = 0.3;
/// One in this many proposals is unrestricted.
const ANYWHERE: usize = 8;
/// Maximum excess of a start over the best one, relative to the possible gain, for an island to begin with it.
const AS_GOOD: f64 = 0.3;
/// Temperatures of annealing on the surrogate objective, relative to its mean change.
const RELAXED_HOT: f64 = 0.5;
const RELAXED_COLD: f64 = 0.002;
/// Number of exchanges for the estimate of the mean change.
const SAMPLES: u64 = 256;
/// Exchanges between checks of the clock.
const CHECK: u64 = 1024;
/// Marks a free slot.
const FREE: u32 = u32::MAX;

/// The search.
struct Annealing<'a> {
    search: &'a RankSearch<'a>,
    problem: &'a ReplayProblem,
    starts: &'a [Start],
    lower_bound: i64,
    seed: u64,
    /// Resolution of the surrogate objective in ticks.
    weight: f64,
    /// Proposals of annealing on the surrogate objective.
    proposals: u64,
    /// Evaluations per epoch.
    epoch: u64,
}

/// An island between two epochs.
#[derive(Clone, Serialize, Deserialize)]
struct Island {
    random: Pcg64,
    slots: Vec<u32>,
    best: Candidate<Vec<u32>>,
    cycle: u32,
}

/// `schedule/auto`: evaluates all starts, begins the islands with the best of them, and anneals the makespan. Never worse than
/// any start.
pub fn auto(
    params: &AutoParams,
    search: &RankSearch<'_>,
    cx: &Context<'_>,
) -> Result<SearchResult<Vec<u32>>, Error> {
    let problem = search.problem;
    let budget = params.budget()?;
    let starts = starts(search)?;
    let lower_bound = problem.lower_bound();
    for start in &starts {
        cx.log(format!("{}: makespan {}", start.name, problem.real(start.makespan)));
    }
    let default = (WORK / search.size().max(1)).clamp(EVALUATIONS[0], EVALUATIONS[1]);
    let epoch = match params.time_limit_s {
        Some(_) if params.evaluations.is_none() => search.passes_between_checks().clamp(64, 4096),
        _ => budget.evaluations(default).div_ceil(EPOCHS).max(1),
    };
    let gain = starts.first().map_or(0, |start| start.makespan - lower_bound) as f64;
    let surrogate = starts.first().map_or(0, |start| problem.surrogate(&start.slots)).max(1) as f64;
    let weight = SURROGATE * gain / surrogate;
    let proposals =
        (PROPOSALS * problem.ranks() as u64).min(budget.evaluations(default).saturating_mul(PROPOSALS));
    let annealing = Annealing {
        weight,
        proposals,
        search,
        problem,
        starts: &starts,
        lower_bound,
        seed: params.seed,
        epoch,
    };
    Ok(SearchResult::of_islands(budget.evolve(&annealing, default, cx)?, lower_bound))
}

impl Evolution for Annealing<'_> {
    type Island = Island;
    type Solution = Vec<u32>;

    fn begin(&self, island: u32, meter: &mut Meter<'_>) -> Result<Island, Error> {
        let best = self.starts.first().ok_or_else(|| Error::msg("no initial placement exists"))?;
        let worst = best.makespan + ((best.makespan - self.lower_bound) as f64 * AS_GOOD) as i64;
        let good = self.starts.iter().take_while(|start| start.makespan <= worst).count().max(1);
        let mut island = Island {
            random: Pcg64::from_seed(seed_stream(AutoParams::KIND, self.seed, u64::from(island))),
            slots: self.starts[island as usize % good].slots.clone(),
            best: Candidate { cost: best.makespan, solution: best.slots.clone() },
            cycle: 0,
        };
        self.relax(&mut island, meter);
        Ok(island)
    }

    fn advance(&self, island: &mut Island, _: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        let cooling = self.cooling(meter);
        if cooling.cycle > island.cycle {
            island.cycle = cooling.cycle;
            island.slots.clone_from(&island.best.solution);
            self.relax(island, meter);
        }
        let mut placement = ExchangeEvaluator::new(self.problem, &island.slots, self.weight);
        let mut next_look = self.search.passes_between_checks();
        for turn in 0..self.epoch {
            let is_done = island.best.cost <= self.lower_bound || placement.is_tight();
            if is_done || !meter.take() {
                return Ok(false);
            }
            let (rank, slot) = self.propose(&placement, &mut island.random);
            let limit = placement.energy() + (cooling.temperature(turn) * island.random.exponential()) as i64;
            if slot != placement.slots()[rank as usize]
                && placement.exchange(rank, slot, limit)
                && placement.makespan() < island.best.cost
            {
                island.best.cost = placement.makespan();
                island.best.solution.copy_from_slice(placement.slots());
                meter.record(island.best.cost);
            }
            if placement.passes() >= next_look {
                next_look = placement.passes() + self.search.passes_between_checks();
                if !meter.look() {
                    return Ok(false);
                }
            }
        }
        island.slots.copy_from_slice(placement.slots());
        Ok(true)
    }

    fn best(&self, island: &Island) -> Candidate<Vec<u32>> {
        island.best.clone()
    }

    fn exchange(&self, epoch: u64) -> Exchange {
        if CYCLES.contains(&(epoch + 1)) || epoch % EPOCHS == EPOCHS - 1 {
            Exchange::Ring
        } else {
            Exchange::Nobody
        }
    }

    fn receive(&self, island: &mut Island, _: u64, migrants: Vec<Candidate<Vec<u32>>>) {
        if let Some(best) = migrants.into_iter().min_by_key(|migrant| migrant.cost)
            && best.cost < island.best.cost
        {
            island.best = best;
        }
    }
}

/// The temperature schedule of an epoch.
struct Cooling {
    cycle: u32,
    begin: f64,
    /// The cooling factor per evaluation.
    factor: f64,
}

impl Cooling {
    fn temperature(&self, turn: u64) -> f64 {
        self.begin * libm::exp(self.factor * turn as f64)
    }
}

impl Annealing<'_> {
    /// Anneals on the surrogate objective, and continues from the result if that is better.
    fn relax(&self, island: &mut Island, meter: &mut Meter<'_>) {
        let time = meter.time_left();
        let mut goes_on = || {
            let left = meter.time_left().zip(time).is_none_or(|(left, all)| left >= all.mul_f64(RELAXING));
            left && meter.look()
        };
        let slots = relax(self.search, &island.slots, self.proposals, &mut island.random, &mut goes_on);
        let mut evaluator = MakespanEvaluator::new(self.problem);
        let mut energy = |slots: &[u32]| {
            let makespan = evaluator.makespan(slots);
            (makespan, makespan + (self.weight * self.problem.surrogate(slots) as f64) as i64)
        };
        let (before, (makespan, after)) = (energy(&island.slots).1, energy(&slots));
        if makespan < island.best.cost {
            island.best = Candidate { cost: makespan, solution: slots.clone() };
            meter.record(makespan);
        }
        if after < before {
            island.slots = slots;
        }
    }

    /// The temperatures of the next epoch.
    fn cooling(&self, meter: &Meter<'_>) -> Cooling {
        let spent = meter.spent() as f64;
        let total = (spent + meter.outlook() as f64).max(1.0);
        let place = EPOCHS as f64 * (spent / total);
        let cycle = CYCLES[1..].iter().position(|&end| place < end as f64).unwrap_or(CYCLES.len() - 2);
        let [begin, end] = [CYCLES[cycle], CYCLES[cycle + 1]].map(|end| end as f64);
        let gain = self.starts.first().map_or(0, |start| start.makespan - self.lower_bound).max(1) as f64;
        let fall = libm::log(COLD / HOT);
        let evaluations = total * (end - begin) / EPOCHS as f64;
        let part = ((place - begin) / (end - begin)).clamp(0.0, 1.0);
        Cooling {
            cycle: cycle as u32,
            begin: gain * HOT * libm::exp(fall * part),
            factor: fall / evaluations,
        }
    }

    /// A rank and a slot for it: usually an end of a message on the critical path, and a slot closer to the other end.
    fn propose(&self, placement: &ExchangeEvaluator<'_>, random: &mut Pcg64) -> (u32, u32) {
        let draw = random.next_u64();
        if let Some(channel) = placement.critical_channel(draw).filter(|_| random.below(ANYWHERE) > 0) {
            let channel = self.problem.program().channels().all[channel as usize];
            let coin = random.next_u64() & 1 == 0;
            let (rank, other) = if coin { (channel.from, channel.to) } else { (channel.to, channel.from) };
            let [slot, anchor] = [rank, other].map(|rank| placement.slots()[rank as usize]);
            if let Some(slot) = self.search.draw_nearer(slot, anchor, random) {
                return (rank, slot);
            }
        }
        (random.below(self.problem.ranks()) as u32, random.below(self.problem.slots()) as u32)
    }
}

/// A placement and its surrogate objective.
struct Relaxation<'p> {
    search: &'p RankSearch<'p>,
    problem: &'p ReplayProblem,
    slots: Vec<u32>,
    owner: Vec<u32>,
    /// The contribution of every channel.
    surrogate: Vec<i64>,
    /// The previous slot of the rank of the last exchange.
    from: u32,
    /// Channels that an exchange affects, and their new contributions.
    changes: Vec<(u32, i64)>,
}

/// Anneals a placement on the surrogate objective with a number of proposals, as long as `goes_on` returns true. An exchange
/// costs a look at the channels of two ranks, not a pass over the program. Returns the best final placement.
fn relax(
    search: &RankSearch<'_>,
    slots: &[u32],
    proposals: u64,
    random: &mut Pcg64,
    mut goes_on: impl FnMut() -> bool,
) -> Vec<u32> {
    let mut relaxation = Relaxation::new(search, slots);
    let mean = relaxation.mean_change(random);
    let (mut surrogate, mut best) = (0i64, (0i64, slots.to_vec()));
    let fall = libm::pow(RELAXED_COLD / RELAXED_HOT, 1.0 / proposals.max(1) as f64);
    let mut temperature = RELAXED_HOT * mean;
    for turn in 0..proposals {
        if turn % CHECK == 0 && !goes_on() {
            break;
        }
        temperature *= fall;
        let (rank, slot) = relaxation.propose(random);
        let delta = relaxation.exchange(rank, slot);
        if delta as f64 <= temperature * random.exponential() {
            surrogate += delta;
            relaxation.keep();
            // Copies cost more than exchanges: the best placement is only tracked at the cold end.
            if 2 * turn > proposals && surrogate < best.0 && turn % 64 == 0 {
                best = (surrogate, relaxation.slots.clone());
            }
        } else {
            relaxation.swap_back(rank);
        }
    }
    if surrogate <= best.0 { relaxation.slots } else { best.1 }
}

impl<'p> Relaxation<'p> {
    fn new(search: &'p RankSearch<'p>, slots: &[u32]) -> Self {
        let problem = search.problem;
        let mut owner = vec![FREE; problem.slots()];
        (0..).zip(slots).for_each(|(rank, &slot)| owner[slot as usize] = rank);
        let channels = 0..problem.program().channels().all.len() as u32;
        let surrogate = channels.map(|number| problem.surrogate_of(number, slots)).collect();
        Self { search, problem, slots: slots.to_vec(), owner, surrogate, from: 0, changes: Vec::new() }
    }

    /// The mean change of random exchanges, at least one.
    fn mean_change(&mut self, random: &mut Pcg64) -> f64 {
        let mut sum = 0.0;
        for _ in 0..SAMPLES {
            let (rank, slot) = self.propose(random);
            sum += self.exchange(rank, slot).abs() as f64;
            self.swap_back(rank);
        }
        (sum / SAMPLES as f64).max(1.0)
    }

    /// A rank and a slot for it: usually closer to one of its partners.
    fn propose(&self, random: &mut Pcg64) -> (u32, u32) {
        let rank = random.below(self.problem.ranks()) as u32;
        let channels = self.problem.program().channels();
        let own = channels.of(rank);
        if !own.is_empty() && random.below(ANYWHERE) > 0 {
            let channel = channels.all[own[random.below(own.len())] as usize];
            let anchor = self.slots[(if channel.from == rank { channel.to } else { channel.from }) as usize];
            if let Some(slot) = self.search.draw_nearer(self.slots[rank as usize], anchor, random) {
                return (rank, slot);
            }
        }
        (rank, random.below(self.problem.slots()) as u32)
    }

    /// Applies an exchange, and returns the change of the surrogate objective.
    fn exchange(&mut self, rank: u32, slot: u32) -> i64 {
        let other = self.swap(rank, slot);
        self.changes.clear();
        let channels = self.problem.program().channels();
        let of_other = if other == FREE || other == rank { &[][..] } else { channels.of(other) };
        let mut delta = 0;
        for &number in channels.of(rank) {
            let after = self.problem.surrogate_of(number, &self.slots);
            delta += after - self.surrogate[number as usize];
            self.changes.push((number, after));
        }
        for &number in of_other {
            let channel = channels.all[number as usize];
            if channel.from != rank && channel.to != rank {
                let after = self.problem.surrogate_of(number, &self.slots);
                delta += after - self.surrogate[number as usize];
                self.changes.push((number, after));
            }
        }
        delta
    }

    /// Puts a rank on a slot, and the rank there on its previous slot.
    fn swap(&mut self, rank: u32, slot: u32) -> u32 {
        let from = std::mem::replace(&mut self.slots[rank as usize], slot);
        let other = std::mem::replace(&mut self.owner[slot as usize], rank);
        if from != slot {
            self.owner[from as usize] = other;
            if other != FREE {
                self.slots[other as usize] = from;
            }
        }
        self.from = from;
        other
    }

    /// Reverts the last exchange.
    fn swap_back(&mut self, rank: u32) {
        self.swap(rank, self.from);
    }

    /// Commits the last exchange.
    fn keep(&mut self) {
        for &(channel, surrogate) in &self.changes {
            self.surrogate[channel as usize] = surrogate;
        }
    }
}
