//! Paths in any network: by forwarding tables, or over the fewest links.

use std::sync::OnceLock;

use super::neighbours::{Bundle, Bundles, Neighbours, nth_link};
use crate::system_graph::{Forward, Link, LinkState, NodeKind, NodeState, SystemGraph, Ties};
use hopmap_graph::distances;

/// Distance of unreachable nodes.
const UNREACHED: u16 = u16::MAX;

/// Paths in a network that is not a tree.
///
/// Only switches forward messages; in a machine without switches, hosts do. Between hosts with several ports,
/// the two ports with the shortest path are used; ties are broken by the numbers of both hosts, which spreads
/// partners over ports.
#[derive(Debug, Clone)]
pub(super) struct Network {
    /// Source and destination of every link.
    ends: Vec<(u32, u32)>,
    out: Neighbours,
    into: Neighbours,
    bundles: Bundles,
    /// Whether a link counts: it and its ends are up.
    is_up: Vec<bool>,
    /// Whether a node forwards messages.
    forwards: Vec<bool>,
    /// Index of a node among the hosts; zero for switches.
    ordinal: Vec<u32>,
    /// Divisor of the destination number when a node chooses an upward link, so that switches farther from
    /// the hosts use other digits than those next to them (D-mod-K). Downwards, parallel cables are chosen as
    /// on the way up.
    divider: Vec<u64>,
    ties: Ties,
    tables: Option<Tables>,
    /// For each destination, the number of links from every node, computed on demand; for hosts by the tables.
    distances: Vec<OnceLock<Box<[u16]>>>,
}

impl Network {
    pub(super) fn new(system: &SystemGraph) -> Self {
        let nodes = system.nodes.len();
        let is_up = |node: u32| system.nodes[node as usize].state == NodeState::Up;
        let counts = |link: &Link| {
            link.state == LinkState::Up
                && is_up(link.source)
                && is_up(link.destination)
                && link.source != link.destination
        };
        let out = Neighbours::new(nodes, &system.links, counts);
        let into = Neighbours::incoming(nodes, &system.links, counts);
        let is_host: Vec<bool> = system.nodes.iter().map(|node| node.kind == NodeKind::Host).collect();
        let without_switches = is_host.iter().all(|&is_host| is_host);
        let forwards = is_host.iter().map(|&is_host| !is_host || without_switches).collect();
        let mut hosts = 0;
        let ordinal = is_host.iter().map(|&is_host| {
            hosts += u32::from(is_host);
            if is_host { hosts - 1 } else { 0 }
        });
        Self {
            ends: system.links.iter().map(|link| (link.source, link.destination)).collect(),
            forwards,
            ordinal: ordinal.collect(),
            divider: dividers(&is_host, &out),
            bundles: Bundles::new(&out, nodes),
            is_up: system.links.iter().map(counts).collect(),
            ties: system.routing.ties,
            tables: (!system.routing.forwarding.is_empty())
                .then(|| Tables::new(&system.routing.forwarding, system.links.len())),
            distances: vec![OnceLock::new(); nodes],
            out,
            into,
        }
    }

    /// Appends the links from `a` to `b`, two distinct nodes, in order. Returns `false` and leaves `links`
    /// empty if `b` is unreachable.
    pub(super) fn path(&self, a: u32, b: u32, links: &mut Vec<u32>) -> bool {
        links.clear();
        let found = match self.forwards[b as usize] {
            true => self.between(a, b, b, links),
            false => self.to_host(a, b, links),
        };
        if !found {
            links.clear();
        }
        found
    }

