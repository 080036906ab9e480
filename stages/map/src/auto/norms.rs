//! Annealing of smooth norms in place of a maximum.
//!
//! A maximum, such as the load of the busiest link, does not change with most exchanges. The norm
//! (Σ xᵖ)^(1/p) of all loads does, and is at most n^(1/p) times the maximum. One annealing chain lowers norms
//! of growing exponent: a small one brings partners together, a large one leaves only the busiest links. On 20
//! random cases (`examples/link_loads.rs`) this was better than a single exponent of 8.

use hopmap_islands::Meter;
use hopmap_objective::{Assignment, ObjectiveError, Problem};
use hopmap_random::Pcg64;
use serde::{Deserialize, Serialize};

use super::context::SearchContext;
use super::population::StepOutcome;
use crate::moves::{Incumbent, sweep_within};
use crate::plan::NORMS;

/// Exponents of the stages, as powers of two. Every island omits one of the first two: stencils on trees need
/// the sum, random programs do better without it. The stages of an island are equally long.
const DOUBLINGS: [u32; 4] = [0, 1, 3, 5];
const STAGES: [[usize; 3]; 2] = [[0, 2, 3], [1, 2, 3]];
/// Temperature at the end of the chain, in units of that at its start.
const COLD: f64 = 1e-3;

/// The problem with norms in place of its maxima, one for each stage; none if the objective has no maximum.
pub(super) fn norms(problem: &Problem) -> Vec<Problem> {
    DOUBLINGS.into_iter().filter_map(|doublings| problem.smoothed(doublings)).collect()
}

/// A chain between two sweeps.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Chain {
    /// Temperature at the start, in units of that at which a quarter of all proposals are accepted.
    warmth: f64,
    /// The fraction of the chain that has passed.
    progress: f64,
    stages: [usize; 3],
    slots: Vec<u32>,
}

impl Chain {
    /// From a mapping: hot enough to forget it, or warm if it is good. `None` if the objective has no maximum.
    pub(super) fn new(
        context: &SearchContext<'_>,
        island: u32,
        slots: &[u32],
        is_good: bool,
    ) -> Result<Option<Self>, ObjectiveError> {
        let stages = STAGES[island as usize % STAGES.len()];
        let Some(first) = context.norms.get(stages[0]) else { return Ok(None) };
        let warmth = if is_good { first.find_warm(slots)? / first.hot } else { 1.0 };
        Ok(Some(Self { warmth, progress: 0.0, stages, slots: slots.to_vec() }))
    }

    /// Sweeps until the end of the chain or for about this many evaluations.
    pub(super) fn run(
        &mut self,
        context: &SearchContext<'_>,
        random: &mut Pcg64,
        end: u64,
        meter: &mut Meter<'_>,
        incumbent: &mut Incumbent,
    ) -> Result<StepOutcome, ObjectiveError> {
        loop {
            self.update_progress(meter);
            let last = self.stages.len() - 1;
            let end_of = |stage: usize| (stage + 1) as f64 / (last + 1) as f64;
            let stage = (0..last).find(|&stage| self.progress < end_of(stage)).unwrap_or(last);
            let norm = &context.norms[self.stages[stage]];
            let mut assignment = Assignment::new(norm.problem, &self.slots)?;
            let mut best = Incumbent::new(assignment.cost(), self.slots.clone());
            let outcome = loop {
                self.update_progress(meter);
                if self.progress >= 1.0 {
                    break Some(StepOutcome::Finished);
                } else if self.progress >= end_of(stage) {
                    break None;
                } else if meter.spent() >= end {
                    break Some(StepOutcome::Unfinished);
                }
                let temperature = self.warmth * norm.hot * libm::pow(COLD, self.progress);
                let before = best.best.cost;
                let (ranks, acceptance) = (&norm.movable, &context.acceptance);
                let swept =
                    sweep_within(meter, &mut assignment, ranks, temperature, acceptance, random, &mut best);
                if stage == last && best.best.cost < before {
                    incumbent.offer(context.problem, &best.best.solution);
                    meter.record(incumbent.best.cost);
                }
                if swept.is_none() {
                    break Some(StepOutcome::Stopped);
                }
            };
            self.slots.copy_from_slice(assignment.slots());
            incumbent.offer(context.problem, &self.slots);
            if let Some(outcome) = outcome {
                return Ok(outcome);
            }
        }
    }

    /// Updates the progress, unless the speed of a search that was resumed is not known yet.
    fn update_progress(&mut self, meter: &Meter<'_>) {
        let (spent, outlook) = (meter.spent() as f64, meter.outlook() as f64);
        if outlook > 0.0 {
            self.progress = spent / (NORMS.share * (spent + outlook));
        }
    }
}
