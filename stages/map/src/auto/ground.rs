//! What all islands share.

use hopmap_model::{Stage, seed_stream};
use hopmap_objective::{Assignment, ObjectiveError, Problem};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use crate::incumbent::Incumbent;
use crate::moves::{movable, sweep};
use crate::temperature::{Acceptance, mean_change};
use crate::{AutoStage, greedy};

/// Part of all proposals that is accepted and changes the cost where a population begins.
const HOT_ACCEPTANCE: f64 = 0.25;
/// The temperature at which the search for that begins, in mean changes of cost, and what it falls by.
const HOTTEST: f64 = 4.0;
const FALL: f64 = 1.15;
/// Where that search ends at the latest, in mean changes of cost.
const COLDEST: f64 = 1e-4;
/// Sweeps of that search at every temperature.
const PROBE_SWEEPS: usize = 8;

/// The problem and what is known of its temperatures.
pub(super) struct Ground<'p> {
    pub(super) problem: &'p Problem,
    /// Ranks that may move and for which it makes a difference where they are.
    pub(super) movable: Vec<u32>,
    /// The linear or a greedy placement, whichever costs less.
    pub(super) start: Vec<u32>,
    /// Mean change of cost of random moves in random placements.
    pub(super) mean_change: f64,
    /// Where a population begins.
    pub(super) hot: f64,
    pub(super) acceptance: Acceptance,
}

impl<'p> Ground<'p> {
    /// `None` if all placements cost the same.
    pub(super) fn new(problem: &'p Problem) -> Result<Option<Self>, ObjectiveError> {
        let movable = movable(problem);
        if movable.is_empty() || problem.distance().levels() < 2 {
            return Ok(None);
        }
        let starts = [problem.linear(), greedy(problem)];
        let [linear, greedy] = starts.each_ref().map(|start| problem.cost(start));
        let [linear_start, greedy_start] = starts;
        let mean_change = mean_change(problem, &movable)?;
        let mut ground = Self {
            problem,
            movable,
            start: if greedy < linear { greedy_start } else { linear_start },
            mean_change,
            hot: mean_change,
            acceptance: Acceptance::new(),
        };
        ground.hot = ground.find_hot()?;
        Ok(Some(ground))
    }

    /// The temperature at which about a quarter of all proposals is accepted and changes the cost, found by cooling a random
    /// placement.
    fn find_hot(&self) -> Result<f64, ObjectiveError> {
        let stream = |number| seed_stream(AutoStage::KIND, 0, u64::MAX - number);
        let mut random = Pcg64::from_seed(stream(0));
        let start = self.problem.random(stream(1));
        let mut assignment = Assignment::new(self.problem, &start)?;
        let mut incumbent = Incumbent::new(assignment.cost(), start);
        let mut temperature = HOTTEST * self.mean_change;
        while temperature > COLDEST * self.mean_change {
            let mut changes = 0;
            for _ in 0..PROBE_SWEEPS {
                let (ranks, acceptance) = (&self.movable, &self.acceptance);
                changes +=
                    sweep(&mut assignment, ranks, temperature, acceptance, &mut random, &mut incumbent);
            }
            if (changes as f64) < HOT_ACCEPTANCE * (PROBE_SWEEPS * self.movable.len()) as f64 {
                break;
            }
            temperature /= FALL;
        }
        Ok(temperature)
    }
}
