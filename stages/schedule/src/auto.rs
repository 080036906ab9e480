//! `schedule/auto` for tasks that may run anywhere: list heuristics, simulated annealing on islands, and branch and bound on one
//! budget.

mod annealing;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use hopmap_islands::{Candidate, Counts, Evolution, Exchange, Meter, Phase, TimePlan};
use hopmap_model::{Context, Error, seed_stream};
use hopmap_random::{Pcg64, Rng, SeedableRng, index_below};
use serde::{Deserialize, Serialize};

use crate::bounds::lower_bound;
use crate::costs::{Costs, with_costs};
use crate::params::AutoParams;
use crate::plan::{Evaluator, Plan, Scheduler, SearchResult};
use crate::problem::Problem;
use crate::timeline::Timeline;
use crate::{exact, list};
use annealing::{Acceptance, Cycle, Moves};

/// Default product of evaluations and tasks of an island, and the limits of the evaluations.
const EVALUATIONS: u64 = 1 << 27;
const MOST_EVALUATIONS: u64 = 1 << 21;
const FEWEST_EVALUATIONS: u64 = 1 << 10;
/// Default number of epochs of a search.
const EPOCHS: u64 = 32;
/// The epoch after which the first island attempts a proof.
const PROOF_EPOCH: u64 = 1;
/// What an island spends its time on.
const PLAN: &[Phase] = &[FIRST_EPOCH, PROOF, CYCLE];
const FIRST_EPOCH: Phase = Phase::new("first epoch", 0.125, "the rest");
const PROOF: Phase = Phase::new("proof on the first island", 0.25, "the rest");
const CYCLE: Phase = Phase::new("cycle", 1.0 / 3.0, "the rest");
/// Number of elite plans of an island.
const ELITES: usize = 8;
/// Initial and final temperature of a cycle, relative to the mean execution time.
const HOT: f64 = 0.3;
const COLD: f64 = 0.02;
/// Proposals of the first cycle per task. They double every few cycles, up to a maximum factor.
const FIRST_CYCLE: u64 = 400;
const EQUALLY_LONG: u64 = 4;
const MOST_DOUBLINGS: u64 = 4;
/// Minimum proposals per task of a hot cycle; shorter cycles start cold and stay near their initial plan.
const WORTH_HEAT: u64 = 100;
/// Minimum number of proposals of a cycle.
const SHORTEST: u64 = 1024;

/// Chooses the search strategy by itself.
///
/// It starts with the plans of all list heuristics and is never worse than any of them. Every island then anneals one plan after
/// the other: one of the lists, one of its elites, or the global incumbent. A proposal changes the processor or the turn of a
/// task; moves a task with its parents, its children, its critical chain of parents or its neighbours on the processor; swaps two
/// tasks; or swaps the schedules of two processors from some time on. Every other proposal concerns a task of the critical path.
/// Only the times that a proposal changes are recomputed, and only until rejection is certain: the acceptance threshold is drawn
/// in advance.
///
/// After some epochs the first island tries to prove optimality, or to find a better plan, by branch and bound on a fraction of
/// its budget. The search ends early if a plan equals the lower bound.
impl Scheduler for AutoParams {
    fn check(&self) -> Result<(), Error> {
        self.budget()?;
        Ok(())
    }

