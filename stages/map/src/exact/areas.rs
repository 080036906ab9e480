//! A lower bound of F on trees, for programs of any size: the weight that must leave the areas below the switches of
//! every level.
//!
//! # Method
//!
//! F is the weight of all pairs times the lowest cost, plus for every level the weight between its areas times the rise
//! of the cost there. The weight between areas is that of all pairs less that inside areas, which a relaxation
//! bounds from above. Ranks are in nested clusters (`clusters.rs`). In an area, the ranks of a cluster form a piece. A
//! piece has at most the weight with the rest of the next larger piece that the largest weights of its ranks with as many
//! others give, as Gilmore and Lawler bound a row. So the most that fits an area is a knapsack problem over
//! pieces: eight places do not hold two groups of six, which no bound of single ranks sees.
//!
//! The pieces of all areas together must be those of the clusters. Lagrange multipliers of the number of ranks in a
//! piece relax that; a subgradient method with the step of Polyak (1969) finds them, with the weight inside the areas of
//! a known mapping as the target. Any multipliers give a valid bound, so rounding and stopping early do no harm.

use hopmap_objective::Problem;

use super::clusters::{Class, Weights, classes};

/// Bits of twice the sum of all weights, and the largest multiplier: sums of 65,536 of them on all levels of clusters fit
/// 64 bits.
const BITS: u32 = 46;
const MOST_PRICE: i64 = 1 << 44;
/// Steps of the method, and additions of weights in all of them.
const MOST_STEPS: usize = 200;
const MOST_ADDITIONS: usize = 1 << 27;
/// Steps without progress after which the length of steps is reduced, and by how much.
const PATIENCE: u32 = 8;
const REDUCTION: f64 = 0.7;
/// Part of the distance to the known mapping by which this number of steps must lower the bound.
const PROGRESS: f64 = 1e-3;
const STEPS_OF_PROGRESS: usize = 40;
/// No value.
const NONE: i64 = i64::MIN / 2;

/// A lower bound of the cost on a tree. `slots` is a known mapping.
pub(super) fn tree_bound(problem: &Problem, slots: &[u32], stop: impl Fn() -> bool) -> i64 {
    let distance = problem.distance();
    let weights = Weights::new(problem, BITS);
    // Pieces of a cluster are bounded apart from each other, which is not always better than single ranks.
    let mut clusterings = vec![Vec::new(), weights.clusterings()];
    clusterings.dedup();
    let classes_of: Vec<Vec<Class>> = clusterings.iter().map(|nested| classes(&weights, nested)).collect();
    let all = (0..problem.ranks() as u32).flat_map(|rank| problem.neighbours(rank));
    let twice: i128 = all.map(|near| i128::from(near.weight)).sum();
    let outermost = distance.levels().saturating_sub(1);
    let lowest = if distance.levels() == 0 { 0 } else { distance.level_cost(0) };
    let mut bound = twice / 2 * i128::from(lowest);
    for level in 0..outermost {
        let rise = i128::from(distance.level_cost(level + 1) - distance.level_cost(level));
        let inside = |rank: u32, other: u32| {
            distance.meeting_level(slots[rank as usize], slots[other as usize]) <= level
        };
        let target = weights.twice(inside);
        let areas = areas(problem, level);
        let bounds = classes_of.iter().map(|classes| {
            let most = Relaxation { classes, areas: &areas }.least(target, &stop);
            // Whole pairs are inside.
            weights.sum - most.div_euclid(2)
        });
        bound += (rise * i128::from(bounds.fold(0, i64::max))) << weights.shift;
    }
    i64::try_from(bound).unwrap_or(i64::MAX).max(0)
}

/// The sizes of the areas of a level, and how many there are of each.
fn areas(problem: &Problem, level: usize) -> Vec<(usize, i64)> {
    let (distance, mut first) = (problem.distance(), 0);
    let mut sizes = Vec::new();
    while let Some(&slot) = distance.order().get(first) {
        let area = distance.group(level, slot);
        sizes.push(area.len().min(problem.ranks()));
        first = area.end;
    }
    sizes.sort_unstable();
    sizes.chunk_by(|a, b| a == b).map(|equal| (equal[0], i64::from(equal.len() as u32))).collect()
}

/// The most weight inside areas, each pair counted twice.
struct Relaxation<'c> {
    classes: &'c [Class],
    areas: &'c [(usize, i64)],
}

/// A number for every class, kind of part, and number of ranks of a piece.
type OfPieces<T> = Vec<Vec<Vec<T>>>;

