//! Conversion of generic nodes and links to the parts of a machine.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hopmap_model::{Link, LinkState, Node, NodeKind, NodeState};

use super::finish::{HostShape, MOST_SLOTS, Parts};
use super::format::malformed;
use super::{Result, units};

/// Nodes and links in file order.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<GraphNode>,
    pub(super) links: Vec<GraphLink>,
}

/// A node and its attributes.
#[derive(Debug, Default)]
pub(super) struct GraphNode {
    pub(super) name: String,
    pub(super) kind: Option<NodeKind>,
    pub(super) state: NodeState,
    pub(super) address: Option<String>,
    pub(super) cores: Option<Cores>,
}

/// The cores of a host.
#[derive(Debug)]
pub(super) enum Cores {
    /// Consecutive cores from zero.
    Count(u32),
    List(Vec<u32>),
}

/// A cable or one direction of it.
#[derive(Debug)]
pub(super) struct GraphLink {
    pub(super) link: Link,
    /// Whether it is bidirectional; if unknown, unless the opposite direction is listed as well.
    pub(super) both: Option<bool>,
}

/// Counts of unusable values, for notes.
#[derive(Debug, Default)]
pub(super) struct Unused {
    pub(super) ports: usize,
    pub(super) bandwidths: usize,
    pub(super) latencies: usize,
    pub(super) states: usize,
    pub(super) kinds: usize,
}

impl Unused {
    pub(super) fn notes(&self) -> Vec<String> {
        let notes = [
            (self.ports, "non-numeric port names ignored"),
            (self.bandwidths, "bandwidths without a known unit (`25G`, `4xHDR`, `12.5GB/s`) ignored"),
            (self.latencies, "latencies without a known unit (`1.5us`) ignored"),
            (self.states, "unknown states treated as up"),
            (self.kinds, "unknown kinds of nodes inferred"),
        ];
        notes.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
    }

    pub(super) fn port(&mut self, text: &str) -> Option<u32> {
        let text = text.trim();
        let port = text.parse().ok();
        self.ports += usize::from(port.is_none() && !text.is_empty());
        port
    }

    /// Bytes per second, from a number with a known scale or a text with a unit.
    pub(super) fn bandwidth(&mut self, text: &str, scale: Option<f64>) -> Option<f64> {
        let text = text.trim();
        let scaled = |scale: f64| text.parse().ok().map(|number| units::scaled(number, scale));
        let found = scale
            .and_then(scaled)
            .filter(|value| value.is_finite() && *value > 0.0)
            .or_else(|| units::bandwidth(text));
        self.bandwidths += usize::from(found.is_none() && !text.is_empty());
        found
    }

    /// Seconds.
    pub(super) fn latency(&mut self, text: &str, scale: Option<f64>) -> Option<f64> {
        let text = text.trim();
        let scaled = |scale: f64| text.parse().ok().map(|number| units::scaled(number, scale));
        let found = scale
            .and_then(scaled)
            .filter(|value| value.is_finite() && *value >= 0.0)
            .or_else(|| units::latency(text));
        self.latencies += usize::from(found.is_none() && !text.is_empty());
        found
    }

    /// Whether something is up.
    pub(super) fn is_up(&mut self, text: &str) -> bool {
        match text.trim().to_ascii_lowercase().as_str() {
            "down" | "offline" | "disabled" | "failed" | "inactive" | "error" | "false" | "0" | "no" => false,
            "" | "up" | "online" | "enabled" | "active" | "connected" | "ok" | "true" | "1" | "yes" => true,
            _ => {
                self.states += 1;
                true
            }
        }
    }

    /// The kind of a node in the terms of various tools.
    pub(super) fn kind(&mut self, text: &str) -> Option<NodeKind> {
        match text.trim().to_ascii_lowercase().as_str() {
            "host" | "server" | "compute" | "node" | "hca" | "ca" | "hfi" | "fi" => Some(NodeKind::Host),
            "switch" | "router" | "leaf" | "spine" | "core" | "tor" | "bridge" | "sw" => {
                Some(NodeKind::Switch)
            }
            "" => None,
            _ => {
                self.kinds += 1;
                None
            }
        }
    }
}

pub(super) fn link_state(is_up: bool) -> LinkState {
    if is_up { LinkState::Up } else { LinkState::Down }
}

pub(super) fn node_state(is_up: bool) -> NodeState {
    if is_up { NodeState::Up } else { NodeState::Down }
}

