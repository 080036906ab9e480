//! The links of a machine by the ports that they leave and arrive at, and the tables of switches that routes need.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hopmap_model::{LinkState, NodeKind, Route, SwitchType, SystemGraph, TableEntry, Tables};

use crate::CheckError;

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

/// The entries that routes need: for a switch of type 2 those of the ports by which they come in.
#[must_use]
pub fn tables(system: &SystemGraph, routes: &[Route]) -> Tables {
    let mut entries = BTreeSet::new();
    for route in routes {
        for pair in route.links.windows(2) {
            let [arrives, leaves] = [pair[0], pair[1]].map(|link| &system.links[link as usize]);
            let is_two = system.nodes[leaves.source as usize].traits.switch_type == Some(SwitchType::Two);
            entries.insert(TableEntry {
                switch: leaves.source,
                input_port: arrives.destination_port.filter(|_| is_two),
                destination: route.destination,
                output_port: leaves.source_port.unwrap_or_default(),
            });
        }
    }
    Tables { entries: entries.into_iter().collect(), metrics: BTreeMap::new() }
}

/// Refuses machines whose links do not say their ports, or say one port twice: tables could not tell them apart.
pub fn check_ports(system: &SystemGraph) -> Result<(), CheckError> {
    let network = Network::new(system);
    for (index, link) in (0..).zip(&system.links) {
        let is_known = link.state == LinkState::Down
            || link.source_port.is_some_and(|port| network.by_port(link.source, port) == Some(index));
        if !(is_known && link.destination_port.is_some()) {
            return Err(CheckError::new(
                format!(
                    "the link {} does not say its ports, or another link has the same",
                    network.name_of(index)
                ),
                "tables name ports: take the machine from route/import or topology/import of a fabric",
            ));
        }
    }
    Ok(())
}
