//! Conversion of generic nodes and links to the parts of a machine.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hopmap_graph::DisjointSets;
use hopmap_model::{Link, LinkState, Node, NodeKind, NodeState};

use hopmap_text::shown;

use super::finish::{HostShape, MOST_SLOTS, Parts};
use super::format::{malformed, some};
use super::networks::is_left_out;
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
    /// What the names of its ports are like.
    pub(super) ports: Clues,
}

/// Whether names are like those of hosts, and like those of switches.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clues {
    host: bool,
    switch: bool,
}

impl Clues {
    /// Those of a node that was given a name here, which says nothing.
    pub(super) const NONE: Self = Self { host: true, switch: true };

    /// Takes the name of a port: network interfaces of Linux belong to hosts; `swp1` and `Ethernet1/2` to switches.
    pub(super) fn port(&mut self, name: &str) {
        let name = name.trim().to_ascii_lowercase();
        let letters = name.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        let is_panel = name.contains('/') || ["swp", "ethernet"].contains(&letters);
        self.switch |= is_panel;
        self.host |= !is_panel && HOST_PORTS.contains(&letters);
    }

    /// What the words in the name of a node and the names of its ports agree on.
    fn kind(mut self, name: &str) -> Option<NodeKind> {
        for word in name.to_ascii_lowercase().split(|c: char| !c.is_ascii_alphabetic()) {
            self.host |= HOST_WORDS.contains(&word);
            self.switch |= SWITCH_WORDS.contains(&word);
        }
        match self {
            Self { host: true, switch: false } => Some(NodeKind::Host),
            Self { host: false, switch: true } => Some(NodeKind::Switch),
            _ => None,
        }
    }
}

const HOST_PORTS: [&str; 15] =
    ["eth", "eno", "ens", "enp", "enx", "em", "ib", "ibp", "ibs", "mlx", "bond", "hsn", "hfi", "hca", "nic"];
const HOST_WORDS: [&str; 10] =
    ["host", "node", "server", "srv", "compute", "gpu", "dgx", "hgx", "worker", "login"];
const SWITCH_WORDS: [&str; 10] =
    ["leaf", "spine", "superspine", "core", "tor", "switch", "sw", "agg", "aggregation", "router"];

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
    /// The first one, as well.
    pub(super) states: (usize, String),
    pub(super) kinds: usize,
    /// Cables of other systems, and the line of the first.
    pub(super) other_cables: (usize, usize),
}

