//! The free hosts and the distances between them.

use std::collections::HashMap;

use hopmap_model::{CostModel, Costs, Levels, SystemGraph};
use rayon::prelude::*;

use crate::error::SelectError;

/// Largest number of hosts with a full distance matrix.
const MAX_DENSE: usize = 1 << 15;

/// A host of the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host {
    /// Its node.
    pub(crate) node: u32,
    /// Its first slot.
    pub(crate) first: u32,
    /// Its number of slots.
    pub(crate) slots: u32,
}

/// The hosts that have slots, in machine order; the index identifies the host.
pub(crate) fn hosts(system: &SystemGraph) -> Vec<Host> {
    system.hosts().map(|(node, first, slots)| Host { node, first, slots }).collect()
}

/// Free hosts grouped into classes: hosts of a class have equal distances to all others.
///
/// The distance between two hosts is the mean cost between a slot of one and a slot of the other, in both
/// directions, scaled to an integer.
pub(crate) struct Space {
    /// The hosts of each class, by index, in the order in which they are taken.
    pub(crate) members: Vec<Vec<u32>>,
    distances: Distances,
    /// Scale factor of the distances.
    pub(crate) scale: f64,
}

enum Distances {
    Tree(LevelTree),
    /// Row-major matrix; each class is one host.
    Dense(Vec<i64>),
}

/// A tree whose leaves are the classes.
pub(crate) struct LevelTree {
    /// `groups[level][class]`; on level 0 each class is its own group, on the last level there is one group.
    pub(crate) groups: Vec<Vec<u32>>,
    /// Distance of hosts whose first common group is on a level.
    pub(crate) costs: Vec<i64>,
}

impl Space {
    /// The space of some hosts, given by ascending index. With `roomy` a class lists its hosts with most
    /// slots first.
    pub(crate) fn new(
        system: &SystemGraph,
        hosts: &[Host],
        free: &[u32],
        roomy: bool,
    ) -> Result<Self, SelectError> {
        let explicit = match &system.cost {
            CostModel::Routes(_) => system.explicit(0).ok(),
            _ => None,
        };
        if let CostModel::Levels(levels) = &explicit.as_deref().unwrap_or(system).cost
            && is_aligned(levels, hosts)
        {
            return Self::tree(levels, hosts, free, roomy);
        }
        Self::dense(system, hosts, free)
    }

    fn tree(levels: &Levels, hosts: &[Host], free: &[u32], roomy: bool) -> Result<Self, SelectError> {
        let slot = |host: &u32| hosts[*host as usize].first as usize;
        let partitions: Vec<(Vec<u32>, usize)> =
            levels.groups.iter().map(|groups| dense(free.iter().map(|host| groups[slot(host)]))).collect();
        let inner = partitions.iter().position(|(_, groups)| *groups < free.len());
        let outer = partitions.iter().position(|(_, groups)| *groups == 1);
        let (Some(inner), Some(outer)) = (inner.or(outer), outer) else {
            // A machine without levels has no slots, so there are no free hosts.
            return Ok(Self { members: Vec::new(), distances: Distances::Dense(Vec::new()), scale: 1.0 });
        };
        let (class_of, classes) = &partitions[inner];
        let mut members = vec![Vec::new(); *classes];
        free.iter().zip(class_of).for_each(|(&host, &class)| members[class as usize].push(host));
        if roomy {
            let room = |host: &u32| std::cmp::Reverse(hosts[*host as usize].slots);
            members.iter_mut().for_each(|members| members.sort_by_key(room));
        }
        let mut groups = vec![vec![0; *classes]; outer + 1 - inner];
        for (groups, (partition, _)) in groups.iter_mut().zip(&partitions[inner..]) {
            class_of.iter().zip(partition).for_each(|(&class, &group)| groups[class as usize] = group);
        }
        let costs = &levels.costs[inner..=outer];
        let scale = scale(costs, free.len())?;
        let costs = costs.iter().map(|cost| (cost * scale).round() as i64).collect();
        Ok(Self { members, distances: Distances::Tree(LevelTree { groups, costs }), scale })
    }

