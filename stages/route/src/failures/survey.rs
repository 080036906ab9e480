//! What is left when a part fails: new routes or a new mapping, how they differ from those of the whole machine, or who can no longer
//! reach whom.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{
    Cause, Counting, Diagnosis, Error, Failure, Mapping, Route, Routes, SystemGraph, TableEntry, Tables,
    TaskGraph,
};

use super::parts::Element;
use crate::answer::{checked, solve_from};
use crate::diagnosis::diagnose;
use crate::engine::{Found, Limits, StopCondition};
use crate::problem::{Home, Plan, Problem};
use crate::{CheckError, CheckParams, Method, Rules, Weights, check, network, solver};

/// Part of a cost by which it may miss a bound: rounding.
const TOLERANCE: f64 = 1e-6;

/// A program on a machine, and how answers are looked for when parts of it fail.
pub(crate) struct Survey<'a> {
    pub(crate) graph: &'a TaskGraph,
    pub(crate) system: &'a SystemGraph,
    pub(crate) mapping: &'a Mapping,
    /// Node id of the host of every process.
    pub(crate) hosts: Vec<u32>,
    pub(crate) rules: Rules,
    pub(crate) method: Method,
    pub(crate) limits: Limits,
    /// What a process costs that goes to another host; nothing if all stay.
    pub(crate) move_cost: Option<f64>,
}

/// What is known of the whole machine.
pub(crate) struct Nominal {
    pub(crate) found: Found,
    /// No mapping at all has a lesser objective (11).
    least: f64,
}

/// What is left without a part.
pub(crate) struct Rest {
    pub(crate) failure: Failure,
    /// Whether the answer is proven best, or proven not to be there.
    pub(crate) proven: bool,
}

