//! Coarse starts: clusters of ranks on clusters of slots.
//!
//! Many dense programs and machines consist of groups whose members have nearly the same row of weights, or
//! of costs. Where a group is decides most of the cost, and at the temperatures at which single exchanges
//! still move a group, members make exchanges in vain. So the groups are found by clustering the rows, and
//! annealed as units; then the clusters inside them, if all have some. Ranks follow by annealing at
//! temperatures that keep the groups.
//!
//! Annealing of clusters ends in one of many local optima. Their costs predict what annealing of ranks makes
//! of them: in tai343e01, starts that differ by 1 % end 3 % apart. More starts find better ones than longer
//! annealing. Populations select from the best.

use hopmap_model::seed_stream;
use hopmap_objective::Problem;
use hopmap_random::{Draw, Pcg64, Rng, SeedableRng};
use rayon::prelude::*;

use super::clusters::clusterings;
use crate::moves::{Acceptance, below, temperatures};
use crate::params::kind;

/// Numbers of clusters for which a coarse start pays off.
const CLUSTERS: std::ops::RangeInclusive<usize> = 4..=64;
/// Assignments of clusters that are tried, and the best of them, which are kept.
const TRIED: u64 = 256;
const KEPT: usize = 32;
/// Sweeps over all exchanges of clusters, and of those inside, to find one.
const SWEEPS: u64 = 30;
const INNER_SWEEPS: u64 = 100;
/// Start and end temperature of these sweeps, in units of the mean change of cost.
const HOT: f64 = 1.0;
const COLD: f64 = 1e-3;
/// Largest cost of a start, as a multiple of the lowest; costlier ones are frozen mistakes.
const WORST: f64 = 1.1;
/// Products that are summed side by side.
const LANES: usize = 8;

/// Clusters of ranks on clusters of slots, and those inside them.
pub(super) struct Coarse {
    outer: Level,
    inner: Option<Level>,
}

/// Clusters of ranks and as many of slots, of the same sizes.
struct Level {
    ranks: Side,
    slots: Side,
    /// Weights between clusters, and mean costs between slots of clusters, row by row.
    weights: Vec<f64>,
    costs: Vec<f64>,
    /// Length of a row, filled with zeros.
    stride: usize,
    /// Pairs of clusters of the same size inside the same outer one.
    exchanges: Vec<(usize, usize)>,
}

/// Clusters of ranks or slots.
#[derive(Default)]
struct Side {
    clusters: Vec<Vec<u32>>,
    /// The outer cluster of each.
    parents: Vec<usize>,
}

/// Slots of clusters, with the costs between them in the order of the ranks.
struct Placement<'l> {
    level: &'l Level,
    slots: Vec<usize>,
    costs: Vec<f64>,
}

impl Coarse {
    /// `None` for sparse or constrained problems, those with free slots, and those without clusters.
    pub(super) fn new(problem: &Problem) -> Option<Self> {
        let size = problem.ranks();
        if size != problem.slots() || !problem.is_compact() || !problem.is_plain() {
            return None;
        }
        let weights = weights(problem);
        let weight = |a: usize, b: usize| weights[a * size + b];
        let cost = |a: usize, b: usize| problem.distance().cost(a as u32, b as u32);
        let all: Vec<u32> = (0..size as u32).collect();
        let of_slots = clusterings(&all, size, cost);
        let pairs = clusterings(&all, size, weight).into_iter().filter_map(|ranks| {
            let slots = of_slots.iter().find(|slots| sizes(slots) == sizes(&ranks))?;
            Some([ranks, slots.clone()].map(Side::outermost))
        });
        let [ranks, slots] = pairs.into_iter().find(|[ranks, _]| CLUSTERS.contains(&ranks.clusters.len()))?;
        let inner = ranks.inside(size, weight).zip(slots.inside(size, cost));
        let inner = inner.filter(|(of_ranks, of_slots)| {
            let sizes_of = |outer: &Side, inner: &Side| {
                let parents = outer.clusters.iter().map(Vec::len).enumerate();
                let mut all: Vec<_> = parents.map(|(parent, size)| (size, sizes(inner.of(parent)))).collect();
                all.sort_unstable();
                all.dedup();
                all
            };
            let found = sizes_of(&ranks, of_ranks);
            found == sizes_of(&slots, of_slots) && found.windows(2).all(|pair| pair[0].0 != pair[1].0)
        });
        let level = |ranks, slots| Level::new(ranks, slots, weight, cost);
        Some(Self { inner: inner.map(|(ranks, slots)| level(ranks, slots)), outer: level(ranks, slots) })
    }

