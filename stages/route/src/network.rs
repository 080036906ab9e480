//! The links of a machine by the ports that they leave and arrive at.

use std::collections::HashMap;

use hopmap_model::{LinkState, NodeKind, SystemGraph};

/// The links of a machine by the ports that they leave and arrive at.
#[derive(Debug, Clone)]
pub struct Network<'a> {
    /// The machine.
    pub system: &'a SystemGraph,
    by_port: HashMap<(u32, u32), u32>,
    leaving: Vec<Vec<u32>>,
}

impl<'a> Network<'a> {
    /// The links of a machine. Those that are down are left out.
    #[must_use]
    pub fn new(system: &'a SystemGraph) -> Self {
        let mut by_port = HashMap::new();
        let mut leaving = vec![Vec::new(); system.nodes.len()];
        for (index, link) in (0..).zip(&system.links).filter(|(_, link)| link.state == LinkState::Up) {
            if let Some(port) = link.source_port {
                by_port.insert((link.source, port), index);
            }
            leaving[link.source as usize].push(index);
        }
        Self { system, by_port, leaving }
    }

    /// The link that leaves a node by a port.
    #[must_use]
    pub fn by_port(&self, node: u32, port: u32) -> Option<u32> {
        self.by_port.get(&(node, port)).copied()
    }

    /// All links that leave a node.
    #[must_use]
    pub fn leaving(&self, node: u32) -> &[u32] {
        &self.leaving[node as usize]
    }

    /// Whether a node is a host.
    #[must_use]
    pub fn is_host(&self, node: u32) -> bool {
        self.system.nodes[node as usize].kind == NodeKind::Host
    }

    /// A link in words: the names of its ends, and ports where there are several cables between them.
    #[must_use]
    pub fn name_of(&self, link: u32) -> String {
        let link = &self.system.links[link as usize];
        let name = |node: u32| &self.system.nodes[node as usize].name;
        let parallel = self
            .leaving(link.source)
            .iter()
            .filter(|&&other| self.system.links[other as usize].destination == link.destination);
        match (parallel.count() > 1, link.source_port) {
            (true, Some(port)) => format!("{}.{port} → {}", name(link.source), name(link.destination)),
            _ => format!("{} → {}", name(link.source), name(link.destination)),
        }
    }
}
