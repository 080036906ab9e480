//! A target architecture of Scotch.

use std::fmt::Write;

use hopmap_model::{CostsError, SystemGraph};

use super::regular::{Regular, Whole, lost_of_machine, whole};
use super::{ExportError, ExportParams};

/// Most slots whose distances are written one by one.
const MOST_LISTED: usize = 4096;
/// Most slots whose numbers are written one by one.
const MOST_NUMBERED: usize = 1 << 20;

/// `tleaf` for a regular tree, `ltleaf` if its slots are not in the order of the leaves, else `deco 0` with the distances of all pairs.
pub(super) fn write(system: &SystemGraph, _: &ExportParams) -> Result<(String, Vec<String>), ExportError> {
    if system.slots.is_empty() {
        return Err(ExportError::Impossible {
            format: "a target of Scotch",
            problem: "it has no slots".into(),
            help: "choose hosts with slots".into(),
        });
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

/// Scotch adds the costs of the links from the leaves up to where they meet.
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

/// Costs as whole numbers above zero, for Scotch knows no distance of zero.
fn above_zero(costs: &[f64], lost: &mut Vec<String>) -> Vec<i64> {
    let has_zero = costs.iter().any(|&cost| cost <= 0.0);
    let mut scaled = whole(costs);
    if has_zero && scaled.scale < 100.0 && costs.iter().all(|cost| *cost <= 1e5) {
        scaled = Whole {
            costs: costs.iter().map(|cost| libm::round(cost * 100.0) as i64).collect(),
            scale: 100.0,
            ..scaled
        };
    }
    lost.extend(scaled.lost());
    if scaled.costs.contains(&0) {
        lost.push("costs of zero between slots: they are written as 1, the least that Scotch reads".into());
    }
    scaled.costs.into_iter().map(|cost| cost.max(1)).collect()
}

/// Terminals are the leaves of a balanced binary tree in the order of the slots: domain 1 is all, the halves of domain `d` are `2 d`
/// and `2 d + 1`.
fn deco(system: &SystemGraph, lost: &mut Vec<String>) -> Result<String, ExportError> {
    let count = system.slots.len();
    if count > MOST_LISTED {
        return Err(CostsError::TooMany { slots: count, most: MOST_LISTED }.into());
    }
    let costs = system.matrix()?.costs;
    let cost = |a: usize, b: usize| costs.get(a * count + b).copied().unwrap_or(0.0);
    let pairs = || (1..count).flat_map(|high| (0..high).map(move |low| (high, low)));
    if pairs().any(|(a, b)| (cost(a, b) - cost(b, a)).abs() > 0.0) {
        lost.push("that costs differ by direction: the mean of both is written".into());
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

/// Numbers of the domains of all slots, the larger half first.
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