impl<'a> Survey<'a> {
    pub(crate) fn problem(&self, system: &'a SystemGraph) -> Result<Problem<'a>, Error> {
        let mapping = self.move_cost.is_none().then_some(self.mapping);
        let mut problem = Problem::new(self.graph, system, mapping, self.rules)?;
        problem.home = self.move_cost.map(|cost| Home { hosts: self.hosts.clone(), cost });
        Ok(problem)
    }

    /// The answer of the whole machine; what was given, unless something is better.
    pub(crate) fn nominal(
        &self,
        given: Option<&Reference>,
        should_stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Nominal, Error> {
        let problem = self.problem(self.system)?;
        let known = given.and_then(|given| given.plan(&problem, &self.hosts));
        let least = self.least(should_stop)?;
        let stop = StopCondition::new(self.limits, should_stop);
        let found = self.found(&problem, known, &BTreeSet::new(), least, &stop)?;
        Ok(Nominal { found, least })
    }

    /// A bound of the objective (11) over all mappings: the first one that a solver knows.
    fn least(&self, should_stop: &(dyn Fn() -> bool + Sync)) -> Result<f64, Error> {
        if self.move_cost.is_none() {
            return Ok(0.0);
        }
        let problem = Problem::new(self.graph, self.system, None, self.rules)?;
        let solver = solver::default().filter(|_| self.method != Method::Search);
        let (method, limits) = match &solver {
            Some(_) => (Method::Compact, Limits { nodes: Some(1), ..self.limits }),
            None => (Method::Search, self.limits),
        };
        let stop = StopCondition::new(limits, should_stop);
        Ok(solve_from(&problem, None, method, solver.as_deref(), &stop)?.bound.max(0.0))
    }

    /// What is left without a part.
    pub(crate) fn without(
        &self,
        element: &Element,
        nominal: &Nominal,
        reference: &Reference,
        should_stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Rest, Error> {
        let stop = StopCondition::new(self.limits, should_stop);
        let system = element.without(self.system);
        let mut problem = self.problem(&system)?;
        let known = nominal.found.plan.as_ref().filter(|plan| !element.is_used(&plan.hosts, &plan.routes));
        if nominal.found.proven && nominal.found.plan.is_none() {
            return self.lost(element, &problem, &stop);
        }
        if let Some(plan) = known {
            // Less machine makes nothing cheaper: what was best and is still there is best.
            let found = Found { plan: Some(plan.clone()), ..nominal.found.clone() };
            return self.survived(element, &problem, &found, plan, reference);
        }
        let must = self.close(&mut problem, element);
        let known = reference.plan(&problem, &self.hosts).filter(|_| must.is_empty());
        let found = match why_not(&problem, &must, &self.hosts) {
            Some(_) => Found::none(),
            None => self.found(&problem, known, &must, nominal.least, &stop)?,
        };
        match &found.plan {
            Some(plan) => self.survived(element, &problem, &found, plan, reference),
            None if found.proven => self.lost(element, &problem, &stop),
            None => {
                let shortage = "nothing was found within the limits".to_owned();
                Ok(Rest { failure: Failure { survived: None, shortage, ..nothing(element) }, proven: false })
            }
        }
    }

    /// Keeps processes off a host that fails; the ranks of those that were on it.
    fn close(&self, problem: &mut Problem<'_>, element: &Element) -> BTreeSet<usize> {
        element.close(problem);
        self.on(element)
    }

    fn solved(
        &self,
        problem: &Problem<'_>,
        known: Option<Plan>,
        stop: &StopCondition<'_>,
    ) -> Result<Found, Error> {
        let solver = solver::default();
        solve_from(problem, known, self.method, solver.as_deref(), stop)
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
    ) -> Result<Found, Error> {
        let Some(cost) = self.move_cost else { return self.solved(problem, known, stop) };
        let cut: BTreeSet<usize> =
            cut_off(problem, must, &self.hosts).into_iter().flat_map(|cut| cut.ranks).collect();
        let free: BTreeSet<usize> = must.union(&cut).copied().collect();
        let few = self.solved(&self.only(problem, &free), known, &stop.rest(0, 0.5))?;
        // What moves others than those that have to, as it has to where some are cut off.
        let bound = least + cost * (must.len() + 1) as f64;
        let best = few.plan.as_ref().map_or(f64::INFINITY, |plan| problem.cost(plan));
        if (few.proven || !cut.is_empty()) && best <= bound + problem.rules.tolerance(bound, TOLERANCE) {
            return Ok(Found { bound: best, proven: true, ..few });
        }
        let nodes = few.nodes;
        let found = self.solved(problem, few.plan, &stop.rest(nodes, 1.0))?;
        Ok(Found {
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
        found: &Found,
        plan: &Plan,
        reference: &Reference,
    ) -> Result<Rest, Error> {
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
        Ok(Rest { failure, proven: found.proven })
    }

    fn lost(
        &self,
        element: &Element,
        problem: &Problem<'_>,
        stop: &StopCondition<'_>,
    ) -> Result<Rest, Error> {
        let must = self.on(element);
        let shortage = match why_not(problem, &must, &self.hosts) {
            Some(words) => words,
            None => {
                let solver = solver::default();
                in_words(&diagnose(problem, solver.as_deref(), stop)?)
            }
        };
        let shortage =
            if shortage.is_empty() { "no routes keep all constraints".to_owned() } else { shortage };
        Ok(Rest { failure: Failure { survived: Some(false), shortage, ..nothing(element) }, proven: true })
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
pub(crate) fn nothing(element: &Element) -> Failure {
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
            None => network::tables(system, routes).entries.into_iter().collect(),
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
    let params = CheckParams::of(
        &Rules::from(Weights { longest_route: 0.0, total_hops: 0.0, table_entries: 0.0 }),
        merged,
    );
    let needed = match (tables, routes) {
        (Some(tables), _) => tables.clone(),
        (None, Some(routes)) => network::tables(system, &routes.routes),
        (None, None) => return Ok(None),
    };
    let checked = check::check(graph, system, mapping, &needed, routes, &params)?.routes;
    Ok(Some(Reference::new(system, &checked.routes, Some(&needed))))
}

/// Two hosts that have to be joined and are not.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cut {
    pub(super) from: u32,
    pub(super) to: u32,
    /// Processes one of which cannot stay.
    pub(super) ranks: Vec<usize>,
}

/// Streams between processes that stay and that no links join.
pub(super) fn cut_off(problem: &Problem<'_>, must: &BTreeSet<usize>, hosts: &[u32]) -> Vec<Cut> {
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
