//! Primary goals, optimised before the objective.
//!
//! A goal is a measure of a plan: the largest utilisation of a link or host, or the largest load of a switch. An upper limit on
//! it is the same as narrower links, weaker hosts or a smaller `switch_load`, which every engine supports. The limit is tightened
//! until an engine proves infeasibility. Then the objective is optimised under the last feasible limit. A [`Seeker`] searches for
//! any feasible plan.

use std::cell::Cell;

use hopmap_model::{Error, Mapping};

use crate::answer::{Answer, answer, checked, engines, no_solution_in_time, solve};
use crate::engine::{SearchResult, StopCondition};
use crate::error::Result;
use crate::network;
use crate::paper::{self, Formulation};
use crate::params::{Goal, Method};
use crate::problem::{Plan, Problem, Rules, TOLERANCE, Weights};
use crate::solver::Solver;

/// Fraction of a time limit reserved for the objective.
const FOR_OBJECTIVE: f64 = 0.5;

/// The best solution by goal, then by objective; none if the problem is infeasible.
pub fn reach(
    problem: &Problem<'_>,
    mapping: Option<&Mapping>,
    goal: Goal,
    method: Method,
    solver: Option<&dyn Solver>,
    stop: &StopCondition<'_>,
) -> Result<Option<Answer>, Error> {
    if !problem.holds_mapping() {
        return Ok(None);
    }
    if goal == Goal::Objective {
        return answer(problem, mapping, method, solver, stop);
    }
    method.check(solver.is_some())?;
    let first_part = stop.rest(0, 1.0 - FOR_OBJECTIVE);
    let seeker = Seeker::new(method, solver, &first_part);
    let Some(best) = best(problem, goal, &seeker)? else { return Ok(None) };
    // Sums of the same numbers in another order differ by less than the tolerance.
    let held = under(problem, goal, best.value * (1.0 + TOLERANCE));
    let found = solve(&held, method, solver, &stop.rest(seeker.nodes.get(), 1.0))?;
    let found = or_plan(&held, found, &best.plan);
    let Some(plan) = &found.plan else { return Ok(None) };
    let value = measure(problem, goal, plan);
    let is_proven = best.is_proven() && value <= best.value * (1.0 + 1e-6);
    let found = SearchResult { proven: found.proven && is_proven, ..found.clone() };
    let mut answer = checked(problem, mapping, &found, plan)?;
    let as_slack = |measure: f64| if goal == Goal::SwitchLoad { measure } else { 1.0 - measure };
    let bound = if is_proven { value } else { best.bound };
    let is_proven = f64::from(u8::from(is_proven));
    answer.record(&[("goal", as_slack(value)), ("goal_bound", as_slack(bound)), ("goal_proven", is_proven)]);
    Ok(Some(answer))
}

/// The best known plan by goal; none if the problem is infeasible.
fn best(problem: &Problem<'_>, goal: Goal, seeker: &Seeker<'_>) -> Result<Option<Least>> {
    if let (Method::Paper, Some(solver)) = (seeker.method, seeker.solver) {
        return aimed(problem, goal, seeker, solver);
    }
    match seeker.seek(problem)? {
        Sought::Nothing => Ok(None),
        Sought::Unknown => Err(no_solution_in_time()),
        Sought::Plan(plan) => tightest(problem, goal, seeker, plan).map(Some),
    }
}

/// The same, starting from a known plan.
pub(crate) fn tightest(problem: &Problem<'_>, goal: Goal, seeker: &Seeker<'_>, plan: Plan) -> Result<Least> {
    let measure = |plan: &Plan| measure(problem, goal, plan);
    let under = |most: f64| under(problem, goal, most);
    let rounding = if goal == Goal::SwitchLoad { rounding(problem) } else { 4.0 * TOLERANCE };
    let rounding = rounding.max(f64::MIN_POSITIVE);
    least(seeker, plan, bound(problem, goal), rounding, &measure, &under)
}

/// The same by one program with the goal as a variable.
fn aimed(
    problem: &Problem<'_>,
    goal: Goal,
    seeker: &Seeker<'_>,
    solver: &dyn Solver,
) -> Result<Option<Least>> {
    let mut formulation = Formulation::new(problem);
    formulation.aim(goal);
    let found = paper::solve(&mut formulation, solver, seeker.stop)?;
    seeker.nodes.set(found.nodes);
    match found.plan {
        None if found.proven => Ok(None),
        None => Err(no_solution_in_time()),
        Some(plan) => {
            let value = measure(problem, goal, &plan);
            let bound = Formulation::aimed(found.bound).max(bound(problem, goal)).clamp(0.0, value);
            // The tolerance of solvers.
            let is_proven = found.proven && value - bound <= 1e-6 * value.max(1.0);
            Ok(Some(Least { plan, value, bound: if is_proven { value } else { bound } }))
        }
    }
}

