//! Switches that would have to have a table for every port.

use std::collections::BTreeMap;

use hopmap_model::{Cause, Error, Part};

use super::cause;
use super::changed::Changed;
use super::shortage::is_small;
use crate::paper::{self, Formulation};
use crate::problem::{Plan, Problem};
use crate::seek::{Seeker, Sought};

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
    let mut watch = seeker.watch.rest(seeker.nodes.get(), 0.5);
    watch.limits.nodes = watch.limits.nodes.into_iter().chain([MOST_NODES]).min();
    let found = paper::solve(&mut formulation, solver, &watch)?;
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
