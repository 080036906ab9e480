//! The last step of every import: slots and costs.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_formats::slots::SLOTS;
use hopmap_model::{
    CostModel, Levels, Link, Node, NodeKind, RouteCosts, RouteMetric, Routing, Slot, SystemGraph, fill_rates,
    to_u32,
};

use super::format::{malformed, some};
pub(super) use super::hwloc::folder::HostShape;
use super::hwloc::folder::{Names, hosts, names_of_hosts};
use super::networks::{Member, choose};
use super::{ImportError, ImportParams, Imported, Result};
use hopmap_machines::params::CostMetric;

/// Largest number of slots.
pub(super) const MOST_SLOTS: usize = 1 << 24;

/// Hosts, switches and links from an importer.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    /// Hosts first.
    pub(super) nodes: Vec<Node>,
    pub(super) links: Vec<Link>,
    pub(super) routing: Routing,
    /// Shapes of hosts by name, if known.
    pub(super) shapes: BTreeMap<String, HostShape>,
}

/// Checks parameters independently of the file.
pub(super) fn check(params: &ImportParams) -> Result<()> {
    let wrong = |name, problem, help| Err(ImportError::parameter(name, problem, help));
    match (params.cost, params.bytes) {
        (Some(CostMetric::Time), None) => {
            let help = "the time of a message depends on its bytes: `bytes = 65536`";
            return wrong("bytes", "is missing", help);
        }
        (cost, Some(_)) if cost != Some(CostMetric::Time) => {
            return wrong("bytes", "has no effect", "set `cost = \"time\"` as well, or omit it");
        }
        _ => {}
    }
    if params.link_latency_s.is_some_and(|latency| !(latency.is_finite() && latency >= 0.0)) {
        return wrong("link_latency_s", "is not a valid number of seconds", "such as 1e-7");
    }
    let is_rate = |rate: &f64| rate.is_finite() && *rate > 0.0;
    if !params.link_bandwidth_bytes_per_s.iter().all(is_rate) {
        let help = "such as [50e9, 400e9], first the links of hosts";
        return wrong(
            "link_bandwidth_bytes_per_s",
            "is not a number of bytes per second, or a list of them",
            help,
        );
    }
    if params.slots.most() as usize > MOST_SLOTS {
        return wrong("slots", "is out of range", "a host has between 1 and 16777216 slots");
    }
    for (name, costs) in [("intra_node_costs", &params.intra_node_costs), ("costs", &params.costs)] {
        let is_rising = costs.windows(2).all(|pair| pair[0] <= pair[1]);
        if !(is_rising && costs.iter().all(|cost| cost.is_finite() && *cost >= 0.0)) {
            return wrong(
                name,
                "is not non-decreasing",
                "costs must be non-negative and must not decrease outwards",
            );
        }
    }
    Ok(())
}

/// The machine topology of the networks that the parameters choose, and its notes.
pub(super) fn imported(parts: Parts, params: &ImportParams, mut remarks: Vec<String>) -> Result<Imported> {
    let Parts { nodes, links, mut routing, shapes } = parts;
    let members = (0..nodes.len()).map(|host| {
        let Node { kind, name, address, .. } = &nodes[host];
        Member { kind: *kind, host, name, address: address.as_deref().unwrap_or(""), others: [""; 2] }
    });
    let members: Vec<Member<'_>> = members.collect();
    let choice = choose(&members, &links, params, &mut remarks)?;
    let (nodes, links, forwarding) = choice.reduce((nodes, links, routing.forwarding));
    routing.forwarding = forwarding;
    let system = machine(Parts { nodes, links, routing, shapes }, params)?;
    Ok(Imported { system, notes: remarks })
}