impl Relaxation<'_> {
    /// The least upper bound that the method finds.
    fn least(&self, target: i64, stop: &impl Fn() -> bool) -> i64 {
        let steps = (MOST_ADDITIONS / self.additions()).clamp(1, MOST_STEPS);
        let mut prices = self.of_pieces(0);
        let (mut least, mut length, mut since, mut before) = (i64::MAX, 1.0, 0, i64::MAX / 2);
        for step in 0..steps {
            let (value, excess) = self.evaluate(&prices);
            if value < least {
                (least, since) = (value, 0);
            } else {
                since += 1;
            }
            if since >= PATIENCE {
                (length, since) = (length * REDUCTION, 0);
            }
            let gap = |value: i64| (value - target) as f64;
            if step % STEPS_OF_PROGRESS == 0 {
                if gap(least) > (1.0 - PROGRESS) * gap(before) {
                    break;
                }
                before = least;
            }
            if least <= target || stop() || !self.step(&mut prices, &excess, length * gap(value)) {
                break;
            }
        }
        least
    }

    /// A number of additions of an evaluation, at least.
    fn additions(&self) -> usize {
        let (all, parts) = self.classes.split_last().map_or((0, &[][..]), |(all, parts)| (all.ranks, parts));
        let of_areas: usize = self.areas.iter().map(|(size, _)| size * all).sum();
        let of_parts: usize = parts.iter().map(|class| class.ranks.pow(3) / 2).sum();
        of_areas + of_parts + 1
    }

    fn of_pieces<T: Copy>(&self, value: T) -> OfPieces<T> {
        let of_kind = |class: usize| vec![value; self.classes[class].ranks + 1];
        let of_class = |class: &Class| class.kinds.iter().map(|kind| of_kind(kind.class)).collect();
        self.classes.iter().map(of_class).collect()
    }

    /// Changes the prices of pieces against their excess; `false` if nothing changes.
    fn step(&self, prices: &mut OfPieces<i64>, excess: &OfPieces<i64>, gap: f64) -> bool {
        // The number of parts of a kind.
        let count = |class: usize, kind: usize| {
            let class = &self.classes[class];
            (class.count * class.kinds[kind].count) as f64
        };
        let each = |visit: &mut dyn FnMut(usize, usize, usize, f64)| {
            for (class, kinds) in excess.iter().enumerate() {
                for (kind, pieces) in kinds.iter().enumerate() {
                    for (ranks, &excess) in pieces.iter().enumerate().filter(|(_, excess)| **excess != 0) {
                        visit(class, kind, ranks, excess as f64 / count(class, kind));
                    }
                }
            }
        };
        let mut norm = 0.0;
        each(&mut |class, kind, _, excess| norm += excess * excess * count(class, kind));
        let mut changes = false;
        each(&mut |class, kind, ranks, excess| {
            let change = (gap / norm * excess).round() as i64;
            let price = &mut prices[class][kind][ranks];
            *price = price.saturating_sub(change).clamp(-MOST_PRICE, MOST_PRICE);
            changes |= change != 0;
        });
        changes
    }

    /// The upper bound at these prices, and how many pieces areas have above what clusters are cut into.
    fn evaluate(&self, prices: &OfPieces<i64>) -> (i64, OfPieces<i64>) {
        let Some((all, parts)) = self.classes.split_last() else { return (0, Vec::new()) };
        // Most weight in a piece of every class and size.
        let mut most: Vec<Vec<i64>> = Vec::with_capacity(parts.len());
        let mut packed: Vec<Vec<Knapsack>> = Vec::with_capacity(parts.len());
        for (class, prices) in parts.iter().zip(prices) {
            let sizes = if class.kinds.is_empty() { 0..0 } else { 0..class.ranks + 1 };
            let knapsacks: Vec<Knapsack> =
                sizes.map(|size| Knapsack::new(class, &most, prices, size)).collect();
            let values = knapsacks.iter().map(|knapsack| knapsack.values[knapsack.values.len() - 1]);
            most.push(if class.kinds.is_empty() { vec![0, 0] } else { values.collect() });
            packed.push(knapsacks);
        }
        let mut excess = self.of_pieces(0);
        let mut used: Vec<Vec<i64>> = parts.iter().map(|class| vec![0; class.ranks + 1]).collect();
        let (mut value, last) = (0, parts.len());
        for &(size, count) in self.areas {
            let knapsack = Knapsack::new(all, &most, &prices[last], size);
            let (filled, &best) =
                (0..).zip(&knapsack.values).max_by_key(|(_, value)| **value).unwrap_or((0, &0));
            value += best * count;
            knapsack.each_piece(all, filled, |kind, ranks| {
                excess[last][kind][ranks] += count;
                used[all.kinds[kind].class][ranks] += count;
            });
        }
        for (index, class) in parts.iter().enumerate().rev() {
            for (ranks, knapsack) in packed[index].iter().enumerate() {
                let count = used[index][ranks];
                if count > 0 {
                    knapsack.each_piece(class, ranks, |kind, ranks| {
                        excess[index][kind][ranks] += count;
                        used[class.kinds[kind].class][ranks] += count;
                    });
                }
            }
        }
        for (class, (prices, excess)) in self.classes.iter().zip(prices.iter().zip(&mut excess)) {
            for (kind, (prices, excess)) in class.kinds.iter().zip(prices.iter().zip(excess)) {
                let count = i64::from((class.count * kind.count) as u32);
                value += count * cut(prices, count, excess);
            }
        }
        (value, excess)
    }
}

