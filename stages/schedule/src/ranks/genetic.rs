//! `schedule/genetic` for ranks: the scheme of PARUS, where an entry of an individual is the slot of a rank.

use hopmap_islands::{Candidate, Evolution, Exchange, Meter};
use hopmap_model::{Context, Error, seed_stream};
use hopmap_random::{Draw, Pcg64, SeedableRng};
use hopmap_replay::MakespanEvaluator;
use serde::{Deserialize, Serialize};

use super::search::RankSearch;
use crate::{GeneticParams, SearchResult};

/// Population size of an island.
const POPULATION: usize = 50;
/// Of this many children some are mutants, the others have two parents.
const MUTANTS: f64 = 0.5;
/// Maximum fraction of the entries that a mutation exchanges.
const GENES: f64 = 0.1;
/// Maximum number of crossover points.
const POINTS: usize = 4;
/// Maximum random penalty, relative to the makespan, in the selection of the better half.
const PENALTY: f64 = 0.1;
/// Default nodes and messages of all passes together, and the minimum and maximum number of evaluations.
const WORK: u64 = 4_000_000_000;
const EVALUATIONS: [u64; 2] = [4_000, 400_000];
/// Steps between two migrations.
const EXCHANGE: u64 = 16;

struct Genetic<'a> {
    search: &'a RankSearch<'a>,
    lower_bound: i64,
    seed: u64,
}

/// An island between two steps.
#[derive(Clone, Serialize, Deserialize)]
struct Island {
    random: Pcg64,
    population: Vec<Candidate<Vec<u32>>>,
    best: Candidate<Vec<u32>>,
}

/// `schedule/genetic`: random placements breed like the schedules of PARUS. Old individuals compete with new ones, mutants may be
/// parents in the same step, and those with the least makespan after a random penalty survive; the incumbent is kept. It starts
/// from a given mapping, if there is one, and from random placements only.
pub fn genetic(
    params: &GeneticParams,
    search: &RankSearch<'_>,
    cx: &Context<'_>,
) -> Result<SearchResult<Vec<u32>>, Error> {
    let budget = params.budget()?;
    let default = (WORK / search.size().max(1)).clamp(EVALUATIONS[0], EVALUATIONS[1]);
    let lower_bound = search.problem.lower_bound();
    let genetic = Genetic { search, lower_bound, seed: params.seed };
    Ok(SearchResult::of_islands(budget.evolve(&genetic, default, cx)?, lower_bound))
}

impl Evolution for Genetic<'_> {
    type Island = Island;
    type Solution = Vec<u32>;

    fn begin(&self, island: u32, meter: &mut Meter<'_>) -> Result<Island, Error> {
        let mut random = Pcg64::from_seed(seed_stream(GeneticParams::KIND, self.seed, u64::from(island)));
        let mut evaluator = MakespanEvaluator::new(self.search.problem);
        let mut population: Vec<Candidate<Vec<u32>>> = Vec::new();
        while population.len() < POPULATION {
            let (ranks, slots) = (self.search.problem.ranks(), self.search.problem.slots());
            let given = self.search.given.as_ref().filter(|_| population.is_empty());
            let solution = given
                .cloned()
                .unwrap_or_else(|| random.choose(&(0..slots as u32).collect::<Vec<_>>(), ranks));
            // The first individual is created even without any evaluations.
            if !(population.is_empty() || meter.take() && self.check_clock(population.len(), meter)) {
                break;
            }
            population.push(Candidate { cost: evaluator.makespan(&solution), solution });
        }
        let best = population.iter().min_by_key(|one| one.cost).cloned();
        let best = best.ok_or_else(|| Error::msg("no initial placement exists"))?;
        Ok(Island { random, population, best })
    }

    fn advance(&self, island: &mut Island, _: u64, meter: &mut Meter<'_>) -> Result<bool, Error> {
        let mut evaluator = MakespanEvaluator::new(self.search.problem);
        let children = 1 + island.random.below(POPULATION);
        for child in 0..children {
            let solution = self.breed(island);
            if island.best.cost <= self.lower_bound || !(meter.take() && self.check_clock(child, meter)) {
                return Ok(false);
            }
            let child = Candidate { cost: evaluator.makespan(&solution), solution };
            if child.cost < island.best.cost {
                island.best = child.clone();
            }
            island.population.push(child);
        }
        island.select();
        Ok(true)
    }

    fn best(&self, island: &Island) -> Candidate<Vec<u32>> {
        island.best.clone()
    }

    fn exchange(&self, epoch: u64) -> Exchange {
        if epoch % EXCHANGE == EXCHANGE - 1 { Exchange::Ring } else { Exchange::Nobody }
    }

    fn receive(&self, island: &mut Island, _: u64, migrants: Vec<Candidate<Vec<u32>>>) {
        island.population.extend(migrants);
    }
}

