//! Fast lookup of the cost between two slots.

use std::collections::HashMap;
use std::ops::Range;

use hopmap_model::Levels;

use crate::error::ObjectiveError;

/// Bits of a code, one of which marks a slot compared with itself.
const CODE_BITS: u32 = 64;

/// Integer cost between slots: leaves of a tree, or any symmetric costs.
///
/// In a tree every slot has a code: the branch indices from the root as bits. The highest bit in which two
/// codes differ gives the level on which the slots meet, and thereby their cost. Levels on which no two slots
/// meet, and levels with the cost of the next outer one, are removed.
#[derive(Debug, Clone)]
pub struct Distance {
    /// The lowest bit is always zero, so that for equal slots the highest different bit is the lowest one.
    codes: Vec<u64>,
    /// Cost by the highest different bit.
    costs: [i64; CODE_BITS as usize],
    /// Level by the highest different bit.
    level_of: [u8; CODE_BITS as usize],
    /// Slots in code order, in which every group is contiguous.
    order: Vec<u32>,
    /// Innermost first.
    levels: Vec<Groups>,
    /// Costs of all ordered pairs of slots, or of hosts with trees inside, if the slots are not leaves of one
    /// tree. Every slot is then its own group, and one outer group contains all.
    pairs: Option<Pairs>,
    /// The closest slots, if the search of a sparse program on a machine that is not a tree needs them.
    near: Option<Near>,
    /// Whether the groups are those of a tree.
    is_grouped: bool,
}

/// Symmetric costs of all ordered pairs of slots or hosts.
#[derive(Debug, Clone)]
struct Pairs {
    costs: Table,
    /// Number of slots or hosts.
    count: usize,
    /// Bits of a code below the host index; one if every slot is a host.
    inside: u32,
}

/// Numbers, in two bytes each if they fit: searches draw them in random order, so that the cache decides.
#[derive(Debug, Clone)]
enum Table {
    Narrow(Vec<u16>),
    Wide(Vec<i64>),
}

impl Table {
    fn new(costs: Vec<i64>) -> Self {
        match costs.iter().map(|&cost| u16::try_from(cost).ok()).collect() {
            Some(narrow) => Self::Narrow(narrow),
            None => Self::Wide(costs),
        }
    }