/// The cheapest way to cut a cluster into pieces at these prices, whose numbers are subtracted for `count` clusters;
/// its value is that of the prices with the opposite sign.
fn cut(prices: &[i64], count: i64, excess: &mut [i64]) -> i64 {
    let mut best = vec![(0, 0); prices.len()];
    for size in 1..prices.len() {
        let ways = (1..=size).map(|piece| (best[size - piece].0 - prices[piece], piece));
        best[size] = ways.max().unwrap_or((0, 0));
    }
    let mut rest = prices.len() - 1;
    while rest > 0 {
        let piece = best[rest].1;
        excess[piece] -= count;
        rest -= piece;
    }
    best[prices.len() - 1].0
}

/// The most valuable pieces of the parts of a cluster for every number of ranks.
struct Knapsack {
    values: Vec<i64>,
    /// Ranks of the piece of every part, for every number of ranks in it and the parts before it.
    pieces: Vec<u16>,
}

impl Knapsack {
    /// For pieces that are together in an area with `size` ranks of the cluster.
    fn new(class: &Class, most: &[Vec<i64>], prices: &[Vec<i64>], size: usize) -> Self {
        let width = size + 1;
        let mut values = vec![NONE; width];
        values[0] = 0;
        let parts: usize = class.kinds.iter().map(|kind| kind.count).sum();
        let mut pieces = vec![0; parts * width];
        let mut rows = pieces.chunks_exact_mut(width);
        let mut next = values.clone();
        for (kind, prices) in class.kinds.iter().zip(prices) {
            let most = &most[kind.class];
            let worth = |ranks: usize| most[ranks] + kind.outer(ranks, size - ranks) + prices[ranks];
            let worths: Vec<i64> = (1..most.len().min(width)).map(worth).collect();
            for row in rows.by_ref().take(kind.count) {
                next.copy_from_slice(&values);
                for (ranks, &worth) in (1u16..).zip(&worths) {
                    let shifted = next[usize::from(ranks)..].iter_mut().zip(&mut row[usize::from(ranks)..]);
                    for (&value, (most, piece)) in values.iter().zip(shifted) {
                        let joined = value + worth;
                        *piece = if joined > *most { ranks } else { *piece };
                        *most = joined.max(*most);
                    }
                }
                std::mem::swap(&mut values, &mut next);
            }
        }
        Self { values, pieces }
    }

