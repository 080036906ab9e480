//! Sufficient remedies: links and hosts with more capacity, switches with a table per input port, and weaker rules.
//!
//! Links and hosts follow the paper's modified program: loads may exceed capacities, and the largest excess of a link and of a
//! host is minimised. Hosts come first, with the excess that they have without any streams; then links.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{Cause, LinkState, Part};

use super::facts::{Changed, Reachability, cause, short};
use crate::error::Result;
use crate::goals::{Least, Seeker, Sought, least, loads, performance, rounding, tightest};
use crate::paper::{self, Excess, Formulation};
use crate::params::Goal;
use crate::problem::{Plan, Problem, Rules, TOLERANCE};
use crate::quantity::{amount, rate};

/// Largest number of constraints in programs that minimise the number of links and hosts.
const MOST_CONSTRAINTS: usize = 8000;
/// The same for a given mapping, which is easier.
const MOST_CONSTRAINTS_MAPPED: usize = 60_000;
/// Node limit of the search for the fewest components.
const MOST_NODES: u64 = 500;
/// Maximum number of links that are tried at their original bandwidth, one after the other.
const MOST_TRIES: usize = 24;

/// An infeasible problem, and the context of the search for remedies.
pub(super) struct Inquiry<'i> {
    pub(super) asked: &'i Problem<'i>,
    pub(super) changed: &'i Changed,
    pub(super) seeker: &'i Seeker<'i>,
}

/// Missing capacity of links and hosts.
pub(super) struct Shortage {
    /// Link index and required bandwidth of each link with a shortage.
    pub(super) links: Vec<(u32, f64)>,
    /// Node id and required performance of each host with a shortage.
    hosts: Vec<(u32, f64)>,
    /// The largest shortage of a link and of a host.
    most: Excess,
    /// Whether the shortages of links, and of hosts, are proven minimal.
    is_least: [bool; 2],
    /// Whether the number of components is proven minimal.
    is_fewest: bool,
}

impl Shortage {
    /// One cause for each link and host.
    pub(super) fn causes(&self, problem: &Problem<'_>) -> Vec<Cause> {
        let found = self.is_least.map(|is_least| if is_least { "" } else { " (not proven minimal)" });
        let free = |slack: f64| match slack > 0.0 {
            true => format!(", {} of it reserved as slack", amount(slack)),
            false => String::new(),
        };
        let link = |&(link, needed): &(u32, f64)| {
            let name = problem.network.name_of(link);
            let there = problem.system.links[link as usize].bandwidth_bytes_per_s.unwrap_or_default();
            let slack = problem.rules.bandwidth_slack;
            let [load, all, more] = [needed * (1.0 - slack), there, needed - there].map(rate);
            let (free, found) = (free(slack), found[0]);
            let words = format!("link {name} needs {load}, but has {all}{free}: add {more}{found}");
            short(Part::Link, &name, there, needed, words)
        };
        let host = |&(host, needed): &(u32, f64)| {
            let node = &problem.system.nodes[host as usize];
            let (name, there) = (&node.name, node.traits.performance.unwrap_or_default());
            let slack = problem.rules.performance_slack;
            let [demand, all, more] = [needed * (1.0 - slack), there, needed - there].map(amount);
            let (free, found) = (free(slack), found[1]);
            let words = format!(
                "the processes on host {name} need a performance of {demand}, but it has {all}{free}: add {more}{found}"
            );
            short(Part::Host, name, there, needed, words)
        };
        self.hosts.iter().map(host).chain(self.links.iter().map(link)).collect()
    }