    /// The number of links from `a` to `b`, two distinct nodes.
    pub(super) fn hops(&self, a: u32, b: u32) -> Option<u32> {
        let reached = |hops: u16| (hops != UNREACHED).then_some(u32::from(hops));
        match (self.out.of(a), self.into.of(b)) {
            _ if self.tables.is_none() && self.forwards[b as usize] => reached(self.distances(b)[a as usize]),
            // For hosts with one port each, only the paths between their switches differ.
            (&[(first, link)], &[(last, port)])
                if [a, b].iter().all(|&host| !self.forwards[host as usize])
                    && self.forwards[first as usize]
                    && self.forwards[last as usize] =>
            {
                let Some(tables) = &self.tables else {
                    return reached(self.distances(last)[first as usize]).map(|hops| hops + 2);
                };
                let sends = tables.entry(a, port).is_none_or(|own| own == link);
                let hops = self.distances_by_tables(tables, port, b)[first as usize];
                reached(hops).filter(|_| sends).map(|hops| hops + 1)
            }
            _ => {
                let mut links = Vec::new();
                self.path(a, b, &mut links).then_some(links.len() as u32)
            }
        }
    }

    /// Path to a host that does not forward: over one of its ports.
    fn to_host(&self, a: u32, b: u32, links: &mut Vec<u32>) -> bool {
        if let Some(&(_, link)) = self.out.of(a).iter().find(|(node, _)| *node == b) {
            links.push(link);
            return true;
        }
        let (ports, firsts) = (self.into.of(b), self.firsts(a));
        if let ([port], [first]) = (ports, firsts.as_slice()) {
            return self.to_port(a, *port, b, *first, links);
        }
        // Parallel links to one switch are counted, not tried: pairs of thousands of ports took minutes.
        let (mut shortest, mut equal) = (usize::MAX, Vec::<((u32, u32), u64)>::new());
        for &port in ports {
            let own = self.own_link(a, port.1);
            for (start, count) in self.starts(a, own) {
                let Some(length) = self.length(start, port).filter(|&length| length <= shortest) else {
                    continue;
                };
                if length < shortest {
                    shortest = length;
                    equal.clear();
                }
                match equal.last_mut() {
                    Some((last, all)) if *last == port => *all += count,
                    _ => equal.push((port, count)),
                }
            }
        }
        let both = u64::from(self.ordinal[a as usize]) + u64::from(self.ordinal[b as usize]);
        let all = equal.iter().map(|(_, count)| count).sum();
        let Some(mut place) = both.checked_rem(all) else { return false };
        let chosen = equal.iter().find(|(_, count)| match place.checked_sub(*count) {
            Some(left) => {
                place = left;
                false
            }
            None => true,
        });
        let Some(&(port, _)) = chosen else { return false };
        let own = self.own_link(a, port.1);
        let is_equal = |first: &&Option<u32>| {
            (first.is_none() || own.is_none() || own == **first)
                && self.length(first.map_or(a, |link| self.ends[link as usize].1), port) == Some(shortest)
        };
        match firsts.iter().filter(is_equal).nth(place as usize) {
            Some(&first) => self.to_port(a, port, b, first, links),
            None => false,
        }
    }

    /// The only link by which the tables let a host send to the last link, if they say so.
    fn own_link(&self, a: u32, last: u32) -> Option<u32> {
        self.tables.as_ref().filter(|_| !self.forwards[a as usize])?.entry(a, last)
    }

    /// The nodes at which paths of `a` begin, and the number of links to each; by the only link `own`, if there is one.
    fn starts(&self, a: u32, own: Option<u32>) -> impl Iterator<Item = (u32, u64)> {
        let only = match own {
            _ if self.forwards[a as usize] => Some((a, 1)),
            Some(link) if self.leaves(a, link) => Some((self.ends[link as usize].1, 1)),
            _ => None,
        };
        let bundles = if only.is_some() || own.is_some() { &[][..] } else { self.bundles.of(a) };
        let starts = bundles.iter().map(|bundle| (bundle.to, bundle.links.len() as u64));
        only.into_iter().chain(starts)
    }

    /// Whether a link counts and leaves a node.
    fn leaves(&self, node: u32, link: u32) -> bool {
        self.is_up[link as usize] && self.ends[link as usize].0 == node
    }

