//! Failures of single components of a machine.
//!
//! Every cable (in both directions), switch and host is removed in turn. If processes stay, new routes and tables are computed as
//! by `route/tables`: all streams from one host to another are one (problem 1 of the paper). If processes may move to other
//! hosts, every stream has its own route, as by `route/map` (problem 2), and every move adds a cost to the objective.

mod parts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use hopmap_graph::{UNREACHED, distances};
use hopmap_model::{
    Cause, Context, Counting, Diagnosis, Error, Failure, Failures, Inputs, Mapping, Outcome, Outputs, Port,
    Route, Routes, Stage, SystemGraph, TableEntry, Tables, TaskGraph, require,
};
use hopmap_routing::answer::{checked, solve_from};
use hopmap_routing::diagnosis::diagnose;
use hopmap_routing::engine::{Limits, SearchResult, StopCondition};
use hopmap_routing::error::{fail, is_amount};
use hopmap_routing::network::{self, check_ports};
use hopmap_routing::params::Method;
use hopmap_routing::problem::{Home, Plan, Problem, Rules};
use hopmap_routing::{check, solver};
use rayon::prelude::*;

use crate::params::FailuresParams;
pub(crate) use parts::{Element, elements};

/// `route/failures`: every link, switch and host removed in turn.
#[derive(Debug)]
pub struct FailuresStage;

impl Stage for FailuresStage {
    type Params = FailuresParams;
    const KIND: &'static str = "route/failures";
    const SUMMARY: &'static str =
        "Test whether a program survives the failure of any single link, switch or host";
    const REVISION: u32 = 4;
    const PORTS: &'static [Port] = &[
        Port::input::<TaskGraph>("task-graph"),
        Port::input::<SystemGraph>("system"),
        Port::input::<Mapping>("mapping"),
        Port::optional::<Routes>("routes"),
        Port::optional::<Tables>("tables"),
        Port::output::<Failures>("failures"),
    ];

    fn check(params: &Self::Params) -> Result<(), Error> {
        params.check_search()?;
        if params.components.is_empty() {
            return fail("`components` is empty", "list link, switch, host or several of them");
        }
        let cost = params.move_cost;
        Ok(require(is_amount(cost), "move_cost", cost, "0 or more, in units of the objective")?)
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        let mapping = inputs.one::<Mapping>("mapping")?.value;
        let routes = inputs.optional::<Routes>("routes")?.map(|routes| routes.value);
        let tables = inputs.optional::<Tables>("tables")?.map(|tables| tables.value);
        let failures =
            failures(&params, &graph, &system, &mapping, (routes.as_deref(), tables.as_deref()), cx)?;
        let metric = |name: &str| failures.metrics.get(name).copied().unwrap_or_default();
        cx.log(format_args!("{} of {} failures survived", metric("survived"), metric("failures")));
        log_losses(&failures, cx);
        let survives = metric("survived") >= metric("failures");
        let proven = metric("proven");
        let outputs = Outputs::new()
            .with("failures", failures)
            .timed(params.time_limit_s.is_some() || cx.deadline().is_some());
        let is_cut_short = cx.should_stop() || (cx.deadline().is_some() && proven <= 0.0);
        Ok(match (is_cut_short, params.require_resilience && !survives) {
            (true, _) => Outcome::Partial(outputs),
            (_, true) => Outcome::Infeasible(outputs),
            _ => Outcome::Done(outputs),
        })
    }
}

/// Logs an example of the failures of every kind of part that the program does not survive.
fn log_losses(failures: &Failures, cx: &Context<'_>) {
    for of_part in failures.failures.chunk_by(|a, b| a.part == b.part) {
        let lost: Vec<&Failure> = of_part.iter().filter(|failure| failure.survived != Some(true)).collect();
        if let [first, rest @ ..] = &lost[..] {
            let more = match rest.len() {
                0 => String::new(),
                more => format!(", nor {more} of {} similar ones", of_part.len() - 1),
            };
            cx.log(format_args!("does not survive the failure of {}{more}: {}", first.name, first.shortage));
        }
    }
}