/// The plan found, or the known plan if that costs less.
fn or_plan(problem: &Problem<'_>, found: SearchResult, known: &Plan) -> SearchResult {
    let cost = found.plan.as_ref().map_or(f64::INFINITY, |plan| problem.cost(plan));
    match problem.cost(known) < cost {
        // An engine that calls the problem infeasible is wrong about the bound, too.
        true if found.plan.is_none() && found.proven => {
            SearchResult { plan: Some(known.clone()), ..SearchResult::nothing() }
        }
        true => SearchResult { plan: Some(known.clone()), proven: false, ..found },
        false => found,
    }
}

/// A measure that a goal minimises.
fn measure(problem: &Problem<'_>, goal: Goal, plan: &Plan) -> f64 {
    match goal {
        Goal::Objective => 0.0,
        Goal::BandwidthSlack => largest_part(&loads(problem, plan), bandwidths(problem)),
        Goal::PerformanceSlack => largest_part(&performance(problem, &plan.hosts), performances(problem)),
        Goal::SwitchLoad => {
            let mut arriving = vec![0.0; problem.system.nodes.len()];
            for (link, load) in problem.system.links.iter().zip(loads(problem, plan)) {
                arriving[link.destination as usize] += load;
            }
            problem.switches().iter().map(|&switch| arriving[switch as usize]).fold(0.0, f64::max)
        }
    }
}

/// Maximum load of every link, if known.
fn bandwidths<'a>(problem: &Problem<'a>) -> impl Iterator<Item = Option<f64>> + use<'a> {
    problem.system.links.iter().map(|link| link.bandwidth_bytes_per_s)
}

/// Maximum load of every node, if known.
fn performances<'a>(problem: &Problem<'a>) -> impl Iterator<Item = Option<f64>> + use<'a> {
    problem.system.nodes.iter().map(|node| node.traits.performance)
}

/// The largest utilisation.
fn largest_part(used: &[f64], there: impl Iterator<Item = Option<f64>>) -> f64 {
    let parts = used.iter().zip(there).filter_map(|(used, there)| Some(used / there?));
    parts.filter(|part| part.is_finite()).fold(0.0, f64::max)
}

/// Limits values to a fraction of their capacity.
fn limit(values: &mut [f64], there: impl Iterator<Item = Option<f64>>, part: f64) {
    for (value, there) in values.iter_mut().zip(there) {
        *value = value.min(there.map_or(f64::INFINITY, |there| there * part));
    }
}

/// The problem restricted to plans that measure at most `most`.
fn under<'a>(problem: &Problem<'a>, goal: Goal, most: f64) -> Problem<'a> {
    let mut tight = problem.clone();
    match goal {
        Goal::Objective => {}
        Goal::BandwidthSlack => limit(&mut tight.capacity, bandwidths(problem), most),
        Goal::PerformanceSlack => {
            limit(&mut tight.performance, performances(problem), most);
            tight.allowed = tight.holding(&tight.performance);
        }
        Goal::SwitchLoad => {
            let given = problem.rules.switch_load.unwrap_or(f64::INFINITY);
            tight.rules = Rules { switch_load: Some(given.min(most)), ..problem.rules };
        }
    }
    tight
}

/// A lower bound of the measure, without a search.
fn bound(problem: &Problem<'_>, goal: Goal) -> f64 {
    match (goal, &problem.mapped) {
        (Goal::PerformanceSlack, Some(hosts)) => {
            measure(problem, goal, &Plan { hosts: hosts.clone(), routes: Vec::new() })
        }
        (Goal::PerformanceSlack, None) => {
            let performance = problem.hosts.iter().map(|&host| {
                let performance = problem.system.nodes[host as usize].traits.performance;
                performance.unwrap_or(f64::INFINITY)
            });
            let demands = problem.graph.demands.processes.iter().map(|demand| demand.performance);
            let part = demands.sum::<f64>() / performance.sum::<f64>();
            if part.is_finite() { part * (1.0 - TOLERANCE) } else { 0.0 }
        }
        (Goal::SwitchLoad, Some(_)) => load_at_ends(problem) * (1.0 - TOLERANCE),
        _ => 0.0,
    }
}

/// The largest load of a switch that is the only one of its hosts, if the sending hosts are known.
fn load_at_ends(problem: &Problem<'_>) -> f64 {
    let only = network::only_neighbours(problem.system);
    let mut arriving = vec![0.0; problem.system.nodes.len()];
    for flow in problem.flows.iter().filter(|flow| flow.source != flow.destination) {
        let [first, last] = [flow.source, flow.destination].map(|host| only[host as usize]);
        first.iter().for_each(|&switch| arriving[switch as usize] += flow.bandwidth);
        let other = last.filter(|_| first != last);
        other.iter().for_each(|&switch| arriving[switch as usize] += flow.bandwidth);
    }
    arriving.into_iter().fold(0.0, f64::max)
}

