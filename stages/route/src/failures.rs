//! What happens when any one part of a machine fails.
//!
//! Every cable (in both directions), switch and host is taken away in turn. Where processes stay, new routes and tables are
//! looked for as by `route/tables`: all streams from one host to another are one (problem 1 of the paper). Where they may go to
//! other hosts, every stream has a route of its own, as by `route/map` (problem 2), and every process that goes costs something
//! beside the objective.

mod parts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use hopmap_model::{
    Cause, Context, Counting, Diagnosis, Error, Failure, Failures, Inputs, Mapping, Outcome, Outputs, Port,
    Route, Routes, Stage, SystemGraph, TableEntry, Tables, TaskGraph,
};
use rayon::prelude::*;

use crate::answer::{checked, solve_from};
use crate::diagnosis::diagnose;
use crate::engine::{Limits, SearchResult, StopCondition};
use crate::error::{fail, is_amount, require};
use crate::network::check_ports;
use crate::problem::{Home, Plan, Problem};
use crate::{FailuresParams, Method, Rules, check, network, solver};
pub(crate) use parts::{Element, elements};

/// `route/failures`: every link, switch and host taken away in turn.
#[derive(Debug)]
pub struct FailuresStage;

impl Stage for FailuresStage {
    type Params = FailuresParams;
    const KIND: &'static str = "route/failures";
    const SUMMARY: &'static str =
        "Whether a program survives the failure of any link, switch or host, and how";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<TaskGraph>("task-graph"),
                Port::input::<SystemGraph>("system"),
                Port::input::<Mapping>("mapping"),
                Port::optional::<Routes>("routes"),
                Port::optional::<Tables>("tables"),
                Port::output::<Failures>("failures"),
            ]
        }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        params.check_search()?;
        if params.components.is_empty() {
            return fail("`components` is empty", "link, switch, host, or several");
        }
        let (cost, help) = (params.move_cost, "it is 0 or more, in units of the objective");
        Ok(require(is_amount(cost), "`move_cost`", cost, help)?)
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
        cx.log(format_args!("{} of {} failures are survived", metric("survived"), metric("failures")));
        for failure in failures.failures.iter().filter(|failure| failure.survived != Some(true)) {
            cx.log(format_args!("not without {}: {}", failure.name, failure.shortage));
        }
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

/// What happens when any one part of a machine fails. `given` routes and tables are what others are compared with; without any,
/// those that are best for the whole machine.
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
            let shortage = "not looked at: the time is over".to_owned();
            return Ok((Failure { shortage, ..nothing(element) }, false));
        }
        let rest = survey.without(element, &nominal, &reference);
        cx.progress(done.fetch_add(1, Ordering::Relaxed) + 1, elements.len() as u64);
        rest
    };
    Ok(summed(elements.par_iter().map(without).collect::<Result<Vec<_>, Error>>()?))
}

/// The program with processes that may go elsewhere: where all are settled, that is only where they begin.
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

/// Part of a cost by which it may miss a bound: rounding.
const TOLERANCE: f64 = 1e-6;

/// A program on a machine, and how answers are looked for when parts of it fail.
struct Survey<'a> {
    graph: &'a TaskGraph,
    system: &'a SystemGraph,
    mapping: &'a Mapping,
    /// Node id of the host of every process.
    hosts: Vec<u32>,
    rules: Rules,
    method: Method,
    limits: Limits,
    /// What a process costs that goes to another host; nothing if all stay.
    move_cost: Option<f64>,
    should_stop: &'a (dyn Fn() -> bool + Sync),
}

/// What is known of the whole machine.
struct Nominal {
    found: SearchResult,
    /// No mapping at all has a lesser objective (11).
    least: f64,
}

/// What is left without a part, and whether the answer is proven best, or proven not to be there.
type Rest = Result<(Failure, bool), Error>;

