//! Targets of other mappers: a target architecture for Scotch, a hierarchy for KaHIP. Both need cost levels
//! that form a regular tree, with integer costs.

use std::fmt::Write;

use hopmap_model::{CostModel, CostsError, Levels, SystemGraph};

use super::ExportError;
use crate::params::Written;

/// A regular tree over the slots: branching and cost of each level, innermost first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Regular {
    pub(super) branches: Vec<u32>,
    pub(super) costs: Vec<f64>,
    /// The slots in leaf order.
    pub(super) leaves: Vec<u32>,
}

impl Regular {
    /// `None` if the costs are not levels, or if groups of one level differ in size. Levels that merge
    /// nothing, or cost as much as the next one, are omitted.
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

    /// Whether the leaves are in slot order.
    pub(super) fn is_in_order(&self) -> bool {
        (0..).zip(&self.leaves).all(|(place, &slot): (u32, _)| place == slot)
    }
}

/// The slots in an order in which the groups of all levels are contiguous, sorted by their first slots.
fn leaves(groups: &[Vec<u32>], count: u32) -> Vec<u32> {
    // By level and slot, the first slot of the group: sorting by these from the outermost level inwards keeps
    // groups contiguous.
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

/// The common number of slots of all groups, if equal.
fn size_of_all(groups: &[u32], leaves: &[u32]) -> Option<u32> {
    let group = |slot: &u32| groups.get(*slot as usize).copied();
    let mut runs = leaves.chunk_by(|a, b| group(a) == group(b)).map(<[u32]>::len);
    let size = runs.next()?;
    runs.all(|run| run == size).then_some(size as u32)
}

/// Costs as integers with a scale.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScaledCosts {
    pub(super) costs: Vec<i64>,
    /// Scale factor of the costs.
    pub(super) scale: f64,
    /// Whether the integers are exactly the scaled costs.
    pub(super) is_exact: bool,
}

/// Largest integer that is written.
const LARGEST: f64 = 1e8;

/// Scales costs by the smallest power of ten that makes them integers; otherwise the largest becomes some
/// millions.
pub(super) fn scaled_to_integers(costs: &[f64]) -> ScaledCosts {
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
    ScaledCosts {
        costs: costs.iter().map(|cost| libm::round(cost * scale) as i64).collect(),
        scale,
        is_exact: exact.is_some(),
    }
}

impl ScaledCosts {
    /// Description of the loss of information in costs.
    pub(super) fn lost(&self) -> Option<String> {
        match (self.is_exact, (self.scale - 1.0).abs() < 1e-9) {
            (true, true) => None,
            (true, false) => Some(format!("the unit of costs: they are multiplied by {}", self.scale)),
            (false, _) => {
                Some(format!("exact costs: they are multiplied by {} and rounded to integers", self.scale))
            }
        }
    }
}

/// Properties that no format of a mapper represents.
pub(super) fn lost_of_machine(system: &SystemGraph) -> Vec<String> {
    let mut lost = vec!["host names: slots are numbered in machine order".to_owned()];
    if !system.links.is_empty() {
        lost.push("switches, links and routes: only costs between slots are written".to_owned());
    }
    lost
}

/// Largest number of slots with a full distance list.
const MOST_LISTED: usize = 4096;
/// Largest number of slots that are numbered individually.
const MOST_NUMBERED: usize = 1 << 20;

/// `tleaf` for a regular tree, `ltleaf` if its slots are not in leaf order, otherwise `deco 0` with the
/// distances of all pairs.
pub(super) fn write(system: &SystemGraph) -> Written {
    if system.slots.is_empty() {
        let format = "a target of Scotch";
        return Err(ExportError::impossible(format, "it has no slots", "choose hosts with slots"));
    }
    let system = &*system.explicit(MOST_LISTED)?;
    let mut lost = lost_of_machine(system);
    let text =
        match Regular::new(system).filter(|tree| tree.is_in_order() || tree.leaves.len() <= MOST_NUMBERED) {
            Some(tree) => tleaf(&tree, &mut lost),
            None => deco(system, &mut lost)?,
        };
    Ok((text, lost))
}

/// Scotch sums the costs of the links from the leaves to their common ancestor.
fn tleaf(tree: &Regular, lost: &mut Vec<String>) -> String {
    let mut below = 0;
    let steps = above_zero(&tree.costs, lost).into_iter().map(|cost| {
        let step = cost - below;
        below = cost;
        step.max(1)
    });
    let levels: Vec<(u32, i64)> = tree.branches.iter().copied().zip(steps).collect();
    let class = if tree.is_in_order() { "tleaf" } else { "ltleaf" };
    let mut text = format!("{class} {}", levels.len());
    for (branches, cost) in levels.iter().rev() {
        // Writing to a string does not fail.
        let _ = write!(text, " {branches} {cost}");
    }
    text.push('\n');
    if !tree.is_in_order() {
        let numbers: Vec<String> = tree.leaves.iter().map(u32::to_string).collect();
        let _ = writeln!(text, "{}\n{}", numbers.len(), numbers.join(" "));
    }
    text
}

