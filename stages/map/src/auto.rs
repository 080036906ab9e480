//! `map/auto`: an algorithm portfolio, chosen by size, density and budget.
//!
//! # Algorithm
//!
//! Every island first runs a cycle of simulated annealing that refines the linear or the greedy mapping,
//! whichever costs less. If the budget allows, population annealing follows (`auto/population.rs`), which
//! cools many mappings together. Each population has eight times the work of the previous one; the last one
//! takes the rest of the budget. With less budget, more cycles follow. A population
//!
//! - starts at the temperature at which a quarter of all proposals are accepted and change the cost
//!   (`auto/context.rs`),
//! - is resampled at every step to a lower temperature with the weights exp(−Δβ · F), so that members with
//!   low cost replace those with high cost; the step is limited so that the effective size stays at 95 %,
//! - ends when fewer than 0.2 % of the proposals change the cost.
//!
//! Resampling finds the right one of many funnels. In Taillard's structured instances, the assignment of
//! groups to halves freezes first, at the highest temperature. Annealing a single mapping never repairs it
//! later; a population continues from the members that have it right. Problems without such a structure are
//! left to robust tabu search (`auto/walk.rs`), if it finds more than the populations on this instance.
//!
//! # Where a search begins
//!
//! The first applicable of these gives the start (`Auto::map`):
//!
//! - On machines that are not trees, a program that is a grid is embedded directly in a machine that is one
//!   (`grids.rs`), and other sparse programs are cut along the machine (`dual.rs`). If all neighbours are at the
//!   least cost then, there is nothing to search.
//! - Coarse starts for dense problems with clusters (`auto/coarse.rs`): clusters of ranks with similar rows of
//!   weights are mapped to clusters of slots with similar costs, then clusters inside them, in many ways of
//!   low cost. Every population begins with them, except on every other island, or every fourth one from 100
//!   ranks.
//! - From 512 ranks on a tree, `map/hierarchical` gives the start, if a time limit leaves enough time.
//!
//! The search then starts from this mapping at a temperature that accepts few proposals and so preserves it,
//! unless the linear or the greedy mapping costs less.
//!
//! If the objective has a maximum, norms in its place are annealed first (`auto/norms.rs`). On a tree, the
//! mapping of `map/hierarchical` is then the first incumbent for any number of ranks.
//!
//! # Islands
//!
//! Between two epochs an island is plain data (`islands::Evolution`): it can be saved, sent to another
//! process and resumed with the same result. Islands wait for each other only to exchange or to be saved. An
//! interrupted island is saved in its state before the interrupted epoch.
//!
//! Islands on one thread take turns until the search ends and share its time limit.

mod clusters;
mod coarse;
mod context;
mod norms;
mod population;
mod walk;

use std::time::Instant;

