//! Links of a machine by port, the table entries that routes need, and cycles of links that wait for each other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hopmap_model::{
    CostModel, Levels, LinkState, NodeKind, Route, RouteCosts, RouteMetric, Slot, SwitchType, SystemGraph,
    TableEntry, Tables,
};

use crate::error::{Result, fail};

/// The links of a machine by source and destination port.
#[derive(Debug, Clone)]
pub struct Network<'a> {
    /// The machine.
    pub system: &'a SystemGraph,
    by_port: HashMap<(u32, u32), u32>,
    leaving: Vec<Vec<u32>>,
}

impl<'a> Network<'a> {
    /// The links of a machine that are up.
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

    /// The link at an output port of a node.
    #[must_use]
    pub fn by_port(&self, node: u32, port: u32) -> Option<u32> {
        self.by_port.get(&(node, port)).copied()
    }

    /// All outgoing links of a node.
    #[must_use]
    pub fn leaving(&self, node: u32) -> &[u32] {
        &self.leaving[node as usize]
    }

    /// Whether a node is a host.
    #[must_use]
    pub fn is_host(&self, node: u32) -> bool {
        self.system.nodes[node as usize].kind == NodeKind::Host
    }

    /// The name of a link: the names of its ends, with the port if there are several cables between them.
    #[must_use]
    pub fn name_of(&self, link: u32) -> String {
        let [a, b] = self.ends_of(link);
        match self.system.links[link as usize].source_port.filter(|_| self.is_parallel(link)) {
            Some(port) => format!("{a}.{port} → {b}"),
            None => format!("{a} → {b}"),
        }
    }

    /// The names of the ends of a link.
    #[must_use]
    pub fn ends_of(&self, link: u32) -> [&'a str; 2] {
        let link = &self.system.links[link as usize];
        [link.source, link.destination].map(|node| self.system.nodes[node as usize].name.as_str())
    }

    /// Whether parallel links exist.
    #[must_use]
    pub fn is_parallel(&self, link: u32) -> bool {
        let ends = |link: u32| self.system.links[link as usize].destination;
        let leaving = self.leaving(self.system.links[link as usize].source).iter();
        leaving.filter(|&&other| ends(other) == ends(link)).count() > 1
    }
}

/// Node ids of a kind, ascending.
pub fn nodes_of(system: &SystemGraph, kind: NodeKind) -> impl Iterator<Item = u32> {
    (0..).zip(&system.nodes).filter(move |(_, node)| node.kind == kind).map(|(id, _)| id)
}

/// The neighbour of every node that has only one.
pub(crate) fn only_neighbours(system: &SystemGraph) -> Vec<Option<u32>> {
    let mut only: Vec<Option<Option<u32>>> = vec![None; system.nodes.len()];
    for link in &system.links {
        for (node, next) in [(link.source, link.destination), (link.destination, link.source)] {
            let own = &mut only[node as usize];
            *own = Some(own.is_none_or(|known| known == Some(next)).then_some(next));
        }
    }
    only.into_iter().map(Option::flatten).collect()
}

/// Slots and their costs: 0 within a host, otherwise hops.
#[must_use]
pub fn slots_of(slots: Vec<Slot>) -> (Vec<Slot>, CostModel) {
    let groups = vec![slots.iter().map(|slot| slot.host).collect()];
    let inside = Levels { costs: vec![0.0], groups };
    (slots, CostModel::Routes(RouteCosts { metric: RouteMetric::Hops, inside }))
}

/// The table entries that routes need; in a switch of type 2, for the ports at which they arrive.
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

/// Rejects machines in which a link has no port, or shares one: tables could not distinguish the links.
pub fn check_ports(system: &SystemGraph) -> Result<()> {
    let network = Network::new(system);
    for (index, link) in (0..).zip(&system.links) {
        let is_known = link.state == LinkState::Down
            || link.source_port.is_some_and(|port| network.by_port(link.source, port) == Some(index));
        if !(is_known && link.destination_port.is_some()) {
            let name = network.name_of(index);
            return fail(
                format!("link {name} has no ports, or shares one with another link"),
                "tables refer to ports: use the topology of route/import, or of topology/import from a fabric",
            );
        }
    }
    Ok(())
}

/// A cycle of the channel dependency graph: links each of which can wait for the next, and the last for the first. A packet holds
/// a link while it waits for the next one of its route. The nodes of the graph are the links; there is an edge from a link to
/// each that follows it directly on some route. If the graph has a cycle, all links of the cycle may wait forever (Dally and
/// Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", 1987). The result does not depend on the
/// order of the routes. Empty if there is no cycle.
#[must_use]
pub fn cycle<'a>(links: usize, routes: impl IntoIterator<Item = &'a [u32]>) -> Vec<u32> {
    let mut waits: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); links];
    for route in routes {
        for pair in route.windows(2) {
            waits[pair[0] as usize].insert(pair[1]);
        }
    }
    cycle_of(&waits)
}

/// The same for a graph: the links that follow each one.
#[must_use]
pub fn cycle_of(waits: &[BTreeSet<u32>]) -> Vec<u32> {
    // Depth-first search; a link that is already on the current path closes a cycle.
    let mut state = vec![State::New; waits.len()];
    for first in 0..waits.len() as u32 {
        if state[first as usize] != State::New {
            continue;
        }
        let mut path = vec![(first, waits[first as usize].iter())];
        state[first as usize] = State::OnPath;
        while let Some((link, next)) = path.last_mut() {
            let link = *link;
            match next.next() {
                None => {
                    state[link as usize] = State::Done;
                    path.pop();
                }
                Some(&after) => match state[after as usize] {
                    State::Done => {}
                    State::New => {
                        state[after as usize] = State::OnPath;
                        path.push((after, waits[after as usize].iter()));
                    }
                    State::OnPath => {
                        let begin = path.iter().position(|(link, _)| *link == after).unwrap_or_default();
                        return path[begin..].iter().map(|(link, _)| *link).collect();
                    }
                },
            }
        }
    }
    Vec::new()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    OnPath,
    Done,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_around_a_ring_form_a_cycle() {
        let ring: Vec<Vec<u32>> = (0..5).map(|link| vec![link, (link + 1) % 5]).collect();
        assert_eq!(cycle(5, ring.iter().map(Vec::as_slice)), [0, 1, 2, 3, 4]);
        assert!(cycle(5, ring[..4].iter().map(Vec::as_slice)).is_empty());
        assert!(cycle(0, []).is_empty());
    }

    #[test]
    fn a_cycle_excludes_links_that_lead_to_it() {
        let routes: [&[u32]; 3] = [&[0, 1, 2], &[2, 3], &[3, 1]];
        assert_eq!(cycle(4, routes), [1, 2, 3]);
    }
}
