//! Paths between nodes over the links of a machine.

mod neighbours;
mod network;
#[cfg(test)]
mod tests;
mod tree;

use crate::SystemGraph;
use network::Network;
pub use tree::Tree;

/// The paths that messages take between the nodes of a machine: as its forwarding tables say, else over the fewest links.
///
/// Links and nodes that are down carry nothing.
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

    /// Number of links from one node to another, zero to itself; `None` if there is no way.
    #[must_use]
    pub fn hops(&self, a: u32, b: u32) -> Option<u32> {
        match &self.0 {
            Kind::Tree(tree) => Some(tree.hops(a, b)),
            Kind::Network(_) if a == b => Some(0),
            Kind::Network(network) => network.hops(a, b),
        }
    }

    /// Visits the links from `a` to `b`, in the order of the way unless the links form a tree; `false`, and nothing is visited, if there
    /// is no way.
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

    /// The links from `a` to `b` in order; `None` if there is no way.
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