    /// The number of links from a switch to a port, without or with the last one, always in the same way.
    fn length(&self, start: u32, (switch, last): (u32, u32)) -> Option<usize> {
        if !self.forwards[switch as usize] || !self.forwards[start as usize] {
            return None;
        }
        let Some(tables) = &self.tables else {
            let distance = self.distances(switch)[start as usize];
            return (distance != UNREACHED).then_some(usize::from(distance));
        };
        let mut links = Vec::new();
        self.by_tables(tables, start, last, &mut links).then_some(links.len())
    }

    /// The candidate ports of a sending node, or `None` if there is no choice.
    fn firsts(&self, a: u32) -> Vec<Option<u32>> {
        match self.forwards[a as usize] {
            true => vec![None],
            false => self.out.of(a).iter().map(|&(_, link)| Some(link)).collect(),
        }
    }

    /// Path to one port of a host, the link `last` from `switch`; if `a` is a host, from its port `first`.
    fn to_port(
        &self,
        a: u32,
        (switch, last): (u32, u32),
        b: u32,
        first: Option<u32>,
        links: &mut Vec<u32>,
    ) -> bool {
        if !self.forwards[switch as usize] {
            return false;
        }
        let start = match first {
            Some(link) => {
                links.push(link);
                self.ends[link as usize].1
            }
            None => a,
        };
        if !self.forwards[start as usize] {
            return false;
        }
        match &self.tables {
            // A host whose table selects a port sends by no other.
            Some(tables) => {
                (first.is_none() || tables.entry(a, last).is_none_or(|own| Some(own) == first))
                    && self.by_tables(tables, start, last, links)
            }
            None => {
                let found = self.between(start, switch, b, links);
                links.push(last);
                found
            }
        }
    }

    /// Follows the tables from a switch to the last link.
    fn by_tables(&self, tables: &Tables, start: u32, last: u32, links: &mut Vec<u32>) -> bool {
        let mut node = start;
        for _ in 0..self.forwards.len() {
            let Some((link, next)) = self.next_by_tables(tables, node, last) else { return false };
            links.push(link);
            if link == last {
                return true;
            }
            node = next;
        }
        false
    }

    /// The link that a switch chooses for messages to the last link, and where it leads; `None` if they are lost.
    fn next_by_tables(&self, tables: &Tables, node: u32, last: u32) -> Option<(u32, u32)> {
        let link = tables.entry(node, last)?;
        let (_, next) = self.ends[link as usize];
        (self.leaves(node, link) && (link == last || self.forwards[next as usize])).then_some((link, next))
    }

    /// The number of links from every switch by the tables to `host`, which has the link `last` only.
    fn distances_by_tables(&self, tables: &Tables, last: u32, host: u32) -> &[u16] {
        self.distances[host as usize].get_or_init(|| {
            let mut distances = vec![UNREACHED; self.forwards.len()].into_boxed_slice();
            distances[host as usize] = 0;
            let mut is_seen = vec![false; self.forwards.len()];
            let mut route = Vec::new();
            for &(start, _) in tables.to(last) {
                let mut node = start;
                while node != host && !is_seen[node as usize] {
                    is_seen[node as usize] = true;
                    let Some((_, next)) = self.next_by_tables(tables, node, last) else { break };
                    route.push(node);
                    node = next;
                }
                let mut hops = distances[node as usize];
                for node in route.drain(..).rev() {
                    hops = hops.saturating_add(1);
                    distances[node as usize] = hops;
                }
            }
            distances
        })
    }

    /// Shortest path to a forwarding node; `b` is the final destination.
    fn between(&self, start: u32, end: u32, b: u32, links: &mut Vec<u32>) -> bool {
        let distances = self.distances(end);
        let mut node = start;
        if distances[node as usize] == UNREACHED {
            return false;
        }
        while node != end {
            let nearer = distances[node as usize] - 1;
            let is_nearer = |bundle: &&Bundle| {
                distances[bundle.to as usize] == nearer && self.forwards[bundle.to as usize]
            };
            let ways = self.bundles.of(node).iter().filter(is_nearer);
            let chosen = match self.ties {
                Ties::First => ways.map(|bundle| bundle.links[0]).next(),
                Ties::Spread => {
                    let (mut count, mut below) = (0, u64::MAX);
                    for bundle in ways.clone() {
                        count += bundle.links.len() as u64;
                        below = below.min(self.divider[bundle.to as usize]);
                    }
                    let divider = self.divider[node as usize].min(below);
                    let digit = u64::from(self.ordinal[b as usize]) / divider;
                    digit.checked_rem(count).and_then(|place| nth_link(ways, place as usize))
                }
            };
            let Some(link) = chosen else { return false };
            let next = self.ends[link as usize].1;
            links.push(link);
            node = next;
        }
        true
    }

