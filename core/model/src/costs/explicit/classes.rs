//! Hosts that are alike in what ways between them cost.

use std::collections::HashMap;

use crate::{Link, LinkState, NodeKind, NodeState, RouteMetric, SystemGraph};

/// How a host hangs on the network: the switches of its ports, the direction, and what a link takes.
type Ports = Vec<(u32, bool, Width)>;

/// Latency and bandwidth of a link, as bits.
type Width = (Option<u64>, Option<u64>);

/// Hosts by class: the ways between hosts of two classes all cost the same.
///
/// Hosts that one link joins to the same switch are of one class where only the number of links counts, or where all links between
/// switches are alike. With forwarding tables or links between hosts every host is a class of its own.
pub(super) struct Classes {
    /// The class of every host, in the order of the slots.
    pub(super) of: Vec<usize>,
    /// The hosts of every class.
    pub(super) members: Vec<Vec<usize>>,
}

impl Classes {
    /// Of hosts given by node, first slot and number of slots.
    pub(super) fn new(system: &SystemGraph, hosts: &[(u32, u32, u32)], metric: RouteMetric) -> Self {
        let of = match is_regular(system, metric) {
            true => by_ports(system, hosts),
            false => (0..hosts.len()).collect(),
        };
        let mut members = vec![Vec::new(); of.iter().max().map_or(0, |most| most + 1)];
        of.iter().enumerate().for_each(|(host, &class)| members[class].push(host));
        Self { of, members }
    }
}

/// Whether ways with equally many links between switches cost the same.
fn is_regular(system: &SystemGraph, metric: RouteMetric) -> bool {
    let is_host = |node: u32| system.nodes[node as usize].kind == NodeKind::Host;
    let mut between = system.links.iter().filter(|link| !is_host(link.source) && !is_host(link.destination));
    let first = between.next().map(width);
    system.routing.forwarding.is_empty()
        && !system.links.iter().any(|link| is_host(link.source) && is_host(link.destination))
        && (metric == RouteMetric::Hops || between.all(|link| Some(width(link)) == first))
}

fn width(link: &Link) -> Width {
    let bits = |number: Option<f64>| number.map(f64::to_bits);
    (bits(link.latency_s), bits(link.bandwidth_bytes_per_s))
}

fn by_ports(system: &SystemGraph, hosts: &[(u32, u32, u32)]) -> Vec<usize> {
    let is_host = |node: u32| system.nodes[node as usize].kind == NodeKind::Host;
    let is_up = |node: u32| system.nodes[node as usize].state == NodeState::Up;
    let mut ports: HashMap<u32, Ports> = HashMap::new();
    for link in system.links.iter().filter(|link| link.state == LinkState::Up) {
        let (host, switch, is_sent) = match (is_host(link.source), is_host(link.destination)) {
            (true, _) => (link.source, link.destination, true),
            (_, true) => (link.destination, link.source, false),
            (false, false) => continue,
        };
        if is_up(host) && is_up(switch) {
            ports.entry(host).or_default().push((switch, is_sent, width(link)));
        }
    }
    let mut classes: HashMap<Ports, usize> = HashMap::new();
    let mut next = 0;
    let mut new = || {
        next += 1;
        next - 1
    };
    let class = |&(node, ..): &(u32, u32, u32)| match ports.remove(&node) {
        Some(mut own) if own.len() == 2 => {
            own.sort_unstable();
            *classes.entry(own).or_insert_with(&mut new)
        }
        _ => new(),
    };
    hosts.iter().map(class).collect()
}
