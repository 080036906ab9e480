//! Whether there is a plan at all, and the tightest rules under which there is one.

use std::cell::Cell;

use hopmap_model::Error;

use crate::compact::Compact;
use crate::engine::{Engine, StopCondition};
use crate::paper::Paper;
use crate::problem::{Plan, Problem, TOLERANCE};
use crate::router::Router;
use crate::search::Search;
use crate::solver::Solver;
use crate::{Method, Rules, Weights};

/// Part by which what is demanded is tighter than what is known: more than solvers take for rounding.
const STEP: f64 = 1e-5;
/// Part of the capacity of a link that is rounding, with room to spare.
const ROUNDING: f64 = 4e-9;
/// Part that is left between what is known to be possible and to be impossible where halving ends.
const NEAR: f64 = 0.05;
/// Demands of which it stays unknown whether a plan keeps them, before it is left at that.
const MOST_UNKNOWN: usize = 3;

/// What is known of a plan that keeps all rules.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sought {
    /// It is this.
    Plan(Plan),
    /// There is none.
    Nothing,
    /// None was found.
    Unknown,
}

/// Asks engines for any plan.
pub(crate) struct Seeker<'a> {
    pub(crate) method: Method,
    pub(crate) solver: Option<&'a dyn Solver>,
    pub(crate) stop: &'a StopCondition<'a>,
    /// Nodes of a solver's search tree for one question, if they are limited more than the stop condition does.
    pub(crate) most_nodes: Option<u64>,
    /// Questions, so that an end comes also where each is quick.
    pub(crate) most_questions: u32,
    /// Nodes of all questions so far.
    pub(crate) nodes: Cell<u64>,
    /// Questions so far.
    pub(crate) questions: Cell<u32>,
}

impl<'a> Seeker<'a> {
    pub(crate) fn new(method: Method, solver: Option<&'a dyn Solver>, stop: &'a StopCondition<'a>) -> Self {
        Self {
            method,
            solver,
            stop,
            most_nodes: None,
            most_questions: u32::MAX,
            nodes: Cell::new(0),
            questions: Cell::new(0),
        }
    }

    /// Any plan that keeps the rules of a problem; what it costs does not matter.
    pub(crate) fn seek(&self, problem: &Problem<'_>) -> Result<Sought, Error> {
        self.questions.set(self.questions.get().saturating_add(1));
        let weights = Weights { longest_route: 0.0, total_hops: 0.0, table_entries: 0.0 };
        let rules = Rules { weights, ..problem.rules };
        let problem = Problem { rules, home: None, ..problem.clone() };
        for (engine, most_nodes) in self.engines(&problem) {
            if self.stop.is_over(self.nodes.get()) {
                break;
            }
            let mut stop = self.stop.rest(self.nodes.get(), 0.5);
            stop.limits.nodes = stop.limits.nodes.into_iter().chain(most_nodes).min();
            let found = engine.solve(&problem, None, &stop)?;
            self.nodes.set(self.nodes.get() + found.nodes);
            match found.plan {
                Some(plan) if holds(&problem, &plan) => return Ok(Sought::Plan(plan)),
                None if found.proven => return Ok(Sought::Nothing),
                _ => {}
            }
        }
        Ok(Sought::Unknown)
    }

    /// Whether it has to stop, or enough was asked.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.is_over(self.nodes.get()) || self.questions.get() >= self.most_questions
    }

    fn engines(&self, problem: &Problem<'_>) -> Vec<(Box<dyn Engine + 'a>, Option<u64>)> {
        let mut engines: Vec<(Box<dyn Engine + 'a>, Option<u64>)> = Vec::new();
        match (self.method, &problem.mapped) {
            (Method::Paper | Method::Compact, _) => {}
            (_, Some(_)) => engines.push((Box::new(Router::default()), None)),
            (_, None) => engines.push((Box::new(Search::default()), None)),
        }
        match (self.method, self.solver) {
            (Method::Paper, Some(solver)) => engines.push((Box::new(Paper { solver }), self.most_nodes)),
            (Method::Auto | Method::Compact, Some(solver)) => {
                engines.push((Box::new(Compact { solver }), self.most_nodes));
            }
            _ => {}
        }
        engines
    }
}

