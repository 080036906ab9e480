//! Converts plans to mappings, routes and tables, and passes them through the checker.

use std::collections::BTreeMap;

use hopmap_model::{Counting, Error, Mapping, Routes, SystemGraph, Tables, TaskGraph, Weight};

use crate::check::check;
use crate::compact::Compact;
use crate::engine::{Engine, SearchResult, StopCondition};
use crate::error::{RouteError, fail};
use crate::network;
use crate::paper::Paper;
use crate::params::Method;
use crate::problem::{Plan, Problem};
use crate::router::{QuickRouter, Router};
use crate::search::Search;
use crate::solver::Solver;

/// A mapping with routes and tables that passed the check.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The slot of every process.
    pub mapping: Mapping,
    /// The route of every stream.
    pub routes: Routes,
    /// The tables of the switches.
    pub tables: Tables,
}

impl Answer {
    /// Adds metrics to mapping, routes and tables.
    pub fn record(&mut self, metrics: &[(&str, f64)]) {
        for own in [&mut self.mapping.metrics, &mut self.routes.metrics, &mut self.tables.metrics] {
            own.extend(metrics.iter().map(|&(name, value)| (name.to_owned(), value)));
        }
    }
}

/// Solves a problem; none if it is infeasible. Fails if no solution was found in time. `solver` solves linear programs; without
/// it only hopmap's searches are used.
pub fn answer(
    problem: &Problem<'_>,
    mapping: Option<&Mapping>,
    method: Method,
    solver: Option<&dyn Solver>,
    stop: &StopCondition<'_>,
) -> Result<Option<Answer>, Error> {
    let found = solve(problem, method, solver, stop)?;
    match &found.plan {
        Some(plan) => checked(problem, mapping, &found, plan).map(Some),
        None if found.proven => Ok(None),
        None => Err(no_solution_in_time().into()),
    }
}

/// The error if limits end a search before it finds a solution.
pub(crate) fn no_solution_in_time() -> RouteError {
    RouteError::new(
        "no solution was found within the limits; the problem may be infeasible",
        "increase `time_limit_s` or `max_search_nodes`",
    )
}

/// Runs the engines of a method in turn and returns the best plan; a later engine's verdict on feasibility is final.
pub fn solve(
    problem: &Problem<'_>,
    method: Method,
    solver: Option<&dyn Solver>,
    stop: &StopCondition<'_>,
) -> Result<SearchResult, Error> {
    solve_from(problem, None, method, solver, stop)
}

/// The same, starting from a known feasible plan, which is the result unless a better one is found.
pub fn solve_from(
    problem: &Problem<'_>,
    known: Option<Plan>,
    method: Method,
    solver: Option<&dyn Solver>,
    stop: &StopCondition<'_>,
) -> Result<SearchResult, Error> {
    method.check(solver.is_some())?;
    let [own, program] = engines(problem, method, solver);
    let mut best = SearchResult { plan: known, ..SearchResult::nothing() };
    // hopmap's search takes half of a time limit if another engine follows.
    let part = if program.is_none() { 1.0 } else { 0.5 };
    for (engine, part) in own.map(|own| (own, part)).into_iter().chain(program.map(|it| (it, 1.0))) {
        if best.proven || stop.is_over(best.nodes) {
            break;
        }
        match engine.solve(problem, best.plan.as_ref(), &stop.rest(best.nodes, part)) {
            Ok(found) => best = better(problem, best, found),
            // Errors of later engines do not discard a known plan.
            Err(_) if best.plan.is_some() => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The paper's program knows no loads but its limits: its routes are those of the solver.
    if method != Method::Paper {
        best.plan = best.plan.map(|plan| balanced(problem, plan, stop));
    }
    Ok(best)
}

/// A plan of the same cost whose busiest links carry less.
fn balanced(problem: &Problem<'_>, plan: Plan, stop: &StopCondition<'_>) -> Plan {
    let even = QuickRouter::new(problem).balance(plan.clone(), stop);
    let tolerance = problem.rules.tolerance(problem.cost(&plan), 1e-9);
    let is_good = problem.keeps_rules(&even.routes) && problem.cost(&even) <= problem.cost(&plan) + tolerance;
    if is_good { even } else { plan }
}

/// The searches of a method, and the engine that solves its linear program.
pub(crate) fn engines<'a>(
    problem: &Problem<'_>,
    method: Method,
    solver: Option<&'a dyn Solver>,
) -> [Option<Box<dyn Engine + 'a>>; 2] {
    let own: Option<Box<dyn Engine>> = match (method, &problem.mapped) {
        (Method::Paper | Method::Compact, _) => None,
        (_, Some(_)) => Some(Box::new(Router::default())),
        (_, None) => Some(Box::new(Search::default())),
    };
    let program: Option<Box<dyn Engine + 'a>> = match (method, solver) {
        (Method::Search, _) | (_, None) => None,
        (Method::Paper, Some(solver)) => Some(Box::new(Paper { solver })),
        (_, Some(solver)) => Some(Box::new(Compact { solver })),
    };
    [own, program]
}