    /// Calls `visit` with the kind and the ranks of every piece in an area with `filled` ranks.
    fn each_piece(&self, class: &Class, mut filled: usize, mut visit: impl FnMut(usize, usize)) {
        let kinds =
            class.kinds.iter().enumerate().flat_map(|(kind, part)| std::iter::repeat_n(kind, part.count));
        let rows = self.pieces.chunks_exact(self.values.len());
        for (kind, row) in kinds.collect::<Vec<_>>().into_iter().zip(rows).rev() {
            let ranks = usize::from(row[filled]);
            if ranks > 0 {
                visit(kind, ranks);
                filled -= ranks;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::gilmore_lawler::gilmore_lawler;
    use hopmap_model::{
        CostModel, Edge, Levels, Node, Process, Routing, Slot, SystemGraph, TaskGraph, Weight,
    };
    use proptest::prelude::*;

    /// Hosts of one slot below the given leaf switches, of which two are below a spine.
    fn problem(ranks: usize, edges: &[(u32, u32, u64)], leaves: &[u32], costs: [f64; 3]) -> Problem {
        let edge = |&(source, destination, bytes)| Edge { source, destination, messages: 1, bytes };
        let graph = TaskGraph {
            processes: vec![Process::default(); ranks],
            edges: edges.iter().filter(|edge| edge.0 != edge.1).map(edge).collect(),
            ..TaskGraph::default()
        };
        let hosts = leaves.len() as u32;
        let system = SystemGraph {
            routing: Routing::default(),
            nodes: (0..hosts).map(|host| Node::host(format!("host{host}"))).collect(),
            links: Vec::new(),
            slots: (0..hosts).map(|host| Slot { host, core: 0 }).collect(),
            cost: CostModel::Levels(Levels {
                costs: costs.to_vec(),
                groups: vec![
                    leaves.to_vec(),
                    leaves.iter().map(|leaf| leaf / 2).collect(),
                    vec![0; leaves.len()],
                ],
            }),
            calibration: Vec::new(),
        };
        Problem::new(&graph, &system, Weight::Bytes).unwrap()
    }

    /// The least F over all mappings, and a mapping that has it, by enumeration.
    fn least(
        (ranks, edges): (usize, &[(u32, u32, u64)]),
        (leaves, costs): (&[u32], [f64; 3]),
        slots: &mut Vec<u32>,
    ) -> (f64, Vec<u32>) {
        if slots.len() == ranks {
            let cost = |a: u32, b: u32| match [a, b].map(|rank| leaves[slots[rank as usize] as usize]) {
                [x, y] if x == y => costs[0],
                [x, y] if x / 2 == y / 2 => costs[1],
                _ => costs[2],
            };
            let products =
                edges.iter().filter(|edge| edge.0 != edge.1).map(|&(a, b, bytes)| bytes as f64 * cost(a, b));
            return (products.sum(), slots.clone());
        }
        let mut best = (f64::INFINITY, Vec::new());
        for slot in 0..leaves.len() as u32 {
            if !slots.contains(&slot) {
                slots.push(slot);
                let found = least((ranks, edges), (leaves, costs), slots);
                best = if found.0 < best.0 { found } else { best };
                slots.pop();
            }
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(192))]
        /// One-way and two-way traffic, equal and different weights, leaves of different sizes, spare hosts, half-integer
        /// costs, and levels of equal costs.
        #[test]
        fn no_bound_is_above_the_optimum(
            ranks in 3usize..7, spares in 0usize..2, leaves in prop::collection::vec(0u32..5, 7),
            pairs in prop::collection::btree_map((0u32..6, 0u32..6), prop::sample::select(vec![1u64, 7, 40, 40, 1_000_003]), 1..20),
            costs in prop::sample::select(vec![[2.0, 4.0, 6.0], [0.5, 1.0, 2.5], [0.0, 1.0, 1.0]]),
        ) {
            let edges: Vec<(u32, u32, u64)> = pairs.into_iter().map(|((a, b), bytes)| (a, b, bytes))
                .filter(|&(a, b, _)| a.max(b) < ranks as u32).collect();
            let leaves = &leaves[..ranks + spares];
            let (optimum, slots) = least((ranks, &edges), (leaves, costs), &mut Vec::new());
            let problem = problem(ranks, &edges, leaves, costs);
            for known in [slots, problem.linear()] {
                let bound = problem.real(tree_bound(&problem, &known, || false));
                prop_assert!(bound <= optimum * (1.0 + 1e-12), "{} > {}", bound, optimum);
            }
            let bound = problem.real(gilmore_lawler(&problem, || false).unwrap());
            prop_assert!(bound <= optimum * (1.0 + 1e-12), "{} > {}", bound, optimum);
        }
    }

    /// Groups whose ranks all send to each other.
    fn groups(count: u32, size: u32) -> Vec<(u32, u32, u64)> {
        let pairs = move |group: u32| {
            (0..size).flat_map(move |a| (0..size).map(move |b| (group * size + a, group * size + b)))
        };
        (0..count).flat_map(pairs).filter(|(a, b)| a != b).map(|(a, b)| (a, b, 1)).collect()
    }

    /// The bound of single ranks is 2 per pair here: each of eight hosts could have the five others of its group.
    #[test]
    fn a_leaf_of_eight_does_not_hold_two_groups_of_six() {
        let leaves: Vec<u32> = (0..24).map(|host| 2 * (host / 8)).collect();
        let problem = problem(24, &groups(4, 6), &leaves, [2.0, 4.0, 6.0]);
        // Three groups are whole, and pairs of the fourth are in the places that they leave: 12 of 15 pairs are cut.
        let slots: Vec<u32> = (0..24)
            .map(|rank| if rank < 18 { rank + rank / 6 * 2 } else { (rank - 18) / 2 * 8 + 6 + rank % 2 })
            .collect();
        let optimum = 2 * (60 * 2 + 12 * 4);
        assert_eq!(problem.cost(&slots), optimum);
        assert_eq!(gilmore_lawler(&problem, || false), Some(2 * 60 * 2));
        assert_eq!(tree_bound(&problem, &slots, || false), optimum);
    }

    #[test]
    fn a_bound_without_time_is_one() {
        let leaves: Vec<u32> = (0..24).map(|host| host / 5).collect();
        let problem = problem(24, &groups(4, 6), &leaves, [2.0, 4.0, 6.0]);
        let slots = problem.linear();
        let [early, late] = [true, false].map(|stops| tree_bound(&problem, &slots, || stops));
        assert!(0 < early && early <= late && late <= problem.cost(&slots), "{early} {late}");
    }
}
