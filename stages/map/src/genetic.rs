//! Parallel genetic algorithm.

mod breeding;
mod deme;

use hopmap_islands::{Budget, Candidate, Counts, Evolution, Exchange, Meter};
use hopmap_model::{Context, Error, OutOfRange, seed_stream};
use hopmap_objective::Problem;

use crate::mapper::{FinalSearch, Mapper, SearchResult, is_flat};
use crate::params::{GeneticParams, kind};

pub(crate) use breeding::{Breeding, Individual, completed};
pub(crate) use deme::{Rules, Subpopulation, check, default_population, exchange};

/// Random streams: islands first, then masters.
const MASTERS: u64 = 1 << 32;

/// Parallel genetic algorithm (PGA of Baranov et al. 2022, GraphHunter).
///
/// Every island has a population of random mappings. In every generation, parents are selected by tournament
/// and crossed, genes of the children mutate, and the children replace the worst individuals. The best
/// individuals migrate: in a ring to the next island, where they replace worse ones, or to a master. The
/// papers describe the master in two ways. `breeds` follows the text: every slave evolves its population by
/// one generation and sends its best; the master crosses the best of all, mutates, and sends a child to every
/// slave. `reduces` follows the section on the implementation: islands never exchange, and the best result is
/// selected at the end.
///
/// By default this differs from the papers in two points: migrants that the population already contains are
/// rejected, because duplicates would soon take over, and a child that is a copy of a parent exchanges two of
/// its genes. The best individual always survives, as there are fewer children than individuals.
///
/// A full evaluation of a child counts as n / 4 evaluations, the number of exchanges with as many products.
#[derive(Debug, Clone, PartialEq)]
pub struct Genetic {
    params: GeneticParams,
    budget: Budget,
    ending: FinalSearch,
}

impl Genetic {
    /// Checks the parameters.
    pub fn new(params: &GeneticParams) -> Result<Self, OutOfRange> {
        check(params)?;
        let &GeneticParams { evaluations, time_limit_s, islands, local_search, rank_order_fallback, .. } =
            params;
        let ends = [local_search, rank_order_fallback];
        let (ending, budget) = FinalSearch::new(evaluations, time_limit_s, islands, ends)?;
        Ok(Self { params: params.clone(), budget, ending })
    }
}

impl Mapper for Genetic {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult, Error> {
        if is_flat(problem) {
            return Ok(SearchResult::at_once(problem.linear()));
        }
        let params = &self.params;
        let rules = Rules::new(params, problem, default_population(problem.ranks()));
        let breeding = Breeding::new(problem, params)?;
        cx.log(format!("{} individuals on every island, {} children", rules.population, rules.children));
        let default = evaluations(&rules, &breeding);
        let found = self.budget.evolve(&Populations { rules, breeding, seed: params.seed }, default, cx)?;
        self.ending.finish(found, problem, cx)
    }
}

/// Evaluation limit of an island.
pub(crate) fn evaluations(rules: &Rules, breeding: &Breeding<'_>) -> u64 {
    let of_iteration = (rules.children + rules.migrants) as u64;
    let individuals = rules.iterations.saturating_mul(of_iteration).saturating_add(rules.population as u64);
    individuals.saturating_mul(breeding.price())
}

/// Populations of random mappings on all islands.
struct Populations<'p> {
    rules: Rules,
    breeding: Breeding<'p>,
    seed: u64,
}

impl Evolution for Populations<'_> {
    type Island = Subpopulation;
    type Solution = Vec<u32>;

    fn begin(&self, island: u32, meter: &mut Meter<'_>) -> Result<Subpopulation, Error> {
        let stream = |number| seed_stream(kind::GENETIC, self.seed, number);
        let mut deme = Subpopulation::new(stream(island.into()), stream(MASTERS + u64::from(island)));
        for number in 0..self.rules.population {
            // A population needs at least two individuals, however small the budget is.
            if !meter.take_all(self.breeding.price()) && number >= 2 {
                break;
            }
            let individual = self.breeding.random(&mut deme.random)?;
            deme.add(individual);
        }
        Ok(deme)
    }

    fn advance(&self, deme: &mut Subpopulation, epoch: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        Ok(deme.iterate(&self.rules, &self.breeding, meter)? && epoch + 1 < self.rules.iterations)
    }

    fn best(&self, deme: &Subpopulation) -> Candidate<Vec<u32>> {
        deme.best(&self.breeding)
    }

    fn counts(&self, deme: &Subpopulation) -> Counts {
        deme.counts()
    }

    fn exchange(&self, _: u64) -> Exchange {
        exchange(&self.rules)
    }

    fn send(&self, deme: &Subpopulation, _: u64) -> Vec<Candidate<Vec<u32>>> {
        deme.send(&self.rules, &self.breeding)
    }

    fn receive(&self, deme: &mut Subpopulation, _: u64, heard: Vec<Candidate<Vec<u32>>>) {
        deme.receive(&self.rules, &self.breeding, heard);
    }
}