    pub(super) fn metrics(&self) -> [(&'static str, f64); 5] {
        let is_least = self.is_least == [true; 2];
        [
            ("largest_link_shortage", self.most.link),
            ("largest_host_shortage", self.most.host),
            ("parts_short", (self.links.len() + self.hosts.len()) as f64),
            ("shortage_proven", f64::from(u8::from(is_least))),
            ("fewest_proven", f64::from(u8::from(is_least && self.is_fewest))),
        ]
    }
}

impl Inquiry<'_> {
    /// Shortages of links and hosts together: hosts are minimised first, then links.
    pub(super) fn of_links_and_hosts(&self) -> Result<Option<Shortage>> {
        let asked = self.asked;
        let Some(hosts) = self.weakness()? else { return Ok(None) };
        let held = stronger(asked, hosts.value);
        let Sought::Plan(plan) = self.seeker.seek(&wider(&held, f64::INFINITY))? else { return Ok(None) };
        let measure = |plan: &Plan| largest_excess(&loads(asked, plan), &asked.capacity);
        let under = |most: f64| wider(&held, most);
        let bound = Reachability::of(&held).least_excess() * (1.0 - TOLERANCE);
        let links =
            least(self.seeker, plan, bound, rounding(asked).max(f64::MIN_POSITIVE), &measure, &under)?;
        let most = Excess { link: links.value, host: hosts.value };
        let is_least = [links.is_proven(), hosts.is_proven()];
        self.fewest(links.plan, most, is_least)
    }

    /// Shortages of hosts alone, with unchanged links.
    pub(super) fn of_hosts(&self) -> Result<Option<Shortage>> {
        let Some(hosts) = self.least_weakness(self.asked)? else { return Ok(None) };
        let is_least = [true, hosts.is_proven()];
        self.fewest(hosts.plan, Excess { link: 0.0, host: hosts.value }, is_least)
    }

    /// Lower bound of the shortage of a host without streams.
    fn weakness(&self) -> Result<Option<Least>> {
        if let Some(hosts) = &self.asked.mapped {
            let plan = Plan { hosts: hosts.clone(), routes: Vec::new() };
            let value = host_excess(self.asked, &plan);
            return Ok(Some(Least { plan, value, bound: value }));
        }
        let mut silent = self.changed.clone();
        silent.graph.demands.streams.clear();
        silent.graph.edges.clear();
        let silent = silent.problem(self.asked)?;
        match self.seeker.seek(&silent)? {
            Sought::Plan(plan) => Ok(Some(Least { plan, value: 0.0, bound: 0.0 })),
            _ => self.least_weakness(&silent),
        }
    }

    /// Lower bound of the shortage of a host.
    fn least_weakness(&self, problem: &Problem<'_>) -> Result<Option<Least>> {
        let strong = stronger(problem, f64::INFINITY);
        let Sought::Plan(plan) = self.seeker.seek(&strong)? else { return Ok(None) };
        let measure = |plan: &Plan| host_excess(problem, plan);
        let under = |most: f64| stronger(problem, most);
        least(self.seeker, plan, 0.0, f64::MIN_POSITIVE, &measure, &under).map(Some)
    }

