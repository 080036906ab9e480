//! Violations that do not depend on routes: demands that no host meets, and streams that cannot be delivered, alone or together
//! at one bottleneck.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hopmap_graph::DisjointSets;
use hopmap_model::{Cause, LinkState, Node, Part, ProcessDemand, Slot, SwitchType, SystemGraph, TaskGraph};

use crate::answer::checked;
use crate::engine::SearchResult;
use crate::error::Result;
use crate::network::only_neighbours;
use crate::network::slots_of;
use crate::problem::{Flow, Plan, Problem, Rules, TOLERANCE, devices_of};
use crate::quantity::{amount, rate};

/// Missing capabilities, devices and hosts; removes these demands from `changed`.
pub(super) fn unmet_demands(problem: &Problem<'_>, changed: &mut Changed) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (process, demand) in changed.graph.demands.processes.iter_mut().enumerate() {
        let own = problem.mapped.as_ref().map(|hosts| &problem.system.nodes[hosts[process] as usize]);
        lacks(problem, demand, own, &mut causes);
    }
    devices_of_hosts(problem, changed, &mut causes);
    devices_of_all(problem, changed, &mut causes);
    causes
}

/// Demands that no candidate host meets, or that the given host does not meet.
fn lacks(problem: &Problem<'_>, demand: &mut ProcessDemand, own: Option<&Node>, causes: &mut Vec<Cause>) {
    let name = demand.name.clone();
    let mut fault = |words: String| causes.push(cause(Part::Process, &name, words));
    let hosts = || problem.hosts.iter().map(|&host| &problem.system.nodes[host as usize]);
    if let Some(wanted) = demand.host.clone() {
        let elsewhere = own.filter(|own| own.name != wanted);
        if let Some(own) = elsewhere {
            fault(format!("process {name} is on host {}, but is fixed to {wanted}", own.name));
            demand.host = None;
        } else if !hosts().any(|host| host.name == wanted) {
            fault(format!("process {name} is fixed to {wanted}, which is not a host"));
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
            fault(format!("process {name} needs `{wanted}`, which {who}"));
        }
        is_there
    });
    demand.devices.retain(|device, count| {
        let is_there = could.iter().any(|host| devices_of(host, device) >= u64::from(*count));
        if !is_there {
            fault(format!("process {name} needs {count} of `{device}`, which {who}"));
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
        fault(format!("no host has everything that process {name} needs: {}", all.join(", ")));
        demand.capabilities.clear();
        demand.devices.clear();
    }
}

/// Devices of a host that the processes fixed to it need in larger numbers.
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
                format!("the processes on host {} need {count} of `{device}`, but it has {there}", node.name);
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
            let words = format!(
                "all processes together need {count} of `{device}`, but all hosts together have {there}"
            );
            causes.push(cause(Part::Host, "all hosts", words));
            changed.graph.demands.processes.iter_mut().for_each(|demand| {
                demand.devices.remove(&device);
            });
        }
    }
}

/// The host of every process that has only one candidate.
fn known_hosts(problem: &Problem<'_>, changed: &Changed) -> Vec<Option<u32>> {
    let names: BTreeMap<&str, u32> =
        problem.hosts.iter().map(|&host| (problem.system.nodes[host as usize].name.as_str(), host)).collect();
    let of_name = |demand: &ProcessDemand| names.get(demand.host.as_deref()?).copied();
    match &problem.mapped {
        Some(hosts) => hosts.iter().copied().map(Some).collect(),
        None => changed.graph.demands.processes.iter().map(of_name).collect(),
    }
}

/// Insufficient performance for every choice of hosts, regardless of streams.
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
                "process {name} needs a performance of {needed}, but its candidate hosts provide at most {there}"
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
                "the processes that can only run on host {name} need a performance of {all}, but it provides {most}"
            );
            causes.push(short(Part::Host, name, there, needed, words));
        }
    }
    let needed: f64 = demands.iter().map(|demand| demand.performance).sum();
    let there: f64 = problem.hosts.iter().map(|&host| problem.performance[host as usize]).sum();
    if is_more(needed, there) {
        let [all, most] = [needed, there].map(amount);
        let words = format!(
            "all processes together need a performance of {all}, but all hosts together provide {most}"
        );
        causes.push(short(Part::Host, "all hosts", there, needed, words));
    }
    causes
}

