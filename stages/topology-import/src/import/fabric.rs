//! Conversion of a fabric dump, with its adapters and cables, to the parts of a machine.
//!
//! The same fabric gives the same parts from any source: hosts in natural order of their names, then switches
//! by address, links by their ends and ports, and those forwarding entries that messages between hosts use.

mod dump;
mod machines;

pub(super) use dump::{Fabric, FabricLink, FabricNode};
use dump::{members, without_adapters_of_switches};
pub(super) use machines::is_adapter;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hopmap_formats::natural_key;
use hopmap_model::{Forward, Link, Node, NodeKind, NodeState, Routing, to_u32};

use super::finish::{Parts, machine};
use super::format::note;
use super::networks::{self, Listed};
use super::{ImportParams, Imported, Result};

impl Fabric {
    /// The machine topology; its notes are appended to those of the source.
    pub(super) fn imported(self, params: &ImportParams, mut notes: Vec<String>) -> Result<Imported> {
        let parts = self.parts(params, &mut notes)?;
        Ok(Imported { system: machine(parts, params)?, notes })
    }

    /// The parts of the machine.
    fn parts(self, params: &ImportParams, remarks: &mut Vec<String>) -> Result<Parts> {
        let links = self.links.iter().map(FabricLink::link).collect();
        let (mut nodes, links, forwarding) =
            without_adapters_of_switches((self.nodes, links, self.forwarding), remarks);
        machines::assign(&mut nodes, remarks);
        let choice = networks::choose(&members(&nodes), &links, params, remarks)?;
        Ok(named_parts(choice.reduce((nodes, links, forwarding)), remarks))
    }
}

fn named_parts((nodes, links, forwarding): Listed<FabricNode>, remarks: &mut Vec<String>) -> Parts {
    let (nodes, place) = Names::new(&nodes).nodes(&nodes);
    let moved = |link: Link| Link {
        source: place[link.source as usize],
        destination: place[link.destination as usize],
        ..link
    };
    let mut links: Vec<(Link, usize)> = links.into_iter().map(moved).zip(0..).collect();
    links.sort_by_key(|(link, index)| {
        (link.source, link.source_port, link.destination, link.destination_port, *index)
    });
    let mut link_place = vec![0; links.len()];
    (0..).zip(&links).for_each(|(new, (_, old)): (u32, _)| link_place[*old] = new);
    let links: Vec<Link> = links.into_iter().map(|(link, _)| link).collect();
    let entry = |entry: Forward| Forward {
        node: place[entry.node as usize],
        last: link_place[entry.last as usize],
        link: link_place[entry.link as usize],
    };
    let entries = forwarding.into_iter().map(entry).collect();
    let (forwarding, lost) = used(entries, &nodes, &links);
    note(remarks, "ordered pairs of adapters without a route in the tables", lost);
    let routing = Routing { forwarding, ..Routing::default() };
    Parts { nodes, links, routing, shapes: BTreeMap::new() }
}

/// Assignment of adapters to hosts, and the names of hosts and switches.
struct Names {
    /// Hosts by name, with their adapters.
    hosts: Vec<(String, Vec<usize>)>,
    /// Switches by address.
    switches: Vec<(String, usize)>,
}

impl Names {
    fn new(nodes: &[FabricNode]) -> Self {
        let hosts = hosts(nodes);
        let mut switches: Vec<usize> =
            (0..nodes.len()).filter(|&node| nodes[node].kind == NodeKind::Switch).collect();
        switches.sort_by_key(|&node| nodes[node].key());
        let mut count: HashMap<&str, usize> = HashMap::new();
        switches.iter().for_each(|&node| *count.entry(nodes[node].description.trim()).or_default() += 1);
        let mut taken: BTreeSet<String> = hosts.iter().map(|(name, _)| name.clone()).collect();
        let name = |&node: &usize| {
            let FabricNode { address, description, .. } = &nodes[node];
            let description = description.trim();
            let is_its_own =
                !description.is_empty() && count[description] == 1 && !taken.contains(description);
            let name = match (is_its_own, description.is_empty()) {
                (true, _) => description.to_owned(),
                (false, true) => unused(format!("switch-{address}"), &taken),
                (false, false) => unused(format!("{description} {address}"), &taken),
            };
            taken.insert(name.clone());
            (name, node)
        };
        Self { switches: switches.iter().map(name).collect(), hosts }
    }

