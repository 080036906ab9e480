//! Paths between nodes over the links of a machine.

use miette::Diagnostic;

use crate::{Link, SystemGraph};

const NONE: u32 = u32::MAX;

/// Paths between the nodes of a machine whose links form a tree: there is exactly one between two nodes.
#[derive(Debug, Clone)]
pub struct Paths {
    parent: Vec<u32>,
    depth: Vec<u32>,
    /// Link from a node to its parent, and from the parent to it.
    up: Vec<u32>,
    down: Vec<u32>,
}

impl Paths {
    /// Roots the tree at its last node; `None` if the machine has no links.
    pub fn new(system: &SystemGraph) -> Result<Option<Self>, PathsError> {
        if system.links.is_empty() {
            return Ok(None);
        }
        let nodes = system.nodes.len();
        let neighbours = Neighbours::new(nodes, &system.links);
        let mut paths = Self {
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
                paths.parent[neighbour as usize] = node;
                paths.depth[neighbour as usize] = paths.depth[node as usize] + 1;
                paths.down[neighbour as usize] = link;
                queue.push(neighbour);
            }
        }
        if queue.len() != nodes || system.links.len() != 2 * (nodes - 1) {
            return Err(PathsError::NotATree { nodes, links: system.links.len() });
        }
        for (link, ends) in system.links.iter().enumerate() {
            if paths.parent[ends.source as usize] == ends.destination {
                paths.up[ends.source as usize] = link as u32;
            }
        }
        match (0..nodes as u32).all(|node| node == root || paths.up[node as usize] != NONE) {
            true => Ok(Some(paths)),
            false => Err(PathsError::NotATree { nodes, links: system.links.len() }),
        }
    }

    /// The next node towards the root; `None` of the root.
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
    pub fn walk(&self, mut a: u32, mut b: u32, mut visit: impl FnMut(u32)) {
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
}

/// Outgoing links of every node.
struct Neighbours {
    first: Vec<u32>,
    targets: Vec<(u32, u32)>,
}

impl Neighbours {
    fn new(nodes: usize, links: &[Link]) -> Self {
        let mut order: Vec<u32> = (0..links.len() as u32).collect();
        order.sort_by_key(|&link| links[link as usize].source);
        let mut first = vec![0; nodes + 1];
        for link in links {
            first[link.source as usize + 1] += 1;
        }
        for node in 0..nodes {
            first[node + 1] += first[node];
        }
        Self {
            first,
            targets: order.into_iter().map(|link| (links[link as usize].destination, link)).collect(),
        }
    }

    fn of(&self, node: u32) -> &[(u32, u32)] {
        &self.targets[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }
}

/// The links of a machine do not give one path for every pair of nodes.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum PathsError {
    /// There are several paths between some nodes, or none.
    #[error("the {links} links of {nodes} nodes do not form a tree with one link each way")]
    NotATree {
        /// Number of nodes.
        nodes: usize,
        /// Number of directed links.
        links: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system_graph::tests::small_tree;

    #[test]
    fn hops_and_links_of_a_small_tree() {
        let system = small_tree();
        let paths = Paths::new(&system).unwrap().unwrap();
        assert_eq!([0, 1, 2, 3].map(|host| paths.hops(0, host)), [0, 2, 4, 4]);
        assert_eq!([0, 3, 4, 6].map(|node| paths.parent(node)), [Some(4), Some(5), Some(6), None]);
        let mut links = Vec::new();
        paths.walk(0, 2, |link| links.push(link));
        let mut ends: Vec<_> = links
            .iter()
            .map(|&l| (system.links[l as usize].source, system.links[l as usize].destination))
            .collect();
        ends.sort_unstable();
        assert_eq!(ends, [(0, 4), (4, 6), (5, 2), (6, 5)]);
    }

    #[test]
    fn a_ring_is_not_a_tree() {
        let mut system = small_tree();
        system.links.push(Link { source: 0, destination: 3, latency_s: None, bandwidth_bytes_per_s: None });
        system.links.push(Link { source: 3, destination: 0, latency_s: None, bandwidth_bytes_per_s: None });
        assert!(matches!(Paths::new(&system), Err(PathsError::NotATree { .. })));
    }

    #[test]
    fn no_links_no_paths() {
        let mut system = small_tree();
        system.links.clear();
        assert!(Paths::new(&system).unwrap().is_none());
    }
}
