//! Reads a program and a network from one JSON or TOML file.
//!
//! ```toml
//! hosts     = [{ name = "h1", performance = 2, capabilities = ["fpga"], devices = { camera = 1 } }, { name = "h2", performance = 1 }]
//! switches  = [{ name = "A", type = 1 }]
//! links     = [{ a = "h1", b = "A", bandwidth = 100 }, { a = "A", b = "h2", bandwidth = 50, a_port = 3 }]
//! processes = [{ name = "P1", requires = 1, capabilities = ["fpga"] }, { name = "P2", requires = 1, devices = { camera = 1 } }]
//! streams   = [{ from = "P1", to = "P2", bandwidth = 40 }]
//! mapping   = { P1 = "h1" }          # optional: hosts of all processes, or of those that are fixed
//! tables    = [{ switch = "A", destination = "h2", output = 3 }]                         # optional: input = 0 for the table of a port
//! ```
//!
//! A link has its bandwidth in each direction, unless it is `directed` from `a` to `b`. Ports that the file does not specify are
//! numbered from 0 in the order of the links.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use hopmap_model::{
    Demands, Edge, Link, Mapping, Node, NodeKind, NodeTraits, ProcessDemand, Routing, Slot, SwitchType,
    SystemGraph, TableEntry, Tables, TaskGraph, Weight,
};
use hopmap_routing::error::{Result, RouteError, fail, is_above_zero, is_amount};
use hopmap_routing::network::slots_of;
use hopmap_text::FileError;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::params::{ImportParams, LinkParams};

/// Maximum file size in bytes.
const MOST_BYTES: u64 = 1 << 28;
/// Maximum number of hosts, switches, links, processes or streams.
const MOST: usize = 1 << 20;
/// Maximum slots of a host if processes have no demands.
const MOST_SLOTS: usize = 1 << 20;

/// A program, a network, and the parts of the solution that the file specifies.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// The processes and streams.
    pub graph: TaskGraph,
    /// The hosts, switches and links.
    pub system: SystemGraph,
    /// The host of every process, if the file specifies all of them.
    pub mapping: Option<Mapping>,
    /// The tables of the switches, if the file has any.
    pub tables: Option<Tables>,
}

impl Instance {
    /// Reads an instance.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        Self::parse(&hopmap_text::read(path, MOST_BYTES)?, path)
    }

    /// Reads an instance and applies the parameters.
    pub(crate) fn changed(params: &ImportParams) -> Result<Self, FileError> {
        let path = params.path.path();
        Self::parse_changed(&hopmap_text::read(path, MOST_BYTES)?, path, |file| file.change(params))
    }

    /// The same from the bytes of a file.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, FileError> {
        Self::parse_changed(bytes, path, |_| Ok(()))
    }

    fn parse_changed(
        bytes: &[u8],
        path: &Path,
        change: impl FnOnce(&mut File) -> Result<()>,
    ) -> Result<Self, FileError> {
        let help = "an instance has `hosts`, `switches`, `links`, `processes` and `streams`, as JSON or TOML";
        let mut file: File = parse_as(bytes, help).map_err(|error| error.in_file(path))?;
        change(&mut file)
            .and_then(|()| build(&file))
            .map_err(|error| FileError::new(error.problem, error.help).in_file(path))
    }
}

