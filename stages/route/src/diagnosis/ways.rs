//! Streams that cannot get where they belong, each alone or all that pass the same place.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hopmap_model::{Cause, LinkState, Part};

use super::{amount, cause, short};
use crate::problem::{Flow, Problem, TOLERANCE};

/// Pairs of hosts of one stream that are looked at.
const MOST_PAIRS: usize = 10_000;
/// Nodes of a machine in which ways are looked for; it takes the square of it.
const MOST_NODES: usize = 4096;

/// Hosts that are named.
const MOST_NAMES: usize = 6;

/// A host or switch that links lead to, or away from, which carry too little together.
struct Crowd {
    node: u32,
    is_in: bool,
    links: Vec<u32>,
    /// The hosts inside of the streams that have to take the links.
    hosts: BTreeSet<u32>,
    there: f64,
    needed: f64,
}

/// The ways of a problem.
pub(super) struct Ways<'a> {
    problem: &'a Problem<'a>,
    /// By host, the best ways to every node.
    from: BTreeMap<u32, Vec<Option<Best>>>,
}

/// The best ways to a node.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Best {
    /// Links of the shortest one.
    hops: u32,
    /// What the widest one carries.
    width: f64,
}

impl<'a> Ways<'a> {
    pub(super) fn of(problem: &'a Problem<'a>) -> Self {
        Self { problem, from: BTreeMap::new() }
    }

    /// Streams that no way connects.
    pub(super) fn unconnected(&mut self) -> Vec<Cause> {
        let mut causes = Vec::new();
        for flow in &self.problem.flows {
            if let Some(pairs) = self.pairs(flow)
                && pairs.iter().all(|&pair| self.best(pair).is_none())
            {
                let words = format!(
                    "no way leads where {} would have to go",
                    self.name(flow, pairs.first().copied())
                );
                causes.push(cause(Part::Stream, &self.short_name(flow), words));
            }
        }
        causes
    }

    /// Streams that no way can carry, each alone.
    pub(super) fn alone(&mut self) -> Vec<Cause> {
        let rules = self.problem.rules;
        let mut causes = Vec::new();
        for flow in &self.problem.flows {
            let Some(pairs) = self.pairs(flow) else { continue };
            let best: Vec<Best> = pairs.iter().filter_map(|&pair| self.best(pair)).collect();
            let width = best.iter().map(|best| best.width).fold(0.0, f64::max);
            let Some(hops) = best.iter().map(|best| best.hops).min() else { continue };
            let name = self.name(flow, pairs.first().copied());
            let mut tell = |there: f64, needed: f64, words: String| {
                causes.push(short(Part::Stream, &self.short_name(flow), there, needed, words));
            };
            if flow.bandwidth > width * (1.0 + TOLERANCE) {
                let [needed, there] = [flow.bandwidth, width].map(amount);
                let words = format!("{name} takes {needed}, and no way carries more than {there}");
                tell(width, flow.bandwidth, words);
            }
            if let Some(most) = rules.most_hops.filter(|&most| hops > most) {
                let words = format!("{name} takes {hops} hops at least, and `most_hops` is {most}");
                tell(f64::from(most), f64::from(hops), words);
            }
            if let Some(most) = rules.switch_load.filter(|most| flow.bandwidth > most * (1.0 + TOLERANCE)) {
                let [needed, there] = [flow.bandwidth, most].map(amount);
                let words = format!("{name} takes {needed}, and `switch_load` is {there}");
                tell(most, flow.bandwidth, words);
            }
        }
        causes
    }

    /// Hosts, and switches with the hosts that only they have, that streams have to enter or leave by links that carry less together.
    pub(super) fn together(&self) -> Vec<Cause> {
        self.crowds().into_iter().map(|crowd| self.crowded(&crowd)).collect()
    }

    /// What some link carries at least more than it can, however streams go.
    pub(super) fn least_excess(&mut self) -> f64 {
        let mut least = 0.0_f64;
        for flow in &self.problem.flows {
            if let Some(pairs) = self.pairs(flow) {
                let widths = pairs.iter().filter_map(|&pair| self.best(pair)).map(|best| best.width);
                least = least.max(flow.bandwidth - widths.fold(0.0, f64::max));
            }
        }
        // The excess of a place is that of its links together.
        let of_links = |crowd: &Crowd| (crowd.needed - crowd.there) / crowd.links.len() as f64;
        self.crowds().iter().map(of_links).fold(least, f64::max)
    }

