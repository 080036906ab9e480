//! Mappings, routes and tables out of the values of a program, and back through the check.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{
    Counting, Error, Mapping, Route, Routes, SwitchType, SystemGraph, TableEntry, Tables, TaskGraph, Weight,
};

use crate::check::check;
use crate::compact::Compact;
use crate::engine::{Engine, Found, Watch};
use crate::paper::Paper;
use crate::problem::{Plan, Problem};
use crate::router::Router;
use crate::search::Search;
use crate::solver::Solver;
use crate::{CheckError, CheckParams, Method, Network};

/// A mapping with routes and tables that passed the check.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Where every process is.
    pub mapping: Mapping,
    /// The way of every stream.
    pub routes: Routes,
    /// The tables.
    pub tables: Tables,
}

/// Answers a question; nothing if there is no answer. Fails if none was found in time. `solver` solves linear programs; without one only
/// the searches of our own are used.
pub fn answer(
    problem: &Problem<'_>,
    mapping: Option<&Mapping>,
    method: Method,
    solver: Option<&dyn Solver>,
    watch: &Watch<'_>,
) -> Result<Option<Answer>, Error> {
    let found = solve(problem, method, solver, watch)?;
    let Some(plan) = &found.plan else {
        return match found.proven {
            true => Ok(None),
            false => Err(no_solution_in_time()),
        };
    };
    Ok(Some(checked(problem, mapping, &found, plan)?))
}

/// What is said where limits end a search before anything is found.
pub(crate) fn no_solution_in_time() -> Error {
    CheckError::new(
        "no solution was found within the limits, and it is not known whether there is one",
        "give more `seconds` or `nodes`",
    )
    .into()
}

/// The best plan of one engine after the other; the last one that is asked has the last word.
pub fn solve(
    problem: &Problem<'_>,
    method: Method,
    solver: Option<&dyn Solver>,
    watch: &Watch<'_>,
) -> Result<Found, Error> {
    solve_from(problem, None, method, solver, watch)
}