    /// Minimises the number of links and hosts, without increasing the shortage of any.
    fn fewest(&self, mut plan: Plan, most: Excess, is_least: [bool; 2]) -> Result<Option<Shortage>> {
        let asked = self.asked;
        let room = |most: f64| most * (1.0 + TOLERANCE);
        let raised = wider(&stronger(asked, room(most.host)), room(most.link));
        let excess = Excess { link: room(most.link), host: room(most.host) };
        let spare = |formulation: &mut Formulation<'_>| {
            formulation.spare(&asked.capacity, &asked.performance, excess);
        };
        let is_held = |plan: &Plan| host_excess(asked, plan) <= room(room(most.host)) + f64::EPSILON;
        let mut is_fewest = false;
        if let Some((fewer, proven)) = self.by_program(&raised, &spare, &is_held)? {
            (plan, is_fewest) = (fewer, proven);
        } else if most.link > 0.0 {
            plan = self.links_by_trying(plan, most)?;
        }
        let used = performance(asked, &plan.hosts);
        let loads = loads(asked, &plan);
        let hosts = over(&used, &asked.performance)
            .filter(|&host| asked.system.nodes[host].traits.performance.is_some());
        let hosts: Vec<(u32, f64)> =
            hosts.map(|host| (host as u32, used[host] / (1.0 - asked.rules.performance_slack))).collect();
        let links = over(&loads, &asked.capacity);
        let links: Vec<(u32, f64)> =
            links.map(|link| (link as u32, loads[link] / (1.0 - asked.rules.bandwidth_slack))).collect();
        let count = links.len() + hosts.len();
        let cured = self.changed.with_amounts(&links, &hosts);
        let is_cure = count > 0 && cured.passes(asked, &plan)?;
        let is_fewest = is_fewest || count == 1;
        Ok(is_cure.then_some(Shortage { links, hosts, most, is_least, is_fewest }))
    }

    /// The best plan by a program of the paper with another objective, and whether it is proven; none if the program is too
    /// large.
    fn by_program(
        &self,
        problem: &Problem<'_>,
        aim: &dyn Fn(&mut Formulation<'_>),
        is_held: &dyn Fn(&Plan) -> bool,
    ) -> Result<Option<(Plan, bool)>> {
        let seeker = self.seeker;
        let Some(solver) = seeker.solver.filter(|_| is_small(problem) && !seeker.is_over()) else {
            return Ok(None);
        };
        let mut formulation = Formulation::new(problem);
        aim(&mut formulation);
        let mut stop = seeker.stop.rest(seeker.nodes.get(), 0.5);
        stop.limits.nodes = stop.limits.nodes.into_iter().chain([MOST_NODES]).min();
        let found = paper::solve(&mut formulation, solver, &stop)?;
        seeker.nodes.set(seeker.nodes.get() + found.nodes);
        let plan = found.plan.filter(|plan| problem.keeps_rules(&plan.routes) && is_held(plan));
        Ok(plan.map(|plan| (plan, found.proven)))
    }

    /// Resets links to their original bandwidth one by one, as long as the others suffice.
    fn links_by_trying(&self, plan: Plan, most: Excess) -> Result<Plan> {
        let asked = self.asked;
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
            if self.seeker.is_over() || short.len() <= 1 {
                break;
            }
            if short.iter().any(|(other, _)| *other == link) {
                let mut capacity = asked.capacity.clone();
                for (other, _) in short.iter().filter(|(other, _)| *other != link) {
                    capacity[*other] += most.link * (1.0 + TOLERANCE);
                }
                if let Sought::Plan(plan) = self.seeker.seek(&Problem { capacity, ..held.clone() })? {
                    best = plan;
                }
            }
        }
        Ok(best)
    }
}

/// Whether the program of the paper is small.
pub(super) fn is_small(problem: &Problem<'_>) -> bool {
    let (links, flows) = (problem.system.links.len(), problem.flows.len());
    match &problem.mapped {
        Some(_) => links * flows <= MOST_CONSTRAINTS_MAPPED,
        None => links * flows * problem.hosts.len() <= MOST_CONSTRAINTS,
    }
}

/// The problem with the bandwidth of every link increased.
fn wider<'a>(problem: &Problem<'a>, more: f64) -> Problem<'a> {
    let mut wide = problem.clone();
    for (capacity, link) in wide.capacity.iter_mut().zip(&problem.system.links) {
        if link.state == LinkState::Up {
            *capacity += more;
        }
    }
    wide
}

/// The problem with the performance of every host increased.
fn stronger<'a>(problem: &Problem<'a>, more: f64) -> Problem<'a> {
    let mut strong = problem.clone();
    strong.performance.iter_mut().for_each(|performance| *performance += more);
    strong.allowed = strong.holding(&strong.performance);
    strong
}

/// Components whose use exceeds their capacity by more than rounding.
fn over<'u>(used: &'u [f64], there: &'u [f64]) -> impl Iterator<Item = usize> + 'u {
    let both = used.iter().zip(there).enumerate();
    both.filter(|(_, (used, there))| **used > **there * (1.0 + TOLERANCE)).map(|(index, _)| index)
}

/// The largest excess of use over capacity.
fn largest_excess(used: &[f64], there: &[f64]) -> f64 {
    over(used, there).map(|index| used[index] - there[index]).fold(0.0, f64::max)
}

/// The largest excess of a plan at a host.
fn host_excess(problem: &Problem<'_>, plan: &Plan) -> f64 {
    largest_excess(&performance(problem, &plan.hosts), &problem.performance)
}

/// The weakest relaxation of a rule for which a solution exists.
type Weaker = Option<(Rules, Plan, Cause)>;