    /// Mappings of clusters to clusters of low cost, lowest first, with their members in random order; and
    /// the number of evaluated exchanges.
    pub(super) fn starts(&self, seed: u64, most: u64) -> (Vec<Vec<u32>>, u64) {
        let random = |number| Pcg64::from_seed(seed_stream(kind::AUTO, seed, u64::MAX - number));
        let Self { outer, inner } = self;
        let sweeps = SWEEPS.min(most / 2 / (TRIED * outer.exchanges.len().max(1) as u64));
        let mut evaluations = TRIED * outer.evaluations(sweeps);
        let tries = (0..TRIED).into_par_iter().map(|number| outer.anneal(&[0], sweeps, &mut random(number)));
        let mut found = best(tries.collect());
        let projected = |level: &Level, (number, (_, placement)): (usize, &(f64, Vec<usize>))| {
            level.project(placement, &mut random(2 * TRIED + number as u64))
        };
        let Some(inner) = inner else {
            let starts = found.iter().enumerate().map(|start| projected(outer, start));
            return (starts.collect(), evaluations);
        };
        let each = KEPT as u64 * inner.exchanges.len().max(1) as u64;
        let sweeps = INNER_SWEEPS.min(most.saturating_sub(evaluations) / each);
        evaluations += KEPT as u64 * inner.evaluations(sweeps);
        let tries = (0..KEPT).into_par_iter().map(|number| {
            let (_, placement) = &found[number % found.len()];
            inner.anneal(placement, sweeps, &mut random(TRIED + number as u64))
        });
        found = best(tries.collect());
        (found.iter().enumerate().map(|start| projected(inner, start)).collect(), evaluations)
    }
}

/// The different assignments of lowest cost, lowest first.
fn best(mut found: Vec<(f64, Vec<usize>)>) -> Vec<(f64, Vec<usize>)> {
    found.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    found.dedup_by(|a, b| a.1 == b.1);
    let worst = WORST * found[0].0;
    found.retain(|(cost, _)| *cost <= worst);
    found.truncate(KEPT);
    found
}

impl Side {
    fn outermost(clusters: Vec<Vec<u32>>) -> Self {
        Self { parents: vec![0; clusters.len()], clusters }
    }

    /// The clusters inside each of these, if all have some.
    fn inside(&self, size: usize, value: impl Fn(usize, usize) -> i64 + Copy) -> Option<Self> {
        let mut inner = Self::default();
        for (parent, rows) in self.clusters.iter().enumerate() {
            let found = clusterings(rows, size, value);
            let found = found.into_iter().find(|found| found.iter().all(|rows| rows.len() > 1))?;
            inner.parents.extend(found.iter().map(|_| parent));
            inner.clusters.extend(found);
        }
        Some(inner)
    }

    /// The clusters inside an outer one.
    fn of(&self, parent: usize) -> &[Vec<u32>] {
        let begin = self.parents.partition_point(|&other| other < parent);
        let end = self.parents.partition_point(|&other| other <= parent);
        &self.clusters[begin..end]
    }
}

/// Sizes of clusters.
fn sizes(clusters: &[Vec<u32>]) -> Vec<usize> {
    clusters.iter().map(Vec::len).collect()
}

