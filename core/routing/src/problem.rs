//! The numeric form of a problem that every engine solves: program, machine, and the constraints on a plan.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{
    Error, Link, LinkState, Mapping, Node, NodeKind, NodeState, ProcessDemand, Route, SwitchType,
    SystemGraph, TaskGraph, require,
};

use crate::error::{Result, fail, is_above_zero, is_amount};
use crate::network::{self, Network, nodes_of};

/// Relative tolerance for sums of bandwidth or performance: rounding.
pub const TOLERANCE: f64 = 1e-9;

/// A program on a machine under rules.
#[derive(Debug, Clone)]
pub struct Problem<'a> {
    /// The program.
    pub graph: &'a TaskGraph,
    /// The machine.
    pub system: &'a SystemGraph,
    /// The links of the machine that are up.
    pub network: Network<'a>,
    /// Constraints on a solution, and the weights of its objective.
    pub rules: Rules,
    /// Node ids of the hosts, ascending.
    pub hosts: Vec<u32>,
    /// Node ids of the hosts that can hold each process alone, ascending.
    pub allowed: Vec<Vec<u32>>,
    /// Node id of the host of every process, if the mapping is given.
    pub mapped: Option<Vec<u32>>,
    /// The flows to route: one per pair of hosts if the mapping is given, otherwise one per stream.
    pub flows: Vec<Flow>,
    /// Usable bandwidth of each link by link index: less the slack, infinite if unspecified, 0 if the link is down.
    pub capacity: Vec<f64>,
    /// Usable performance of each node by node id: less the slack, infinite if unspecified.
    pub performance: Vec<f64>,
    /// Preferred hosts of processes.
    pub home: Option<Home>,
}

/// A stream, or all streams between two hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Node id of the sending host if the mapping is given, otherwise the rank of the process.
    pub source: u32,
    /// The same for the receiver.
    pub destination: u32,
    /// Bandwidth that it uses on every link of its route.
    pub bandwidth: f64,
    /// The streams of the program that it contains.
    pub streams: Vec<u32>,
}

/// Preferred hosts of processes.
#[derive(Debug, Clone, PartialEq)]
pub struct Home {
    /// Node id of the host of every process.
    pub hosts: Vec<u32>,
    /// Cost of each process that is on another host, added to the objective.
    pub cost: f64,
}

/// The host of every process and the route of every flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Node id of the host of every process.
    pub hosts: Vec<u32>,
    /// The route of every flow, in the order of [`Problem::flows`].
    pub routes: Vec<Route>,
}

impl Plan {
    /// Hops of the longest route.
    pub(crate) fn longest(&self) -> usize {
        self.routes.iter().map(|route| route.links.len()).max().unwrap_or_default()
    }
}

impl<'a> Problem<'a> {
    /// The problem of a program on a machine. With a valid mapping of the program it is problem 1 of the paper.
    pub fn new(
        graph: &'a TaskGraph,
        system: &'a SystemGraph,
        mapping: Option<&Mapping>,
        rules: Rules,
    ) -> Result<Self> {
        let demands = &graph.demands.processes;
        if demands.len() != graph.ranks() {
            return fail(
                "the program has no streams and no demands of its processes",
                "use the program of route/import, or derive them from a trace with route/demands",
            );
        }
        let mapped = mapping.map(|mapping| placed(graph, system, mapping)).transpose()?;
        let is_up = |node: u32| system.nodes[node as usize].state == NodeState::Up;
        let hosts: Vec<u32> = nodes_of(system, NodeKind::Host).filter(|&host| is_up(host)).collect();
        let performance = |node: &Node| {
            node.traits.performance.map_or(f64::INFINITY, |there| there * (1.0 - rules.performance_slack))
        };
        let performance: Vec<f64> = system.nodes.iter().map(performance).collect();
        let capacity = |link: &Link| {
            let is_up = link.state == LinkState::Up && is_up(link.source) && is_up(link.destination);
            let there = link.bandwidth_bytes_per_s.map(|there| there * (1.0 - rules.bandwidth_slack));
            if is_up { there.unwrap_or(f64::INFINITY) } else { 0.0 }
        };
        let mut own = Self {
            network: Network::new(system),
            allowed: Vec::new(),
            flows: match &mapped {
                Some(hosts) => between_hosts(graph, hosts),
                None => between_processes(graph),
            },
            capacity: system.links.iter().map(capacity).collect(),
            home: None,
            graph,
            system,
            rules,
            hosts,
            mapped,
            performance,
        };
        own.allowed = own.holding(&own.performance);
        Ok(own)
    }