    /// The number of links to `end` from every forwarding node and every sending host.
    fn distances(&self, end: u32) -> &[u16] {
        self.distances[end as usize].get_or_init(|| {
            let mut distances = vec![UNREACHED; self.forwards.len()].into_boxed_slice();
            distances[end as usize] = 0;
            let mut queue = vec![end];
            let mut next = 0;
            while let Some(&node) = queue.get(next) {
                next += 1;
                let distance = distances[node as usize] + 1;
                // Nodes that do not forward can only be the start of a path.
                if distance == UNREACHED || !self.forwards[node as usize] {
                    continue;
                }
                for &(other, _) in self.into.of(node) {
                    if distances[other as usize] == UNREACHED {
                        distances[other as usize] = distance;
                        queue.push(other);
                    }
                }
            }
            distances
        })
    }
}

/// Forwarding tables by last link, because the paths to one destination are looked up one after the other:
/// its entries stay in the cache.
#[derive(Debug, Clone)]
struct Tables {
    /// Where the entries of each last link begin.
    first: Vec<u32>,
    /// Node and next link, by last link and node.
    entries: Vec<(u32, u32)>,
}

impl Tables {
    /// `forwarding` is sorted by node.
    fn new(forwarding: &[Forward], links: usize) -> Self {
        let mut first = vec![0; links + 1];
        forwarding.iter().for_each(|entry| first[entry.last as usize + 1] += 1);
        for link in 0..links {
            first[link + 1] += first[link];
        }
        let mut next = first.clone();
        let mut entries = vec![(0, 0); forwarding.len()];
        for entry in forwarding {
            let place = &mut next[entry.last as usize];
            entries[*place as usize] = (entry.node, entry.link);
            *place += 1;
        }
        Self { first, entries }
    }

    /// Nodes and next links of the entries for a last link.
    fn to(&self, last: u32) -> &[(u32, u32)] {
        &self.entries[self.first[last as usize] as usize..self.first[last as usize + 1] as usize]
    }

    fn entry(&self, node: u32, last: u32) -> Option<u32> {
        let entries = self.to(last);
        let place = entries.binary_search_by_key(&node, |entry| entry.0).ok()?;
        Some(entries[place].1)
    }
}

/// For each node, the number of upward choices in the tiers below it: the product over these tiers of the
/// largest number of upward links of a node. The tier of a node is its distance to the nearest host.
fn dividers(is_host: &[bool], out: &Neighbours) -> Vec<u64> {
    let nodes = is_host.len();
    let hosts = (0..nodes).filter(|&node| is_host[node]);
    let tier = distances(nodes, hosts, |node| out.of(node as u32).iter().map(|(other, _)| *other as usize));
    let tiers = tier.iter().filter(|&&tier| tier != u32::MAX).max().map_or(1, |most| *most as usize + 1);
    let mut ways = vec![1u64; tiers];
    for node in 0..nodes as u32 {
        let own = tier[node as usize];
        if own > 0 && own != u32::MAX {
            let up = out.of(node).iter().filter(|(other, _)| tier[*other as usize] == own + 1).count();
            let ways = &mut ways[own as usize];
            *ways = (*ways).max(up as u64);
        }
    }
    // Below tier 1 there are only hosts.
    let mut below = vec![1u64; tiers + 1];
    for tier in 1..tiers {
        below[tier + 1] = below[tier].saturating_mul(ways[tier]);
    }
    tier.iter().map(|&tier| if tier == u32::MAX { 1 } else { below[tier as usize] }).collect()
}
