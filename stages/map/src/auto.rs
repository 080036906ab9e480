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

use std::time::{Duration, Instant};

use hopmap_islands::{Budget, Candidate, Evolution, Meter};
use hopmap_model::{Context, Error, OutOfRange, seed_stream};
use hopmap_objective::{Assignment, ObjectiveError, Problem};
use hopmap_random::{Pcg64, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::baseline::linear_or_greedy;
use crate::hierarchical::Hierarchical;
use crate::mapper::{Mapper, SearchResult};
use crate::moves::{Incumbent, descend, sweep_within, temperatures};
use crate::params::{AutoParams, HierarchicalParams, kind};
use crate::starts::Start;
use coarse::Coarse;
use context::SearchContext;
use norms::{Chain, norms};
use population::{Plan, Population, SAFE, StepOutcome, default_evaluations};
use walk::Walk;

/// Evaluations of one epoch of an island. Islands are saved only between epochs, so an interruption loses at
/// most this work.
const EPOCH: u64 = 1 << 20;

/// Fraction of the budget for the problem of clusters of ranks, which is searched first, and its evaluation limit
/// per island: it only provides a start.
const FIRST_SHARE: f64 = 0.15;
const FIRST_EVALUATIONS: u64 = 1 << 22;
/// Evaluations of the local search at the end, of a maximum, over those before; an evaluation takes long.
const DESCENT_RATIO: u64 = 16;
/// Evaluations of the local search after a partition, of a maximum.
const PARTITION_EVALUATIONS: u64 = 1 << 21;

/// Fraction of the time limit in which the temperatures of a maximum and of its norms are found.
const TEMPERATURE_SHARE: f64 = 0.4;
/// Number of the norm that local search lowers if there is no time to find temperatures: that with exponent 8.
const DESCENT_NORM: usize = 2;
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
/// With a small budget more cycles follow. Otherwise populations are annealed one after the other, each
/// with eight times the work of the previous one; the last one takes the rest of the budget. For dense
/// problems, robust tabu search continues from the best member of a frozen population, and also walks on its
/// own, as long as the populations before; if it then leads, it gets most of the budget. A local search
/// improves the best mapping at the end.
///
/// In dense problems, clusters of ranks with similar rows of weights are first mapped to clusters of slots
/// with similar costs, and then clusters inside them. Many ranks on a tree are first partitioned, as in
/// [`Hierarchical`]. On other machines, grids are embedded in grids, and other sparse programs are cut along
/// the machine. The search starts from these mappings. If the objective has a maximum, norms in its place are
/// annealed first.
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
        let direct = Start::new(problem, self.seed, self.budget.time())?;
        if let Some(start) = direct.as_ref().filter(|start| start.is_optimal) {
            return Ok(SearchResult::at_once(start.slots.clone()));
        }
        let norms = norms(problem);
        // An evaluation of a maximum may take milliseconds.
        let time = self.budget.time().filter(|_| !norms.is_empty());
        let end = time.and_then(|time| begin.checked_add(time.mul_f64(TEMPERATURE_SHARE)));
        let end = end.into_iter().chain(cx.deadline().filter(|_| !norms.is_empty())).min();
        let start = || linear_or_greedy(problem);
        let Some(mut context) = SearchContext::new(problem, self.budget.islands(), end, start)? else {
            return Ok(SearchResult::at_once(problem.linear()));
        };
        let default = default_evaluations(context.movable.len() as u64);
        let (mut spent_before, mut is_whole) = (0, true);
        if let Some(start) = direct.filter(|start| context.is_better(&start.slots)) {
            context.set_given_starts(vec![start.slots], false)?;
        } else if let Some(coarse) = Coarse::new(problem) {
            let most = self.budget.part(FIRST_SHARE, FIRST_EVALUATIONS).evaluations(default);
            let starts;
            (starts, spent_before) = coarse.starts(self.seed, most);
            context.set_given_starts(starts, true)?;
        } else if self.cuts(problem, !norms.is_empty()) {
            // With little time the first partition gives the largest gain; with more time further ones pay
            // off. A maximum takes a long local search.
            let is_long = |time: &Duration| *time > LONG * Hierarchical::time_for(problem);
            let time = self.budget.time().filter(|time| is_long(time) || !norms.is_empty());
            let share = if norms.is_empty() { PARTITION_SHARE } else { FIRST_SHARE };
            let time_limit_s = time.map(|time| share * time.as_secs_f64());
            let of_maximum = time_limit_s.is_none() && !norms.is_empty();
            let evaluations =
                of_maximum.then(|| self.budget.part(FIRST_SHARE, PARTITION_EVALUATIONS).evaluations(default));
            let seed = self.seed;
            let params =
                HierarchicalParams { seed, evaluations, time_limit_s, ..HierarchicalParams::default() };
            let start = Hierarchical::new(&params)?.map(problem, cx)?;
            (spent_before, is_whole) = (start.evaluations, start.complete);
            context.set_given_starts(vec![start.slots], false)?;
        }
        let contexts = norms.iter().filter_map(|norm| {
            SearchContext::new(norm, self.budget.islands(), end, || context.start.clone()).transpose()
        });
        context.norms = contexts.collect::<Result<_, _>>()?;
        let spent = spent_before.div_ceil(u64::from(self.budget.islands()));
        let budget = self.budget.after(spent, begin.elapsed());
        let descent = match (norms.is_empty(), self.budget.time()) {
            (false, None) => self.budget.evaluations(default).saturating_mul(DESCENT_RATIO),
            _ => u64::MAX,
        };
        let search = Search {
            seed: self.seed,
            context: &context,
            has_no_temperatures: context.has_no_temperatures(),
            descent,
        };
        // Islands of a start that was interrupted cannot be resumed identically.
        let mut found = match cx.should_stop() {
            true => budget.evolve(&search, default, &cx.without_state())?,
            false => budget.evolve(&search, default, cx)?,
        };
        found.evaluations += spent_before;
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
    const FINISH_SHARE: f64 = 0.05;

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
            if !island.work(self.context, end, meter)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn finish(&self, island: &mut Self::Island, meter: &mut Meter<'_>) -> Result<(), Error> {
        if meter.begin_descent() {
            if self.has_no_temperatures
                && let Some(norm) = self.context.norms.get(DESCENT_NORM)
            {
                // A maximum is flat, so half of the time goes to a norm.
                let end = meter.time_left().and_then(|left| Instant::now().checked_add(left / 2));
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
/// Evaluations of a walk that leads, in multiples of those of populations.
const WALKER_SHARE: u64 = 8;
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

    /// Continues for about this many evaluations; `false` if the meter stopped it.
    fn work(
        &mut self,
        context: &SearchContext<'p>,
        end: u64,
        meter: &mut Meter<'_>,
    ) -> Result<bool, ObjectiveError> {
        let Self { incumbent, random, walk, .. } = self;
        let begin = meter.spent();
        let outcome = match (&mut self.work, walk) {
            (Work::Norms(chain), _) => chain.run(context, random, end, meter, incumbent)?,
            (Work::Cycle(cycle), _) => cycle.run(context, random, end, meter, incumbent)?,
            (Work::Population(population), _) => population.step(context, random, meter, incumbent),
            (Work::Walk(until), Some(walk)) => walk.run(end, *until, meter, incumbent),
            (Work::Walk(_), None) => StepOutcome::Finished,
        };
        if let (StepOutcome::Finished, Work::Norms(_)) = (&outcome, &self.work) {
            let mut assignment = Assignment::new(context.problem, &incumbent.best.solution)?;
            descend(&mut assignment, || meter.take());
            incumbent.replace(&assignment);
        }
        if let (StepOutcome::Finished, Work::Population(population)) = (&outcome, &mut self.work) {
            self.plan.note(population.steps());
            population.descend_all(meter, incumbent);
            population.explore(context, random, meter, incumbent);
            self.annealed.0 = self.annealed.0.min(population.least().unwrap_or(i64::MAX));
        }
        if let Work::Population(_) = self.work {
            self.annealed.1 += meter.spent() - begin;
        }
        match outcome {
            StepOutcome::Stopped => return Ok(false),
            StepOutcome::Unfinished => return Ok(true),
            StepOutcome::Finished => {}
        }
        self.begin_next(context, meter)?;
        Ok(true)
    }

    /// How long the walk continues, and the evaluations that the next population may take: those of the walk
    /// so far if populations lead, few if the walk leads.
    fn share(
        &mut self,
        context: &SearchContext<'p>,
        meter: &Meter<'_>,
    ) -> Result<(u64, u64), ObjectiveError> {
        let (least, annealed) = self.annealed;
        if !context.walks || annealed == 0 {
            return Ok((0, u64::MAX));
        }
        let Some(walk) = &self.walk else {
            let slots = &self.incumbent.best.solution;
            self.walk = Some(Walk::new(context.problem, slots, &mut self.random)?);
            return Ok((annealed, u64::MAX));
        };
        Ok(match walk.best < least {
            true if annealed.max(1) < walk.spent / WALKER_SHARE
                && walk.spent / WALKER_SHARE < meter.outlook() =>
            {
                (0, walk.spent / WALKER_SHARE)
            }
            true => (meter.left().min(EPOCH), 0),
            false => (annealed.saturating_sub(walk.spent), u64::MAX),
        })
    }

    /// The next population, or the next cycle if the budget is too small for one.
    fn begin_next(&mut self, context: &SearchContext<'p>, meter: &Meter<'_>) -> Result<(), ObjectiveError> {
        let (walking, most) = self.share(context, meter)?;
        if walking > 0 {
            self.work = Work::Walk(meter.spent() + walking);
            return Ok(());
        }
        let (ranks, left) = (context.movable.len() as u64, meter.outlook().min(most));
        let sweeps = (SAFE * left as f64 / ranks as f64) as u64;
        let size = self.plan.next(ranks, left);
        let is_first = std::mem::take(&mut self.is_first);
        self.work = match (size, &self.work) {
            (Some(size), _) => {
                let best = &self.incumbent.best.solution;
                let norms =
                    matches!(self.work, Work::Norms(_)).then(|| context.find_warm(best)).transpose()?;
                let given_starts =
                    context.given_starts(self.number).filter(|given_starts| is_first || given_starts.differ);
                let mut population = match (norms, given_starts) {
                    (Some(warm), _) => Population::of_starts(std::iter::repeat(best), warm, size),
                    (None, Some(given_starts)) => {
                        Population::of_starts(given_starts.of(self.number), given_starts.warm, size)
                    }
                    (None, None) => Population::new(context, size, &mut self.random),
                };
                population.restore(context)?;
                Work::Population(population)
            }
            (None, Work::Cycle(cycle)) => match Self::start(context, self.number) {
                // A hot cycle would melt the start.
                Some((slots, warm)) if is_first && context.problem.is_quadratic() => {
                    Work::Cycle(Cycle::new(slots, warm, sweeps))
                }
                Some(_) if context.problem.is_quadratic() => self.refine(context, sweeps),
                _ => Work::Cycle(Cycle::new(&cycle.slots, HOT * context.mean_change, 2 * cycle.sweeps)),
            },
            (None, _) => self.refine(context, sweeps),
        };
        Ok(())
    }

    /// The rest of the budget searches the neighbourhood of the best mapping.
    fn refine(&self, context: &SearchContext<'_>, sweeps: u64) -> Work<'p> {
        Work::Cycle(Cycle::new(&self.incumbent.best.solution, WARM * context.hot, sweeps))
    }
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