/// Whether a plan keeps all rules, hosts included: solvers round.
fn holds(problem: &Problem<'_>, plan: &Plan) -> bool {
    let used = performance(problem, &plan.hosts);
    let fits = used.iter().zip(&problem.performance).all(|(used, there)| *used <= there * (1.0 + TOLERANCE));
    (fits || problem.mapped.is_some()) && problem.keeps_rules(&plan.routes)
}

/// The plan that is least by a measure, as far as known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Least {
    /// The plan.
    pub plan: Plan,
    /// Its measure.
    pub value: f64,
    /// No plan measures less.
    pub bound: f64,
}

impl Least {
    /// Whether no plan measures less than this one, but for rounding.
    pub(crate) fn is_proven(&self) -> bool {
        self.bound >= self.value
    }
}

/// A plan that is least by a measure. `under` demands a measure of at most so much, `bound` is what no plan is below, and `rounding` is what
/// differences of the measure below are not meant.
pub(crate) fn least<'a>(
    seeker: &Seeker<'_>,
    first: Plan,
    bound: f64,
    rounding: f64,
    measure: &dyn Fn(&Plan) -> f64,
    under: &dyn Fn(f64) -> Problem<'a>,
) -> Result<Least, Error> {
    let value = measure(&first);
    let mut least = Least { plan: first, value, bound: bound.max(0.0) };
    // Below this nothing more is tried, though it is not known that there is nothing.
    let mut floor = least.bound;
    let mut unknown = 0;
    while least.bound < least.value && !seeker.is_over() {
        let step = (least.value * STEP).max(rounding);
        let is_near = least.value - floor <= (least.value * NEAR).max(4.0 * step);
        let demand = if is_near { least.value - step } else { f64::midpoint(least.value, floor) };
        if demand < floor {
            // What is left is rounding, if everything below is known to be impossible.
            least.bound = if floor <= least.bound { least.value } else { least.bound };
            break;
        }
        match seeker.seek(&under(demand))? {
            Sought::Plan(plan) if measure(&plan) < least.value => {
                least = Least { value: measure(&plan), plan, ..least };
                least.bound = least.bound.min(least.value);
            }
            Sought::Nothing => {
                least.bound = if is_near { least.value } else { least.bound.max(demand) };
                floor = floor.max(demand);
            }
            _ => {
                unknown += 1;
                floor = floor.max(demand);
                if is_near || unknown >= MOST_UNKNOWN {
                    break;
                }
            }
        }
    }
    Ok(least)
}

/// What differences of a load are rounding, on the links of a problem.
pub(crate) fn rounding(problem: &Problem<'_>) -> f64 {
    // A link may be much wider than anything that flows.
    let all: f64 = problem.flows.iter().map(|flow| flow.bandwidth).sum();
    let finite = problem.capacity.iter().filter(|capacity| capacity.is_finite());
    finite.fold(0.0_f64, |most, &capacity| most.max(capacity.min(all))) * ROUNDING
}

/// What processes need of every node.
pub(crate) fn performance(problem: &Problem<'_>, hosts: &[u32]) -> Vec<f64> {
    let mut used = vec![0.0; problem.system.nodes.len()];
    for (demand, &host) in problem.graph.demands.processes.iter().zip(hosts) {
        used[host as usize] += demand.performance;
    }
    used
}

/// What a plan takes of every link.
pub(crate) fn loads(problem: &Problem<'_>, plan: &Plan) -> Vec<f64> {
    let mut loads = vec![0.0; problem.system.links.len()];
    for route in &plan.routes {
        route.links.iter().for_each(|&link| loads[link as usize] += route.bandwidth_bytes_per_s);
    }
    loads
}