    fn dense(system: &SystemGraph, hosts: &[Host], free: &[u32]) -> Result<Self, SelectError> {
        let count = free.len();
        if count > MAX_DENSE {
            let problem = format!(
                "{count} free hosts exceed the limit of {MAX_DENSE} for distances that do not form a tree"
            );
            let help = "list fewer free hosts, such as those of one partition";
            return Err(SelectError::new(problem, help));
        }
        let host = |index: usize| hosts[free[index] as usize];
        let costs = system.costs();
        let mut distances = vec![0.0; count * count];
        distances.par_chunks_mut(count.max(1)).enumerate().for_each(|(a, row)| {
            let others = row.iter_mut().enumerate().filter(|(b, _)| *b != a);
            others.for_each(|(b, distance)| *distance = cost(&costs, host(a), host(b)));
        });
        keep_finite(&mut distances);
        average(&mut distances, count);
        let scale = scale(&distances, count)?;
        let distances = distances.into_par_iter().map(|distance| (distance * scale).round() as i64).collect();
        let members = free.iter().map(|&host| vec![host]).collect();
        Ok(Self { members, distances: Distances::Dense(distances), scale })
    }

    pub(crate) fn classes(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn size(&self, class: usize) -> i64 {
        self.members[class].len() as i64
    }

    /// Distance of a host of one class to a host of another, or to another host of the same class.
    pub(crate) fn distance(&self, a: usize, b: usize) -> i64 {
        match &self.distances {
            Distances::Dense(distances) => distances[a * self.members.len() + b],
            Distances::Tree(tree) => {
                let level = tree.groups.iter().position(|groups| groups[a] == groups[b]);
                tree.costs[level.unwrap_or(tree.costs.len() - 1)]
            }
        }
    }

    /// The distances of a host to all hosts, if every class is one host.
    pub(crate) fn row(&self, class: usize) -> Option<&[i64]> {
        match &self.distances {
            Distances::Dense(distances) => {
                Some(&distances[class * self.members.len()..][..self.members.len()])
            }
            Distances::Tree(_) => None,
        }
    }

    /// Visits the distances of a class to all classes in order.
    pub(crate) fn for_row(&self, class: usize, mut visit: impl FnMut(usize, i64)) {
        match self.row(class) {
            Some(row) => row.iter().enumerate().for_each(|(other, &distance)| visit(other, distance)),
            None => (0..self.classes()).for_each(|other| visit(other, self.distance(class, other))),
        }
    }

    /// The tree over the classes, if the distances form one.
    pub(crate) fn level_tree(&self) -> Option<&LevelTree> {
        match &self.distances {
            Distances::Tree(tree) => Some(tree),
            Distances::Dense(_) => None,
        }
    }

    pub(crate) fn largest(&self) -> i64 {
        match &self.distances {
            Distances::Dense(distances) => distances.iter().copied().max().unwrap_or(0),
            Distances::Tree(tree) => tree.costs.last().copied().unwrap_or(0),
        }
    }

    /// The sum of distances over all pairs of chosen hosts; `chosen` counts them per class.
    pub(crate) fn total(&self, chosen: &[i64]) -> i64 {
        match &self.distances {
            Distances::Tree(tree) => tree.total(chosen),
            Distances::Dense(distances) => {
                let list: Vec<usize> = (0..chosen.len()).filter(|&class| chosen[class] > 0).collect();
                let row = |a: usize| list.iter().take_while(move |b| **b < a).map(move |&b| (a, b));
                list.iter().flat_map(|&a| row(a)).map(|(a, b)| distances[a * chosen.len() + b]).sum()
            }
        }
    }

    /// The hosts of a choice by class, in machine order.
    pub(crate) fn hosts_of(&self, chosen: &[i64]) -> Vec<u32> {
        let taken = self.members.iter().zip(chosen).flat_map(|(members, &k)| &members[..k as usize]);
        let mut hosts: Vec<u32> = taken.copied().collect();
        hosts.sort_unstable();
        hosts
    }

    /// Number of hosts of each class in a choice.
    pub(crate) fn counts_of(&self, hosts: &[u32]) -> Vec<i64> {
        let count =
            |members: &Vec<u32>| members.iter().filter(|host| hosts.binary_search(host).is_ok()).count();
        self.members.iter().map(|members| count(members) as i64).collect()
    }
}

impl LevelTree {
    /// Sums values of classes over the groups of a level.
    pub(crate) fn sums(&self, level: usize, of_class: &[i64]) -> Vec<i64> {
        let groups = &self.groups[level];
        let mut sums = vec![0; groups.iter().max().map_or(0, |&last| last as usize + 1)];
        groups.iter().zip(of_class).for_each(|(&group, value)| sums[group as usize] += value);
        sums
    }