    /// The hosts that can hold each process alone, if nodes have this performance.
    pub(crate) fn holding(&self, performance: &[f64]) -> Vec<Vec<u32>> {
        // A host without slots cannot hold a process.
        let with_slots: BTreeSet<u32> = self.system.slots.iter().map(|slot| slot.host).collect();
        let can_hold = |demand: &ProcessDemand| {
            let hosts = self.hosts.iter().copied().filter(|host| with_slots.contains(host));
            let node = |host: u32| &self.system.nodes[host as usize];
            hosts.filter(|&host| fits(demand, node(host), performance[host as usize])).collect()
        };
        self.graph.demands.processes.iter().map(can_hold).collect()
    }

    /// Node ids of the switches, ascending.
    #[must_use]
    pub fn switches(&self) -> Vec<u32> {
        nodes_of(self.system, NodeKind::Switch).collect()
    }

    /// Whether a switch has one table per input port. Switches without a type have one table.
    #[must_use]
    pub fn is_type_two(&self, switch: u32) -> bool {
        self.system.nodes[switch as usize].traits.switch_type == Some(SwitchType::Two)
    }

    /// Node ids of the ends of a flow if every process is on one of `hosts`.
    #[must_use]
    pub fn ends(&self, flow: &Flow, hosts: &[u32]) -> (u32, u32) {
        match self.mapped {
            Some(_) => (flow.source, flow.destination),
            None => (hosts[flow.source as usize], hosts[flow.destination as usize]),
        }
    }

    /// A route of a flow over links.
    #[must_use]
    pub fn route(&self, flow: &Flow, hosts: &[u32], links: Vec<u32>) -> Route {
        let (source, destination) = self.ends(flow, hosts);
        Route {
            source,
            destination,
            bandwidth_bytes_per_s: flow.bandwidth,
            streams: flow.streams.clone(),
            links,
        }
    }

    /// Cost of a plan: objective (11) plus the cost of each process outside its preferred host. Does not check the rules.
    #[must_use]
    pub fn cost(&self, plan: &Plan) -> f64 {
        let hops: f64 = plan.routes.iter().map(|route| route.links.len() as f64).sum();
        let entries = network::tables(self.system, &plan.routes).entries.len() as f64;
        let weights = self.rules.weights;
        let objective = weights.longest_route * plan.longest() as f64
            + weights.total_hops * hops
            + weights.table_entries * entries;
        let moved = |home: &Home| {
            let elsewhere = home.hosts.iter().zip(&plan.hosts).filter(|(home, host)| home != host).count();
            home.cost * elsewhere as f64
        };
        objective + self.home.as_ref().map_or(0.0, moved)
    }

    /// Whether the hosts of a given mapping meet the demands of their processes; true if no mapping is given.
    #[must_use]
    pub fn holds_mapping(&self) -> bool {
        let Some(hosts) = &self.mapped else { return true };
        let mut performance = vec![0.0; self.system.nodes.len()];
        let mut devices: BTreeMap<(u32, &str), u64> = BTreeMap::new();
        for (demand, &host) in self.graph.demands.processes.iter().zip(hosts) {
            performance[host as usize] += demand.performance;
            for (device, &count) in &demand.devices {
                *devices.entry((host, device)).or_default() += u64::from(count);
            }
        }
        let has = |host: u32, device: &str| devices_of(&self.system.nodes[host as usize], device);
        hosts.iter().zip(&self.allowed).all(|(host, allowed)| allowed.contains(host))
            && performance.iter().zip(&self.performance).all(|(used, most)| *used <= most * (1.0 + TOLERANCE))
            && devices.iter().all(|(&(host, device), &count)| count <= has(host, device))
    }

