//! `map/auto`: an algorithm portfolio, chosen by size, density and budget.
//!
//! # Algorithm
//!
//! Every island first runs a cycle of simulated annealing that refines the linear or the greedy mapping,
//! whichever costs less. If the budget allows, population annealing follows (`auto/population.rs`), which
//! cools many mappings together. Each population has twice the work of the previous one; the last one takes
//! the rest of the budget. A population
//!
//! - starts at the temperature at which a quarter of all proposals are accepted and change the cost
//!   (`auto/context.rs`),
//! - is resampled at every step to a lower temperature with the weights exp(−Δβ · F), so that members with
//!   low cost replace those with high cost; the step is limited so that the effective size stays at 95 %,
//! - ends when fewer than 0.2 % of the proposals change the cost.
//!
//! Resampling finds the right one of many funnels. In Taillard's structured instances, the assignment of
//! groups to halves freezes first, at the highest temperature. Annealing a single mapping never repairs it
//! later; a population continues from the members that have it right.
//!
//! # Where a search begins
//!
//! The first applicable of these gives the start (`Auto::map`):
//!
//! - Coarse start for dense problems from 256 ranks (`auto/coarse.rs`): groups of ranks with similar rows of
//!   weights are mapped to groups of slots with similar costs. In the full problem at high temperatures,
//!   making an exchange costs a hundred times as much as evaluating it.
//! - From 512 ranks on a tree, `map/hierarchical` gives the start, if a time limit leaves enough time.
//!
//! The search then starts from this mapping at a temperature that accepts few proposals and so preserves it.
//!
//! If the objective has a maximum, norms in its place are annealed first (`auto/smooth.rs`). On a tree, the
//! mapping of `map/hierarchical` is then the first incumbent for any number of ranks.
//!
//! # Islands
//!
//! Between two epochs an island is plain data (`islands::Evolution`): it can be saved, sent to another
//! process and resumed with the same result. Islands wait for each other only to exchange or to be saved. An
//! interrupted island is saved in its state before the interrupted epoch.
//!
//! Islands on one thread take turns until the search ends and share its time limit.

mod coarse;
mod context;
mod population;
mod smooth;

use std::time::{Duration, Instant};

