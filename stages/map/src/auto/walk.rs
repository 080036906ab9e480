//! A robust tabu walk that an island continues between populations.
//!
//! Where a problem has no structure that freezes from the top, a walk finds more in the same time than a
//! population. What gains is found by trying: a walk first gets the work of the populations so far. While it
//! leads it goes on, and populations get a fraction of its work.

use hopmap_islands::{Meter, Resumable};
use hopmap_objective::{Assignment, Deltas, ObjectiveError, Problem};
use hopmap_random::{Pcg64, Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::population::StepOutcome;
use crate::moves::Incumbent;
use crate::tabu::SearchState;

/// Deltas that a step updates in the time of one evaluation by annealing (measured at 80 to 256 ranks).
const UPDATES: u64 = 8;

/// A walk and its success.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Walk<'p> {
    state: Resumable<SearchState<'p>>,
    /// Lowest cost.
    pub(super) best: i64,
    /// Evaluations.
    pub(super) spent: u64,
}

impl<'p> Walk<'p> {
    /// A walk from a mapping.
    pub(super) fn new(
        problem: &'p Problem,
        slots: &[u32],
        random: &mut Pcg64,
    ) -> Result<Self, ObjectiveError> {
        let mut seed = [0; 32];
        random.fill_bytes(&mut seed);
        let start = Assignment::new(problem, slots)?;
        let best = start.cost();
        let state = Resumable::Live(SearchState::of(start, Pcg64::from_seed(seed)));
        Ok(Self { state, best, spent: 0 })
    }

    /// Restores the walk from its stored form.
    pub(super) fn restore(&mut self, problem: &'p Problem) -> Result<(), ObjectiveError> {
        self.state.restore(|saved| SearchState::restore(problem, saved))
    }

    /// Walks until the meter has about `until` evaluations, or until `end` before.
    pub(super) fn run(
        &mut self,
        end: u64,
        until: u64,
        meter: &mut Meter<'_>,
        incumbent: &mut Incumbent,
    ) -> StepOutcome {
        let Some(search) = self.state.live() else { return StepOutcome::Stopped };
        let step = Deltas::pairs(search.assignment().problem()).div_ceil(UPDATES);
        while meter.spent() < until {
            if meter.spent() >= end {
                return StepOutcome::Unfinished;
            }
            if !meter.take_all(step) {
                return StepOutcome::Stopped;
            }
            search.step(self.best);
            self.spent += step;
            self.best = self.best.min(search.assignment().cost());
            if incumbent.replace(search.assignment()) {
                meter.record(incumbent.best.cost);
            }
        }
        StepOutcome::Finished
    }
}