    /// Whether routes arrive, keep all rules and fit into tables. Does not check the mapping.
    #[must_use]
    pub fn keeps_rules(&self, routes: &[Route]) -> bool {
        let paths = || routes.iter().map(|route| route.links.as_slice());
        let max_hops = self.rules.max_hops.map_or(usize::MAX, |most| most as usize);
        let deadlocks = || !network::cycle(self.system.links.len(), paths()).is_empty();
        routes.iter().all(|route| self.arrives(route) && route.links.len() <= max_hops)
            && self.fits_links(routes)
            && network::tables(self.system, routes).check().is_ok()
            && !(self.rules.deadlock_free && deadlocks())
    }

    /// Whether a route is a path from its source to its destination through switches only.
    fn arrives(&self, route: &Route) -> bool {
        let links = || route.links.iter().map(|&link| &self.system.links[link as usize]);
        let ends = match (links().next(), links().next_back()) {
            (Some(first), Some(last)) => {
                [first.source, last.destination] == [route.source, route.destination]
            }
            _ => route.source == route.destination,
        };
        let joined = links()
            .zip(links().skip(1))
            .all(|(link, next)| link.destination == next.source && !self.network.is_host(next.source));
        ends && joined && links().all(|link| link.state == LinkState::Up)
    }

    /// Whether no link and no switch is overloaded.
    fn fits_links(&self, routes: &[Route]) -> bool {
        let mut loads = vec![0.0; self.capacity.len()];
        let mut switches = vec![0.0; self.system.nodes.len()];
        for (route, &link) in
            routes.iter().flat_map(|route| route.links.iter().map(move |link| (route, link)))
        {
            loads[link as usize] += route.bandwidth_bytes_per_s;
            switches[self.system.links[link as usize].destination as usize] += route.bandwidth_bytes_per_s;
        }
        let most = self.rules.switch_load.unwrap_or(f64::INFINITY) * (1.0 + TOLERANCE);
        let is_light = |(node, &load): (u32, &f64)| self.network.is_host(node) || load <= most;
        loads.iter().zip(&self.capacity).all(|(load, capacity)| *load <= capacity * (1.0 + TOLERANCE))
            && (0..).zip(&switches).all(is_light)
    }
}

/// The same program and machine without performance demands and without performance limits.
#[must_use]
pub fn without_performance(graph: &TaskGraph, system: &SystemGraph) -> (TaskGraph, SystemGraph) {
    let (mut graph, mut system) = (graph.clone(), system.clone());
    graph.demands.processes.iter_mut().for_each(|demand| demand.performance = 0.0);
    system.nodes.iter_mut().for_each(|node| node.traits.performance = None);
    (graph, system)
}

/// Number of devices of one kind at a node.
pub(crate) fn devices_of(node: &Node, device: &str) -> u64 {
    u64::from(node.traits.devices.get(device).copied().unwrap_or_default())
}

/// Whether a host can hold a process that is alone there.
fn fits(demand: &ProcessDemand, node: &Node, performance: f64) -> bool {
    demand.performance <= performance * (1.0 + TOLERANCE)
        && demand.host.as_ref().is_none_or(|name| *name == node.name)
        && demand.capabilities.iter().all(|wanted| node.traits.capabilities.contains(wanted))
        && demand.devices.iter().all(|(device, &count)| u64::from(count) <= devices_of(node, device))
}

/// The host of every process in a mapping.
fn placed(graph: &TaskGraph, system: &SystemGraph, mapping: &Mapping) -> Result<Vec<u32>> {
    let host = |slot: u32| system.slots.get(slot as usize).map(|slot| slot.host);
    let hosts: Option<Vec<u32>> = mapping.ranks.iter().map(|placement| host(placement.slot)).collect();
    match hosts.filter(|hosts| hosts.len() == graph.ranks()) {
        Some(hosts) => Ok(hosts),
        None => fail(
            "the mapping does not fit this program and machine",
            "it may belong to another program or machine",
        ),
    }
}

