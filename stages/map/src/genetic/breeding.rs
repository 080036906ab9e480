//! Individuals: crossover and mutation of permutations of slots, and the cost of an individual.

use hopmap_objective::{Problem, random};
use hopmap_random::{Pcg64, Rng};
use serde::{Deserialize, Serialize};

use crate::moves::below;
use crate::{Crossover, GeneticParams};

/// Exchanges, per rank, with as many products as one full evaluation of a mapping: a pair is one product
/// there, and two ranks have four rows of a sum here.
const RANKS_PER_EVALUATION: u64 = 4;

/// An individual.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Individual {
    pub(crate) cost: i64,
    /// The slots of all ranks, then the free ones: a permutation of all slots.
    pub(crate) genes: Vec<u32>,
}

/// Parameters of breeding.
#[derive(Debug, Clone)]
pub(crate) struct Breeding<'p> {
    problem: &'p Problem,
    crossover: Crossover,
    mutation: f64,
    mutates_clones: bool,
}

impl<'p> Breeding<'p> {
    pub(crate) fn new(problem: &'p Problem, params: &GeneticParams) -> Self {
        let &GeneticParams { crossover, mutation, mutate_clones, .. } = params;
        Self { problem, crossover, mutation, mutates_clones: mutate_clones }
    }

    pub(crate) fn problem(&self) -> &'p Problem {
        self.problem
    }

    /// Cost of evaluating an individual, in evaluations of exchanges.
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

    /// A mutated child. A copy of a parent optionally exchanges two of its genes.
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

    /// Creates an individual with these genes. All individuals are created here, so constraints are repaired
    /// here.
    pub(crate) fn individual(&self, genes: Vec<u32>) -> Individual {
        let ranks = self.problem.ranks();
        let genes = match self.problem.is_constrained() {
            false => genes,
            true => completed(&self.problem.admit(genes[..ranks].to_vec()), genes.len()),
        };
        Individual { cost: self.problem.cost(&genes[..ranks]), genes }
    }
}

/// A mapping followed by the free slots.
pub(crate) fn completed(slots: &[u32], all: usize) -> Vec<u32> {
    let mut is_taken = vec![false; all];
    for &slot in slots {
        is_taken[slot as usize] = true;
    }
    let free = (0..all as u32).filter(|&slot| !is_taken[slot as usize]);
    slots.iter().copied().chain(free).collect()
}

/// Fraction of the genes in the window of sorting.
const WINDOW: usize = 3;

impl Crossover {
    /// Two children of two permutations of the same slots.
    pub(crate) fn children(self, a: &[u32], b: &[u32], random: &mut Pcg64) -> [Vec<u32>; 2] {
        let genes = a.len();
        match self {
            Self::Basic => basic(a, b, random),
            Self::Sorting => {
                let length = (genes / WINDOW).max(1).min(genes);
                let start = number_below(random, genes - length + 1);
                [sorting(a, b, start, length), sorting(b, a, start, length)]
            }
            Self::Order => {
                let cuts = [number_below(random, genes), number_below(random, genes)];
                let (start, end) = (cuts[0].min(cuts[1]), cuts[0].max(cuts[1]) + 1);
                [order(a, b, start, end), order(b, a, start, end)]
            }
        }
    }
}

/// A random number below a bound of at most 2^32.
pub(super) fn number_below(random: &mut Pcg64, bound: usize) -> usize {
    below(random.next_u32(), bound)
}

/// Keeps genes equal in both parents and shuffles the rest; the second child has the rest in reverse order.
fn basic(a: &[u32], b: &[u32], random: &mut Pcg64) -> [Vec<u32>; 2] {
    let open: Vec<usize> = (0..a.len()).filter(|&gene| a[gene] != b[gene]).collect();
    let mut rest: Vec<u32> = open.iter().map(|&gene| a[gene]).collect();
    for last in (1..rest.len()).rev() {
        rest.swap(last, number_below(random, last + 1));
    }
    let mut children = [a.to_vec(), a.to_vec()];
    for (&gene, (&forth, &back)) in open.iter().zip(rest.iter().zip(rest.iter().rev())) {
        (children[0][gene], children[1][gene]) = (forth, back);
    }
    children
}

/// Keeps a window; the other genes follow it in the order of the other parent from its start.
fn sorting(kept: &[u32], other: &[u32], start: usize, length: usize) -> Vec<u32> {
    fill(kept, start..start + length, other.iter().copied())
}

/// Keeps a window; the other genes follow it in the order of the other parent from the end of the window.
fn order(kept: &[u32], other: &[u32], start: usize, end: usize) -> Vec<u32> {
    fill(kept, start..end, other[end..].iter().chain(&other[..end]).copied())
}

/// Keeps a window of a parent; fills the positions after it, then those before it.
fn fill(kept: &[u32], window: std::ops::Range<usize>, genes: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut in_window = vec![false; kept.len()];
    for &slot in &kept[window.clone()] {
        in_window[slot as usize] = true;
    }
    let mut child = kept.to_vec();
    let places = (window.end..kept.len()).chain(0..window.start);
    for (place, slot) in places.zip(genes.filter(|&slot| !in_window[slot as usize])) {
        child[place] = slot;
    }
    child
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_random::SeedableRng;
    use proptest::prelude::*;

    #[test]
    fn free_slots_complete_a_mapping() {
        assert_eq!(completed(&[4, 0], 5), [4, 0, 1, 2, 3]);
        assert_eq!(completed(&[1, 0], 2), [1, 0]);
    }

    fn parents() -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
        (1_u32..40).prop_flat_map(|genes| {
            let all: Vec<u32> = (0..genes).collect();
            (Just(all.clone()).prop_shuffle(), Just(all).prop_shuffle())
        })
    }

    proptest! {
        #[test]
        fn children_are_permutations((a, b) in parents(), seed in any::<[u8; 32]>()) {
            let mut random = Pcg64::from_seed(seed);
            for crossover in [Crossover::Basic, Crossover::Sorting, Crossover::Order] {
                for mut child in crossover.children(&a, &b, &mut random) {
                    let agreed = (0..a.len()).all(|gene| a[gene] != b[gene] || child[gene] == a[gene]);
                    prop_assert!(crossover != Crossover::Basic || agreed);
                    child.sort_unstable();
                    prop_assert!(child.iter().copied().eq(0..a.len() as u32));
                }
            }
        }
    }

    #[test]
    fn windows_are_kept_and_the_other_parent_gives_the_rest() {
        let (a, b) = ([0, 1, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1, 0]);
        // Cut after the fifth: 2, 1, 0, 7, 6, 5, 4, 3 without 2, 3, 4.
        assert_eq!(order(&a, &b, 2, 5), [6, 5, 2, 3, 4, 1, 0, 7]);
        // From the start: 7, 6, 5, 1, 0 without 2, 3, 4.
        assert_eq!(sorting(&a, &b, 2, 3), [1, 0, 2, 3, 4, 7, 6, 5]);
    }
}