fn is_more(needed: f64, there: f64) -> bool {
    needed > there * (1.0 + TOLERANCE)
}

/// Maximum number of host pairs that are checked per stream.
const MOST_PAIRS: usize = 10_000;
/// Maximum number of nodes of a machine in which paths are computed; memory is quadratic.
const MOST_NODES: usize = 4096;

/// Maximum number of hosts in a message.
const MOST_NAMES: usize = 6;

/// A host or switch whose incoming or outgoing links have too little bandwidth in total.
struct Bottleneck {
    node: u32,
    is_in: bool,
    links: Vec<u32>,
    /// The hosts inside, of the streams that must use the links.
    hosts: BTreeSet<u32>,
    there: f64,
    needed: f64,
}

/// Shortest and widest paths of a problem.
pub(super) struct Reachability<'a> {
    problem: &'a Problem<'a>,
    /// By host, the best paths to every node.
    from: BTreeMap<u32, Vec<Option<Best>>>,
}

/// The best paths to a node.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Best {
    /// Hop count of the shortest path.
    hops: u32,
    /// Bandwidth of the widest path.
    width: f64,
}

impl<'a> Reachability<'a> {
    pub(super) fn of(problem: &'a Problem<'a>) -> Self {
        Self { problem, from: BTreeMap::new() }
    }

    /// Hosts that are cut off, and other streams without a connecting path.
    pub(super) fn unconnected(&mut self) -> Vec<Cause> {
        let part_of = parts(self.problem);
        let mut streams = Vec::new();
        let mut cut_off: BTreeMap<u32, usize> = BTreeMap::new();
        for flow in &self.problem.flows {
            let Some(pairs) = self.pairs(flow) else { continue };
            if pairs.iter().any(|&pair| self.best(pair).is_some()) {
                continue;
            }
            match pairs[..] {
                [(from, to)] if part_of[from as usize] != part_of[to as usize] => {
                    // The host in the smaller part is missing, not the other one.
                    let host = if part_of[from as usize] > part_of[to as usize] { from } else { to };
                    *cut_off.entry(host).or_default() += flow.streams.len();
                }
                _ => {
                    let words = format!("no path for {}", self.name(flow, pairs.first().copied()));
                    streams.push(cause(Part::Stream, &self.short_name(flow), words));
                }
            }
        }
        let hosts = cut_off.into_iter().map(|(host, count)| {
            let name = &self.problem.system.nodes[host as usize].name;
            let has_links = !self.problem.network.leaving(host).is_empty();
            let what = if has_links { "is not connected to the rest of the machine" } else { "has no link" };
            let streams = if count == 1 { "a stream".to_owned() } else { format!("{count} streams") };
            cause(Part::Host, name, format!("host {name} {what}: no path for {streams}"))
        });
        hosts.chain(streams).collect()
    }

    /// Streams that no path can carry, each considered alone.
    pub(super) fn infeasible_streams(&mut self) -> Vec<Cause> {
        let rules = self.problem.rules;
        let mut causes = Vec::new();
        for flow in &self.problem.flows {
            let Some(pairs) = self.pairs(flow) else { continue };
            let best: Vec<Best> = pairs.iter().filter_map(|&pair| self.best(pair)).collect();
            let width = best.iter().map(|best| best.width).fold(0.0, f64::max);
            let Some(hops) = best.iter().map(|best| best.hops).min() else { continue };
            let name = self.name(flow, pairs.first().copied());
            let mut fault = |there: f64, needed: f64, words: String| {
                causes.push(short(Part::Stream, &self.short_name(flow), there, needed, words));
            };
            if flow.bandwidth > width * (1.0 + TOLERANCE) {
                let [needed, there] = [flow.bandwidth, width].map(rate);
                let words = format!("{name} needs {needed}, but no path carries more than {there}");
                fault(width, flow.bandwidth, words);
            }
            if let Some(most) = rules.max_hops.filter(|&most| hops > most) {
                let words = format!("{name} needs at least {hops} hops, but `max_hops` is {most}");
                fault(f64::from(most), f64::from(hops), words);
            }
            if let Some(most) = rules.switch_load.filter(|most| flow.bandwidth > most * (1.0 + TOLERANCE)) {
                let [needed, there] = [flow.bandwidth, most].map(rate);
                let words = format!("{name} needs {needed}, but `switch_load` is {there}");
                fault(most, flow.bandwidth, words);
            }
        }
        causes
    }

