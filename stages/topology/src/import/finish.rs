//! The last step of every import: slots on the hosts, and what they cost.

use std::collections::BTreeMap;
use std::path::Path;

use hopmap_model::{
    CostModel, Levels, Link, Node, NodeKind, RouteCosts, RouteMetric, Routing, Slot, SystemGraph,
};

use super::params::CostMetric;
use super::{ImportError, ImportParams, hwloc};

/// Most slots of a machine.
pub(super) const MOST_SLOTS: usize = 1 << 24;

/// Hosts, switches and links as an importer found them.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    /// Hosts first.
    pub(super) nodes: Vec<Node>,
    pub(super) links: Vec<Link>,
    pub(super) routing: Routing,
    /// What hosts are like inside, by name, where that is known.
    pub(super) shapes: BTreeMap<String, HostShape>,
}

/// The cores of a host, and which of them are near each other.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct HostShape {
    /// What the cores are called: logical numbers, rising.
    pub(super) cores: Vec<u32>,
    /// By level, innermost first, the group of every core. On the last level all cores are together.
    pub(super) groups: Vec<Vec<u32>>,
}

/// Checks what does not depend on the file.
pub(super) fn check(params: &ImportParams) -> Result<(), ImportError> {
    let wrong = |name, problem: &str, help: &str| {
        Err(ImportError::Parameter { name, problem: problem.into(), help: help.into() })
    };
    match (params.cost, params.bytes) {
        (Some(CostMetric::Time), None) => {
            return wrong(
                "bytes",
                "is missing",
                "the time of a message depends on its bytes: `bytes = 65536`",
            );
        }
        (cost, Some(_)) if cost != Some(CostMetric::Time) => {
            return wrong("bytes", "means nothing here", "say `cost = \"time\"` as well, or leave it out");
        }
        _ => {}
    }
    if params.link_latency.is_some_and(|latency| !(latency.is_finite() && latency >= 0.0)) {
        return wrong("link_latency", "is no number of seconds", "such as 1e-7");
    }
    if params.slots.is_some_and(|slots| slots == 0 || slots as usize > MOST_SLOTS) {
        return wrong("slots", "is out of range", "a host has between 1 and 16777216 slots");
    }
    for (name, costs) in [("inside", &params.inside), ("costs", &params.costs)] {
        let is_rising = costs.windows(2).all(|pair| pair[0] <= pair[1]);
        if !(is_rising && costs.iter().all(|cost| cost.is_finite() && *cost >= 0.0)) {
            return wrong(name, "does not rise", "costs are zero or more and do not fall outwards");
        }
    }
    Ok(())
}

/// The machine with slots and costs.
pub(super) fn machine(
    mut parts: Parts,
    params: &ImportParams,
    path: &Path,
) -> Result<SystemGraph, ImportError> {
    if let Some(folder) = &params.hwloc {
        parts.shapes.extend(hwloc::hosts(folder.path())?);
    }
    let (slots, mut inside) = slots(&parts, params)?;
    let latency = |link: Link| Link { latency_s: link.latency_s.or(params.link_latency), ..link };
    let links: Vec<Link> = parts.links.into_iter().map(latency).collect();
    let metric = metric(params);
    if links.is_empty() && params.cost.is_some() {
        return Err(ImportError::Parameter {
            name: "cost",
            problem: "means nothing here: the file has no links between hosts".into(),
            help: "leave it out".into(),
        });
    }
    check_links(&links, metric)?;
    inside.costs = costs_inside(inside.groups.len(), params, cheapest(&links, metric))?;
    let hosts = slots.chunk_by(|a: &Slot, b| a.host == b.host).count();
    let cost = match links.is_empty() {
        false => CostModel::Routes(RouteCosts { metric, inside }),
        true => {
            if hosts > 1 {
                let outermost = inside.costs.last().copied().unwrap_or(0.0).max(1.0);
                inside.costs.push(outermost);
                inside.groups.push(vec![0; slots.len()]);
            }
            CostModel::Levels(inside)
        }
    };
    let system = SystemGraph { nodes: parts.nodes, links, slots, cost, routing: parts.routing };
    system.check().map_err(|source| ImportError::Machine { path: path.to_owned(), source })?;
    Ok(system)
}

fn metric(params: &ImportParams) -> RouteMetric {
    match params.cost.unwrap_or_default() {
        CostMetric::Hops => RouteMetric::Hops,
        CostMetric::Latency => RouteMetric::Latency,
        CostMetric::Time => RouteMetric::Time { bytes: params.bytes.unwrap_or_default() },
    }
}