impl<'a> Survey<'a> {
    fn problem(&self, system: &'a SystemGraph) -> Result<Problem<'a>, Error> {
        let mapping = self.move_cost.is_none().then_some(self.mapping);
        let mut problem = Problem::new(self.graph, system, mapping, self.rules)?;
        problem.home = self.move_cost.map(|cost| Home { hosts: self.hosts.clone(), cost });
        Ok(problem)
    }

    /// The answer of the whole machine; what was given, unless something is better.
    fn nominal(&self, given: Option<&Reference>) -> Result<Nominal, Error> {
        let problem = self.problem(self.system)?;
        let known = given.and_then(|given| given.plan(&problem, &self.hosts));
        let least = self.least()?;
        let stop = StopCondition::new(self.limits, self.should_stop);
        let found = self.found(&problem, known, &BTreeSet::new(), least, &stop)?;
        Ok(Nominal { found, least })
    }

    /// A bound of the objective (11) over all mappings: the first one that a solver knows.
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

    /// What is left without a part.
    fn without(&self, element: &Element, nominal: &Nominal, reference: &Reference) -> Rest {
        let stop = StopCondition::new(self.limits, self.should_stop);
        let system = element.without(self.system);
        let mut problem = self.problem(&system)?;
        let known = nominal.found.plan.as_ref().filter(|plan| !element.is_used(&plan.hosts, &plan.routes));
        if nominal.found.proven && nominal.found.plan.is_none() {
            return self.lost(element, &problem, &stop);
        }
        if let Some(plan) = known {
            // Less machine makes nothing cheaper: what was best and is still there is best.
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
                let shortage = "nothing was found within the limits".to_owned();
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

    /// The best plan. Where processes may go elsewhere, first only those that have to and those that are cut off do; all others
    /// follow only where one more move could pay.
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
        // What moves others than those that have to, as it has to where some are cut off.
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

    /// The problem in which only some processes may leave their hosts.
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
        let shortage = if is_known { shortage } else { "no routes keep all constraints".to_owned() };
        Ok((Failure { survived: Some(false), shortage, ..nothing(element) }, true))
    }

    /// The ranks of the processes on what fails.
    fn on(&self, element: &Element) -> BTreeSet<usize> {
        (0..self.hosts.len()).filter(|&rank| element.host() == Some(self.hosts[rank])).collect()
    }
}

/// The causes of one remedy after the other.
fn in_words(diagnosis: &Diagnosis) -> String {
    let remedies = diagnosis.causes.chunk_by(|a, b| a.remedy == b.remedy);
    let words =
        |causes: &[Cause]| causes.iter().map(|cause| cause.words.as_str()).collect::<Vec<_>>().join("; ");
    remedies.map(words).collect::<Vec<_>>().join("; or: ")
}

/// A failure of which nothing is known.
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

/// Why there is surely no answer, where that is seen at once. `must` are the ranks of processes that cannot stay.
fn why_not(problem: &Problem<'_>, must: &BTreeSet<usize>, hosts: &[u32]) -> Option<String> {
    let name = |rank: usize| &problem.graph.demands.processes[rank].name;
    let host = |node: u32| &problem.system.nodes[node as usize].name;
    if problem.mapped.is_some() {
        if let Some(&rank) = must.first() {
            return Some(format!("process `{}` stays on host `{}`", name(rank), host(hosts[rank])));
        }
        let cut = cut_off(problem, must, hosts).into_iter().next()?;
        return Some(format!("nothing leads from `{}` to `{}`", host(cut.from), host(cut.to)));
    }
    let nowhere = problem.allowed.iter().position(Vec::is_empty)?;
    Some(format!("process `{}` can be on no host", name(nowhere)))
}

/// The ways of streams, and the entries of tables.
#[derive(Debug, Clone, Default)]
struct Reference {
    /// Source, destination and links of every stream that has a route.
    ways: BTreeMap<u32, (u32, u32, Vec<u32>)>,
    entries: BTreeSet<TableEntry>,
}

impl Reference {
    /// Of what was given, if anything was and it is one of this program on this machine.
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
            return fail(
                "a route takes a link that this machine does not have",
                "are they the routes of another machine?",
            );
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

    /// Of routes, and of the tables that they need unless others are there.
    fn new(system: &SystemGraph, routes: &[Route], tables: Option<&Tables>) -> Self {
        let mut ways = BTreeMap::new();
        for route in routes {
            let way = (route.source, route.destination, route.links.clone());
            ways.extend(route.streams.iter().map(|&stream| (stream, way.clone())));
        }
        let entries = match tables {
            Some(tables) => tables.entries.iter().copied().collect(),
            None => network::tables(system, routes).entries.into_iter().collect(),
        };
        Self { ways, entries }
    }

    /// Streams between the same hosts that take another way.
    fn rerouted(&self, routes: &[Route]) -> u32 {
        let differs = |route: &Route, stream: &u32| {
            self.ways.get(stream).is_some_and(|(source, destination, links)| {
                (*source, *destination) == (route.source, route.destination) && *links != route.links
            })
        };
        let of_route = |route: &Route| route.streams.iter().filter(|stream| differs(route, stream)).count();
        routes.iter().map(of_route).sum::<usize>() as u32
    }

    /// Entries that are new or different.
    fn changed(&self, tables: &Tables) -> u32 {
        tables.entries.iter().filter(|entry| !self.entries.contains(entry)).count() as u32
    }

    /// The plan that keeps its ways, if every flow has one and all rules are kept.
    fn plan(&self, problem: &Problem<'_>, hosts: &[u32]) -> Option<Plan> {
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

/// Two hosts that have to be joined and are not.
#[derive(Debug, Clone, PartialEq)]
struct Cut {
    from: u32,
    to: u32,
    /// Processes one of which cannot stay.
    ranks: Vec<usize>,
}

/// Streams between processes that stay and that no links join.
fn cut_off(problem: &Problem<'_>, must: &BTreeSet<usize>, hosts: &[u32]) -> Vec<Cut> {
    let mut reached: BTreeMap<u32, Vec<bool>> = BTreeMap::new();
    let mut cuts = Vec::new();
    for stream in &problem.graph.demands.streams {
        let ranks = [stream.source, stream.destination].map(|rank| rank as usize);
        let [from, to] = ranks.map(|rank| hosts[rank]);
        if from == to || ranks.iter().any(|rank| must.contains(rank)) {
            continue;
        }
        let reached = reached.entry(from).or_insert_with(|| reachable(problem, from));
        if !reached[to as usize] {
            // A host without links is what is wrong, rather than the other end.
            let bare = |rank: &usize| problem.network.leaving(hosts[*rank]).is_empty();
            let alone: Vec<usize> = ranks.into_iter().filter(bare).collect();
            cuts.push(Cut { from, to, ranks: if alone.is_empty() { ranks.to_vec() } else { alone } });
        }
    }
    cuts
}

/// The nodes that links lead to from a host, through switches alone.
fn reachable(problem: &Problem<'_>, from: u32) -> Vec<bool> {
    let mut reached = vec![false; problem.system.nodes.len()];
    let mut next = vec![from];
    while let Some(node) = next.pop() {
        for &link in problem.network.leaving(node) {
            let to = problem.system.links[link as usize].destination;
            if !std::mem::replace(&mut reached[to as usize], true) && !problem.network.is_host(to) {
                next.push(to);
            }
        }
    }
    reached
}
