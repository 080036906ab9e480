//! Simulated annealing of one plan.

use hopmap_islands::{Candidate, Meter};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;
use serde::{Deserialize, Serialize};

use super::moves::Moves;
use crate::Plan;
use crate::search::{Acceptance, Costs, Timeline};

/// Proposals between two temperatures.
const STEP: u64 = 64;

/// Tasks of which a step takes long enough to look at the clock behind each.
const SLOW: usize = 1000;

/// A cycle of annealing between two steps.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Cycle {
    /// The plan as it is.
    pub(super) plan: Plan,
    /// The best of the cycle.
    pub(super) best: Candidate<Plan>,
    /// Temperatures in ticks: where it began, and where it ends.
    hot: f64,
    cold: f64,
    /// Proposals in all, and so far.
    length: u64,
    done: u64,
}

impl Cycle {
    pub(super) fn new(start: Candidate<Plan>, [hot, cold]: [f64; 2], length: u64) -> Self {
        Self { plan: start.solution.clone(), best: start, hot, cold, length: length.max(1), done: 0 }
    }

    /// Whether it begins hot.
    pub(super) fn is_hot(&self) -> bool {
        self.hot > self.cold
    }

    /// Whether it is cold.
    pub(super) fn is_over(&self) -> bool {
        self.done >= self.length
    }

    fn temperature(&self) -> f64 {
        match self.is_hot() {
            true => self.hot * libm::pow(self.cold / self.hot, self.done as f64 / self.length as f64),
            false => self.cold,
        }
    }

    /// Goes on until the cycle is over, about so many evaluations are spent, or the makespan is a bound; `false` if the meter
    /// stopped it.
    pub(super) fn run<C: Costs>(
        &mut self,
        timeline: &mut Timeline<'_, C>,
        moves: &mut Moves,
        acceptance: &Acceptance,
        random: &mut Pcg64,
        (end, bound): (u64, i64),
        meter: &mut Meter<'_>,
    ) -> bool {
        timeline.set(&self.plan);
        moves.note_change();
        let mut goes_on = true;
        while goes_on && !self.is_over() && meter.spent() < end && self.best.cost > bound {
            let temperature = self.temperature();
            goes_on = self.step(timeline, moves, acceptance, random, temperature, meter);
            self.done += STEP;
            timeline.sort();
            goes_on = goes_on && (timeline.tasks() < SLOW || meter.look());
        }
        self.plan = timeline.plan();
        goes_on
    }

    fn step<C: Costs>(
        &mut self,
        timeline: &mut Timeline<'_, C>,
        moves: &mut Moves,
        acceptance: &Acceptance,
        random: &mut Pcg64,
        temperature: f64,
        meter: &mut Meter<'_>,
    ) -> bool {
        let mut is_idle = true;
        for _ in 0..STEP {
            moves.propose(timeline, random);
            if !timeline.is_changed() {
                continue;
            }
            is_idle = false;
            if !meter.take() {
                timeline.take_back();
                return false;
            }
            let slack = acceptance.slack(random.next_u32(), temperature);
            if timeline.settle(timeline.makespan() + slack) {
                moves.note_change();
                if timeline.makespan() < self.best.cost {
                    self.best = Candidate { cost: timeline.makespan(), solution: timeline.plan() };
                }
            }
        }
        // Where nothing can change the budget has to come to its end nevertheless.
        !is_idle || meter.take()
    }
}