    /// The nodes of the machine, and the node for each node of the fabric.
    fn nodes(&self, fabric: &[FabricNode]) -> (Vec<Node>, Vec<u32>) {
        let mut place = vec![0; fabric.len()];
        let mut nodes = Vec::with_capacity(self.hosts.len() + self.switches.len());
        for (name, adapters) in &self.hosts {
            adapters.iter().for_each(|&adapter| place[adapter] = to_u32(nodes.len()));
            let is_up = adapters.iter().any(|&adapter| fabric[adapter].state == NodeState::Up);
            nodes.push(Node {
                state: if is_up { NodeState::Up } else { NodeState::Down },
                address: adapters.iter().filter_map(|&adapter| fabric[adapter].address()).min(),
                ..Node::host(name.clone())
            });
        }
        for (name, switch) in &self.switches {
            place[*switch] = to_u32(nodes.len());
            let state = fabric[*switch].state;
            nodes.push(Node { state, address: fabric[*switch].address(), ..Node::switch(name.clone()) });
        }
        (nodes, place)
    }
}

fn unused(mut name: String, taken: &BTreeSet<String>) -> String {
    while taken.contains(&name) {
        name.push('_');
    }
    name
}

/// Adapters by host, which `machines` has assigned.
fn hosts(nodes: &[FabricNode]) -> Vec<(String, Vec<usize>)> {
    let mut adapters: Vec<usize> =
        (0..nodes.len()).filter(|&node| nodes[node].kind == NodeKind::Host).collect();
    adapters.sort_by_key(|&node| nodes[node].key());
    let mut hosts: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for adapter in adapters {
        hosts.entry(nodes[adapter].host.clone().unwrap_or_default()).or_default().push(adapter);
    }
    let mut hosts: Vec<_> = hosts.into_iter().collect();
    hosts.sort_by_cached_key(|(name, _)| (natural_key(name), name.clone()));
    hosts
}

/// The sorted entries that messages between hosts use, without dead ends; and the number of ordered pairs of
/// adapters attached to switches that have no route.
fn used(mut entries: Vec<Forward>, nodes: &[Node], links: &[Link]) -> (Vec<Forward>, u64) {
    if entries.is_empty() {
        return (entries, 0);
    }
    entries.sort_unstable();
    entries.dedup_by_key(|entry| (entry.node, entry.last));
    let is_host = |node: u32| nodes[node as usize].kind == NodeKind::Host;
    let mut starts: BTreeMap<u32, u64> = BTreeMap::new();
    for link in links.iter().filter(|link| is_host(link.source) && !is_host(link.destination)) {
        *starts.entry(link.destination).or_default() += 1;
    }
    let by_last = ByLast::new(&entries, links.len());
    let mut routes = Routes {
        entries: &entries,
        links,
        at: vec![NOWHERE; nodes.len()],
        state: vec![State::New; entries.len()],
    };
    let (mut path, mut lost) = (Vec::new(), 0);
    let ends = |link: &Link| is_host(link.destination) && !is_host(link.source);
    for (last, link) in (0..).zip(links).filter(|(_, link)| ends(link)) {
        let own = by_last.of(last);
        own.iter().for_each(|&place| routes.at[entries[place as usize].node as usize] = place);
        for (&start, &adapters) in &starts {
            if !routes.follow(start, last, is_host, &mut path) {
                lost += adapters - u64::from(start == link.source);
            }
        }
        own.iter().for_each(|&place| routes.at[entries[place as usize].node as usize] = NOWHERE);
    }
    let state = routes.state;
    let own = |entry: &Forward| is_host(entry.node) && is_host(links[entry.last as usize].destination);
    let mut states = state.iter();
    entries.retain(|entry| states.next() == Some(&State::Used) || own(entry));
    (entries, lost)
}

/// Forwarding tables derived from paths.
pub(super) struct PathTables<'a> {
    fabric: &'a Fabric,
    /// By switch and last link, the outgoing link and the line of its path.
    entries: HashMap<(usize, usize), (usize, usize)>,
    path: Vec<usize>,
    paths: u64,
}

