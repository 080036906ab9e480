//! Individuals: crossover and mutation of permutations of slots, and the cost of an individual.

use hopmap_islands::Candidate;
use hopmap_objective::{Assignment, ObjectiveError, Problem, random};
use hopmap_random::{Pcg64, Rng};
use serde::{Deserialize, Serialize};

use crate::moves::{Acceptance, Incumbent, below, mean_change, movable, sweep, temperatures};
use crate::params::{Crossover, GeneticParams, Mutations};

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
pub(crate) struct Breeding<'p> {
    problem: &'p Problem,
    crossover: Crossover,
    mutation: f64,
    mutations: Mutations,
    mutates_clones: bool,
    /// Local search of new individuals: the memetic algorithm.
    improvement: Option<Improvement>,
}

/// A short annealing.
struct Improvement {
    movable: Vec<u32>,
    sweeps: u64,
    /// Mean change of cost of random moves.
    mean_change: f64,
    acceptance: Acceptance,
}

impl Improvement {
    fn new(problem: &Problem, sweeps: u32) -> Result<Self, ObjectiveError> {
        let movable = movable(problem);
        let mean_change = mean_change(problem, &movable, || true)?;
        Ok(Self { movable, sweeps: sweeps.into(), mean_change, acceptance: Acceptance::new() })
    }
}

/// Temperatures in units of the mean change of cost: at the start of the annealing of a random individual, which
/// that of a child would freeze; at the start of that of a child; and at the end of both. The best of those tried on
/// tai343e01 and tai343e02.
const HOT: f64 = 0.3;
const WARM: f64 = 0.02;
const COLD: f64 = 0.002;

impl<'p> Breeding<'p> {
    pub(crate) fn new(problem: &'p Problem, params: &GeneticParams) -> Result<Self, ObjectiveError> {
        let &GeneticParams { crossover, mutation, mutations, mutate_clones, child_sweeps, .. } = params;
        let improvement = match child_sweeps {
            0 => None,
            sweeps => Some(Improvement::new(problem, sweeps)?),
        };
        Ok(Self { problem, crossover, mutation, mutations, mutates_clones: mutate_clones, improvement })
    }