    /// How much less a pair in a group of a level costs than one that meets on the next level; zero distance
    /// above the last level.
    pub(crate) fn step(&self, level: usize) -> i64 {
        self.costs.get(level + 1).unwrap_or(&0) - self.costs[level]
    }

    fn total(&self, chosen: &[i64]) -> i64 {
        let level = |level| {
            let pairs: i64 = self.sums(level, chosen).iter().map(|k| k * (k - 1) / 2).sum();
            -self.step(level) * pairs
        };
        (0..self.costs.len()).map(level).sum()
    }
}

/// The mean cost from a slot of one host to a slot of another.
fn cost(costs: &Costs<'_>, a: Host, b: Host) -> f64 {
    if a.slots == 1 && b.slots == 1 {
        return costs.between(a.first, b.first);
    }
    let slots = |host: Host| host.first..host.first + host.slots;
    let sum: f64 = slots(a).flat_map(|x| slots(b).map(move |y| costs.between(x, y))).sum();
    sum / (f64::from(a.slots) * f64::from(b.slots))
}

/// Replaces infinite distances by one larger than all others together.
fn keep_finite(distances: &mut [f64]) {
    let finite = distances.iter().copied().filter(|distance| distance.is_finite());
    let farther = finite.fold(1.0, f64::max) * (distances.len() as f64).sqrt();
    let lost = distances.iter_mut().filter(|distance| distance.is_infinite());
    lost.for_each(|distance| *distance = farther);
}

/// Averages both directions of each pair, in square blocks to stay in the cache.
fn average(costs: &mut [f64], count: usize) {
    const SQUARE: usize = 64;
    for rows in (0..count).step_by(SQUARE) {
        for columns in (rows..count).step_by(SQUARE) {
            for a in rows..(rows + SQUARE).min(count) {
                for b in columns.max(a + 1)..(columns + SQUARE).min(count) {
                    let mean = f64::midpoint(costs[a * count + b], costs[b * count + a]);
                    costs[a * count + b] = mean;
                    costs[b * count + a] = mean;
                }
            }
        }
    }
}

/// Whether hosts are aligned with the tree: two hosts in one group have all their slots in it.
fn is_aligned(levels: &Levels, hosts: &[Host]) -> bool {
    let slots = |host: &Host| host.first as usize..(host.first + host.slots) as usize;
    levels.groups.iter().all(|groups| {
        let mut host_of: HashMap<u32, Option<usize>> = HashMap::new();
        for (index, host) in hosts.iter().enumerate() {
            for &group in &groups[slots(host)] {
                let only = host_of.entry(group).or_insert(Some(index));
                *only = only.filter(|&other| other == index);
            }
        }
        hosts.iter().all(|host| {
            let groups = &groups[slots(host)];
            groups.windows(2).all(|pair| pair[0] == pair[1])
                || groups.iter().all(|group| host_of[group].is_some())
        })
    })
}

/// Renumbers groups in order of appearance, and counts them.
fn dense(groups: impl Iterator<Item = u32>) -> (Vec<u32>, usize) {
    let mut numbers = HashMap::new();
    let numbered = groups
        .map(|group| {
            let next = numbers.len() as u32;
            *numbers.entry(group).or_insert(next)
        })
        .collect();
    (numbered, numbers.len())
}

/// Largest relative rounding error of a distance, if the integers have room for it.
const PRECISION: f64 = 1e-9;
/// Upper limit of every sum of distances, well within 64 bits.
const LIMIT: f64 = (1u64 << 59) as f64;
/// Larger powers of ten do not fit a float together with a value near one.
const LARGEST_EXPONENT: u32 = 300;

/// The smallest power of ten at which rounding changes no distance by more than a relative 1e-9, which is 1
/// for integers; smaller if the sum over all ordered pairs of `free` hosts would overflow.
pub(crate) fn scale(distances: &[f64], free: usize) -> Result<f64, SelectError> {
    let power = |exponent: u32| (0..exponent).fold(1.0, |power, _| power * 10.0);
    let precise = |exponent: &u32| {
        let scale = power(*exponent);
        distances.iter().all(|&distance| {
            let scaled = distance * scale;
            (scaled.round() - scaled).abs() <= PRECISION * scaled
        })
    };
    let largest = distances.iter().copied().fold(0.0, f64::max);
    let pairs = (free as f64) * (free as f64);
    let fits = |exponent: &u32| pairs * largest * power(*exponent) <= LIMIT;
    let Some(most) = (0..=LARGEST_EXPONENT).take_while(fits).last() else {
        let problem = format!("the sum of distances of up to {largest} among {free} hosts exceeds 64 bits");
        return Err(SelectError::new(problem, "divide all costs of the machine by a common factor"));
    };
    Ok(power((0..most).find(precise).unwrap_or(most)))
}

/// Objective: Σ `single[class]` over chosen hosts + `pairs` · Σ distance over pairs of them + `constant`.
pub(crate) struct Goal {
    pub(crate) single: Vec<i64>,
    pub(crate) pairs: i64,
    constant: i64,
    /// Whether it is the cut rather than the total distance.
    pub(crate) is_cut: bool,
}

impl Goal {
    /// The total distance of the chosen hosts.
    pub(crate) fn total_distance(space: &Space) -> Self {
        Self { single: vec![0; space.classes()], pairs: 1, constant: 0, is_cut: false }
    }

