//! `map/auto`, the mapper that chooses how to search by what the problem is and how far the budget goes.
//!
//! # Algorithm
//!
//! Every island first runs a cycle of simulated annealing that refines the linear or a greedy placement, whichever costs less. Where the
//! budget goes further, population annealing follows (`auto/population.rs`), in which many placements cool down side by side. Each
//! population has twice the work of the one before; the last one takes what is left of the budget. A population
//!
//! - starts at the temperature at which a quarter of all proposals is accepted and changes the cost (`auto/context.rs`),
//! - is drawn anew at every step to a lower temperature, with the weights exp(−Δβ · F), so that members with a low cost are copied
//!   over those with a high one; a step is so short that its effective size stays 95 % of its size,
//! - ends when fewer than two proposals in a thousand change the cost.
//!
//! Copying members is what finds the right one of many funnels. In Taillard's structured instances, which half of a group goes where
//! freezes first, at the highest temperature; annealing of one placement never repairs it later, while a population goes on from those
//! members that have it right.
//!
//! # Where a search begins
//!
//! The first of these that fits is done before (`Auto::map`):
//!
//! - Of dense problems of 256 ranks and more, groups of ranks with nearly equal rows of weights are placed on groups of slots with nearly
//!   equal costs, as a smaller problem of its own (`auto/coarse.rs`). At high temperatures an exchange of ranks in the whole problem is
//!   a hundred times dearer than its evaluation.
//! - Where the objective is a maximum, the sum beside it is minimised.
//! - 512 ranks and more on a tree are placed by `map/hierarchical`, where a budget in seconds has the time.
//!
//! The search then begins at what was found, at a temperature at which few proposals are accepted, so that it is not lost again.
//!
//! # Islands
//!
//! An island is plain data between two epochs (`islands::Evolution`), so it can be saved, sent to another process and taken up again
//! without a difference in the result. Islands wait for each other only where they exchange something or are saved. One that is
//! interrupted is saved as it was before the epoch that was cut short.
//!
//! Islands on one thread take turns until the search ends: a budget in seconds is the time of all of them together.

mod coarse;
mod context;
mod population;

use std::time::Instant;

