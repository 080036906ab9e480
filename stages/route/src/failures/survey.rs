//! What is left when a part fails.

use std::collections::BTreeSet;

use hopmap_model::{Cause, Diagnosis, Error, Failure, Mapping, SystemGraph, TaskGraph};

use super::parts::Element;
use super::reference::Reference;
use super::ways;
use crate::answer::{checked, solve_from};
use crate::diagnosis::diagnose;
use crate::engine::{Found, Watch};
use crate::problem::{Home, Plan, Problem};
use crate::solver::{self, Limits};
use crate::{Method, Rules};

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
        let watch = Watch::new(self.limits, should_stop);
        let found = self.found(&problem, known, &BTreeSet::new(), least, &watch)?;
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
        let watch = Watch::new(limits, should_stop);
        Ok(solve_from(&problem, None, method, solver.as_deref(), &watch)?.bound.max(0.0))
    }

    /// What is left without a part.
    pub(crate) fn without(
        &self,
        element: &Element,
        nominal: &Nominal,
        reference: &Reference,
        should_stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Rest, Error> {
        let watch = Watch::new(self.limits, should_stop);
        let system = element.without(self.system);
        let mut problem = self.problem(&system)?;
        let known = nominal.found.plan.as_ref().filter(|plan| !element.is_used(&plan.hosts, &plan.routes));
        if nominal.found.proven && nominal.found.plan.is_none() {
            return self.lost(element, &problem, &watch);
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
            None => self.found(&problem, known, &must, nominal.least, &watch)?,
        };
        match &found.plan {
            Some(plan) => self.survived(element, &problem, &found, plan, reference),
            None if found.proven => self.lost(element, &problem, &watch),
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

    fn solved(&self, problem: &Problem<'_>, known: Option<Plan>, watch: &Watch<'_>) -> Result<Found, Error> {
        let solver = solver::default();
        solve_from(problem, known, self.method, solver.as_deref(), watch)
    }

    /// The best plan. Where processes may go elsewhere, first only those that have to and those that are cut off do; all others
    /// follow only where one more move could pay.
    fn found(
        &self,
        problem: &Problem<'_>,
        known: Option<Plan>,
        must: &BTreeSet<usize>,
        least: f64,
        watch: &Watch<'_>,
    ) -> Result<Found, Error> {
        let Some(cost) = self.move_cost else { return self.solved(problem, known, watch) };
        let cut: BTreeSet<usize> =
            ways::cut_off(problem, must, &self.hosts).into_iter().flat_map(|cut| cut.ranks).collect();
        let free: BTreeSet<usize> = must.union(&cut).copied().collect();
        let few = self.solved(&self.only(problem, &free), known, &watch.rest(0, 0.5))?;
        // What moves others than those that have to, as it has to where some are cut off.
        let bound = least + cost * (must.len() + 1) as f64;
        let best = few.plan.as_ref().map_or(f64::INFINITY, |plan| problem.cost(plan));
        if (few.proven || !cut.is_empty()) && best <= bound + problem.rules.tolerance(bound, TOLERANCE) {
            return Ok(Found { bound: best, proven: true, ..few });
        }
        let nodes = few.nodes;
        let found = self.solved(problem, few.plan, &watch.rest(nodes, 1.0))?;
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

    fn lost(&self, element: &Element, problem: &Problem<'_>, watch: &Watch<'_>) -> Result<Rest, Error> {
        let must = self.on(element);
        let shortage = match why_not(problem, &must, &self.hosts) {
            Some(words) => words,
            None => {
                let solver = solver::default();
                in_words(&diagnose(problem, solver.as_deref(), watch)?)
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
        let cut = ways::cut_off(problem, must, hosts).into_iter().next()?;
        return Some(format!("nothing leads from `{}` to `{}`", host(cut.from), host(cut.to)));
    }
    let nowhere = problem.allowed.iter().position(Vec::is_empty)?;
    Some(format!("process `{}` can be on no host", name(nowhere)))
}
