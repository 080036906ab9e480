//! A machine without what no message between its slots passes.

use hopmap_model::{Forward, Link, NodeKind, Routing, Slot, SystemGraph};

/// Leaves out hosts without slots, and switches that lead nowhere else. In a machine without switches messages pass hosts: there
/// only hosts that lead nowhere else are left out.
pub(super) fn trim(system: &SystemGraph) -> SystemGraph {
    let stays = staying(system);
    let mut next = 0;
    let place: Vec<Option<u32>> = stays
        .iter()
        .map(|&stays| {
            next += u32::from(stays);
            stays.then(|| next - 1)
        })
        .collect();
    let node = |node: u32| place[node as usize];
    let moved = |link: &Link| {
        Some(Link { source: node(link.source)?, destination: node(link.destination)?, ..*link })
    };
    let links: Vec<Option<Link>> = system.links.iter().map(moved).collect();
    let mut next = 0;
    let link_place: Vec<Option<u32>> = links
        .iter()
        .map(|link| {
            next += u32::from(link.is_some());
            link.map(|_| next - 1)
        })
        .collect();
    let link = |link: u32| link_place[link as usize];
    let entry = |entry: &Forward| {
        Some(Forward { node: node(entry.node)?, last: link(entry.last)?, link: link(entry.link)? })
    };
    let kept = system.nodes.iter().zip(&stays).filter(|(_, stays)| **stays);
    SystemGraph {
        nodes: kept.map(|(node, _)| node.clone()).collect(),
        links: links.into_iter().flatten().collect(),
        slots: system
            .slots
            .iter()
            .filter_map(|slot| Some(Slot { host: node(slot.host)?, ..*slot }))
            .collect(),
        cost: system.cost.clone(),
        routing: Routing {
            forwarding: system.routing.forwarding.iter().filter_map(entry).collect(),
            ties: system.routing.ties,
        },
    }
}

/// Hosts with slots, and what is left of the others when those with one neighbour or none are taken away again and again.
fn staying(system: &SystemGraph) -> Vec<bool> {
    let is_switched = system.nodes.iter().any(|node| node.kind == NodeKind::Switch);
    let mut has_slots = vec![false; system.nodes.len()];
    system.slots.iter().for_each(|slot| has_slots[slot.host as usize] = true);
    let is_way = |node: usize| has_slots[node] || !is_switched || system.nodes[node].kind == NodeKind::Switch;
    let mut stays: Vec<bool> = (0..system.nodes.len()).map(is_way).collect();
    let mut neighbours = vec![Vec::new(); system.nodes.len()];
    for link in system.links.iter().filter(|link| link.source != link.destination) {
        neighbours[link.source as usize].push(link.destination as usize);
        neighbours[link.destination as usize].push(link.source as usize);
    }
    for neighbours in &mut neighbours {
        neighbours.sort_unstable();
        neighbours.dedup();
    }
    let count = |node: usize, stays: &[bool]| neighbours[node].iter().filter(|&&other| stays[other]).count();
    let mut left: Vec<usize> = neighbours.iter().enumerate().map(|(node, _)| count(node, &stays)).collect();
    let mut open: Vec<usize> =
        (0..stays.len()).filter(|&node| stays[node] && !has_slots[node] && left[node] < 2).collect();
    while let Some(node) = open.pop() {
        if !stays[node] {
            continue;
        }
        stays[node] = false;
        for &other in &neighbours[node] {
            left[other] = left[other].saturating_sub(1);
            if stays[other] && !has_slots[other] && left[other] < 2 {
                open.push(other);
            }
        }
    }
    stays
}
