//! A problem in numbers, as every engine sees it: program, machine, and the rules that a plan has to keep.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{
    Link, LinkState, Mapping, Node, NodeKind, NodeState, ProcessDemand, Route, SwitchType, SystemGraph,
    TaskGraph,
};

use crate::error::ParameterError;
use crate::{CheckError, Network, deadlock, network};

/// Part of a bandwidth or performance by which sums may exceed it: rounding.
pub(crate) const TOLERANCE: f64 = 1e-9;

/// A program on a machine under rules.
#[derive(Debug, Clone)]
pub struct Problem<'a> {
    /// The program.
    pub graph: &'a TaskGraph,
    /// The machine.
    pub system: &'a SystemGraph,
    /// The links of the machine that are up.
    pub network: Network<'a>,
    /// What an answer has to keep, and what it costs.
    pub rules: Rules,
    /// Node ids of the hosts by ascending number.
    pub hosts: Vec<u32>,
    /// Node ids of the hosts that can hold each process if it is alone there, by ascending number.
    pub allowed: Vec<Vec<u32>>,
    /// Node id of the host of every process, where the mapping is given.
    pub mapped: Option<Vec<u32>>,
    /// What needs a route: all streams from one host to another together where the mapping is given, else every stream.
    pub flows: Vec<Flow>,
    /// What each link may carry in a second, by index of the link: less what stays free, infinite where nobody said it, and 0 where the
    /// link is down.
    pub capacity: Vec<f64>,
    /// What the processes on each node may need, by node id: less what stays free, infinite where nobody said it.
    pub performance: Vec<f64>,
    /// Where processes would rather stay.
    pub home: Option<Home>,
}

/// A stream, or all streams between two hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Node id of the host that sends where the mapping is given, else the rank of the process.
    pub source: u32,
    /// The same of what receives.
    pub destination: u32,
    /// Bandwidth that it takes of every link.
    pub bandwidth: f64,
    /// The streams of the program that it is.
    pub streams: Vec<u32>,
}

/// Where processes would rather stay.
#[derive(Debug, Clone, PartialEq)]
pub struct Home {
    /// Node id of the host of every process.
    pub hosts: Vec<u32>,
    /// What each process costs that is elsewhere, beside the objective.
    pub cost: f64,
}

/// Where every process is and which way every flow takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Node id of the host of every process.
    pub hosts: Vec<u32>,
    /// The route of every flow, in the order of [`Problem::flows`].
    pub routes: Vec<Route>,
}

impl<'a> Problem<'a> {
    /// The problem of a program on a machine; with a mapping the first one of the paper, if it is one of this program on this machine.
    pub fn new(
        graph: &'a TaskGraph,
        system: &'a SystemGraph,
        mapping: Option<&Mapping>,
        rules: Rules,
    ) -> Result<Self, CheckError> {
        let demands = &graph.demands.processes;
        if demands.len() != graph.ranks() {
            return Err(CheckError::new(
                "the program does not say what its processes and streams ask of a machine",
                "take it from route/import, or from a trace through route/demands",
            ));
        }
        let mapped = mapping.map(|mapping| placed(graph, system, mapping)).transpose()?;
        let is_up = |host: &u32| system.nodes[*host as usize].state == NodeState::Up;
        let hosts: Vec<u32> = nodes(system, NodeKind::Host).into_iter().filter(is_up).collect();
        let performance = |node: &Node| {
            node.traits.performance.map_or(f64::INFINITY, |there| there * (1.0 - rules.performance_slack))
        };
        let performance: Vec<f64> = system.nodes.iter().map(performance).collect();
        let ends_up = |link: &Link| {
            [link.source, link.destination]
                .iter()
                .all(|&node| system.nodes[node as usize].state == NodeState::Up)
        };
        let capacity = |link: &Link| match (link.state, link.bandwidth_bytes_per_s) {
            (LinkState::Down, _) => 0.0,
            (LinkState::Up, _) if !ends_up(link) => 0.0,
            (LinkState::Up, there) => {
                there.map_or(f64::INFINITY, |there| there * (1.0 - rules.bandwidth_slack))
            }
        };
        Ok(Self {
            network: Network::new(system),
            allowed: allowed(graph, system, &hosts, &performance),
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
        })
    }

    /// Node ids of the switches by ascending number.
    #[must_use]
    pub fn switches(&self) -> Vec<u32> {
        nodes(self.system, NodeKind::Switch)
    }