/// The file format of an instance.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    hosts: Vec<HostRow>,
    #[serde(default)]
    switches: Vec<SwitchRow>,
    #[serde(default)]
    links: Vec<CableRow>,
    processes: Vec<ProcessRow>,
    #[serde(default)]
    streams: Vec<StreamRow>,
    mapping: Option<BTreeMap<String, String>>,
    #[serde(default)]
    tables: Vec<EntryRow>,
    /// A comment.
    #[serde(rename = "note")]
    _note: Option<IgnoredAny>,
    /// Known results, for tests.
    #[serde(rename = "expected")]
    _expected: Option<IgnoredAny>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostRow {
    name: String,
    performance: f64,
    #[serde(default)]
    capabilities: Vec<String>,
    #[serde(default)]
    devices: BTreeMap<String, u32>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SwitchRow {
    name: String,
    #[serde(rename = "type")]
    switch_type: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CableRow {
    a: String,
    b: String,
    bandwidth: f64,
    a_port: Option<u32>,
    b_port: Option<u32>,
    #[serde(default)]
    directed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProcessRow {
    name: String,
    requires: f64,
    #[serde(default)]
    capabilities: Vec<String>,
    #[serde(default)]
    devices: BTreeMap<String, u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamRow {
    from: String,
    to: String,
    bandwidth: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryRow {
    switch: String,
    input: Option<u32>,
    destination: String,
    output: u32,
}

impl File {
    /// Applies the parameters that override the file.
    fn change(&mut self, params: &ImportParams) -> Result<()> {
        if let Some(performance) = params.performance {
            self.hosts.iter_mut().for_each(|host| host.performance = performance);
        }
        for (name, &switch_type) in &params.switch_types {
            let Some(switch) = self.switches.iter_mut().find(|switch| switch.name == *name) else {
                let names: Vec<&str> = self.switches.iter().map(|switch| switch.name.as_str()).collect();
                return fail(
                    format!("`switch_types` names `{name}`, which is not a switch"),
                    format!("switches: {}", names.join(", ")),
                );
            };
            switch.switch_type = switch_type;
        }
        self.links.extend(params.links.iter().cloned().map(|LinkParams { a, b, bandwidth }| CableRow {
            a,
            b,
            bandwidth,
            a_port: None,
            b_port: None,
            directed: false,
        }));
        if params.unmapped {
            self.mapping = None;
        }
        Ok(())
    }
}

/// Reads JSON or TOML; `help` lists the expected keys.
pub(crate) fn parse_as<T: serde::de::DeserializeOwned>(bytes: &[u8], help: &str) -> Result<T, FileError> {
    let text = hopmap_text::utf8(bytes)?;
    if text.trim().is_empty() {
        return Err(FileError::at(1, "the file is empty", help));
    }
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| {
            let message = error.to_string();
            // The position is reported separately.
            let plain = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
            FileError::at(error.line().max(1), plain, help)
        });
    }
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        FileError::at(text.as_bytes()[..at].split(|&byte| byte == b'\n').count(), error.message(), help)
    })
}

/// Converts the keys of an instance to a program and a network.
fn build(file: &File) -> Result<Instance> {
    for (what, count) in [
        ("hosts", file.hosts.len()),
        ("switches", file.switches.len()),
        ("links", file.links.len()),
        ("processes", file.processes.len()),
        ("streams", file.streams.len()),
    ] {
        if count > MOST {
            return fail(format!("{count} {what} exceed the limit"), format!("at most {MOST} are supported"));
        }
    }
    let mut system = network(&file.hosts, &file.switches, &file.links)?;
    let graph = program(file, &system)?;
    slots(&mut system, &graph.demands);
    let is_right = "correct the file";
    system.check().map_err(|error| RouteError::new(error.to_string(), is_right))?;
    graph.check().map_err(|error| RouteError::new(error.to_string(), is_right))?;
    let mapping = mapping(&graph, &system)?;
    let tables = if file.tables.is_empty() { None } else { Some(tables(file, &system)?) };
    Ok(Instance { graph, system, mapping, tables })
}

/// Numbers the names; rejects duplicates.
fn numbers<'a>(what: &str, names: impl Iterator<Item = &'a String>) -> Result<HashMap<&'a str, u32>> {
    let mut numbers = HashMap::new();
    for (number, name) in (0..).zip(names) {
        if name.trim().is_empty() {
            return fail(format!("{what} {number} has no name"), "give it one");
        }
        if numbers.insert(name.as_str(), number).is_some() {
            return fail(format!("two {what}s are named `{name}`"), "names must be unique");
        }
    }
    Ok(numbers)
}

