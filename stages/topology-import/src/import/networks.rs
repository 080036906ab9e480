//! The networks of a machine, and which of them are left out.
//!
//! A network is a part that is joined to the others only through hosts. Storage and management often have their
//! own one, or their own adapters and switches below common spines: if all hosts have such an adapter, all pairs
//! of hosts are near each other, which says nothing about the network that messages take.

mod choice;
mod members;
mod rails;

use std::collections::{BTreeMap, BTreeSet};

use hopmap_graph::DisjointSets;
use hopmap_model::{Link, LinkState, NodeKind};

use super::{ImportError, ImportParams, Result};
pub(super) use choice::{Choice, Listed};
pub(super) use members::Member;
use members::{Patterns, any, matches, patterns, patterns_of};
use rails::Cabling;

/// Leaves out what the parameters exclude, and, unless they say which networks stay, the adapters that are slower than
/// others of their hosts, if these are those of a network and the rest still joins all hosts that were joined. Several networks that are
/// left are a remark, and so are hosts that no path joins.
pub(super) fn choose(
    nodes: &[Member<'_>],
    links: &[Link],
    params: &ImportParams,
    remarks: &mut Vec<String>,
) -> Result<Choice> {
    let mut choice = Choice::new(vec![true; nodes.len()], links.len());
    let mut networks = Networks::new(nodes, links, &choice);
    if !(params.networks.is_empty() && params.leave_out.is_empty()) {
        let left_out = patterns(&params.leave_out);
        let out = networks.excluded(params, &left_out)?;
        choice = networks.choice(&out, true, &left_out);
        let left = Networks::new(nodes, links, &choice);
        let [kept, lost] = networks.kept_and_lost(&left);
        if kept.is_empty() {
            let name = if params.leave_out.is_empty() { "networks" } else { "leave_out" };
            return Err(ImportError::parameter(name, "leaves no hosts", "keep the network of the hosts"));
        }
        remarks.extend(networks.left_out(&out, &choice, &lost, true));
        networks = left;
    }
    if params.networks.is_empty() {
        let out = networks.slower();
        let faster = choice.and(&networks.choice(&out, false, &[]));
        let left = Networks::new(nodes, links, &faster);
        let [kept, lost] = networks.kept_and_lost(&left);
        let is_joined = left.apart().len() <= networks.apart().len();
        if out.contains(&true) && lost.len() < kept.len() && is_joined {
            remarks.extend(networks.left_out(&out, &faster, &lost, false));
            (choice, networks) = (faster, left);
        }
    }
    remarks.extend(networks.several(params));
    remarks.extend(networks.unconnected());
    Ok(choice)
}

/// Whether one of the patterns of `leave_out` matches a name.
pub(super) fn is_left_out(name: &str, leave_out: &[String]) -> bool {
    patterns(leave_out).iter().any(|[pattern, _]| pattern.matches(name))
}

/// Parts that a remark lists.
const MOST_SHOWN: usize = 9;

/// Networks whose parameter a remark gives.
const MOST_OFFERED: usize = 3;

/// Sets of networks that are compared pair by pair.
const MOST_SETS: usize = 1000;

/// One direction of a cable between an adapter and a switch.
struct Port {
    host: usize,
    adapter: usize,
    switch: usize,
    rate: f64,
    link: usize,
    /// Whether the direction is from the adapter.
    is_first: bool,
}

/// The cables of all hosts.
struct Networks<'a> {
    nodes: &'a [Member<'a>],
    ports: Vec<Port>,
    links: usize,
    /// By switch, the number of its network.
    part: Vec<u32>,
    /// By node, a number for all that a path joins.
    joined: Vec<u32>,
    stays: Vec<bool>,
    /// Adapters with cables to other adapters.
    direct: BTreeSet<usize>,
    /// The highest rate of each host.
    fastest: BTreeMap<usize, f64>,
}