/// Relative step by which each demand is tighter than the incumbent: larger than the tolerance of solvers.
const STEP: f64 = 1e-5;
/// Fraction of the capacity of a link that counts as rounding, with a margin.
const ROUNDING: f64 = 4e-9;
/// Relative gap between feasible and infeasible limits at which the bisection ends.
const NEAR: f64 = 0.05;
/// Maximum number of demands that remain undecided before the search ends.
const MOST_UNKNOWN: usize = 3;

/// What is known about a plan that keeps all rules.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sought {
    /// A feasible plan.
    Plan(Plan),
    /// Infeasible.
    Nothing,
    /// Unknown: none was found.
    Unknown,
}

/// Searches for any feasible plan.
pub(crate) struct Seeker<'a> {
    pub(crate) method: Method,
    pub(crate) solver: Option<&'a dyn Solver>,
    pub(crate) stop: &'a StopCondition<'a>,
    /// Node limit of a solver's search tree per query, if it is tighter than the stop condition.
    pub(crate) most_nodes: Option<u64>,
    /// Maximum number of queries; bounds the run if each is quick.
    pub(crate) most_questions: u32,
    /// Nodes of all queries so far.
    pub(crate) nodes: Cell<u64>,
    /// Queries so far.
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

    /// Any plan that keeps the rules of a problem, whatever it costs.
    pub(crate) fn seek(&self, problem: &Problem<'_>) -> Result<Sought> {
        self.questions.set(self.questions.get().saturating_add(1));
        let rules = Rules { weights: Weights::default(), ..problem.rules };
        let problem = Problem { rules, home: None, ..problem.clone() };
        let [own, program] = engines(&problem, self.method, self.solver);
        for (engine, most_nodes) in
            own.map(|own| (own, None)).into_iter().chain(program.map(|it| (it, self.most_nodes)))
        {
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

    /// Whether the search has to stop or the query limit is reached.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.is_over(self.nodes.get()) || self.questions.get() >= self.most_questions
    }
}

/// Whether a plan keeps all rules, including those of hosts; needed because solvers round.
fn holds(problem: &Problem<'_>, plan: &Plan) -> bool {
    let used = performance(problem, &plan.hosts);
    let fits = used.iter().zip(&problem.performance).all(|(used, there)| *used <= there * (1.0 + TOLERANCE));
    (fits || problem.mapped.is_some()) && problem.keeps_rules(&plan.routes)
}

/// The best known plan by a measure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Least {
    /// The plan.
    pub plan: Plan,
    /// Its measure.
    pub value: f64,
    /// Lower bound of the measure.
    pub bound: f64,
}

impl Least {
    /// Whether the plan is optimal up to rounding.
    pub(crate) fn is_proven(&self) -> bool {
        self.bound >= self.value
    }
}

/// Minimises a measure. `under` restricts the problem to plans of at most a given measure, `bound` is a lower bound, and
/// differences below `rounding` are ignored.
pub(crate) fn least<'a>(
    seeker: &Seeker<'_>,
    first: Plan,
    bound: f64,
    rounding: f64,
    measure: &dyn Fn(&Plan) -> f64,
    under: &dyn Fn(f64) -> Problem<'a>,
) -> Result<Least> {
    let value = measure(&first);
    let mut least = Least { plan: first, value, bound: bound.max(0.0) };
    // No further attempts below this value, although infeasibility there is not proven.
    let mut floor = least.bound;
    let mut unknown = 0;
    while least.bound < least.value && !seeker.is_over() {
        let step = (least.value * STEP).max(rounding);
        let is_near = least.value - floor <= (least.value * NEAR).max(4.0 * step);
        let demand = if is_near { least.value - step } else { f64::midpoint(least.value, floor) };
        if demand < floor {
            // The rest is rounding if everything below is proven infeasible.
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

/// Differences of load that are rounding on the links of a problem.
pub(crate) fn rounding(problem: &Problem<'_>) -> f64 {
    // A link may be much wider than any flow.
    let all: f64 = problem.flows.iter().map(|flow| flow.bandwidth).sum();
    let finite = problem.capacity.iter().filter(|capacity| capacity.is_finite());
    finite.fold(0.0_f64, |most, &capacity| most.max(capacity.min(all))) * ROUNDING
}

/// Performance demand at every node.
pub(crate) fn performance(problem: &Problem<'_>, hosts: &[u32]) -> Vec<f64> {
    let mut used = vec![0.0; problem.system.nodes.len()];
    for (demand, &host) in problem.graph.demands.processes.iter().zip(hosts) {
        used[host as usize] += demand.performance;
    }
    used
}

/// Load of every link under a plan.
pub(crate) fn loads(problem: &Problem<'_>, plan: &Plan) -> Vec<f64> {
    let mut loads = vec![0.0; problem.system.links.len()];
    for route in &plan.routes {
        route.links.iter().for_each(|&link| loads[link as usize] += route.bandwidth_bytes_per_s);
    }
    loads
}