    /// Bottlenecks: hosts, and switches with the hosts attached only to them, whose links cannot carry the streams that must
    /// cross them.
    pub(super) fn bottlenecks(&self) -> Vec<Cause> {
        self.overloaded().into_iter().map(|bottleneck| self.describe(&bottleneck)).collect()
    }

    /// Lower bound of the excess of some link, for all routes.
    pub(super) fn least_excess(&mut self) -> f64 {
        let mut least = 0.0_f64;
        for flow in &self.problem.flows {
            if let Some(pairs) = self.pairs(flow) {
                let widths = pairs.iter().filter_map(|&pair| self.best(pair)).map(|best| best.width);
                least = least.max(flow.bandwidth - widths.fold(0.0, f64::max));
            }
        }
        // The excess of a bottleneck is that of its links together.
        let of_links =
            |bottleneck: &Bottleneck| (bottleneck.needed - bottleneck.there) / bottleneck.links.len() as f64;
        self.overloaded().iter().map(of_links).fold(least, f64::max)
    }

    /// Bottlenecks whose links carry too little in total.
    fn overloaded(&self) -> Vec<Bottleneck> {
        let problem = self.problem;
        let mut overloaded = Vec::new();
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
                // Bottlenecks without any link are reported as unconnected.
                if !links.is_empty() && needed > there * (1.0 + TOLERANCE) {
                    let hosts = flows.iter().map(|&((from, to), _)| if is_in { to } else { from }).collect();
                    overloaded.push(Bottleneck { node, is_in, links, hosts, there, needed });
                }
            }
        }
        overloaded
    }

    fn describe(&self, bottleneck: &Bottleneck) -> Cause {
        let problem = self.problem;
        let of_node = |node: u32| problem.system.nodes[node as usize].name.as_str();
        let name = of_node(bottleneck.node);
        let (into, of) = if bottleneck.is_in { ("into", "for") } else { ("out of", "of") };
        let [there, needed] = [bottleneck.there, bottleneck.needed].map(rate);
        if problem.network.is_host(bottleneck.node) {
            let [link] = bottleneck.links.as_slice() else {
                let words = format!(
                    "the links {into} host {name} carry {there} in total, but the streams {of} it need {needed}"
                );
                // The amounts of a cause of a host are performances.
                return cause(Part::Host, name, words);
            };
            let link = problem.network.name_of(*link);
            let words =
                format!("link {link} carries {there}, but the streams {of} host {name} need {needed}");
            return short(Part::Link, &link, bottleneck.there, bottleneck.needed, words);
        }
        let names: Vec<&str> = bottleneck.hosts.iter().take(MOST_NAMES).map(|&host| of_node(host)).collect();
        let more = bottleneck.hosts.len().saturating_sub(MOST_NAMES);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        let words = format!(
            "the links {into} switch {name} carry {there} in total, but the streams {of} {}{rest} need {needed}",
            names.join(", ")
        );
        short(Part::Switch, name, bottleneck.there, bottleneck.needed, words)
    }

    /// The pairs of hosts that a flow can connect; none if it can stay inside one host, or if there are too many pairs.
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
        // Processes without a candidate host are reported separately.
        (!pairs.is_empty()).then_some(pairs)
    }

    /// The only pair of hosts that a flow can connect, if there is just one.
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
        self.from.entry(from).or_insert_with(|| paths_from(problem, from))[to as usize]
    }

    /// Describes a flow.
    fn name(&self, flow: &Flow, pair: Option<(u32, u32)>) -> String {
        let name = |node: u32| &self.problem.system.nodes[node as usize].name;
        match (&self.problem.mapped, pair) {
            (Some(_), Some((from, to))) if flow.streams.len() > 1 => {
                format!("the traffic from {} to {} in {} streams", name(from), name(to), flow.streams.len())
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

/// The hosts and switches of a machine of limited size, each with the nodes inside: itself, and the hosts that have no other
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

/// By node, the part of the machine that it belongs to; the part with most hosts is 0. Parts are not connected by any link.
fn parts(problem: &Problem<'_>) -> Vec<usize> {
    let mut sets = DisjointSets::new(problem.system.nodes.len());
    for link in problem.system.links.iter().filter(|link| link.state == LinkState::Up) {
        sets.join(link.source as usize, link.destination as usize);
    }
    let part_of = sets.numbers();
    let mut hosts = vec![0; part_of.iter().max().map_or(0, |last| *last as usize + 1)];
    for (node, &part) in (0..).zip(&part_of) {
        hosts[part as usize] += usize::from(problem.network.is_host(node));
    }
    let mut order: Vec<usize> = (0..hosts.len()).collect();
    order.sort_by_key(|&part| std::cmp::Reverse(hosts[part]));
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(index, &part)| place[part] = index);
    part_of.iter().map(|&part| place[part as usize]).collect()
}

/// The best paths from a host to every node, through switches only.
fn paths_from(problem: &Problem<'_>, from: u32) -> Vec<Option<Best>> {
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
            let candidate = Best { hops: here.hops + 1, width };
            let both = best[next as usize].map_or(candidate, |known| Best {
                hops: known.hops.min(candidate.hops),
                width: known.width.max(candidate.width),
            });
            if best[next as usize] != Some(both) {
                best[next as usize] = Some(both);
                queue.push_back(next);
            }
        }
    }
    best
}