fn number(numbers: &HashMap<&str, u32>, what: &str, name: &str, user: &str) -> Result<u32> {
    if let Some(&number) = numbers.get(name) {
        return Ok(number);
    }
    // The most similar name.
    let alike = |other: &&&str| {
        other.eq_ignore_ascii_case(name) || other.starts_with(name) || name.starts_with(**other)
    };
    let help = match numbers.keys().filter(alike).min() {
        Some(other) => format!("did you mean `{other}`?"),
        None => "names must match their declaration".to_owned(),
    };
    fail(format!("{user} names `{name}`, which is not a {what}"), help)
}

/// Hosts, switches and links of a machine or of a component, without slots.
pub(crate) fn network(hosts: &[HostRow], switches: &[SwitchRow], cables: &[CableRow]) -> Result<SystemGraph> {
    let mut nodes = Vec::new();
    for HostRow { name, performance, capabilities, devices } in hosts {
        if !is_amount(*performance) {
            return fail(format!("host `{name}` has a performance of {performance}"), "it is 0 or more");
        }
        nodes.push(host(name, *performance, capabilities, devices));
    }
    for SwitchRow { name, switch_type } in switches {
        nodes.push(switch(name, *switch_type)?);
    }
    let links = links(cables, &nodes)?;
    Ok(without_slots(nodes, links))
}

/// A host with its capabilities.
pub(crate) fn host(
    name: &str,
    performance: f64,
    capabilities: &[String],
    devices: &BTreeMap<String, u32>,
) -> Node {
    let traits = NodeTraits {
        performance: Some(performance),
        capabilities: sorted(capabilities),
        devices: devices.clone(),
        ..NodeTraits::default()
    };
    Node { traits, ..Node::host(name) }
}

/// A switch of type 1 or 2.
pub(crate) fn switch(name: &str, number: u32) -> Result<Node> {
    let Some(switch_type) = SwitchType::of_number(number) else {
        let help = "1: one table for all ports; 2: one table per port";
        return fail(format!("switch `{name}` is of type {number}"), help);
    };
    let traits = NodeTraits { switch_type: Some(switch_type), ..NodeTraits::default() };
    Ok(Node { traits, ..Node::switch(name) })
}

/// A machine whose costs are hops, still without slots.
pub(crate) fn without_slots(nodes: Vec<Node>, links: Vec<Link>) -> SystemGraph {
    let (slots, cost) = slots_of(Vec::new());
    SystemGraph { nodes, links, slots, cost, routing: Routing::default(), calibration: Vec::new() }
}

/// A node and the port at which a cable is attached.
pub(crate) type CableEnd = (u32, Option<u32>);

/// The two links of a cable between ports of nodes.
pub(crate) fn cable((a, source_port): CableEnd, (b, destination_port): CableEnd, width: f64) -> [Link; 2] {
    let link = Link { source_port, destination_port, bandwidth_bytes_per_s: Some(width), ..Link::new(a, b) };
    [link, link.reversed()]
}

/// Ports in use, by node.
pub(crate) struct Ports {
    pub(crate) taken: HashSet<(u32, u32)>,
    next: HashMap<u32, u32>,
}

impl Ports {
    /// The ports in use by links.
    pub(crate) fn of(links: &[Link]) -> Self {
        let ends = |link: &Link| [(link.source, link.source_port), (link.destination, link.destination_port)];
        let ends = links.iter().flat_map(ends);
        let taken = ends.filter_map(|(node, port)| Some((node, port?))).collect();
        Self { taken, next: HashMap::new() }
    }

    /// Takes the lowest free port of a node.
    pub(crate) fn lowest(&mut self, node: u32) -> u32 {
        let port = self.next.entry(node).or_default();
        while !self.taken.insert((node, *port)) {
            *port += 1;
        }
        *port
    }
}

fn sorted(names: &[String]) -> Vec<String> {
    names.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect()
}

