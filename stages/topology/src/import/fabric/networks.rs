//! The networks of a fabric, and which of them are left out.
//!
//! A network is a part that is joined to the others only through hosts. Storage and management often have their
//! own one, or their own adapters and switches below common spines: if all hosts have such an adapter, all pairs
//! of hosts are near each other, which says nothing about the network that messages take.

use std::collections::{BTreeMap, BTreeSet};

use glob::Pattern;
use hopmap_model::NodeKind;

use super::dump::{Fabric, FabricLink, FabricNode};
use super::machines::device_of;
use crate::import::{ImportError, ImportParams, Result};

/// Leaves out what the parameters exclude; without them the adapters that are slower than others of their hosts,
/// if these are those of a network. Several networks that are left are a remark.
pub(super) fn choose(fabric: Fabric, params: &ImportParams, remarks: &mut Vec<String>) -> Result<Fabric> {
    let is_given = !(params.networks.is_empty() && params.leave_out.is_empty());
    let networks = Networks::new(&fabric);
    let mut out = if is_given { networks.excluded(params)? } else { networks.slower() };
    let mut stays = networks.nodes_that_stay(&out, params);
    let lost = networks.hosts_lost(&stays);
    if !is_given && 2 * lost.len() >= networks.hosts() {
        out = vec![false; networks.ports.len()];
        stays = vec![true; fabric.nodes.len()];
    } else {
        networks.remark(&out, &stays, &lost, is_given, remarks);
    }
    let removed: BTreeSet<usize> =
        networks.ports.iter().zip(&out).filter(|(_, out)| **out).flat_map(|(port, _)| port.links).collect();
    drop(networks);
    let fabric = fabric.reduced(&stays, |link| !removed.contains(&link));
    if fabric.nodes.iter().all(|node| node.kind != NodeKind::Host) {
        let name = if params.leave_out.is_empty() { "networks" } else { "leave_out" };
        return Err(ImportError::parameter(name, "leaves no hosts", "keep the network of the hosts"));
    }
    if params.networks.is_empty() {
        let networks = Networks::new(&fabric);
        remarks.extend(networks.joining().or_else(|| networks.several()));
    }
    Ok(fabric)
}

/// Fabrics with more of them are not compared pair by pair.
const MOST_NETWORKS: usize = 64;

/// A cable between an adapter and a switch.
#[derive(Debug)]
struct Port<'a> {
    host: &'a str,
    adapter: usize,
    switch: usize,
    rate: f64,
    /// Both directions.
    links: [usize; 2],
}

/// The cables of all hosts.
struct Networks<'a> {
    fabric: &'a Fabric,
    ports: Vec<Port<'a>>,
    /// By switch, the first one of its network.
    part: Vec<usize>,
    /// The highest rate of each host.
    fastest: BTreeMap<&'a str, f64>,
}

impl<'a> Networks<'a> {
    fn new(fabric: &'a Fabric) -> Self {
        let kind = |node: usize| fabric.nodes[node].kind;
        let mut part: Vec<usize> = (0..fabric.nodes.len()).collect();
        let mut backward = BTreeMap::new();
        for (at, link) in fabric.links.iter().enumerate() {
            match (kind(link.source), kind(link.destination)) {
                (NodeKind::Switch, NodeKind::Switch) => {
                    let (a, b) = (root(&mut part, link.source), root(&mut part, link.destination));
                    part[a.max(b)] = a.min(b);
                }
                (NodeKind::Switch, _) => {
                    backward
                        .insert((link.destination, link.destination_port, link.source, link.source_port), at);
                }
                _ => {}
            }
        }
        (0..part.len()).for_each(|node| part[node] = root(&mut part, node));
        let cable = |(at, link): (usize, &FabricLink)| {
            let end = (link.source, link.source_port, link.destination, link.destination_port);
            let is_port = kind(link.source) == NodeKind::Host && kind(link.destination) == NodeKind::Switch;
            is_port.then(|| Port {
                host: fabric.nodes[link.source].host.as_deref().unwrap_or(""),
                adapter: link.source,
                switch: link.destination,
                rate: link.bandwidth_bytes_per_s.unwrap_or(f64::INFINITY),
                links: [at, backward.get(&end).copied().unwrap_or(at)],
            })
        };
        let ports: Vec<Port<'_>> = fabric.links.iter().enumerate().filter_map(cable).collect();
        let mut fastest = BTreeMap::new();
        for port in ports.iter().filter(|port| port.rate.is_finite()) {
            let rate = fastest.entry(port.host).or_insert(port.rate);
            *rate = port.rate.max(*rate);
        }
        Self { fabric, ports, part, fastest }
    }

