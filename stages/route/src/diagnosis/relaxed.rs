//! Rules that would have to be weaker, and switches that would have to have a table for every port.

use std::collections::BTreeMap;

use hopmap_model::{Cause, Error, Part};

use super::remedy::{Changed, amount, cause, short};
use super::shortage::{self, is_small};
use crate::paper::Formulation;
use crate::problem::{Plan, Problem, TOLERANCE};
use crate::seek::{Seeker, Sought};
use crate::{Goal, Rules, goals, paper};

/// A rule, and how far it would have to be weakened for an answer to exist.
type Weaker = Option<(Rules, Plan, Cause)>;

/// Every rule that is in the way alone.
pub(super) fn rules(
    asked: &Problem<'_>,
    changed: &Changed,
    seeker: &Seeker<'_>,
) -> Result<Vec<Cause>, Error> {
    let mut causes = Vec::new();
    for weaken in [deadlock_free, max_hops, bandwidth_slack, performance_slack, switch_load] {
        if seeker.is_over() {
            break;
        }
        if let Some((rules, plan, cause)) = weaken(asked, changed, seeker)? {
            let weaker = Changed { rules, ..changed.clone() };
            if weaker.passes(asked, &plan)? {
                causes.push(cause);
            }
        }
    }
    Ok(causes)
}

/// What would have to be different without any of the rules; for where no single thing helps.
pub(super) fn all(asked: &Problem<'_>, changed: &Changed, seeker: &Seeker<'_>) -> Result<Vec<Cause>, Error> {
    let names = in_force(&asked.rules);
    let ones: Vec<u32> = asked.switches().into_iter().filter(|&switch| !asked.is_type_two(switch)).collect();
    let mut causes: Vec<Cause> = Vec::new();
    let mut bare = Changed { rules: Rules::from(asked.rules.weights), ..changed.clone() };
    for (name, part) in &names {
        causes.push(cause(*part, name, format!("`{name}` would have to be left out")));
    }
    for is_typed in [false, true] {
        if is_typed {
            bare = bare.with_type_two(&ones);
        }
        let problem = bare.problem(asked)?;
        let plan = plan(&problem, seeker)?;
        let short = match &plan {
            Some(plan) => bare.passes(asked, plan)?.then(Vec::new),
            None => {
                let shortage = shortage::of_links_and_hosts(&problem, &bare, seeker)?;
                shortage.map(|shortage| shortage.causes(&problem))
            }
        };
        if let Some(short) = short {
            if is_typed {
                let words = "all switches would have to be of type 2".to_owned();
                causes.push(cause(Part::Switch, "all switches", words));
            }
            causes.extend(short);
            return Ok(causes);
        }
    }
    Ok(Vec::new())
}

/// Names of rules that are in force, and what they are about.
fn in_force(rules: &Rules) -> Vec<(&'static str, Part)> {
    let all = [
        (rules.deadlock_free, "deadlock_free", Part::Link),
        (rules.max_hops.is_some(), "max_hops", Part::Stream),
        (rules.bandwidth_slack > 0.0, "bandwidth_slack", Part::Link),
        (rules.performance_slack > 0.0, "performance_slack", Part::Host),
        (rules.switch_load.is_some(), "switch_load", Part::Switch),
    ];
    all.into_iter().filter(|(is_there, ..)| *is_there).map(|(_, name, part)| (name, part)).collect()
}

fn deadlock_free(asked: &Problem<'_>, changed: &Changed, seeker: &Seeker<'_>) -> Result<Weaker, Error> {
    if !asked.rules.deadlock_free {
        return Ok(None);
    }
    let rules = Rules { deadlock_free: false, ..asked.rules };
    let words = "without `deadlock_free` there is an answer".to_owned();
    let weaker = Changed { rules, ..changed.clone() };
    let found = plan(&weaker.problem(asked)?, seeker)?;
    Ok(found.map(|plan| (rules, plan, cause(Part::Link, "deadlock_free", words))))
}