    fn schedule(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult<Plan>, Error> {
        let begin = Instant::now();
        let budget = self.budget()?;
        let mut evaluator = Evaluator::new(problem);
        let mut starts: Vec<Candidate<Plan>> = list::all(problem)
            .into_iter()
            .map(|(_, plan)| Candidate { cost: evaluator.makespan(&plan), solution: plan })
            .collect();
        starts.sort_by_key(|start| start.cost);
        let bound = lower_bound(problem);
        let evaluations = starts.len() as u64;
        if let Some(best) = starts.first().filter(|best| best.cost <= bound) {
            let (best, makespan) = (best.solution.clone(), best.cost);
            return Ok(SearchResult {
                best,
                makespan,
                lower_bound: makespan,
                evaluations,
                convergence: Vec::new(),
                complete: true,
            });
        }
        TimePlan::begin(PLAN).words(budget.time()).iter().for_each(|line| cx.log(line));
        let budget = budget.after(0, begin.elapsed());
        let default = default_evaluations(problem.tasks());
        let found = with_costs!(problem, |costs| {
            let context = SearchContext::new(&costs, starts, bound);
            budget.evolve(&Islands { seed: self.seed, context, epoch: default / EPOCHS, cx }, default, cx)
        })?;
        let known = found.counts.get(BOUND).map_or(bound, |&bound| bound.cast_signed());
        let makespan = found.best.cost;
        Ok(SearchResult {
            makespan,
            lower_bound: known.min(makespan),
            best: found.best.solution.plan,
            evaluations: found.evaluations + evaluations,
            convergence: found.convergence,
            complete: found.complete,
        })
    }
}

/// Default evaluations of an island: one or two seconds for 50 tasks, and little more for many.
fn default_evaluations(tasks: usize) -> u64 {
    (EVALUATIONS / tasks as u64).clamp(FEWEST_EVALUATIONS, MOST_EVALUATIONS)
}

/// All islands.
struct Islands<'g, C> {
    seed: u64,
    context: SearchContext<'g, C>,
    /// Evaluations of an epoch.
    epoch: u64,
    cx: &'g Context<'g>,
}

impl<C: Costs> Islands<'_, C> {
    /// Branch and bound on a fraction of the remaining budget; a node counts as an evaluation.
    fn prove(&self, island: &mut Island, meter: &mut Meter<'_>) {
        let time = meter.time_left().map(|time| time.mul_f64(PROOF.share));
        let end = time.map(|time: Duration| Instant::now() + time);
        let stop = || self.cx.should_stop() || end.is_some_and(|end| Instant::now() >= end);
        let nodes = if time.is_some() { meter.left() } else { PROOF.of(meter.left()) };
        let found = exact::search(self.context.costs.problem(), &island.best.solution, nodes, stop);
        island.bound = island.bound.max(found.lower_bound);
        island.receive(Candidate { cost: found.makespan, solution: found.best });
        meter.take_all(found.evaluations.min(meter.left()));
        meter.record(island.best.cost);
    }
}

/// The count that holds the lower bound of an island.
const BOUND: &str = "lower_bound";

/// A plan, and the bound that its island knows.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Answer {
    plan: Plan,
    bound: i64,
}

impl<C: Costs> Evolution for Islands<'_, C> {
    type Island = Island;
    type Solution = Answer;

    fn begin(&self, island: u32, meter: &mut Meter<'_>) -> Result<Island, Error> {
        Ok(Island::new(&self.context, self.seed, island, meter))
    }

    fn advance(&self, island: &mut Island, epoch: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        if epoch == PROOF_EPOCH && island.number == 0 {
            self.prove(island, meter);
        }
        // With a small budget, the first epoch leaves most of it to the proof and later epochs.
        let first = if epoch < PROOF_EPOCH { FIRST_EPOCH.of(meter.left()) } else { u64::MAX };
        let end = meter.spent().saturating_add(self.epoch.min(first.max(1)));
        Ok(island.anneal(&self.context, end, meter) && !island.is_done())
    }

    fn best(&self, island: &Island) -> Candidate<Answer> {
        let plan = island.best.solution.clone();
        Candidate { cost: island.best.cost, solution: Answer { plan, bound: island.bound } }
    }

    /// The highest bound of all islands is the bound of the search.
    fn counts(&self, island: &Island) -> Counts {
        Counts::from([(BOUND.to_owned(), island.bound.unsigned_abs())])
    }

    fn exchange(&self, _: u64) -> Exchange {
        Exchange::Best
    }

    fn receive(&self, island: &mut Island, _: u64, migrants: Vec<Candidate<Answer>>) {
        for Candidate { cost, solution: Answer { plan, bound } } in migrants {
            island.bound = island.bound.max(bound);
            island.receive(Candidate { cost, solution: plan });
        }
    }
}

/// Data shared by all islands of a search.
struct SearchContext<'g, C> {
    costs: &'g C,
    acceptance: Acceptance,
    /// Initial plans, at least one; the best first.
    starts: Vec<Candidate<Plan>>,
    /// Lower bound of the makespan.
    bound: i64,
    /// The mean execution time of a task.
    unit: f64,
}