use hopmap_islands::{Budget, Candidate, Evolution, Meter, TimePlan};
use hopmap_model::{Context, Error, OutOfRange, seed_stream};
use hopmap_objective::{Assignment, ObjectiveError, Problem};
use hopmap_random::{Pcg64, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::baseline::linear_or_greedy;
use crate::hierarchical::Hierarchical;
use crate::mapper::{Mapper, SearchResult};
use crate::moves::{Incumbent, descend, sweep_within, temperatures};
use crate::params::{AutoParams, HierarchicalParams, kind};
use crate::plan::{
    AUTO, AUTO_OF_MAXIMUM, BEHIND_WALK, CLUSTERS, DESCENT_OF_NORM, FINISH, FIRST_PARTITION, ISLANDS,
    PARTITION, POPULATION, TEMPERATURES, WALK,
};
use crate::starts::Start;
use coarse::Coarse;
use context::SearchContext;
use norms::{Chain, norms};
use population::{Plan, Population, Size, StepOutcome, default_evaluations};
use walk::Walk;

/// Evaluations of one epoch of an island. Islands are saved only between epochs, so an interruption loses at
/// most this work.
const EPOCH: u64 = 1 << 20;

/// Evaluations of the local search at the end, of a maximum, over those before; an evaluation takes long.
const DESCENT_RATIO: u64 = 16;
/// Number of the norm that local search lowers if there is no time to find temperatures: that with exponent 8.
const DESCENT_NORM: usize = 2;
/// Minimum number of ranks on a tree for a start from `map/hierarchical`.
const MANY_RANKS: usize = 512;
/// Expected times of one partition above which a time limit allows several.
const LONG: u32 = 4;

/// Algorithm portfolio: annealing cycles, population annealing (Hukushima and Iba 2003), robust tabu search or a
/// multilevel start, by size, density and budget.
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
        let direct = Start::new(problem, self.seed, self.budget.time())?;
        if let Some(start) = direct.as_ref().filter(|start| start.is_optimal) {
            return Ok(SearchResult::at_once(start.slots.clone()));
        }
        let norms = norms(problem);
        let has_maximum = !norms.is_empty();
        let mut plan = TimePlan::begin(if has_maximum { AUTO_OF_MAXIMUM } else { AUTO });
        // An evaluation of a maximum may take milliseconds.
        let end = self.budget.part(&TEMPERATURES).time().and_then(|time| begin.checked_add(time));
        let end = end.into_iter().chain(cx.deadline()).filter(|_| has_maximum).min();
        let start = || linear_or_greedy(problem);
        let Some(mut context) = SearchContext::new(problem, self.budget.islands(), end, start)? else {
            return Ok(SearchResult::at_once(problem.linear()));
        };
        plan.ended(&TEMPERATURES);
        let default = default_evaluations(context.movable.len() as u64);
        let (mut spent_before, mut is_whole) = (0, true);
        if let Some(start) = direct.filter(|start| context.is_better(&start.slots)) {
            context.give_starts(vec![start.slots], false)?;
        } else if let Some(coarse) = Coarse::new(problem) {
            let most = self.budget.part(&CLUSTERS).evaluations(default);
            let starts;
            (starts, spent_before) = coarse.starts(self.seed, most);
            context.give_starts(starts, true)?;
            plan.ended(&CLUSTERS);
        } else if let Some(partition) = self.partition(problem, has_maximum)? {
            let start = partition.map(problem, cx)?;
            (spent_before, is_whole) = (start.evaluations, start.complete);
            context.give_starts(vec![start.slots], false)?;
            plan.ended(&PARTITION);
        }
        let contexts = norms.iter().filter_map(|norm| {
            SearchContext::new(norm, self.budget.islands(), end, || context.start.clone()).transpose()
        });
        context.norms = contexts.collect::<Result<_, _>>()?;
        plan.ended(&TEMPERATURES);
        let spent = spent_before.div_ceil(u64::from(self.budget.islands()));
        let budget = self.budget.after(spent, begin.elapsed());
        let descent = match (has_maximum, self.budget.time()) {
            (true, None) => self.budget.evaluations(default).saturating_mul(DESCENT_RATIO),
            _ => u64::MAX,
        };
        let has_no_temperatures = context.has_no_temperatures();
        let search = Search { seed: self.seed, context: &context, has_no_temperatures, descent };
        // Islands of a start that was interrupted cannot be resumed identically.
        let mut found = match cx.should_stop() {
            true => budget.evolve(&search, default, &cx.without_state())?,
            false => budget.evolve(&search, default, cx)?,
        };
        found.evaluations += spent_before;
        found.complete &= is_whole;
        plan.ended(&ISLANDS);
        Ok(SearchResult {
            phases: plan.words(self.budget.time()),
            ..SearchResult::of_islands(found, problem)
        })
    }
}