fn max_hops(asked: &Problem<'_>, changed: &Changed, seeker: &Seeker<'_>) -> Result<Weaker, Error> {
    let Some(most) = asked.rules.max_hops else { return Ok(None) };
    let mut weaker = changed.clone();
    weaker.rules.max_hops = None;
    let mut best: Option<(u32, Plan)> = None;
    // Shorter and shorter, until nothing is found.
    while let Some(plan) = plan(&weaker.problem(asked)?, seeker)? {
        let longest = plan.routes.iter().map(|route| route.links.len() as u32).max().unwrap_or_default();
        best = Some((longest, plan));
        if longest <= most + 1 {
            break;
        }
        weaker.rules.max_hops = Some(longest - 1);
    }
    Ok(best.map(|(longest, plan)| {
        let words = format!("with `max_hops` = {longest} instead of {most} there is an answer");
        let rules = Rules { max_hops: Some(longest), ..asked.rules };
        (rules, plan, short(Part::Stream, "max_hops", f64::from(most), f64::from(longest), words))
    }))
}

fn bandwidth_slack(asked: &Problem<'_>, changed: &Changed, seeker: &Seeker<'_>) -> Result<Weaker, Error> {
    let given = asked.rules.bandwidth_slack;
    let rules = Rules { bandwidth_slack: 0.0, ..asked.rules };
    let found = best(asked, changed, seeker, rules, (given > 0.0).then_some(Goal::BandwidthSlack))?;
    Ok(found.map(|(used, plan)| {
        let slack = left(used);
        let rules = Rules { bandwidth_slack: slack, ..rules };
        (rules, plan, slack_cause(Part::Link, "bandwidth_slack", given, slack))
    }))
}

fn performance_slack(asked: &Problem<'_>, changed: &Changed, seeker: &Seeker<'_>) -> Result<Weaker, Error> {
    let given = asked.rules.performance_slack;
    let rules = Rules { performance_slack: 0.0, ..asked.rules };
    let found = best(asked, changed, seeker, rules, (given > 0.0).then_some(Goal::PerformanceSlack))?;
    Ok(found.map(|(used, plan)| {
        let slack = left(used);
        let rules = Rules { performance_slack: slack, ..rules };
        (rules, plan, slack_cause(Part::Host, "performance_slack", given, slack))
    }))
}

fn switch_load(asked: &Problem<'_>, changed: &Changed, seeker: &Seeker<'_>) -> Result<Weaker, Error> {
    let Some(given) = asked.rules.switch_load else { return Ok(None) };
    let rules = Rules { switch_load: None, ..asked.rules };
    let found = best(asked, changed, seeker, rules, Some(Goal::SwitchLoad))?;
    Ok(found.map(|(load, plan)| {
        let words =
            format!("with `switch_load` = {} instead of {} there is an answer", amount(load), amount(given));
        let rules = Rules { switch_load: Some(load), ..rules };
        (rules, plan, short(Part::Switch, "switch_load", given, load, words))
    }))
}

/// The best plan by a goal under other rules, and what it measures.
fn best(
    asked: &Problem<'_>,
    changed: &Changed,
    seeker: &Seeker<'_>,
    rules: Rules,
    goal: Option<Goal>,
) -> Result<Option<(f64, Plan)>, Error> {
    let Some(goal) = goal else { return Ok(None) };
    let weaker = Changed { rules, ..changed.clone() };
    let problem = weaker.problem(asked)?;
    match plan(&problem, seeker)? {
        Some(plan) => {
            let best = goals::tightest(&problem, goal, seeker, plan)?;
            Ok(Some((best.value, best.plan)))
        }
        None => Ok(None),
    }
}

/// Any plan of a problem whose mapping holds.
fn plan(problem: &Problem<'_>, seeker: &Seeker<'_>) -> Result<Option<Plan>, Error> {
    if !problem.holds_mapping() || seeker.is_over() {
        return Ok(None);
    }
    Ok(match seeker.seek(problem)? {
        Sought::Plan(plan) => Some(plan),
        _ => None,
    })
}

/// The part that stays free where so much is used; rounding does not make it more.
fn left(used: f64) -> f64 {
    (1.0 - used * (1.0 + TOLERANCE / 2.0)).max(0.0)
}

