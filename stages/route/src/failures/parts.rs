//! The components of a machine, and machines without one of them.

use std::collections::BTreeMap;

use crate::params::Fallible;
use hopmap_model::{Link, LinkState, NodeKind, NodeState, NodeTraits, Part, Route, SystemGraph};
use hopmap_routing::network::Network;
use hopmap_routing::problem::Problem;

/// A component that fails.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Element {
    pub(crate) part: Part,
    pub(crate) name: String,
    /// The links that fail with it.
    pub(crate) links: Vec<u32>,
    /// Its node id, unless it is a cable.
    pub(crate) node: Option<u32>,
}

impl Element {
    /// The machine without the component; nodes and links keep their numbers.
    pub(crate) fn without(&self, system: &SystemGraph) -> SystemGraph {
        let mut system = system.clone();
        for &link in &self.links {
            if let Some(link) = system.links.get_mut(link as usize) {
                link.state = LinkState::Down;
            }
        }
        if let Some(node) = self.node.and_then(|node| system.nodes.get_mut(node as usize)) {
            node.state = NodeState::Down;
            if self.part == Part::Host {
                // Also removes what becomes unusable, so that code that sees only the machine ignores it.
                node.traits = NodeTraits { performance: Some(0.0), ..NodeTraits::default() };
            }
        }
        system
    }

    /// Keeps processes off the failed host, if the component is a host.
    pub(crate) fn close(&self, problem: &mut Problem<'_>) {
        if let Some(failed) = self.host() {
            problem.allowed.iter_mut().for_each(|hosts| hosts.retain(|&host| host != failed));
            problem.performance[failed as usize] = 0.0;
        }
    }

    /// The failed host, if the component is a host.
    pub(crate) fn host(&self) -> Option<u32> {
        self.node.filter(|_| self.part == Part::Host)
    }

    /// Whether processes on hosts or routes need the component.
    pub(crate) fn is_used(&self, hosts: &[u32], routes: &[Route]) -> bool {
        let holds = self.host().is_some_and(|host| hosts.contains(&host));
        holds || routes.iter().flat_map(|route| &route.links).any(|link| self.links.contains(link))
    }
}

/// All components of the given kinds: cables by their first link, switches and hosts by number.
pub(crate) fn elements(system: &SystemGraph, of: &[Fallible]) -> Vec<Element> {
    let mut elements = Vec::new();
    if of.contains(&Fallible::Link) {
        elements.extend(cables(system));
    }
    for (kind, part, wanted) in
        [(NodeKind::Switch, Part::Switch, Fallible::Switch), (NodeKind::Host, Part::Host, Fallible::Host)]
    {
        let nodes = (0..).zip(&system.nodes).filter(|(_, node)| of.contains(&wanted) && node.kind == kind);
        elements.extend(nodes.map(|(id, node)| Element {
            part,
            name: node.name.clone(),
            links: links_at(system, id),
            node: Some(id),
        }));
    }
    elements
}

fn links_at(system: &SystemGraph, node: u32) -> Vec<u32> {
    let at = |link: &Link| link.source == node || link.destination == node;
    (0..).zip(&system.links).filter(|(_, link)| at(link)).map(|(index, _)| index).collect()
}

/// Cables: two links between the same ports in opposite directions, or a link without a counterpart.
fn cables(system: &SystemGraph) -> Vec<Element> {
    let network = Network::new(system);
    let up = || (0..).zip(&system.links).filter(|(_, link)| link.state == LinkState::Up);
    let mut waiting: BTreeMap<[Option<u32>; 4], Vec<u32>> = BTreeMap::new();
    let mut back: BTreeMap<u32, u32> = BTreeMap::new();
    for (index, link) in up() {
        let ends = [Some(link.source), link.source_port, Some(link.destination), link.destination_port];
        let other = [ends[2], ends[3], ends[0], ends[1]];
        match waiting.get_mut(&other).and_then(Vec::pop) {
            Some(first) => {
                back.insert(first, index);
            }
            None => waiting.entry(ends).or_default().push(index),
        }
    }
    let seconds: Vec<u32> = back.values().copied().collect();
    let cable = |(index, link): (u32, &Link)| {
        let second = back.get(&index).copied();
        let [a, b] = network.ends_of(index);
        let ports = (link.source_port, link.destination_port);
        let name = match (second, ports) {
            (None, _) => network.name_of(index),
            (Some(_), (Some(from), Some(to))) if network.is_parallel(index) => {
                format!("{a}.{from} ↔ {b}.{to}")
            }
            (Some(_), _) => format!("{a} ↔ {b}"),
        };
        Element { part: Part::Link, name, links: std::iter::once(index).chain(second).collect(), node: None }
    };
    up().filter(|(index, _)| !seconds.contains(index)).map(cable).collect()
}