impl Inquiry<'_> {
    /// Every rule whose relaxation alone suffices.
    pub(super) fn rules(&self) -> Result<Vec<Cause>> {
        let attempts: [&dyn Fn() -> Result<Weaker>; 5] = [
            &|| self.deadlock_free(),
            &|| self.max_hops(),
            &|| self.goal(Goal::BandwidthSlack),
            &|| self.goal(Goal::PerformanceSlack),
            &|| self.goal(Goal::SwitchLoad),
        ];
        let mut causes = Vec::new();
        for weaken in attempts {
            if self.seeker.is_over() {
                break;
            }
            if let Some((rules, plan, cause)) = weaken()?
                && self.under(rules).passes(self.asked, &plan)?
            {
                causes.push(cause);
            }
        }
        Ok(causes)
    }

    /// The problem under other rules.
    fn under(&self, rules: Rules) -> Changed {
        Changed { rules, ..self.changed.clone() }
    }

    /// Switches with one table.
    fn of_type_one(&self) -> Vec<u32> {
        self.asked.switches().into_iter().filter(|&switch| !self.asked.is_type_two(switch)).collect()
    }

    /// Relaxes all rules together, for problems in which no single change suffices.
    pub(super) fn all(&self) -> Result<Vec<Cause>> {
        let rules = self.asked.rules;
        // The active rules and the components that they concern.
        let in_force = [
            (rules.deadlock_free, "deadlock_free", Part::Link),
            (rules.max_hops.is_some(), "max_hops", Part::Stream),
            (rules.bandwidth_slack > 0.0, "bandwidth_slack", Part::Link),
            (rules.performance_slack > 0.0, "performance_slack", Part::Host),
            (rules.switch_load.is_some(), "switch_load", Part::Switch),
        ];
        let in_force = in_force.into_iter().filter(|(is_there, ..)| *is_there);
        let left_out = |name: &str| format!("remove `{name}`");
        let mut causes: Vec<Cause> =
            in_force.map(|(_, name, part)| cause(part, name, left_out(name))).collect();
        let mut bare = self.under(Rules::from(rules.weights));
        for is_typed in [false, true] {
            if is_typed {
                bare = bare.with_type_two(&self.of_type_one());
            }
            let problem = bare.problem(self.asked)?;
            let short = match self.plan(&problem)? {
                Some(plan) => bare.passes(self.asked, &plan)?.then(Vec::new),
                None => {
                    let inquiry = Inquiry { asked: &problem, changed: &bare, seeker: self.seeker };
                    inquiry.of_links_and_hosts()?.map(|shortage| shortage.causes(&problem))
                }
            };
            if let Some(short) = short {
                if is_typed {
                    let words = "make all switches type 2".to_owned();
                    causes.push(cause(Part::Switch, "all switches", words));
                }
                causes.extend(short);
                return Ok(causes);
            }
        }
        Ok(Vec::new())
    }

    /// Any plan of a problem whose mapping is valid.
    fn plan(&self, problem: &Problem<'_>) -> Result<Option<Plan>> {
        if !problem.holds_mapping() || self.seeker.is_over() {
            return Ok(None);
        }
        Ok(match self.seeker.seek(problem)? {
            Sought::Plan(plan) => Some(plan),
            _ => None,
        })
    }

    fn deadlock_free(&self) -> Result<Weaker> {
        if !self.asked.rules.deadlock_free {
            return Ok(None);
        }
        let rules = Rules { deadlock_free: false, ..self.asked.rules };
        let words = "feasible without `deadlock_free`".to_owned();
        let found = self.plan(&self.under(rules).problem(self.asked)?)?;
        Ok(found.map(|plan| (rules, plan, cause(Part::Link, "deadlock_free", words))))
    }

    fn max_hops(&self) -> Result<Weaker> {
        let Some(most) = self.asked.rules.max_hops else { return Ok(None) };
        let mut weaker = self.changed.clone();
        weaker.rules.max_hops = None;
        let mut best: Option<(u32, Plan)> = None;
        // Decrease the limit until no solution is found.
        while let Some(plan) = self.plan(&weaker.problem(self.asked)?)? {
            let longest = plan.longest() as u32;
            best = Some((longest, plan));
            if longest <= most + 1 {
                break;
            }
            weaker.rules.max_hops = Some(longest - 1);
        }
        Ok(best.map(|(longest, plan)| {
            let words = format!("feasible with `max_hops` = {longest} instead of {most}");
            let rules = Rules { max_hops: Some(longest), ..self.asked.rules };
            (rules, plan, short(Part::Stream, "max_hops", f64::from(most), f64::from(longest), words))
        }))
    }

    /// Relaxes the rule that limits the measure of a goal.
    fn goal(&self, goal: Goal) -> Result<Weaker> {
        let rules = self.asked.rules;
        let (part, name, given) = match goal {
            Goal::BandwidthSlack => (Part::Link, "bandwidth_slack", rules.bandwidth_slack),
            Goal::PerformanceSlack => (Part::Host, "performance_slack", rules.performance_slack),
            _ => (Part::Switch, "switch_load", rules.switch_load.unwrap_or_default()),
        };
        if given <= 0.0 {
            return Ok(None);
        }
        let with = |value: Option<f64>| match goal {
            Goal::BandwidthSlack => Rules { bandwidth_slack: value.unwrap_or_default(), ..rules },
            Goal::PerformanceSlack => Rules { performance_slack: value.unwrap_or_default(), ..rules },
            _ => Rules { switch_load: value, ..rules },
        };
        let weaker = self.under(with(None));
        let problem = weaker.problem(self.asked)?;
        let Some(plan) = self.plan(&problem)? else { return Ok(None) };
        let best = tightest(&problem, goal, self.seeker, plan)?;
        let value = match goal {
            Goal::SwitchLoad => best.value,
            // Rounding does not increase the slack.
            _ => (1.0 - best.value * (1.0 + TOLERANCE / 2.0)).max(0.0),
        };
        let [now, before] = [value, given].map(amount);
        let words = format!("feasible with `{name}` = {now} instead of {before}");
        Ok(Some((with(Some(value)), best.plan, short(part, name, given, value, words))))
    }

    /// A minimal set of switches that suffices when they are of type 2.
    pub(super) fn of_type_two(&self) -> Result<Vec<Cause>> {
        let (asked, ones) = (self.asked, self.of_type_one());
        if ones.is_empty() || !asked.holds_mapping() {
            return Ok(Vec::new());
        }
        let all = self.changed.with_type_two(&ones);
        let loose = all.problem(asked)?;
        let Sought::Plan(mut plan) = self.seeker.seek(&loose)? else { return Ok(Vec::new()) };
        let mut is_fewest = false;
        // Tables per input port make the program several times larger.
        match self.by_program(&loose, &|formulation| formulation.few_of_type_two(&ones), &|_| true)? {
            Some((fewer, proven)) => (plan, is_fewest) = (fewer, proven),
            None => plan = self.switches_by_trying(plan)?,
        }
        let needed = split(asked, &plan);
        let is_fewest = is_fewest || needed.len() == 1;
        if needed.is_empty() || !self.changed.with_type_two(&needed).passes(asked, &plan)? {
            return Ok(Vec::new());
        }
        let found = if is_fewest { "" } else { " (not proven minimal)" };
        let cause_of = |&switch: &u32| {
            let name = &asked.system.nodes[switch as usize].name;
            cause(Part::Switch, name, format!("make switch {name} type 2{found}"))
        };
        Ok(needed.iter().map(cause_of).collect())
    }

    /// Resets switches to type 1 one by one, as long as the others suffice.
    fn switches_by_trying(&self, plan: Plan) -> Result<Plan> {
        let mut best = plan;
        for switch in split(self.asked, &best) {
            let mut others = split(self.asked, &best);
            if self.seeker.is_over() || others.len() <= 1 {
                break;
            }
            if others.contains(&switch) {
                others.retain(|&other| other != switch);
                let fewer = self.changed.with_type_two(&others);
                if let Sought::Plan(plan) = self.seeker.seek(&fewer.problem(self.asked)?)? {
                    best = plan;
                }
            }
        }
        Ok(best)
    }
}

/// Switches of type 1 at which a plan uses several output ports for one destination.
fn split(asked: &Problem<'_>, plan: &Plan) -> Vec<u32> {
    let mut out: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let mut switches = BTreeSet::new();
    for route in &plan.routes {
        for &link in route.links.iter().skip(1) {
            let switch = asked.system.links[link as usize].source;
            let first = *out.entry((switch, route.destination)).or_insert(link);
            if first != link && !asked.is_type_two(switch) {
                switches.insert(switch);
            }
        }
    }
    switches.into_iter().collect()
}
