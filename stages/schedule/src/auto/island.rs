//! One island: the plans that it has found, and what it is working on.

use hopmap_islands::{Candidate, Meter};
use hopmap_model::{Stage, seed_stream};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::annealing::Cycle;
use super::ground::Ground;
use super::moves::Moves;
use crate::search::{Costs, Timeline, below};
use crate::{AutoStage, Plan};

/// Plans that an island keeps.
const ELITES: usize = 8;
/// Temperatures in parts of the mean time of a task: where a cycle begins, and where it ends.
const HOT: f64 = 0.3;
const COLD: f64 = 0.02;
/// Proposals of the first cycle for every task. Every few cycles they become twice as many, until they are so many times as many.
const FIRST_CYCLE: u64 = 400;
const EQUALLY_LONG: u64 = 4;
const MOST_DOUBLINGS: u64 = 4;
/// Proposals for every task that a cycle needs to begin hot; one that has fewer stays near where it begins.
const WORTH_HEAT: u64 = 100;
/// The part of the budget that is left that a cycle may take, and the proposals that it gets in any case.
const SHARE: u64 = 3;
const SHORTEST: u64 = 1024;

/// An island of the search.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Island {
    pub(super) number: u32,
    /// The best ever seen.
    pub(super) best: Candidate<Plan>,
    /// No makespan is below, as far as this island knows.
    pub(super) bound: i64,
    random: Pcg64,
    /// Good plans that differ.
    elites: Vec<Candidate<Plan>>,
    /// Cycles so far.
    cycles: u64,
    cycle: Cycle,
}

impl Island {
    pub(super) fn new<C: Costs>(ground: &Ground<'_, C>, seed: u64, number: u32, meter: &Meter<'_>) -> Self {
        let random = Pcg64::from_seed(seed_stream(AutoStage::KIND, seed, u64::from(number)));
        let start = ground.starts[number as usize % ground.starts.len()].clone();
        let cycle = cycle(ground, start, 0, meter);
        let best = ground.starts[0].clone();
        Self { number, best, bound: ground.bound, random, elites: Vec::new(), cycles: 0, cycle }
    }

    /// Whether nothing can be better.
    pub(super) fn is_done(&self) -> bool {
        self.best.cost <= self.bound
    }

    /// Takes in a plan from elsewhere.
    pub(super) fn hear(&mut self, candidate: Candidate<Plan>) {
        if candidate.cost < self.best.cost {
            self.best = candidate.clone();
        }
        self.keep(candidate);
    }

    /// Goes on until about so many evaluations are spent; `false` if the meter stopped it.
    pub(super) fn work<C: Costs>(&mut self, ground: &Ground<'_, C>, end: u64, meter: &mut Meter<'_>) -> bool {
        let mut timeline = Timeline::new(ground.costs, &self.cycle.plan);
        let mut moves = Moves::new();
        while meter.spent() < end && !self.is_done() {
            let acceptance = &ground.acceptance;
            let until = (end, self.bound);
            let goes_on =
                self.cycle.run(&mut timeline, &mut moves, acceptance, &mut self.random, until, meter);
            if self.cycle.best.cost < self.best.cost {
                self.best = self.cycle.best.clone();
            }
            if !goes_on {
                return false;
            }
            if self.cycle.is_over() {
                self.begin_next(ground, meter);
            }
        }
        true
    }

    fn begin_next<C: Costs>(&mut self, ground: &Ground<'_, C>, meter: &Meter<'_>) {
        self.keep(self.cycle.best.clone());
        self.cycles += 1;
        let draw = self.random.next_u64();
        let start = match draw >> 62 {
            0 => &ground.starts[below(draw as u32, ground.starts.len())],
            1 => &self.best,
            _ => &self.elites[below(draw as u32, self.elites.len())],
        };
        self.cycle = cycle(ground, start.clone(), self.cycles, meter);
        if !self.cycle.is_hot() {
            self.cycle = cycle(ground, self.best.clone(), self.cycles, meter);
        }
    }

    /// Keeps a plan among the elites if it is good enough and none of them is like it.
    fn keep(&mut self, candidate: Candidate<Plan>) {
        let is_known = |elite: &Candidate<Plan>| {
            elite.cost == candidate.cost && elite.solution.processor == candidate.solution.processor
        };
        if self.elites.iter().any(is_known) {
            return;
        }
        let at = self.elites.partition_point(|elite| elite.cost <= candidate.cost);
        self.elites.insert(at, candidate);
        self.elites.truncate(ELITES);
    }
}

/// A cycle that is as long as its number and the budget allow.
fn cycle<C: Costs>(ground: &Ground<'_, C>, start: Candidate<Plan>, number: u64, meter: &Meter<'_>) -> Cycle {
    let tasks = ground.costs.problem().tasks() as u64;
    let wanted = (FIRST_CYCLE * tasks) << (number / EQUALLY_LONG).min(MOST_DOUBLINGS);
    let length = wanted.min((meter.outlook() / SHARE).max(SHORTEST));
    let hot = if length >= WORTH_HEAT * tasks { HOT } else { COLD };
    Cycle::new(start, [hot * ground.unit, COLD * ground.unit], length)
}