impl Auto {
    /// The partition at the start of a search that has time for one. With little time the first one gives the largest
    /// gain; with more time further ones pay off. A maximum takes a long local search.
    fn partition(&self, problem: &Problem, has_maximum: bool) -> Result<Option<Hierarchical>, Error> {
        let is_useful = problem.ranks() >= MANY_RANKS || has_maximum;
        let (limit, time) = (self.budget.time(), Hierarchical::time_for(problem));
        if !is_useful || !problem.distance().is_tree() || limit.is_some_and(|limit| limit <= time) {
            return Ok(None);
        }
        let part = self.budget.part(if has_maximum { &FIRST_PARTITION } else { &PARTITION });
        let is_timed = limit.is_some_and(|limit| has_maximum || limit > LONG * time);
        let time_limit_s = part.time().filter(|_| is_timed).map(|time| time.as_secs_f64());
        let evaluations = (has_maximum && !is_timed).then(|| part.evaluations(u64::MAX));
        let defaults = HierarchicalParams { seed: self.seed, ..HierarchicalParams::default() };
        Hierarchical::new(&HierarchicalParams { evaluations, time_limit_s, ..defaults }).map(Some)
    }
}

/// The search on all islands.
struct Search<'g> {
    seed: u64,
    context: &'g SearchContext<'g>,
    /// Whether there was no time to find temperatures, so that only local search remains.
    has_no_temperatures: bool,
    /// Evaluations of the local search at the end, at most.
    descent: u64,
}

impl<'g> Evolution for Search<'g> {
    type Island = Island<'g>;
    type Solution = Vec<u32>;
    const FINISH_SHARE: f64 = FINISH.share;

    fn begin(&self, island: u32, _: &mut Meter<'_>) -> Result<Self::Island, Error> {
        Ok(Island::new(self.context, self.seed, island)?)
    }

    fn advance(&self, island: &mut Self::Island, _: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        if self.has_no_temperatures {
            return Ok(false);
        }
        let end = meter.spent().saturating_add(EPOCH);
        island.restore(self.context)?;
        while meter.spent() < end {
            match island.work(self.context, end, meter)? {
                StepOutcome::Unfinished => {}
                StepOutcome::Finished => island.begin_next(self.context, meter)?,
                StepOutcome::Stopped => return Ok(false),
            }
        }
        Ok(true)
    }

    fn finish(&self, island: &mut Self::Island, meter: &mut Meter<'_>) -> Result<(), Error> {
        if meter.begin_descent() {
            if self.has_no_temperatures
                && let Some(norm) = self.context.norms.get(DESCENT_NORM)
            {
                let time = meter.time_left().map(|left| left.mul_f64(DESCENT_OF_NORM.share));
                let end = time.and_then(|time| Instant::now().checked_add(time));
                let mut assignment = Assignment::new(norm.problem, &island.incumbent.best.solution)?;
                let has_time = || end.is_none_or(|end| Instant::now() < end);
                descend(&mut assignment, || has_time() && meter.take());
                island.incumbent.offer(self.context.problem, assignment.slots());
            }
            let mut assignment = Assignment::new(self.context.problem, &island.incumbent.best.solution)?;
            let mut left = self.descent;
            descend(&mut assignment, || {
                left = left.saturating_sub(1);
                left > 0 && meter.take()
            });
            island.incumbent.replace(&assignment);
        }
        Ok(())
    }

    fn best(&self, island: &Self::Island) -> Candidate<Self::Solution> {
        island.incumbent.best.clone()
    }
}

/// Sweeps of the first cycle, and of any at least. Without a start to keep, each cycle has twice as many as the
/// previous one.
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
    /// Whether neither a population nor a long cycle has been annealed yet.
    is_first: bool,
    work: Work<'p>,
    /// The tabu walk, after the first population.
    walk: Option<Walk<'p>>,
    /// Lowest cost of populations and the evaluations for all.
    annealed: (i64, u64),
}

/// Current work of an island.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "")]
enum Work<'p> {
    Norms(Chain),
    Cycle(Cycle),
    Population(Population<'p>),
    /// The walk, until the meter has this many evaluations.
    Walk(u64),
}

/// A cycle of annealing between two sweeps.
#[derive(Clone, Serialize, Deserialize)]
struct Cycle {
    /// Start temperature.
    hot: f64,
    /// All sweeps, and those so far.
    sweeps: u64,
    done: u64,
    slots: Vec<u32>,
}