impl Level {
    fn new(
        ranks: Side,
        slots: Side,
        weight: impl Fn(usize, usize) -> i64,
        cost: impl Fn(usize, usize) -> i64,
    ) -> Self {
        let Side { clusters, parents } = &ranks;
        let pairs = (0..clusters.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        let is_even =
            |&(a, b): &(usize, usize)| clusters[a].len() == clusters[b].len() && parents[a] == parents[b];
        let exchanges = pairs.filter(is_even).collect();
        let stride = clusters.len().next_multiple_of(LANES);
        let weights = sums(clusters, stride, weight, |_, _| 1.0);
        let costs = sums(&slots.clusters, stride, cost, |a, b| (a.len() * b.len()) as f64);
        Self { ranks, slots, weights, costs, stride, exchanges }
    }

    /// Evaluations of exchanges by annealing, at most.
    fn evaluations(&self, sweeps: u64) -> u64 {
        2 * sweeps * self.exchanges.len() as u64
    }

    /// Anneals an assignment of clusters inside that of the outer ones, and returns its cost.
    ///
    /// If an exchange is rejected, it is tried together with a second one. Groups often have two halves that
    /// have to move together.
    fn anneal(&self, outer: &[usize], sweeps: u64, random: &mut Pcg64) -> (f64, Vec<usize>) {
        let acceptance = Acceptance::new();
        let mut placement = Placement::new(self, self.drawn(outer, random));
        let changes = self.exchanges.iter().map(|&exchange| placement.delta(exchange).abs());
        let mean = changes.sum::<f64>() / self.exchanges.len().max(1) as f64;
        let draw = |random: &mut Pcg64| self.exchanges[below(random.next_u32(), self.exchanges.len())];
        for temperature in temperatures(HOT * mean, COLD * mean, sweeps) {
            for _ in &self.exchanges {
                let rise = temperature * acceptance.threshold(random.next_u32());
                let [first, second] = [draw(random), draw(random)];
                let delta = placement.delta(first);
                if delta <= rise {
                    placement.exchange(first);
                    continue;
                }
                placement.exchange(first);
                if delta + placement.delta(second) <= rise {
                    placement.exchange(second);
                } else {
                    placement.exchange(first);
                }
            }
        }
        (placement.cost(), placement.slots)
    }

    /// A random assignment inside that of the outer clusters.
    fn drawn(&self, outer: &[usize], random: &mut Pcg64) -> Vec<usize> {
        let mut free: Vec<usize> = (0..self.slots.clusters.len()).collect();
        random.shuffle_unbiased(&mut free);
        let ranks = self.ranks.clusters.iter().zip(&self.ranks.parents);
        let take = |(ranks, &parent): (&Vec<u32>, &usize)| {
            let is_right = |&slots: &usize| {
                self.slots.parents[slots] == outer[parent] && self.slots.clusters[slots].len() == ranks.len()
            };
            let at = free.iter().position(is_right).unwrap_or(0);
            free.swap_remove(at)
        };
        ranks.map(take).collect()
    }

    /// Places the ranks of every cluster on the slots of its cluster in random order.
    fn project(&self, placement: &[usize], random: &mut Pcg64) -> Vec<u32> {
        let mut slots = vec![0; self.ranks.clusters.iter().map(Vec::len).sum()];
        for (ranks, &cluster) in self.ranks.clusters.iter().zip(placement) {
            let mut drawn = self.slots.clusters[cluster].clone();
            random.shuffle_unbiased(&mut drawn);
            for (&rank, slot) in ranks.iter().zip(drawn) {
                slots[rank as usize] = slot;
            }
        }
        slots
    }
}

impl<'l> Placement<'l> {
    fn new(level: &'l Level, slots: Vec<usize>) -> Self {
        let mut costs = vec![0.0; level.costs.len()];
        for (row, &from) in costs.chunks_mut(level.stride).zip(&slots) {
            for (cost, &to) in row.iter_mut().zip(&slots) {
                *cost = level.costs[from * level.stride + to];
            }
        }
        Self { level, slots, costs }
    }

    fn cost(&self) -> f64 {
        self.level.weights.iter().zip(&self.costs).map(|(weight, cost)| weight * cost).sum()
    }

    /// Change of cost if two clusters are exchanged.
    fn delta(&self, (a, b): (usize, usize)) -> f64 {
        let stride = self.level.stride;
        let [weights_a, weights_b] = [a, b].map(|row| &self.level.weights[row * stride..][..stride]);
        let [costs_a, costs_b] = [a, b].map(|row| &self.costs[row * stride..][..stride]);
        let change = |at: usize| (weights_a[at] - weights_b[at]) * (costs_b[at] - costs_a[at]);
        let mut lanes = [0.0; LANES];
        for begin in (0..stride).step_by(LANES) {
            for (lane, sum) in lanes.iter_mut().enumerate() {
                *sum += change(begin + lane);
            }
        }
        let others = lanes.iter().sum::<f64>() - change(a) - change(b);
        2.0 * others + (weights_a[a] - weights_b[b]) * (costs_b[b] - costs_a[a])
    }

