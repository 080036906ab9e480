//! Ranks in nested clusters, and what the ranks of a cluster can have in common with others.

use std::collections::{BTreeMap, HashMap};

use hopmap_graph::DisjointSets;
use hopmap_objective::Problem;

/// Largest clusters below all ranks: as many ranks as fit below a switch, and not more, show how a switch cuts them.
const SIZES: [usize; 6] = [2, 4, 8, 16, 32, 64];

/// The weights between ranks that communicate.
#[derive(Debug)]
pub(super) struct Weights {
    /// Other ranks and positive weights of every rank.
    pub(super) of: Vec<Vec<(u32, i64)>>,
    /// Sum over all pairs.
    pub(super) sum: i64,
    /// Bits by which they are smaller than those of the problem.
    pub(super) shift: u32,
}

impl Weights {
    /// Weights rounded down so that twice their sum has at most `bits` bits.
    pub(super) fn new(problem: &Problem, bits: u32) -> Self {
        let all = |shift: u32| {
            let weights = (0..problem.ranks() as u32).flat_map(|rank| problem.neighbours(rank));
            weights.map(|near| i128::from(near.weight >> shift)).sum::<i128>()
        };
        let shift = (i128::BITS - all(0).leading_zeros()).saturating_sub(bits);
        let of_rank = |rank: u32| {
            let weights = problem.neighbours(rank).iter().map(|near| (near.rank, near.weight >> shift));
            weights.filter(|(_, weight)| *weight > 0).collect()
        };
        let of = (0..problem.ranks() as u32).map(of_rank).collect();
        Self { of, sum: (all(shift) / 2) as i64, shift }
    }

    /// Twice the weight of the pairs of ranks for which this holds.
    pub(super) fn twice(&self, holds: impl Fn(u32, u32) -> bool) -> i64 {
        let pairs = (0..)
            .zip(&self.of)
            .flat_map(|(rank, near)| near.iter().map(move |&(other, weight)| (rank, other, weight)));
        pairs.filter(|&(rank, other, _)| holds(rank, other)).map(|(.., weight)| weight).sum()
    }

    /// Clusterings from fine to coarse: the ranks that the largest weights connect, for every size of clusters the
    /// smallest weight at which none is larger. Clusters are named by one of their ranks.
    pub(super) fn clusterings(&self) -> Vec<Vec<u32>> {
        let mut edges: Vec<(i64, u32, u32)> = (0..)
            .zip(&self.of)
            .flat_map(|(rank, near)| near.iter().map(move |&(other, weight)| (weight, rank, other)))
            .filter(|(_, rank, other)| rank < other)
            .collect();
        edges.sort_unstable_by(|a, b| b.cmp(a));
        let mut sets = DisjointSets::new(self.of.len());
        let mut largest = 1;
        let mut joined = Vec::new();
        let mut steps = vec![(0, 1)];
        for equal in edges.chunk_by(|a, b| a.0 == b.0) {
            for &(_, a, b) in equal {
                if let Some(size) = join(&mut sets, (a, b)) {
                    largest = largest.max(size);
                    joined.push((a, b));
                }
            }
            steps.push((joined.len(), largest));
        }
        let mut lengths: Vec<usize> = SIZES
            .iter()
            .filter_map(|&size| steps.iter().rev().find(|(_, largest)| *largest <= size))
            .map(|&(length, _)| length)
            .filter(|length| (1..self.of.len() - 1).contains(length))
            .collect();
        lengths.dedup();
        let clustering = |length: usize| {
            let mut sets = DisjointSets::new(self.of.len());
            joined[..length].iter().for_each(|&pair| _ = join(&mut sets, pair));
            (0..self.of.len()).map(|rank| sets.root(rank) as u32).collect()
        };
        lengths.into_iter().map(clustering).collect()
    }
}

/// Joins the sets of two ranks under the root of the larger one; its size if they were different.
fn join(sets: &mut DisjointSets, (a, b): (u32, u32)) -> Option<usize> {
    let (a, b) = (a as usize, b as usize);
    if sets.weight(a) < sets.weight(b) { sets.join(b, a) } else { sets.join(a, b) }
}

/// Clusters that are alike.
#[derive(Debug, Default)]
pub(super) struct Class {
    /// Ranks of each.
    pub(super) ranks: usize,
    /// How many there are.
    pub(super) count: usize,
    /// What each consists of; nothing if it is a rank.
    pub(super) kinds: Vec<Kind>,
}