/// Computes the effects of every single failure. `given` routes and tables are the baseline; by default these are the best ones
/// of the complete machine.
pub fn failures(
    params: &FailuresParams,
    graph: &TaskGraph,
    system: &SystemGraph,
    mapping: &Mapping,
    given: (Option<&Routes>, Option<&Tables>),
    cx: &Context<'_>,
) -> Result<Failures, Error> {
    check_ports(system)?;
    let rules = Rules::from(params);
    let given = Reference::given(graph, system, mapping, given.0, given.1)?;
    let hosts = Problem::new(graph, system, Some(mapping), rules)?.mapped.unwrap_or_default();
    let free = params.remap.then(|| movable(graph));
    let should_stop = || cx.should_stop();
    let survey = Survey {
        graph: free.as_ref().unwrap_or(graph),
        system,
        mapping,
        hosts,
        rules,
        method: params.method,
        limits: params.limits(cx),
        move_cost: params.remap.then_some(params.move_cost),
        should_stop: &should_stop,
    };
    let nominal = survey.nominal(given.as_ref())?;
    let routes = nominal.found.plan.as_ref().map(|plan| plan.routes.as_slice()).unwrap_or_default();
    let reference = given.unwrap_or_else(|| Reference::new(system, routes, None));
    let elements = elements(system, &params.components);
    let done = AtomicU64::new(0);
    let without = |element: &Element| {
        if cx.should_stop() {
            let shortage = "not examined: the time limit was reached".to_owned();
            return Ok((Failure { shortage, ..nothing(element) }, false));
        }
        let rest = survey.without(element, &nominal, &reference);
        cx.progress(done.fetch_add(1, Ordering::Relaxed) + 1, elements.len() as u64);
        rest
    };
    Ok(summed(elements.par_iter().map(without).collect::<Result<Vec<_>, Error>>()?))
}

/// The program with movable processes: if all are fixed, these hosts are only the initial mapping.
fn movable(graph: &TaskGraph) -> TaskGraph {
    let mut graph = graph.clone();
    let processes = &mut graph.demands.processes;
    if processes.iter().all(|process| process.host.is_some()) {
        processes.iter_mut().for_each(|process| process.host = None);
    }
    graph
}

fn summed(rests: Vec<(Failure, bool)>) -> Failures {
    let proven = rests.iter().all(|(_, proven)| *proven);
    let failures: Vec<Failure> = rests.into_iter().map(|(failure, _)| failure).collect();
    let count = |survived| failures.iter().filter(|failure| failure.survived == survived).count() as f64;
    let worst = failures.iter().filter_map(|failure| failure.objective).reduce(f64::max);
    let moved = failures.iter().map(|failure| failure.moved).max().unwrap_or_default();
    let metrics = [
        ("failures", Some(failures.len() as f64)),
        ("survived", Some(count(Some(true)))),
        ("lost", Some(count(Some(false)))),
        ("unknown", Some(count(None))),
        ("worst_objective", worst),
        ("most_moved", Some(f64::from(moved))),
        ("proven", Some(f64::from(u8::from(proven)))),
    ];
    let metrics = metrics.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let metrics = metrics.collect();
    Failures { failures, metrics }
}

/// Relative tolerance between a cost and its bound: rounding.
const TOLERANCE: f64 = 1e-6;

/// A program on a machine, and the settings for solving it after each failure.
struct Survey<'a> {
    graph: &'a TaskGraph,
    system: &'a SystemGraph,
    mapping: &'a Mapping,
    /// Node id of the host of every process.
    hosts: Vec<u32>,
    rules: Rules,
    method: Method,
    limits: Limits,
    /// Cost of moving a process to another host; none if all stay.
    move_cost: Option<f64>,
    should_stop: &'a (dyn Fn() -> bool + Sync),
}

/// Results for the complete machine.
struct Nominal {
    found: SearchResult,
    /// Lower bound of objective (11) over all mappings.
    least: f64,
}

/// The result without a component, and whether it is proven optimal or infeasible.
type Rest = Result<(Failure, bool), Error>;