impl Unused {
    pub(super) fn notes(&self) -> Vec<String> {
        let notes = [
            (self.ports, "non-numeric port names ignored"),
            (self.bandwidths, "bandwidths without a known unit (`25G`, `4xHDR`, `12.5GB/s`) ignored"),
            (self.latencies, "latencies without a known unit (`1.5us`) ignored"),
            (self.kinds, "unknown kinds of nodes inferred"),
        ];
        let mut notes: Vec<String> = notes
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let (states, first) = &self.states;
        if *states > 0 {
            notes.push(format!("{states} unknown states treated as up, the first `{}`", shown(first)));
        }
        let (cables, line) = self.other_cables;
        if cables > 0 {
            notes.push(format!("power and console cables left out: {cables}, the first in line {line}"));
        }
        notes
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
            "down" | "offline" | "disabled" | "failed" | "inactive" | "error" | "false" | "0" | "no"
            // Cables that an inventory has, and nobody has plugged in yet, or any more.
            | "planned" | "staged" | "reserved" | "decommissioning" | "decommissioned" | "retired"
            | "disconnected" | "not connected" | "unplugged" => false,
            "" | "up" | "online" | "enabled" | "active" | "connected" | "ok" | "true" | "1" | "yes" => true,
            _ => {
                if self.states.0 == 0 {
                    text.trim().clone_into(&mut self.states.1);
                }
                self.states.0 += 1;
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
            // The class of ports of NetBox, which says nothing of the node.
            "" | "dcim.interface" | "interface" => None,
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
    /// The parts of a machine, with missing kinds inferred and cables in both directions. What is left out later needs no kind.
    pub(super) fn parts(mut self, leave_out: &[String], notes: &mut Vec<String>) -> Result<Parts> {
        for node in self.nodes.iter_mut().filter(|node| node.kind.is_none()) {
            node.kind = is_left_out(&node.name, leave_out).then_some(NodeKind::Switch);
        }
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
        let kinds = kinds(&self.nodes, &links, notes)?;
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

/// The kind of every node. Unknown kinds are those that names agree on; otherwise a node with at most one neighbour is a
/// host, and its neighbour a switch, and so is what joins the parts of a tree. A server cabled to two leaf switches is not told
/// from a spine by its cables, so what is left has to be said.
fn kinds(listed: &[GraphNode], links: &[Link], notes: &mut Vec<String>) -> Result<Vec<NodeKind>> {
    let mut neighbours: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); listed.len()];
    let mut is_tree = true;
    let mut parts = DisjointSets::new(listed.len());
    for link in links.iter().filter(|link| link.source != link.destination) {
        let (a, b) = (link.source as usize, link.destination as usize);
        if neighbours[a].insert(b) && neighbours[b].insert(a) {
            is_tree &= parts.join(a, b).is_some();
        }
    }
    let said = |node: &GraphNode| node.kind.or(node.cores.as_ref().map(|_| NodeKind::Host));
    let mut kinds: Vec<Option<NodeKind>> = listed
        .iter()
        .zip(&neighbours)
        .map(|(node, others)| {
            let alone = || (others.len() < 2).then_some(NodeKind::Host);
            said(node).or_else(|| node.ports.kind(&node.name)).or_else(alone)
        })
        .collect();
    let is = |kinds: &[Option<NodeKind>], node: &usize, kind| kinds[*node] == Some(kind);
    let first = kinds.clone();
    for (node, others) in neighbours.iter().enumerate().filter(|(node, _)| first[*node].is_none()) {
        if is_tree || others.iter().any(|other| is(&first, other, NodeKind::Host)) {
            kinds[node] = Some(NodeKind::Switch);
        }
    }
    let guessed: Vec<usize> = (0..listed.len()).filter(|&node| said(&listed[node]).is_none()).collect();
    let has_switches = kinds.contains(&Some(NodeKind::Switch));
    // A cable between two hosts leads nowhere if there are switches, and if it is the only one of a host.
    let leads_nowhere = |node: &usize| {
        let many = |node: &usize| neighbours[*node].len() > 1;
        let nowhere =
            |other: &usize| is(&kinds, other, NodeKind::Host) && (has_switches || many(node) != many(other));
        is(&kinds, node, NodeKind::Host) && neighbours[*node].iter().any(nowhere)
    };
    let named = |nodes: Vec<usize>| nodes.into_iter().map(|node| &*listed[node].name).collect::<Vec<&str>>();
    let of =
        |test: &dyn Fn(&usize) -> bool| named(guessed.iter().copied().filter(|node| test(node)).collect());
    let unclear = of(&|node| kinds[*node].is_none() || leads_nowhere(node));
    if !unclear.is_empty() {
        let problem = format!("nodes that may be hosts or switches: {}", some(&unclear));
        let help = "say which they are by `host` or `switch`: in the columns `source_type` and `destination_type` of a CSV \
                    file, or as the `kind` of a node in JSON";
        return Err(malformed(None, problem, help));
    }
    if !guessed.is_empty() {
        let [hosts, switches] =
            [NodeKind::Host, NodeKind::Switch].map(|kind| of(&|node| is(&kinds, node, kind)));
        let shown =
            [("hosts", hosts), ("switches", switches)].into_iter().filter(|(_, names)| !names.is_empty());
        let shown: Vec<String> = shown.map(|(what, names)| format!("{what}: {}", some(&names))).collect();
        let count = guessed.len();
        notes.push(format!("{count} nodes of unknown kind, by their names and cables {}", shown.join("; ")));
    }
    Ok(kinds.into_iter().map(|kind| kind.unwrap_or(NodeKind::Switch)).collect())
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
