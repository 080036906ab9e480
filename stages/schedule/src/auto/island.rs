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

/// An island of the search.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Island {
    /// The best ever seen.
    pub(super) best: Candidate<Plan>,
    random: Pcg64,
    /// Good plans that differ.
    elites: Vec<Candidate<Plan>>,
    /// Cycles so far.
    cycles: u64,
    cycle: Cycle,
}

impl Island {
    pub(super) fn new<C: Costs>(ground: &Ground<'_, C>, seed: u64, island: u32) -> Self {
        let random = Pcg64::from_seed(seed_stream(AutoStage::KIND, seed, u64::from(island)));
        let best = ground.best_start().clone();
        let start = ground.starts[island as usize % ground.starts.len()].clone();
        let cycle = Cycle::new(start, [HOT * ground.unit, COLD * ground.unit], ground.first_cycle());
        Self { best, random, elites: Vec::new(), cycles: 0, cycle }
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
        while meter.spent() < end && self.best.cost > ground.bound {
            let Self { cycle, random, .. } = self;
            let goes_on =
                cycle.run(&mut timeline, &mut moves, &ground.acceptance, random, (end, ground.bound), meter);
            if self.cycle.best.cost < self.best.cost {
                self.best = self.cycle.best.clone();
            }
            if !goes_on {
                return false;
            }
            if self.cycle.is_over() {
                self.begin_next(ground);
            }
        }
        true
    }

    fn begin_next<C: Costs>(&mut self, ground: &Ground<'_, C>) {
        self.keep(self.cycle.best.clone());
        self.cycles += 1;
        let draw = self.random.next_u64();
        let start = match draw >> 62 {
            0 => ground.starts[below(draw as u32, ground.starts.len())].clone(),
            1 => self.best.clone(),
            _ => self.elites[below(draw as u32, self.elites.len())].clone(),
        };
        let length = ground.first_cycle() << (self.cycles / 4).min(4);
        self.cycle = Cycle::new(start, [HOT * ground.unit, COLD * ground.unit], length);
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
