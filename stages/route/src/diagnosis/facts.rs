//! What is wrong whatever the routes: what processes ask for that hosts do not have, and streams that cannot get where they belong, each
//! alone or all that pass the same place.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hopmap_model::{Cause, LinkState, Node, Part, ProcessDemand, Slot, SwitchType, SystemGraph, TaskGraph};

use crate::Rules;
use crate::answer::checked;
use crate::engine::SearchResult;
use crate::error::Result;
use crate::instance::slots_of;
use crate::network::only_neighbours;
use crate::problem::{Flow, Plan, Problem, TOLERANCE, devices_of};

/// Capabilities, devices and hosts that are not there. They are no longer asked for in `changed`.
pub(super) fn lacking(problem: &Problem<'_>, changed: &mut Changed) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (process, demand) in changed.graph.demands.processes.iter_mut().enumerate() {
        let own = problem.mapped.as_ref().map(|hosts| &problem.system.nodes[hosts[process] as usize]);
        lacks(problem, demand, own, &mut causes);
    }
    devices_of_hosts(problem, changed, &mut causes);
    devices_of_all(problem, changed, &mut causes);
    causes
}

/// What no host has that a process could be on, or its own one where that is given.
fn lacks(problem: &Problem<'_>, demand: &mut ProcessDemand, own: Option<&Node>, causes: &mut Vec<Cause>) {
    let name = demand.name.clone();
    let mut tell = |words: String| causes.push(cause(Part::Process, &name, words));
    let hosts = || problem.hosts.iter().map(|&host| &problem.system.nodes[host as usize]);
    if let Some(wanted) = demand.host.clone() {
        let elsewhere = own.filter(|own| own.name != wanted);
        if let Some(own) = elsewhere {
            tell(format!("process {name} is on host {} and has to be on {wanted}", own.name));
            demand.host = None;
        } else if !hosts().any(|host| host.name == wanted) {
            tell(format!("process {name} has to be on {wanted}, which is no host"));
            demand.host = None;
        }
    }
    let fixed = demand.host.clone();
    let could: Vec<&Node> = match own {
        Some(own) => vec![own],
        None => hosts().filter(|host| fixed.as_ref().is_none_or(|fixed| host.name == *fixed)).collect(),
    };
    let who = match could.as_slice() {
        [only] => format!("host {} does not have", only.name),
        _ => "no host has".to_owned(),
    };
    demand.capabilities.retain(|wanted| {
        let is_there = could.iter().any(|host| host.traits.capabilities.contains(wanted));
        if !is_there {
            tell(format!("process {name} needs `{wanted}`, which {who}"));
        }
        is_there
    });
    demand.devices.retain(|device, count| {
        let is_there = could.iter().any(|host| devices_of(host, device) >= u64::from(*count));
        if !is_there {
            tell(format!("process {name} needs {count} of `{device}`, which {who}"));
        }
        is_there
    });
    let has_all = |host: &&Node| {
        demand.capabilities.iter().all(|wanted| host.traits.capabilities.contains(wanted))
            && demand.devices.iter().all(|(device, &count)| devices_of(host, device) >= u64::from(count))
    };
    if !could.iter().any(has_all) && !could.is_empty() {
        let devices = demand.devices.iter().map(|(device, count)| format!("{count} of `{device}`"));
        let all: Vec<String> =
            demand.capabilities.iter().map(|wanted| format!("`{wanted}`")).chain(devices).collect();
        tell(format!("no host has all that process {name} needs: {}", all.join(", ")));
        demand.capabilities.clear();
        demand.devices.clear();
    }
}

/// Devices of a host of which the processes that are there, or have to be, need more than there are.
fn devices_of_hosts(problem: &Problem<'_>, changed: &mut Changed, causes: &mut Vec<Cause>) {
    let at: Vec<Option<u32>> = known_hosts(problem, changed);
    let mut wanted: BTreeMap<(u32, String), u64> = BTreeMap::new();
    for (demand, host) in changed.graph.demands.processes.iter().zip(&at) {
        for (host, (device, &count)) in
            host.iter().flat_map(|&host| demand.devices.iter().map(move |of| (host, of)))
        {
            *wanted.entry((host, device.clone())).or_default() += u64::from(count);
        }
    }
    for ((host, device), count) in wanted {
        let node = &problem.system.nodes[host as usize];
        let there = devices_of(node, &device);
        if count > there {
            let words =
                format!("the processes on host {} need {count} of `{device}`, and it has {there}", node.name);
            causes.push(cause(Part::Host, &node.name, words));
            let own = changed.graph.demands.processes.iter_mut().zip(&at);
            own.filter(|(_, at)| **at == Some(host)).for_each(|(demand, _)| {
                demand.devices.remove(&device);
            });
        }
    }
}