/// Parts of a cluster that are alike.
#[derive(Debug)]
pub(super) struct Kind {
    /// Their class.
    pub(super) class: usize,
    /// How many each cluster has.
    pub(super) count: usize,
    outer: Outer,
}

impl Kind {
    /// Most weight between a piece of `ranks` ranks of such a part and `others` ranks of the cluster outside it.
    pub(super) fn outer(&self, ranks: usize, others: usize) -> i64 {
        let row = &self.outer[ranks - 1];
        row[others.min(row.len() - 1)]
    }
}

/// Weights by ranks inside, and by ranks outside as long as they grow.
type Outer = Vec<Vec<i64>>;

/// How many parts of a class and with these outer weights a cluster has.
type Contents = BTreeMap<(usize, Outer), usize>;

/// The classes of nested clusters, those of parts before those of wholes; the last one is all ranks.
pub(super) fn classes(weights: &Weights, clusterings: &[Vec<u32>]) -> Vec<Class> {
    let ranks = weights.of.len();
    let mut classes = vec![Class { ranks: 1, count: ranks, kinds: Vec::new() }];
    let (mut parts, mut class_of): (Vec<u32>, Vec<usize>) = ((0..ranks as u32).collect(), vec![0; ranks]);
    for wholes in clusterings.iter().chain(std::iter::once(&vec![0; ranks])) {
        let mut members: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for (rank, key) in (0..).zip(wholes.iter().copied().zip(parts.iter().copied())) {
            members.entry(key).or_default().push(rank);
        }
        let mut contents: BTreeMap<u32, (usize, Contents)> = BTreeMap::new();
        for ((whole, part), ranks) in members {
            let is_outside = |rank: u32| wholes[rank as usize] == whole && parts[rank as usize] != part;
            let (size, contents) = contents.entry(whole).or_default();
            *size += ranks.len();
            *contents.entry((class_of[part as usize], outer(weights, &ranks, is_outside))).or_default() += 1;
        }
        let mut known: BTreeMap<Contents, usize> = BTreeMap::new();
        for (whole, (ranks, contents)) in contents {
            let class = *known.entry(contents).or_insert_with(|| {
                classes.push(Class { ranks, ..Class::default() });
                classes.len() - 1
            });
            classes[class].count += 1;
            class_of[whole as usize] = class;
        }
        for (contents, class) in known {
            let kind = |((class, outer), count)| Kind { class, count, outer };
            classes[class].kinds = contents.into_iter().map(kind).collect();
        }
        parts.clone_from(wholes);
    }
    classes
}

/// Most weight between some of the ranks of a part and ranks outside: at most what the first have with as many others
/// as there are, and at most what the others have with as many ranks of the part.
fn outer(weights: &Weights, part: &[u32], is_outside: impl Fn(u32) -> bool) -> Outer {
    let mut of_others: HashMap<u32, Vec<i64>> = HashMap::new();
    let mut sums: Vec<Vec<i64>> = Vec::with_capacity(part.len());
    for &rank in part {
        let outside = weights.of[rank as usize].iter().filter(|(other, _)| is_outside(*other));
        let own: Vec<i64> = outside
            .map(|&(other, weight)| {
                of_others.entry(other).or_default().push(weight);
                weight
            })
            .collect();
        sums.push(largest_first(own));
    }
    let others: Vec<Vec<i64>> = of_others.into_values().map(largest_first).collect();
    let width = sums.iter().map(Vec::len).max().unwrap_or(1).max(others.len() + 1);
    let mut outer = vec![vec![0; width]; part.len()];
    for at in 0..width {
        let from_inside = largest_first(sums.iter().map(|sums| sums[at.min(sums.len() - 1)]).collect());
        outer.iter_mut().zip(&from_inside[1..]).for_each(|(row, &sum)| row[at] = sum);
    }
    for (count, row) in (1..).zip(&mut outer) {
        let from_outside =
            largest_first(others.iter().map(|sums: &Vec<i64>| sums[count.min(sums.len() - 1)]).collect());
        row.iter_mut().zip(from_outside).for_each(|(most, sum)| *most = sum.min(*most));
        let end = 1 + row.iter().position(|sum| Some(sum) == row.last()).unwrap_or(0);
        row.truncate(end);
    }
    outer
}

/// The sum of the largest values, for every number of them from none.
fn largest_first(mut values: Vec<i64>) -> Vec<i64> {
    values.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum = 0;
    let sums = values.into_iter().map(|value| {
        sum += value;
        sum
    });
    std::iter::once(0).chain(sums).collect()
}