impl<'p> Island<'p> {
    fn new(context: &SearchContext<'p>, seed: u64, island: u32) -> Result<Self, ObjectiveError> {
        let (slots, hot) =
            Self::start(context, island).unwrap_or((&context.start, WARM * context.mean_change));
        let is_good = context.given_starts.is_some() && slots.len() >= MANY_RANKS;
        let work = match Chain::new(context, island, slots, is_good)? {
            Some(chain) => Work::Norms(chain),
            None => Work::Cycle(Cycle::new(slots, hot, FIRST_SWEEPS)),
        };
        Ok(Self {
            incumbent: Incumbent::new(context.problem.cost(slots), slots.to_vec()),
            random: Pcg64::from_seed(seed_stream(kind::AUTO, seed, u64::from(island))),
            number: island,
            plan: Plan::new(context.movable.len() as u64, context.most_members),
            is_first: true,
            work,
            walk: None,
            annealed: (i64::MAX, 0),
        })
    }

    /// Start mapping from an easier problem, and its temperature.
    fn start<'c>(context: &'c SearchContext<'_>, island: u32) -> Option<(&'c [u32], f64)> {
        let given_starts = context.given_starts(island)?;
        Some((given_starts.of(island).next()?, given_starts.warm))
    }

    /// Restores mappings from their stored form.
    fn restore(&mut self, context: &SearchContext<'p>) -> Result<(), ObjectiveError> {
        if let Some(walk) = &mut self.walk {
            walk.restore(context.problem)?;
        }
        match &mut self.work {
            Work::Norms(_) | Work::Cycle(_) | Work::Walk(_) => Ok(()),
            Work::Population(population) => population.restore(context),
        }
    }

    /// Continues the current work, and makes the most of what it found when it is finished.
    fn work(
        &mut self,
        context: &SearchContext<'p>,
        end: u64,
        meter: &mut Meter<'_>,
    ) -> Result<StepOutcome, ObjectiveError> {
        let Self { incumbent, random, walk, .. } = self;
        let begin = meter.spent();
        let outcome = match &mut self.work {
            Work::Norms(chain) => chain.run(context, random, end, meter, incumbent)?,
            Work::Cycle(cycle) => cycle.run(context, random, end, meter, incumbent)?,
            Work::Population(population) => population.step(context, random, meter, incumbent),
            Work::Walk(until) => {
                walk.as_mut().map_or(StepOutcome::Finished, |walk| walk.run(end, *until, meter, incumbent))
            }
        };
        let is_finished = matches!(outcome, StepOutcome::Finished);
        match &mut self.work {
            Work::Norms(_) if is_finished => {
                let mut assignment = Assignment::new(context.problem, &incumbent.best.solution)?;
                descend(&mut assignment, || meter.take());
                incumbent.replace(&assignment);
            }
            Work::Population(population) => {
                if is_finished {
                    self.plan.note(population.steps());
                    population.descend_all(meter, incumbent);
                    population.explore(context, random, meter, incumbent);
                    self.annealed.0 = self.annealed.0.min(population.least().unwrap_or(i64::MAX));
                }
                self.annealed.1 += meter.spent() - begin;
            }
            _ => {}
        }
        Ok(outcome)
    }

    /// What to do next, when the current work is finished: populations and the walk take turns, and cycles follow if
    /// the budget is too small for a population.
    fn next_step(&mut self, context: &SearchContext<'_>, meter: &Meter<'_>) -> NextStep {
        let mut most = u64::MAX;
        let (least, annealed) = self.annealed;
        if context.walks && annealed > 0 {
            let (best, walked) = self.walk.as_ref().map_or((i64::MAX, 0), |walk| (walk.best, walk.spent));
            let few = BEHIND_WALK.of(walked);
            let walks = match best < least {
                false => WALK.of(annealed).saturating_sub(walked),
                // The walk leads, and gets most of the time.
                true if annealed.max(1) < few && few < meter.outlook() => 0,
                true => meter.left().min(EPOCH),
            };
            if walks > 0 {
                return NextStep::Walk(walks);
            }
            most = if best < least { few } else { u64::MAX };
        }
        let (ranks, left) = (context.movable.len() as u64, meter.outlook().min(most));
        let sweeps = (POPULATION.share * left as f64 / ranks as f64) as u64;
        let is_first = std::mem::take(&mut self.is_first);
        let start = Self::start(context, self.number).filter(|_| context.problem.is_quadratic());
        if let Some(size) = self.plan.next(ranks, left) {
            return NextStep::Population(size, is_first);
        }
        NextStep::Cycle(match (&self.work, start) {
            // A hot cycle would melt the start.
            (Work::Cycle(_), Some((slots, warm))) if is_first => Cycle::new(slots, warm, sweeps),
            (Work::Cycle(Cycle { slots, sweeps, .. }), None) => {
                Cycle::new(slots, HOT * context.mean_change, 2 * sweeps)
            }
            _ => Cycle::new(&self.incumbent.best.solution, WARM * context.hot, sweeps),
        })
    }

    fn begin_next(&mut self, context: &SearchContext<'p>, meter: &Meter<'_>) -> Result<(), ObjectiveError> {
        let next = self.next_step(context, meter);
        let best = &self.incumbent.best.solution;
        self.work = match next {
            NextStep::Walk(evaluations) => {
                if self.walk.is_none() {
                    self.walk = Some(Walk::new(context.problem, best, &mut self.random)?);
                }
                Work::Walk(meter.spent() + evaluations)
            }
            NextStep::Population(size, is_first) => {
                let given = context.given_starts(self.number).filter(|given| is_first || given.differ);
                let mut population = match (&self.work, given) {
                    (Work::Norms(_), _) => {
                        Population::of_starts(std::iter::repeat(best), context.find_warm(best)?, size)
                    }
                    (_, Some(given)) => Population::of_starts(given.of(self.number), given.warm, size),
                    (_, None) => Population::new(context, size, &mut self.random),
                };
                population.restore(context)?;
                Work::Population(population)
            }
            NextStep::Cycle(cycle) => Work::Cycle(cycle),
        };
        Ok(())
    }
}