/// Why a path is invalid.
pub(super) enum PathFault {
    Broken(String),
    /// The path on another line leaves a switch over another link.
    Contradicts {
        switch: usize,
        line: usize,
    },
}

impl<'a> PathTables<'a> {
    pub(super) fn new(fabric: &'a Fabric) -> Self {
        Self { fabric, entries: HashMap::new(), path: Vec::new(), paths: 0 }
    }

    /// Adds the path from one adapter to another over links with their numbers in the file; `what` is the
    /// term for a link.
    pub(super) fn add(
        &mut self,
        line: usize,
        (source, destination): (usize, usize),
        what: &str,
        links: impl Iterator<Item = Result<(u64, usize), String>>,
    ) -> Result<(), PathFault> {
        let Self { fabric, entries, path, paths } = self;
        let is_host = |node: usize| fabric.nodes[node].kind == NodeKind::Host;
        path.clear();
        let mut at = source;
        for link in links {
            let (number, taken) = link.map_err(PathFault::Broken)?;
            let found = &fabric.links[taken];
            if found.source != at {
                let problem = format!("{what} {number} does not continue the path");
                return Err(PathFault::Broken(problem));
            }
            if !path.is_empty() && is_host(at) {
                let problem = format!("the path passes through a host before {what} {number}");
                return Err(PathFault::Broken(problem));
            }
            at = found.destination;
            path.push(taken);
        }
        let Some(&last) = path.last().filter(|_| at == destination) else {
            return Err(PathFault::Broken("the path does not end at its destination".into()));
        };
        for &link in path.iter().filter(|&&link| !is_host(fabric.links[link].source)) {
            let switch = fabric.links[link].source;
            let (known, line) = *entries.entry((switch, last)).or_insert((link, line));
            if known != link {
                return Err(PathFault::Contradicts { switch, line });
            }
        }
        *paths += 1;
        Ok(())
    }

    /// The entries; `adapters` is the number of adapters between which paths are expected.
    pub(super) fn forwarding(self, adapters: u64, notes: &mut Vec<String>) -> Vec<Forward> {
        let pairs = adapters.saturating_mul(adapters.saturating_sub(1));
        note(notes, "ordered pairs of adapters without a path in the file", pairs.saturating_sub(self.paths));
        let entry = |((node, last), (link, _)): ((usize, usize), (usize, usize))| Forward {
            node: to_u32(node),
            last: to_u32(last),
            link: to_u32(link),
        };
        self.entries.into_iter().map(entry).collect()
    }
}

/// No entry.
const NOWHERE: u32 = u32::MAX;

/// Entries sorted by last link.
struct ByLast {
    first: Vec<u32>,
    places: Vec<u32>,
}

impl ByLast {
    fn new(entries: &[Forward], links: usize) -> Self {
        let mut first = vec![0; links + 1];
        entries.iter().for_each(|entry| first[entry.last as usize + 1] += 1);
        for link in 0..links {
            first[link + 1] += first[link];
        }
        let mut next = first.clone();
        let mut places = vec![0; entries.len()];
        for (place, entry) in (0..).zip(entries) {
            let slot = &mut next[entry.last as usize];
            places[*slot as usize] = place;
            *slot += 1;
        }
        Self { first, places }
    }

    fn of(&self, last: u32) -> &[u32] {
        &self.places[self.first[last as usize] as usize..self.first[last as usize + 1] as usize]
    }
}

/// State while routes are followed.
struct Routes<'a> {
    entries: &'a [Forward],
    links: &'a [Link],
    /// For each node, its entry for the current last link.
    at: Vec<u32>,
    state: Vec<State>,
}

impl Routes<'_> {
    /// Whether messages from a switch arrive over a last link. Caches the result for the nodes on the path.
    fn follow(
        &mut self,
        start: u32,
        last: u32,
        is_host: impl Fn(u32) -> bool,
        path: &mut Vec<usize>,
    ) -> bool {
        path.clear();
        let mut node = start;
        let arrives = loop {
            let place = self.at[node as usize];
            if place == NOWHERE {
                break false;
            }
            let place = place as usize;
            match self.state[place] {
                State::Used => break true,
                State::New => {}
                State::Following | State::Lost => break false,
            }
            self.state[place] = State::Following;
            path.push(place);
            let link = self.entries[place].link;
            if link == last {
                break true;
            }
            node = self.links[link as usize].destination;
            if is_host(node) {
                break false;
            }
        };
        let end = if arrives { State::Used } else { State::Lost };
        path.iter().for_each(|&place| self.state[place] = end);
        arrives
    }
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    Following,
    Used,
    Lost,
}