/// Links with a port at both ends: those of the file, otherwise the lowest free ones, in the order of the links.
fn links(cables: &[CableRow], nodes: &[Node]) -> Result<Vec<Link>> {
    let numbers = numbers("node", nodes.iter().map(|node| &node.name))?;
    let mut ports = Ports::of(&[]);
    let mut joined: HashSet<(u32, u32)> = HashSet::new();
    let mut ends = Vec::with_capacity(cables.len());
    for cable in cables {
        let user = format!("the link between `{}` and `{}`", cable.a, cable.b);
        let [a, b] = [&cable.a, &cable.b].map(|name| number(&numbers, "host or switch", name, &user));
        let (a, b) = (a?, b?);
        check_cable(cable, &user, (a, b), nodes, &mut joined)?;
        for (node, port) in [(a, cable.a_port), (b, cable.b_port)] {
            if let Some(port) = port.filter(|&port| !ports.taken.insert((node, port))) {
                let name = &nodes[node as usize].name;
                return fail(format!("two links use port {port} of `{name}`"), "a port takes one cable");
            }
        }
        ends.push((a, b));
    }
    let mut links = Vec::with_capacity(2 * ends.len());
    for (row, (a, b)) in cables.iter().zip(ends) {
        let a_port = row.a_port.unwrap_or_else(|| ports.lowest(a));
        let b_port = row.b_port.unwrap_or_else(|| ports.lowest(b));
        let both = cable((a, Some(a_port)), (b, Some(b_port)), row.bandwidth);
        links.extend_from_slice(if row.directed { &both[..1] } else { &both });
    }
    Ok(links)
}

fn check_cable(
    cable: &CableRow,
    name: &str,
    (a, b): (u32, u32),
    nodes: &[Node],
    joined: &mut HashSet<(u32, u32)>,
) -> Result<()> {
    if a == b {
        return fail(format!("{name} connects a node to itself"), "a link connects two different nodes");
    }
    if !is_above_zero(cable.bandwidth) {
        let help = "it is above 0; omit links without bandwidth";
        return fail(format!("{name} has a bandwidth of {}", cable.bandwidth), help);
    }
    if [a, b].iter().all(|&node| nodes[node as usize].kind == NodeKind::Host) {
        return fail(format!("{name} connects two hosts"), "connect hosts through switches");
    }
    let pairs = [(a, b), (b, a)].into_iter().take(if cable.directed { 1 } else { 2 });
    let known = pairs.filter(|&pair| !joined.insert(pair)).count();
    if known > 0 && (cable.a_port.is_none() || cable.b_port.is_none()) {
        return fail(
            format!("{name} is defined twice"),
            "specify the ports of parallel cables with `a_port` and `b_port`",
        );
    }
    Ok(())
}

/// Processes and streams; the weight of an edge is its traffic per second.
fn program(file: &File, system: &SystemGraph) -> Result<TaskGraph> {
    let numbers = numbers("process", file.processes.iter().map(|process| &process.name))?;
    let mut processes = Vec::new();
    for ProcessRow { name, requires, capabilities, devices } in &file.processes {
        if !is_amount(*requires) {
            return fail(format!("process `{name}` requires {requires}"), "it is 0 or more");
        }
        processes.push(ProcessDemand {
            name: name.clone(),
            performance: *requires,
            capabilities: sorted(capabilities),
            devices: devices.clone(),
            host: None,
        });
    }
    for (name, host) in file.mapping.iter().flatten() {
        let process = number(&numbers, "process", name, "`mapping`")?;
        if !system.nodes.iter().any(|node| node.kind == NodeKind::Host && node.name == *host) {
            return fail(
                format!("`mapping` puts `{name}` on `{host}`, which is not a host"),
                "names must match those in `hosts`",
            );
        }
        processes[process as usize].host = Some(host.clone());
    }
    let mut streams = Vec::new();
    let mut pairs: BTreeMap<(u32, u32), (u64, f64)> = BTreeMap::new();
    for (index, StreamRow { from, to, bandwidth }) in file.streams.iter().enumerate() {
        let user = format!("stream {index}");
        let source = number(&numbers, "process", from, &user)?;
        let destination = number(&numbers, "process", to, &user)?;
        if !is_above_zero(*bandwidth) {
            return fail(format!("stream {index} needs a bandwidth of {bandwidth}"), "it is above 0");
        }
        streams.push(hopmap_model::Stream { source, destination, bandwidth_bytes_per_s: *bandwidth });
        let (count, sum) = pairs.entry((source, destination)).or_default();
        *count += 1;
        *sum += bandwidth;
    }
    let edge = |((source, destination), (messages, bandwidth)): ((u32, u32), (u64, f64))| Edge {
        source,
        destination,
        messages,
        bytes: bandwidth.ceil() as u64,
    };
    Ok(TaskGraph {
        processes: vec![hopmap_model::Process::default(); processes.len()],
        edges: pairs.into_iter().map(edge).collect(),
        demands: Demands { processes, streams },
        ..TaskGraph::default()
    })
}