impl<'a> Survey<'a> {
    fn problem(&self, system: &'a SystemGraph) -> Result<Problem<'a>, Error> {
        let mapping = self.move_cost.is_none().then_some(self.mapping);
        let mut problem = Problem::new(self.graph, system, mapping, self.rules)?;
        problem.home = self.move_cost.map(|cost| Home { hosts: self.hosts.clone(), cost });
        Ok(problem)
    }

    /// The solution of the complete machine; the given one, unless a better one is found.
    fn nominal(&self, given: Option<&Reference>) -> Result<Nominal, Error> {
        let problem = self.problem(self.system)?;
        let known = given.and_then(|given| given.plan(&problem, &self.hosts));
        let least = self.least()?;
        let stop = StopCondition::new(self.limits, self.should_stop);
        let found = self.found(&problem, known, &BTreeSet::new(), least, &stop)?;
        Ok(Nominal { found, least })
    }

    /// A lower bound of objective (11) over all mappings: the first one that a solver reports.
    fn least(&self) -> Result<f64, Error> {
        if self.move_cost.is_none() {
            return Ok(0.0);
        }
        let problem = Problem::new(self.graph, self.system, None, self.rules)?;
        let solver = solver::default().filter(|_| self.method != Method::Search);
        let (method, limits) = match &solver {
            Some(_) => (Method::Compact, Limits { nodes: Some(1), ..self.limits }),
            None => (Method::Search, self.limits),
        };
        let stop = StopCondition::new(limits, self.should_stop);
        Ok(solve_from(&problem, None, method, solver.as_deref(), &stop)?.bound.max(0.0))
    }

    /// The result without a component.
    fn without(&self, element: &Element, nominal: &Nominal, reference: &Reference) -> Rest {
        let stop = StopCondition::new(self.limits, self.should_stop);
        let system = element.without(self.system);
        let mut problem = self.problem(&system)?;
        let known = nominal.found.plan.as_ref().filter(|plan| !element.is_used(&plan.hosts, &plan.routes));
        if nominal.found.proven && nominal.found.plan.is_none() {
            return self.lost(element, &problem, &stop);
        }
        if let Some(plan) = known {
            // Removing components never lowers the cost: an optimal solution that remains valid stays optimal.
            let found = SearchResult { plan: Some(plan.clone()), ..nominal.found.clone() };
            return self.survived(element, &problem, &found, plan, reference);
        }
        element.close(&mut problem);
        let must = self.on(element);
        let known = reference.plan(&problem, &self.hosts).filter(|_| must.is_empty());
        let found = match why_not(&problem, &must, &self.hosts) {
            Some(_) => SearchResult::none(),
            None => self.found(&problem, known, &must, nominal.least, &stop)?,
        };
        match &found.plan {
            Some(plan) => self.survived(element, &problem, &found, plan, reference),
            None if found.proven => self.lost(element, &problem, &stop),
            None => {
                let shortage = "no solution was found within the limits".to_owned();
                Ok((Failure { shortage, ..nothing(element) }, false))
            }
        }
    }

    fn solved(
        &self,
        problem: &Problem<'_>,
        known: Option<Plan>,
        stop: &StopCondition<'_>,
    ) -> Result<SearchResult, Error> {
        solve_from(problem, known, self.method, solver::default().as_deref(), stop)
    }

    /// The best plan. If processes may move, first only those that must move and those that are disconnected do; all others
    /// follow only if one more move could pay off.
    fn found(
        &self,
        problem: &Problem<'_>,
        known: Option<Plan>,
        must: &BTreeSet<usize>,
        least: f64,
        stop: &StopCondition<'_>,
    ) -> Result<SearchResult, Error> {
        let Some(cost) = self.move_cost else { return self.solved(problem, known, stop) };
        let cut: BTreeSet<usize> =
            cut_off(problem, must, &self.hosts).into_iter().flat_map(|cut| cut.ranks).collect();
        let free: BTreeSet<usize> = must.union(&cut).copied().collect();
        let few = self.solved(&self.only(problem, &free), known, &stop.rest(0, 0.5))?;
        // Bound of plans that also move other processes, as is necessary if some are disconnected.
        let bound = least + cost * (must.len() + 1) as f64;
        let best = few.plan.as_ref().map_or(f64::INFINITY, |plan| problem.cost(plan));
        if (few.proven || !cut.is_empty()) && best <= bound + problem.rules.tolerance(bound, TOLERANCE) {
            return Ok(SearchResult { bound: best, proven: true, ..few });
        }
        let nodes = few.nodes;
        let found = self.solved(problem, few.plan, &stop.rest(nodes, 1.0))?;
        Ok(SearchResult {
            bound: found.bound.max(least + cost * must.len() as f64),
            nodes: nodes + found.nodes,
            ..found
        })
    }

    /// The problem in which only the given processes may leave their hosts.
    fn only<'b>(&self, problem: &Problem<'b>, free: &BTreeSet<usize>) -> Problem<'b> {
        let mut problem = problem.clone();
        for (rank, allowed) in problem.allowed.iter_mut().enumerate() {
            if !free.contains(&rank) {
                allowed.retain(|&host| host == self.hosts[rank]);
            }
        }
        problem
    }

    fn survived(
        &self,
        element: &Element,
        problem: &Problem<'_>,
        found: &SearchResult,
        plan: &Plan,
        reference: &Reference,
    ) -> Rest {
        let mapping = self.move_cost.is_none().then_some(self.mapping);
        let answer = checked(problem, mapping, found, plan)?;
        let metric = |name: &str| answer.routes.metrics.get(name).copied();
        let failure = Failure {
            survived: Some(true),
            objective: metric("objective"),
            longest: metric("longest").map(|longest| longest as u32),
            moved: self.hosts.iter().zip(&plan.hosts).filter(|(home, host)| home != host).count() as u32,
            rerouted: reference.rerouted(&answer.routes.routes),
            changed_entries: reference.changed(&answer.tables),
            ..nothing(element)
        };
        Ok((failure, found.proven))
    }

    fn lost(&self, element: &Element, problem: &Problem<'_>, stop: &StopCondition<'_>) -> Rest {
        let shortage = match why_not(problem, &self.on(element), &self.hosts) {
            Some(words) => words,
            None => in_words(&diagnose(problem, solver::default().as_deref(), stop)?),
        };
        let is_known = !shortage.is_empty();
        let shortage = if is_known { shortage } else { "no routes satisfy all constraints".to_owned() };
        Ok((Failure { survived: Some(false), shortage, ..nothing(element) }, true))
    }

    /// The ranks of the processes on the failed component.
    fn on(&self, element: &Element) -> BTreeSet<usize> {
        (0..self.hosts.len()).filter(|&rank| element.host() == Some(self.hosts[rank])).collect()
    }
}

