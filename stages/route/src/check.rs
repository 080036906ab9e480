//! Follows tables entry by entry, as the switches would.
//!
//! Shares no code with what makes tables: it knows the machine, the mapping and the entries, and nothing of how they were found.

mod hosts;
mod replay;

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{Counting, Mapping, Route, Routes, SystemGraph, Tables, TaskGraph};

use crate::deadlock::cycle;
use crate::{CheckError, CheckParams, Network};

use replay::Replay;

/// Part of a bandwidth or performance by which sums may exceed it: rounding.
const TOLERANCE: f64 = 1e-9;
/// Faults that are told one by one.
const MOST_FAULTS: usize = 20;

/// What tables do with the streams of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The way of every stream, with all metrics.
    pub routes: Routes,
    /// What is legal but better otherwise, in words.
    pub notes: Vec<String>,
}

/// Follows the tables, and says what is wrong if a stream does not arrive or takes more than there is. Where a host has several links,
/// `given` routes tell by which one it sends; all of them have to be what the tables do.
pub fn check(
    graph: &TaskGraph,
    system: &SystemGraph,
    mapping: &Mapping,
    tables: &Tables,
    given: Option<&Routes>,
    params: &CheckParams,
) -> Result<Checked, CheckError> {
    let network = Network::new(system);
    let host_of = hosts::check(graph, system, mapping)?;
    let replay = Replay::new(&network, tables)?;
    let mut notes = BTreeSet::new();
    let mut routes = wanted(graph, &host_of, params.merged);
    for route in &mut routes {
        let given = given.map(|given| of_same_streams(given, route)).transpose()?;
        route.links = replay.follow(route, given, &mut notes)?;
    }
    let loads = loads(system, &routes);
    capacity(&network, &loads)?;
    let cycle = cycle(system.links.len(), routes.iter().map(|route| route.links.as_slice()));
    if params.deadlock_free && !cycle.is_empty() {
        return Err(CheckError::new(
            format!("links can wait for each other in a circle: {}", circle(&network, &cycle)),
            "route with `deadlock_free = true`, or leave `deadlock_free` out here to be told only",
        ));
    }
    let mut notes: Vec<String> = notes.into_iter().collect();
    if !cycle.is_empty() {
        notes.push(format!("links can wait for each other in a circle: {}", circle(&network, &cycle)));
    }
    let unused = replay.unused(&routes, &network);
    if unused > 0 {
        notes.push(format!("entries that no stream uses: {unused}"));
    }
    let metrics = metrics(system, &routes, tables, &loads, params, cycle.is_empty());
    let counting = if params.merged { Counting::HostPairs } else { Counting::Streams };
    Ok(Checked { routes: Routes { routes, counting, cycle, metrics }, notes })
}

/// The given route that the streams of a route take.
fn of_same_streams<'a>(given: &'a Routes, route: &Route) -> Result<&'a Route, CheckError> {
    given.routes.iter().find(|given| given.streams == route.streams).ok_or_else(|| {
        CheckError::new(
            format!("no route is given for the streams {:?}", route.streams),
            "are the routes those of another program, or counted otherwise? See `merged`",
        )
    })
}

/// A route for every stream, or for every pair of different hosts that streams join; without links yet.
fn wanted(graph: &TaskGraph, host_of: &[u32], merged: bool) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    let mut pairs: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for (index, stream) in (0..).zip(&graph.demands.streams) {
        let [source, destination] = [stream.source, stream.destination].map(|rank| host_of[rank as usize]);
        // Inside a host nothing takes a link; streams there have nothing to merge with.
        let next = routes.len();
        let at = if merged && source != destination {
            *pairs.entry((source, destination)).or_insert(next)
        } else {
            next
        };
        if at == next {
            routes.push(Route { source, destination, ..Route::default() });
        }
        routes[at].streams.push(index);
        routes[at].bandwidth_bytes_per_s += stream.bandwidth_bytes_per_s;
    }
    routes
}

/// What all routes take of every link.
fn loads(system: &SystemGraph, routes: &[Route]) -> Vec<f64> {
    let mut loads = vec![0.0; system.links.len()];
    for route in routes {
        for &link in &route.links {
            loads[link as usize] += route.bandwidth_bytes_per_s;
        }
    }
    loads
}

fn capacity(network: &Network<'_>, loads: &[f64]) -> Result<(), CheckError> {
    let mut over = Vec::new();
    for (index, (link, &load)) in (0..).zip(network.system.links.iter().zip(loads)) {
        if let Some(bandwidth) =
            link.bandwidth_bytes_per_s.filter(|bandwidth| load > bandwidth * (1.0 + TOLERANCE))
        {
            over.push(format!("{} carries {load} of {bandwidth}", network.name_of(index)));
        }
    }
    match over.is_empty() {
        true => Ok(()),
        false => {
            let more = over.len().saturating_sub(MOST_FAULTS);
            over.truncate(MOST_FAULTS);
            let rest = if more > 0 { format!(", and {more} more") } else { String::new() };
            Err(CheckError::new(
                format!("links carry more than they can: {}{rest}", over.join(", ")),
                "other routes or another mapping may do, or the demands exceed what the network has",
            ))
        }
    }
}

fn circle(network: &Network<'_>, cycle: &[u32]) -> String {
    cycle.iter().map(|&link| network.name_of(link)).collect::<Vec<_>>().join(", ")
}

fn metrics(
    system: &SystemGraph,
    routes: &[Route],
    tables: &Tables,
    loads: &[f64],
    params: &CheckParams,
    deadlock_free: bool,
) -> BTreeMap<String, f64> {
    let lengths = || routes.iter().map(|route| route.links.len() as f64);
    let (longest, hops) = (lengths().fold(0.0, f64::max), lengths().sum::<f64>());
    let entries = tables.entries.len() as f64;
    let objective = params.longest * longest + params.hops * hops + params.entries * entries;
    let mut through: BTreeMap<u32, f64> = BTreeMap::new();
    for (link, load) in system.links.iter().zip(loads) {
        *through.entry(link.destination).or_default() += load;
    }
    let is_switch = |node: u32| system.nodes[node as usize].kind == hopmap_model::NodeKind::Switch;
    let busiest =
        through.iter().filter(|(node, _)| is_switch(**node)).map(|(_, &load)| load).fold(0.0, f64::max);
    let slack = |(link, load): (&hopmap_model::Link, &f64)| {
        link.bandwidth_bytes_per_s.map(|bandwidth| (bandwidth, bandwidth - load))
    };
    let slacks = || system.links.iter().zip(loads).filter_map(slack);
    let least = slacks().map(|(_, slack)| slack).fold(f64::INFINITY, f64::min);
    let share = slacks().map(|(bandwidth, slack)| 1.0 - slack / bandwidth).fold(0.0, f64::max);
    [
        ("objective", objective),
        ("longest", longest),
        ("hops", hops),
        ("entries", entries),
        ("deadlock_free", f64::from(u8::from(deadlock_free))),
        ("least_bandwidth_slack", least),
        ("largest_link_utilisation", share),
        ("largest_switch_load", busiest),
    ]
    .into_iter()
    .filter(|(_, value)| value.is_finite())
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}
