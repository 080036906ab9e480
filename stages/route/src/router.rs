//! Routes and tables for processes that are where they are, without a solver of linear programs.

use std::collections::{BTreeMap, VecDeque};

use hopmap_model::{Error, Route};

use crate::engine::{Engine, Found, Watch};
use crate::problem::{Plan, Problem};

/// Finds routes for a given mapping.
#[derive(Debug, Clone, Copy, Default)]
pub struct Router {}

impl Engine for Router {
    fn solve(&self, problem: &Problem<'_>, _: Option<&Plan>, _: &Watch<'_>) -> Result<Found, Error> {
        let Some(hosts) = &problem.mapped else { return Ok(Found::nothing()) };
        let quick = quick(problem, hosts);
        let plan = quick.keeps_rules.then(|| Plan { hosts: hosts.clone(), routes: quick.routes });
        Ok(Found { plan, ..Found::nothing() })
    }
}

/// Routes that were found quickly.
#[derive(Debug, Clone, PartialEq)]
pub struct Quick {
    /// The route of every flow.
    pub routes: Vec<Route>,
    /// Whether they keep all rules.
    pub keeps_rules: bool,
    /// By how much links, switches and lengths exceed what they may be, in parts of it, summed; 0 where `keeps_rules`.
    pub excess: f64,
}

/// Routes for processes on given hosts, quickly. The same for the same problem and hosts. Tables of their switches say one thing for each
/// destination.
#[must_use]
pub fn quick(problem: &Problem<'_>, hosts: &[u32]) -> Quick {
    let mut trees: BTreeMap<u32, Vec<Option<u32>>> = BTreeMap::new();
    let mut routes = Vec::with_capacity(problem.flows.len());
    for flow in &problem.flows {
        let (source, destination) = problem.ends(flow, hosts);
        let next = trees.entry(destination).or_insert_with(|| towards(problem, destination));
        let mut links = Vec::new();
        let mut node = source;
        while let Some(link) = next[node as usize].filter(|_| node != destination) {
            links.push(link);
            node = problem.system.links[link as usize].destination;
        }
        routes.push(problem.route(flow, hosts, links));
    }
    let mut loads = vec![0.0; problem.capacity.len()];
    for route in &routes {
        route.links.iter().for_each(|&link| loads[link as usize] += route.bandwidth_bytes_per_s);
    }
    let over = loads.iter().zip(&problem.capacity).map(|(load, capacity)| (load / capacity - 1.0).max(0.0));
    let excess: f64 = over.sum();
    Quick { keeps_rules: problem.keeps_rules(&routes), routes, excess }
}

/// The first link of a shortest way from every node to a host.
fn towards(problem: &Problem<'_>, destination: u32) -> Vec<Option<u32>> {
    let links = &problem.system.links;
    let mut next = vec![None; problem.system.nodes.len()];
    let mut queue = VecDeque::from([destination]);
    while let Some(node) = queue.pop_front() {
        for (index, link) in (0..).zip(links).filter(|(_, link)| link.destination == node) {
            let is_new = link.source != destination && next[link.source as usize].is_none();
            if is_new && problem.capacity[index as usize] > 0.0 {
                next[link.source as usize] = Some(index);
                if !problem.network.is_host(link.source) {
                    queue.push_back(link.source);
                }
            }
        }
    }
    next
}