    #[inline]
    fn get(&self, index: usize) -> i64 {
        match self {
            Self::Narrow(costs) => costs[index].into(),
            Self::Wide(costs) => costs[index],
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Narrow(costs) => costs.len(),
            Self::Wide(costs) => costs.len(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }
}

/// The slots of every host and of the closest other hosts.
#[derive(Debug, Clone)]
struct Near {
    /// Offsets of the slots of every host, and the end.
    first: Vec<u32>,
    slots: Vec<u32>,
}

/// Least number of closest hosts, which come with all others at the same cost, up to the largest number.
const NEAR_HOSTS: [usize; 2] = [4, 32];

/// The groups of the slots on one level.
#[derive(Debug, Clone)]
struct Groups {
    cost: i64,
    /// Group of every slot, numbered from zero.
    of: Vec<u32>,
    /// Offsets of groups in the slot order, and the end.
    first: Vec<u32>,
}

impl Distance {
    /// Builds the codes of the slots of a tree with level costs `costs`.
    pub(crate) fn new(levels: &Levels, costs: &[i64], slots: usize) -> Result<Self, ObjectiveError> {
        let mut levels = distinct_levels(levels, costs, slots);
        let mut codes = vec![0u64; slots];
        let mut bits_of = Vec::new();
        let singles: Vec<u32> = (0..slots as u32).collect();
        for level in (0..levels.len()).rev() {
            let children = if level == 0 { &singles } else { &levels[level - 1].of };
            let (numbers, bits) = branch_numbers(&levels[level].of, children);
            bits_of.push(bits);
            let used: u32 = bits_of.iter().sum();
            if used >= CODE_BITS {
                return Err(ObjectiveError::too_deep(used));
            }
            for (code, &child) in codes.iter_mut().zip(children) {
                *code = *code << bits | u64::from(numbers[child as usize]);
            }
        }
        for code in &mut codes {
            *code <<= 1;
        }
        let mut order = singles;
        order.sort_by_key(|&slot| codes[slot as usize]);
        for level in &mut levels {
            level.renumber(&order);
        }
        let (mut table, mut level_of) = ([0; CODE_BITS as usize], [0; CODE_BITS as usize]);
        let mut bit = 1;
        for (index, (level, &bits)) in levels.iter().zip(bits_of.iter().rev()).enumerate() {
            let next = bit + bits as usize;
            table[bit..next].fill(level.cost);
            level_of[bit..next].fill(index as u8);
            bit = next;
        }
        Ok(Self { codes, costs: table, level_of, order, levels, pairs: None, near: None, is_grouped: true })
    }

    /// Creates it from a symmetric cost matrix of slots, row by row, with zero diagonal.
    pub(crate) fn of_pairs(costs: Vec<i64>, slots: usize) -> Self {
        let codes = (0..slots as u64).map(|slot| slot << 1).collect();
        Self::with_pairs(
            codes,
            &[0; CODE_BITS as usize],
            Pairs { costs: Table::new(costs), count: slots, inside: 1 },
        )
    }

    /// Creates it from a symmetric cost matrix of hosts, row by row, and the trees over the slots of every
    /// host: levels whose outermost groups are the hosts, in slot order.
    pub(crate) fn of_hosts(
        inside: &Levels,
        inside_costs: &[i64],
        costs: Vec<i64>,
    ) -> Result<Self, ObjectiveError> {
        let slots = inside.groups.last().map_or(0, Vec::len);
        let tree = Self::new(inside, inside_costs, slots)?;
        let hosts = inside.groups.last().map_or_else(Vec::new, |groups| first_seen(groups, 0).of);
        let count = hosts.iter().max().map_or(0, |most| *most as usize + 1);
        let used = u64::BITS - tree.codes.iter().max().map_or(0, |code| code.leading_zeros().min(u64::BITS));
        let inside = if tree.codes.is_empty() { 1 } else { used.max(1) };
        if inside + (usize::BITS - count.leading_zeros()) > CODE_BITS {
            return Err(ObjectiveError::too_deep(inside));
        }
        let codes =
            tree.codes.iter().zip(&hosts).map(|(code, &host)| u64::from(host) << inside | code).collect();
        Ok(Self::with_pairs(codes, &tree.costs, Pairs { costs: Table::new(costs), count, inside }))
    }

    fn with_pairs(codes: Vec<u64>, costs: &[i64; CODE_BITS as usize], pairs: Pairs) -> Self {
        let slots = codes.len();
        let sum = pairs.costs.iter().map(i128::from).sum::<i128>();
        let mean = i64::try_from(sum / pairs.costs.len().max(1) as i128).unwrap_or(i64::MAX);
        let order: Vec<u32> = (0..slots as u32).collect();
        let (level_of, levels) = without_tree(order.clone(), mean);
        Self {
            codes,
            costs: *costs,
            level_of,
            order,
            levels,
            pairs: Some(pairs),
            near: None,
            is_grouped: false,
        }
    }

    /// The same tree with single slots as innermost groups, for objectives that distinguish the slots of a
    /// group.
    pub(crate) fn with_single_slots(&self) -> Self {
        let mut tree = self.clone();
        let mut of = vec![0; tree.order.len()];
        (0..).zip(&tree.order).for_each(|(place, &slot)| of[slot as usize] = place);
        tree.levels.insert(0, single_slots(of));
        // The lowest bit is that of a slot and itself.
        tree.level_of[1..].iter_mut().for_each(|level| *level += 1);
        tree
    }

    /// Whether the cost between two slots follows from the level on which they meet.
    #[must_use]
    pub fn is_tree(&self) -> bool {
        self.is_grouped
    }

    /// The slots of every host; every slot alone if each has costs of its own or the machine is a tree.
    #[must_use]
    pub fn hosts(&self) -> Vec<Vec<u32>> {
        let inside = self.pairs.as_ref().map_or(0, |pairs| pairs.inside);
        let together = |a: &u32, b: &u32| inside > 1 && self.code(*a) >> inside == self.code(*b) >> inside;
        self.order.chunk_by(together).map(<[u32]>::to_vec).collect()
    }

    /// Finds the slots near every slot, unless the machine is a tree.
    pub(crate) fn find_near(&mut self) {
        let Some(pairs) = &self.pairs else { return };
        let hosts = self.hosts();
        let mut near = Near { first: vec![0], slots: Vec::new() };
        for (row, own) in hosts.iter().enumerate() {
            let cost = |host: usize| pairs.costs.get(row * pairs.count + host);
            let mut closest: Vec<usize> = Vec::new();
            while closest.len() < NEAR_HOSTS[0].min(hosts.len() - 1) {
                let last = closest.last().map(|&host| cost(host));
                let further =
                    (0..hosts.len()).filter(|&host| host != row && last.is_none_or(|last| cost(host) > last));
                let next = further.clone().map(cost).min();
                closest.extend(further.filter(|&host| Some(cost(host)) == next));
            }
            closest.truncate(NEAR_HOSTS[1]);
            near.slots.extend(own);
            near.slots.extend(closest.iter().flat_map(|&host| &hosts[host]));
            near.first.push(near.slots.len() as u32);
        }
        self.near = Some(near);
    }

    /// The slots on the host of a slot, including itself, and on the closest other hosts; empty if they are not
    /// needed.
    #[must_use]
    #[inline]
    pub fn near(&self, slot: u32) -> &[u32] {
        let (Some(near), Some(pairs)) = (&self.near, &self.pairs) else { return &[] };
        // If every slot is a host, codes have one bit below the slot.
        let host = (self.code(slot) >> pairs.inside) as usize;
        &near.slots[near.first[host] as usize..near.first[host + 1] as usize]
    }

    /// The greatest common divisor of all costs; zero if all are zero.
    pub(crate) fn unit(&self) -> i64 {
        match &self.pairs {
            Some(pairs) => pairs.costs.iter().chain(self.costs).fold(0, divisor),
            None => self.levels.iter().fold(0, |unit, level| divisor(unit, level.cost)),
        }
    }

    /// Integer cost between two slots; zero from a slot to itself.
    #[must_use]
    pub fn cost(&self, a: u32, b: u32) -> i64 {
        self.between(self.code(a), self.code(b))
    }

    /// Number of levels on which slots meet.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// The innermost level on which different slots meet: 1 if the innermost groups are single slots.
    #[must_use]
    pub fn first_shared_level(&self) -> usize {
        usize::from(self.levels.first().is_some_and(|groups| groups.count() == self.order.len()))
    }

    /// Integer cost between slots that meet on a level, innermost first.
    #[must_use]
    pub fn level_cost(&self, level: usize) -> i64 {
        self.levels[level].cost
    }

    /// Level on which two slots meet; the innermost one for a slot and itself.
    #[must_use]
    pub fn meeting_level(&self, a: u32, b: u32) -> usize {
        usize::from(self.level_of[highest_difference(self.code(a), self.code(b))])
    }

    /// Range in [`order`](Self::order) of the slots that a slot meets on a level or below, including itself.
    #[must_use]
    pub fn group(&self, level: usize, slot: u32) -> Range<usize> {
        let groups = &self.levels[level];
        groups.range(groups.of[slot as usize])
    }

    /// All slots; the groups of every level are contiguous.
    #[must_use]
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    pub(crate) fn code(&self, slot: u32) -> u64 {
        self.codes[slot as usize]
    }

    #[inline]
    pub(crate) fn between(&self, a: u64, b: u64) -> i64 {
        match &self.pairs {
            None => self.costs[highest_difference(a, b)],
            Some(pairs) => {
                let [x, y] = [a, b].map(|code| (code >> pairs.inside) as usize);
                // If every slot is a host, hosts have no inner levels.
                match pairs.inside > 1 && x == y {
                    true => self.costs[highest_difference(a, b)],
                    false => pairs.costs.get(x * pairs.count + y),
                }
            }
        }
    }
}

/// Levels by the highest different bit, and two levels: every slot as its own group, in the given order, and
/// one group of all slots with a cost.
fn without_tree(of: Vec<u32>, cost: i64) -> ([u8; CODE_BITS as usize], Vec<Groups>) {
    let slots = of.len() as u32;
    let together = Groups { cost, of: vec![0; slots as usize], first: vec![0, slots] };
    let mut level_of = [1; CODE_BITS as usize];
    level_of[0] = 0;
    (level_of, vec![single_slots(of), together])
}

/// Every slot as its own group, in this order.
fn single_slots(of: Vec<u32>) -> Groups {
    let first = (0..=of.len() as u32).collect();
    Groups { cost: 0, of, first }
}

/// Greatest common divisor.
pub(crate) fn divisor(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The highest bit in which two codes differ; the lowest one if they are equal.
#[inline]
fn highest_difference(a: u64, b: u64) -> usize {
    ((a ^ b) | 1).ilog2() as usize % CODE_BITS as usize
}

impl Groups {
    fn count(&self) -> usize {
        self.first.len() - 1
    }

    fn range(&self, group: u32) -> Range<usize> {
        self.first[group as usize] as usize..self.first[group as usize + 1] as usize
    }

    /// Numbers the groups in a slot order in which each is contiguous.
    fn renumber(&mut self, order: &[u32]) {
        let mut first = vec![0];
        let mut numbered = vec![0; self.of.len()];
        for (index, &slot) in order.iter().enumerate() {
            if index > 0 && self.of[slot as usize] != self.of[order[index - 1] as usize] {
                first.push(index as u32);
            }
            numbered[slot as usize] = first.len() as u32 - 1;
        }
        first.push(order.len() as u32);
        self.of = numbered;
        self.first = first;
    }
}

/// The levels on which some slots meet, without those with the cost of the next outer one.
fn distinct_levels(levels: &Levels, costs: &[i64], slots: usize) -> Vec<Groups> {
    let mut distinct: Vec<Groups> = Vec::new();
    for (level, (&cost, groups)) in costs.iter().zip(&levels.groups).enumerate() {
        if costs.get(level + 1) == Some(&cost) {
            continue;
        }
        let groups = first_seen(groups, cost);
        let inner = distinct.last().map_or(slots, Groups::count);
        if groups.count() < inner {
            distinct.push(groups);
        }
    }
    distinct
}

/// Numbers groups in the order of their first slots; `first` so far holds only their number.
fn first_seen(groups: &[u32], cost: i64) -> Groups {
    let mut numbers = HashMap::new();
    let of = groups
        .iter()
        .map(|&group| {
            let next = numbers.len() as u32;
            *numbers.entry(group).or_insert(next)
        })
        .collect();
    Groups { cost, of, first: vec![0; numbers.len() + 1] }
}

/// Index of every child in its parent, and the bits of the largest index.
fn branch_numbers(parents: &[u32], children: &[u32]) -> (Vec<u32>, u32) {
    const UNSEEN: u32 = u32::MAX;
    let mut numbers = vec![UNSEEN; children.len()];
    let mut next = vec![0u32; parents.len()];
    for (&parent, &child) in parents.iter().zip(children) {
        let number = &mut numbers[child as usize];
        if *number == UNSEEN {
            *number = next[parent as usize];
            next[parent as usize] += 1;
        }
    }
    let largest = next.iter().max().map_or(0, |&branches| branches.saturating_sub(1));
    (numbers, u32::BITS - largest.leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn levels(shape: &[u32]) -> (Levels, usize) {
        let slots: u32 = shape.iter().product();
        let sizes = shape.iter().scan(1, |size, branches| {
            *size *= branches;
            Some(*size)
        });
        let groups = sizes.map(|size| (0..slots).map(|slot| slot / size).collect()).collect();
        (Levels { costs: vec![0.0; shape.len()], groups }, slots as usize)
    }

    fn scattered() -> Levels {
        Levels { costs: vec![1.0, 2.0], groups: vec![vec![7, 3, 7, 9, 3], vec![0; 5]] }
    }

    #[test]
    fn groups_are_contiguous_even_for_scattered_slots() {
        let distance = Distance::new(&scattered(), &[1, 2], 5).unwrap();
        assert_eq!(distance.order()[distance.group(0, 2)], [0, 2]);
        assert_eq!(distance.order()[distance.group(0, 4)], [1, 4]);
        assert_eq!(distance.group(1, 3), 0..5);
        assert_eq!([0, 2, 1, 3].map(|b| distance.cost(0, b)), [0, 1, 2, 2]);
        assert_eq!((distance.meeting_level(0, 2), distance.meeting_level(0, 1)), (0, 1));
    }

    #[test]
    fn redundant_levels_are_removed() {
        let (tree, slots) = levels(&[2, 1, 2, 2, 1]);
        let distance = Distance::new(&tree, &[1, 5, 10, 10, 100], slots).unwrap();
        assert_eq!(distance.levels(), 2);
        assert_eq!([1, 2, 4].map(|b| distance.cost(0, b)), [1, 10, 10]);
    }

    #[test]
    fn one_slot_has_no_levels() {
        let (tree, slots) = levels(&[1, 1]);
        assert_eq!(Distance::new(&tree, &[1, 2], slots).unwrap().levels(), 0);
    }

    #[test]
    fn hosts_have_pairs_and_their_slots_a_tree() {
        // Two hosts with two pairs of slots each, and one with a single slot.
        let groups = vec![vec![0, 0, 1, 1, 2, 2, 3, 3, 4], vec![7, 7, 7, 7, 5, 5, 5, 5, 9]];
        let inside = Levels { costs: Vec::new(), groups };
        let costs = vec![0, 20, 30, 20, 0, 50, 30, 50, 0];
        let distance = Distance::of_hosts(&inside, &[1, 4], costs).unwrap();
        assert_eq!([0, 1, 2, 4, 7, 8].map(|b| distance.cost(0, b)), [0, 1, 4, 20, 20, 30]);
        assert_eq!([5, 4, 6, 8].map(|b| distance.cost(5, b)), [0, 1, 4, 50]);
        assert_eq!((distance.unit(), distance.is_tree(), distance.levels()), (1, false, 2));
        let single = Levels { costs: Vec::new(), groups: vec![vec![0, 1]] };
        let distance = Distance::of_hosts(&single, &[3], vec![0, 6, 6, 0]).unwrap();
        assert_eq!([0, 1].map(|b| distance.cost(1, b)), [6, 0]);
    }

    #[test]
    fn near_slots_are_those_of_the_closest_hosts() {
        // Eight hosts of two slots in a row: four hosts are near, and all others at the cost of the last.
        let hosts = 8u32;
        let costs = (0..hosts * hosts).map(|at| i64::from((at / hosts).abs_diff(at % hosts))).collect();
        let inside =
            Levels { costs: Vec::new(), groups: vec![(0..2 * hosts).map(|slot| slot / 2).collect()] };
        let mut distance = Distance::of_hosts(&inside, &[0], costs).unwrap();
        assert!(distance.near(6).is_empty());
        distance.find_near();
        assert_eq!(distance.near(6), [6, 7, 4, 5, 8, 9, 2, 3, 10, 11]);
        assert_eq!(distance.near(1), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(distance.hosts()[3], [6, 7]);
    }

    #[test]
    fn a_tree_deeper_than_a_code_is_refused() {
        let slots = 80u32;
        let costs: Vec<i64> = (0..i64::from(slots) - 1).collect();
        let groups = (1..slots).map(|level| (0..slots).map(|slot| slot.max(level)).collect()).collect();
        let levels = Levels { costs: Vec::new(), groups };
        assert!(Distance::new(&levels, &costs, slots as usize).is_err());
    }

    proptest! {
        #[test]
        fn cost_is_that_of_the_meeting_level(
            shape in prop::collection::vec(1u32..5, 1..5),
            steps in prop::collection::vec(0i64..3, 4),
        ) {
            let (tree, slots) = levels(&shape);
            let costs: Vec<i64> = steps.iter().scan(1, |sum, step| { *sum += step; Some(*sum) }).take(shape.len()).collect();
            let distance = Distance::new(&tree, &costs, slots).unwrap();
            for a in 0..slots as u32 {
                for b in 0..slots as u32 {
                    let expected = if a == b { 0 } else { costs[tree.meeting_level(a, b)] };
                    prop_assert_eq!(distance.cost(a, b), expected);
                    if a != b {
                        prop_assert_eq!(distance.level_cost(distance.meeting_level(a, b)), expected);
                    }
                }
            }
        }
    }
}