    /// The closeness of the chosen hosts to the remaining ones. A host adds its closeness to all others; the
    /// closeness within a pair of chosen hosts is then subtracted twice, `2 · (largest − distance)`.
    pub(crate) fn cut(space: &Space, count: usize) -> Self {
        let largest = space.largest();
        let constant = -(count as i64) * (count as i64 - 1) * largest;
        let single = match space.level_tree() {
            Some(tree) => closeness_in_tree(space, tree),
            None => (0..space.classes()).map(|class| closeness(space, class, largest)).collect(),
        };
        Self { single, pairs: 2, constant, is_cut: true }
    }

    /// The class whose hosts are closest to all others; ties go to the first.
    pub(crate) fn heaviest(&self) -> usize {
        let closeness = |class: &usize| (self.single[*class], std::cmp::Reverse(*class));
        (0..self.single.len()).max_by_key(closeness).unwrap_or(0)
    }

    /// The value of a choice with `chosen[class]` hosts of each class.
    pub(crate) fn value(&self, space: &Space, chosen: &[i64]) -> i64 {
        let single: i64 = self.single.iter().zip(chosen).map(|(value, k)| value * k).sum();
        single + self.pairs * space.total(chosen) + self.constant
    }
}

/// Sum over all other hosts of the largest distance minus their distance. Every class is one host.
fn closeness(space: &Space, class: usize, largest: i64) -> i64 {
    let mut sum = 0;
    space.for_row(class, |other, distance| sum += if other == class { 0 } else { largest - distance });
    sum
}

fn closeness_in_tree(space: &Space, tree: &LevelTree) -> Vec<i64> {
    let sizes: Vec<i64> = (0..space.classes()).map(|class| space.size(class)).collect();
    let mut closeness = vec![0; space.classes()];
    for level in 0..tree.costs.len() - 1 {
        let sums = tree.sums(level, &sizes);
        for (value, &group) in closeness.iter_mut().zip(&tree.groups[level]) {
            *value += tree.step(level) * (sums[group as usize] - 1);
        }
    }
    closeness
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_stay_and_decimals_are_scaled_to_integers() {
        let scaled = |distances: &[f64], free| scale(distances, free).unwrap() as u64;
        assert_eq!(scaled(&[0.0, 1.0, 100.0], 10_000), 1);
        assert_eq!(scaled(&[1.28e-7, 2.5e-7], 100), 1_000_000_000);
        assert_eq!(scaled(&[1.0 / 3.0], 10), 1_000_000_000);
        assert_eq!(scaled(&[1.0 / 3.0], 1_000_000), 1_000_000);
        assert_eq!(scaled(&[], 3), 1);
    }

    #[test]
    fn distances_beyond_64_bits_are_rejected() {
        assert!(scale(&[1e18], 10).is_err());
        assert!(scale(&[1e300], 2).is_err());
    }
}