/// The slots of all hosts, and the groups inside hosts, of which the last are the hosts.
fn slots(parts: &Parts, params: &ImportParams) -> Result<(Vec<Slot>, Levels), ImportError> {
    let hosts: Vec<(u32, &Node)> =
        (0..).zip(&parts.nodes).filter(|(_, node)| node.kind == NodeKind::Host).collect();
    let plain = HostShape {
        cores: (0..params.slots.unwrap_or(1)).collect(),
        groups: vec![vec![0; params.slots.unwrap_or(1) as usize]],
    };
    let shape = |node: &Node| parts.shapes.get(&node.name).unwrap_or(&plain);
    let count: usize = hosts.iter().map(|(_, node)| shape(node).cores.len()).sum();
    if count > MOST_SLOTS {
        return Err(ImportError::Parameter {
            name: "slots",
            problem: format!("gives {count} slots on {} hosts", hosts.len()),
            help: format!("a machine has at most {MOST_SLOTS} slots"),
        });
    }
    let depth = hosts.iter().map(|(_, node)| shape(node).groups.len()).max().unwrap_or(1).max(1);
    let mut slots = Vec::with_capacity(count);
    let mut groups: Vec<Vec<u32>> = vec![Vec::with_capacity(count); depth];
    // By level, the number of the next group.
    let mut next = vec![0; depth];
    for &(host, node) in &hosts {
        let shape = shape(node);
        // A host with fewer levels has none of the innermost ones: every core is a group there.
        let missing = depth - shape.groups.len();
        for ((level, groups), next) in groups.iter_mut().enumerate().zip(&mut next) {
            let (first, place) = (*next, groups.len());
            match level.checked_sub(missing) {
                Some(own) => groups.extend(shape.groups[own].iter().map(|group| first + group)),
                None => groups.extend((0..shape.cores.len() as u32).map(|core| first + core)),
            }
            let most = groups.iter().skip(place).max();
            *next = most.map_or(first, |most| most + 1);
        }
        slots.extend(shape.cores.iter().map(|&core| Slot { host, core }));
    }
    Ok((slots, Levels { costs: Vec::new(), groups }))
}

fn check_links(links: &[Link], metric: RouteMetric) -> Result<(), ImportError> {
    let missing = |name, problem: &str, help: &str| {
        Err(ImportError::Parameter { name, problem: problem.into(), help: help.into() })
    };
    if metric != RouteMetric::Hops && links.iter().any(|link| link.latency_s.is_none()) {
        return missing(
            "link_latency",
            "is missing: the file does not say how long links take",
            "say how many seconds a link with its switch takes, such as `link_latency = 1.5e-7`",
        );
    }
    if matches!(metric, RouteMetric::Time { .. })
        && links.iter().any(|link| link.bandwidth_bytes_per_s.is_none())
    {
        return missing(
            "cost",
            "cannot be `time`: the file does not say how wide all links are",
            "count `hops` or `latency`",
        );
    }
    Ok(())
}

/// The least that any link costs; 1 without links.
fn cheapest(links: &[Link], metric: RouteMetric) -> f64 {
    let cost = |link: &Link| match metric {
        RouteMetric::Hops => 1.0,
        RouteMetric::Latency => link.latency_s.unwrap_or(0.0) * 1e6,
        RouteMetric::Time { bytes } => {
            let time = bytes as f64 / link.bandwidth_bytes_per_s.unwrap_or(f64::INFINITY);
            (link.latency_s.unwrap_or(0.0) + time) * 1e6
        }
    };
    links.iter().map(cost).reduce(f64::min).unwrap_or(1.0)
}

/// As given, or in equal steps from zero to below the cheapest link.
fn costs_inside(depth: usize, params: &ImportParams, cheapest: f64) -> Result<Vec<f64>, ImportError> {
    if params.inside.is_empty() {
        return Ok((0..depth).map(|level| cheapest * level as f64 / depth as f64).collect());
    }
    match params.inside.len() == depth {
        true => Ok(params.inside.clone()),
        false => Err(ImportError::Parameter {
            name: "inside",
            problem: format!("has {} costs, but hosts have {depth} levels inside", params.inside.len()),
            help: "give one cost for every level, innermost first".into(),
        }),
    }
}