impl Genetic<'_> {
    /// Checks the clock after some evaluations; `false` at the end of the budget.
    fn check_clock(&self, evaluations: usize, meter: &mut Meter<'_>) -> bool {
        !(evaluations as u64).is_multiple_of(self.search.passes_between_checks()) || meter.look()
    }

    /// A mutant of an individual, or a child of two.
    fn breed(&self, island: &mut Island) -> Vec<u32> {
        let Island { random, population, .. } = island;
        let parent = random.below(population.len());
        if random.unit() < MUTANTS {
            let mut child = population[parent].solution.clone();
            let most = ((GENES * child.len() as f64) as usize).max(1);
            for _ in 0..=random.below(most) {
                let rank = random.below(child.len());
                move_rank(&mut child, rank, random.below(self.search.problem.slots()) as u32);
            }
            return child;
        }
        let other = random.below(population.len());
        cross(&population[parent].solution, &population[other].solution, random)
    }
}

/// Puts a rank on a slot, and the rank there, if any, on its previous slot.
fn move_rank(slots: &mut [u32], rank: usize, slot: u32) {
    let from = slots[rank];
    if let Some(other) = slots.iter().position(|&one| one == slot) {
        slots[other] = from;
    }
    slots[rank] = slot;
}

/// In every other segment the child takes the entries of the other parent. A displaced rank goes to the previous slot of the rank
/// that displaces it, so slots remain unique (partially mapped crossover).
fn cross(one: &[u32], other: &[u32], random: &mut Pcg64) -> Vec<u32> {
    let mut points: Vec<usize> = (0..=random.below(POINTS)).map(|_| random.below(one.len() + 1)).collect();
    points.push(one.len());
    points.sort_unstable();
    let mut child = one.to_vec();
    let most = one.iter().chain(other).copied().max().map_or(0, |slot| slot as usize + 1);
    let mut owner = vec![usize::MAX; most];
    child.iter().enumerate().for_each(|(rank, &slot)| owner[slot as usize] = rank);
    for pair in points.chunks_exact(2) {
        for rank in pair[0]..pair[1] {
            let (from, slot) = (child[rank], other[rank]);
            let before = std::mem::replace(&mut owner[slot as usize], rank);
            if before == rank {
                continue;
            }
            owner[from as usize] = before;
            if before != usize::MAX {
                child[before] = from;
            }
            child[rank] = slot;
        }
    }
    child
}

impl Island {
    /// Selects those with the least makespan after a random penalty.
    fn select(&mut self) {
        let keyed = self
            .population
            .drain(..)
            .map(|one| (one.cost as f64 * (1.0 + PENALTY * self.random.unit()), one));
        let mut keyed: Vec<_> = keyed.collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.population.extend(keyed.into_iter().take(POPULATION).map(|(_, one)| one));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_use_each_slot_once() {
        let mut random = Pcg64::from_seed([7; 32]);
        for _ in 0..200 {
            let parents = [0, 1].map(|_| random.choose(&(0..9_u32).collect::<Vec<_>>(), 6));
            let mut child = cross(&parents[0], &parents[1], &mut random);
            assert!(child.iter().zip(&parents[1]).any(|(a, b)| a == b) || child == parents[0]);
            let rank = random.below(6);
            move_rank(&mut child, rank, 8);
            assert_eq!(child[rank], 8);
            child.sort_unstable();
            child.dedup();
            assert_eq!(child.len(), 6);
        }
    }
}
