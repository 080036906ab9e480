//! From the keys of an instance to a program and a network.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use hopmap_model::{
    CostModel, Demands, Edge, Levels, Link, Mapping, Node, NodeKind, NodeTraits, Process, ProcessDemand,
    RouteCosts, RouteMetric, Routing, Slot, Stream, SwitchType, SystemGraph, TableEntry, Tables, TaskGraph,
    Weight,
};

use super::file::{Cable, File};

/// A program, a network, and what the file settles of the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// The processes and streams.
    pub graph: TaskGraph,
    /// The hosts, switches and links.
    pub system: SystemGraph,
    /// The host of every process, if the file says it of all of them.
    pub mapping: Option<Mapping>,
    /// The tables of the switches, if the file has any.
    pub tables: Option<Tables>,
}

/// Most hosts, switches, links, processes or streams.
const MOST: usize = 1 << 20;
/// Most slots of a host, where processes ask for nothing.
const MOST_SLOTS: usize = 1 << 20;

/// What is wrong, and what to do.
type Wrong = (String, String);

fn wrong<T>(problem: impl Into<String>, help: impl Into<String>) -> Result<T, Wrong> {
    Err((problem.into(), help.into()))
}

pub(super) fn build(file: &File) -> Result<Instance, Wrong> {
    for (what, count) in [
        ("hosts", file.hosts.len()),
        ("switches", file.switches.len()),
        ("links", file.links.len()),
        ("processes", file.processes.len()),
        ("streams", file.streams.len()),
    ] {
        if count > MOST {
            return wrong(format!("there are {count} {what}"), format!("at most {MOST} are read"));
        }
    }
    let mut system = network(file)?;
    let graph = program(file, &system)?;
    slots(&mut system, &graph.demands);
    system.check().map_err(|error| (error.to_string(), "is the file right?".to_owned()))?;
    graph.check().map_err(|error| (error.to_string(), "is the file right?".to_owned()))?;
    let mapping = mapping(&graph, &system)?;
    let tables = if file.tables.is_empty() { None } else { Some(tables(file, &system)?) };
    Ok(Instance { graph, system, mapping, tables })
}

/// The number of every name; a name that stands twice is refused.
fn numbers<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<HashMap<&'a str, u32>, Wrong> {
    let mut numbers = HashMap::new();
    for (number, name) in (0..).zip(names) {
        if name.trim().is_empty() {
            return wrong(format!("{what} {number} has no name"), "give it one");
        }
        if numbers.insert(name, number).is_some() {
            return wrong(format!("two {what}s are called `{name}`"), "names tell them apart");
        }
    }
    Ok(numbers)
}

fn number(numbers: &HashMap<&str, u32>, what: &str, name: &str, user: &str) -> Result<u32, Wrong> {
    match numbers.get(name) {
        Some(&number) => Ok(number),
        None => wrong(format!("{user} names `{name}`, which is no {what}"), near(numbers, name)),
    }
}

/// A name that may have been meant.
fn near(numbers: &HashMap<&str, u32>, name: &str) -> String {
    let alike = |other: &&&str| {
        other.eq_ignore_ascii_case(name) || other.starts_with(name) || name.starts_with(**other)
    };
    match numbers.keys().filter(alike).min() {
        Some(other) => format!("is `{other}` meant?"),
        None => "is it spelt as where it is declared?".to_owned(),
    }
}

/// Nodes and links, without slots.
pub(super) fn network(file: &File) -> Result<SystemGraph, Wrong> {
    let mut nodes = Vec::new();
    for host in &file.hosts {
        if !(host.performance.is_finite() && host.performance >= 0.0) {
            return wrong(
                format!("host `{}` has a performance of {}", host.name, host.performance),
                "it is 0 or more",
            );
        }
        let capabilities = sorted(&host.capabilities);
        let traits = NodeTraits {
            performance: Some(host.performance),
            capabilities,
            devices: host.devices.clone(),
            ..NodeTraits::default()
        };
        nodes.push(Node { traits, ..Node::host(&host.name) });
    }
    for switch in &file.switches {
        let Some(switch_type) = SwitchType::of_number(switch.switch_type) else {
            return wrong(
                format!("switch `{}` is of type {}", switch.name, switch.switch_type),
                "1: one table for the whole switch; 2: a table for every port",
            );
        };
        let traits = NodeTraits { switch_type: Some(switch_type), ..NodeTraits::default() };
        nodes.push(Node { traits, ..Node::switch(&switch.name) });
    }
    let links = links(file, &nodes)?;
    let inside = Levels { costs: vec![0.0], groups: vec![Vec::new()] };
    let cost = CostModel::Routes(RouteCosts { metric: RouteMetric::Hops, inside });
    Ok(SystemGraph { nodes, links, slots: Vec::new(), cost, routing: Routing::default() })
}

fn sorted(names: &[String]) -> Vec<String> {
    names.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect()
}