#[cfg(test)]
mod tests {
    use hopmap_model::LinkState;

    use super::*;

    fn node(kind: NodeKind, address: &str, description: &str) -> FabricNode {
        FabricNode {
            kind,
            address: address.into(),
            description: description.into(),
            host: None,
            image: None,
            state: NodeState::Up,
        }
    }

    fn cable(fabric: &mut Fabric, a: (usize, u32), b: (usize, u32)) {
        for ((source, source_port), (destination, destination_port)) in [(a, b), (b, a)] {
            fabric.links.push(FabricLink {
                source,
                source_port: Some(source_port),
                destination,
                destination_port: Some(destination_port),
                bandwidth_bytes_per_s: Some(4e9),
                state: LinkState::Up,
            });
        }
    }

    /// Two switches with one description, a host with two adapters, and adapters with ambiguous descriptions.
    fn fabric() -> Fabric {
        let nodes = vec![
            node(NodeKind::Switch, "05", "Infiniscale"),
            node(NodeKind::Switch, "04", "Infiniscale"),
            node(NodeKind::Host, "01", "n10 mlx5_0"),
            node(NodeKind::Host, "02", "n10 mlx5_1"),
            node(NodeKind::Host, "03", "n2 mlx5_0"),
            node(NodeKind::Host, "06", "n2 mlx5_0"),
            node(NodeKind::Host, "07", "MT25408 ConnectX Mellanox Technologies"),
        ];
        let mut fabric = Fabric { nodes, ..Fabric::default() };
        cable(&mut fabric, (0, 1), (1, 1));
        cable(&mut fabric, (0, 2), (2, 1));
        cable(&mut fabric, (1, 2), (3, 1));
        cable(&mut fabric, (1, 3), (4, 1));
        fabric
    }

    #[test]
    fn adapters_become_hosts_in_natural_order() {
        let mut remarks = Vec::new();
        let parts = fabric().parts(&ImportParams::default(), &mut remarks).unwrap();
        let names: Vec<_> = parts.nodes.iter().map(|node| node.name.as_str()).collect();
        let expected = ["host-07", "n2-03", "n2-06", "n10", "Infiniscale 04", "Infiniscale 05"];
        assert_eq!(names, expected);
        assert_eq!(parts.nodes[3].address.as_deref(), Some("01"));
        assert!(remarks[0].ends_with("3 (`MT25408 ConnectX Mellanox Technologies`, …)"), "{remarks:?}");
        let ends: Vec<_> = parts.links.iter().map(|link| (link.source, link.destination)).collect();
        assert_eq!(ends, [(1, 4), (3, 4), (3, 5), (4, 5), (4, 3), (4, 1), (5, 4), (5, 3)]);
    }

    #[test]
    fn only_entries_that_lead_to_hosts_are_kept() {
        let mut fabric = fabric();
        let port = |(index, link): (usize, &FabricLink)| ((link.source, link.source_port.unwrap()), index);
        let by_port: HashMap<(usize, u32), usize> = fabric.links.iter().enumerate().map(port).collect();
        let entry = |node: usize, port: u32, last: (usize, u32)| Forward {
            node: node as u32,
            last: by_port[&last] as u32,
            link: by_port[&(node, port)] as u32,
        };
        // To n2 over both switches; for the second adapter of n10 the switches form a forwarding loop.
        fabric.forwarding =
            vec![entry(0, 1, (1, 3)), entry(1, 3, (1, 3)), entry(0, 1, (1, 2)), entry(1, 1, (1, 2))];
        let mut remarks = Vec::new();
        let parts = fabric.parts(&ImportParams::default(), &mut remarks).unwrap();
        // Neither of two other adapters reaches an adapter of n10.
        assert_eq!(
            remarks.last().map(String::as_str),
            Some("ordered pairs of adapters without a route in the tables: 4")
        );
        let kept: Vec<_> = parts.routing.forwarding.iter().map(|entry| (entry.node, entry.link)).collect();
        assert_eq!(kept, [(4, 5), (5, 6)]);
    }
}