/// The machine topology with slots and costs.
pub(super) fn machine(mut parts: Parts, params: &ImportParams) -> Result<SystemGraph> {
    if parts.nodes.iter().all(|node| node.kind != NodeKind::Host) {
        return Err(malformed(None, "no hosts", "list the hosts that are linked to the switches"));
    }
    if let Some(folder) = &params.hwloc {
        join(&mut parts, &hosts(folder.path(), params.hardware_threads)?);
    }
    if params.hardware_threads && params.hwloc.is_none() {
        let problem = "has no effect: the shape of hosts is unknown";
        let help = "set `hwloc` to the folder of hwloc's files";
        return Err(ImportError::parameter("hardware_threads", problem, help));
    }
    let (slots, mut inside) = slots(&parts, params)?;
    let mut links = parts.links;
    if links.is_empty() && !params.link_bandwidth_bytes_per_s.is_empty() {
        let problem = "has no effect: the file has no links between hosts";
        return Err(ImportError::parameter("link_bandwidth_bytes_per_s", problem, "omit it"));
    }
    fill_rates(&parts.nodes, &mut links, params.link_latency_s, &params.link_bandwidth_bytes_per_s);
    let metric = params.cost.unwrap_or_default().of_routes(params.bytes);
    if links.is_empty() && params.cost.is_some() {
        let problem = "has no effect: the file has no links between hosts";
        return Err(ImportError::parameter("cost", problem, "omit it"));
    }
    check_links(&links, metric)?;
    let hosts = slots.chunk_by(|a: &Slot, b| a.host == b.host).count();
    let is_apart = links.is_empty() && hosts > 1;
    let between;
    (inside.costs, between) = costs_inside(inside.groups.len(), params, (&links, metric), is_apart)?;
    let cost = match links.is_empty() {
        false => CostModel::Routes(RouteCosts { metric, inside }),
        true => {
            if is_apart {
                inside.costs.push(between);
                inside.groups.push(vec![0; slots.len()]);
            }
            CostModel::Levels(inside)
        }
    };
    let system = SystemGraph {
        nodes: parts.nodes,
        links,
        slots,
        cost,
        routing: parts.routing,
        calibration: Vec::new(),
    };
    system.check().map_err(ImportError::machine)?;
    Ok(system)
}

/// Gives all hosts the levels inside of one host, and the costs of these.
pub(super) fn like_one(system: &mut SystemGraph, one: &SystemGraph, costs: &[f64]) -> Result<()> {
    let wrong = |problem: String| {
        let help = "give the output of `nvidia-smi topo -m` or `lstopo` on one of the hosts, and the network as `path`";
        Err(ImportError::parameter("every_host", problem, help))
    };
    let (CostModel::Levels(shape), 1) = (&one.cost, one.hosts().count()) else {
        return wrong("does not describe the levels inside of one host".to_owned());
    };
    let SystemGraph { cost: CostModel::Routes(routes), links, .. } = &mut *system else {
        return wrong("has no effect: the file has no links between hosts".to_owned());
    };
    let params = ImportParams { intra_node_costs: costs.to_vec(), ..ImportParams::default() };
    let costs = costs_inside(shape.groups.len(), &params, (links, routes.metric), false)?.0;
    let mut groups = vec![Vec::new(); shape.groups.len()];
    for (host, (node, _, slots)) in (0..).zip(system.hosts()) {
        if slots as usize != one.slots.len() {
            let name = &system.nodes[node as usize].name;
            return wrong(format!("has {} slots, but `{name}` has {slots}", one.slots.len()));
        }
        for (all, own) in groups.iter_mut().zip(&shape.groups) {
            let count = own.iter().max().map_or(0, |last| last + 1);
            all.extend(own.iter().map(|group| host * count + group));
        }
    }
    if let CostModel::Routes(routes) = &mut system.cost {
        routes.inside = Levels { costs, groups };
    }
    for (slot, like) in system.slots.iter_mut().zip(one.slots.iter().cycle()) {
        slot.core = like.core;
    }
    system.check().map_err(ImportError::machine)
}

/// The slots of all hosts, and the groups inside hosts; the last groups are the hosts.
fn slots(parts: &Parts, params: &ImportParams) -> Result<(Vec<Slot>, Levels)> {
    let hosts: Vec<(u32, &Node)> =
        (0..).zip(&parts.nodes).filter(|(_, node)| node.kind == NodeKind::Host).collect();
    let plain = HostShape {
        cores: (0..params.slots().unwrap_or(1)).collect(),
        groups: vec![vec![0; params.slots().unwrap_or(1) as usize]],
    };
    let shape = |node: &Node| parts.shapes.get(&node.name).unwrap_or(&plain);
    let count: usize = hosts.iter().map(|(_, node)| shape(node).cores.len()).sum();
    if count > MOST_SLOTS {
        let problem = format!("gives {count} slots on {} hosts", hosts.len());
        let help = format!("a machine has at most {MOST_SLOTS} slots");
        return Err(ImportError::parameter("slots", problem, help));
    }
    let depth = hosts.iter().map(|(_, node)| shape(node).groups.len()).max().unwrap_or(1).max(1);
    let mut slots = Vec::with_capacity(count);
    let mut groups: Vec<Vec<u32>> = vec![Vec::with_capacity(count); depth];
    let mut firsts = vec![0; depth];
    for &(host, node) in &hosts {
        let shape = shape(node);
        // A host with fewer levels lacks the innermost ones: there each core is its own group.
        let missing = depth - shape.groups.len();
        for (level, (groups, next)) in groups.iter_mut().zip(&mut firsts).enumerate() {
            let first = *next;
            match level.checked_sub(missing) {
                Some(own) => groups.extend(shape.groups[own].iter().map(|group| first + group)),
                None => groups.extend((0..to_u32(shape.cores.len())).map(|core| first + core)),
            }
            let own = &groups[groups.len() - shape.cores.len()..];
            *next = own.iter().max().map_or(first, |most| most + 1);
        }
        slots.extend(shape.cores.iter().map(|&core| Slot { host, core }));
    }
    Ok((slots, Levels { costs: Vec::new(), groups }))
}

