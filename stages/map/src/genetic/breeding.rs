//! Individuals: how they are made and what they cost.

use hopmap_objective::{Problem, random};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;
use serde::{Deserialize, Serialize};

use super::crossover::number_below;
use crate::Crossover;

/// Evaluations of exchanges that take as many products as evaluating a placement of so many ranks whole takes for each of them:
/// a pair is one product there and two ranks have four rows of a sum here.
const RANKS_PER_EVALUATION: u64 = 4;

/// An individual.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Individual {
    pub(crate) cost: i64,
    /// The slots of all ranks, then the free ones: a permutation of all slots.
    pub(crate) genes: Vec<u32>,
}

/// How children are made.
#[derive(Debug, Clone)]
pub(crate) struct Breeding<'p> {
    problem: &'p Problem,
    crossover: Crossover,
    mutation: f64,
    mutates_clones: bool,
}

impl<'p> Breeding<'p> {
    pub(crate) fn new(
        problem: &'p Problem,
        crossover: Crossover,
        mutation: f64,
        mutates_clones: bool,
    ) -> Self {
        Self { problem, crossover, mutation, mutates_clones }
    }

    pub(crate) fn problem(&self) -> &'p Problem {
        self.problem
    }

    /// What evaluating an individual takes, in evaluations of exchanges.
    pub(crate) fn price(&self) -> u64 {
        (self.problem.ranks() as u64).div_ceil(RANKS_PER_EVALUATION)
    }

    /// A random individual.
    pub(crate) fn random(&self, numbers: &mut Pcg64) -> Individual {
        let mut seed = [0; 32];
        numbers.fill_bytes(&mut seed);
        self.individual(random(self.problem.slots(), self.problem.slots(), seed))
    }

    /// Two mutated children.
    pub(crate) fn children(&self, a: &[u32], b: &[u32], random: &mut Pcg64) -> [Individual; 2] {
        self.crossover.children(a, b, random).map(|child| self.new_child(child, [a, b], random))
    }

    /// One of two mutated children.
    pub(crate) fn child(&self, a: &[u32], b: &[u32], random: &mut Pcg64) -> Individual {
        let [child, _] = self.crossover.children(a, b, random);
        self.new_child(child, [a, b], random)
    }

    /// A mutated child. Where it would be a copy of a parent, two of its genes change places on request.
    fn new_child(&self, mut genes: Vec<u32>, parents: [&[u32]; 2], random: &mut Pcg64) -> Individual {
        if self.mutates_clones && parents.iter().any(|parent| *parent == genes) {
            let gene = number_below(random, genes.len());
            let other = number_below(random, genes.len() - 1);
            genes.swap(gene, other + usize::from(other >= gene));
        }
        self.mutated(genes, random)
    }

    /// Exchanges every gene with a random other one with the probability of a mutation.
    pub(crate) fn mutated(&self, mut genes: Vec<u32>, random: &mut Pcg64) -> Individual {
        let threshold = (self.mutation * 2_f64.powi(32)) as u64;
        for gene in 0..genes.len() {
            if u64::from(random.next_u32()) < threshold {
                let other = number_below(random, genes.len());
                genes.swap(gene, other);
            }
        }
        self.individual(genes)
    }

    /// An individual with these genes. The one place where individuals come from: what may not be is repaired here.
    pub(crate) fn individual(&self, genes: Vec<u32>) -> Individual {
        let genes = self.admitted(genes);
        Individual { cost: self.problem.cost(&genes[..self.problem.ranks()]), genes }
    }

    /// The genes of an individual that keeps the constraints, if there are any.
    fn admitted(&self, mut genes: Vec<u32>) -> Vec<u32> {
        if !self.problem.is_constrained() {
            return genes;
        }
        let slots = genes.len();
        genes.truncate(self.problem.ranks());
        completed(&self.problem.admit(genes), slots)
    }
}

/// A placement and the slots that it leaves free, out of so many.
pub(crate) fn completed(slots: &[u32], all: usize) -> Vec<u32> {
    let mut is_taken = vec![false; all];
    for &slot in slots {
        is_taken[slot as usize] = true;
    }
    let free = (0..all as u32).filter(|&slot| !is_taken[slot as usize]);
    slots.iter().copied().chain(free).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_slots_complete_a_placement() {
        assert_eq!(completed(&[4, 0], 5), [4, 0, 1, 2, 3]);
        assert_eq!(completed(&[1, 0], 2), [1, 0]);
    }
}
