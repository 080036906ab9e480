//! `schedule/auto` where tasks may run anywhere.

mod annealing;
mod ground;
mod island;
mod moves;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use hopmap_islands::{Budget, Candidate, Evolution, Exchange, Meter};
use hopmap_model::{Context, Error};
use serde::{Deserialize, Serialize};

use crate::bounds::lower_bound;
use crate::search::{Costs, WithCosts, with_costs};
use crate::{AutoParams, Evaluator, Found, ParameterError, Plan, Problem, Scheduler, exact, list};
use ground::Ground;
use island::Island;

/// Evaluations of an island by default: so many for all tasks together, but no more and no fewer.
const EVALUATIONS: u64 = 1 << 27;
const MOST_EVALUATIONS: u64 = 1 << 21;
const FEWEST_EVALUATIONS: u64 = 1 << 10;
/// Epochs of a search by default.
const EPOCHS: u64 = 32;
/// The epoch after which the first island looks for a proof, and the part of its budget that it spends on that.
const PROOF_EPOCH: u64 = 1;
const PROOF_SHARE: u64 = 4;
/// The part of its budget that it spends before.
const FIRST_EPOCH: u64 = 8;

/// Chooses by itself how to look for the best plan.
///
/// It begins with the plans of all list heuristics and is never worse than any of them. Every island then anneals one plan after the other:
/// one of the lists, one of the best that it has found, or the best of all. Proposals change the processor or the turn of a task; move it
/// with its parents, its children, the chain of parents that it waits for or its neighbours on the processor; exchange two tasks; or change
/// what two processors do from some moment on. Every other one concerns a task of the critical path. Of every proposal only those times
/// are computed that it changes, and only until it is clear that it will not be accepted: how much worse it may be is drawn before.
///
/// After some epochs the first island looks for a proof that the best plan is optimal, or for a better one, by branch and bound on a part
/// of its budget. The search ends early where a plan is as good as the lower bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Auto {
    seed: u64,
    budget: Budget,
}

impl Auto {
    /// Checks the parameters.
    pub fn new(params: &AutoParams) -> Result<Self, ParameterError> {
        let &AutoParams { seed, evaluations, seconds, islands, .. } = params;
        Ok(Self { seed, budget: Budget::new(evaluations, seconds, islands)? })
    }
}

impl Scheduler for Auto {
    fn schedule(&self, problem: &Problem, cx: &Context<'_>) -> Result<Found<Plan>, Error> {
        let begin = Instant::now();
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
            let convergence = Vec::new();
            return Ok(Found {
                best,
                makespan,
                lower_bound: makespan,
                evaluations,
                convergence,
                complete: true,
            });
        }
        let budget = self.budget.after(0, begin.elapsed());
        let mut found = with_costs(problem, Search { seed: self.seed, budget, starts, bound, cx })?;
        found.evaluations += evaluations;
        Ok(found)
    }
}

/// A search that knows where to begin.
struct Search<'s> {
    seed: u64,
    budget: Budget,
    starts: Vec<Candidate<Plan>>,
    bound: i64,
    cx: &'s Context<'s>,
}

impl WithCosts for Search<'_> {
    type Output = Result<Found<Plan>, Error>;

    fn run<C: Costs>(self, costs: &C) -> Self::Output {
        let default = default_evaluations(costs.problem().tasks());
        let ground = Ground::new(costs, self.starts, self.bound);
        let islands = Islands { seed: self.seed, ground, epoch: default / EPOCHS, cx: self.cx };
        let found = self.budget.evolve(&islands, default, self.cx)?;
        let bounds = found.bests.iter().map(|best| best.solution.bound);
        let makespan = found.best.cost;
        Ok(Found {
            makespan,
            lower_bound: bounds.max().unwrap_or(self.bound).min(makespan),
            best: found.best.solution.plan,
            evaluations: found.evaluations,
            convergence: found.convergence,
            complete: found.complete,
        })
    }
}

/// Evaluations of an island where nothing is limited: one or two seconds for 50 tasks, and not much more for many.
fn default_evaluations(tasks: usize) -> u64 {
    (EVALUATIONS / tasks as u64).clamp(FEWEST_EVALUATIONS, MOST_EVALUATIONS)
}

/// All islands.
struct Islands<'g, C> {
    seed: u64,
    ground: Ground<'g, C>,
    /// Evaluations of an epoch.
    epoch: u64,
    cx: &'g Context<'g>,
}

impl<C: Costs> Islands<'_, C> {
    /// Branch and bound on a part of the budget that is left; a node counts as an evaluation.
    fn prove(&self, island: &mut Island, meter: &mut Meter<'_>) {
        let time = meter.time_left().map(|time| time / PROOF_SHARE as u32);
        let end = time.map(|time: Duration| Instant::now() + time);
        let stop = || self.cx.should_stop() || end.is_some_and(|end| Instant::now() >= end);
        let nodes = if time.is_some() { meter.left() } else { meter.left() / PROOF_SHARE };
        let found = exact::search(self.ground.costs.problem(), &island.best.solution, nodes, stop);
        island.bound = island.bound.max(found.lower_bound);
        island.hear(Candidate { cost: found.makespan, solution: found.best });
        meter.take_all(found.evaluations.min(meter.left()));
    }
}

/// A plan, and what its island knows of the optimum.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Answer {
    plan: Plan,
    bound: i64,
}

impl<C: Costs> Evolution for Islands<'_, C> {
    type Island = Island;
    type Solution = Answer;

    fn begin(&self, island: u32, meter: &mut Meter<'_>) -> Result<Island, Error> {
        Ok(Island::new(&self.ground, self.seed, island, meter))
    }

    fn advance(&self, island: &mut Island, epoch: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        if epoch == PROOF_EPOCH && island.number == 0 {
            self.prove(island, meter);
        }
        // Of a small budget the first epoch leaves most to the proof and what follows.
        let first = if epoch < PROOF_EPOCH { meter.left() / FIRST_EPOCH } else { u64::MAX };
        let end = meter.spent().saturating_add(self.epoch.min(first.max(1)));
        Ok(island.work(&self.ground, end, meter) && !island.is_done())
    }

    fn best(&self, island: &Island) -> Candidate<Answer> {
        let plan = island.best.solution.clone();
        Candidate { cost: island.best.cost, solution: Answer { plan, bound: island.bound } }
    }

    fn exchange(&self, _: u64) -> Exchange {
        Exchange::Best
    }

    fn receive(&self, island: &mut Island, _: u64, heard: Vec<Candidate<Answer>>) {
        for Candidate { cost, solution: Answer { plan, bound } } in heard {
            island.bound = island.bound.max(bound);
            island.hear(Candidate { cost, solution: plan });
        }
    }
}