fn check_links(links: &[Link], metric: RouteMetric) -> Result<()> {
    if metric != RouteMetric::Hops && links.iter().any(|link| link.latency_s.is_none()) {
        let problem = "is missing: the file contains no link latencies";
        let help =
            "give the latency of a link including its switch in seconds, such as `link_latency_s = 1.5e-7`";
        return Err(ImportError::parameter("link_latency_s", problem, help));
    }
    let is_time = matches!(metric, RouteMetric::Time { .. });
    if is_time && links.iter().any(|link| link.bandwidth_bytes_per_s.is_none()) {
        let problem = "cannot be `time`: the bandwidths of some links are unknown";
        return Err(ImportError::parameter("cost", problem, "use `hops` or `latency`"));
    }
    Ok(())
}

/// As given, or in equal steps from zero to below the cheapest link; and the cost between hosts without a
/// network.
fn costs_inside(
    depth: usize,
    params: &ImportParams,
    (links, metric): (&[Link], RouteMetric),
    is_apart: bool,
) -> Result<(Vec<f64>, f64)> {
    let given = &params.intra_node_costs;
    if given.is_empty() {
        return Ok((metric.steps(depth, links), 1.0));
    }
    if given.len() == depth || (is_apart && given.len() == depth + 1) {
        let inside = given[..depth].to_vec();
        let between = given.get(depth).or(inside.last()).copied().unwrap_or(0.0);
        return Ok((inside, if given.len() > depth { between } else { (2.0 * between).max(1.0) }));
    }
    let problem = format!("has {} costs, but hosts have {depth} levels inside", given.len());
    Err(ImportError::parameter("intra_node_costs", problem, "give one cost per level, innermost first"))
}

/// Sets the shapes of hosts by file names.
fn join(parts: &mut Parts, shapes: &BTreeMap<String, HostShape>) {
    let names = Names::new(shapes.keys().map(String::as_str));
    for host in parts.nodes.iter().filter(|node| node.kind == NodeKind::Host) {
        if let Some(shape) = names.find(&host.name).and_then(|name| shapes.get(name)) {
            parts.shapes.insert(host.name.clone(), shape.clone());
        }
    }
}

/// Takes the slots that are given for each host, and notes hosts that have fewer.
pub(super) fn limit(Imported { system, notes }: &mut Imported, params: &ImportParams) -> Result<()> {
    let named = |(node, _, has): (u32, u32, u32)| (system.nodes[node as usize].name.clone(), Some(has));
    let hosts: Vec<_> = system.hosts().map(named).collect();
    let given = params.slots.of_hosts("", &hosts, "the machine topology", false);
    let given = given.map_err(|problem| ImportError::parameter("slots", problem.trim_start(), SLOTS))?;
    let more = || hosts.iter().zip(&given).filter(|((_, has), given)| given > &has);
    if let Some(((name, Some(has)), Some(given))) = more().next() {
        let more = more().count();
        notes.push(format!("hosts with fewer slots than `slots`: {more} (`{name}` has {has}, not {given})"));
    }
    if !params.slots.is_empty() && params.slots.of_all() == 0 {
        *system = system.with_slots_per_host(|host| given[host].unwrap_or(u32::MAX));
    }
    Ok(())
}