    pub(crate) fn problem(&self) -> &'p Problem {
        self.problem
    }

    /// Cost of a new individual, in evaluations of exchanges.
    pub(crate) fn price(&self) -> u64 {
        let sweeps = self.improvement.as_ref().map_or(0, |it| it.sweeps * it.movable.len() as u64);
        sweeps + (self.problem.ranks() as u64).div_ceil(RANKS_PER_EVALUATION)
    }

    /// A random individual.
    pub(crate) fn random(&self, numbers: &mut Pcg64) -> Result<Individual, ObjectiveError> {
        let mut seed = [0; 32];
        numbers.fill_bytes(&mut seed);
        let genes = random(self.problem.slots(), self.problem.slots(), seed);
        self.improved(self.individual(genes), HOT, numbers)
    }

    /// The mutations of every child of a generation: a number, or none where every gene has its probability.
    pub(crate) fn mutations(&self, children: usize, random: &mut Pcg64) -> Vec<Option<u32>> {
        if self.mutations == Mutations::Random {
            return vec![None; children];
        }
        let mut counts = vec![Some(0); children];
        let all = (self.mutation * (children * self.problem.slots()) as f64).ceil() as usize;
        let start = number_below(random, children);
        (start..start + all)
            .for_each(|turn| counts[turn % children] = counts[turn % children].map(|count| count + 1));
        counts
    }

    /// Two mutated children.
    pub(crate) fn children(
        &self,
        parents: [&Individual; 2],
        mutations: [Option<u32>; 2],
        random: &mut Pcg64,
    ) -> Result<[Individual; 2], ObjectiveError> {
        let [a, b] = parents.map(|parent| parent.genes.as_slice());
        let [one, other] = self.crossover.children(a, b, random);
        let one = self.new_child(one, parents, mutations[0], random)?;
        Ok([one, self.new_child(other, parents, mutations[1], random)?])
    }

    /// One of two mutated children.
    pub(crate) fn child(
        &self,
        parents: [&Individual; 2],
        random: &mut Pcg64,
    ) -> Result<Individual, ObjectiveError> {
        let [a, b] = parents.map(|parent| parent.genes.as_slice());
        let [child, _] = self.crossover.children(a, b, random);
        let mutations = self.mutations(1, random)[0];
        self.new_child(child, parents, mutations, random)
    }

    /// A mutated child. A copy of a parent optionally exchanges two of its genes.
    fn new_child(
        &self,
        mut genes: Vec<u32>,
        parents: [&Individual; 2],
        mutations: Option<u32>,
        random: &mut Pcg64,
    ) -> Result<Individual, ObjectiveError> {
        if self.mutates_clones && parents.iter().any(|parent| parent.genes == genes) {
            let gene = number_below(random, genes.len());
            let other = number_below(random, genes.len() - 1);
            genes.swap(gene, other + usize::from(other >= gene));
        }
        self.mutated(genes, parents[0], mutations, random)
    }

    /// Exchanges genes with random other ones: this number, or each with the probability of a mutation.
    pub(crate) fn mutated(
        &self,
        mut genes: Vec<u32>,
        parent: &Individual,
        mutations: Option<u32>,
        random: &mut Pcg64,
    ) -> Result<Individual, ObjectiveError> {
        let all = genes.len();
        let threshold = (self.mutation * 2_f64.powi(32)) as u64;
        match mutations {
            Some(count) => {
                for _ in 0..count {
                    genes.swap(number_below(random, all), number_below(random, all));
                }
            }
            None => {
                for gene in 0..all {
                    if u64::from(random.next_u32()) < threshold {
                        genes.swap(gene, number_below(random, all));
                    }
                }
            }
        }
        let ranks = self.problem.ranks();
        let genes = self.repaired(genes);
        let cost = self.problem.cost_after(&parent.genes[..ranks], parent.cost, &genes[..ranks]);
        self.improved(Individual { cost, genes }, WARM, random)
    }

    /// Creates an individual with these genes.
    pub(crate) fn individual(&self, genes: Vec<u32>) -> Individual {
        let genes = self.repaired(genes);
        Individual { cost: self.problem.cost(&genes[..self.problem.ranks()]), genes }
    }

    /// Genes that satisfy the constraints.
    fn repaired(&self, genes: Vec<u32>) -> Vec<u32> {
        match self.problem.is_constrained() {
            false => genes,
            true => completed(&self.problem.admit(genes[..self.problem.ranks()].to_vec()), genes.len()),
        }
    }

    /// The best individual of a short annealing, if there is local search.
    fn improved(
        &self,
        individual: Individual,
        hot: f64,
        random: &mut Pcg64,
    ) -> Result<Individual, ObjectiveError> {
        let Some(Improvement { movable, sweeps, mean_change, acceptance }) = &self.improvement else {
            return Ok(individual);
        };
        let slots = &individual.genes[..self.problem.ranks()];
        let mut assignment = Assignment::new(self.problem, slots)?;
        let mut incumbent = Incumbent::new(individual.cost, slots.to_vec());
        for temperature in temperatures(hot * mean_change, COLD * mean_change, *sweeps) {
            sweep(&mut assignment, movable, temperature, acceptance, random, &mut incumbent);
        }
        let Candidate { cost, solution } = incumbent.best;
        Ok(Individual { cost, genes: completed(&solution, individual.genes.len()) })
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
            Self::Uniform => [uniform(a, b, random), uniform(b, a, random)],
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

/// Takes every gene from a random parent if it is free; random slots fill the rest.
fn uniform(a: &[u32], b: &[u32], random: &mut Pcg64) -> Vec<u32> {
    let mut child = vec![u32::MAX; a.len()];
    let mut is_taken = vec![false; a.len()];
    for (gene, pair) in a.iter().zip(b).enumerate() {
        let pair = [*pair.0, *pair.1];
        let first = random.next_u32() as usize % 2;
        let free = [pair[first], pair[1 - first]].into_iter().find(|&slot| !is_taken[slot as usize]);
        if let Some(slot) = free {
            child[gene] = slot;
            is_taken[slot as usize] = true;
        }
    }
    let mut rest: Vec<u32> = (0..a.len() as u32).filter(|&slot| !is_taken[slot as usize]).collect();
    for gene in child.iter_mut().filter(|gene| **gene == u32::MAX) {
        *gene = rest.swap_remove(number_below(random, rest.len()));
    }
    child
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
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::test_problems::dense;
    use hopmap_random::SeedableRng;
    use proptest::prelude::*;

    #[test]
    fn free_slots_complete_a_mapping() {
        assert_eq!(completed(&[4, 0], 5), [4, 0, 1, 2, 3]);
        assert_eq!(completed(&[1, 0], 2), [1, 0]);
    }

    /// Once the annealing of random individuals began at the temperature of that of children, which keeps the assignment
    /// of groups to groups.
    #[test]
    fn random_individuals_are_annealed_from_a_higher_temperature_than_children() {
        let class = |at: usize| (at % 8, at / 8 % 2);
        let value = |a: usize, b: usize| {
            let ((group, colour), (other, its)) = (class(a), class(b));
            if group != other && colour != its { 20 + (group * other) as u64 % 7 } else { (a * b) as u64 % 3 }
        };
        let problem = dense(64, value, |a, b| value(a * 7 % 64, b * 7 % 64) as f64);
        let params = GeneticParams { child_sweeps: 400, mutation: 0.0, ..GeneticParams::default() };
        let breeding = Breeding::new(&problem, &params).unwrap();
        let mut numbers = Pcg64::from_seed([1; 32]);
        let hot: i64 = (0..6).map(|_| breeding.random(&mut numbers).unwrap().cost).sum();
        let warm = |seed| {
            let start = breeding.individual(random(64, 64, [seed; 32]));
            breeding
                .mutated(start.genes.clone(), &start, None, &mut Pcg64::from_seed([seed; 32]))
                .unwrap()
                .cost
        };
        let warm: i64 = (0..6).map(warm).sum();
        assert!(hot < warm, "{hot} {warm}");
    }

    #[test]
    fn a_generation_has_the_expected_number_of_mutations() {
        let problem = dense(125, |a, b| ((a + b) % 3) as u64, |a, b| (a + b) as f64);
        let counts = |mutation: f64, children: usize, seed: u8| {
            let params =
                GeneticParams { mutation, mutations: Mutations::Expected, ..GeneticParams::default() };
            let breeding = Breeding::new(&problem, &params).unwrap();
            let all = breeding.mutations(children, &mut Pcg64::from_seed([seed; 32]));
            all.into_iter().map(|count| count.unwrap()).collect::<Vec<u32>>()
        };
        // 0.25 are one, in one of two children; 12.5 are 13, in turn in four.
        assert!((0..20).all(|seed| counts(0.001, 2, seed).iter().sum::<u32>() == 1));
        let mut of_four = counts(0.025, 4, 1);
        of_four.sort_unstable();
        assert_eq!(of_four, [3, 3, 3, 4]);
        assert_eq!(counts(0.0, 2, 1), [0, 0]);
        let random = Breeding::new(&problem, &GeneticParams::default()).unwrap();
        assert_eq!(random.mutations(3, &mut Pcg64::from_seed([1; 32])), [None; 3]);
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
            for crossover in [Crossover::Basic, Crossover::Uniform, Crossover::Sorting, Crossover::Order] {
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
