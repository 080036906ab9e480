//! A machine as a picture of routes sees it: cables, hosts at switches, connected parts.

use std::collections::{BTreeMap, HashMap};

use hopmap_model::{Counting, LinkState, Mapping, NodeKind, Route, Routes, SystemGraph, Tables, TaskGraph};
use hopmap_text::grouped;

use crate::human::{Unit, count_of, quantity, six_digits, three_digits};
use crate::layered::{distances, neighbours};

/// The links between two nodes.
#[derive(Debug, Clone, Default)]
pub(super) struct Cable {
    /// Links from the node with the lesser id to the other one, in their order.
    pub(super) forth: Vec<usize>,
    /// Links the other way.
    pub(super) back: Vec<usize>,
}

/// Nodes and cables of a machine.
#[derive(Debug)]
pub(super) struct Network {
    /// By node ids, the lesser one first.
    pub(super) cables: BTreeMap<(usize, usize), Cable>,
    /// Of every node, those that it has a cable to, rising.
    pub(super) neighbours: Vec<Vec<usize>>,
    pub(super) is_host: Vec<bool>,
    /// Of every host, the switch next to which it is drawn.
    pub(super) home: Vec<Option<usize>>,
}

impl Network {
    /// If every host has a box, those at several switches are drawn between them, at none.
    pub(super) fn new(system: &SystemGraph, has_hosts: bool) -> Self {
        let count = system.nodes.len();
        let mut cables: BTreeMap<(usize, usize), Cable> = BTreeMap::new();
        for (index, link) in system.links.iter().enumerate() {
            let (from, to) = (link.source as usize, link.destination as usize);
            if from == to || from >= count || to >= count {
                continue;
            }
            let cable = cables.entry((from.min(to), from.max(to))).or_default();
            if from < to { cable.forth.push(index) } else { cable.back.push(index) }
        }
        let mut neighbours = neighbours(count, cables.keys().copied());
        neighbours.iter_mut().for_each(|others| others.sort_unstable());
        let is_host: Vec<bool> = system.nodes.iter().map(|node| node.kind == NodeKind::Host).collect();
        let home = |node: usize| {
            let mut switches =
                neighbours[node].iter().copied().filter(|&other| is_host[node] && !is_host[other]);
            let first = switches.next();
            first.filter(|_| !has_hosts || switches.next().is_none())
        };
        let home = (0..count).map(home).collect();
        Self { cables, neighbours, is_host, home }
    }

    /// Switches, and hosts at none.
    pub(super) fn pillars(&self) -> Vec<usize> {
        (0..self.home.len()).filter(|&node| self.home[node].is_none()).collect()
    }

    /// The hosts at every node, by ascending id.
    pub(super) fn hosts_at(&self) -> Vec<Vec<usize>> {
        let mut hosts = vec![Vec::new(); self.home.len()];
        for (host, home) in self.home.iter().enumerate() {
            if let Some(switch) = home {
                hosts[*switch].push(host);
            }
        }
        hosts
    }

    /// Nodes except hosts drawn at switches, by connected part; the largest first.
    pub(super) fn parts(&self) -> Vec<Vec<usize>> {
        let mut parts: Vec<Vec<usize>> = Vec::new();
        let mut left = self.pillars();
        while let Some(&first) = left.first() {
            // Through hosts at several switches, too.
            let reached = distances(&self.neighbours, [first]);
            let (part, others) = left.into_iter().partition(|&node| reached[node].is_some());
            parts.push(part);
            left = others;
        }
        parts.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        parts
    }

    /// Neighbours of every node of a part that are in it as well, by their places in it.
    pub(super) fn within(&self, part: &[usize]) -> Vec<Vec<usize>> {
        let neighbours = |&node: &usize| {
            self.neighbours[node].iter().filter_map(|other| part.binary_search(other).ok()).collect()
        };
        part.iter().map(neighbours).collect()
    }
}

/// Routes on a machine, and what else is known of them.
#[derive(Debug, Clone, Copy)]
pub struct Routed<'a> {
    /// The machine.
    pub system: &'a SystemGraph,
    /// The routes on it.
    pub routes: &'a Routes,
    /// The tables of its switches.
    pub tables: Option<&'a Tables>,
    /// The program whose streams take the routes.
    pub graph: Option<&'a TaskGraph>,
    /// Where its processes are.
    pub mapping: Option<&'a Mapping>,
}

/// Part of a bandwidth by which sums may exceed it: rounding.
const TOLERANCE: f64 = 1e-9;
/// Streams that are named in a tooltip.
const MOST_NAMED: usize = 12;

/// Load of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Use {
    /// It carries no messages.
    Down,
    /// No route uses it.
    Idle,
    /// Its load as a part of its bandwidth.
    Part(f64),
    /// Its bandwidth is not known: its load as a part of the largest one.
    Unknown(f64),
}