use hopmap_islands::{Budget, Candidate, Evolution, Meter, SearchError};
use hopmap_model::{Context, Error, seed_stream};
use hopmap_objective::{Assignment, ObjectiveError, Problem};
use hopmap_random::{Pcg64, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::moves::{Incumbent, sweep, temperatures};
use crate::params::kind;
use crate::{AutoParams, Hierarchical, HierarchicalParams, Mapper, SearchResult, descend};
use coarse::Coarse;
use context::SearchContext;
use population::{Plan, Population, Standing, default_evaluations};

/// Evaluations of one epoch of an island. Islands are saved only between epochs, so an interruption loses no more work than this.
const EPOCH: u64 = 1 << 20;

/// Part of the budget for an easier problem that is searched first (groups of ranks, or the sum beside a maximum), and the most
/// evaluations that an island spends on it: it only says where the search of the whole problem begins.
const FIRST_SHARE: f64 = 0.15;
const FIRST_EVALUATIONS: u64 = 1 << 22;

/// Fewest ranks on a tree with which a search begins at the placement that `map/hierarchical` finds.
const MANY_RANKS: usize = 512;
/// Part of a budget in seconds that goes to `map/hierarchical` where there is time for more than one partition.
const PARTITION_SHARE: f64 = 0.4;
/// There is if the budget is longer than this many times the time that one partition is likely to take.
const LONG: u32 = 4;

/// Chooses how to search by what the problem is and by how far the budget goes.
///
/// Every island begins with a cycle of annealing that refines the linear or a greedy placement, whichever costs less. If the
/// budget does not go much further than that, more cycles follow, each twice as long. Else populations are annealed, one after
/// the other, each from random placements and with twice the work of the one before; the last one takes what is left of the
/// budget. From the best member of a frozen population of a dense problem robust tabu search goes on for a while. The best
/// placement ever seen then descends to one that no exchange improves.
///
/// Of large dense problems, groups of ranks whose rows of weights are nearly equal are placed first, on groups of slots with nearly
/// equal costs: a smaller problem of its own. Many ranks on a tree are first cut into parts, as in [`Hierarchical`]. Where the objective is a maximum, the sum beside it is minimised first. The search
/// sets out from there.
///
/// Population annealing (Hukushima and Iba 2003) cools many placements side by side. Before every step to a lower temperature
/// the placements are drawn anew with the weights exp(−Δβ · cost), so that those which have found the better arrangement of
/// what freezes first share it. The step Δβ is as long as the effective size of the population allows.
#[derive(Debug, Clone, PartialEq)]
pub struct Auto {
    seed: u64,
    budget: Budget,
}

impl Auto {
    /// Checks the parameters.
    pub fn new(params: &AutoParams) -> Result<Self, SearchError> {
        let &AutoParams { seed, evaluations, time_limit_s, islands, .. } = params;
        Ok(Self { seed, budget: Budget::new(evaluations, time_limit_s, islands)? })
    }
}

impl Mapper for Auto {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult, Error> {
        let begin = Instant::now();
        let Some(mut context) = SearchContext::new(problem)? else {
            return Ok(SearchResult::at_once(problem.linear()));
        };
        let default = default_evaluations(context.movable.len() as u64);
        let (mut evaluations, mut is_whole) = (0, true);
        if let Some(coarse) = Coarse::new(problem)? {
            let found = self.search_first(&coarse.problem, default, cx)?;
            evaluations = found.evaluations;
            let starts = found.bests.iter().map(|best| coarse.project(best, problem.ranks()));
            context.set_grouped(starts.collect())?;
        } else if let Some(sum) = problem.without_maxima() {
            let found = self.search_first(&sum, default, cx)?;
            evaluations = found.evaluations;
            context.set_grouped(found.bests.into_iter().map(|best| best.solution).collect())?;
        } else if self.cuts(problem) {
            // Of a short time the first partition makes the most; a long one also pays for others.
            let time = self.budget.time().filter(|time| *time > LONG * Hierarchical::time_for(problem));
            let time_limit_s = time.map(|time| PARTITION_SHARE * time.as_secs_f64());
            let seed = self.seed;
            let params = HierarchicalParams { seed, time_limit_s, ..HierarchicalParams::default() };
            let start = Hierarchical::new(&params)?.map(problem, cx)?;
            is_whole = start.complete;
            context.set_grouped(vec![start.slots])?;
        }
        let spent = evaluations.div_ceil(u64::from(self.budget.islands()));
        let budget = self.budget.after(spent, begin.elapsed());
        let search = Search { seed: self.seed, context: &context };
        let mut found = budget.evolve(&search, default, cx)?;
        found.evaluations += evaluations;
        found.complete &= is_whole;
        Ok(SearchResult::of_islands(found, problem))
    }
}

impl Auto {
    /// Whether the search sets out from a partition.
    fn cuts(&self, problem: &Problem) -> bool {
        let has_time = self.budget.time().is_none_or(|time| time > Hierarchical::time_for(problem));
        problem.ranks() >= MANY_RANKS && problem.distance().is_tree() && has_time
    }

    /// Searches another problem for where the search of this one sets out.
    fn search_first(
        &self,
        problem: &Problem,
        default: u64,
        cx: &Context<'_>,
    ) -> Result<hopmap_islands::SearchResult<Vec<u32>>, Error> {
        let Some(mut context) = SearchContext::new(problem)? else {
            let solution = problem.linear();
            let best = Candidate { cost: problem.cost(&solution), solution };
            return Ok(hopmap_islands::SearchResult::at_once(best));
        };
        // What is where in detail is for the whole problem to find out.
        context.explores = false;
        let budget = self.budget.part(FIRST_SHARE, FIRST_EVALUATIONS.min(default));
        let search = Search { seed: self.seed, context: &context };
        budget.evolve(&search, default, &cx.without_state())
    }
}

/// The search on all islands.
struct Search<'g> {
    seed: u64,
    context: &'g SearchContext<'g>,
}

impl<'g> Evolution for Search<'g> {
    type Island = Island<'g>;
    type Solution = Vec<u32>;
    const FINISH_SHARE: f64 = 0.05;

    fn begin(&self, island: u32, _: &mut Meter<'_>) -> Result<Self::Island, Error> {
        Ok(Island::new(self.context, self.seed, island))
    }

