//! Links and hosts that would have to have more.
//!
//! The paper's modified program: what links carry and what processes need may exceed what there is, and the largest excess of a link and the
//! largest excess of a host are as small as can be. Hosts come first: what they lack as long as nothing is sent. Then links.

use hopmap_model::{Cause, Error, LinkState, Part};

use super::facts::Reachability;
use super::remedy::{Changed, amount, short};
use crate::paper::{self, Excess, Formulation};
use crate::problem::{self, Plan, Problem, TOLERANCE};
use crate::seek::{Least, Seeker, Sought, least, loads, performance, rounding};

/// Constraints of programs that are given to the solver for the fewest links and hosts.
const MOST_CONSTRAINTS: usize = 8000;
/// The same where the mapping is given, which is easier.
const MOST_CONSTRAINTS_MAPPED: usize = 60_000;
/// Nodes of the search for the fewest.
const MOST_NODES: u64 = 500;
/// Links that are tried to be left as they are, one after the other.
const MOST_TRIES: usize = 24;

/// What links and hosts are short of.
pub(super) struct Shortage {
    /// Index of each link that is short, and the bandwidth that it would need.
    pub(super) links: Vec<(u32, f64)>,
    /// Node id of each host that is short, and the performance that it would need.
    pub(super) hosts: Vec<(u32, f64)>,
    /// The largest that a link and a host are short of.
    most: Excess,
    /// Whether less of links is known to be too little.
    is_least_of_links: bool,
    /// The same of hosts.
    is_least_of_hosts: bool,
    /// Whether fewer parts are known to be too few.
    is_fewest: bool,
}

impl Shortage {
    /// A sentence for each link and host.
    pub(super) fn causes(&self, problem: &Problem<'_>) -> Vec<Cause> {
        let found = |is_least: bool| if is_least { "" } else { " (found; less may do)" };
        let free = |slack: f64| match slack > 0.0 {
            true => format!(", of which {} stays free", amount(slack)),
            false => String::new(),
        };
        let link = |&(link, needed): &(u32, f64)| {
            let name = problem.network.name_of(link);
            let there = problem.system.links[link as usize].bandwidth_bytes_per_s.unwrap_or_default();
            let load = needed * (1.0 - problem.rules.bandwidth_slack);
            let words = format!(
                "link {name} carries {} of {}{}: {} more would do{}",
                amount(load),
                amount(there),
                free(problem.rules.bandwidth_slack),
                amount(needed - there),
                found(self.is_least_of_links),
            );
            short(Part::Link, &name, there, needed, words)
        };
        let host = |&(host, needed): &(u32, f64)| {
            let node = &problem.system.nodes[host as usize];
            let there = node.traits.performance.unwrap_or_default();
            let demand = needed * (1.0 - problem.rules.performance_slack);
            let words = format!(
                "the processes on host {} need a performance of {}, and it has {}{}: {} more would do{}",
                node.name,
                amount(demand),
                amount(there),
                free(problem.rules.performance_slack),
                amount(needed - there),
                found(self.is_least_of_hosts),
            );
            short(Part::Host, &node.name, there, needed, words)
        };
        self.hosts.iter().map(host).chain(self.links.iter().map(link)).collect()
    }