/// What an island does next.
enum NextStep {
    /// The tabu walk, with its number of evaluations.
    Walk(u64),
    /// A population, and whether nothing was annealed from the given starts before.
    Population(Size, bool),
    /// A cycle from the given start, from the last mapping and twice as long, or near the best mapping.
    Cycle(Cycle),
}

impl Cycle {
    fn new(slots: &[u32], hot: f64, sweeps: u64) -> Self {
        Self { hot, sweeps: sweeps.max(FIRST_SWEEPS), done: 0, slots: slots.to_vec() }
    }

    /// Sweeps until the end of the cycle or for about this many evaluations.
    fn run(
        &mut self,
        context: &SearchContext<'_>,
        random: &mut Pcg64,
        end: u64,
        meter: &mut Meter<'_>,
        incumbent: &mut Incumbent,
    ) -> Result<StepOutcome, ObjectiveError> {
        let mut assignment = Assignment::new(context.problem, &self.slots)?;
        let temperatures = temperatures(self.hot, COLD * self.hot.min(context.mean_change), self.sweeps);
        let mut outcome = StepOutcome::Finished;
        for temperature in temperatures.skip(self.done as usize) {
            let (ranks, acceptance) = (&context.movable, &context.acceptance);
            let swept =
                sweep_within(meter, &mut assignment, ranks, temperature, acceptance, random, incumbent);
            meter.record(incumbent.best.cost);
            if swept.is_none() {
                outcome = StepOutcome::Stopped;
                break;
            }
            self.done += 1;
            if meter.spent() >= end && self.done < self.sweeps {
                outcome = StepOutcome::Unfinished;
                break;
            }
        }
        self.slots.copy_from_slice(assignment.slots());
        Ok(outcome)
    }
}
