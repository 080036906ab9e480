//! Parallel simulated annealing.

mod islands;
mod rules;
mod solver;
mod walk;

use hopmap_islands::Budget;
use hopmap_model::{Context, Error};
use hopmap_objective::Problem;

use crate::finish::{Ending, is_flat};
use crate::genetic::Breeding;
use crate::{AnnealingParams, Crossover, Found, Mapper, ParameterError, Reheat};
use islands::{Solvers, announce};

pub(crate) use rules::{Rules, check};
pub(crate) use solver::Solver;
pub(crate) use walk::Walk;

/// Probability that a gene of a child mutates, as in the genetic algorithm.
const MUTATION: f64 = 0.001;

/// Parallel simulated annealing (PSA of Baranov et al. 2022, GraphHunter).
///
/// Every island has one current placement, random at first, and several solvers. Each solver anneals the current placement by
/// itself for `successive` iterations; then the best placement that any solver of any island found becomes the current one of
/// all. A candidate exchanges a rank with what is on another slot, which may be free. It is accepted if the cost does not rise,
/// else with probability exp(−Δ / T) (Metropolis). The temperature falls when `max_neighbours` candidates were examined or
/// `accepted` of them accepted. A solver ends after `iterations`, below the final temperature, and on request after a number of
/// iterations without a new best or at a temperature that accepts nothing.
///
/// What the papers leave open is read like this. An iteration is a temperature: with q = 0.99 a thousand of them take a solver
/// from where everything is accepted to where little is, so that islands exchange what is nearly done. Where an iteration is a
/// candidate, as in the code of the papers' library, all take over the best placement while it is hot, long before it says which
/// one will be best. The temperature goes on falling over the exchanges; where it starts again, tai27e01 to tai75e01 come out
/// better and tai125e01 and tai175e01 worse. Both are parameters.
///
/// With `genetic`, islands breed at the beginning instead of taking the best (PAG of the method RGO, Baranov 2000, of which no
/// code is known): the best placement of the epoch is crossed with that of the island before it in the ring (basic crossover), genes
/// of the child mutate with probability 0.001, and annealing at the temperature of the first solver decides whether the child
/// becomes current. Once it is too cold for a child, islands go on by themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct Annealing {
    params: AnnealingParams,
    budget: Budget,
    ending: Ending,
}

impl Annealing {
    /// Checks the parameters.
    pub fn new(params: &AnnealingParams) -> Result<Self, ParameterError> {
        check(params)?;
        let &AnnealingParams { evaluations, seconds, islands, descent, rank_order_fallback, .. } = params;
        let ending = Ending::new(seconds, descent, rank_order_fallback);
        let budget = Budget::new(evaluations, ending.search_seconds(seconds), islands)?;
        Ok(Self { params: params.clone(), budget, ending })
    }
}

impl Mapper for Annealing {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<Found, Error> {
        if is_flat(problem) {
            return Ok(Found::at_once(problem.linear()));
        }
        let params = &self.params;
        let rules = Rules::new(params, problem);
        let once = rules.candidates().saturating_mul(u64::from(rules.solvers));
        announce(&rules, cx);
        let solvers = Solvers {
            problem,
            rules,
            seed: params.seed,
            reheats: params.after_exchange == Reheat::Restart,
            repeats: params.iterations.is_none()
                && (params.evaluations.is_some() || params.seconds.is_some()),
            breeding: params.genetic.then(|| Breeding::new(problem, Crossover::Basic, MUTATION, true)),
        };
        let found = self.budget.evolve(&solvers, once, cx)?;
        self.ending.finish(found, problem, cx)
    }
}
