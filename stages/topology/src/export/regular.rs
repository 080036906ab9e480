//! Machines whose cost levels are a regular tree, and costs as the whole numbers that mappers read.

use hopmap_model::{CostModel, Levels, SystemGraph};

/// A regular tree over the slots: branches and cost of every level, innermost first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Regular {
    pub(super) branches: Vec<u32>,
    pub(super) costs: Vec<f64>,
    /// The slots in the order of the leaves.
    pub(super) leaves: Vec<u32>,
}

impl Regular {
    /// `None` if the costs are no levels, or if groups of one level have different sizes. Levels that join nothing, or that cost
    /// as much as the next one, are left out.
    pub(super) fn new(system: &SystemGraph) -> Option<Self> {
        let CostModel::Levels(Levels { costs, groups }) = &system.cost else { return None };
        let count = system.slots.len() as u32;
        let leaves = leaves(groups, count);
        let (mut branches, mut kept) = (Vec::new(), Vec::new());
        let mut size = 1;
        for (level, groups) in groups.iter().enumerate() {
            let cost = *costs.get(level)?;
            let next_is_equal = costs.get(level + 1).is_some_and(|&next| next <= cost);
            let own = size_of_all(groups, &leaves)?;
            if own == size || next_is_equal {
                continue;
            }
            branches.push(own / size);
            kept.push(cost);
            size = own;
        }
        (size == count && count > 0).then_some(Self { branches, costs: kept, leaves })
    }

    /// Whether the leaves are the slots in their order.
    pub(super) fn is_in_order(&self) -> bool {
        (0..).zip(&self.leaves).all(|(place, &slot): (u32, _)| place == slot)
    }
}

/// The slots in an order in which the groups of all levels lie together, that of the first slots of groups.
fn leaves(groups: &[Vec<u32>], count: u32) -> Vec<u32> {
    // By level and slot, the first slot of its group: sorting by these from the outermost level in keeps groups together.
    let firsts: Vec<Vec<u32>> = groups
        .iter()
        .map(|groups| {
            let mut first = std::collections::HashMap::new();
            (0..count).zip(groups).map(|(slot, group)| *first.entry(group).or_insert(slot)).collect()
        })
        .collect();
    let mut leaves: Vec<u32> = (0..count).collect();
    leaves.sort_by_cached_key(|&slot| {
        let path = firsts.iter().rev().map(|firsts| firsts.get(slot as usize).copied());
        path.chain([Some(slot)]).collect::<Vec<_>>()
    });
    leaves
}

/// How many slots every group has, if all have as many.
fn size_of_all(groups: &[u32], leaves: &[u32]) -> Option<u32> {
    let group = |slot: &u32| groups.get(*slot as usize).copied();
    let mut runs = leaves.chunk_by(|a, b| group(a) == group(b)).map(<[u32]>::len);
    let size = runs.next()?;
    runs.all(|run| run == size).then_some(size as u32)
}

/// Costs as whole numbers, and what these are multiples of.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Whole {
    pub(super) costs: Vec<i64>,
    /// By what the costs were multiplied.
    pub(super) scale: f64,
    /// Whether whole numbers are the costs times the scale.
    pub(super) is_exact: bool,
}

/// The largest whole number that is written.
const LARGEST: f64 = 1e8;

/// The costs times the smallest power of ten that makes whole numbers of them; of others the largest becomes some millions.
pub(super) fn whole(costs: &[f64]) -> Whole {
    let largest = costs.iter().copied().fold(0.0, f64::max);
    let is_whole = |scale: f64| {
        largest * scale <= LARGEST
            && costs.iter().all(|cost| {
                let scaled = cost * scale;
                (scaled - libm::round(scaled)).abs() <= 1e-9 * scaled.max(1.0)
            })
    };
    let exact = (0..7).map(|power| libm::exp10(f64::from(power))).find(|&scale| is_whole(scale));
    let about = || match largest > 0.0 {
        true => libm::exp10(6.0 - libm::floor(libm::log10(largest))),
        false => 1.0,
    };
    let scale = exact.unwrap_or_else(about);
    Whole {
        costs: costs.iter().map(|cost| libm::round(cost * scale) as i64).collect(),
        scale,
        is_exact: exact.is_some(),
    }
}

impl Whole {
    /// What is lost of costs, in words.
    pub(super) fn lost(&self) -> Option<String> {
        match (self.is_exact, (self.scale - 1.0).abs() < 1e-9) {
            (true, true) => None,
            (true, false) => Some(format!("the unit of costs: they are multiplied by {}", self.scale)),
            (false, _) => Some(format!(
                "exact costs: they are multiplied by {} and rounded to whole numbers",
                self.scale
            )),
        }
    }
}

/// What no format of a mapper holds.
pub(super) fn lost_of_machine(system: &SystemGraph) -> Vec<String> {
    let mut lost = vec!["names of hosts: slots are numbered as here".to_owned()];
    if !system.links.is_empty() {
        lost.push("switches, links and routes: only what slots cost between each other".to_owned());
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_found() {
        assert_eq!(whole(&[1.0, 10.0]), Whole { costs: vec![1, 10], scale: 1.0, is_exact: true });
        assert_eq!(whole(&[0.25, 2.0]), Whole { costs: vec![25, 200], scale: 100.0, is_exact: true });
        let third = whole(&[1.0 / 3.0, 2.0]);
        assert_eq!((third.costs, third.is_exact), (vec![333_333, 2_000_000], false));
        assert_eq!(whole(&[]).scale as u32, 1);
        assert_eq!(whole(&[3e12]).costs, [3_000_000]);
    }
}