/// Slots of every host: as many as processes of the smallest demand fit, or as are fixed there.
pub(crate) fn slots(system: &mut SystemGraph, demands: &Demands) {
    let processes = demands.processes.len();
    let least = demands.processes.iter().map(|demand| demand.performance).fold(f64::INFINITY, f64::min);
    // A given mapping may exceed the performance of hosts; a rule decides later whether that matters.
    let mut settled: HashMap<&str, usize> = HashMap::new();
    for host in demands.processes.iter().filter_map(|demand| demand.host.as_deref()) {
        *settled.entry(host).or_default() += 1;
    }
    let mut slots: Vec<Slot> = Vec::new();
    for (host, node) in (0..).zip(&system.nodes).filter(|(_, node)| node.kind == NodeKind::Host) {
        let fits = match node.traits.performance {
            Some(performance) if least > 0.0 => (performance / least * (1.0 + 1e-12)) as usize,
            _ => processes,
        };
        let settled = settled.get(node.name.as_str()).copied().unwrap_or_default();
        let count = fits.min(processes).max(settled).min(MOST_SLOTS) as u32;
        slots.extend((0..count).map(|core| Slot { host, core }));
    }
    (system.slots, system.cost) = slots_of(slots);
}

/// The slot of every process, if all are fixed.
fn mapping(graph: &TaskGraph, system: &SystemGraph) -> Result<Option<Mapping>> {
    let mut free: HashMap<&str, std::ops::Range<u32>> = system
        .hosts()
        .map(|(node, first, count)| (system.nodes[node as usize].name.as_str(), first..first + count))
        .collect();
    let mut slots = Vec::new();
    for host in graph.demands.processes.iter().filter_map(|demand| demand.host.as_deref()) {
        let Some(slot) = free.get_mut(host).and_then(Iterator::next) else {
            return fail(
                format!("`mapping` puts more processes on host `{host}` than its performance allows"),
                "move some of them to other hosts",
            );
        };
        slots.push(slot);
    }
    if slots.len() < graph.ranks() || slots.is_empty() {
        return Ok(None);
    }
    let mapping = Mapping::new(&slots, system, Weight::Bytes);
    mapping.map(Some).map_err(|error| RouteError::new(error.to_string(), "correct `mapping`"))
}

fn tables(file: &File, system: &SystemGraph) -> Result<Tables> {
    let names: HashMap<&str, u32> = system.nodes.iter().map(|node| node.name.as_str()).zip(0..).collect();
    let mut entries = Vec::new();
    for row in &file.tables {
        let switch = number(&names, "switch", &row.switch, "a table")?;
        let destination = number(&names, "host", &row.destination, &format!("a table of `{}`", row.switch))?;
        let kinds = [switch, destination].map(|node| system.nodes[node as usize].kind);
        if kinds != [NodeKind::Switch, NodeKind::Host] {
            return fail(
                format!("a table entry at `{}` has the destination `{}`", row.switch, row.destination),
                "only switches have tables, and destinations must be hosts",
            );
        }
        let is_one = system.nodes[switch as usize].traits.switch_type == Some(SwitchType::One);
        if let Some(input) = row.input.filter(|_| is_one) {
            return fail(
                format!("switch `{}` is of type 1, but has a table for port {input}", row.switch),
                "a switch of type 1 has one table: omit `input`",
            );
        }
        entries.push(TableEntry { switch, input_port: row.input, destination, output_port: row.output });
    }
    entries.sort_unstable();
    let tables = Tables { entries, metrics: BTreeMap::new() };
    match tables.check() {
        Ok(()) => Ok(tables),
        Err(error) => fail(error.to_string(), "a table has one port for every destination"),
    }
}