/// Merges all streams from one host to another; streams inside a host stay separate because they use no link.
fn between_hosts(graph: &TaskGraph, host_of: &[u32]) -> Vec<Flow> {
    let mut flows: Vec<Flow> = Vec::new();
    let mut pairs: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for (index, stream) in (0..).zip(&graph.demands.streams) {
        let [source, destination] = [stream.source, stream.destination].map(|rank| host_of[rank as usize]);
        let next = flows.len();
        let is_inside = source == destination;
        let at = if is_inside { next } else { *pairs.entry((source, destination)).or_insert(next) };
        if at == next {
            flows.push(Flow { source, destination, bandwidth: 0.0, streams: Vec::new() });
        }
        flows[at].bandwidth += stream.bandwidth_bytes_per_s;
        flows[at].streams.push(index);
    }
    flows
}

fn between_processes(graph: &TaskGraph) -> Vec<Flow> {
    let flow = |(index, stream): (u32, &hopmap_model::Stream)| Flow {
        source: stream.source,
        destination: stream.destination,
        bandwidth: stream.bandwidth_bytes_per_s,
        streams: vec![index],
    };
    (0..).zip(&graph.demands.streams).map(flow).collect()
}

/// Weights of objective (11).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Weights {
    /// Weight of a hop of the longest route.
    pub longest_route: f64,
    /// Weight of every hop.
    pub total_hops: f64,
    /// Weight of every table entry.
    pub table_entries: f64,
}

/// Constraints on a solution, and the weights of its objective.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rules {
    /// Weights of objective (11).
    pub weights: Weights,
    /// Whether cycles of waiting links are forbidden.
    pub deadlock_free: bool,
    /// Maximum hops of a route.
    pub max_hops: Option<u32>,
    /// Fraction of the bandwidth of every link that stays free: at least 0, below 1.
    pub bandwidth_slack: f64,
    /// Fraction of the performance of every host that stays free: at least 0, below 1.
    pub performance_slack: f64,
    /// Limit on the total bandwidth that arrives at a switch.
    pub switch_load: Option<f64>,
}

impl Weights {
    /// Rejects negative weights.
    pub fn check(self) -> Result<()> {
        match [self.longest_route, self.total_hops, self.table_entries].into_iter().all(is_amount) {
            true => Ok(()),
            false => fail(
                "a weight of the objective is negative or not a number",
                "`weight_max_hops`, `weight_total_hops` and `weight_table_entries` must be 0 or more",
            ),
        }
    }
}

impl Rules {
    /// Rejects negative weights and invalid slacks and loads.
    pub fn check(&self) -> Result<(), Error> {
        self.weights.check()?;
        for (name, slack) in
            [("bandwidth_slack", self.bandwidth_slack), ("performance_slack", self.performance_slack)]
        {
            require(
                (0.0..1.0).contains(&slack),
                name,
                slack,
                "0 or more and below 1: the fraction that stays free",
            )?;
        }
        let load = self.switch_load.unwrap_or(1.0);
        Ok(require(is_above_zero(load), "switch_load", load, "above 0; without it there is no limit")?)
    }

    /// Largest difference at which two costs count as equal: relative rounding, and less than any weight can cause.
    pub fn tolerance(&self, cost: f64, part: f64) -> f64 {
        let Weights { longest_route, total_hops, table_entries } = self.weights;
        let least = [longest_route, total_hops, table_entries].into_iter().filter(|weight| *weight > 0.0);
        let least = least.fold(f64::INFINITY, f64::min);
        (part * cost.abs().max(1.0)).min(0.25 * least)
    }
}

impl From<Weights> for Rules {
    fn from(weights: Weights) -> Self {
        Self { weights, ..Self::default() }
    }
}

/// The greatest common divisor.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