/// A modified copy of the program, machine and rules of a problem.
#[derive(Debug, Clone)]
pub(super) struct Changed {
    pub(super) graph: TaskGraph,
    pub(super) system: SystemGraph,
    pub(super) rules: Rules,
}

impl Changed {
    /// An unmodified copy.
    pub(super) fn of(problem: &Problem<'_>) -> Self {
        Self { graph: problem.graph.clone(), system: problem.system.clone(), rules: problem.rules }
    }

    /// The modified problem; the mapping is that of the original.
    pub(super) fn problem(&self, original: &Problem<'_>) -> Result<Problem<'_>> {
        let problem = Problem::new(&self.graph, &self.system, None, self.rules)?;
        Ok(match &original.mapped {
            Some(hosts) => Problem { mapped: Some(hosts.clone()), flows: original.flows.clone(), ..problem },
            None => problem,
        })
    }

    /// A copy in which some switches have a table per input port.
    pub(super) fn with_type_two(&self, switches: &[u32]) -> Self {
        let mut changed = self.clone();
        for &switch in switches {
            changed.system.nodes[switch as usize].traits.switch_type = Some(SwitchType::Two);
        }
        changed
    }

    /// A copy in which links and hosts have the required capacity.
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

    /// Whether a plan passes the checker.
    pub(super) fn passes(&self, original: &Problem<'_>, plan: &Plan) -> Result<bool> {
        let mut roomy = self.clone();
        roomy.system = with_slots(&self.system, &plan.hosts);
        let problem = roomy.problem(original)?;
        Ok(checked(&problem, None, &SearchResult::nothing(), plan).is_ok())
    }
}

/// The machine with a slot for every process on a host: hosts that need more performance also need more slots.
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

/// A cause with the available and the required amount.
pub(super) fn short(part: Part, name: &str, there: f64, needed: f64, words: String) -> Cause {
    let [there, needed] = [there, needed].map(|amount| Some(amount).filter(|amount| amount.is_finite()));
    Cause { there, needed, ..cause(part, name, words) }
}