    pub(super) fn metrics(&self) -> [(&'static str, f64); 5] {
        let is_least = self.is_least_of_links && self.is_least_of_hosts;
        [
            ("largest_link_shortage", self.most.link),
            ("largest_host_shortage", self.most.host),
            ("parts_short", (self.links.len() + self.hosts.len()) as f64),
            ("shortage_proven", f64::from(u8::from(is_least))),
            ("fewest_proven", f64::from(u8::from(is_least && self.is_fewest))),
        ]
    }
}

/// What links and hosts are short of together: hosts of as little as can be, then links.
pub(super) fn of_links_and_hosts(
    asked: &Problem<'_>,
    changed: &Changed,
    seeker: &Seeker<'_>,
) -> Result<Option<Shortage>, Error> {
    let Some(hosts) = weakness(asked, changed, seeker)? else { return Ok(None) };
    let held = stronger(asked, hosts.value);
    let Sought::Plan(plan) = seeker.seek(&wider(&held, f64::INFINITY))? else { return Ok(None) };
    let measure = |plan: &Plan| link_excess(asked, plan);
    let under = |most: f64| wider(&held, most);
    let bound = Reachability::of(&held).least_excess() * (1.0 - TOLERANCE);
    let links = least(seeker, plan, bound, rounding(asked).max(f64::MIN_POSITIVE), &measure, &under)?;
    let most = Excess { link: links.value, host: hosts.value };
    let is_least = [links.is_proven(), hosts.is_proven()];
    fewest(asked, changed, seeker, links.plan, most, is_least)
}

/// What hosts alone are short of, with links as they are.
pub(super) fn of_hosts(
    asked: &Problem<'_>,
    changed: &Changed,
    seeker: &Seeker<'_>,
) -> Result<Option<Shortage>, Error> {
    let Some(hosts) = least_weakness(asked, seeker)? else { return Ok(None) };
    let most = Excess { link: 0.0, host: hosts.value };
    let is_least = [true, hosts.is_proven()];
    fewest(asked, changed, seeker, hosts.plan, most, is_least)
}

/// What a host is short of at least, if nothing is sent.
fn weakness(asked: &Problem<'_>, changed: &Changed, seeker: &Seeker<'_>) -> Result<Option<Least>, Error> {
    if let Some(hosts) = &asked.mapped {
        let plan = Plan { hosts: hosts.clone(), routes: Vec::new() };
        let value = host_excess(asked, &plan);
        return Ok(Some(Least { plan, value, bound: value }));
    }
    let mut silent = changed.clone();
    silent.graph.demands.streams.clear();
    silent.graph.edges.clear();
    let silent = silent.problem(asked)?;
    match seeker.seek(&silent)? {
        Sought::Plan(plan) => Ok(Some(Least { plan, value: 0.0, bound: 0.0 })),
        _ => least_weakness(&silent, seeker),
    }
}

/// What a host is short of at least.
fn least_weakness(problem: &Problem<'_>, seeker: &Seeker<'_>) -> Result<Option<Least>, Error> {
    let Sought::Plan(plan) = seeker.seek(&stronger(problem, f64::INFINITY))? else { return Ok(None) };
    let measure = |plan: &Plan| host_excess(problem, plan);
    let under = |most: f64| stronger(problem, most);
    least(seeker, plan, 0.0, f64::MIN_POSITIVE, &measure, &under).map(Some)
}

/// As few links and hosts as can be found, none of which is short of more.
fn fewest(
    asked: &Problem<'_>,
    changed: &Changed,
    seeker: &Seeker<'_>,
    plan: Plan,
    most: Excess,
    [is_least_of_links, is_least_of_hosts]: [bool; 2],
) -> Result<Option<Shortage>, Error> {
    let (mut plan, mut is_fewest) = (plan, false);
    if let Some((fewer, proven)) = by_program(asked, seeker, most)? {
        (plan, is_fewest) = (fewer, proven);
    } else if most.link > 0.0 {
        plan = by_trying(asked, seeker, plan, most)?;
    }
    let used = performance(asked, &plan.hosts);
    let mut hosts = Vec::new();
    for (host, node) in (0..).zip(&asked.system.nodes) {
        let (used, there) = (used[host as usize], asked.performance[host as usize]);
        if node.traits.performance.is_some() && used > there * (1.0 + TOLERANCE) {
            hosts.push((host, used / (1.0 - asked.rules.performance_slack)));
        }
    }
    let loads = loads(asked, &plan);
    let over = (0..).zip(loads.iter().zip(&asked.capacity));
    let over = over.filter(|(_, (load, there))| **load > *there * (1.0 + TOLERANCE));
    let links: Vec<(u32, f64)> =
        over.map(|(link, (load, _))| (link, load / (1.0 - asked.rules.bandwidth_slack))).collect();
    let count = links.len() + hosts.len();
    let cured = changed.with_amounts(&links, &hosts);
    let is_cure = count > 0 && cured.passes(asked, &plan)?;
    let is_fewest = is_fewest || count == 1;
    let shortage = Shortage { links, hosts, most, is_least_of_links, is_least_of_hosts, is_fewest };
    Ok(is_cure.then_some(shortage))
}

/// The fewest by the program of the paper, and whether they are proven to be the fewest.
fn by_program(asked: &Problem<'_>, seeker: &Seeker<'_>, most: Excess) -> Result<Option<(Plan, bool)>, Error> {
    let Some(solver) = seeker.solver.filter(|_| is_small(asked) && !seeker.is_over()) else {
        return Ok(None);
    };
    let room = |most: f64| most * (1.0 + TOLERANCE);
    let raised = wider(&stronger(asked, room(most.host)), room(most.link));
    let mut formulation = Formulation::new(&raised);
    let excess = Excess { link: room(most.link), host: room(most.host) };
    formulation.spare(&asked.capacity, &asked.performance, excess);
    let mut stop = seeker.stop.rest(seeker.nodes.get(), 0.5);
    stop.limits.nodes = stop.limits.nodes.into_iter().chain([MOST_NODES]).min();
    let found = paper::solve(&mut formulation, solver, &stop)?;
    seeker.nodes.set(seeker.nodes.get() + found.nodes);
    let plan = found.plan.filter(|plan| {
        raised.keeps_rules(&plan.routes) && host_excess(asked, plan) <= room(room(most.host)) + f64::EPSILON
    });
    Ok(plan.map(|plan| (plan, found.proven)))
}

/// Whether the program of the paper is small.
pub(super) fn is_small(problem: &Problem<'_>) -> bool {
    let (links, flows) = (problem.system.links.len(), problem.flows.len());
    match &problem.mapped {
        Some(_) => links * flows <= MOST_CONSTRAINTS_MAPPED,
        None => links * flows * problem.hosts.len() <= MOST_CONSTRAINTS,
    }
}

/// Leaves one link after the other as it is, as long as the others are enough.
fn by_trying(asked: &Problem<'_>, seeker: &Seeker<'_>, plan: Plan, most: Excess) -> Result<Plan, Error> {
    let held = stronger(asked, most.host * (1.0 + TOLERANCE));
    let over = |plan: &Plan| -> Vec<(usize, f64)> {
        let loads = loads(asked, plan).into_iter().zip(&asked.capacity);
        let excess = loads.map(|(load, there)| load - there * (1.0 + TOLERANCE)).enumerate();
        excess.filter(|(_, excess)| *excess > 0.0).collect()
    };
    let mut best = plan;
    let mut tries = over(&best);
    tries.sort_by(|first, second| first.1.total_cmp(&second.1));
    for (link, _) in tries.into_iter().take(MOST_TRIES) {
        let short = over(&best);
        if seeker.is_over() || short.len() <= 1 {
            break;
        }
        if short.iter().any(|(other, _)| *other == link) {
            let mut capacity = asked.capacity.clone();
            for (other, _) in short.iter().filter(|(other, _)| *other != link) {
                capacity[*other] += most.link * (1.0 + TOLERANCE);
            }
            if let Sought::Plan(plan) = seeker.seek(&Problem { capacity, ..held.clone() })? {
                best = plan;
            }
        }
    }
    Ok(best)
}

/// The problem with so much more of every link.
fn wider<'a>(problem: &Problem<'a>, more: f64) -> Problem<'a> {
    let mut wide = problem.clone();
    for (capacity, link) in wide.capacity.iter_mut().zip(&problem.system.links) {
        if link.state == LinkState::Up {
            *capacity += more;
        }
    }
    wide
}

/// The problem with so much more of every host.
fn stronger<'a>(problem: &Problem<'a>, more: f64) -> Problem<'a> {
    let mut strong = problem.clone();
    strong.performance.iter_mut().for_each(|performance| *performance += more);
    strong.allowed = problem::allowed(problem.graph, problem.system, &problem.hosts, &strong.performance);
    strong
}

/// By how much a plan exceeds the link that it exceeds most.
fn link_excess(problem: &Problem<'_>, plan: &Plan) -> f64 {
    let loads = loads(problem, plan);
    let over =
        loads.iter().zip(&problem.capacity).filter(|(load, there)| **load > *there * (1.0 + TOLERANCE));
    over.map(|(load, there)| load - there).fold(0.0, f64::max)
}

/// The same of hosts.
fn host_excess(problem: &Problem<'_>, plan: &Plan) -> f64 {
    let used = performance(problem, &plan.hosts);
    let over =
        used.iter().zip(&problem.performance).filter(|(used, there)| **used > *there * (1.0 + TOLERANCE));
    over.map(|(used, there)| used - there).fold(0.0, f64::max)
}
