//! Paths between nodes over the links of a machine. This file handles trees, `network` all other networks.

mod neighbours;
mod network;

#[cfg(test)]
mod tests;

use crate::system_graph::{LinkState, NodeState, SystemGraph};

use neighbours::Neighbours;
use network::Network;

/// The paths of messages between the nodes of a machine: by its forwarding tables, otherwise over the fewest
/// links.
///
/// Links and nodes that are down are not used.
#[derive(Debug, Clone)]
pub struct Paths(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Tree(Tree),
    Network(Box<Network>),
}

impl Paths {
    /// `None` if the machine has no links.
    #[must_use]
    pub fn new(system: &SystemGraph) -> Option<Self> {
        if system.links.is_empty() {
            return None;
        }
        let tree = if system.routing.forwarding.is_empty() { Tree::new(system) } else { None };
        Some(Self(tree.map_or_else(|| Kind::Network(Box::new(Network::new(system))), Kind::Tree)))
    }

    /// The tree that the links form, if they do.
    #[must_use]
    pub fn tree(&self) -> Option<&Tree> {
        match &self.0 {
            Kind::Tree(tree) => Some(tree),
            Kind::Network(_) => None,
        }
    }

    /// Number of links from one node to another, zero to itself; `None` if unreachable.
    #[must_use]
    pub fn hops(&self, a: u32, b: u32) -> Option<u32> {
        match &self.0 {
            Kind::Tree(tree) => Some(tree.hops(a, b)),
            Kind::Network(_) if a == b => Some(0),
            Kind::Network(network) => network.hops(a, b),
        }
    }

    /// Visits the links from `a` to `b`, in path order unless the links form a tree. Returns `false` and
    /// visits nothing if `b` is unreachable.
    pub fn walk(&self, a: u32, b: u32, mut visit: impl FnMut(u32)) -> bool {
        match &self.0 {
            Kind::Tree(tree) => tree.walk(a, b, visit),
            Kind::Network(_) if a == b => {}
            Kind::Network(network) => {
                let mut links = Vec::new();
                if !network.path(a, b, &mut links) {
                    return false;
                }
                links.into_iter().for_each(&mut visit);
            }
        }
        true
    }

    /// The links from `a` to `b` in order; `None` if unreachable.
    #[must_use]
    pub fn path(&self, a: u32, b: u32) -> Option<Vec<u32>> {
        match &self.0 {
            Kind::Tree(tree) => Some(tree.path(a, b)),
            Kind::Network(_) if a == b => Some(Vec::new()),
            Kind::Network(network) => {
                let mut links = Vec::new();
                network.path(a, b, &mut links).then_some(links)
            }
        }
    }
}

const NONE: u32 = u32::MAX;

/// Paths in a machine whose links form a tree with one link in each direction; paths are unique.
#[derive(Debug, Clone)]
pub struct Tree {
    parent: Vec<u32>,
    depth: Vec<u32>,
    /// Link from a node to its parent, and from the parent to it.
    up: Vec<u32>,
    down: Vec<u32>,
}

impl Tree {
    /// Roots the tree at its last node; `None` if the links do not form a tree, or if a link or node is down.
    fn new(system: &SystemGraph) -> Option<Self> {
        let nodes = system.nodes.len();
        let is_down = system.links.iter().any(|link| link.state == LinkState::Down)
            || system.nodes.iter().any(|node| node.state == NodeState::Down);
        if nodes == 0 || system.links.len() != 2 * (nodes - 1) || is_down {
            return None;
        }
        let neighbours = Neighbours::new(nodes, &system.links, |_| true);
        let mut tree = Self {
            parent: vec![NONE; nodes],
            depth: vec![0; nodes],
            up: vec![NONE; nodes],
            down: vec![NONE; nodes],
        };
        let root = nodes as u32 - 1;
        let mut queue = vec![root];
        let mut seen = vec![false; nodes];
        seen[root as usize] = true;
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            for &(neighbour, link) in neighbours.of(node) {
                if seen[neighbour as usize] {
                    continue;
                }
                seen[neighbour as usize] = true;
                tree.parent[neighbour as usize] = node;
                tree.depth[neighbour as usize] = tree.depth[node as usize] + 1;
                tree.down[neighbour as usize] = link;
                queue.push(neighbour);
            }
        }
        if queue.len() != nodes {
            return None;
        }
        for (link, ends) in system.links.iter().enumerate() {
            if tree.parent[ends.source as usize] == ends.destination {
                tree.up[ends.source as usize] = link as u32;
            }
        }
        (0..nodes as u32).all(|node| node == root || tree.up[node as usize] != NONE).then_some(tree)
    }

    /// The next node towards the root; `None` for the root.
    #[must_use]
    pub fn parent(&self, node: u32) -> Option<u32> {
        Some(self.parent[node as usize]).filter(|&parent| parent != NONE)
    }

    /// Number of links between two nodes; zero from a node to itself.
    #[must_use]
    pub fn hops(&self, a: u32, b: u32) -> u32 {
        let mut hops = 0;
        self.walk(a, b, |_| hops += 1);
        hops
    }

    /// Visits the links from `a` to `b`: those that climb in order, then those that descend from the last to the first.
    fn walk(&self, mut a: u32, mut b: u32, mut visit: impl FnMut(u32)) {
        while a != b {
            if self.depth[a as usize] >= self.depth[b as usize] {
                visit(self.up[a as usize]);
                a = self.parent[a as usize];
            } else {
                visit(self.down[b as usize]);
                b = self.parent[b as usize];
            }
        }
    }

    /// The links from `a` to `b` in order.
    fn path(&self, mut a: u32, mut b: u32) -> Vec<u32> {
        let (mut links, mut descending) = (Vec::new(), Vec::new());
        while a != b {
            if self.depth[a as usize] >= self.depth[b as usize] {
                links.push(self.up[a as usize]);
                a = self.parent[a as usize];
            } else {
                descending.push(self.down[b as usize]);
                b = self.parent[b as usize];
            }
        }
        links.extend(descending.into_iter().rev());
        links
    }
}
