//! The integer programs of the paper: Vyukova, Galatenko, Pavlov and Samborskii, "Mapping of parallel computations onto distributed
//! systems using `RapidIO` technology", Programmirovanie 6/2020; numbers in brackets are its equations.
//!
//! In the first problem the mapping is given, and all streams from one host to another are one stream. In the second, which process is
//! on which host is looked for as well, and every stream has a route of its own. Switches that do not say their type have one table.

use std::collections::BTreeMap;

use hopmap_model::{LinkState, Mapping, NodeKind, Route, SwitchType, SystemGraph, TaskGraph};

use crate::linear::{Domain, LinearProgram, Sense};
use crate::{CheckError, Weights};

/// The program of the first problem, or of the second where there is no mapping.
#[derive(Debug, Clone)]
pub struct Formulation<'a> {
    graph: &'a TaskGraph,
    system: &'a SystemGraph,
    weights: Weights,
    streams: Vec<Flow>,
    program: LinearProgram,
    /// The variable R[l, s] at `l * streams + s`; nothing for links that are down.
    on_link: Vec<Option<usize>>,
    /// The variable M[h, p] by host and process; empty in the first problem.
    on_host: BTreeMap<(u32, u32), usize>,
    /// Variables of pairs of links that are forbidden to stand in all pairs of a circle.
    goes_on: BTreeMap<(u32, u32), usize>,
    circles: usize,
}

/// A stream as the program sees it.
#[derive(Debug, Clone, PartialEq)]
struct Flow {
    /// Host or process that sends.
    source: u32,
    /// Host or process that receives.
    destination: u32,
    bandwidth: f64,
    /// The streams of the program that it is.
    streams: Vec<u32>,
}

impl<'a> Formulation<'a> {
    /// The formulation of a problem; with a mapping the first one, if it is one of this program on this machine.
    pub fn new(
        graph: &'a TaskGraph,
        system: &'a SystemGraph,
        mapping: Option<&Mapping>,
        weights: Weights,
    ) -> Result<Self, CheckError> {
        let streams = match mapping {
            Some(mapping) => between_hosts(graph, &placed(graph, system, mapping)?),
            None => between_processes(graph),
        };
        let mut own = Self {
            graph,
            system,
            weights,
            on_link: vec![None; system.links.len() * streams.len()],
            streams,
            program: LinearProgram::default(),
            on_host: BTreeMap::new(),
            goes_on: BTreeMap::new(),
            circles: 0,
        };
        own.routes();
        match mapping {
            Some(_) => own.ends_given(),
            None => own.ends_looked_for(),
        }
        own.capacity();
        own.hosts_pass_nothing_on();
        own.switches_once();
        own.tables(mapping.is_some());
        Ok(own)
    }

    /// The linear program.
    #[must_use]
    pub fn program(&self) -> &LinearProgram {
        &self.program
    }

    /// The routes in a solution. What goes round apart from a route is left out: (1) to (9) allow it.
    #[must_use]
    pub fn solution(&self, values: &[f64]) -> Vec<Route> {
        let taken = |link: usize, stream: usize| {
            self.r(link, stream)
                .is_some_and(|variable| values.get(variable).is_some_and(|&value| value > 0.5))
        };
        let hosts = self.hosts(values);
        let end = |end: u32| if self.on_host.is_empty() { end } else { hosts[end as usize] };
        let mut routes = Vec::with_capacity(self.streams.len());
        for (stream, flow) in self.streams.iter().enumerate() {
            let (source, destination) = (end(flow.source), end(flow.destination));
            let mut node = source;
            let mut links: Vec<u32> = Vec::new();
            while node != destination && links.len() <= self.system.links.len() {
                let own = self.system.links.iter().enumerate();
                let Some((link, to)) =
                    own.filter(|(_, link)| link.source == node).find(|&(link, _)| taken(link, stream))
                else {
                    break;
                };
                links.push(link as u32);
                node = to.destination;
            }
            let (bandwidth_bytes_per_s, streams) = (flow.bandwidth, flow.streams.clone());
            routes.push(Route { source, destination, bandwidth_bytes_per_s, streams, links });
        }
        routes
    }

