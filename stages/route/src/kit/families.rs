//! Well-known ways to join switches.

use std::collections::BTreeSet;

use hopmap_model::NodeKind;

use super::design::Design;
use super::stock::Unit;

/// Machines of some units in which switches are joined in well-known ways: a star, a line, a ring, meshes, tori, fat trees and
/// all with all. Hosts are spread evenly; those with several ports go to several switches. With `thick` what ports are left take
/// parallel cables.
pub(super) fn families(units: &[Unit], thick: bool) -> Vec<Design<'_>> {
    let of = |kind: NodeKind| -> Vec<usize> {
        (0..units.len()).filter(|&unit| units[unit].node.kind == kind).collect()
    };
    let (hosts, switches) = (of(NodeKind::Host), of(NodeKind::Switch));
    let count = switches.len();
    let mut shapes: Vec<(Vec<(usize, usize)>, usize)> = Vec::new();
    let line = || (1..count).map(|place| (place - 1, place));
    shapes.push((line().collect(), count));
    shapes.push(((1..count).map(|place| (0, place)).collect(), count));
    shapes.push((line().chain((count > 2).then(|| (0, count - 1))).collect(), count));
    for rows in 2..count {
        if count % rows == 0 && rows * rows <= count {
            shapes
                .extend([(grid(rows, count / rows, false), count), (grid(rows, count / rows, true), count)]);
        }
    }
    for spines in 1..count.div_ceil(2) {
        // The first switches hold hosts, the last ones join them.
        let leaves = count - spines;
        let joins = |spine: usize| (0..leaves).map(move |leaf| (leaf, leaves + spine));
        shapes.push(((0..spines).flat_map(joins).collect(), leaves));
    }
    shapes.push(((0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect(), count));
    let mut seen = BTreeSet::new();
    let designs = shapes.into_iter().filter_map(|(shape, leaves)| {
        let shape: Vec<(usize, usize)> = shape.iter().map(|&(a, b)| (switches[a], switches[b])).collect();
        joined(units, &hosts, &switches[..leaves], &shape, thick)
    });
    designs.filter(|design| seen.insert(design.cables.clone())).collect()
}

/// A grid of switches, closed in both directions if it is a torus.
fn grid(rows: usize, columns: usize, torus: bool) -> Vec<(usize, usize)> {
    let mut shape = BTreeSet::new();
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let here = row * columns + column;
        let right = (column + 1 < columns || torus).then_some(row * columns + (column + 1) % columns);
        let below = (row + 1 < rows || torus).then_some((row + 1) % rows * columns + column);
        let others = [right, below].into_iter().flatten().filter(|&other| other != here);
        shape.extend(others.map(|other| (here.min(other), here.max(other))));
    }
    shape.into_iter().collect()
}

/// Units joined in a shape; nothing if the ports do not suffice.
fn joined<'a>(
    units: &'a [Unit],
    hosts: &[usize],
    leaves: &[usize],
    shape: &[(usize, usize)],
    thick: bool,
) -> Option<Design<'a>> {
    let mut design = Design::new(units);
    shape.iter().for_each(|&(a, b)| design.join(a, b, 1));
    let most = hosts.iter().map(|&host| units[host].ports).max().unwrap_or_default();
    for round in 0..most as usize {
        for (place, &host) in
            hosts.iter().enumerate().filter(|(_, host)| units[**host].ports as usize > round)
        {
            // In blocks, so that hosts that stand together are near each other.
            let wanted = (place * leaves.len() / hosts.len() + round) % leaves.len().max(1);
            let near = (0..leaves.len()).map(|step| leaves[(wanted + step) % leaves.len()]);
            let free =
                |leaf: &usize| design.free(*leaf) > 0 && (round == 0 || design.between(host, *leaf) == 0);
            let found = near.into_iter().find(free);
            match found {
                Some(leaf) => {
                    let cables = design.between(host, leaf);
                    design.join(host, leaf, cables + 1);
                }
                None if round == 0 && !leaves.is_empty() => return None,
                None => {}
            }
        }
    }
    if thick {
        thicken(&mut design, shape);
    }
    design.fits_ports().then_some(design)
}

/// Gives pairs parallel cables in turn, as long as there are ports.
fn thicken(design: &mut Design<'_>, shape: &[(usize, usize)]) {
    loop {
        let before = design.count();
        for &(a, b) in shape {
            if design.free(a) > 0 && design.free(b) > 0 {
                design.join(a, b, design.between(a, b) + 1);
            }
        }
        if design.count() == before {
            break;
        }
    }
}