fn slack_cause(part: Part, name: &str, given: f64, slack: f64) -> Cause {
    let words = format!("with `{name}` = {} instead of {} there is an answer", amount(slack), amount(given));
    short(part, name, given, slack, words)
}

/// Nodes of the search for the fewest.
const MOST_NODES: u64 = 500;

/// As few switches as can be found that would have to be of type 2, if that is enough.
pub(super) fn of_type_two(
    asked: &Problem<'_>,
    changed: &Changed,
    seeker: &Seeker<'_>,
) -> Result<Vec<Cause>, Error> {
    let ones: Vec<u32> = asked.switches().into_iter().filter(|&switch| !asked.is_type_two(switch)).collect();
    if ones.is_empty() || !asked.holds_mapping() {
        return Ok(Vec::new());
    }
    let all = changed.with_type_two(&ones);
    let loose = all.problem(asked)?;
    let Sought::Plan(mut plan) = seeker.seek(&loose)? else { return Ok(Vec::new()) };
    let mut is_fewest = false;
    match by_program(&loose, &ones, seeker)? {
        Some((fewer, proven)) => (plan, is_fewest) = (fewer, proven),
        None => plan = by_trying(asked, changed, seeker, plan)?,
    }
    let needed = split(asked, &plan);
    let is_fewest = is_fewest || needed.len() == 1;
    if needed.is_empty() || !changed.with_type_two(&needed).passes(asked, &plan)? {
        return Ok(Vec::new());
    }
    let found = if is_fewest { "" } else { " (found; fewer may do)" };
    let tell = |&switch: &u32| {
        let name = &asked.system.nodes[switch as usize].name;
        cause(Part::Switch, name, format!("switch {name} would have to be of type 2{found}"))
    };
    Ok(needed.iter().map(tell).collect())
}

/// Switches of type 1 that a plan sends what is for one host out of in several ways.
fn split(asked: &Problem<'_>, plan: &Plan) -> Vec<u32> {
    let mut out: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let mut switches = Vec::new();
    for route in &plan.routes {
        for &link in route.links.iter().skip(1) {
            let switch = asked.system.links[link as usize].source;
            let first = *out.entry((switch, route.destination)).or_insert(link);
            if first != link && !asked.is_type_two(switch) {
                switches.push(switch);
            }
        }
    }
    switches.sort_unstable();
    switches.dedup();
    switches
}

/// The fewest by the program of the paper, and whether they are proven to be the fewest.
fn by_program(loose: &Problem<'_>, ones: &[u32], seeker: &Seeker<'_>) -> Result<Option<(Plan, bool)>, Error> {
    // Tables of ports make the program some times larger.
    let Some(solver) = seeker.solver.filter(|_| is_small(loose) && !seeker.is_over()) else {
        return Ok(None);
    };
    let mut formulation = Formulation::new(loose);
    formulation.few_of_type_two(ones);
    let mut stop = seeker.stop.rest(seeker.nodes.get(), 0.5);
    stop.limits.nodes = stop.limits.nodes.into_iter().chain([MOST_NODES]).min();
    let found = paper::solve(&mut formulation, solver, &stop)?;
    seeker.nodes.set(seeker.nodes.get() + found.nodes);
    let plan = found.plan.filter(|plan| loose.keeps_rules(&plan.routes));
    Ok(plan.map(|plan| (plan, found.proven)))
}

/// Makes one switch after the other of type 1 again, as long as the others are enough.
fn by_trying(asked: &Problem<'_>, changed: &Changed, seeker: &Seeker<'_>, plan: Plan) -> Result<Plan, Error> {
    let mut best = plan;
    for switch in split(asked, &best) {
        let mut others = split(asked, &best);
        if seeker.is_over() || others.len() <= 1 {
            break;
        }
        if others.contains(&switch) {
            others.retain(|&other| other != switch);
            let fewer = changed.with_type_two(&others);
            if let Sought::Plan(plan) = seeker.seek(&fewer.problem(asked)?)? {
                best = plan;
            }
        }
    }
    Ok(best)
}