/// Lists the causes, one remedy after the other.
fn in_words(diagnosis: &Diagnosis) -> String {
    let remedies = diagnosis.causes.chunk_by(|a, b| a.remedy == b.remedy);
    let words =
        |causes: &[Cause]| causes.iter().map(|cause| cause.words.as_str()).collect::<Vec<_>>().join("; ");
    remedies.map(words).collect::<Vec<_>>().join("; or: ")
}

/// A failure with unknown outcome.
fn nothing(element: &Element) -> Failure {
    Failure {
        part: element.part,
        name: element.name.clone(),
        survived: None,
        objective: None,
        longest: None,
        moved: 0,
        rerouted: 0,
        changed_entries: 0,
        shortage: String::new(),
    }
}

/// A reason for infeasibility that is visible without a search. `must` are the ranks of processes that cannot stay.
fn why_not(problem: &Problem<'_>, must: &BTreeSet<usize>, hosts: &[u32]) -> Option<String> {
    let name = |rank: usize| &problem.graph.demands.processes[rank].name;
    let host = |node: u32| &problem.system.nodes[node as usize].name;
    if problem.mapped.is_some() {
        if let Some(&rank) = must.first() {
            return Some(format!("process `{}` is on the failed host `{}`", name(rank), host(hosts[rank])));
        }
        let cut = cut_off(problem, must, hosts).into_iter().next()?;
        return Some(format!("no path from `{}` to `{}`", host(cut.from), host(cut.to)));
    }
    let nowhere = problem.allowed.iter().position(Vec::is_empty)?;
    Some(format!("no host can hold process `{}`", name(nowhere)))
}

/// The routes of streams, and the entries of tables.
#[derive(Debug, Clone, Default)]
struct Reference {
    /// Source, destination and links of every stream that has a route.
    routes: BTreeMap<u32, (u32, u32, Vec<u32>)>,
    entries: BTreeSet<TableEntry>,
}

impl Reference {
    /// Built from the given routes and tables, if they belong to this program and machine.
    fn given(
        graph: &TaskGraph,
        system: &SystemGraph,
        mapping: &Mapping,
        routes: Option<&Routes>,
        tables: Option<&Tables>,
    ) -> Result<Option<Self>, Error> {
        let merged = routes.is_none_or(|routes| routes.counting == Counting::HostPairs);
        let mut links = routes.iter().flat_map(|routes| &routes.routes).flat_map(|route| &route.links);
        if links.any(|&link| link as usize >= system.links.len()) {
            return fail("a route uses a link that this machine does not have", "use routes of this machine");
        }
        let needed = match (tables, routes) {
            (Some(tables), _) => tables.clone(),
            (None, Some(routes)) => network::tables(system, &routes.routes),
            (None, None) => return Ok(None),
        };
        let rules = Rules::default();
        let checked = check::check(graph, system, mapping, &needed, routes, &rules, merged)?.routes;
        Ok(Some(Self::new(system, &checked.routes, Some(&needed))))
    }

