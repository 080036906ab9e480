//! Coarse starts: clusters of ranks on clusters of slots.
//!
//! Many dense programs and machines consist of groups whose members have nearly the same row of weights, or
//! of costs. Where a group is decides most of the cost, and at the temperatures at which single exchanges
//! still move a group, members make exchanges in vain. So the groups are found by clustering the rows, and
//! annealed as units; their members follow by annealing of ranks at temperatures that keep the groups.
//!
//! Assignments of clusters that differ little in cost may differ much in what annealing of ranks makes of
//! them, so there are many starts, from which populations select.

use hopmap_model::seed_stream;
use hopmap_objective::Problem;
use hopmap_random::{Draw, Pcg64, Rng, SeedableRng};

use super::clusters::clusterings;
use crate::moves::{Acceptance, below, temperatures};
use crate::params::kind;

/// Numbers of clusters for which a coarse start pays off.
const CLUSTERS: std::ops::RangeInclusive<usize> = 4..=64;
/// Number of starts, and sweeps over all exchanges of clusters to find one.
const STARTS: u64 = 32;
const SWEEPS: u64 = 100;
/// Start and end temperature of these sweeps, in units of the mean change of cost.
const HOT: f64 = 1.0;
const COLD: f64 = 1e-3;
/// Largest cost of a start, as a multiple of the lowest; costlier ones are frozen mistakes.
const WORST: f64 = 1.1;

/// Clusters of ranks and as many of slots, of the same sizes.
pub(super) struct Coarse {
    ranks: Vec<Vec<u32>>,
    slots: Vec<Vec<u32>>,
    /// Weights between clusters, and mean costs between slots of clusters, row by row.
    weights: Vec<f64>,
    costs: Vec<f64>,
    /// Pairs of clusters of the same size.
    exchanges: Vec<(usize, usize)>,
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
        let of_slots = clusterings(size, cost);
        let pairs = clusterings(size, weight).into_iter().filter_map(|ranks| {
            let sizes = |clusters: &[Vec<u32>]| clusters.iter().map(Vec::len).collect::<Vec<_>>();
            let slots = of_slots.iter().find(|slots| sizes(slots) == sizes(&ranks))?;
            Some((ranks, slots.clone()))
        });
        let (ranks, slots) = pairs.into_iter().find(|(ranks, _)| CLUSTERS.contains(&ranks.len()))?;
        let exchanges: Vec<_> = (0..ranks.len())
            .flat_map(|a| (0..a).map(move |b| (a, b)))
            .filter(|&(a, b)| ranks[a].len() == ranks[b].len())
            .collect();
        let costs = sums(&slots, cost, |a, b| (a.len() * b.len()) as f64);
        Some(Self { weights: sums(&ranks, weight, |_, _| 1.0), costs, ranks, slots, exchanges })
    }

    /// Mappings of clusters to clusters of low cost, lowest first, with their members in random order; and
    /// the number of evaluated exchanges.
    pub(super) fn starts(&self, seed: u64, most: u64) -> (Vec<Vec<u32>>, u64) {
        let sweeps = SWEEPS.min(most / (STARTS * self.exchanges.len().max(1) as u64));
        let acceptance = Acceptance::new();
        let start = |number| {
            let mut random = Pcg64::from_seed(seed_stream(kind::AUTO, seed, u64::MAX - number));
            let (cost, placement) = self.anneal(sweeps, &acceptance, &mut random);
            (cost, self.project(&placement, &mut random))
        };
        let mut found: Vec<(f64, Vec<u32>)> = (0..STARTS).map(start).collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let worst = WORST * found[0].0;
        let starts = found.into_iter().take_while(|(cost, _)| *cost <= worst).map(|(_, slots)| slots);
        (starts.collect(), STARTS * sweeps * self.exchanges.len() as u64)
    }

    /// Anneals an assignment of clusters and returns its cost.
    fn anneal(&self, sweeps: u64, acceptance: &Acceptance, random: &mut Pcg64) -> (f64, Vec<usize>) {
        let mut placement: Vec<usize> = (0..self.ranks.len()).collect();
        let changes = self.exchanges.iter().map(|&exchange| self.delta(&placement, exchange).abs());
        let mean = changes.sum::<f64>() / self.exchanges.len().max(1) as f64;
        for temperature in temperatures(HOT * mean, COLD * mean, sweeps) {
            for _ in &self.exchanges {
                let exchange = self.exchanges[below(random.next_u32(), self.exchanges.len())];
                let delta = self.delta(&placement, exchange);
                if delta <= temperature * acceptance.threshold(random.next_u32()) {
                    placement.swap(exchange.0, exchange.1);
                }
            }
        }
        (self.cost(&placement), placement)
    }

    fn cost(&self, placement: &[usize]) -> f64 {
        let clusters = placement.len();
        let row = |a: usize| {
            let costs = &self.costs[placement[a] * clusters..][..clusters];
            let pairs = self.weights[a * clusters..][..clusters].iter().zip(placement);
            pairs.map(|(weight, &slots)| weight * costs[slots]).sum::<f64>()
        };
        (0..clusters).map(row).sum()
    }

    /// Change of cost if two clusters are exchanged.
    fn delta(&self, placement: &[usize], (a, b): (usize, usize)) -> f64 {
        let clusters = placement.len();
        let weight = |row: usize, column: usize| self.weights[row * clusters + column];
        let cost = |row: usize, column: usize| self.costs[row * clusters + column];
        let (here, there) = (placement[a], placement[b]);
        let others = (0..clusters).filter(|&other| other != a && other != b);
        let change = |other: usize| {
            (weight(a, other) - weight(b, other))
                * (cost(there, placement[other]) - cost(here, placement[other]))
        };
        2.0 * others.map(change).sum::<f64>()
            + (weight(a, a) - weight(b, b)) * (cost(there, there) - cost(here, here))
    }

    /// Places the ranks of every cluster on the slots of its cluster in random order.
    fn project(&self, placement: &[usize], random: &mut Pcg64) -> Vec<u32> {
        let mut slots = vec![0; self.ranks.iter().map(Vec::len).sum()];
        for (ranks, &cluster) in self.ranks.iter().zip(placement) {
            let mut drawn = self.slots[cluster].clone();
            random.shuffle_unbiased(&mut drawn);
            for (&rank, slot) in ranks.iter().zip(drawn) {
                slots[rank as usize] = slot;
            }
        }
        slots
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

/// Sums over the pairs of every two clusters, divided.
fn sums(
    clusters: &[Vec<u32>],
    value: impl Fn(usize, usize) -> i64,
    divisor: impl Fn(&[u32], &[u32]) -> f64,
) -> Vec<f64> {
    let sum = |a: &[u32], b: &[u32]| -> f64 {
        a.iter()
            .flat_map(|&a| b.iter().map(move |&b| (a, b)))
            .map(|(a, b)| value(a as usize, b as usize) as f64)
            .sum()
    };
    clusters
        .iter()
        .flat_map(|a| clusters.iter().map(|b| sum(a, b) / divisor(a, b)).collect::<Vec<_>>())
        .collect()
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

    #[test]
    fn a_problem_without_groups_has_no_coarse_start() {
        let problem = dense(40, |a, b| (a * b % 7 + b * a % 5) as u64, |a, b| a.abs_diff(b) as f64);
        assert!(Coarse::new(&problem).is_none());
    }
}
