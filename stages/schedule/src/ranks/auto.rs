//! `schedule/auto` of ranks: annealing by the makespan, along the critical path.

use hopmap_islands::{Budget, Candidate, Evolution, Exchange, Meter};
use hopmap_model::{Context, Error, Stage, seed_stream};
use hopmap_random::{Draw, Pcg64, Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::RankEvaluator;
use super::problem::RankProblem;
use super::relax::relax;
use super::starts::{Start, starts};
use super::walk::{Walk, strain};
use super::{bound, found};
use crate::{AutoParams, AutoStage, Found, ParameterError};

/// Nodes and messages of all passes together where nothing is limited, and the fewest and most evaluations that they may be.
const WORK: u64 = 4_000_000_000;
const EVALUATIONS: [u64; 2] = [4_000, 400_000];
/// Epochs of a search.
const EPOCHS: u64 = 32;
/// Cycles of annealing of a search: each has twice as many epochs as the one before.
const CYCLES: [u64; 4] = [0, 4, 12, EPOCHS];
/// Proposals of annealing by strain for every rank, and at most for every evaluation; and the part of a budget of time after which it ends.
const PROPOSALS: u64 = 400;
const RELAXING: f64 = 0.7;
/// Temperatures of a cycle as parts of what there is to gain.
const HOT: f64 = 0.005;
const COLD: f64 = 0.00003;
/// What the strain of the best start counts, as a part of what there is to gain.
const STRAIN: f64 = 0.3;
/// Of so many proposals one goes anywhere.
const ANYWHERE: usize = 8;
/// What a start may be worse than the best, as a part of what there is to gain, and an island still begin with it.
const AS_GOOD: f64 = 0.3;

/// The search.
struct Annealing<'a> {
    problem: &'a RankProblem,
    starts: &'a [Start],
    lower_bound: i64,
    seed: u64,
    /// Ticks of a unit of strain.
    weight: f64,
    /// Proposals of annealing by strain.
    proposals: u64,
    /// Evaluations of an epoch.
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

/// `schedule/auto`: begins with all starts, the best of which are the islands' first placements, and anneals by the makespan. Never worse
/// than any start.
pub fn auto(params: &AutoParams, problem: &RankProblem, cx: &Context<'_>) -> Result<Found<Vec<u32>>, Error> {
    let budget =
        Budget::new(params.evaluations, params.seconds, params.islands).map_err(ParameterError::from)?;
    let starts = starts(problem)?;
    let lower_bound = bound::lower_bound(problem);
    for start in &starts {
        cx.log(format!("{}: makespan {}", start.name, problem.real(start.makespan)));
    }
    let size = (problem.nodes() + problem.messages()) as u64;
    let default = (WORK / size.max(1)).clamp(EVALUATIONS[0], EVALUATIONS[1]);
    let epoch = match params.seconds {
        Some(_) if params.evaluations.is_none() => problem.passes_a_look().clamp(64, 4096),
        _ => budget.evaluations(default).div_ceil(EPOCHS).max(1),
    };
    let gain = starts.first().map_or(0, |start| start.makespan - lower_bound) as f64;
    let strained = starts.first().map_or(0, |start| strain(problem, &start.slots)).max(1) as f64;
    let weight = STRAIN * gain / strained;
    let proposals =
        (PROPOSALS * problem.ranks as u64).min(budget.evaluations(default).saturating_mul(PROPOSALS));
    let annealing =
        Annealing { weight, proposals, problem, starts: &starts, lower_bound, seed: params.seed, epoch };
    Ok(found(budget.evolve(&annealing, default, cx)?, lower_bound))
}

impl Evolution for Annealing<'_> {
    type Island = Island;
    type Solution = Vec<u32>;

    fn begin(&self, island: u32, meter: &mut Meter<'_>) -> Result<Island, Error> {
        let best = self.starts.first().ok_or_else(|| Error::msg("there is no placement to begin with"))?;
        let worst = best.makespan + ((best.makespan - self.lower_bound) as f64 * AS_GOOD) as i64;
        let good = self.starts.iter().take_while(|start| start.makespan <= worst).count().max(1);
        let mut island = Island {
            random: Pcg64::from_seed(seed_stream(AutoStage::KIND, self.seed, u64::from(island))),
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
        let mut walk = Walk::new(self.problem, &island.slots, self.weight);
        let mut next_look = self.problem.passes_a_look();
        for turn in 0..self.epoch {
            let is_done = island.best.cost <= self.lower_bound || (walk.is_tight() && self.problem.is_even());
            if is_done || !meter.take() {
                return Ok(false);
            }
            let (rank, slot) = self.propose(&walk, &mut island.random);
            let limit = walk.energy() + (cooling.temperature(turn) * island.random.exponential()) as i64;
            if slot != walk.slots[rank as usize]
                && walk.exchange(rank, slot, limit)
                && walk.makespan < island.best.cost
            {
                island.best.cost = walk.makespan;
                island.best.solution.clone_from(&walk.slots);
            }
            if walk.passes >= next_look {
                next_look = walk.passes + self.problem.passes_a_look();
                if !meter.look() {
                    return Ok(false);
                }
            }
        }
        island.slots.clone_from(&walk.slots);
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

    fn receive(&self, island: &mut Island, _: u64, heard: Vec<Candidate<Vec<u32>>>) {
        if let Some(heard) = heard.into_iter().min_by_key(|heard| heard.cost)
            && heard.cost < island.best.cost
        {
            island.best = heard;
        }
    }
}

/// How hot an epoch is.
struct Cooling {
    cycle: u32,
    begin: f64,
    /// By how much every evaluation cools.
    factor: f64,
}

impl Cooling {
    fn temperature(&self, turn: u64) -> f64 {
        self.begin * libm::exp(self.factor * turn as f64)
    }
}

impl Annealing<'_> {
    /// Anneals by strain, and goes on with what comes of it if that is better.
    fn relax(&self, island: &mut Island, meter: &mut Meter<'_>) {
        let time = meter.time_left();
        let mut goes_on = || {
            let left = meter.time_left().zip(time).is_none_or(|(left, all)| left >= all.mul_f64(RELAXING));
            left && meter.look()
        };
        let slots = relax(self.problem, &island.slots, self.proposals, &mut island.random, &mut goes_on);
        let mut evaluator = RankEvaluator::new(self.problem);
        let mut energy = |slots: &[u32]| {
            let makespan = evaluator.makespan(slots);
            (makespan, makespan + (self.weight * strain(self.problem, slots) as f64) as i64)
        };
        let (before, (makespan, after)) = (energy(&island.slots).1, energy(&slots));
        if makespan < island.best.cost {
            island.best = Candidate { cost: makespan, solution: slots.clone() };
        }
        if after < before {
            island.slots = slots;
        }
    }

    /// The temperatures of the epoch that begins.
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

    /// A rank and a slot for it: mostly one end of a message on the critical path, which goes nearer to the other.
    fn propose(&self, walk: &Walk<'_>, random: &mut Pcg64) -> (u32, u32) {
        let draw = random.next_u64();
        if let Some(link) = walk.critical_link(draw).filter(|_| random.below(ANYWHERE) > 0) {
            let link = self.problem.program.links.all[link as usize];
            let coin = random.next_u64() & 1 == 0;
            let (rank, other) = if coin { (link.from, link.to) } else { (link.to, link.from) };
            let anchor = walk.slots[other as usize];
            let near = self.problem.places.nearer(walk.slots[rank as usize], anchor);
            if !near.is_empty() {
                let slot = near[random.below(near.len())];
                if slot != anchor {
                    return (rank, slot);
                }
            }
        }
        (random.below(self.problem.ranks) as u32, random.below(self.problem.slots) as u32)
    }
}