    fn exchange(&mut self, (a, b): (usize, usize)) {
        let stride = self.level.stride;
        self.slots.swap(a, b);
        (0..stride).for_each(|column| self.costs.swap(a * stride + column, b * stride + column));
        (0..self.slots.len()).for_each(|row| self.costs.swap(row * stride + a, row * stride + b));
    }
}

/// The weights of all pairs of ranks, row by row.
fn weights(problem: &Problem) -> Vec<i64> {
    let size = problem.ranks();
    let mut weights = vec![0; size * size];
    for rank in 0..size {
        for neighbour in problem.neighbours(rank as u32) {
            weights[rank * size + neighbour.rank as usize] = neighbour.weight;
        }
    }
    weights
}

/// Sums over the pairs of every two clusters, divided; rows are filled with zeros.
fn sums(
    clusters: &[Vec<u32>],
    stride: usize,
    value: impl Fn(usize, usize) -> i64,
    divisor: impl Fn(&[u32], &[u32]) -> f64,
) -> Vec<f64> {
    let sum = |a: &[u32], b: &[u32]| -> f64 {
        a.iter()
            .flat_map(|&a| b.iter().map(move |&b| (a, b)))
            .map(|(a, b)| value(a as usize, b as usize) as f64)
            .sum()
    };
    let mut sums = vec![0.0; clusters.len() * stride];
    for (row, a) in sums.chunks_mut(stride).zip(clusters) {
        for (cell, b) in row.iter_mut().zip(clusters) {
            *cell = sum(a, b) / divisor(a, b);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_problems::dense;

    const SIZE: usize = 90;

    /// Groups of 7 and 8 items, in an order that hides them.
    fn group(item: usize, factor: usize) -> usize {
        item * factor % SIZE * 2 / 15
    }

    fn rank_group(rank: usize) -> usize {
        group(rank, 29)
    }

    fn slot_group(slot: usize) -> usize {
        group(slot, 49)
    }

    /// Once groups of four similar rows were formed in the order of the rows. Where the groups of the program
    /// had other sizes, their last members took members of other groups, and so on.
    #[test]
    fn groups_of_any_size_stay_whole() {
        // Groups communicate if their numbers differ in parity, and groups of slots are distant if they agree.
        let value = |a: usize, b: usize, differ: bool| match a == b {
            true => 1,
            false if (a + b) % 2 == usize::from(differ) => 20 + a + b,
            false => 0,
        };
        let weight = |a: usize, b: usize| value(rank_group(a), rank_group(b), true) * usize::from(a != b);
        let cost = |a: usize, b: usize| value(slot_group(a), slot_group(b), false) * usize::from(a != b);
        let problem = dense(SIZE, |a, b| weight(a, b) as u64, |a, b| cost(a, b) as f64);
        let (starts, evaluations) = Coarse::new(&problem).unwrap().starts(1, 1 << 20);
        assert!(evaluations <= 1 << 20 && starts.len() > 1);
        for start in &starts {
            assert!(problem.cost(start) < problem.cost(&problem.linear()));
            for (a, b) in (0..SIZE).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let [near, far] = [a, b].map(|rank| slot_group(start[rank] as usize));
                assert_eq!(near == far, rank_group(a) == rank_group(b));
            }
        }
        assert_eq!(Coarse::new(&problem).unwrap().starts(1, 1 << 20).0, starts);
    }

    /// Once only groups were units: the clusters inside them froze later, one by one, at random.
    #[test]
    fn clusters_inside_groups_stay_whole() {
        const SIZE: usize = 96;
        // Four groups of four clusters of six, in an order that hides them.
        let cluster = |item: usize, factor: usize| item * factor % SIZE / 6;
        let value = |a: usize, b: usize, differ: bool| {
            let is_large = |a: usize, b: usize| (a + b) % 2 == usize::from(differ);
            match (a / 4 == b / 4, a == b) {
                (false, _) => 40 * usize::from(is_large(a / 4, b / 4)) + a / 4 * (b / 4),
                (true, false) => 10 * usize::from(is_large(a, b)),
                (true, true) => 1,
            }
        };
        let weight = |a: usize, b: usize| value(cluster(a, 29), cluster(b, 29), true) * usize::from(a != b);
        let cost = |a: usize, b: usize| value(cluster(a, 49), cluster(b, 49), false) * usize::from(a != b);
        let problem = dense(SIZE, |a, b| weight(a, b) as u64, |a, b| cost(a, b) as f64);
        let (starts, _) = Coarse::new(&problem).unwrap().starts(1, 1 << 22);
        assert!(!starts.is_empty());
        for start in &starts {
            for (a, b) in (0..SIZE).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let [near, far] = [a, b].map(|rank| cluster(start[rank] as usize, 49));
                assert_eq!(near == far, cluster(a, 29) == cluster(b, 29));
                assert_eq!(near / 4 == far / 4, cluster(a, 29) / 4 == cluster(b, 29) / 4);
            }
        }
    }

    #[test]
    fn changes_are_differences_of_costs() {
        let value = |a: usize, b: usize| ((a.min(b) * 31 + a.max(b) * 17) % 23).cast_signed() as i64;
        let clusters: Vec<Vec<u32>> = (0..11).map(|at| vec![2 * at, 2 * at + 1]).collect();
        let [ranks, slots] = [clusters.clone(), clusters].map(Side::outermost);
        let level = Level::new(ranks, slots, value, |a, b| value(a + 5, b + 5));
        let mut random = Pcg64::from_seed([1; 32]);
        let mut placement = Placement::new(&level, level.drawn(&[0], &mut random));
        for &exchange in &level.exchanges {
            let (before, delta) = (placement.cost(), placement.delta(exchange));
            placement.exchange(exchange);
            let anew = Placement::new(&level, placement.slots.clone());
            assert!((anew.cost() - before - delta).abs() < 1e-6);
            assert_eq!(placement.costs, anew.costs);
        }
    }

    #[test]
    fn a_problem_without_groups_has_no_coarse_start() {
        let problem = dense(40, |a, b| (a * b % 7 + b * a % 5) as u64, |a, b| a.abs_diff(b) as f64);
        assert!(Coarse::new(&problem).is_none());
    }
}
