//! A snapshot by names.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{NodeKind, NodeState, SystemGraph};

use crate::Snapshot;

/// A host as a snapshot knows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Host {
    /// Whether it answered.
    pub(crate) up: bool,
    /// Its slots.
    pub(crate) slots: std::ops::Range<u32>,
}

impl Host {
    /// Whether nothing but its name and state is known.
    pub(crate) fn is_bare(&self) -> bool {
        !self.up && self.slots.is_empty()
    }
}

/// All hosts by name: those of the system and those that were asked when measuring.
pub(crate) fn hosts<'a>(snapshot: &Snapshot<'a>) -> BTreeMap<&'a str, Host> {
    let system = snapshot.system;
    let host = |node: &'a hopmap_model::Node| {
        (node.name.as_str(), Host { up: node.state == NodeState::Up, slots: 0..0 })
    };
    let nodes = system.nodes.iter().filter(|node| node.kind == NodeKind::Host);
    let mut hosts: BTreeMap<&str, Host> = nodes.map(host).collect();
    for (node, first, count) in system.hosts() {
        if let Some(host) = hosts.get_mut(system.nodes[node as usize].name.as_str()) {
            host.slots = first..first + count;
        }
    }
    for endpoint in snapshot.measurements.iter().flat_map(|measured| &measured.endpoints) {
        let host = hosts.entry(&endpoint.host).or_insert(Host { up: true, slots: 0..0 });
        host.up &= endpoint.state == NodeState::Up;
    }
    hosts
}

/// Level in a name that was made up for a switch, such as `level-2-0` or `switch-1-3`.
pub(crate) fn made_up(name: &str) -> Option<u32> {
    let rest = name.strip_prefix("level-").or_else(|| name.strip_prefix("switch-"))?;
    let (level, index) = rest.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(level) && is_number(index)).then(|| level.parse().ok())?
}

/// The nodes that every node is joined to, whichever way.
pub(crate) fn neighbours(system: &SystemGraph) -> Vec<BTreeSet<u32>> {
    let mut neighbours = vec![BTreeSet::new(); system.nodes.len()];
    for link in system.links.iter().filter(|link| link.source != link.destination) {
        neighbours[link.source as usize].insert(link.destination);
        neighbours[link.destination as usize].insert(link.source);
    }
    neighbours
}

/// Links to the nearest host; `u32::MAX` where there is none.
pub(crate) fn tiers(system: &SystemGraph, neighbours: &[BTreeSet<u32>]) -> Vec<u32> {
    let is_host = |node: &hopmap_model::Node| node.kind == NodeKind::Host;
    let mut tiers: Vec<u32> =
        system.nodes.iter().map(|node| if is_host(node) { 0 } else { u32::MAX }).collect();
    let mut reached: Vec<u32> =
        (0..).zip(&system.nodes).filter(|(_, node)| is_host(node)).map(|(id, _)| id).collect();
    let mut tier = 0;
    while !reached.is_empty() {
        tier += 1;
        let mut next = Vec::new();
        for &other in reached.iter().flat_map(|&id| &neighbours[id as usize]) {
            if tiers[other as usize] == u32::MAX {
                tiers[other as usize] = tier;
                next.push(other);
            }
        }
        reached = next;
    }
    tiers
}

/// Names of the hosts below a switch: those reached over nodes that are ever nearer to hosts.
pub(crate) fn below<'a>(
    system: &'a SystemGraph,
    neighbours: &[BTreeSet<u32>],
    height: &[u32],
    switch: u32,
) -> BTreeSet<&'a str> {
    let (mut open, mut seen) = (vec![switch], BTreeSet::from([switch]));
    let mut hosts = BTreeSet::new();
    while let Some(node) = open.pop() {
        if system.nodes[node as usize].kind == NodeKind::Host {
            hosts.insert(system.nodes[node as usize].name.as_str());
        }
        let lower =
            neighbours[node as usize].iter().filter(|&&other| height[other as usize] < height[node as usize]);
        open.extend(lower.filter(|&&other| seen.insert(other)));
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_names_are_known_by_their_form() {
        assert_eq!(made_up("level-2-0"), Some(2));
        assert_eq!(made_up("switch-1-13"), Some(1));
        for name in ["level-2", "level-a-0", "switch-1-", "leaf-1-2", "level--1", "level-99999999999-1"] {
            assert_eq!(made_up(name), None, "{name}");
        }
    }
}
