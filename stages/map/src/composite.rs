//! Composite algorithm: annealing, then a genetic algorithm.

use hopmap_islands::{Budget, Candidate, Counts, Evolution, Exchange, Meter};
use hopmap_model::{Context, Error, seed_stream};
use hopmap_objective::Problem;
use serde::{Deserialize, Serialize};

use crate::annealing::{self, SearchState, Solver};
use crate::genetic::{self, Breeding, Subpopulation, completed};
use crate::mapper::{FinalSearch, Mapper, SearchResult, is_flat};
use crate::params::{CompositeParams, kind};
use crate::plan::ANNEALINGS;

/// Beyond 1024 ranks: individuals times ranks, and the minimum.
const INDIVIDUALS_TIMES_RANKS: usize = 125 * 1024;
const FEWEST: usize = 4;
/// Random streams: islands first, then masters, then individuals.
const MASTERS: u64 = 1 << 32;
const INDIVIDUALS: u64 = 1 << 33;
/// Minimum population of a genetic algorithm.
const PARENTS: u64 = 2;

/// Composite algorithm (PGSA of Baranov et al. 2022, GraphHunter).
///
/// Every individual of every island is annealed from its own random mapping, with the parameters of
/// [`Annealing`](crate::Annealing) and without exchanges; then the populations evolve as in
/// [`Genetic`](crate::Genetic), in a ring or with a master. Annealing gets half of a limited budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Composite {
    params: CompositeParams,
    budget: Budget,
    ending: FinalSearch,
}

impl Composite {
    /// Checks the parameters.
    pub fn new(params: &CompositeParams) -> Result<Self, Error> {
        annealing::check(&params.of_annealing())?;
        genetic::check(&params.of_genetic())?;
        let &CompositeParams {
            evaluations, time_limit_s, islands, local_search, rank_order_fallback, ..
        } = params;
        let ends = [local_search, rank_order_fallback];
        let (ending, budget) = FinalSearch::new(evaluations, time_limit_s, islands, ends)?;
        Ok(Self { params: params.clone(), budget, ending })
    }
}

impl Mapper for Composite {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult, Error> {
        if is_flat(problem) {
            return Ok(SearchResult::at_once(problem.linear()));
        }
        let params = &self.params;
        let breeding = Breeding::new(problem, &params.of_genetic())?;
        let genetic = genetic::Rules::new(&params.of_genetic(), problem, default_population(problem.ranks()));
        let annealing = annealing::Rules::new(&params.of_annealing(), problem);
        let individuals = genetic.population as u64;
        let annealed = annealing.candidates().saturating_mul(individuals);
        let default = annealed.saturating_add(genetic::evaluations(&genetic, &breeding));
        let limit = params
            .evaluations
            .map_or(u64::MAX, |evaluations| (ANNEALINGS.of(evaluations) / individuals).max(1));
        cx.log(format!("{individuals} individuals on every island, annealed, then bred"));
        let annealed =
            Annealed { annealing, genetic, breeding, seed: params.seed, limit, budget: &self.budget };
        let found = self.budget.evolve(&annealed, default, cx)?;
        self.ending.finish(found, problem, cx)
    }
}

/// Individuals per island, each of which is annealed.
fn default_population(ranks: usize) -> usize {
    match ranks {
        ..=1024 => genetic::default_population(ranks),
        _ => (INDIVIDUALS_TIMES_RANKS / ranks).max(FEWEST),
    }
}

/// Populations of annealed mappings on all islands.
struct Annealed<'p> {
    annealing: annealing::Rules,
    genetic: genetic::Rules,
    breeding: Breeding<'p>,
    seed: u64,
    /// Candidates of one annealing.
    limit: u64,
    budget: &'p Budget,
}

/// One island.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct CompositeIsland {
    island: u32,
    deme: Subpopulation,
}

impl Annealed<'_> {
    /// Epochs of the first phase: one per individual.
    fn annealings(&self) -> u64 {
        self.genetic.population as u64
    }

    fn stream(&self, island: u32, number: u64) -> [u8; 32] {
        let stream = INDIVIDUALS + (u64::from(island) << 34) + number;
        seed_stream(kind::COMPOSITE, self.seed, stream)
    }

    /// Anneals one individual.
    fn anneal(&self, state: &mut CompositeIsland, number: u64, meter: &mut Meter<'_>) -> Result<(), Error> {
        let problem = self.breeding.problem();
        let start = problem.random(self.stream(state.island, 2 * number));
        let mut search = SearchState::new(problem, &start)?;
        meter.record(search.best_cost());
        let mut solver = Solver::new(self.stream(state.island, 2 * number + 1));
        solver.begin(&self.annealing, search.assignment().cost())?;
        solver.anneal(&self.annealing, &mut search, self.limit, meter);
        let genes = completed(search.best(), problem.slots());
        state.deme.add(self.breeding.individual(genes));
        Ok(())
    }

    /// Whether annealing has used its share of the time.
    fn is_late(&self, meter: &Meter<'_>) -> bool {
        let (Some(time), Some(left)) = (self.budget.time(), meter.time_left()) else { return false };
        left < time.mul_f64(1.0 - ANNEALINGS.share)
    }
}

impl Evolution for Annealed<'_> {
    type Island = CompositeIsland;
    type Solution = Vec<u32>;

    fn begin(&self, island: u32, meter: &mut Meter<'_>) -> Result<CompositeIsland, Error> {
        let stream = |number| seed_stream(kind::COMPOSITE, self.seed, number);
        let deme = Subpopulation::new(stream(island.into()), stream(MASTERS + u64::from(island)));
        let mut state = CompositeIsland { island, deme };
        self.anneal(&mut state, 0, meter)?;
        Ok(state)
    }

    fn advance(&self, state: &mut CompositeIsland, epoch: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        let number = epoch + 1;
        if number < self.annealings() {
            if number < PARENTS || !self.is_late(meter) {
                self.anneal(state, number, meter)?;
            }
            return Ok(true);
        }
        let iteration = number - self.annealings();
        let goes_on = state.deme.iterate(&self.genetic, &self.breeding, meter)?;
        Ok(goes_on && iteration + 1 < self.genetic.iterations)
    }

    fn best(&self, state: &CompositeIsland) -> Candidate<Vec<u32>> {
        state.deme.best(&self.breeding)
    }

    fn counts(&self, state: &CompositeIsland) -> Counts {
        state.deme.counts()
    }

    fn exchange(&self, epoch: u64) -> Exchange {
        if epoch + 1 < self.annealings() { Exchange::Nobody } else { genetic::exchange(&self.genetic) }
    }

    fn send(&self, state: &CompositeIsland, _: u64) -> Vec<Candidate<Vec<u32>>> {
        state.deme.send(&self.genetic, &self.breeding)
    }

    fn receive(&self, state: &mut CompositeIsland, _: u64, heard: Vec<Candidate<Vec<u32>>>) {
        state.deme.receive(&self.genetic, &self.breeding, heard);
    }
}
