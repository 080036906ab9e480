//! The routes and tables of a machine that is whole, to compare others with.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{Counting, Error, Mapping, Route, Routes, SystemGraph, TableEntry, Tables, TaskGraph};

use crate::problem::{Plan, Problem};
use crate::{CheckError, CheckParams, Rules, Weights, answer, check};

/// The ways of streams, and the entries of tables.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reference {
    /// Source, destination and links of every stream that has a route.
    ways: BTreeMap<u32, (u32, u32, Vec<u32>)>,
    entries: BTreeSet<TableEntry>,
}

impl Reference {
    /// Of routes, and of the tables that they need unless others are there.
    pub(crate) fn new(system: &SystemGraph, routes: &[Route], tables: Option<&Tables>) -> Self {
        let mut ways = BTreeMap::new();
        for route in routes {
            let way = (route.source, route.destination, route.links.clone());
            ways.extend(route.streams.iter().map(|&stream| (stream, way.clone())));
        }
        let entries = match tables {
            Some(tables) => tables.entries.iter().copied().collect(),
            None => answer::tables(system, routes).entries.into_iter().collect(),
        };
        Self { ways, entries }
    }

    /// Streams between the same hosts that take another way.
    pub(crate) fn rerouted(&self, routes: &[Route]) -> u32 {
        let differs = |route: &Route, stream: &u32| {
            self.ways.get(stream).is_some_and(|(source, destination, links)| {
                (*source, *destination) == (route.source, route.destination) && *links != route.links
            })
        };
        let of_route = |route: &Route| route.streams.iter().filter(|stream| differs(route, stream)).count();
        routes.iter().map(of_route).sum::<usize>() as u32
    }

    /// Entries that are new or different.
    pub(crate) fn changed(&self, tables: &Tables) -> u32 {
        tables.entries.iter().filter(|entry| !self.entries.contains(entry)).count() as u32
    }

    /// The plan that keeps its ways, if every flow has one and all rules are kept.
    pub(crate) fn plan(&self, problem: &Problem<'_>, hosts: &[u32]) -> Option<Plan> {
        let way = |stream: &u32| self.ways.get(stream);
        let route = |flow: &crate::problem::Flow| {
            let ends = problem.ends(flow, hosts);
            let first = way(flow.streams.first()?)?;
            let same = |stream: &u32| way(stream).is_some_and(|other| other == first);
            let is_whole = (first.0, first.1) == ends && flow.streams.iter().all(same);
            is_whole.then(|| problem.route(flow, hosts, first.2.clone()))
        };
        let routes = problem.flows.iter().map(route).collect::<Option<Vec<Route>>>()?;
        problem.keeps_rules(&routes).then(|| Plan { hosts: hosts.to_vec(), routes })
    }
}

/// What was given, if anything was and it is one of this program on this machine.
pub(crate) fn given(
    graph: &TaskGraph,
    system: &SystemGraph,
    mapping: &Mapping,
    routes: Option<&Routes>,
    tables: Option<&Tables>,
) -> Result<Option<Reference>, Error> {
    let merged = routes.is_none_or(|routes| routes.counting == Counting::HostPairs);
    if let Some(routes) = routes {
        let links = system.links.len();
        if routes.routes.iter().flat_map(|route| &route.links).any(|&link| link as usize >= links) {
            return Err(CheckError::new(
                "a route takes a link that this machine does not have",
                "are they the routes of another machine?",
            )
            .into());
        }
    }
    let params = CheckParams::of(&Rules::from(Weights { longest: 0.0, hops: 0.0, entries: 0.0 }), merged);
    let needed = match (tables, routes) {
        (Some(tables), _) => tables.clone(),
        (None, Some(routes)) => answer::tables(system, &routes.routes),
        (None, None) => return Ok(None),
    };
    let checked = check::check(graph, system, mapping, &needed, routes, &params)?.routes;
    Ok(Some(Reference::new(system, &checked.routes, Some(&needed))))
}
