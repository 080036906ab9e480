//! `schedule/genetic` where tasks may run anywhere.

mod breeding;
mod colony;
mod reading;
mod rules;

use std::sync::atomic::{AtomicU64, Ordering};

use hopmap_islands::{Budget, Candidate, Evolution, Exchange, Meter};
use hopmap_model::{Context, Error, Stage, seed_stream};

use crate::bounds::lower_bound;
use crate::search::{Costs, WithCosts, with_costs};
use crate::{
    Admissible, Evaluator, Found, GeneticParams, GeneticStage, ParameterError, Plan, Problem, Scheduler,
};
use colony::Colony;
use reading::Reader;
use rules::{Rules, check, read_ini};

/// The genetic algorithm of PARUS (Salnikov, Sazonov).
///
/// An individual says of every task its processor and its rank, a number that says whose turn is first. The first population is random.
/// In every generation some individuals mutate, mutants and old ones are crossed at several points by exchanging whole entries of tasks,
/// and of all of them, the old ones included, as many survive as a population has: those with the least makespans, each made worse by a
/// random penalty so that some that are not so good stay. The best ever seen is kept.
///
/// Individuals whose ranks contradict the program are repaired, or thrown away and made anew, as [`Admissible`] says. Every island has a
/// population, and the best of each goes round in a ring.
#[derive(Debug, Clone, PartialEq)]
pub struct Genetic {
    params: GeneticParams,
    budget: Budget,
}

impl Genetic {
    /// Checks the parameters.
    pub fn new(params: &GeneticParams) -> Result<Self, ParameterError> {
        check(params)?;
        let &GeneticParams { evaluations, seconds, islands, .. } = params;
        Ok(Self { params: params.clone(), budget: Budget::new(evaluations, seconds, islands)? })
    }
}

impl Scheduler for Genetic {
    fn schedule(&self, problem: &Problem, cx: &Context<'_>) -> Result<Found<Plan>, Error> {
        let rules = Rules::new(&self.params, &read_ini(&self.params)?, problem);
        let mut starts = Vec::new();
        if self.params.seeded {
            starts.extend(crate::list::all(problem).into_iter().map(|(_, plan)| plan));
        }
        let bound = lower_bound(problem);
        let search = Search { seed: self.params.seed, budget: &self.budget, rules, starts, bound, cx };
        with_costs(problem, search)
    }
}

/// A search with everything that it needs.
struct Search<'s> {
    seed: u64,
    budget: &'s Budget,
    rules: Rules,
    starts: Vec<Plan>,
    bound: i64,
    cx: &'s Context<'s>,
}

impl WithCosts for Search<'_> {
    type Output = Result<Found<Plan>, Error>;

    fn run<C: Costs>(self, costs: &C) -> Self::Output {
        let default = self.rules.most_evaluations();
        let (budget, cx, bound) = (self.budget, self.cx, self.bound);
        let plan = Plan::serial(costs.problem(), 0);
        let cost = Evaluator::new(costs.problem()).makespan(&plan);
        let worst = Candidate { cost, solution: plan };
        let [made, rejected] = [0, 0].map(AtomicU64::new);
        let populations = Populations { costs, search: self, worst, made, rejected };
        let found = budget.evolve(&populations, default, cx)?;
        populations.report();
        Ok(Found {
            makespan: found.best.cost,
            lower_bound: bound.min(found.best.cost),
            best: found.best.solution,
            evaluations: found.evaluations,
            convergence: found.convergence,
            complete: found.complete,
        })
    }
}

/// Populations on all islands.
struct Populations<'s, C> {
    costs: &'s C,
    search: Search<'s>,
    /// Everything on one processor: nobody keeps anything worse.
    worst: Candidate<Plan>,
    /// Children that islands of this process made, and those of them that were inadmissible.
    made: AtomicU64,
    rejected: AtomicU64,
}

impl<C: Costs> Populations<'_, C> {
    fn report(&self) {
        let [made, rejected] = [&self.made, &self.rejected].map(|count| count.load(Ordering::Relaxed));
        if self.search.rules.admissible == Admissible::Reject && made > 0 {
            let part = 100.0 * rejected as f64 / made as f64;
            self.search.cx.log(format!("{part:.1} % of {made} children were inadmissible"));
        }
    }
}

impl<C: Costs> Evolution for Populations<'_, C> {
    type Island = Colony;
    type Solution = Plan;

    fn begin(&self, island: u32, meter: &mut Meter<'_>) -> Result<Colony, Error> {
        let Search { seed, rules, starts, .. } = &self.search;
        let seed = seed_stream(GeneticStage::KIND, *seed, u64::from(island));
        let mut reader = Reader::new(self.costs);
        Ok(Colony::new(rules, &mut reader, starts, self.worst.clone(), seed, meter))
    }

    fn advance(&self, colony: &mut Colony, epoch: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        let rules = &self.search.rules;
        if epoch >= rules.cycles || colony.best.cost <= self.search.bound {
            return Ok(false);
        }
        let before = (colony.made, colony.rejected);
        let goes_on = colony.breed(rules, &mut Reader::new(self.costs), meter);
        self.made.fetch_add(colony.made - before.0, Ordering::Relaxed);
        self.rejected.fetch_add(colony.rejected - before.1, Ordering::Relaxed);
        let is_idle = rules.idle_iterations.is_some_and(|most| colony.idle >= most);
        Ok(goes_on && !is_idle && epoch + 1 < rules.cycles && colony.best.cost > self.search.bound)
    }

    fn best(&self, colony: &Colony) -> Candidate<Plan> {
        colony.best.clone()
    }

    fn exchange(&self, epoch: u64) -> Exchange {
        let every = u64::from(self.search.rules.exchange);
        if every > 0 && (epoch + 1).is_multiple_of(every) { Exchange::Ring } else { Exchange::Nobody }
    }

    fn receive(&self, colony: &mut Colony, _: u64, heard: Vec<Candidate<Plan>>) {
        heard.into_iter().for_each(|candidate| colony.hear(candidate));
    }
}