    /// Whether a switch has a table for every port. Switches that do not say their type have one table.
    #[must_use]
    pub fn is_type_two(&self, switch: u32) -> bool {
        self.system.nodes[switch as usize].traits.switch_type == Some(SwitchType::Two)
    }

    /// Node ids of the hosts that a flow joins if every process is on one of `hosts`.
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

    /// What a plan costs: the objective (11), and what each process costs that is not where it would rather stay. Whether the plan
    /// keeps the rules is not looked at.
    #[must_use]
    pub fn cost(&self, plan: &Plan) -> f64 {
        let lengths = || plan.routes.iter().map(|route| route.links.len() as f64);
        let entries = network::tables(self.system, &plan.routes).entries.len() as f64;
        let weights = self.rules.weights;
        let objective = weights.longest_route * lengths().fold(0.0, f64::max)
            + weights.total_hops * lengths().sum::<f64>()
            + weights.table_entries * entries;
        let moved = |home: &Home| {
            let elsewhere = home.hosts.iter().zip(&plan.hosts).filter(|(home, host)| home != host).count();
            home.cost * elsewhere as f64
        };
        objective + self.home.as_ref().map_or(0.0, moved)
    }

    /// Whether the hosts of a given mapping have what its processes ask for; true where none is given.
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
        let has = |host: u32, device: &str| {
            let there = self.system.nodes[host as usize].traits.devices.get(device);
            u64::from(there.copied().unwrap_or_default())
        };
        hosts.iter().zip(&self.allowed).all(|(host, allowed)| allowed.contains(host))
            && performance.iter().zip(&self.performance).all(|(used, most)| *used <= most * (1.0 + TOLERANCE))
            && devices.iter().all(|(&(host, device), &count)| count <= has(host, device))
    }

    /// Whether routes arrive, keep all rules and fit into tables. Where processes are is not looked at.
    #[must_use]
    pub fn keeps_rules(&self, routes: &[Route]) -> bool {
        let ways = || routes.iter().map(|route| route.links.as_slice());
        let max_hops = self.rules.max_hops.map_or(usize::MAX, |most| most as usize);
        let deadlocks = || !deadlock::cycle(self.system.links.len(), ways()).is_empty();
        routes.iter().all(|route| self.arrives(route) && route.links.len() <= max_hops)
            && self.fits_links(routes)
            && network::tables(self.system, routes).check().is_ok()
            && !(self.rules.deadlock_free && deadlocks())
    }

    /// Whether the links of a route lead from its source to its destination, through switches alone.
    fn arrives(&self, route: &Route) -> bool {
        let links = || route.links.iter().map(|&link| &self.system.links[link as usize]);
        let ends = (links().next(), links().next_back());
        let ends = match ends {
            (Some(first), Some(last)) => {
                (first.source, last.destination) == (route.source, route.destination)
            }
            _ => route.source == route.destination,
        };
        let joined = links()
            .zip(links().skip(1))
            .all(|(link, next)| link.destination == next.source && !self.network.is_host(next.source));
        ends && joined && links().all(|link| link.state == LinkState::Up)
    }

    /// Whether no link and no switch gets more than it may.
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

/// The same program and machine where no process needs performance and no host has a limit.
pub(crate) fn without_performance(graph: &TaskGraph, system: &SystemGraph) -> (TaskGraph, SystemGraph) {
    let (mut graph, mut system) = (graph.clone(), system.clone());
    graph.demands.processes.iter_mut().for_each(|demand| demand.performance = 0.0);
    system.nodes.iter_mut().for_each(|node| node.traits.performance = None);
    (graph, system)
}

fn nodes(system: &SystemGraph, kind: NodeKind) -> Vec<u32> {
    (0..).zip(&system.nodes).filter(|(_, node)| node.kind == kind).map(|(id, _)| id).collect()
}

/// The hosts that can hold each process if it is alone there.
pub(crate) fn allowed(
    graph: &TaskGraph,
    system: &SystemGraph,
    hosts: &[u32],
    performance: &[f64],
) -> Vec<Vec<u32>> {
    // A host without a slot has no place for anything.
    let with_slots: BTreeSet<u32> = system.slots.iter().map(|slot| slot.host).collect();
    let can_hold = |demand: &ProcessDemand| {
        let hosts = hosts.iter().copied().filter(|host| with_slots.contains(host));
        hosts.filter(|&host| fits(demand, &system.nodes[host as usize], performance[host as usize])).collect()
    };
    graph.demands.processes.iter().map(can_hold).collect()
}