/// The same, knowing a plan that keeps all rules; it is the answer unless a better one is found.
pub(crate) fn solve_from(
    problem: &Problem<'_>,
    known: Option<Plan>,
    method: Method,
    solver: Option<&dyn Solver>,
    watch: &Watch<'_>,
) -> Result<Found, Error> {
    method.check(solver.is_some())?;
    let programs: Vec<Box<dyn Engine + '_>> = match (method, solver) {
        (Method::Search, _) | (_, None) => Vec::new(),
        (Method::Auto | Method::Compact, Some(solver)) => vec![Box::new(Compact { solver })],
        (Method::Paper, Some(solver)) => vec![Box::new(Paper { solver })],
    };
    let own: Option<Box<dyn Engine>> = match (method, &problem.mapped) {
        (Method::Paper | Method::Compact, _) => None,
        (_, Some(_)) => Some(Box::new(Router::default())),
        (_, None) => Some(Box::new(Search::default())),
    };
    let mut best = Found { plan: known, ..Found::nothing() };
    // Of limited seconds the searches of our own take half, if something comes after them.
    let part = if programs.is_empty() { 1.0 } else { 0.5 };
    for (engine, part) in
        own.into_iter().map(|own| (own, part)).chain(programs.into_iter().map(|own| (own, 1.0)))
    {
        if best.proven || watch.is_over(best.nodes) {
            break;
        }
        match engine.solve(problem, best.plan.as_ref(), &watch.rest(best.nodes, part)) {
            Ok(found) => best = better(problem, best, found),
            // A plan that is known is an answer, whatever goes wrong with a better one.
            Err(_) if best.plan.is_some() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(best)
}

/// What two engines know together.
fn better(problem: &Problem<'_>, first: Found, second: Found) -> Found {
    // Solvers keep rules but for a rounding of their own; what breaks them proves nothing.
    let breaks = |plan: &Plan| !problem.keeps_rules(&plan.routes);
    if first.plan.is_some() && second.plan.as_ref().is_some_and(breaks) {
        return first;
    }
    let cost = |found: &Found| found.plan.as_ref().map_or(f64::INFINITY, |plan| problem.cost(plan));
    let (bound, nodes) = (first.bound.max(second.bound), first.nodes + second.nodes);
    let proven = second.proven || first.proven;
    let plan = if cost(&second) < cost(&first) { second.plan } else { first.plan };
    // Of a plan that is there the bound is no more than what it costs.
    let bound = plan.as_ref().map_or(bound, |plan| if proven { problem.cost(plan) } else { bound });
    Found { plan, bound, proven, nodes }
}

/// The answer that a plan is, once it passed the check.
pub(crate) fn checked(
    problem: &Problem<'_>,
    mapping: Option<&Mapping>,
    found: &Found,
    plan: &Plan,
) -> Result<Answer, Error> {
    let Problem { graph, system, rules, .. } = *problem;
    let mut mapping = match mapping {
        Some(mapping) => mapping.clone(),
        None => placed(graph, system, &plan.hosts)?,
    };
    let merged = problem.mapped.is_some();
    let mut tables = tables(system, &plan.routes);
    let counting = if merged { Counting::HostPairs } else { Counting::Streams };
    let given = Routes { routes: plan.routes.clone(), counting, ..Routes::default() };
    let mut routes =
        check(graph, system, &mapping, &tables, Some(&given), &CheckParams::of(&rules, merged))?.routes;
    let objective = routes.metrics.get("objective").copied().unwrap_or_default();
    // What processes cost that are elsewhere is no part of the objective.
    let moved = problem.cost(plan) - objective;
    let bound = (found.bound - moved).min(objective);
    // Only what the check finds to cost what the bound is counts as proven.
    let proven = found.proven && objective - bound <= rules.tolerance(objective, 1e-6);
    let proof = [("bound", bound), ("proven", f64::from(u8::from(proven)))];
    let proof = proof.into_iter().filter(|(_, value)| value.is_finite());
    routes.metrics.extend(proof.map(|(name, value)| (name.to_owned(), value)));
    tables.metrics = routes.metrics.clone();
    mapping.metrics.extend(routes.metrics.clone());
    Ok(Answer { mapping, routes, tables })
}

/// Processes on the slots of their hosts, in the order of ranks.
pub(crate) fn placed(graph: &TaskGraph, system: &SystemGraph, hosts: &[u32]) -> Result<Mapping, Error> {
    let mut next: BTreeMap<u32, std::ops::Range<u32>> =
        system.hosts().map(|(host, first, count)| (host, first..first + count)).collect();
    let mut slots = Vec::with_capacity(graph.ranks());
    for host in hosts {
        let slot = next.get_mut(host).and_then(Iterator::next).ok_or_else(|| {
            let name = &system.nodes[*host as usize].name;
            CheckError::new(
                format!("host `{name}` has performance for more processes than it has slots"),
                "give it as many slots as processes fit on it, or less performance",
            )
        })?;
        slots.push(slot);
    }
    Ok(Mapping::new(&slots, system, Weight::Bytes)?)
}

/// The entries that routes need: for a switch of type 2 those of the ports by which they come in.
#[must_use]
pub fn tables(system: &SystemGraph, routes: &[Route]) -> Tables {
    let mut entries = BTreeSet::new();
    for route in routes {
        for pair in route.links.windows(2) {
            let [arrives, leaves] = [pair[0], pair[1]].map(|link| &system.links[link as usize]);
            let is_two = system.nodes[leaves.source as usize].traits.switch_type == Some(SwitchType::Two);
            entries.insert(TableEntry {
                switch: leaves.source,
                input_port: arrives.destination_port.filter(|_| is_two),
                destination: route.destination,
                output_port: leaves.source_port.unwrap_or_default(),
            });
        }
    }
    Tables { entries: entries.into_iter().collect(), metrics: BTreeMap::new() }
}

/// Refuses machines whose links do not say their ports, or say one port twice: tables could not tell them apart.
pub fn check_ports(system: &SystemGraph) -> Result<(), CheckError> {
    let network = Network::new(system);
    for (index, link) in (0..).zip(&system.links) {
        let is_known = link.state == hopmap_model::LinkState::Down
            || link.source_port.is_some_and(|port| network.by_port(link.source, port) == Some(index));
        if !(is_known && link.destination_port.is_some()) {
            return Err(CheckError::new(
                format!(
                    "the link {} does not say its ports, or another link has the same",
                    network.name_of(index)
                ),
                "tables name ports: take the machine from route/import or topology/ibnetdiscover",
            ));
        }
    }
    Ok(())
}