    /// Built from routes, and from the tables that they need unless tables are given.
    fn new(system: &SystemGraph, routes: &[Route], tables: Option<&Tables>) -> Self {
        let mut of_streams = BTreeMap::new();
        for route in routes {
            let path = (route.source, route.destination, route.links.clone());
            of_streams.extend(route.streams.iter().map(|&stream| (stream, path.clone())));
        }
        let entries = match tables {
            Some(tables) => tables.entries.iter().copied().collect(),
            None => network::tables(system, routes).entries.into_iter().collect(),
        };
        Self { routes: of_streams, entries }
    }

    /// Number of streams between the same hosts that are rerouted.
    fn rerouted(&self, routes: &[Route]) -> u32 {
        let differs = |route: &Route, stream: &u32| {
            self.routes.get(stream).is_some_and(|(source, destination, links)| {
                (*source, *destination) == (route.source, route.destination) && *links != route.links
            })
        };
        let of_route = |route: &Route| route.streams.iter().filter(|stream| differs(route, stream)).count();
        routes.iter().map(of_route).sum::<usize>() as u32
    }

    /// Number of new or changed entries.
    fn changed(&self, tables: &Tables) -> u32 {
        tables.entries.iter().filter(|entry| !self.entries.contains(entry)).count() as u32
    }

    /// The plan with these routes, if every flow has one and all rules are kept.
    fn plan(&self, problem: &Problem<'_>, hosts: &[u32]) -> Option<Plan> {
        let given = |stream: &u32| self.routes.get(stream);
        let route = |flow: &hopmap_routing::problem::Flow| {
            let ends = problem.ends(flow, hosts);
            let first = given(flow.streams.first()?)?;
            let same = |stream: &u32| given(stream).is_some_and(|other| other == first);
            let is_whole = (first.0, first.1) == ends && flow.streams.iter().all(same);
            is_whole.then(|| problem.route(flow, hosts, first.2.clone()))
        };
        let routes = problem.flows.iter().map(route).collect::<Option<Vec<Route>>>()?;
        problem.keeps_rules(&routes).then(|| Plan { hosts: hosts.to_vec(), routes })
    }
}

/// Two hosts that must be connected but are not.
#[derive(Debug, Clone, PartialEq)]
struct Cut {
    from: u32,
    to: u32,
    /// Processes of which at least one must move.
    ranks: Vec<usize>,
}

/// Streams between processes that stay and that no path connects.
fn cut_off(problem: &Problem<'_>, must: &BTreeSet<usize>, hosts: &[u32]) -> Vec<Cut> {
    let mut reached: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut cuts = Vec::new();
    for stream in &problem.graph.demands.streams {
        let ranks = [stream.source, stream.destination].map(|rank| rank as usize);
        let [from, to] = ranks.map(|rank| hosts[rank]);
        if from == to || ranks.iter().any(|rank| must.contains(rank)) {
            continue;
        }
        let reached = reached.entry(from).or_insert_with(|| distances_from(problem, from));
        if reached[to as usize] == UNREACHED {
            // Report the host without links rather than the other end.
            let bare = |rank: &usize| problem.network.leaving(hosts[*rank]).is_empty();
            let alone: Vec<usize> = ranks.into_iter().filter(bare).collect();
            cuts.push(Cut { from, to, ranks: if alone.is_empty() { ranks.to_vec() } else { alone } });
        }
    }
    cuts
}

/// Distances from a host to all nodes that it can reach through switches only.
fn distances_from(problem: &Problem<'_>, host: u32) -> Vec<u32> {
    let next = |node: usize| {
        let is_passed = node == host as usize || !problem.network.is_host(node as u32);
        let links = problem.network.leaving(node as u32).iter().filter(move |_| is_passed);
        links.map(|&link| problem.system.links[link as usize].destination as usize)
    };
    distances(problem.system.nodes.len(), [host as usize], next)
}
