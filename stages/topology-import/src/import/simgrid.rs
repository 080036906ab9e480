//! Platform files of SimGrid, version 4 (by its DTD and the routing code of release 3.32).

mod declared;
mod platform;
mod routes;
mod shapes;

use std::collections::{BTreeMap, HashMap};

use hopmap_model::{
    CostModel, Forward, Matrix, NodeKind, Paths, Routing as Routes, SystemGraph, Ties, to_u32,
};

use super::finish::{HostShape, Parts, machine};
use super::format::{Sample, malformed};
use super::xml::{Xml, first_element};
use super::{ImportError, ImportParams, Imported, Result};
use hopmap_machines::params::CostMetric;
use platform::{Platform, Routing};
use routes::Router;

/// Largest number of hosts whose pairs are all examined.
const MOST_PAIRED: usize = 1500;
/// Largest number of slots of a matrix.
const MOST_MATRIX: usize = 8192;

/// The first element is a platform.
pub(super) fn recognises(sample: &Sample) -> bool {
    sample.text().and_then(first_element) == Some("platform")
}

pub(super) fn read(text: &str, params: &ImportParams) -> Result<Imported> {
    let xml = Xml::parse(text)?;
    let root = xml.root();
    if root.name() != "platform" {
        let help = "`<platform version=\"4.1\">` is expected";
        return Err(root.wrong(format!("`<{}>` is not a platform", root.name()), help));
    }
    let version = root.get("version").unwrap_or("0");
    if version.split('.').next().and_then(|major| major.parse().ok()).is_none_or(|major: u32| major < 4) {
        let problem = format!("version `{version}` of the format is too old");
        return Err(root.wrong(problem, "`simgrid_update_xml` of SimGrid makes it version 4.1"));
    }
    let mut platform = Platform::default();
    platform.read(root)?;
    let zones = 0..platform.zones.len();
    let is_joined = zones.filter(|&zone| !routes::join(&mut platform, zone)).count() == 0;
    let place = platform.net.hosts_first();
    for point in platform.points.iter_mut().filter(|point| point.inner.is_none()) {
        point.leave = place[point.leave as usize];
        point.arrive = place[point.arrive as usize];
    }
    check(&platform)?;
    let mut notes = std::mem::take(&mut platform.notes);
    let mut ignored: Vec<_> = platform.ignored.iter().collect();
    ignored.sort_unstable();
    notes.extend(ignored.into_iter().map(|(what, count)| format!("{what} ignored: {count}")));
    let system = system(params, &platform, is_joined, &mut notes)?;
    Ok(Imported { system, notes })
}

fn check(platform: &Platform) -> Result<()> {
    let hosts = platform.net.cores.iter().filter(|&&cores| cores > 0).count();
    if hosts == 0 {
        return Err(malformed(None, "no hosts", "add `<host>` or `<cluster>`"));
    }
    let shapes = platform.zones.iter().filter(|zone| zone.routing == Routing::Shape).count();
    if platform.has_torus && (hosts != platform.net.nodes.len() || shapes > 1) {
        let help = "keep the torus only";
        return Err(malformed(None, "a TORUS combined with other clusters, hosts or routers", help));
    }
    Ok(())
}

/// The machine: with links if they reproduce the routes of SimGrid, otherwise with a cost for every pair.
fn system(
    params: &ImportParams,
    platform: &Platform,
    is_joined: bool,
    notes: &mut Vec<String>,
) -> Result<SystemGraph> {
    let hosts: Vec<usize> = (0..platform.points.len()).filter(|&point| is_routed(platform, point)).collect();
    let router = Router::new(platform);
    if is_joined {
        let ties = if platform.first || platform.over_hosts { Ties::First } else { Ties::Spread };
        let mut system = machine(parts(platform, ties), params)?;
        let sample = sample(platform, &hosts);
        if sample.len() > MOST_PAIRED {
            notes.push(format!("{} hosts are too many to compare all routes with SimGrid's: using routes over the fewest links", hosts.len()));
            return Ok(system);
        }
        if has_routes(&system, platform, &router, &sample) {
            return Ok(system);
        }
        if platform.over_hosts {
            system.routing.ties = Ties::Spread;
            if has_routes(&system, platform, &router, &sample) {
                return Ok(system);
            }
        }
        if sample.len() == hosts.len()
            && let Some(forwarding) = forwarding(&system, platform, &router, &hosts)
        {
            system.routing.forwarding = forwarding;
            let holds = system.check().is_ok() && has_routes(&system, platform, &router, &hosts);
            if holds {
                notes.push("routes other than the shortest are kept as forwarding tables".into());
                return Ok(system);
            }
        }
    }
    notes.push("no network of links has these routes: every pair of hosts gets the cost of its route".into());
    matrix(params, platform, &router)
}

/// Whether a point is a host whose routes are derived link by link.
fn is_routed(platform: &Platform, point: usize) -> bool {
    let found = &platform.points[point];
    found.is_host && platform.zones[found.zone].routing != Routing::Shape
}

fn parts(platform: &Platform, ties: Ties) -> Parts {
    let net = &platform.net;
    let shape = |(node, &cores): (&hopmap_model::Node, &u32)| {
        let shape = HostShape { cores: (0..cores).collect(), groups: vec![vec![0; cores as usize]] };
        (node.name.clone(), shape)
    };
    let of_several = |(_, cores): &(&hopmap_model::Node, &u32)| **cores > 1;
    let shapes: BTreeMap<String, HostShape> =
        net.nodes.iter().zip(&net.cores).filter(of_several).map(shape).collect();
    let routing = Routes { ties, ..Routes::default() };
    Parts { nodes: net.nodes.clone(), links: net.links.clone(), routing, shapes }
}

