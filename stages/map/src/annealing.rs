//! Parallel simulated annealing.

mod rules;
mod solver;

use hopmap_islands::{Budget, Candidate, Counts, Evolution, Exchange, Meter};
use hopmap_model::{Context, Error, seed_stream};
use hopmap_objective::Problem;
use hopmap_random::{Pcg64, Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::genetic::{Breeding, Individual, completed};
use crate::mapper::{ACCEPTED_CHILDREN, EXCHANGES, FinalSearch, Mapper, SearchResult, is_flat};
use crate::params::{AfterExchange, AnnealingParams, GeneticParams, kind};
pub(crate) use rules::{Rules, check};
pub(crate) use solver::{SearchState, Solver};

/// Parallel simulated annealing (PSA of Baranov et al. 2022, GraphHunter).
///
/// Every island has one current mapping, random at first, and several solvers. Each solver anneals it
/// independently for `exchange_interval` iterations; then the best mapping of all solvers and islands becomes
/// the current one everywhere. A candidate exchanges a rank with another slot, occupied or free. It is
/// accepted if the cost does not rise, otherwise with probability exp(−Δ / T) (Metropolis). The temperature
/// falls after `moves_per_temperature` examined or `max_accepted_per_temperature` accepted candidates. A
/// solver ends after `iterations` or below the final temperature, and optionally after a number of iterations
/// without improvement or at a temperature that accepts nothing.
///
/// Where the papers are ambiguous: an iteration is a temperature. With q = 0.99, a thousand of them take a
/// solver from accepting everything to accepting little, so that islands exchange nearly finished mappings.
/// If an iteration is a candidate, as in the code of the papers' library, islands adopt the best mapping
/// while it is hot, long before it predicts the final result. The temperature continues to fall across
/// exchanges; with restarts, tai27e01 to tai75e01 improve, but tai125e01 and tai175e01 become worse. Both are
/// parameters.
///
/// With `crossover_on_exchange`, the first exchanges are crossovers instead of broadcasts (PAG of the method
/// RGO, Baranov 2000, of which no code is known): the best mapping of the epoch is crossed with that of the
/// predecessor in the ring (basic crossover), genes of the child mutate with probability 0.001, and annealing
/// at the temperature of the first solver decides whether the child becomes current. Once children are no
/// longer accepted, islands continue independently.
#[derive(Debug, Clone, PartialEq)]
pub struct Annealing {
    params: AnnealingParams,
    budget: Budget,
    ending: FinalSearch,
}

impl Annealing {
    /// Checks the parameters.
    pub fn new(params: &AnnealingParams) -> Result<Self, Error> {
        check(params)?;
        let &AnnealingParams {
            evaluations, time_limit_s, islands, local_search, rank_order_fallback, ..
        } = params;
        let ends = [local_search, rank_order_fallback];
        let (ending, budget) = FinalSearch::new(evaluations, time_limit_s, islands, ends)?;
        Ok(Self { params: params.clone(), budget, ending })
    }
}

impl Mapper for Annealing {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult, Error> {
        if is_flat(problem) {
            return Ok(SearchResult::at_once(problem.linear()));
        }
        let params = &self.params;
        let rules = Rules::new(params, problem);
        let once = rules.candidates().saturating_mul(u64::from(rules.solvers));
        let meetings = match rules.generations {
            0 => format!("an exchange after every {}", rules.exchange_interval),
            generations => format!("{generations} generations at the start"),
        };
        let (solvers, iterations) = (rules.solvers, rules.iterations);
        cx.log(format!("{solvers} solvers on every island, {iterations} iterations, {meetings}"));
        let breeding = || Breeding::new(problem, &GeneticParams::default());
        let breeding = params.crossover_on_exchange.then(breeding);
        let solvers = Solvers {
            problem,
            rules,
            seed: params.seed,
            reheats: params.temperature_after_exchange == AfterExchange::Restart,
            repeats: params.iterations.is_none()
                && (params.evaluations.is_some() || params.time_limit_s.is_some()),
            // Defaults of the genetic algorithm: basic crossover, mutation probability 0.001.
            breeding: breeding.transpose()?,
        };
        let found = self.budget.evolve(&solvers, once, cx)?;
        self.ending.finish(found, problem, cx)
    }
}

/// Random streams per island: its own and those of its solvers.
const STREAMS: u64 = 1 << 32;

/// Solvers of all islands on one problem.
pub(crate) struct Solvers<'p> {
    pub(crate) problem: &'p Problem,
    pub(crate) rules: Rules,
    pub(crate) seed: u64,
    pub(crate) reheats: bool,
    /// Whether the search restarts from another mapping when it ends.
    pub(crate) repeats: bool,
    /// Breeding of the first exchanges; `None` for broadcasts.
    pub(crate) breeding: Option<Breeding<'p>>,
}

/// One island.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AnnealingIsland {
    /// Current mapping, from which all solvers start.
    current: Candidate<Vec<u32>>,
    best: Candidate<Vec<u32>>,
    solvers: Vec<Solver>,
    random: Pcg64,
    /// Evaluations of children not yet charged to the budget.
    debt: u64,
    /// Exchanges after which solvers continued.
    exchanges: u64,
    accepted_children: u64,
}

