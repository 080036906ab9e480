//! One island: what it has found, and what it is working on.

use hopmap_islands::Meter;
use hopmap_model::{Stage, seed_stream};
use hopmap_objective::{Assignment, ObjectiveError};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

use super::ground::Ground;
use super::plan::Plan;
use super::population::{Population, Standing};
use crate::AutoStage;
use crate::incumbent::Incumbent;
use crate::moves::sweep;
use crate::temperature::Temperatures;

/// Sweeps of the first cycle; each has twice as many as the one before.
const FIRST_SWEEPS: u64 = 64;
/// Temperatures of cycles in mean changes of cost: where one begins, where the first one begins, where all end.
const HOT: f64 = 2.0;
const WARM: f64 = 0.3;
const COLD: f64 = 0.02;

/// An island of the search.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Island<'p> {
    pub(super) incumbent: Incumbent,
    random: Pcg64,
    number: u32,
    plan: Plan,
    /// Whether no population was annealed yet.
    is_first: bool,
    work: Work<'p>,
}

/// What an island is working on.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "")]
enum Work<'p> {
    Cycle(Cycle),
    Population(Population<'p>),
}

/// A cycle of annealing between two sweeps.
#[derive(Clone, Serialize, Deserialize)]
struct Cycle {
    number: u32,
    /// Where it begins.
    hot: f64,
    /// Sweeps so far.
    sweeps: u64,
    slots: Vec<u32>,
}

impl<'p> Island<'p> {
    pub(super) fn new(ground: &Ground<'p>, seed: u64, island: u32) -> Self {
        let refined = (ground.start.as_slice(), WARM * ground.mean_change);
        let (slots, hot) = ground.grouped(island).unwrap_or(refined);
        let slots = slots.to_vec();
        Self {
            incumbent: Incumbent::new(ground.problem.cost(&slots), slots.clone()),
            random: Pcg64::from_seed(seed_stream(AutoStage::KIND, seed, u64::from(island))),
            number: island,
            plan: Plan::new(),
            is_first: true,
            work: Work::Cycle(Cycle { number: 0, hot, sweeps: 0, slots }),
        }
    }

    /// Makes placements of what was written down.
    pub(super) fn arrive(&mut self, ground: &Ground<'p>) -> Result<(), ObjectiveError> {
        match &mut self.work {
            Work::Cycle(_) => Ok(()),
            Work::Population(population) => population.arrive(ground),
        }
    }

    /// Goes on with the work until about so many evaluations are spent; `false` if the meter stopped it.
    pub(super) fn work(
        &mut self,
        ground: &Ground<'p>,
        end: u64,
        meter: &mut Meter<'_>,
    ) -> Result<bool, ObjectiveError> {
        let Self { incumbent, random, .. } = self;
        let standing = match &mut self.work {
            Work::Cycle(cycle) => cycle.run(ground, random, end, meter, incumbent)?,
            Work::Population(population) => population.step(ground, random, meter, incumbent),
        };
        match (standing, &mut self.work) {
            (Standing::Stopped, _) => return Ok(false),
            (Standing::Warm, _) => return Ok(true),
            (Standing::Frozen, Work::Cycle(_)) => {}
            (Standing::Frozen, Work::Population(population)) => {
                self.plan.note(population.steps());
                population.settle(meter, &mut self.incumbent);
                population.explore(ground, &mut self.random, meter, &mut self.incumbent);
            }
        }
        self.begin_next(ground, meter)?;
        Ok(true)
    }

    /// The next population, or the next cycle if the budget is too small for one.
    fn begin_next(&mut self, ground: &Ground<'p>, meter: &Meter<'_>) -> Result<(), ObjectiveError> {
        self.work = match (self.plan.next(ground.movable.len() as u64, meter.outlook()), &self.work) {
            (Some(size), _) => {
                let grouped = ground.grouped(self.number).filter(|_| self.is_first);
                let mut population = match grouped {
                    Some((start, warm)) => Population::of_one(start, warm, size),
                    None => Population::new(ground, size, &mut self.random),
                };
                population.arrive(ground)?;
                self.is_first = false;
                Work::Population(population)
            }
            (None, Work::Cycle(cycle)) => Work::Cycle(Cycle {
                number: cycle.number + 1,
                hot: HOT * ground.mean_change,
                sweeps: 0,
                slots: cycle.slots.clone(),
            }),
            // What is left goes to the neighbourhood of the best placement.
            (None, Work::Population(_)) => {
                let slots = self.incumbent.best.solution.clone();
                Work::Cycle(Cycle { number: 0, hot: WARM * ground.hot, sweeps: 0, slots })
            }
        };
        Ok(())
    }
}

impl Cycle {
    /// Sweeps until the end of the cycle, or until about so many evaluations are spent.
    fn run(
        &mut self,
        ground: &Ground<'_>,
        random: &mut Pcg64,
        end: u64,
        meter: &mut Meter<'_>,
        incumbent: &mut Incumbent,
    ) -> Result<Standing, ObjectiveError> {
        let mut assignment = Assignment::new(ground.problem, &self.slots)?;
        let sweeps = FIRST_SWEEPS << self.number.min(48);
        let mut temperatures = Temperatures::new(self.hot, COLD * self.hot.min(ground.mean_change), sweeps)
            .skip(self.sweeps as usize);
        let mut standing = Standing::Frozen;
        for temperature in temperatures.by_ref() {
            if !meter.take_all(ground.movable.len() as u64) {
                standing = Standing::Stopped;
                break;
            }
            let acceptance = &ground.acceptance;
            sweep(&mut assignment, &ground.movable, temperature, acceptance, random, incumbent);
            self.sweeps += 1;
            if meter.spent() >= end && self.sweeps < sweeps {
                standing = Standing::Warm;
                break;
            }
        }
        self.slots.copy_from_slice(assignment.slots());
        Ok(standing)
    }
}