/// Three hosts of every star, which represent the others, and all hosts of other zones.
fn sample(platform: &Platform, hosts: &[usize]) -> Vec<usize> {
    if hosts.len() <= MOST_PAIRED {
        return hosts.to_vec();
    }
    let mut taken: HashMap<usize, usize> = HashMap::new();
    let is_needed = |&&host: &&usize| {
        let zone = platform.points[host].zone;
        let count = taken.entry(zone).or_default();
        *count += 1;
        platform.zones[zone].routing != Routing::Star || *count <= 3
    };
    hosts.iter().filter(is_needed).copied().collect()
}

/// Whether the machine reproduces the routes of SimGrid between these hosts, link by link.
fn has_routes(system: &SystemGraph, platform: &Platform, router: &Router<'_>, hosts: &[usize]) -> bool {
    let paths = Paths::new(system);
    let origin = |link: u32| platform.net.origin.get(link as usize).copied();
    hosts.iter().all(|&a| {
        hosts.iter().filter(|&&b| a != b).all(|&b| {
            let (from, to) = (platform.points[a].leave, platform.points[b].arrive);
            let found = paths.as_ref().and_then(|paths| paths.path(from, to));
            let expected = router.route(a, b);
            found
                .map(|links| links.into_iter().map(origin).collect::<Option<Vec<u32>>>())
                .map_or(expected.is_none(), |found| found == expected)
        })
    })
}

/// Forwarding tables with the routes of SimGrid; `None` if these depend on the source.
fn forwarding(
    system: &SystemGraph,
    platform: &Platform,
    router: &Router<'_>,
    hosts: &[usize],
) -> Option<Vec<Forward>> {
    let mut leaving: HashMap<(u32, u32), u32> = HashMap::new();
    for (index, (link, origin)) in (0..).zip(system.links.iter().zip(&platform.net.origin)) {
        leaving.entry((link.source, *origin)).or_insert(index);
    }
    let is_host = |node: u32| system.nodes[node as usize].kind == NodeKind::Host;
    let mut tables: HashMap<(u32, u32), u32> = HashMap::new();
    for &a in hosts {
        for &b in hosts.iter().filter(|&&b| a != b) {
            let Some(route) = router.route(a, b) else { continue };
            let (mut node, mut way) = (platform.points[a].leave, Vec::with_capacity(route.len()));
            for origin in route {
                let link = *leaving.get(&(node, origin))?;
                way.push((node, link));
                node = system.links[link as usize].destination;
                if is_host(node) && node != platform.points[b].arrive {
                    return None;
                }
            }
            let &(start, last) = way.last()?;
            if is_host(start) {
                // Directly connected hosts need no table.
                continue;
            }
            for (node, link) in way {
                if *tables.entry((node, last)).or_insert(link) != link {
                    return None;
                }
            }
        }
    }
    let mut all: Vec<Forward> =
        tables.into_iter().map(|((node, last), link)| Forward { node, last, link }).collect();
    all.sort_unstable();
    Some(all)
}

/// Hosts only, with a cost for every pair of slots.
fn matrix(params: &ImportParams, platform: &Platform, router: &Router<'_>) -> Result<SystemGraph> {
    let mut parts = parts(platform, Ties::default());
    parts.links.clear();
    parts.nodes.retain(|node| node.kind == NodeKind::Host);
    let plain = ImportParams { cost: None, bytes: None, ..params.clone() };
    let mut system = machine(parts, &plain)?;
    let count = system.slots.len();
    if count > MOST_MATRIX {
        let problem =
            format!("no network of links has these routes, and {count} slots are too many for a cost matrix");
        return Err(malformed(None, problem, format!("a cost matrix has at most {MOST_MATRIX} slots")));
    }
    let mut costs = system.costs().block(&(0..to_u32(count)).collect::<Vec<u32>>());
    let by_node: HashMap<u32, usize> = (0..platform.points.len())
        .filter(|&point| platform.points[point].is_host)
        .map(|point| (platform.points[point].leave, point))
        .collect();
    let hosts: Vec<(u32, u32, u32)> = system.hosts().collect();
    for &(a, first_a, slots_a) in &hosts {
        for &(b, first_b, slots_b) in hosts.iter().filter(|(b, ..)| *b != a) {
            let route = by_node.get(&a).zip(by_node.get(&b)).and_then(|(&a, &b)| router.route(a, b));
            let Some(route) = route else {
                let [a, b] = [a, b].map(|node| &system.nodes[node as usize].name);
                return Err(malformed(None, format!("no route from `{a}` to `{b}`"), "add a `<route>`"));
            };
            let cost = cost(platform, &route, params);
            for slot in first_a..first_a + slots_a {
                let row = slot as usize * count + first_b as usize;
                costs[row..row + slots_b as usize].fill(cost);
            }
        }
    }
    system.cost = CostModel::Matrix(Matrix { costs });
    system.check().map_err(ImportError::machine)?;
    Ok(system)
}

/// The cost of a route; by default its latency in microseconds.
fn cost(platform: &Platform, route: &[u32], params: &ImportParams) -> f64 {
    let wires = || route.iter().map(|&link| platform.wires[link as usize]);
    let latency: f64 = wires().map(|(latency, _)| latency).sum();
    match params.cost.unwrap_or(CostMetric::Latency) {
        CostMetric::Hops => route.len() as f64,
        CostMetric::Latency => latency * 1e6,
        CostMetric::Time => {
            let narrowest = wires().map(|(_, bandwidth)| bandwidth).fold(f64::INFINITY, f64::min);
            (latency + params.bytes.unwrap_or(0) as f64 / narrowest) * 1e6
        }
    }
}

#[cfg(test)]
mod tests;