impl Graph {
    /// The parts of a machine, with missing kinds inferred and cables in both directions.
    pub(super) fn parts(self, notes: &mut Vec<String>) -> Result<Parts> {
        let slots = |node: &GraphNode| match &node.cores {
            Some(Cores::Count(count)) => *count as usize,
            Some(Cores::List(cores)) => cores.len(),
            None => 0,
        };
        let count = self.nodes.iter().map(slots).fold(0, usize::saturating_add);
        if count > MOST_SLOTS {
            let problem = format!("the hosts have {count} slots in total");
            return Err(malformed(None, problem, format!("a machine has at most {MOST_SLOTS} slots")));
        }
        let links = both_ways(self.links, notes);
        let kinds = kinds(&self.nodes, &links, notes);
        let mut shapes = BTreeMap::new();
        let mut found = Vec::with_capacity(self.nodes.len());
        for (GraphNode { name, state, address, cores, .. }, kind) in self.nodes.into_iter().zip(kinds) {
            if let Some(cores) = cores.filter(|_| kind == NodeKind::Host) {
                let cores: Vec<u32> = match cores {
                    Cores::Count(count) => (0..count).collect(),
                    Cores::List(cores) => cores,
                };
                let groups = vec![vec![0; cores.len()]];
                shapes.insert(name.clone(), HostShape { cores, groups });
            }
            found.push(Node { state, address, ..Node::new(name, kind) });
        }
        Ok(Parts { nodes: found, links, shapes, ..Parts::default() })
    }
}

/// The kind of every node. A node of unknown kind is a host if it has slots or at most one neighbour; if that
/// gives no hosts, all such nodes are hosts.
fn kinds(listed: &[GraphNode], links: &[Link], notes: &mut Vec<String>) -> Vec<NodeKind> {
    let mut neighbours: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); listed.len()];
    for link in links.iter().filter(|link| link.source != link.destination) {
        for (node, other) in [(link.source, link.destination), (link.destination, link.source)] {
            if let Some(others) = neighbours.get_mut(node as usize).filter(|others| others.len() < 2) {
                others.insert(other);
            }
        }
    }
    let guess = |(node, others): (&GraphNode, &BTreeSet<u32>)| match node.kind {
        Some(kind) => kind,
        None if node.cores.is_some() || others.len() < 2 => NodeKind::Host,
        None => NodeKind::Switch,
    };
    let mut kinds: Vec<NodeKind> = listed.iter().zip(&neighbours).map(guess).collect();
    let unsaid = listed.iter().filter(|node| node.kind.is_none() && node.cores.is_none()).count();
    if unsaid > 0 && kinds.iter().all(|kind| *kind == NodeKind::Switch) {
        kinds
            .iter_mut()
            .zip(listed)
            .filter(|(_, node)| node.kind.is_none())
            .for_each(|(kind, _)| *kind = NodeKind::Host);
        notes.push(format!("{unsaid} nodes of unknown kind all have several neighbours: treated as hosts"));
    } else if unsaid > 0 {
        notes.push(format!(
            "{unsaid} nodes of unknown kind: those with several neighbours are treated as switches"
        ));
    }
    kinds
}

/// Splits cables into two directed links. Of links of unknown direction, two that are each other's reverse,
/// including ports, are the directions of one cable; one without such a partner is a cable.
fn both_ways(links: Vec<GraphLink>, notes: &mut Vec<String>) -> Vec<Link> {
    let key = |link: &Link| (link.source, link.source_port, link.destination, link.destination_port);
    let mut listed: HashMap<_, usize> = HashMap::new();
    let unsaid = || links.iter().filter(|link| link.both.is_none());
    unsaid().for_each(|link| *listed.entry(key(&link.link)).or_default() += 1);
    let mut left = HashMap::new();
    let (mut single, mut pairs) = (0, 0);
    let mut all = Vec::with_capacity(links.len());
    for GraphLink { link, both } in links {
        let mut has_partner = || {
            let partners = left
                .entry(key(&link))
                .or_insert_with(|| listed.get(&key(&link.reversed())).copied().unwrap_or(0));
            let found = *partners > 0 && link.source != link.destination;
            *partners = partners.saturating_sub(1);
            found
        };
        let is_both = both.unwrap_or_else(|| {
            let is_direction = has_partner();
            *if is_direction { &mut pairs } else { &mut single } += 1;
            !is_direction
        });
        all.push(link);
        if is_both && link.source != link.destination {
            all.push(link.reversed());
        }
    }
    if single > 0 && pairs > 0 {
        notes.push(format!(
            "{pairs} links with a listed reverse are unidirectional; {single} without one are bidirectional"
        ));
    }
    all
}