/// Devices of which all processes need more than all hosts have.
fn devices_of_all(problem: &Problem<'_>, changed: &mut Changed, causes: &mut Vec<Cause>) {
    let mut wanted: BTreeMap<String, u64> = BTreeMap::new();
    for (device, &count) in changed.graph.demands.processes.iter().flat_map(|demand| &demand.devices) {
        *wanted.entry(device.clone()).or_default() += u64::from(count);
    }
    for (device, count) in wanted {
        let hosts = problem.hosts.iter().map(|&host| &problem.system.nodes[host as usize]);
        let there: u64 = hosts.map(|host| devices_of(host, &device)).sum();
        if count > there {
            let words =
                format!("all processes need {count} of `{device}`, and all hosts together have {there}");
            causes.push(cause(Part::Host, "all hosts", words));
            changed.graph.demands.processes.iter_mut().for_each(|demand| {
                demand.devices.remove(&device);
            });
        }
    }
}

/// The host of every process that can only be on one.
fn known_hosts(problem: &Problem<'_>, changed: &Changed) -> Vec<Option<u32>> {
    let names: BTreeMap<&str, u32> =
        problem.hosts.iter().map(|&host| (problem.system.nodes[host as usize].name.as_str(), host)).collect();
    let of_name = |demand: &ProcessDemand| names.get(demand.host.as_deref()?).copied();
    match &problem.mapped {
        Some(hosts) => hosts.iter().copied().map(Some).collect(),
        None => changed.graph.demands.processes.iter().map(of_name).collect(),
    }
}

/// Performance of which there is too little, whatever the streams and wherever processes are that may choose.
pub(super) fn too_weak(problem: &Problem<'_>) -> Vec<Cause> {
    if problem.mapped.is_some() {
        return Vec::new();
    }
    let demands = &problem.graph.demands.processes;
    let unlimited = vec![f64::INFINITY; problem.performance.len()];
    let could = problem.holding(&unlimited);
    let mut causes = Vec::new();
    let mut only: BTreeMap<u32, (f64, usize)> = BTreeMap::new();
    for (demand, could) in demands.iter().zip(&could) {
        let most = could.iter().map(|&host| problem.performance[host as usize]).fold(0.0, f64::max);
        if is_more(demand.performance, most) {
            let (name, [needed, there]) = (&demand.name, [demand.performance, most].map(amount));
            let words = format!(
                "process {name} needs a performance of {needed}, and no host that it may be on can give more than {there}"
            );
            causes.push(short(Part::Process, name, most, demand.performance, words));
        }
        if let [host] = could.as_slice() {
            let (sum, count) = only.entry(*host).or_default();
            *sum += demand.performance;
            *count += 1;
        }
    }
    for (host, (needed, count)) in only {
        let there = problem.performance[host as usize];
        if count > 1 && is_more(needed, there) {
            let name = &problem.system.nodes[host as usize].name;
            let [all, most] = [needed, there].map(amount);
            let words = format!(
                "the processes that can only be on host {name} need a performance of {all}, and it can give {most}"
            );
            causes.push(short(Part::Host, name, there, needed, words));
        }
    }
    let needed: f64 = demands.iter().map(|demand| demand.performance).sum();
    let there: f64 = problem.hosts.iter().map(|&host| problem.performance[host as usize]).sum();
    if is_more(needed, there) {
        let [all, most] = [needed, there].map(amount);
        let words =
            format!("all processes need a performance of {all}, and all hosts together can give {most}");
        causes.push(short(Part::Host, "all hosts", there, needed, words));
    }
    causes
}

