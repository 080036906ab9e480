//! A machine as a picture of routes sees it: cables, hosts at switches, connected parts.

use std::collections::BTreeMap;

use hopmap_model::{NodeKind, SystemGraph};

/// The links between two nodes.
#[derive(Debug, Clone, Default)]
pub(super) struct Cable {
    /// Links from the node with the lesser id to the other one, in their order.
    pub(super) forth: Vec<usize>,
    /// Links the other way.
    pub(super) back: Vec<usize>,
}

/// Nodes and cables of a machine.
#[derive(Debug)]
pub(super) struct Network {
    /// By node ids, the lesser one first.
    pub(super) cables: BTreeMap<(usize, usize), Cable>,
    /// Of every node, those that it has a cable to, rising.
    pub(super) neighbours: Vec<Vec<usize>>,
    pub(super) is_host: Vec<bool>,
    /// Of every host, the switch beside which it stands.
    pub(super) home: Vec<Option<usize>>,
}

impl Network {
    /// With a box for every host those at several switches stand between them, at none.
    pub(super) fn new(system: &SystemGraph, has_hosts: bool) -> Self {
        let count = system.nodes.len();
        let mut cables: BTreeMap<(usize, usize), Cable> = BTreeMap::new();
        for (index, link) in system.links.iter().enumerate() {
            let (from, to) = (link.source as usize, link.destination as usize);
            if from == to || from >= count || to >= count {
                continue;
            }
            let cable = cables.entry((from.min(to), from.max(to))).or_default();
            if from < to { cable.forth.push(index) } else { cable.back.push(index) }
        }
        let mut neighbours = vec![Vec::new(); count];
        for &(a, b) in cables.keys() {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        neighbours.iter_mut().for_each(|others| others.sort_unstable());
        let is_host: Vec<bool> = system.nodes.iter().map(|node| node.kind == NodeKind::Host).collect();
        let home = |node: usize| {
            let mut switches =
                neighbours[node].iter().copied().filter(|&other| is_host[node] && !is_host[other]);
            let first = switches.next();
            first.filter(|_| !has_hosts || switches.next().is_none())
        };
        let home = (0..count).map(home).collect();
        Self { cables, neighbours, is_host, home }
    }

    /// Switches, and hosts that stand at none.
    pub(super) fn pillars(&self) -> Vec<usize> {
        (0..self.home.len()).filter(|&node| self.home[node].is_none()).collect()
    }

    /// The hosts at every node, by ascending id.
    pub(super) fn hosts_at(&self) -> Vec<Vec<usize>> {
        let mut hosts = vec![Vec::new(); self.home.len()];
        for (host, home) in self.home.iter().enumerate() {
            if let Some(switch) = home {
                hosts[*switch].push(host);
            }
        }
        hosts
    }

    /// Nodes without hosts that stand at switches, in parts that are not joined with each other; the largest first.
    pub(super) fn parts(&self) -> Vec<Vec<usize>> {
        let mut part_of: Vec<Option<usize>> = vec![None; self.home.len()];
        let mut parts: Vec<Vec<usize>> = Vec::new();
        for node in self.pillars() {
            if part_of[node].is_some() {
                continue;
            }
            let part = self.reached(node, &mut part_of, parts.len());
            parts.push(part);
        }
        parts.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        parts
    }

    /// What is joined with a node, through hosts at several switches too.
    fn reached(&self, node: usize, part_of: &mut [Option<usize>], part: usize) -> Vec<usize> {
        let mut reached = vec![node];
        part_of[node] = Some(part);
        let mut next = 0;
        while let Some(&node) = reached.get(next) {
            next += 1;
            for &other in &self.neighbours[node] {
                if part_of[other].is_none() {
                    part_of[other] = Some(part);
                    reached.push(other);
                }
            }
        }
        reached.retain(|&node| self.home[node].is_none());
        reached.sort_unstable();
        reached
    }

    /// Neighbours of every node of a part that are in it as well, by their places in it.
    pub(super) fn within(&self, part: &[usize]) -> Vec<Vec<usize>> {
        let neighbours = |&node: &usize| {
            self.neighbours[node].iter().filter_map(|other| part.binary_search(other).ok()).collect()
        };
        part.iter().map(neighbours).collect()
    }
}