    /// Places whose links carry too little together.
    fn crowds(&self) -> Vec<Crowd> {
        let problem = self.problem;
        let mut crowds = Vec::new();
        for (node, inside) in places(problem) {
            for is_in in [true, false] {
                let crosses = |from: u32, to: u32| match is_in {
                    true => inside[to as usize] && !inside[from as usize],
                    false => inside[from as usize] && !inside[to as usize],
                };
                let flows = problem.flows.iter().filter_map(|flow| Some((self.known(flow)?, flow)));
                let flows: Vec<((u32, u32), f64)> = flows
                    .filter(|&((source, destination), _)| crosses(source, destination))
                    .map(|(ends, flow)| (ends, flow.bandwidth))
                    .collect();
                let needed: f64 = flows.iter().map(|(_, bandwidth)| bandwidth).sum();
                let links = (0..).zip(&problem.system.links);
                let links: Vec<u32> = links
                    .filter(|(_, link)| link.state == LinkState::Up && crosses(link.source, link.destination))
                    .map(|(index, _)| index)
                    .collect();
                let there: f64 = links.iter().map(|&link| problem.capacity[link as usize]).sum();
                // Without any link they are told as unconnected.
                if !links.is_empty() && needed > there * (1.0 + TOLERANCE) {
                    let hosts = flows.iter().map(|&((from, to), _)| if is_in { to } else { from }).collect();
                    crowds.push(Crowd { node, is_in, links, hosts, there, needed });
                }
            }
        }
        crowds
    }

    fn crowded(&self, crowd: &Crowd) -> Cause {
        let problem = self.problem;
        let of_node = |node: u32| problem.system.nodes[node as usize].name.as_str();
        let name = of_node(crowd.node);
        let (into, of) = if crowd.is_in { ("into", "for") } else { ("out of", "of") };
        let [there, needed] = [crowd.there, crowd.needed].map(amount);
        if problem.network.is_host(crowd.node) {
            let [link] = crowd.links.as_slice() else {
                let words = format!(
                    "the links {into} host {name} carry {there} together, and the streams {of} it take {needed}"
                );
                // The amounts of a host are those of its performance.
                return cause(Part::Host, name, words);
            };
            let link = problem.network.name_of(*link);
            let words =
                format!("link {link} carries {there}, and the streams {of} host {name} take {needed}");
            return short(Part::Link, &link, crowd.there, crowd.needed, words);
        }
        let names: Vec<&str> = crowd.hosts.iter().take(MOST_NAMES).map(|&host| of_node(host)).collect();
        let more = crowd.hosts.len().saturating_sub(MOST_NAMES);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        let words = format!(
            "the links {into} switch {name} carry {there} together, and the streams {of} {}{rest} take {needed}",
            names.join(", ")
        );
        short(Part::Switch, name, crowd.there, crowd.needed, words)
    }

    /// The hosts that a flow can join; nothing if it can stay inside one, or if there are too many to look at.
    fn pairs(&self, flow: &Flow) -> Option<Vec<(u32, u32)>> {
        let problem = self.problem;
        if problem.system.nodes.len() > MOST_NODES {
            return None;
        }
        if problem.mapped.is_some() {
            return (flow.source != flow.destination).then(|| vec![(flow.source, flow.destination)]);
        }
        if flow.source == flow.destination {
            return None;
        }
        let [sources, destinations] =
            [flow.source, flow.destination].map(|process| &problem.allowed[process as usize]);
        let [first, second] =
            [flow.source, flow.destination].map(|process| &problem.graph.demands.processes[process as usize]);
        let fits_both = |host: u32| {
            let there = problem.performance[host as usize] * (1.0 + TOLERANCE);
            destinations.contains(&host) && first.performance + second.performance <= there
        };
        let is_small = sources.len() * destinations.len() <= MOST_PAIRS;
        if !is_small || sources.iter().any(|&host| fits_both(host)) {
            return None;
        }
        let pairs = sources.iter().flat_map(|&from| destinations.iter().map(move |&to| (from, to)));
        let pairs: Vec<(u32, u32)> = pairs.filter(|(from, to)| from != to).collect();
        // A process that fits nowhere is told as such.
        (!pairs.is_empty()).then_some(pairs)
    }