impl<'g, C: Costs> SearchContext<'g, C> {
    fn new(costs: &'g C, starts: Vec<Candidate<Plan>>, bound: i64) -> Self {
        let tasks = costs.problem().tasks();
        let work: i64 = (0..tasks as u32).map(|task| costs.work(task, 0)).sum();
        Self { costs, acceptance: Acceptance::new(), starts, bound, unit: work as f64 / tasks as f64 }
    }
}

/// An island of the search.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Island {
    number: u32,
    /// The incumbent.
    best: Candidate<Plan>,
    /// Lower bound of the makespan, as far as this island knows.
    bound: i64,
    random: Pcg64,
    /// Elite plans, which differ from each other.
    elites: Vec<Candidate<Plan>>,
    /// Number of cycles so far.
    cycles: u64,
    cycle: Cycle,
}

impl Island {
    fn new<C: Costs>(context: &SearchContext<'_, C>, seed: u64, number: u32, meter: &Meter<'_>) -> Self {
        let random = Pcg64::from_seed(seed_stream(AutoParams::KIND, seed, u64::from(number)));
        let start = context.starts[number as usize % context.starts.len()].clone();
        let cycle = new_cycle(context, start, 0, meter);
        let best = context.starts[0].clone();
        Self { number, best, bound: context.bound, random, elites: Vec::new(), cycles: 0, cycle }
    }

    /// Whether the incumbent is proven optimal.
    fn is_done(&self) -> bool {
        self.best.cost <= self.bound
    }

    /// Adds a plan of another island.
    fn receive(&mut self, candidate: Candidate<Plan>) {
        if candidate.cost < self.best.cost {
            self.best = candidate.clone();
        }
        self.keep(candidate);
    }

    /// Continues for about the given number of evaluations; `false` if the meter stopped it.
    fn anneal<C: Costs>(&mut self, context: &SearchContext<'_, C>, end: u64, meter: &mut Meter<'_>) -> bool {
        let mut timeline = Timeline::new(context.costs, &self.cycle.plan);
        let mut moves = Moves::new();
        while meter.spent() < end && !self.is_done() {
            let acceptance = &context.acceptance;
            let until = (end, self.bound);
            let goes_on =
                self.cycle.run(&mut timeline, &mut moves, acceptance, &mut self.random, until, meter);
            if self.cycle.best.cost < self.best.cost {
                self.best = self.cycle.best.clone();
            }
            if !goes_on {
                return false;
            }
            if self.cycle.is_over() {
                self.begin_next(context, meter);
            }
        }
        true
    }

    fn begin_next<C: Costs>(&mut self, context: &SearchContext<'_, C>, meter: &Meter<'_>) {
        self.keep(self.cycle.best.clone());
        self.cycles += 1;
        let draw = self.random.next_u64();
        let start = match draw >> 62 {
            0 => &context.starts[index_below(draw as u32, context.starts.len())],
            1 => &self.best,
            _ => &self.elites[index_below(draw as u32, self.elites.len())],
        };
        self.cycle = new_cycle(context, start.clone(), self.cycles, meter);
        if !self.cycle.is_hot() {
            self.cycle = new_cycle(context, self.best.clone(), self.cycles, meter);
        }
    }

    /// Adds a plan to the elites if it is good enough and differs from all of them.
    fn keep(&mut self, candidate: Candidate<Plan>) {
        let is_known = |elite: &Candidate<Plan>| {
            elite.cost == candidate.cost && elite.solution.processor == candidate.solution.processor
        };
        if self.elites.iter().any(is_known) {
            return;
        }
        let at = self.elites.partition_point(|elite| elite.cost <= candidate.cost);
        self.elites.insert(at, candidate);
        self.elites.truncate(ELITES);
    }
}

/// A cycle whose length follows from its number and the budget.
fn new_cycle<C: Costs>(
    context: &SearchContext<'_, C>,
    start: Candidate<Plan>,
    number: u64,
    meter: &Meter<'_>,
) -> Cycle {
    let tasks = context.costs.problem().tasks() as u64;
    let wanted = (FIRST_CYCLE * tasks) << (number / EQUALLY_LONG).min(MOST_DOUBLINGS);
    let length = wanted.min(CYCLE.of(meter.outlook()).max(SHORTEST));
    let hot = if length >= WORTH_HEAT * tasks { HOT } else { COLD };
    Cycle::new(start, [hot * context.unit, COLD * context.unit], length)
}