fn is_more(needed: f64, there: f64) -> bool {
    needed > there * (1.0 + TOLERANCE)
}

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
pub(super) struct Reachability<'a> {
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

impl<'a> Reachability<'a> {
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
                let name = self.name(flow, pairs.first().copied());
                let words = format!("no way leads where {name} would have to go");
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
            if let Some(most) = rules.max_hops.filter(|&most| hops > most) {
                let words = format!("{name} takes {hops} hops at least, and `max_hops` is {most}");
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
    let only = only_neighbours(problem.system);
    let looked_at = if nodes > MOST_NODES { 0 } else { nodes as u32 };
    (0..looked_at).map(move |node| {
        let mut inside = vec![false; nodes];
        inside[node as usize] = true;
        if !problem.network.is_host(node) {
            for &host in &problem.hosts {
                inside[host as usize] = only[host as usize] == Some(node);
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

/// A program, a machine and rules that are not quite those that were asked about.
#[derive(Debug, Clone)]
pub(super) struct Changed {
    pub(super) graph: TaskGraph,
    pub(super) system: SystemGraph,
    pub(super) rules: Rules,
}

impl Changed {
    /// Nothing changed yet.
    pub(super) fn of(problem: &Problem<'_>) -> Self {
        Self { graph: problem.graph.clone(), system: problem.system.clone(), rules: problem.rules }
    }

    /// What is asked about them; processes are where they are in the original.
    pub(super) fn problem(&self, original: &Problem<'_>) -> Result<Problem<'_>> {
        let problem = Problem::new(&self.graph, &self.system, None, self.rules)?;
        Ok(match &original.mapped {
            Some(hosts) => Problem { mapped: Some(hosts.clone()), flows: original.flows.clone(), ..problem },
            None => problem,
        })
    }

    /// The same with tables for every port in some switches.
    pub(super) fn with_type_two(&self, switches: &[u32]) -> Self {
        let mut changed = self.clone();
        for &switch in switches {
            changed.system.nodes[switch as usize].traits.switch_type = Some(SwitchType::Two);
        }
        changed
    }

    /// The same with links and hosts that have as much as is needed of them.
    pub(super) fn with_amounts(&self, links: &[(u32, f64)], hosts: &[(u32, f64)]) -> Self {
        let mut changed = self.clone();
        for &(link, needed) in links {
            changed.system.links[link as usize].bandwidth_bytes_per_s = Some(needed);
        }
        for &(host, needed) in hosts {
            changed.system.nodes[host as usize].traits.performance = Some(needed);
        }
        changed
    }

    /// Whether the check finds nothing wrong with a plan.
    pub(super) fn passes(&self, original: &Problem<'_>, plan: &Plan) -> Result<bool> {
        let mut roomy = self.clone();
        roomy.system = with_slots(&self.system, &plan.hosts);
        let problem = roomy.problem(original)?;
        Ok(checked(&problem, None, &SearchResult::nothing(), plan).is_ok())
    }
}

/// The machine with a slot for every process that is on a host: a host that would have to be stronger has more of them.
fn with_slots(system: &SystemGraph, hosts: &[u32]) -> SystemGraph {
    let mut counts = vec![0_u32; system.nodes.len()];
    hosts.iter().for_each(|&host| counts[host as usize] += 1);
    let slots = |host: u32| (0..counts[host as usize]).map(move |core| Slot { host, core });
    let (slots, cost) = slots_of((0..system.nodes.len() as u32).flat_map(slots).collect());
    SystemGraph { slots, cost, ..system.clone() }
}

/// A cause without amounts.
pub(super) fn cause(part: Part, name: &str, words: String) -> Cause {
    Cause { remedy: 0, part, name: name.to_owned(), there: None, needed: None, words }
}

/// A cause with what is there and what is needed.
pub(super) fn short(part: Part, name: &str, there: f64, needed: f64, words: String) -> Cause {
    let [there, needed] = [there, needed].map(|amount| Some(amount).filter(|amount| amount.is_finite()));
    Cause { there, needed, ..cause(part, name, words) }
}

/// A number without the last digits, which are rounding.
pub(super) fn amount(value: f64) -> String {
    let rounded = format!("{value:.8e}").parse::<f64>().unwrap_or(value);
    rounded.to_string()
}