    /// The host of every process in a solution of the second problem.
    #[must_use]
    pub fn hosts(&self, values: &[f64]) -> Vec<u32> {
        let mut hosts = vec![0; self.graph.ranks()];
        for (&(host, process), &variable) in &self.on_host {
            if values.get(variable).is_some_and(|&value| value > 0.5) {
                hosts[process as usize] = host;
            }
        }
        hosts
    }

    /// Forbids that routes go on from each of these links to the next, and from the last to the first.
    pub fn forbid(&mut self, circle: &[u32]) {
        let number = self.circles;
        self.circles += 1;
        let mut sum = Vec::new();
        for (at, &link) in circle.iter().enumerate() {
            let next = circle[(at + 1) % circle.len()];
            let variable = match self.goes_on.get(&(link, next)) {
                Some(&variable) => variable,
                None => self.going_on(link, next),
            };
            sum.push((variable, 1.0));
        }
        let most = sum.len() as f64 - 1.0;
        self.program.constrain(format!("circle_{number}"), sum, Sense::AtMost, most);
    }

    /// A variable that is at least 1 if some route goes on from a link to another.
    fn going_on(&mut self, link: u32, next: u32) -> usize {
        let variable = self.program.variable(format!("D_{link}_{next}"), Domain::NotNegative, 0.0);
        self.goes_on.insert((link, next), variable);
        for stream in 0..self.streams.len() {
            if let (Some(first), Some(second)) =
                (self.r(link as usize, stream), self.r(next as usize, stream))
            {
                let terms = vec![(first, 1.0), (second, 1.0), (variable, -1.0)];
                self.program.constrain(format!("goes_{link}_{next}_{stream}"), terms, Sense::AtMost, 1.0);
            }
        }
        variable
    }

    /// R[l, s], and the length of the longest route (10).
    fn routes(&mut self) {
        let longest = self.program.variable("Rmax".to_owned(), Domain::NotNegative, self.weights.longest);
        for stream in 0..self.streams.len() {
            let mut length = vec![(longest, -1.0)];
            for (link, there) in self.system.links.iter().enumerate() {
                if there.state == LinkState::Up {
                    let name = format!("R_{link}_{stream}");
                    let variable = self.program.variable(name, Domain::Binary, self.weights.hops);
                    self.on_link[link * self.streams.len() + stream] = Some(variable);
                    length.push((variable, 1.0));
                }
            }
            self.program.constrain(format!("length_{stream}"), length, Sense::AtMost, 0.0);
        }
    }

    fn r(&self, link: usize, stream: usize) -> Option<usize> {
        self.on_link[link * self.streams.len() + stream]
    }

    /// R of the links of a stream that arrive at a node (factor 1) and leave it (factor −1).
    fn at_node(&self, node: u32, stream: usize) -> Vec<(usize, f64)> {
        let links = self.system.links.iter().enumerate();
        let at = links.filter_map(|(index, link)| match (link.source == node, link.destination == node) {
            (true, _) => Some((self.r(index, stream)?, -1.0)),
            (_, true) => Some((self.r(index, stream)?, 1.0)),
            _ => None,
        });
        at.collect()
    }