use hopmap_islands::{Budget, Candidate, Evolution, Meter};
use hopmap_model::{Context, Error, OutOfRange, seed_stream};
use hopmap_objective::{Assignment, ObjectiveError, Problem};
use hopmap_random::{Pcg64, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::moves::{Incumbent, sweep, temperatures};
use crate::params::kind;
use crate::{AutoParams, Hierarchical, HierarchicalParams, Mapper, SearchResult, descend};
use coarse::Coarse;
use context::SearchContext;
use population::{Plan, Population, Standing, default_evaluations};
use smooth::{Chain, stages};

/// Evaluations of one epoch of an island. Islands are saved only between epochs, so an interruption loses at
/// most this work.
const EPOCH: u64 = 1 << 20;

/// Fraction of the budget for the problem of groups of ranks, which is searched first, and its evaluation limit
/// per island: it only provides a start.
const FIRST_SHARE: f64 = 0.15;
const FIRST_EVALUATIONS: u64 = 1 << 22;

/// Minimum number of ranks on a tree for a start from `map/hierarchical`.
const MANY_RANKS: usize = 512;
/// Fraction of the time limit for `map/hierarchical` if there is time for several partitions.
const PARTITION_SHARE: f64 = 0.4;
/// Expected times of one partition above which a time limit allows several.
const LONG: u32 = 4;

/// Algorithm portfolio: annealing cycles, population annealing, robust tabu search or a multilevel start, by
/// size, density and budget.
///
/// Every island starts with an annealing cycle from the linear or the greedy mapping, whichever costs less.
/// With a small budget more cycles follow, each twice as long. Otherwise populations are annealed one after
/// the other, each from random mappings and with twice the work of the previous one; the last one takes the
/// rest of the budget. For dense problems, robust tabu search continues from the best member of a frozen
/// population. A local search improves the best mapping at the end.
///
/// For large dense problems, groups of ranks with similar rows of weights are first mapped to groups of slots
/// with similar costs. Many ranks on a tree are first partitioned, as in [`Hierarchical`]. The search starts
/// from these mappings. If the objective has a maximum, norms in its place are annealed first.
///
/// Population annealing (Hukushima and Iba 2003) cools many mappings together. Before every step to a lower
/// temperature the population is resampled with the weights exp(−Δβ · cost), which copies members with a
/// better arrangement of the parts that freeze first. The effective population size limits the step Δβ.
#[derive(Debug, Clone, PartialEq)]
pub struct Auto {
    seed: u64,
    budget: Budget,
}

impl Auto {
    /// Checks the parameters.
    pub fn new(params: &AutoParams) -> Result<Self, OutOfRange> {
        let &AutoParams { seed, evaluations, time_limit_s, islands, .. } = params;
        Ok(Self { seed, budget: Budget::new(evaluations, time_limit_s, islands)? })
    }

    /// The search with a budget that is already checked.
    pub(crate) fn with_budget(seed: u64, budget: Budget) -> Self {
        Self { seed, budget }
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
        let smooth = stages(problem);
        if let Some(coarse) = Coarse::new(problem)? {
            let found = self.search_first(&coarse.problem, default, cx)?;
            (evaluations, is_whole) = (found.evaluations, found.complete);
            let starts = found.bests.iter().map(|best| coarse.project(best, problem.ranks()));
            context.set_grouped(starts.collect())?;
        } else if self.cuts(problem, !smooth.is_empty()) {
            // With little time the first partition gives the largest gain; with more time further ones pay
            // off. A maximum takes a long local search.
            let is_long = |time: &Duration| *time > LONG * Hierarchical::time_for(problem);
            let time = self.budget.time().filter(|time| is_long(time) || !smooth.is_empty());
            let share = if smooth.is_empty() { PARTITION_SHARE } else { FIRST_SHARE };
            let time_limit_s = time.map(|time| share * time.as_secs_f64());
            let seed = self.seed;
            let params = HierarchicalParams { seed, time_limit_s, ..HierarchicalParams::default() };
            let start = Hierarchical::new(&params)?.map(problem, cx)?;
            (evaluations, is_whole) = (start.evaluations, start.complete);
            context.set_grouped(vec![start.slots])?;
        }
        let contexts = smooth.iter().filter_map(|smooth| SearchContext::new(smooth).transpose());
        context.smooth = contexts.collect::<Result<_, _>>()?;
        let spent = evaluations.div_ceil(u64::from(self.budget.islands()));
        let budget = self.budget.after(spent, begin.elapsed());
        let search = Search { seed: self.seed, context: &context };
        // Islands of a start that was interrupted cannot be resumed identically.
        let mut found = match cx.should_stop() {
            true => budget.evolve(&search, default, &cx.without_state())?,
            false => budget.evolve(&search, default, cx)?,
        };
        found.evaluations += evaluations;
        found.complete &= is_whole;
        Ok(SearchResult::of_islands(found, problem))
    }
}

impl Auto {
    /// Whether the search knows a partition at its start.
    fn cuts(&self, problem: &Problem, has_maximum: bool) -> bool {
        let has_time = self.budget.time().is_none_or(|time| time > Hierarchical::time_for(problem));
        let is_useful = problem.ranks() >= MANY_RANKS || has_maximum;
        is_useful && problem.distance().is_tree() && has_time
    }

    /// Solves another problem to find a start for this one.
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
        // The search of the full problem refines the details.
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
        Ok(Island::new(self.context, self.seed, island)?)
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

/// Sweeps of the first cycle; each cycle has twice as many as the previous one.
const FIRST_SWEEPS: u64 = 64;
/// Temperatures in units of the mean change of cost: start of a cycle, start of the first cycle, end of all
/// cycles.
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
    /// Whether no population has been annealed yet.
    is_first: bool,
    work: Work<'p>,
}

/// Current work of an island.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "")]
enum Work<'p> {
    Smooth(Chain),
    Cycle(Cycle),
    Population(Population<'p>),
}

/// A cycle of annealing between two sweeps.
#[derive(Clone, Serialize, Deserialize)]
struct Cycle {
    number: u32,
    /// Start mapping.
    hot: f64,
    /// Sweeps so far.
    sweeps: u64,
    slots: Vec<u32>,
}

impl<'p> Island<'p> {
    fn new(context: &SearchContext<'p>, seed: u64, island: u32) -> Result<Self, ObjectiveError> {
        let refined = (context.start.as_slice(), WARM * context.mean_change);
        let (slots, hot) = context.grouped(island).unwrap_or(refined);
        let slots = slots.to_vec();
        let is_good = context.grouped.is_some() && slots.len() >= MANY_RANKS;
        let work = match Chain::new(context, island, &slots, is_good)? {
            Some(chain) => Work::Smooth(chain),
            None => Work::Cycle(Cycle { number: 0, hot, sweeps: 0, slots: slots.clone() }),
        };
        Ok(Self {
            incumbent: Incumbent::new(context.problem.cost(&slots), slots),
            random: Pcg64::from_seed(seed_stream(kind::AUTO, seed, u64::from(island))),
            number: island,
            plan: Plan::new(),
            is_first: true,
            work,
        })
    }

    /// Restores mappings from their stored form.
    fn arrive(&mut self, context: &SearchContext<'p>) -> Result<(), ObjectiveError> {
        match &mut self.work {
            Work::Smooth(_) | Work::Cycle(_) => Ok(()),
            Work::Population(population) => population.arrive(context),
        }
    }

    /// Continues for about this many evaluations; `false` if the meter stopped it.
    fn work(
        &mut self,
        context: &SearchContext<'p>,
        end: u64,
        meter: &mut Meter<'_>,
    ) -> Result<bool, ObjectiveError> {
        let Self { incumbent, random, .. } = self;
        let standing = match &mut self.work {
            Work::Smooth(chain) => chain.run(context, random, end, meter, incumbent)?,
            Work::Cycle(cycle) => cycle.run(context, random, end, meter, incumbent)?,
            Work::Population(population) => population.step(context, random, meter, incumbent),
        };
        match (standing, &mut self.work) {
            (Standing::Stopped, _) => return Ok(false),
            (Standing::Warm, _) => return Ok(true),
            (Standing::Frozen, Work::Smooth(_)) => {
                let mut assignment = Assignment::new(context.problem, &incumbent.best.solution)?;
                descend(&mut assignment, || meter.take());
                incumbent.replace(&assignment);
            }
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
                let best = self.incumbent.best.solution.as_slice();
                let smooth = matches!(self.work, Work::Smooth(_)).then(|| context.find_warm(best));
                let found = smooth.transpose()?.map(|warm| (best, warm));
                let grouped = context.grouped(self.number).filter(|_| self.is_first);
                let mut population = match found.or(grouped) {
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
            // The rest of the budget searches the neighbourhood of the best mapping.
            (None, Work::Population(_) | Work::Smooth(_)) => {
                let slots = self.incumbent.best.solution.clone();
                Work::Cycle(Cycle { number: 0, hot: WARM * context.hot, sweeps: 0, slots })
            }
        };
        Ok(())
    }
}

impl Cycle {
    /// Sweeps until the end of the cycle or for about this many evaluations.
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
            meter.record(incumbent.best.cost);
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
