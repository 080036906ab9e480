//! What is as good as possible before the objective is.
//!
//! A goal is a measure of a plan: the largest part of a link or host that is in use, or the largest load of a switch. To demand that it is
//! at most so much is to have narrower links, weaker hosts or a lighter `switch_load`, which every engine understands. So the demand is
//! tightened until an engine proves that nothing keeps it, and then the objective is optimised under the last one that something kept.

use hopmap_model::{Error, Mapping};

use crate::answer::{Answer, answer, checked, no_solution_in_time, solve};
use crate::engine::{Found, StopCondition};
use crate::paper::{self, Formulation};
use crate::problem::{self, Plan, Problem, TOLERANCE};
use crate::seek::{Least, Seeker, Sought, least, loads, performance, rounding};
use crate::solver::Solver;
use crate::{Goal, Method, Rules};

/// Part of limited seconds that is left to the objective.
const FOR_OBJECTIVE: f64 = 0.5;

/// The best answer by a goal, and by the objective among those; nothing if there is no answer.
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
    let found = Found { proven: found.proven && is_proven, ..found.clone() };
    let mut answer = checked(problem, mapping, &found, plan)?;
    let told = |measure: f64| if goal == Goal::SwitchLoad { measure } else { 1.0 - measure };
    let bound = if is_proven { value } else { best.bound };
    for (name, metric) in
        [("goal", told(value)), ("goal_bound", told(bound)), ("goal_proven", f64::from(u8::from(is_proven)))]
    {
        for metrics in [&mut answer.mapping.metrics, &mut answer.routes.metrics, &mut answer.tables.metrics] {
            metrics.insert(name.to_owned(), metric);
        }
    }
    Ok(Some(answer))
}

/// The plan that is best by the goal, as far as known; nothing if there is no plan at all.
fn best(problem: &Problem<'_>, goal: Goal, seeker: &Seeker<'_>) -> Result<Option<Least>, Error> {
    if let (Method::Paper, Some(solver)) = (seeker.method, seeker.solver) {
        return aimed(problem, goal, seeker, solver);
    }
    match seeker.seek(problem)? {
        Sought::Nothing => Ok(None),
        Sought::Unknown => Err(no_solution_in_time()),
        Sought::Plan(plan) => tightest(problem, goal, seeker, plan).map(Some),
    }
}

/// The same where a plan is known.
pub(crate) fn tightest(
    problem: &Problem<'_>,
    goal: Goal,
    seeker: &Seeker<'_>,
    plan: Plan,
) -> Result<Least, Error> {
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
) -> Result<Option<Least>, Error> {
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
            // What solvers take for equal.
            let is_proven = found.proven && value - bound <= 1e-6 * value.max(1.0);
            Ok(Some(Least { plan, value, bound: if is_proven { value } else { bound } }))
        }
    }
}

/// What was found, or a plan that was known before if that costs less.
fn or_plan(problem: &Problem<'_>, found: Found, known: &Plan) -> Found {
    let cost = found.plan.as_ref().map_or(f64::INFINITY, |plan| problem.cost(plan));
    match problem.cost(known) < cost {
        // Whoever says that there is no plan is wrong about the bound, too.
        true if found.plan.is_none() && found.proven => {
            Found { plan: Some(known.clone()), ..Found::nothing() }
        }
        true => Found { plan: Some(known.clone()), proven: false, ..found },
        false => found,
    }
}

/// What a goal makes as small as can be.
fn measure(problem: &Problem<'_>, goal: Goal, plan: &Plan) -> f64 {
    match goal {
        Goal::Objective => 0.0,
        Goal::BandwidthSlack => {
            let loads = loads(problem, plan);
            let used = problem.system.links.iter().zip(&loads);
            let used = used.filter_map(|(link, load)| Some(load / link.bandwidth_bytes_per_s?));
            used.filter(|used| used.is_finite()).fold(0.0, f64::max)
        }
        Goal::PerformanceSlack => {
            let needed = performance(problem, &plan.hosts);
            let used = problem.system.nodes.iter().zip(&needed);
            let used = used.filter_map(|(node, needed)| Some(needed / node.traits.performance?));
            used.filter(|used| used.is_finite()).fold(0.0, f64::max)
        }
        Goal::SwitchLoad => {
            let mut arriving = vec![0.0; problem.system.nodes.len()];
            for (link, load) in problem.system.links.iter().zip(loads(problem, plan)) {
                arriving[link.destination as usize] += load;
            }
            problem.switches().iter().map(|&switch| arriving[switch as usize]).fold(0.0, f64::max)
        }
    }
}

/// The problem whose plans measure at most so much.
fn under<'a>(problem: &Problem<'a>, goal: Goal, most: f64) -> Problem<'a> {
    let mut tight = problem.clone();
    match goal {
        Goal::Objective => {}
        Goal::BandwidthSlack => {
            for (capacity, link) in tight.capacity.iter_mut().zip(&problem.system.links) {
                let part = link.bandwidth_bytes_per_s.map_or(f64::INFINITY, |there| there * most);
                *capacity = capacity.min(part);
            }
        }
        Goal::PerformanceSlack => {
            for (performance, node) in tight.performance.iter_mut().zip(&problem.system.nodes) {
                let part = node.traits.performance.map_or(f64::INFINITY, |there| there * most);
                *performance = performance.min(part);
            }
            tight.allowed =
                problem::allowed(problem.graph, problem.system, &problem.hosts, &tight.performance);
        }
        Goal::SwitchLoad => {
            let given = problem.rules.switch_load.unwrap_or(f64::INFINITY);
            tight.rules = Rules { switch_load: Some(given.min(most)), ..problem.rules };
        }
    }
    tight
}

/// What no plan measures less than, without a search.
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

/// The largest load that a switch has because hosts have no other switch, where it is known which hosts send.
fn load_at_ends(problem: &Problem<'_>) -> f64 {
    let mut only: Vec<Option<Option<u32>>> = vec![None; problem.system.nodes.len()];
    for link in &problem.system.links {
        for (host, switch) in [(link.source, link.destination), (link.destination, link.source)] {
            let own = &mut only[host as usize];
            *own = Some(own.is_none_or(|known| known == Some(switch)).then_some(switch));
        }
    }
    let mut arriving = vec![0.0; problem.system.nodes.len()];
    for flow in problem.flows.iter().filter(|flow| flow.source != flow.destination) {
        let [first, last] = [flow.source, flow.destination].map(|host| only[host as usize].flatten());
        first.iter().for_each(|&switch| arriving[switch as usize] += flow.bandwidth);
        let other = last.filter(|_| first != last);
        other.iter().for_each(|&switch| arriving[switch as usize] += flow.bandwidth);
    }
    arriving.into_iter().fold(0.0, f64::max)
}