impl<'a> Networks<'a> {
    fn new(nodes: &'a [Member<'a>], links: &[Link], choice: &Choice) -> Self {
        let [mut part, mut joined] = [(); 2].map(|()| DisjointSets::new(nodes.len()));
        for (adapter, node) in nodes.iter().enumerate() {
            joined.join(node.host, adapter);
        }
        let (mut ports, mut direct) = (Vec::new(), BTreeSet::new());
        let mut fastest: BTreeMap<usize, f64> = BTreeMap::new();
        for (at, link) in links.iter().enumerate() {
            let ends = [link.source as usize, link.destination as usize];
            if !choice.links[at] || ends.iter().any(|&end| !choice.nodes[end]) {
                continue;
            }
            if link.state == LinkState::Up {
                joined.join(ends[0], ends[1]);
            }
            let (adapter, switch) = match ends.map(|end| nodes[end].kind) {
                [NodeKind::Switch, NodeKind::Switch] => {
                    part.join(ends[0], ends[1]);
                    continue;
                }
                [NodeKind::Host, NodeKind::Host] => {
                    direct.extend(ends);
                    continue;
                }
                [NodeKind::Host, NodeKind::Switch] => (ends[0], ends[1]),
                [NodeKind::Switch, NodeKind::Host] => (ends[1], ends[0]),
            };
            let (host, rate) = (nodes[adapter].host, link.bandwidth_bytes_per_s.unwrap_or(f64::INFINITY));
            if rate.is_finite() {
                let most = fastest.entry(host).or_insert(rate);
                *most = rate.max(*most);
            }
            ports.push(Port { host, adapter, switch, rate, link: at, is_first: ends[0] == adapter });
        }
        let [part, joined] = [part, joined].map(|mut sets| sets.numbers());
        Self { nodes, ports, links: links.len(), part, joined, stays: choice.nodes.clone(), direct, fastest }
    }

    /// By port, whether it is slower than another of its host, and one of a network, or of the adapters of a
    /// switch, that are. One slow cable among equal ones is a fault of that cable.
    fn slower(&self) -> Vec<bool> {
        let is_slower = |port: &&Port| self.fastest.get(&port.host).is_some_and(|most| port.rate < *most);
        let mut slow: BTreeMap<usize, f64> = BTreeMap::new();
        for port in self.ports.iter().filter(is_slower) {
            let least = slow.entry(port.switch).or_insert(port.rate);
            *least = least.min(port.rate);
        }
        // The hosts of a switch, or of a network, that have a faster adapter; and those that have it elsewhere.
        let mut hosts: BTreeMap<(bool, usize), [BTreeSet<usize>; 2]> = BTreeMap::new();
        for port in &self.ports {
            let Some(least) = slow.get(&port.switch) else { continue };
            let has_faster = self.fastest.get(&port.host).is_some_and(|most| most > least);
            for place in [(false, port.switch), (true, self.part[port.switch] as usize)]
                .into_iter()
                .filter(|_| has_faster)
            {
                let [fast, slow] = hosts.entry(place).or_default();
                _ = if is_slower(&port) { slow.insert(port.host) } else { fast.insert(port.host) };
            }
        }
        let counts: BTreeMap<_, _> = hosts
            .into_iter()
            .map(|(place, [fast, slow])| (place, (fast.difference(&slow).count(), slow.len())))
            .collect();
        let of = |place| counts.get(&place).copied().unwrap_or_default();
        let is_clear = |port: &Port| {
            let (fast, slow) = of((false, port.switch));
            (slow > 1 && slow > fast) || of((true, self.part[port.switch] as usize)).0 == 0
        };
        self.ports.iter().map(|port| is_slower(&port) && is_clear(port)).collect()
    }

    /// The hosts that are still there in what is left, and those that are not.
    fn kept_and_lost(&self, left: &Self) -> [Vec<usize>; 2] {
        let kept: BTreeSet<usize> = left.apart().into_iter().flatten().collect();
        let (kept, lost) = self.apart().into_iter().flatten().partition(|host| kept.contains(host));
        [kept, lost]
    }

    /// By port, whether the parameters exclude it.
    fn excluded(&self, params: &ImportParams, left_out: &[Patterns]) -> Result<Vec<bool>> {
        let kept = patterns(&params.networks);
        for (name, texts, patterns) in
            [("networks", &params.networks, &*kept), ("leave_out", &params.leave_out, left_out)]
        {
            let is_unused =
                |(_, pattern): &(&String, &Patterns)| !self.nodes.iter().any(|node| matches(pattern, node));
            if let Some((pattern, _)) = texts.iter().zip(patterns).find(is_unused) {
                let problem = format!("matches nothing: no switch, host or adapter is `{pattern}`");
                let switches = (0..self.nodes.len()).filter(|&node| self.is_switch(node));
                let help = format!("the switches are {}", self.names(switches));
                return Err(ImportError::parameter(name, problem, help));
            }
        }
        let parts: BTreeSet<u32> = (0..self.nodes.len())
            .filter(|&node| self.is_switch(node) && any(&kept, &self.nodes[node]))
            .map(|node| self.part[node])
            .collect();
        let is_out = |port: &Port| {
            let is_kept = params.networks.is_empty()
                || parts.contains(&self.part[port.switch])
                || any(&kept, &self.nodes[port.adapter]);
            !is_kept || [port.adapter, port.switch].iter().any(|&node| any(left_out, &self.nodes[node]))
        };
        Ok(self.ports.iter().map(is_out).collect())
    }

    /// Without excluded nodes, adapters and switches that have lost all their cables, and networks that have lost
    /// all their hosts, or all that another one has as well.
    fn choice(&self, out: &[bool], is_given: bool, left_out: &[Patterns]) -> Choice {
        let mut stays: Vec<bool> = self.nodes.iter().map(|node| !any(left_out, node)).collect();
        let mut hosts: BTreeMap<u32, [BTreeSet<usize>; 2]> = BTreeMap::new();
        for (port, out) in self.ports.iter().zip(out) {
            hosts.entry(self.part[port.switch]).or_default()[usize::from(*out)].insert(port.host);
        }
        let is_gone = |part: &u32| {
            hosts.get(part).is_some_and(|[kept, out]| {
                !out.is_empty() && (kept.is_empty() || (!is_given && kept.is_disjoint(out)))
            })
        };
        let gone: BTreeSet<u32> = hosts.keys().copied().filter(is_gone).collect();
        (0..stays.len()).filter(|&node| gone.contains(&self.part[node])).for_each(|node| stays[node] = false);
        // A node that still has one of its cables stays.
        let mut cables: BTreeMap<usize, bool> = BTreeMap::new();
        for (port, out) in self.ports.iter().zip(out) {
            for node in [port.adapter, port.switch] {
                *cables.entry(node).or_default() |= !*out && stays[port.switch];
            }
        }
        for (node, _) in cables.into_iter().filter(|(node, has_one)| !has_one && !self.direct.contains(node))
        {
            stays[node] = false;
        }
        let mut choice = Choice::new(stays, self.links);
        let removed = self.ports.iter().zip(out).filter(|(_, out)| **out);
        removed.for_each(|(port, _)| choice.links[port.link] = false);
        choice
    }

    fn is_switch(&self, node: usize) -> bool {
        self.nodes[node].kind == NodeKind::Switch
    }

    /// The remark on what is left out.
    fn left_out(&self, out: &[bool], choice: &Choice, lost: &[usize], is_given: bool) -> Option<String> {
        let left = || self.ports.iter().zip(out).filter(|(port, out)| **out && port.is_first);
        if left().next().is_none() && choice.nodes.iter().all(|stays| *stays) {
            return None;
        }
        let switches: BTreeSet<usize> = left().map(|(port, _)| port.switch).collect();
        if switches.is_empty() {
            let gone = (0..self.nodes.len()).filter(|&node| self.stays[node] && !choice.nodes[node]);
            return Some(format!("left out as requested: {}", self.names(gone)));
        }
        let what = match is_given {
            true => "adapters left out as requested",
            false => {
                "adapters that are slower than others of their hosts, left out (`networks = [\"*\"]` keeps them)"
            }
        };
        let lost = match lost.is_empty() {
            true => String::new(),
            false => format!("; with them hosts that have no other: {}", self.names(lost.iter().copied())),
        };
        Some(format!("{what}: {}, on {}{lost}", left().count(), self.names(switches.into_iter())))
    }

    fn names(&self, nodes: impl Iterator<Item = usize>) -> String {
        shown(nodes.map(|node| self.nodes[node].name.to_owned()), 3, ", ")
    }

    /// The remark on networks that join the same hosts otherwise than each other, unless each is named: those that the parameters keep by
    /// name are kept knowingly, but not those that are cabled to them. Without rates nothing tells rails from storage.
    fn several(&self, params: &ImportParams) -> Option<String> {
        let cabling = Cabling::new(self.ports.iter().map(|port| (port.host, port.switch)));
        let mut networks = cabling.crossing();
        let kept = patterns(&params.networks);
        let is_kept = |own: &Vec<usize>| own.iter().any(|&node| any(&kept, &self.nodes[node]));
        if networks.iter().all(is_kept) {
            let mut parts: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
            let are_told = !(kept.is_empty() && self.fastest.is_empty());
            for node in (0..self.nodes.len()).filter(|&node| self.is_switch(node) && !are_told) {
                parts.entry(self.part[node]).or_default().push(node);
            }
            networks = cabling.several(parts.into_values().collect());
        }
        let list = networks
            .iter()
            .map(|own| format!("{} ({} hosts)", self.names(own.iter().copied()), cabling.hosts(own).len()));
        let offers: Vec<String> = networks
            .iter()
            .take(MOST_OFFERED)
            .map(|own| format!("`leave_out = [{}]`", patterns_of(self.nodes, own)))
            .collect();
        networks.first()?;
        Some(format!(
            "several networks join the same hosts, and messages take the shortest path in any of them: {}; topology/import leaves out what messages do not take by its switches or adapters: {}",
            shown(list, MOST_SHOWN, "; "),
            offers.join(" or ")
        ))
    }

    /// The hosts of every part that no path joins to the others, most first.
    fn apart(&self) -> Vec<BTreeSet<usize>> {
        let mut parts: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
        for node in (0..self.nodes.len()).filter(|&node| !self.is_switch(node) && self.stays[node]) {
            parts.entry(self.joined[node]).or_default().insert(self.nodes[node].host);
        }
        let mut parts: Vec<_> = parts.into_values().collect();
        parts.sort_by_key(|hosts| std::cmp::Reverse(hosts.len()));
        parts
    }

    /// The remark on hosts that no path joins. Hosts do not forward messages between switches.
    fn unconnected(&self) -> Option<String> {
        let parts = self.apart();
        if parts.len() > 1 && self.links > 0 {
            let name = |hosts: &BTreeSet<usize>| Some(self.nodes[*hosts.first()?].name);
            let list =
                parts.iter().filter_map(|hosts| Some(format!("{} with `{}`", hosts.len(), name(hosts)?)));
            let (count, list) = (parts.len(), shown(list, MOST_SHOWN, "; "));
            return Some(format!(
                "parts that no path joins, so that they cannot communicate: {count}, by hosts {list}"
            ));
        }
        let mut networks: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
        for port in &self.ports {
            networks.entry(port.host).or_default().insert(self.part[port.switch]);
        }
        let first: BTreeMap<&BTreeSet<u32>, usize> =
            networks.iter().map(|(host, own)| (own, *host)).collect();
        let first: Vec<_> = first.into_iter().take(MOST_SETS).filter(|_| self.direct.is_empty()).collect();
        let [a, b] = first.iter().find_map(|(own, host)| {
            Some([*host, first.iter().find(|(other, _)| own.is_disjoint(other))?.1])
        })?;
        let [a, b] = [a, b].map(|host| self.nodes[host].name);
        Some(format!(
            "hosts that no path joins, as they have no network in common: `{a}` and `{b}`, and those like them"
        ))
    }
}

/// The first texts of a list, and how many follow.
fn shown(texts: impl Iterator<Item = String>, most: usize, between: &str) -> String {
    let texts: Vec<String> = texts.collect();
    let more = texts.len().saturating_sub(most);
    let end = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{end}", texts[..texts.len() - more].join(between))
}