/// Contents of pictures of routes.
pub(super) struct Facts<'a> {
    pub(super) routed: Routed<'a>,
    /// Load of every link.
    pub(super) loads: Vec<f64>,
    /// The routes over every link.
    pub(super) routes_over: Vec<Vec<usize>>,
    /// Traffic that arrives at every node over links.
    pub(super) arriving: Vec<f64>,
    /// Entries of the tables of every switch, if tables are known.
    pub(super) entries: Option<Vec<usize>>,
    /// Names of the processes on every node.
    pub(super) processes: Vec<Vec<String>>,
    largest: f64,
}

impl<'a> Facts<'a> {
    pub(super) fn new(routed: Routed<'a>) -> Self {
        let (links, nodes) = (routed.system.links.len(), routed.system.nodes.len());
        let (mut loads, mut routes_over) = (vec![0.0; links], vec![Vec::new(); links]);
        for (index, route) in routed.routes.routes.iter().enumerate() {
            for link in route.links.iter().map(|&link| link as usize).filter(|&link| link < links) {
                loads[link] += route.bandwidth_bytes_per_s;
                if routes_over[link].last() != Some(&index) {
                    routes_over[link].push(index);
                }
            }
        }
        let mut arriving = vec![0.0; nodes];
        for (link, load) in routed.system.links.iter().zip(&loads) {
            if let Some(sum) = arriving.get_mut(link.destination as usize) {
                *sum += load;
            }
        }
        let entries = routed.tables.map(|tables| {
            let mut entries = vec![0; nodes];
            for entry in &tables.entries {
                if let Some(count) = entries.get_mut(entry.switch as usize) {
                    *count += 1;
                }
            }
            entries
        });
        let largest = loads.iter().copied().fold(0.0, f64::max);
        Self { loads, routes_over, arriving, entries, processes: processes(&routed), largest, routed }
    }

    /// Load of a link.
    pub(super) fn usage(&self, link: usize) -> Use {
        let load = self.loads[link];
        let link = &self.routed.system.links[link];
        match link.bandwidth_bytes_per_s.filter(|bandwidth| bandwidth.is_finite() && *bandwidth > 0.0) {
            _ if link.state == LinkState::Down => Use::Down,
            _ if load <= 0.0 => Use::Idle,
            Some(bandwidth) => Use::Part(load / bandwidth),
            None => Use::Unknown(load / self.largest),
        }
    }