    fn advance(&self, island: &mut Self::Island, _: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        let end = meter.spent().saturating_add(EPOCH);
        island.arrive(self.context)?;
        while meter.spent() < end {
            if !island.work(self.context, end, meter)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn finish(&self, island: &mut Self::Island, meter: &mut Meter<'_>) -> Result<(), Error> {
        if meter.begin_descent() {
            let mut assignment = Assignment::new(self.context.problem, &island.incumbent.best.solution)?;
            descend(&mut assignment, || meter.take());
            island.incumbent.replace(&assignment);
        }
        Ok(())
    }

    fn best(&self, island: &Self::Island) -> Candidate<Self::Solution> {
        island.incumbent.best.clone()
    }
}

/// Sweeps of the first cycle; each has twice as many as the one before.
const FIRST_SWEEPS: u64 = 64;
/// Temperatures of cycles in mean changes of cost: where one begins, where the first one begins, where all end.
const HOT: f64 = 2.0;
const WARM: f64 = 0.3;
const COLD: f64 = 0.02;

/// An island of the search.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "")]
struct Island<'p> {
    incumbent: Incumbent,
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
    fn new(context: &SearchContext<'p>, seed: u64, island: u32) -> Self {
        let refined = (context.start.as_slice(), WARM * context.mean_change);
        let (slots, hot) = context.grouped(island).unwrap_or(refined);
        let slots = slots.to_vec();
        Self {
            incumbent: Incumbent::new(context.problem.cost(&slots), slots.clone()),
            random: Pcg64::from_seed(seed_stream(kind::AUTO, seed, u64::from(island))),
            number: island,
            plan: Plan::new(),
            is_first: true,
            work: Work::Cycle(Cycle { number: 0, hot, sweeps: 0, slots }),
        }
    }

    /// Makes placements of what was written down.
    fn arrive(&mut self, context: &SearchContext<'p>) -> Result<(), ObjectiveError> {
        match &mut self.work {
            Work::Cycle(_) => Ok(()),
            Work::Population(population) => population.arrive(context),
        }
    }

    /// Goes on with the work until about so many evaluations are spent; `false` if the meter stopped it.
    fn work(
        &mut self,
        context: &SearchContext<'p>,
        end: u64,
        meter: &mut Meter<'_>,
    ) -> Result<bool, ObjectiveError> {
        let Self { incumbent, random, .. } = self;
        let standing = match &mut self.work {
            Work::Cycle(cycle) => cycle.run(context, random, end, meter, incumbent)?,
            Work::Population(population) => population.step(context, random, meter, incumbent),
        };
        match (standing, &mut self.work) {
            (Standing::Stopped, _) => return Ok(false),
            (Standing::Warm, _) => return Ok(true),
            (Standing::Frozen, Work::Cycle(_)) => {}
            (Standing::Frozen, Work::Population(population)) => {
                self.plan.note(population.steps());
                population.settle(meter, &mut self.incumbent);
                population.explore(context, &mut self.random, meter, &mut self.incumbent);
            }
        }
        self.begin_next(context, meter)?;
        Ok(true)
    }

    /// The next population, or the next cycle if the budget is too small for one.
    fn begin_next(&mut self, context: &SearchContext<'p>, meter: &Meter<'_>) -> Result<(), ObjectiveError> {
        self.work = match (self.plan.next(context.movable.len() as u64, meter.outlook()), &self.work) {
            (Some(size), _) => {
                let grouped = context.grouped(self.number).filter(|_| self.is_first);
                let mut population = match grouped {
                    Some((start, warm)) => Population::of_one(start, warm, size),
                    None => Population::new(context, size, &mut self.random),
                };
                population.arrive(context)?;
                self.is_first = false;
                Work::Population(population)
            }
            (None, Work::Cycle(cycle)) => Work::Cycle(Cycle {
                number: cycle.number + 1,
                hot: HOT * context.mean_change,
                sweeps: 0,
                slots: cycle.slots.clone(),
            }),
            // What is left goes to the neighbourhood of the best placement.
            (None, Work::Population(_)) => {
                let slots = self.incumbent.best.solution.clone();
                Work::Cycle(Cycle { number: 0, hot: WARM * context.hot, sweeps: 0, slots })
            }
        };
        Ok(())
    }
}

impl Cycle {
    /// Sweeps until the end of the cycle, or until about so many evaluations are spent.
    fn run(
        &mut self,
        context: &SearchContext<'_>,
        random: &mut Pcg64,
        end: u64,
        meter: &mut Meter<'_>,
        incumbent: &mut Incumbent,
    ) -> Result<Standing, ObjectiveError> {
        let mut assignment = Assignment::new(context.problem, &self.slots)?;
        let sweeps = FIRST_SWEEPS << self.number.min(48);
        let temperatures = temperatures(self.hot, COLD * self.hot.min(context.mean_change), sweeps);
        let mut standing = Standing::Frozen;
        for temperature in temperatures.skip(self.sweeps as usize) {
            if !meter.take_all(context.movable.len() as u64) {
                standing = Standing::Stopped;
                break;
            }
            let acceptance = &context.acceptance;
            sweep(&mut assignment, &context.movable, temperature, acceptance, random, incumbent);
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