/// The combined result of two engines.
fn better(problem: &Problem<'_>, first: SearchResult, second: SearchResult) -> SearchResult {
    // Solvers round constraints; a plan that violates them proves nothing.
    let breaks = |plan: &Plan| !problem.keeps_rules(&plan.routes);
    if first.plan.is_some() && second.plan.as_ref().is_some_and(breaks) {
        return first;
    }
    let cost = |found: &SearchResult| found.plan.as_ref().map_or(f64::INFINITY, |plan| problem.cost(plan));
    let (bound, nodes) = (first.bound.max(second.bound), first.nodes + second.nodes);
    let proven = second.proven || first.proven;
    let plan = if cost(&second) < cost(&first) { second.plan } else { first.plan };
    // The lower bound of a proven plan is its cost.
    let bound = plan.as_ref().filter(|_| proven).map_or(bound, |plan| problem.cost(plan));
    SearchResult { plan, bound, proven, nodes }
}

/// The solution of a plan, after the check.
pub fn checked(
    problem: &Problem<'_>,
    mapping: Option<&Mapping>,
    found: &SearchResult,
    plan: &Plan,
) -> Result<Answer, Error> {
    let Problem { graph, system, rules, .. } = *problem;
    let mut mapping = match mapping {
        Some(mapping) => mapping.clone(),
        None => placed(graph, system, &plan.hosts)?,
    };
    let merged = problem.mapped.is_some();
    let mut tables = network::tables(system, &plan.routes);
    let counting = if merged { Counting::HostPairs } else { Counting::Streams };
    let given = Routes { routes: plan.routes.clone(), counting, ..Routes::default() };
    let mut routes = check(graph, system, &mapping, &tables, Some(&given), &rules, merged)?.routes;
    let objective = routes.metrics.get("objective").copied().unwrap_or_default();
    // The cost of moved processes is not part of the objective.
    let moved = problem.cost(plan) - objective;
    let bound = (found.bound - moved).min(objective);
    // Proven only if the cost that the checker computes equals the bound.
    let proven = found.proven && objective - bound <= rules.tolerance(objective, 1e-6);
    let proof = [("bound", bound), ("proven", f64::from(u8::from(proven)))];
    let proof = proof.into_iter().filter(|(_, value)| value.is_finite());
    routes.metrics.extend(proof.map(|(name, value)| (name.to_owned(), value)));
    tables.metrics = routes.metrics.clone();
    mapping.metrics.extend(routes.metrics.clone());
    Ok(Answer { mapping, routes, tables })
}

/// Processes on the slots of their hosts, in rank order.
pub fn placed(graph: &TaskGraph, system: &SystemGraph, hosts: &[u32]) -> Result<Mapping, Error> {
    let mut next: BTreeMap<u32, std::ops::Range<u32>> =
        system.hosts().map(|(host, first, count)| (host, first..first + count)).collect();
    let mut slots = Vec::with_capacity(graph.ranks());
    for host in hosts {
        let Some(slot) = next.get_mut(host).and_then(Iterator::next) else {
            let name = &system.nodes[*host as usize].name;
            return fail(
                format!("host `{name}` has enough performance for more processes than it has slots"),
                "give it more slots or less performance",
            );
        };
        slots.push(slot);
    }
    Ok(Mapping::new(&slots, system, Weight::Bytes)?)
}