    /// The name of a node.
    pub(super) fn node(&self, node: u32) -> &'a str {
        self.routed.system.nodes.get(node as usize).map_or("?", |node| node.name.as_str())
    }

    /// A link in words: the names of its ends, and the port where there are several cables between them.
    pub(super) fn link(&self, index: usize, is_parallel: bool) -> String {
        let link = &self.routed.system.links[index];
        let (from, to) = (self.node(link.source), self.node(link.destination));
        match link.source_port.filter(|_| is_parallel) {
            Some(port) => format!("{from}.{port} → {to}"),
            None => format!("{from} → {to}"),
        }
    }

    /// `3 MB/s of 4 MB/s (75 %)`.
    pub(super) fn load(&self, index: usize) -> String {
        let load = rate(self.loads[index]);
        let bandwidth = self.routed.system.links[index].bandwidth_bytes_per_s;
        match (self.usage(index), bandwidth) {
            (Use::Down, _) if self.loads[index] > 0.0 => format!("down, {load} routed over it"),
            (Use::Down, _) => "down".into(),
            (Use::Part(part), Some(bandwidth)) => {
                format!("{load} of {} ({})", rate(bandwidth), percent(part))
            }
            (Use::Idle, Some(bandwidth)) => format!("idle, bandwidth {}", rate(bandwidth)),
            (Use::Idle, None) => "idle".into(),
            _ => load,
        }
    }

    /// The tooltip of a link.
    pub(super) fn description(&self, index: usize, is_parallel: bool) -> String {
        let routes = &self.routes_over[index];
        let mut tooltip = format!("{}: {}", self.link(index, is_parallel), self.load(index));
        if !routes.is_empty() {
            let with_bandwidth = |&route: &usize| {
                let route = &self.routed.routes.routes[route];
                format!("{} ({})", self.stream(route), rate(route.bandwidth_bytes_per_s))
            };
            let names: Vec<String> = routes.iter().take(MOST_NAMED).map(with_bandwidth).collect();
            let more = and_more(routes.len(), names.len());
            tooltip.push_str(&format!(" · {}: {}{more}", self.counted(routes.len()), names.join(", ")));
        }
        tooltip
    }

    /// The name of a route: the processes of its stream, or the hosts of several streams.
    pub(super) fn stream(&self, route: &Route) -> String {
        let streams = self.routed.graph.map(|graph| &graph.demands.streams[..]).unwrap_or_default();
        let one = match route.streams[..] {
            [stream] => streams.get(stream as usize),
            _ => None,
        };
        match one {
            Some(stream) => format!("{} → {}", self.process(stream.source), self.process(stream.destination)),
            None => self.between(route),
        }
    }

    /// The names of the hosts of a route.
    pub(super) fn between(&self, route: &Route) -> String {
        format!("{} → {}", self.node(route.source), self.node(route.destination))
    }

    fn process(&self, rank: u32) -> String {
        process(&self.routed, rank as usize)
    }

    /// The nodes of a route.
    pub(super) fn nodes_of(&self, route: &Route) -> String {
        if route.links.is_empty() {
            return format!("inside {}", self.node(route.source));
        }
        let links = route.links.iter().filter_map(|&link| self.routed.system.links.get(link as usize));
        let nodes = links.map(|link| self.node(link.destination));
        std::iter::once(self.node(route.source)).chain(nodes).collect::<Vec<_>>().join(" → ")
    }

    /// `3 streams`, or what routes are one of.
    pub(super) fn counted(&self, count: usize) -> String {
        match self.routed.routes.counting {
            Counting::Streams => count_of(count, "stream"),
            Counting::HostPairs if count == 1 => "1 pair of hosts".into(),
            Counting::HostPairs => format!("{} pairs of hosts", grouped(count)),
        }
    }

    /// The line below the title.
    pub(super) fn subtitle(&self) -> String {
        let Routed { system, routes, .. } = self.routed;
        let of_kind = |kind| system.nodes.iter().filter(|node| node.kind == kind).count();
        let metric = |name: &str| routes.metrics.get(name).copied();
        let mut parts = vec![count_of(of_kind(NodeKind::Host), "host")];
        if of_kind(NodeKind::Switch) > 0 {
            parts.push(count_of(of_kind(NodeKind::Switch), "switch"));
        }
        parts.push(self.counted(routes.routes.len()));
        let longest = routes.routes.iter().map(|route| route.links.len()).max().unwrap_or(0);
        if longest > 0 {
            parts.push(format!("longest route {}", count_of(longest, "hop")));
        }
        if let Some(objective) = metric("objective") {
            let proven = metric("proven").is_some_and(|proven| proven > 0.0);
            let bound = metric("bound").map(|bound| format!(", not below {}", six_digits(bound)));
            let proof = if proven { ", proven optimal".to_owned() } else { bound.unwrap_or_default() };
            parts.push(format!("objective {}{proof}", six_digits(objective)));
        }
        if longest > 0 {
            let waits = if routes.cycle.is_empty() { "no deadlocks" } else { "deadlock possible" };
            parts.push(waits.into());
        }
        parts.join(" · ")
    }

    /// Whether a load exceeds a bandwidth.
    pub(super) fn is_over(part: f64) -> bool {
        part > 1.0 + TOLERANCE
    }
}

/// `, and 3 more`, or nothing.
pub(super) fn and_more(all: usize, shown: usize) -> String {
    if all > shown { format!(", and {} more", all - shown) } else { String::new() }
}

/// A bandwidth with three digits.
pub(super) fn rate(bytes_per_s: f64) -> String {
    format!("{}/s", quantity(bytes_per_s, Unit::Bytes))
}

/// A part as percent; what is less than all is never rounded to it.
pub(super) fn percent(part: f64) -> String {
    match 100.0 * part {
        percent if percent < 100.0 && percent > 99.0 => format!("{} %", libm::floor(percent * 10.0) / 10.0),
        percent if Facts::is_over(part) && percent < 101.0 => "over 100 %".into(),
        percent => format!("{} %", three_digits(percent)),
    }
}

/// Names of the processes on every node.
fn processes(routed: &Routed<'_>) -> Vec<Vec<String>> {
    let mut processes = vec![Vec::new(); routed.system.nodes.len()];
    let Some(mapping) = routed.mapping else { return processes };
    let nodes: HashMap<&str, usize> =
        routed.system.nodes.iter().zip(0..).map(|(node, index)| (node.name.as_str(), index)).collect();
    for (rank, placement) in mapping.ranks.iter().enumerate() {
        let host = mapping.hosts.get(placement.host as usize);
        if let Some(&node) = host.and_then(|host| nodes.get(host.host.as_str())) {
            processes[node].push(process(routed, rank));
        }
    }
    processes
}

/// The name of a process, or its rank.
fn process(routed: &Routed<'_>, rank: usize) -> String {
    let demand = routed.graph.and_then(|graph| graph.demands.processes.get(rank));
    demand
        .map(|demand| demand.name.clone())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| rank.to_string())
}