    fn hosts(&self) -> usize {
        let adapters = self.fabric.nodes.iter().filter(|node| node.kind == NodeKind::Host);
        adapters.map(|node| &node.host).collect::<BTreeSet<_>>().len()
    }

    /// By port, whether it is slower than another of its host, and one of a network, or of the adapters of a
    /// switch, that are. One slow cable among equal ones is a fault of that cable.
    fn slower(&self) -> Vec<bool> {
        let is_slower = |port: &&Port<'_>| self.fastest.get(port.host).is_some_and(|most| port.rate < *most);
        let mut slow: BTreeMap<usize, f64> = BTreeMap::new();
        for port in self.ports.iter().filter(is_slower) {
            let least = slow.entry(port.switch).or_insert(port.rate);
            *least = least.min(port.rate);
        }
        // The hosts of a switch, or of a network, that have a faster adapter; and those that have it elsewhere.
        let mut hosts: BTreeMap<(bool, usize), [BTreeSet<&str>; 2]> = BTreeMap::new();
        for port in &self.ports {
            let Some(least) = slow.get(&port.switch) else { continue };
            let has_faster = self.fastest.get(port.host).is_some_and(|most| most > least);
            for place in
                [(false, port.switch), (true, self.part[port.switch])].into_iter().filter(|_| has_faster)
            {
                let [fast, slow] = hosts.entry(place).or_default();
                _ = if is_slower(&port) { slow.insert(port.host) } else { fast.insert(port.host) };
            }
        }
        let is_clear = |port: &&Port<'_>| {
            let of = |place| {
                hosts.get(&place).map_or((0, 0), |[fast, slow]| (fast.difference(slow).count(), slow.len()))
            };
            let (fast, slow) = of((false, port.switch));
            (slow > 1 && slow > fast) || of((true, self.part[port.switch])).0 == 0
        };
        self.ports.iter().map(|port| is_slower(&port) && is_clear(&port)).collect()
    }

    /// By port, whether the parameters exclude it.
    fn excluded(&self, params: &ImportParams) -> Result<Vec<bool>> {
        let nodes = &self.fabric.nodes;
        for (name, patterns) in [("networks", &params.networks), ("leave_out", &params.leave_out)] {
            let is_unused = |pattern: &&String| !nodes.iter().any(|node| matches(pattern, node));
            if let Some(pattern) = patterns.iter().find(is_unused) {
                let switches = nodes.iter().filter(|node| node.kind == NodeKind::Switch);
                let problem = format!("matches nothing: no switch, host or adapter is `{pattern}`");
                let help = format!(
                    "the switches are {}",
                    shown(&switches.map(FabricNode::label).collect::<Vec<_>>())
                );
                return Err(ImportError::parameter(name, problem, help));
            }
        }
        let kept: BTreeSet<usize> = (0..nodes.len())
            .filter(|&node| nodes[node].kind == NodeKind::Switch && any(&params.networks, &nodes[node]))
            .map(|node| self.part[node])
            .collect();
        let is_out = |port: &Port<'_>| {
            let is_kept = params.networks.is_empty()
                || kept.contains(&self.part[port.switch])
                || any(&params.networks, &nodes[port.adapter]);
            !is_kept || [port.adapter, port.switch].iter().any(|&node| any(&params.leave_out, &nodes[node]))
        };
        Ok(self.ports.iter().map(is_out).collect())
    }

    /// Without excluded nodes, adapters and switches that have lost all their cables, and networks that have lost
    /// all their hosts, or all that another one has as well.
    fn nodes_that_stay(&self, out: &[bool], params: &ImportParams) -> Vec<bool> {
        let nodes = &self.fabric.nodes;
        let mut stays: Vec<bool> = nodes.iter().map(|node| !any(&params.leave_out, node)).collect();
        let mut kept_hosts: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
        let mut out_hosts = kept_hosts.clone();
        for (port, out) in self.ports.iter().zip(out) {
            let hosts = if *out { &mut out_hosts } else { &mut kept_hosts };
            hosts.entry(self.part[port.switch]).or_default().insert(port.host);
        }
        let none = BTreeSet::new();
        let is_gone = |part: usize| {
            let (kept, out) = (kept_hosts.get(&part).unwrap_or(&none), out_hosts.get(&part).unwrap_or(&none));
            let is_given = !params.leave_out.is_empty() || !params.networks.is_empty();
            !out.is_empty() && (kept.is_empty() || (!is_given && kept.is_disjoint(out)))
        };
        let gone: BTreeSet<usize> = out_hosts.keys().copied().filter(|&part| is_gone(part)).collect();
        (0..nodes.len()).filter(|&node| gone.contains(&self.part[node])).for_each(|node| stays[node] = false);
        // A node that still has one of its cables stays.
        let mut cables: BTreeMap<usize, bool> = BTreeMap::new();
        for (port, out) in self.ports.iter().zip(out) {
            for node in [port.adapter, port.switch] {
                *cables.entry(node).or_default() |= !*out && stays[port.switch];
            }
        }
        let is_direct = |link: &&FabricLink| {
            [link.source, link.destination].iter().all(|&node| nodes[node].kind == NodeKind::Host)
        };
        let direct: BTreeSet<usize> =
            self.fabric.links.iter().filter(is_direct).map(|link| link.source).collect();
        for (node, _) in cables.into_iter().filter(|(node, has_one)| !has_one && !direct.contains(node)) {
            stays[node] = false;
        }
        stays
    }

    fn hosts_lost(&self, stays: &[bool]) -> Vec<&str> {
        let hosts = |is_there: bool| -> BTreeSet<&str> {
            let adapters = self
                .fabric
                .nodes
                .iter()
                .zip(stays)
                .filter(|(node, stays)| node.kind == NodeKind::Host && **stays == is_there);
            adapters.filter_map(|(node, _)| node.host.as_deref()).collect()
        };
        hosts(false).difference(&hosts(true)).copied().collect()
    }

    fn remark(&self, out: &[bool], stays: &[bool], lost: &[&str], is_given: bool, remarks: &mut Vec<String>) {
        let left: Vec<&Port<'_>> =
            self.ports.iter().zip(out).filter(|(_, out)| **out).map(|(port, _)| port).collect();
        if left.is_empty() && stays.iter().all(|stays| *stays) {
            return;
        }
        let switches: BTreeSet<usize> = left.iter().map(|port| port.switch).collect();
        let switches =
            shown(&switches.into_iter().map(|switch| self.fabric.nodes[switch].label()).collect::<Vec<_>>());
        let what = match is_given {
            true => "adapters left out as requested",
            false => {
                "adapters that are slower than others of their hosts, left out (`networks = [\"*\"]` keeps them)"
            }
        };
        let hosts = match lost.is_empty() {
            true => String::new(),
            false => format!("; with them hosts that have no other: {}", shown(lost)),
        };
        remarks.push(format!("{what}: {}, on {switches}{hosts}", left.len()));
    }

    /// The hosts of every switch, or of every network.
    fn hosts_by(&self, place: impl Fn(usize) -> usize) -> BTreeMap<usize, BTreeSet<&str>> {
        let mut hosts: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
        self.ports.iter().for_each(|port| _ = hosts.entry(place(port.switch)).or_default().insert(port.host));
        hosts
    }

    fn labels(&self, nodes: impl Iterator<Item = usize>) -> String {
        shown(&nodes.map(|node| self.fabric.nodes[node].label()).collect::<Vec<_>>())
    }

    /// The remark on a switch that has adapters of all the hosts of several others of its network.
    fn joining(&self) -> Option<String> {
        let hosts = self.hosts_by(|switch| switch);
        let mut by_host: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        self.ports.iter().for_each(|port| _ = by_host.entry(port.host).or_default().insert(port.switch));
        let below = |all: usize| -> BTreeSet<usize> {
            let others = hosts[&all].iter().flat_map(|host| &by_host[host]).copied();
            let is_smaller =
                |own: &BTreeSet<&str>| own.len() < hosts[&all].len() && own.is_subset(&hosts[&all]);
            others.filter(|other| self.part[*other] == self.part[all] && is_smaller(&hosts[other])).collect()
        };
        let all = hosts.keys().copied().find(|&all| below(all).len() > 1)?;
        let (name, others) = (self.fabric.nodes[all].label(), self.labels(below(all).into_iter()));
        Some(format!(
            "a switch joins all hosts of several others, so that they are equally far from each other: {name} beside {others}; `leave_out = [\"{name}\"]` leaves it out"
        ))
    }

    /// The remark on networks that join the same hosts otherwise than each other, as rails do not.
    fn several(&self) -> Option<String> {
        let (by_switch, by_part) =
            (self.hosts_by(|switch| switch), self.hosts_by(|switch| self.part[switch]));
        let switches = |part: usize| {
            let is_switch = |node: &usize| self.fabric.nodes[*node].kind == NodeKind::Switch;
            (0..self.part.len()).filter(move |node| self.part[*node] == part).filter(is_switch)
        };
        let shape =
            |part: usize| switches(part).filter_map(|node| by_switch.get(&node)).collect::<BTreeSet<_>>();
        let shares = |part: usize, hosts: &BTreeSet<&str>| {
            by_part.iter().any(|(other, others)| *other != part && hosts.intersection(others).count() > 1)
        };
        if by_part.len() > MOST_NETWORKS {
            return None;
        }
        let joined = by_part.iter().filter(|(part, hosts)| shares(**part, hosts));
        let joined: Vec<usize> = joined.map(|(part, _)| *part).collect();
        if joined.iter().map(|&part| shape(part)).collect::<BTreeSet<_>>().len() < 2 {
            return None;
        }
        let list = joined
            .iter()
            .map(|&part| format!("{} ({} hosts)", self.labels(switches(part)), by_part[&part].len()));
        let smallest = joined.iter().min_by_key(|&&part| switches(part).count())?;
        let name = self.fabric.nodes[switches(*smallest).next()?].label();
        Some(format!(
            "several networks join the same hosts, and messages take the shortest path in any of them: {}; `leave_out = [\"{name}\"]` leaves one out by its switches or adapters",
            list.collect::<Vec<_>>().join("; ")
        ))
    }
}