/// Links with a port at both ends: those that the file says, else the lowest that is free, in the order of the links.
fn links(file: &File, nodes: &[Node]) -> Result<Vec<Link>, Wrong> {
    let numbers = numbers("node", nodes.iter().map(|node| node.name.as_str()))?;
    let mut taken: HashSet<(u32, u32)> = HashSet::new();
    let mut joined: HashSet<(u32, u32)> = HashSet::new();
    let mut ends = Vec::with_capacity(file.links.len());
    for cable in &file.links {
        let user = format!("the link between `{}` and `{}`", cable.a, cable.b);
        let [a, b] = [&cable.a, &cable.b].map(|name| number(&numbers, "host or switch", name, &user));
        let (a, b) = (a?, b?);
        check_cable(cable, (a, b), nodes, &mut joined)?;
        for (node, port) in [(a, cable.a_port), (b, cable.b_port)] {
            if let Some(port) = port.filter(|&port| !taken.insert((node, port))) {
                let name = &nodes[node as usize].name;
                return wrong(format!("two links are at port {port} of `{name}`"), "a port has one cable");
            }
        }
        ends.push((a, b));
    }
    let mut next: HashMap<u32, u32> = HashMap::new();
    let mut free = |node: u32| {
        let port = next.entry(node).or_default();
        while taken.contains(&(node, *port)) {
            *port += 1;
        }
        taken.insert((node, *port));
        *port
    };
    let mut links = Vec::with_capacity(2 * ends.len());
    for (cable, (a, b)) in file.links.iter().zip(ends) {
        let link = Link {
            source_port: Some(cable.a_port.unwrap_or_else(|| free(a))),
            destination_port: Some(cable.b_port.unwrap_or_else(|| free(b))),
            bandwidth_bytes_per_s: Some(cable.bandwidth),
            ..Link::new(a, b)
        };
        links.push(link);
        if !cable.directed {
            links.push(link.reversed());
        }
    }
    Ok(links)
}

fn check_cable(
    cable: &Cable,
    (a, b): (u32, u32),
    nodes: &[Node],
    joined: &mut HashSet<(u32, u32)>,
) -> Result<(), Wrong> {
    let name = format!("the link between `{}` and `{}`", cable.a, cable.b);
    if a == b {
        return wrong(format!("{name} leads back to where it comes from"), "a link joins two nodes");
    }
    if !(cable.bandwidth.is_finite() && cable.bandwidth > 0.0) {
        return wrong(
            format!("{name} has a bandwidth of {}", cable.bandwidth),
            "it is above 0; leave out links that carry nothing",
        );
    }
    let are_hosts = [a, b].iter().all(|&node| nodes[node as usize].kind == NodeKind::Host);
    if are_hosts {
        return wrong(format!("{name} joins two hosts"), "hosts are joined by switches");
    }
    let pairs = if cable.directed { vec![(a, b)] } else { vec![(a, b), (b, a)] };
    let named = cable.a_port.is_some() && cable.b_port.is_some();
    let known = pairs.into_iter().filter(|&pair| !joined.insert(pair)).count();
    if known > 0 && !named {
        return wrong(
            format!("{name} stands twice"),
            "parallel cables say their ports with `a_port` and `b_port`",
        );
    }
    Ok(())
}

/// Processes and streams; what they send in a second is what an edge weighs.
fn program(file: &File, system: &SystemGraph) -> Result<TaskGraph, Wrong> {
    let numbers = numbers("process", file.processes.iter().map(|process| process.name.as_str()))?;
    let mut processes = Vec::new();
    for process in &file.processes {
        if !(process.requires.is_finite() && process.requires >= 0.0) {
            return wrong(
                format!("process `{}` requires {}", process.name, process.requires),
                "it is 0 or more",
            );
        }
        processes.push(ProcessDemand {
            name: process.name.clone(),
            performance: process.requires,
            capabilities: sorted(&process.capabilities),
            devices: process.devices.clone(),
            host: None,
        });
    }
    for (name, host) in file.mapping.iter().flatten() {
        let process = number(&numbers, "process", name, "`mapping`")?;
        if !system.nodes.iter().any(|node| node.kind == NodeKind::Host && node.name == *host) {
            return wrong(
                format!("`mapping` puts `{name}` on `{host}`, which is no host"),
                "is it spelt as in `hosts`?",
            );
        }
        processes[process as usize].host = Some(host.clone());
    }
    let mut streams = Vec::new();
    for (index, stream) in file.streams.iter().enumerate() {
        let user = format!("stream {index}");
        let source = number(&numbers, "process", &stream.from, &user)?;
        let destination = number(&numbers, "process", &stream.to, &user)?;
        if !(stream.bandwidth.is_finite() && stream.bandwidth > 0.0) {
            return wrong(
                format!("stream {index} needs a bandwidth of {}", stream.bandwidth),
                "it is above 0",
            );
        }
        streams.push(Stream { source, destination, bandwidth_bytes_per_s: stream.bandwidth });
    }
    let edges = edges(&streams);
    let demands = Demands { processes, streams };
    let unknown = vec![Process::default(); file.processes.len()];
    Ok(TaskGraph { processes: unknown, edges, demands, ..TaskGraph::default() })
}