    fn nodes(&self, kind: NodeKind) -> impl Iterator<Item = u32> + use<'a> {
        (0..).zip(&self.system.nodes).filter(move |(_, node)| node.kind == kind).map(|(id, _)| id)
    }

    /// (1): a route begins at its source, ends at its destination and goes through all other nodes.
    fn ends_given(&mut self) {
        for (index, flow) in self.streams.clone().into_iter().enumerate() {
            for node in 0..self.system.nodes.len() as u32 {
                let end =
                    f64::from(u8::from(node == flow.destination)) - f64::from(u8::from(node == flow.source));
                let terms = self.at_node(node, index);
                self.program.constrain(format!("flow_{index}_{node}"), terms, Sense::Equal, end);
            }
        }
    }

    /// (12) to (15): every process is on one host, hosts have the performance, and routes join the hosts of processes.
    fn ends_looked_for(&mut self) {
        let hosts: Vec<u32> = self.nodes(NodeKind::Host).collect();
        for (process, demand) in (0..).zip(&self.graph.demands.processes) {
            let mut one = Vec::new();
            for &host in &hosts {
                let node = &self.system.nodes[host as usize];
                let has = |wanted: &String| node.traits.capabilities.contains(wanted);
                let may = demand.capabilities.iter().all(has)
                    && demand.host.as_ref().is_none_or(|name| *name == node.name);
                if may {
                    let variable = self.program.variable(format!("M_{host}_{process}"), Domain::Binary, 0.0);
                    self.on_host.insert((host, process), variable);
                    one.push((variable, 1.0));
                }
            }
            self.program.constrain(format!("somewhere_{process}"), one, Sense::Equal, 1.0);
        }
        for &host in &hosts {
            self.fits(host);
        }
        for (index, flow) in self.streams.clone().into_iter().enumerate() {
            for node in 0..self.system.nodes.len() as u32 {
                let mut terms = self.at_node(node, index);
                for (process, factor) in [(flow.source, 1.0), (flow.destination, -1.0)] {
                    // A stream from a process to itself begins and ends at its host.
                    if flow.source != flow.destination {
                        terms.extend(self.on_host.get(&(node, process)).map(|&variable| (variable, factor)));
                    }
                }
                self.program.constrain(format!("flow_{index}_{node}"), terms, Sense::Equal, 0.0);
            }
        }
    }

    /// (13), and the same for devices.
    fn fits(&mut self, host: u32) {
        let traits = &self.system.nodes[host as usize].traits;
        let mut kinds: BTreeMap<Option<&String>, Vec<(usize, f64)>> = BTreeMap::new();
        for (process, demand) in (0..).zip(&self.graph.demands.processes) {
            let Some(&variable) = self.on_host.get(&(host, process)) else { continue };
            if demand.performance > 0.0 {
                kinds.entry(None).or_default().push((variable, demand.performance));
            }
            for (device, &count) in &demand.devices {
                kinds.entry(Some(device)).or_default().push((variable, f64::from(count)));
            }
        }
        for (number, (device, terms)) in kinds.into_iter().enumerate() {
            let there = match device {
                None => traits.performance,
                Some(device) => Some(f64::from(traits.devices.get(device).copied().unwrap_or_default())),
            };
            if let Some(there) = there {
                self.program.constrain(format!("fits_{host}_{number}"), terms, Sense::AtMost, there);
            }
        }
    }

    /// (2): no link carries more than it can.
    fn capacity(&mut self) {
        for (link, there) in self.system.links.iter().enumerate() {
            let Some(bandwidth) = there.bandwidth_bytes_per_s else { continue };
            let flows = self.streams.iter().enumerate();
            let terms: Vec<_> =
                flows.filter_map(|(stream, flow)| Some((self.r(link, stream)?, flow.bandwidth))).collect();
            self.program.constrain(format!("capacity_{link}"), terms, Sense::AtMost, bandwidth);
        }
    }

    /// (3): a route uses at most one link of a host.
    fn hosts_pass_nothing_on(&mut self) {
        for host in self.nodes(NodeKind::Host) {
            for stream in 0..self.streams.len() {
                let terms =
                    self.at_node(host, stream).into_iter().map(|(variable, _)| (variable, 1.0)).collect();
                self.program.constrain(format!("host_{host}_{stream}"), terms, Sense::AtMost, 1.0);
            }
        }
    }

    /// (4) and (5): a route enters and leaves a switch at most once.
    fn switches_once(&mut self) {
        for switch in self.nodes(NodeKind::Switch) {
            for stream in 0..self.streams.len() {
                for (side, sign) in [("in", 1.0), ("out", -1.0)] {
                    let own = self
                        .at_node(switch, stream)
                        .into_iter()
                        .filter(|(_, factor)| factor.total_cmp(&sign).is_eq());
                    let terms = own.map(|(variable, _)| (variable, 1.0)).collect();
                    self.program.constrain(format!("{side}_{switch}_{stream}"), terms, Sense::AtMost, 1.0);
                }
            }
        }
    }

    /// (6) to (9), (16) and (17): routes follow tables.
    fn tables(&mut self, is_mapped: bool) {
        let hosts: Vec<u32> = match is_mapped {
            false => self.nodes(NodeKind::Host).collect(),
            true => {
                let mut hosts: Vec<u32> = self.streams.iter().map(|flow| flow.destination).collect();
                hosts.sort_unstable();
                hosts.dedup();
                hosts
            }
        };
        for switch in self.nodes(NodeKind::Switch) {
            let of = |pick: &dyn Fn(&hopmap_model::Link) -> u32| -> Vec<usize> {
                let links = self.system.links.iter().enumerate();
                links
                    .filter(|(_, link)| link.state == LinkState::Up && pick(link) == switch)
                    .map(|(index, _)| index)
                    .collect()
            };
            let (inputs, outputs) = (of(&|link| link.destination), of(&|link| link.source));
            let is_two = self.system.nodes[switch as usize].traits.switch_type == Some(SwitchType::Two);
            for &host in &hosts {
                match is_two {
                    false => self.one_table(switch, host, &outputs),
                    true => inputs.iter().for_each(|&input| self.table_of_port(input, host, &outputs)),
                }
            }
        }
    }

    /// (6), and (7) or (16).
    fn one_table(&mut self, switch: u32, host: u32, outputs: &[usize]) {
        let mut one = Vec::new();
        for &link in outputs {
            let entry =
                self.program.variable(format!("T1_{link}_{host}"), Domain::Binary, self.weights.entries);
            one.push((entry, 1.0));
            self.follow(&[link], host, entry, &format!("follow1_{link}_{host}"));
        }
        self.program.constrain(format!("table1_{switch}_{host}"), one, Sense::AtMost, 1.0);
    }

    /// (8), and (9) or (17).
    fn table_of_port(&mut self, input: usize, host: u32, outputs: &[usize]) {
        let back = self.system.links[input].source;
        let mut one = Vec::new();
        for &output in outputs {
            if self.system.links[output].destination == back {
                // Straight back where it came from nothing gets anywhere: (3) to (5).
                continue;
            }
            let name = format!("T2_{input}_{output}_{host}");
            let entry = self.program.variable(name, Domain::Binary, self.weights.entries);
            one.push((entry, 1.0));
            self.follow(&[input, output], host, entry, &format!("follow2_{input}_{output}_{host}"));
        }
        self.program.constrain(format!("table2_{input}_{host}"), one, Sense::AtMost, 1.0);
    }

    /// A stream that takes all these links and is for a host needs the entry.
    fn follow(&mut self, links: &[usize], host: u32, entry: usize, name: &str) {
        for (stream, flow) in self.streams.clone().into_iter().enumerate() {
            let for_host = match self.on_host.is_empty() {
                true if flow.destination != host => continue,
                true => None,
                false => match self.on_host.get(&(host, flow.destination)) {
                    Some(&variable) => Some(variable),
                    None => continue,
                },
            };
            let taken: Option<Vec<usize>> = links.iter().map(|&link| self.r(link, stream)).collect();
            let Some(taken) = taken else { continue };
            let mut terms: Vec<(usize, f64)> =
                taken.into_iter().chain(for_host).map(|variable| (variable, 1.0)).collect();
            let most = terms.len() as f64 - 1.0;
            terms.push((entry, -1.0));
            self.program.constrain(format!("{name}_{stream}"), terms, Sense::AtMost, most);
        }
    }
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