/// Costs as positive integers, since Scotch does not accept zero distances.
fn above_zero(costs: &[f64], lost: &mut Vec<String>) -> Vec<i64> {
    let has_zero = costs.iter().any(|&cost| cost <= 0.0);
    let mut scaled = scaled_to_integers(costs);
    if has_zero && scaled.scale < 100.0 && costs.iter().all(|cost| *cost <= 1e5) {
        scaled = ScaledCosts {
            costs: costs.iter().map(|cost| libm::round(cost * 100.0) as i64).collect(),
            scale: 100.0,
            ..scaled
        };
    }
    lost.extend(scaled.lost());
    if scaled.costs.contains(&0) {
        lost.push("zero costs between slots: they are written as 1, the minimum for Scotch".into());
    }
    scaled.costs.into_iter().map(|cost| cost.max(1)).collect()
}

/// Terminals are the leaves of a balanced binary tree in slot order: domain 1 is the root, the halves of
/// domain `d` are `2 d` and `2 d + 1`.
fn deco(system: &SystemGraph, lost: &mut Vec<String>) -> Result<String, ExportError> {
    let count = system.slots.len();
    if count > MOST_LISTED {
        return Err(CostsError::TooMany { slots: count, most: MOST_LISTED }.into());
    }
    let costs = system.matrix()?.costs;
    let cost = |a: usize, b: usize| costs.get(a * count + b).copied().unwrap_or(0.0);
    let pairs = || (1..count).flat_map(|high| (0..high).map(move |low| (high, low)));
    if pairs().any(|(a, b)| (cost(a, b) - cost(b, a)).abs() > 0.0) {
        lost.push("direction-dependent costs: the mean of both directions is written".into());
    }
    let triangle: Vec<f64> = pairs().map(|(a, b)| f64::midpoint(cost(a, b), cost(b, a))).collect();
    let mut domains = vec![0_u64; count];
    number(&mut domains);
    let most = domains.iter().max().copied().unwrap_or(1);
    let mut text = format!("deco\n0\n{count} {most}\n");
    for (slot, domain) in domains.iter().enumerate() {
        let _ = writeln!(text, "{slot} 1 {domain}");
    }
    let mut distances = above_zero(&triangle, lost).into_iter();
    for row in 1..count {
        let row: Vec<String> = distances.by_ref().take(row).map(|distance| distance.to_string()).collect();
        text.push_str(&row.join(" "));
        text.push('\n');
    }
    Ok(text)
}

/// Domain numbers of all slots, the larger half first.
fn number(domains: &mut [u64]) {
    let mut parts = vec![(0, domains.len(), 1_u64)];
    while let Some((first, size, domain)) = parts.pop() {
        if size == 1 {
            if let Some(place) = domains.get_mut(first) {
                *place = domain;
            }
            continue;
        }
        let half = size.div_ceil(2);
        parts.extend([(first, half, 2 * domain), (first + half, size - half, 2 * domain + 1)]);
    }
}

/// Largest number of slots whose route costs are examined.
const MOST: usize = 4096;

/// The hierarchy and the distances, one line each, innermost first.
pub(super) fn write_hierarchy(system: &SystemGraph) -> Written {
    let impossible = |problem, help| ExportError::impossible("a hierarchy of KaHIP", problem, help);
    let system = &*system.explicit(MOST)?;
    let Some(tree) = Regular::new(system) else {
        let help = "choose equal numbers of hosts below every switch with select/nodes, find levels with topology/levels, or export for Scotch";
        let problem =
            "its costs do not form a regular tree, in which all groups of a level have the same size";
        return Err(impossible(problem, help));
    };
    if !tree.is_in_order() {
        let help = "export for Scotch, whose `ltleaf` permutes the leaves";
        return Err(impossible("neighbouring slots are not consecutive", help));
    }
    let mut lost = lost_of_machine(system);
    let costs = scaled_to_integers(&tree.costs);
    lost.extend(costs.lost());
    // A machine with one slot has one level with one branch.
    let branches = if tree.branches.is_empty() { vec![1] } else { tree.branches };
    let distances = if costs.costs.is_empty() { vec![1] } else { costs.costs };
    let line = |numbers: Vec<String>| numbers.join(":");
    let hierarchy = line(branches.iter().map(u32::to_string).collect());
    let distances = line(distances.iter().map(i64::to_string).collect());
    Ok((format!("{hierarchy}\n{distances}\n"), lost))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_scales_are_found() {
        assert_eq!(
            scaled_to_integers(&[1.0, 10.0]),
            ScaledCosts { costs: vec![1, 10], scale: 1.0, is_exact: true }
        );
        assert_eq!(
            scaled_to_integers(&[0.25, 2.0]),
            ScaledCosts { costs: vec![25, 200], scale: 100.0, is_exact: true }
        );
        let third = scaled_to_integers(&[1.0 / 3.0, 2.0]);
        assert_eq!((third.costs, third.is_exact), (vec![333_333, 2_000_000], false));
        assert_eq!(scaled_to_integers(&[]).scale as u32, 1);
        assert_eq!(scaled_to_integers(&[3e12]).costs, [3_000_000]);
    }
}