impl Solvers<'_> {
    /// Index of an epoch in its annealing run.
    fn place(&self, epoch: u64) -> u64 {
        epoch % self.rules.epochs()
    }

    /// Whether an exchange preceded the epoch within an annealing run.
    fn is_exchange_before(&self, epoch: u64) -> bool {
        self.place(epoch) > 0 && self.exchange(epoch - 1) != Exchange::Nobody
    }

    fn random_placement(&self, random_numbers: &mut Pcg64) -> Candidate<Vec<u32>> {
        let mut seed = [0; 32];
        random_numbers.fill_bytes(&mut seed);
        let slots = self.problem.random(seed);
        Candidate { cost: self.problem.cost(&slots), solution: slots }
    }

    /// Prepares the solvers for an epoch: all start with a new annealing run; after an exchange, some are
    /// reheated.
    fn prepare(&self, island: &mut AnnealingIsland, epoch: u64) -> Result<(), Error> {
        let first = self.place(epoch) == 0;
        if first && epoch > 0 {
            island.current = self.random_placement(&mut island.random);
        }
        for solver in &mut island.solvers {
            match (first, self.reheats) {
                (true, _) => solver.begin(&self.rules, island.current.cost)?,
                (false, true) => solver.heat(&self.rules, island.current.cost)?,
                (false, false) => {}
            }
        }
        Ok(())
    }

    /// Crosses the own mapping with a received one; annealing accepts or rejects the child.
    fn breed(&self, breeding: &Breeding<'_>, island: &mut AnnealingIsland, heard: &Candidate<Vec<u32>>) {
        let all = self.problem.slots();
        let parents = [&island.current, heard]
            .map(|Candidate { cost, solution }| Individual { cost: *cost, genes: completed(solution, all) });
        let Ok(child) = breeding.child(parents.each_ref(), &mut island.random) else { return };
        island.debt += breeding.price();
        let rise = child.cost - island.current.cost;
        let accepted = island.solvers.first_mut().is_some_and(|solver| solver.accepts(rise));
        island.accepted_children += u64::from(accepted);
        if accepted {
            let solution = child.genes[..self.problem.ranks()].to_vec();
            island.current = Candidate { cost: child.cost, solution };
        }
    }
}

impl Evolution for Solvers<'_> {
    type Island = AnnealingIsland;
    type Solution = Vec<u32>;

    fn begin(&self, island: u32, _: &mut Meter<'_>) -> Result<AnnealingIsland, Error> {
        let stream =
            |number: u64| seed_stream(kind::ANNEALING, self.seed, u64::from(island) * STREAMS + number);
        let mut random = Pcg64::from_seed(stream(0));
        let current = self.random_placement(&mut random);
        let solvers = (1..=u64::from(self.rules.solvers)).map(|solver| Solver::new(stream(solver))).collect();
        Ok(AnnealingIsland {
            best: current.clone(),
            current,
            solvers,
            random,
            debt: 0,
            exchanges: 0,
            accepted_children: 0,
        })
    }

    fn advance(
        &self,
        island: &mut AnnealingIsland,
        epoch: u64,
        meter: &mut Meter<'_>,
    ) -> Result<bool, Error> {
        if !meter.take_all(std::mem::take(&mut island.debt)) {
            return Ok(false);
        }
        self.prepare(island, epoch)?;
        if island.solvers.iter().any(|solver| !solver.finished) {
            island.exchanges += u64::from(self.is_exchange_before(epoch));
            let iterations = self.rules.iterations_of(self.place(epoch));
            let mut search = SearchState::new(self.problem, &island.current.solution)?;
            for solver in &mut island.solvers {
                solver.anneal(&self.rules, &mut search, iterations, meter);
                if search.best_cost() < island.current.cost {
                    island.current.cost = search.best_cost();
                    island.current.solution.copy_from_slice(search.best());
                }
                search.restart();
            }
        }
        if island.current.cost < island.best.cost {
            island.best = island.current.clone();
        }
        let is_last = self.place(epoch + 1) == 0;
        let is_over = is_last || !self.reheats && island.solvers.iter().all(|solver| solver.finished);
        Ok(island.best.cost > 0 && (self.repeats || !is_over))
    }

    fn best(&self, island: &AnnealingIsland) -> Candidate<Vec<u32>> {
        island.best.clone()
    }

    fn counts(&self, island: &AnnealingIsland) -> Counts {
        let mut counts = Counts::from([(EXCHANGES.to_owned(), island.exchanges)]);
        if self.breeding.is_some() {
            counts.insert(ACCEPTED_CHILDREN.to_owned(), island.accepted_children);
        }
        counts
    }

    fn exchange(&self, epoch: u64) -> Exchange {
        match self.breeding {
            Some(_) if self.place(epoch) < self.rules.generations => Exchange::Ring,
            Some(_) => Exchange::Nobody,
            None => Exchange::Best,
        }
    }

    fn send(&self, island: &AnnealingIsland, _: u64) -> Vec<Candidate<Vec<u32>>> {
        vec![island.current.clone()]
    }

    fn receive(&self, island: &mut AnnealingIsland, _: u64, heard: Vec<Candidate<Vec<u32>>>) {
        let Some(heard) = heard.into_iter().next() else { return };
        match &self.breeding {
            Some(breeding) => self.breed(breeding, island, &heard),
            None => island.current = heard,
        }
        if island.current.cost < island.best.cost {
            island.best = island.current.clone();
        }
    }
}