fn edges(streams: &[Stream]) -> Vec<Edge> {
    let mut pairs: BTreeMap<(u32, u32), (u64, f64)> = BTreeMap::new();
    for stream in streams {
        let (count, bandwidth) = pairs.entry((stream.source, stream.destination)).or_default();
        *count += 1;
        *bandwidth += stream.bandwidth_bytes_per_s;
    }
    let edge = |((source, destination), (messages, bandwidth)): ((u32, u32), (u64, f64))| Edge {
        source,
        destination,
        messages,
        bytes: bandwidth.ceil() as u64,
    };
    pairs.into_iter().map(edge).collect()
}

/// As many slots on every host as processes of the smallest demand fit, or have to be there.
pub(crate) fn slots(system: &mut SystemGraph, demands: &Demands) {
    let processes = demands.processes.len();
    let least = demands.processes.iter().map(|demand| demand.performance).fold(f64::INFINITY, f64::min);
    let hosts = (0..).zip(&system.nodes).filter(|(_, node)| node.kind == NodeKind::Host);
    // A mapping may be given whatever hosts can do: whether that matters is asked later.
    let mut settled: HashMap<&str, usize> = HashMap::new();
    demands
        .processes
        .iter()
        .filter_map(|demand| demand.host.as_deref())
        .for_each(|host| *settled.entry(host).or_default() += 1);
    let mut slots: Vec<Slot> = Vec::new();
    for (host, node) in hosts {
        let fits = match node.traits.performance {
            Some(performance) if least > 0.0 => (performance / least * (1.0 + 1e-12)) as usize,
            _ => processes,
        };
        let settled = settled.get(node.name.as_str()).copied().unwrap_or_default();
        let count = fits.min(processes).max(settled).min(MOST_SLOTS) as u32;
        slots.extend((0..count).map(|core| Slot { host, core }));
    }
    let groups = vec![slots.iter().map(|slot| slot.host).collect()];
    let inside = Levels { costs: vec![0.0], groups };
    system.slots = slots;
    system.cost = CostModel::Routes(RouteCosts { metric: RouteMetric::Hops, inside });
}

/// The slot of every process, if all have to be on a host.
fn mapping(graph: &TaskGraph, system: &SystemGraph) -> Result<Option<Mapping>, Wrong> {
    let hosts: HashMap<&str, (u32, u32)> = system
        .hosts()
        .map(|(node, first, count)| (system.nodes[node as usize].name.as_str(), (first, count)))
        .collect();
    let mut used: HashMap<&str, u32> = HashMap::new();
    let mut slots = Vec::new();
    for demand in &graph.demands.processes {
        let Some(host) = &demand.host else { continue };
        let next = used.entry(host).or_default();
        match hosts.get(host.as_str()) {
            Some(&(first, count)) if *next < count => slots.push(first + *next),
            _ => {
                return wrong(
                    format!("`mapping` puts more processes on host `{host}` than it has performance for"),
                    "move some to other hosts",
                );
            }
        }
        *next += 1;
    }
    if slots.len() < graph.ranks() || slots.is_empty() {
        return Ok(None);
    }
    match Mapping::new(&slots, system, Weight::Bytes) {
        Ok(mapping) => Ok(Some(mapping)),
        Err(error) => wrong(error.to_string(), "is `mapping` right?"),
    }
}

fn tables(file: &File, system: &SystemGraph) -> Result<Tables, Wrong> {
    let names =
        (0..).zip(&system.nodes).map(|(id, node)| (node.name.as_str(), id)).collect::<HashMap<&str, u32>>();
    let mut entries = Vec::new();
    for entry in &file.tables {
        let switch = number(&names, "switch", &entry.switch, "a table")?;
        let destination =
            number(&names, "host", &entry.destination, &format!("a table of `{}`", entry.switch))?;
        let [is_host, reaches_host] =
            [switch, destination].map(|node| system.nodes[node as usize].kind == NodeKind::Host);
        if is_host || !reaches_host {
            return wrong(
                format!("a table of `{}` says where `{}` is", entry.switch, entry.destination),
                "tables are those of switches, and destinations are hosts",
            );
        }
        let is_one = system.nodes[switch as usize].traits.switch_type == Some(SwitchType::One);
        if let Some(input) = entry.input.filter(|_| is_one) {
            return wrong(
                format!("switch `{}` is of type 1 and has a table for port {input}", entry.switch),
                "a switch of type 1 has one table: leave `input` out",
            );
        }
        entries.push(TableEntry { switch, input_port: entry.input, destination, output_port: entry.output });
    }
    entries.sort_unstable();
    let tables = Tables { entries, metrics: BTreeMap::new() };
    if let Err(error) = tables.check() {
        return wrong(error.to_string(), "a table says one port for every destination");
    }
    Ok(tables)
}
