//! Follows tables entry by entry, as the switches would.
//!
//! Shares no code with what makes tables: it knows the machine, the mapping and the entries, and nothing of how they were found.

mod hosts;
mod limits;
mod replay;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hopmap_model::{Counting, Mapping, Route, Routes, SystemGraph, Tables, TaskGraph};

use crate::deadlock::cycle;
use crate::{CheckError, CheckParams, Network};

use limits::Carried;
use replay::Replay;

/// Part of a bandwidth or performance by which sums may exceed it: rounding.
const TOLERANCE: f64 = 1e-9;
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
    let (host_of, performance_share) = hosts::check(graph, system, mapping, params.performance_slack)?;
    let replay = Replay::new(&network, tables)?;
    let mut notes = BTreeSet::new();
    let mut routes = wanted(graph, &host_of, params.merged);
    let given: Option<HashMap<&[u32], &Route>> =
        given.map(|given| given.routes.iter().map(|route| (route.streams.as_slice(), route)).collect());
    for route in &mut routes {
        let given = given.as_ref().map(|given| of_same_streams(given, route)).transpose()?;
        route.links = replay.follow(route, given, &mut notes)?;
    }
    limits::lengths(&network, &routes, params.most_hops)?;
    let carried = Carried::of(&network, &routes);
    carried.check(params)?;
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
    let mut metrics = metrics(&routes, tables, params, cycle.is_empty());
    metrics.extend(carried.metrics());
    metrics.insert("least_performance_slack_share".to_owned(), performance_share);
    let counting = if params.merged { Counting::HostPairs } else { Counting::Streams };
    Ok(Checked { routes: Routes { routes, counting, cycle, metrics }, notes })
}

/// The given route that the streams of a route take.
fn of_same_streams<'a>(given: &HashMap<&[u32], &'a Route>, route: &Route) -> Result<&'a Route, CheckError> {
    given.get(route.streams.as_slice()).copied().ok_or_else(|| {
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

fn circle(network: &Network<'_>, cycle: &[u32]) -> String {
    cycle.iter().map(|&link| network.name_of(link)).collect::<Vec<_>>().join(", ")
}

fn metrics(
    routes: &[Route],
    tables: &Tables,
    params: &CheckParams,
    deadlock_free: bool,
) -> BTreeMap<String, f64> {
    let lengths = || routes.iter().map(|route| route.links.len() as f64);
    let (longest, hops) = (lengths().fold(0.0, f64::max), lengths().sum::<f64>());
    let entries = tables.entries.len() as f64;
    let objective = params.longest * longest + params.hops * hops + params.entries * entries;
    [
        ("objective", objective),
        ("longest", longest),
        ("hops", hops),
        ("entries", entries),
        ("deadlock_free", f64::from(u8::from(deadlock_free))),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}