/// Notes on the correspondence of hosts and hwloc files.
pub(super) fn notes_of_hosts(system: &SystemGraph, params: &ImportParams) -> Result<Vec<String>> {
    let Some(folder) = &params.hwloc else { return Ok(Vec::new()) };
    let files = names_of_hosts(folder.path())?;
    let names = Names::new(files.iter().map(String::as_str));
    let is_host = |node: &&Node| node.kind == NodeKind::Host;
    let (mut used, mut without) = (BTreeSet::new(), Vec::new());
    for host in system.nodes.iter().filter(is_host) {
        match names.find(&host.name) {
            Some(name) => drop(used.insert(name)),
            None => without.push(host.name.as_str()),
        }
    }
    let unused: Vec<&str> = files.iter().map(String::as_str).filter(|name| !used.contains(name)).collect();
    let mut notes = Vec::new();
    if !without.is_empty() {
        let slots = params.slots().unwrap_or(1);
        notes.push(format!("hosts without an hwloc file, with {slots} slots each: {}", some(&without)));
    }
    if !unused.is_empty() {
        notes.push(format!("hwloc files without a host in the machine topology: {}", some(&unused)));
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::InputPath;

    const HOST: &str = "<topology><object type=\"Machine\"><object type=\"Core\"><object type=\"PU\" os_index=\"0\"/></object>\
                        <object type=\"Core\"><object type=\"PU\" os_index=\"1\"/></object></object></topology>";

    /// Three hosts, two of them with hwloc files, connected to a switch or not.
    fn system(joined: bool, inside: &[f64]) -> Result<(SystemGraph, Vec<String>)> {
        let folder = tempfile::tempdir().unwrap();
        for name in ["n1.xml", "n2.cluster.xml", "n9.xml"] {
            std::fs::write(folder.path().join(name), HOST).unwrap();
        }
        let mut nodes: Vec<Node> = ["n1.cluster", "n2", "n3"].into_iter().map(Node::host).collect();
        let mut links = Vec::new();
        if joined {
            nodes.push(Node::switch("s"));
            links = (0..3).flat_map(|host| [Link::new(host, 3), Link::new(3, host)]).collect();
        }
        let params = ImportParams {
            hwloc: Some(InputPath::new(folder.path())),
            slots: 4.into(),
            intra_node_costs: inside.to_vec(),
            ..ImportParams::default()
        };
        let parts = Parts { nodes, links, ..Parts::default() };
        let system = machine(parts, &params)?;
        let shown = notes_of_hosts(&system, &params)?;
        Ok((system, shown))
    }

    #[test]
    fn hosts_have_the_cores_of_hwloc_or_else_the_given_slots() {
        let (system, notes) = system(true, &[]).unwrap();
        assert_eq!(system.hosts().map(|(_, _, slots)| slots).collect::<Vec<_>>(), [2, 2, 4]);
        let CostModel::Routes(routes) = &system.cost else { panic!("no routes") };
        assert_eq!(routes.inside.groups, [vec![0, 0, 1, 1, 2, 2, 2, 2]]);
        assert_eq!(notes.len(), 2);
        let mut imported = Imported { system: system.clone(), notes: Vec::new() };
        limit(&mut imported, &ImportParams { slots: 4.into(), ..ImportParams::default() }).unwrap();
        assert_eq!(imported.notes, ["hosts with fewer slots than `slots`: 2 (`n1.cluster` has 2, not 4)"]);
        assert!(notes[0].contains("with 4 slots each: 1 (`n3`)"), "{notes:?}");
        assert!(notes[1].contains("machine topology: 1 (`n9`)"), "{notes:?}");
    }

    #[test]
    fn unknown_bandwidths_are_those_of_the_level() {
        let mut nodes: Vec<Node> = ["a", "b"].into_iter().map(Node::host).collect();
        nodes.extend(["l1", "l2", "s", "c"].into_iter().map(Node::switch));
        let ends = [(0, 2), (1, 3), (2, 4), (3, 4), (4, 5)];
        let mut links: Vec<Link> = ends.iter().map(|&(a, b)| Link::new(a, b)).collect();
        links[1].bandwidth_bytes_per_s = Some(7.0);
        let rates = |by_level: &[f64]| {
            let mut links = links.clone();
            fill_rates(&nodes, &mut links, None, by_level);
            links.iter().map(|link| link.bandwidth_bytes_per_s.unwrap_or(0.0)).collect::<Vec<_>>()
        };
        assert_eq!(rates(&[1.0, 2.0]), [1.0, 7.0, 2.0, 2.0, 2.0]);
        assert_eq!(rates(&[5.0]), [5.0, 7.0, 5.0, 5.0, 5.0]);
        assert_eq!(rates(&[]), [0.0, 7.0, 0.0, 0.0, 0.0]);
        let wrong = ImportParams { link_bandwidth_bytes_per_s: vec![1e9, -1.0], ..ImportParams::default() };
        assert!(
            check(&wrong).unwrap_err().to_string().contains("`link_bandwidth_bytes_per_s` is not a number")
        );
    }

    #[test]
    fn hosts_without_a_network_cost_more_than_cores() {
        let costs = |inside: &[f64]| {
            let (system, _) = system(false, inside).unwrap();
            let CostModel::Levels(levels) = system.cost else { panic!("no levels") };
            levels.costs
        };
        assert_eq!(costs(&[]), [0.0, 1.0]);
        assert_eq!(costs(&[3.0]), [3.0, 6.0]);
        assert_eq!(costs(&[3.0, 4.0]), [3.0, 4.0]);
        assert!(system(true, &[3.0, 4.0]).unwrap_err().to_string().contains("2 costs"));
        let threads = ImportParams { hardware_threads: true, ..ImportParams::default() };
        let one = Parts { nodes: vec![Node::host("n1")], ..Parts::default() };
        let refused = machine(one, &threads).unwrap_err();
        assert!(machine(Parts::default(), &threads).unwrap_err().to_string().contains("no hosts"));
        assert!(refused.to_string().contains("`hardware_threads` has no effect"));
    }
}