/// Whether a host can hold a process that is alone there.
fn fits(demand: &ProcessDemand, node: &Node, performance: f64) -> bool {
    let has = |device: &String| node.traits.devices.get(device).copied().unwrap_or_default();
    demand.performance <= performance * (1.0 + TOLERANCE)
        && demand.host.as_ref().is_none_or(|name| *name == node.name)
        && demand.capabilities.iter().all(|wanted| node.traits.capabilities.contains(wanted))
        && demand.devices.iter().all(|(device, &count)| count <= has(device))
}

/// The host of every process in a mapping.
fn placed(graph: &TaskGraph, system: &SystemGraph, mapping: &Mapping) -> Result<Vec<u32>, CheckError> {
    let hosts =
        mapping.ranks.iter().map(|placement| system.slots.get(placement.slot as usize).map(|slot| slot.host));
    let hosts: Option<Vec<u32>> = hosts.collect();
    hosts.filter(|hosts| hosts.len() == graph.ranks()).ok_or_else(|| {
        CheckError::new(
            "the mapping is not one of this program on this machine",
            "is it that of another one?",
        )
    })
}

/// All streams from a host to another as one; those inside a host each, for they take no link.
fn between_hosts(graph: &TaskGraph, host_of: &[u32]) -> Vec<Flow> {
    let mut flows: Vec<Flow> = Vec::new();
    let mut pairs: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for (index, stream) in (0..).zip(&graph.demands.streams) {
        let [source, destination] = [stream.source, stream.destination].map(|rank| host_of[rank as usize]);
        let next = flows.len();
        let at =
            if source == destination { next } else { *pairs.entry((source, destination)).or_insert(next) };
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

/// What the parts of the objective weigh (11).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// A hop of the longest route.
    pub longest_route: f64,
    /// Every hop.
    pub total_hops: f64,
    /// Every entry of a table.
    pub table_entries: f64,
}

/// What an answer has to keep, and what it costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// What the parts of the objective weigh (11).
    pub weights: Weights,
    /// Whether no links may wait for each other in a circle.
    pub deadlock_free: bool,
    /// Most hops of a route.
    pub max_hops: Option<u32>,
    /// Part of the bandwidth of every link that stays free, from 0 up to but not including 1.
    pub bandwidth_slack: f64,
    /// Part of the performance of every host that stays free, likewise.
    pub performance_slack: f64,
    /// Most bytes in a second that arrive at a switch.
    pub switch_load: Option<f64>,
}

impl Weights {
    /// Refuses weights below zero.
    pub(crate) fn check(self) -> Result<(), ParameterError> {
        match [self.longest_route, self.total_hops, self.table_entries]
            .iter()
            .all(|weight| weight.is_finite() && *weight >= 0.0)
        {
            true => Ok(()),
            false => Err(ParameterError::Weights),
        }
    }
}

impl Rules {
    /// Refuses weights below zero, and parts and loads that are none.
    pub(crate) fn check(&self) -> Result<(), ParameterError> {
        self.weights.check()?;
        let slacks =
            [("bandwidth_slack", self.bandwidth_slack), ("performance_slack", self.performance_slack)];
        if let Some((name, value)) = slacks.into_iter().find(|(_, value)| !(0.0..1.0).contains(value)) {
            return Err(ParameterError::Slack { name, value });
        }
        match self.switch_load.filter(|load| !(load.is_finite() && *load > 0.0)) {
            Some(value) => Err(ParameterError::SwitchLoad { value }),
            None => Ok(()),
        }
    }

    /// Up to which difference two costs are the same: a part of the cost that is rounding, and less than what any weight tells apart.
    pub(crate) fn tolerance(&self, cost: f64, part: f64) -> f64 {
        let Weights { longest_route: longest, total_hops: hops, table_entries: entries } = self.weights;
        let least = [longest, hops, entries].into_iter().filter(|weight| *weight > 0.0);
        let least = least.fold(f64::INFINITY, f64::min);
        (part * cost.abs().max(1.0)).min(0.25 * least)
    }
}

impl From<Weights> for Rules {
    fn from(weights: Weights) -> Self {
        Self {
            weights,
            deadlock_free: false,
            max_hops: None,
            bandwidth_slack: 0.0,
            performance_slack: 0.0,
            switch_load: None,
        }
    }
}
