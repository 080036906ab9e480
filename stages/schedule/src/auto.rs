//! `schedule/auto` where tasks may run anywhere.

mod annealing;
mod ground;
mod island;
mod moves;

use hopmap_islands::{Budget, Candidate, Evolution, Exchange, Meter};
use hopmap_model::{Context, Error};

use crate::bounds::lower_bound;
use crate::search::{Acceptance, Costs, WithCosts, with_costs};
use crate::{AutoParams, Evaluator, Found, ParameterError, Plan, Problem, Scheduler};
use ground::Ground;
use island::Island;

/// Evaluations of an epoch of 64 tasks.
const EPOCH: u64 = 1 << 16;

/// To be written.
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
        let bound = lower_bound(problem);
        let mut evaluator = Evaluator::new(problem);
        let listed = crate::list::all(problem).into_iter();
        let mut starts: Vec<_> =
            listed.map(|(_, plan)| Candidate { cost: evaluator.makespan(&plan), solution: plan }).collect();
        starts.sort_by_key(|start| start.cost);
        with_costs(problem, Search { auto: self, starts, bound, cx })
    }
}

/// A search that knows where to begin.
struct Search<'s> {
    auto: &'s Auto,
    starts: Vec<Candidate<Plan>>,
    bound: i64,
    cx: &'s Context<'s>,
}

impl WithCosts for Search<'_> {
    type Output = Result<Found<Plan>, Error>;

    fn run<C: Costs>(self, costs: &C) -> Self::Output {
        let problem = costs.problem();
        let work: i64 = (0..problem.tasks() as u32).map(|task| costs.work(task, 0)).sum();
        let unit = work as f64 / problem.tasks() as f64;
        let ground =
            Ground { costs, acceptance: Acceptance::new(), starts: self.starts, bound: self.bound, unit };
        let islands = Islands { seed: self.auto.seed, ground };
        let found = self.auto.budget.evolve(&islands, 1 << 21, self.cx)?;
        Ok(Found {
            makespan: found.best.cost,
            lower_bound: self.bound,
            best: found.best.solution,
            evaluations: found.evaluations,
            convergence: found.convergence,
            complete: found.complete,
        })
    }
}

struct Islands<'g, C> {
    seed: u64,
    ground: Ground<'g, C>,
}

impl<C: Costs> Evolution for Islands<'_, C> {
    type Island = Island;
    type Solution = Plan;

    fn begin(&self, island: u32, _: &mut Meter<'_>) -> Result<Island, Error> {
        Ok(Island::new(&self.ground, self.seed, island))
    }

    fn advance(&self, island: &mut Island, _: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        let end = meter.spent().saturating_add(EPOCH);
        Ok(island.work(&self.ground, end, meter) && island.best.cost > self.ground.bound)
    }

    fn best(&self, island: &Island) -> Candidate<Plan> {
        island.best.clone()
    }

    fn exchange(&self, _: u64) -> Exchange {
        Exchange::Ring
    }

    fn receive(&self, island: &mut Island, _: u64, heard: Vec<Candidate<Plan>>) {
        heard.into_iter().for_each(|candidate| island.hear(candidate));
    }
}