    /// The hosts that a flow joins, if it can be no others.
    fn known(&self, flow: &Flow) -> Option<(u32, u32)> {
        let problem = self.problem;
        if problem.mapped.is_some() {
            return Some((flow.source, flow.destination));
        }
        let only = |process: u32| match problem.allowed[process as usize].as_slice() {
            [host] => Some(*host),
            _ => None,
        };
        Some((only(flow.source)?, only(flow.destination)?))
    }

    fn best(&mut self, (from, to): (u32, u32)) -> Option<Best> {
        let problem = self.problem;
        self.from.entry(from).or_insert_with(|| ways_from(problem, from))[to as usize]
    }

    /// A flow in words.
    fn name(&self, flow: &Flow, pair: Option<(u32, u32)>) -> String {
        let name = |node: u32| &self.problem.system.nodes[node as usize].name;
        match (&self.problem.mapped, pair) {
            (Some(_), Some((from, to))) if flow.streams.len() > 1 => {
                format!("what goes from {} to {} in {} streams", name(from), name(to), flow.streams.len())
            }
            (Some(_), Some((from, to))) => {
                format!("stream {} from {} to {}", self.short_name(flow), name(from), name(to))
            }
            _ => format!("stream {}", self.short_name(flow)),
        }
    }

    /// The processes of its first stream.
    fn short_name(&self, flow: &Flow) -> String {
        let demands = &self.problem.graph.demands;
        let first = flow.streams.first().and_then(|&stream| demands.streams.get(stream as usize));
        let name = |rank: u32| demands.processes.get(rank as usize).map_or("?", |process| &process.name);
        first.map_or_else(String::new, |stream| {
            format!("{} → {}", name(stream.source), name(stream.destination))
        })
    }
}

/// The hosts and switches of a machine that is not too large, each with the nodes that are inside: itself, and the hosts that have no other
/// switch.
fn places<'a>(problem: &'a Problem<'_>) -> impl Iterator<Item = (u32, Vec<bool>)> + use<'a> {
    let nodes = problem.system.nodes.len();
    // The only neighbour of a node, if it has no other.
    let mut only: Vec<Option<Option<u32>>> = vec![None; nodes];
    for link in &problem.system.links {
        for (node, next) in [(link.source, link.destination), (link.destination, link.source)] {
            let own = &mut only[node as usize];
            *own = Some(own.is_none_or(|known| known == Some(next)).then_some(next));
        }
    }
    let looked_at = if nodes > MOST_NODES { 0 } else { nodes as u32 };
    (0..looked_at).map(move |node| {
        let mut inside = vec![false; nodes];
        inside[node as usize] = true;
        if !problem.network.is_host(node) {
            for &host in &problem.hosts {
                inside[host as usize] = only[host as usize] == Some(Some(node));
            }
        }
        (node, inside)
    })
}

/// The best ways from a host to every node, through switches alone.
fn ways_from(problem: &Problem<'_>, from: u32) -> Vec<Option<Best>> {
    let mut best: Vec<Option<Best>> = vec![None; problem.system.nodes.len()];
    best[from as usize] = Some(Best { hops: 0, width: f64::INFINITY });
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        let Some(here) = best[node as usize] else { continue };
        if node != from && problem.network.is_host(node) {
            continue;
        }
        for &link in problem.network.leaving(node) {
            let next = problem.system.links[link as usize].destination;
            let width = here.width.min(problem.capacity[link as usize]);
            let way = Best { hops: here.hops + 1, width };
            let both = best[next as usize].map_or(way, |known| Best {
                hops: known.hops.min(way.hops),
                width: known.width.max(way.width),
            });
            if best[next as usize] != Some(both) {
                best[next as usize] = Some(both);
                queue.push_back(next);
            }
        }
    }
    best
}
