//! Simulated annealing of one solver (Metropolis acceptance, proportional or Cauchy cooling; Baranov et al. 2022, algorithm PSA).

use hopmap_islands::Meter;
use hopmap_objective::{Assignment, ObjectiveError, Problem};
use hopmap_random::{Pcg64, Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::rules::Rules;
use crate::error::MapError;
use crate::params::Iteration;

/// Moves with Δ/T above this are rejected without drawing a random number: exp(−40) < 2^−57.
const REJECT_ABOVE: f64 = 40.0;

/// The state of a solver; its mapping belongs to the island.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Solver {
    random: Pcg64,
    #[serde(with = "exact")]
    temperature: f64,
    #[serde(with = "exact")]
    last: f64,
    #[serde(with = "exact")]
    factor: f64,
    /// Best cost of this annealing run.
    best: i64,
    iterations: u64,
    /// Iterations since the last improvement.
    idle: u64,
    /// Examined and accepted candidates at this temperature.
    examined: u64,
    accepted: u64,
    pub(crate) finished: bool,
}

impl Solver {
    /// Creates a solver before its first annealing run.
    pub(crate) fn new(stream: [u8; 32]) -> Self {
        Self {
            random: Pcg64::from_seed(stream),
            temperature: 0.0,
            last: 0.0,
            factor: 0.0,
            best: 0,
            iterations: 0,
            idle: 0,
            examined: 0,
            accepted: 0,
            finished: true,
        }
    }

    /// Starts an annealing run from a mapping of this cost.
    pub(crate) fn begin(&mut self, rules: &Rules, start: i64) -> Result<(), MapError> {
        self.iterations = 0;
        self.best = start;
        self.heat(rules, start)
    }

    /// Restarts at the initial temperature with the remaining iterations.
    pub(crate) fn heat(&mut self, rules: &Rules, start: i64) -> Result<(), MapError> {
        let range = rules.range(start)?;
        self.finished = range.is_none() || self.iterations >= rules.iterations;
        if let Some(range) = range {
            (self.temperature, self.last, self.factor) = (range.first, range.last, range.factor);
        }
        (self.idle, self.examined, self.accepted) = (0, 0, 0);
        Ok(())
    }

    /// Anneals for at most `iterations`, or until it finishes or the meter stops it.
    pub(crate) fn anneal(
        &mut self,
        rules: &Rules,
        search: &mut SearchState<'_>,
        iterations: u64,
        meter: &mut Meter<'_>,
    ) {
        let end = self.iterations.saturating_add(iterations).min(rules.iterations);
        while !self.finished && self.iterations < end && meter.take() {
            let (rank, slot) = rules.draw(search.assignment(), &mut self.random);
            let delta = search.assignment().delta(rank, slot);
            self.examined += 1;
            if delta != Assignment::NEVER && self.accepts(delta) {
                search.exchange(rank, slot, delta);
                self.accepted += 1;
                if search.assignment().cost() < self.best {
                    self.best = search.assignment().cost();
                    self.idle = 0;
                    meter.record(self.best);
                }
            }
            let cools = self.examined >= rules.examined || self.accepted >= rules.accepted;
            if rules.params.iteration == Iteration::Candidate || cools {
                self.iterations += 1;
                self.idle += 1;
            }
            if cools {
                self.cool(rules);
            }
            self.finished |= self.iterations >= rules.iterations || self.idle >= rules.patience;
        }
    }

    /// Metropolis acceptance of a change of cost.
    pub(crate) fn accepts(&mut self, delta: i64) -> bool {
        if delta <= 0 {
            return true;
        }
        let rise = delta as f64 / self.temperature;
        // 53 random bits give a number in [0, 1).
        rise < REJECT_ABOVE && ((self.random.next_u64() >> 11) as f64) * f64::EPSILON / 2.0 < libm::exp(-rise)
    }

    /// Falls to the next temperature.
    fn cool(&mut self, rules: &Rules) {
        self.finished |= rules.params.stop_when_frozen && self.accepted == 0;
        self.temperature = rules.cooled(self.temperature, self.factor);
        self.finished |= self.temperature < self.last;
        (self.examined, self.accepted) = (0, 0);
    }
}

/// Stores floats as bits, because decimal digits may not round-trip.
mod exact {
    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    pub(super) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(value.to_bits())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        u64::deserialize(deserializer).map(f64::from_bits)
    }
}

/// A mapping, the exchanges since the last reset, and how many of them lead to the best point.
pub(crate) struct SearchState<'p> {
    assignment: Assignment<'p>,
    steps: Vec<Step>,
    /// Cost of the best point and the number of steps to it.
    best: (i64, usize),
}

struct Step {
    rank: u32,
    from: u32,
    delta: i64,
}

impl<'p> SearchState<'p> {
    /// Starts from a mapping.
    pub(crate) fn new(problem: &'p Problem, slots: &[u32]) -> Result<Self, ObjectiveError> {
        let assignment = Assignment::new(problem, slots)?;
        let best = (assignment.cost(), 0);
        Ok(Self { assignment, steps: Vec::new(), best })
    }

    pub(crate) fn assignment(&self) -> &Assignment<'p> {
        &self.assignment
    }

    /// Best cost since the start.
    pub(crate) fn best_cost(&self) -> i64 {
        self.best.0
    }

    /// Applies an exchange; `delta` is from [`Assignment::delta`].
    pub(crate) fn exchange(&mut self, rank: u32, slot: u32, delta: i64) {
        self.steps.push(Step { rank, from: self.assignment.slot_of(rank), delta });
        self.assignment.exchange(rank, slot, delta);
        if self.assignment.cost() < self.best.0 {
            self.best = (self.assignment.cost(), self.steps.len());
        }
    }

    /// Rewinds to the best point and returns it.
    pub(crate) fn best(&mut self) -> &[u32] {
        self.rewind(self.best.1);
        self.assignment.slots()
    }

    /// Rewinds to the start.
    pub(crate) fn restart(&mut self) {
        self.rewind(0);
        self.best = (self.assignment.cost(), 0);
    }

    fn rewind(&mut self, steps: usize) {
        for step in self.steps.drain(steps..).rev() {
            self.assignment.exchange(step.rank, step.from, -step.delta);
        }
    }
}