impl FabricNode {
    /// The description, or the address if there is none.
    fn label(&self) -> &str {
        let description = self.description.trim();
        if description.is_empty() { &self.address } else { description }
    }
}

fn root(part: &mut [usize], mut node: usize) -> usize {
    while part[node] != node {
        part[node] = part[part[node]];
        node = part[node];
    }
    node
}

/// The first names of a list, and how many follow.
fn shown(names: &[&str]) -> String {
    let more = names.len().saturating_sub(3);
    let end = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{end}", names[..names.len() - more].join(", "))
}

fn any(patterns: &[String], node: &FabricNode) -> bool {
    patterns.iter().any(|pattern| matches(pattern, node))
}

/// Whether a pattern matches the description, host, device or GUID of a node.
fn matches(pattern: &str, node: &FabricNode) -> bool {
    let is_host = node.kind == NodeKind::Host;
    let texts = [
        Some(node.description.trim()),
        Some(node.address.as_str()),
        node.host.as_deref(),
        is_host.then(|| device_of(&node.description)),
    ];
    // A pattern that is not valid is a name with a bracket.
    let escaped = || Pattern::new(&Pattern::escape(pattern));
    Pattern::new(pattern)
        .or_else(|_| escaped())
        .is_ok_and(|pattern| texts.into_iter().flatten().any(|text| pattern.matches(text)))
}
