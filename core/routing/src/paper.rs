//! The integer programs of the paper: Vyukova, Galatenko, Pavlov and Samborskii, "Mapping of parallel computations onto
//! distributed systems using `RapidIO` technology", Programmirovanie 6/2020; numbers in parentheses are its equations.
//!
//! In problem 1 the mapping is given, and all streams from one host to another are one stream. Problem 2 includes the mapping,
//! and every stream has its own route. Switches without a type have one table.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{Link, LinkState, NodeKind};

use crate::engine::{Engine, SearchResult, StopCondition};
use crate::error::{Result, fail};
use crate::linear::{Domain, LinearProgram, Sense};
use crate::network::{self, nodes_of};
use crate::params::Goal;
use crate::problem::{Plan, Problem, devices_of};
use crate::solver::Solver;

/// Maximum number of successive solutions with cycles of waiting links.
const MAX_CYCLES: usize = 10_000;

/// The program of problem 1, or of problem 2 without a mapping.
#[derive(Debug, Clone)]
pub struct Formulation<'a> {
    problem: &'a Problem<'a>,
    program: LinearProgram,
    /// The variable R[l, s] at `l * streams + s`; none for links that are down.
    on_link: Vec<Option<usize>>,
    /// The variable M[h, p] by host and process; empty in problem 1.
    on_host: BTreeMap<(u32, u32), usize>,
    /// The variable T2[l1, l2, h] by the links at which a stream arrives and leaves, and its destination.
    of_port: BTreeMap<(usize, usize, u32), usize>,
    /// Variables of pairs of consecutive links; a cycle of pairs is forbidden as a set.
    goes_on: BTreeMap<(u32, u32), usize>,
    cycles: usize,
}

impl<'a> Formulation<'a> {
    /// Formulates a problem.
    #[must_use]
    pub fn new(problem: &'a Problem<'a>) -> Self {
        let mut own = Self {
            on_link: vec![None; problem.system.links.len() * problem.flows.len()],
            problem,
            program: LinearProgram::default(),
            on_host: BTreeMap::new(),
            of_port: BTreeMap::new(),
            goes_on: BTreeMap::new(),
            cycles: 0,
        };
        own.routes();
        match problem.mapped {
            Some(_) => own.ends_given(),
            None => own.ends_looked_for(),
        }
        own.capacity();
        own.switch_load();
        own.hosts_pass_nothing_on();
        own.switches_once();
        own.tables();
        own
    }

    /// The linear program.
    #[must_use]
    pub fn program(&self) -> &LinearProgram {
        &self.program
    }

    /// The plan of a solution. Drops cycles that are disconnected from a route: (1) to (9) allow them.
    #[must_use]
    pub fn plan(&self, values: &[f64]) -> Plan {
        let hosts = self.problem.mapped.clone().unwrap_or_else(|| self.hosts(values));
        let taken = |link: usize, stream: usize| {
            self.r(link, stream)
                .is_some_and(|variable| values.get(variable).is_some_and(|&value| value > 0.5))
        };
        let mut routes = Vec::with_capacity(self.problem.flows.len());
        for (stream, flow) in self.problem.flows.iter().enumerate() {
            let (mut node, destination) = self.problem.ends(flow, &hosts);
            let mut links: Vec<u32> = Vec::new();
            while node != destination && links.len() <= self.problem.system.links.len() {
                let mut leaving = self.problem.network.leaving(node).iter();
                let Some(&link) = leaving.find(|&&link| taken(link as usize, stream)) else { break };
                links.push(link);
                node = self.problem.system.links[link as usize].destination;
            }
            routes.push(self.problem.route(flow, &hosts, links));
        }
        Plan { hosts, routes }
    }

    /// The host of every process in a solution of problem 2.
    fn hosts(&self, values: &[f64]) -> Vec<u32> {
        let mut hosts = vec![0; self.problem.graph.ranks()];
        for (&(host, process), &variable) in &self.on_host {
            if values.get(variable).is_some_and(|&value| value > 0.5) {
                hosts[process as usize] = host;
            }
        }
        hosts
    }

    /// Forbids that routes use every pair of consecutive links of this cycle.
    pub fn forbid(&mut self, cycle: &[u32]) {
        let number = self.cycles;
        self.cycles += 1;
        let mut sum = Vec::new();
        for (at, &link) in cycle.iter().enumerate() {
            let next = cycle[(at + 1) % cycle.len()];
            let known = self.goes_on.get(&(link, next)).copied();
            let variable = known.unwrap_or_else(|| self.going_on(link, next));
            sum.push((variable, 1.0));
        }
        let most = sum.len() as f64 - 1.0;
        self.program.constrain(format!("circle_{number}"), sum, Sense::AtMost, most);
    }

    /// A variable that is at least 1 if some route continues from one link to another.
    fn going_on(&mut self, link: u32, next: u32) -> usize {
        let variable = self.program.variable(format!("D_{link}_{next}"), Domain::NotNegative, 0.0);
        self.goes_on.insert((link, next), variable);
        for stream in 0..self.problem.flows.len() {
            if let (Some(first), Some(second)) =
                (self.r(link as usize, stream), self.r(next as usize, stream))
            {
                let terms = vec![(first, 1.0), (second, 1.0), (variable, -1.0)];
                self.program.constrain(format!("goes_{link}_{next}_{stream}"), terms, Sense::AtMost, 1.0);
            }
        }
        variable
    }

    /// R[l, s], the length of the longest route (10), and the limit of lengths.
    fn routes(&mut self) {
        let weights = self.problem.rules.weights;
        let longest = self.program.variable("Rmax".to_owned(), Domain::Whole, weights.longest_route);
        for stream in 0..self.problem.flows.len() {
            let mut length = vec![(longest, -1.0)];
            for (link, there) in self.problem.system.links.iter().enumerate() {
                if there.state == LinkState::Up {
                    let name = format!("R_{link}_{stream}");
                    let variable = self.program.variable(name, Domain::Binary, weights.total_hops);
                    self.on_link[link * self.problem.flows.len() + stream] = Some(variable);
                    length.push((variable, 1.0));
                }
            }
            self.program.constrain(format!("length_{stream}"), length, Sense::AtMost, 0.0);
        }
        if let Some(most) = self.problem.rules.max_hops {
            self.program.constrain("most".to_owned(), vec![(longest, 1.0)], Sense::AtMost, f64::from(most));
        }
    }

    fn r(&self, link: usize, stream: usize) -> Option<usize> {
        self.on_link[link * self.problem.flows.len() + stream]
    }

    /// R of the links of a stream that arrive at a node (coefficient 1) or leave it (coefficient −1).
    fn at_node(&self, node: u32, stream: usize) -> Vec<(usize, f64)> {
        let links = self.problem.system.links.iter().enumerate();
        let at = links.filter_map(|(index, link)| match (link.source == node, link.destination == node) {
            (true, _) => Some((self.r(index, stream)?, -1.0)),
            (_, true) => Some((self.r(index, stream)?, 1.0)),
            _ => None,
        });
        at.collect()
    }

    /// (1): a route starts at its source, ends at its destination and passes through all other nodes.
    fn ends_given(&mut self) {
        let problem = self.problem;
        for (index, flow) in problem.flows.iter().enumerate() {
            for node in 0..self.problem.system.nodes.len() as u32 {
                let end =
                    f64::from(u8::from(node == flow.destination)) - f64::from(u8::from(node == flow.source));
                let terms = self.at_node(node, index);
                self.program.constrain(format!("flow_{index}_{node}"), terms, Sense::Equal, end);
            }
        }
    }

    /// (12) to (15): every process is on one host, hosts have the performance, and routes connect the hosts of processes.
    fn ends_looked_for(&mut self) {
        let problem = self.problem;
        for (process, allowed) in (0..).zip(&problem.allowed) {
            let mut one = Vec::new();
            for &host in allowed {
                let home = problem.home.as_ref().filter(|home| home.hosts[process as usize] != host);
                let cost = home.map_or(0.0, |home| home.cost);
                let variable = self.program.variable(format!("M_{host}_{process}"), Domain::Binary, cost);
                self.on_host.insert((host, process), variable);
                one.push((variable, 1.0));
            }
            // For a process without a candidate host: the empty sum is not 1.
            self.program.constrain(format!("somewhere_{process}"), one, Sense::Equal, 1.0);
        }
        for &host in &problem.hosts {
            self.fits(host);
        }
        for (index, flow) in problem.flows.iter().enumerate() {
            for node in 0..self.problem.system.nodes.len() as u32 {
                let mut terms = self.at_node(node, index);
                for (process, factor) in [(flow.source, 1.0), (flow.destination, -1.0)] {
                    // A stream from a process to itself starts and ends at its host.
                    if flow.source != flow.destination {
                        terms.extend(self.on_host.get(&(node, process)).map(|&variable| (variable, factor)));
                    }
                }
                self.program.constrain(format!("flow_{index}_{node}"), terms, Sense::Equal, 0.0);
            }
        }
    }

    /// (13), and the same for devices.
    fn fits(&mut self, host: u32) {
        let mut kinds: BTreeMap<Option<&String>, Vec<(usize, f64)>> = BTreeMap::new();
        for (process, demand) in (0..).zip(&self.problem.graph.demands.processes) {
            let Some(&variable) = self.on_host.get(&(host, process)) else { continue };
            if demand.performance > 0.0 {
                kinds.entry(None).or_default().push((variable, demand.performance));
            }
            for (device, &count) in &demand.devices {
                kinds.entry(Some(device)).or_default().push((variable, f64::from(count)));
            }
        }
        for (number, (device, terms)) in kinds.into_iter().enumerate() {
            let there = match device {
                None => self.problem.performance[host as usize],
                Some(device) => devices_of(&self.problem.system.nodes[host as usize], device) as f64,
            };
            if there.is_finite() {
                self.program.constrain(format!("fits_{host}_{number}"), terms, Sense::AtMost, there);
            }
        }
    }

    /// (2): no link is overloaded.
    fn capacity(&mut self) {
        for (link, &bandwidth) in self.problem.capacity.iter().enumerate() {
            if bandwidth.is_finite() {
                let terms = self.carried(link);
                self.program.constrain(format!("capacity_{link}"), terms, Sense::AtMost, bandwidth);
            }
        }
    }

    /// The load of a link.
    fn carried(&self, link: usize) -> Vec<(usize, f64)> {
        let flows = self.problem.flows.iter().enumerate();
        flows.filter_map(|(stream, flow)| Some((self.r(link, stream)?, flow.bandwidth))).collect()
    }

    /// The limit on the incoming load of a switch.
    fn switch_load(&mut self) {
        let Some(most) = self.problem.rules.switch_load else { return };
        for switch in nodes_of(self.problem.system, NodeKind::Switch) {
            let terms = self.arriving(switch);
            self.program.constrain(format!("load_{switch}"), terms, Sense::AtMost, most);
        }
    }

    /// (3): a route uses at most one link of a host.
    fn hosts_pass_nothing_on(&mut self) {
        for host in nodes_of(self.problem.system, NodeKind::Host) {
            for stream in 0..self.problem.flows.len() {
                let terms =
                    self.at_node(host, stream).into_iter().map(|(variable, _)| (variable, 1.0)).collect();
                self.program.constrain(format!("host_{host}_{stream}"), terms, Sense::AtMost, 1.0);
            }
        }
    }

    /// (4) and (5): a route enters and leaves a switch at most once.
    fn switches_once(&mut self) {
        for switch in nodes_of(self.problem.system, NodeKind::Switch) {
            for stream in 0..self.problem.flows.len() {
                for (side, sign) in [("in", 1.0), ("out", -1.0)] {
                    let own = self.at_node(switch, stream).into_iter();
                    let own = own.filter(|(_, factor)| factor.total_cmp(&sign).is_eq());
                    let terms = own.map(|(variable, _)| (variable, 1.0)).collect();
                    self.program.constrain(format!("{side}_{switch}_{stream}"), terms, Sense::AtMost, 1.0);
                }
            }
        }
    }

    /// (6) to (9), (16) and (17): routes follow tables.
    fn tables(&mut self) {
        let hosts: BTreeSet<u32> = match self.problem.mapped {
            None => self.problem.hosts.iter().copied().collect(),
            Some(_) => self.problem.flows.iter().map(|flow| flow.destination).collect(),
        };
        for switch in nodes_of(self.problem.system, NodeKind::Switch) {
            let of = |pick: &dyn Fn(&Link) -> u32| -> Vec<usize> {
                let links = self.problem.system.links.iter().enumerate();
                links
                    .filter(|(_, link)| link.state == LinkState::Up && pick(link) == switch)
                    .map(|(index, _)| index)
                    .collect()
            };
            let (inputs, outputs) = (of(&|link| link.destination), of(&|link| link.source));
            let is_two = self.problem.is_type_two(switch);
            for &host in &hosts {
                match is_two {
                    false => self.one_table(switch, host, &outputs),
                    true => inputs.iter().for_each(|&input| self.table_of_port(input, host, &outputs)),
                }
            }
        }
    }

    /// (6), and (7) or (16).
    fn one_table(&mut self, switch: u32, host: u32, outputs: &[usize]) {
        let mut one = Vec::new();
        for &link in outputs {
            let weight = self.problem.rules.weights.table_entries;
            let entry = self.program.variable(format!("T1_{link}_{host}"), Domain::Binary, weight);
            one.push((entry, 1.0));
            self.follow(&[link], host, entry, &format!("follow1_{link}_{host}"));
        }
        self.program.constrain(format!("table1_{switch}_{host}"), one, Sense::AtMost, 1.0);
    }

    /// (8), and (9) or (17).
    fn table_of_port(&mut self, input: usize, host: u32, outputs: &[usize]) {
        let back = self.problem.system.links[input].source;
        let mut one = Vec::new();
        for &output in outputs {
            if self.problem.system.links[output].destination == back {
                // A route never returns on the link on which it arrived: (3) to (5).
                continue;
            }
            let name = format!("T2_{input}_{output}_{host}");
            let entry = self.program.variable(name, Domain::Binary, self.problem.rules.weights.table_entries);
            self.of_port.insert((input, output, host), entry);
            one.push((entry, 1.0));
            self.follow(&[input, output], host, entry, &format!("follow2_{input}_{output}_{host}"));
        }
        self.program.constrain(format!("table2_{input}_{host}"), one, Sense::AtMost, 1.0);
    }

    /// A stream that uses all these links towards a host needs the entry.
    fn follow(&mut self, links: &[usize], host: u32, entry: usize, name: &str) {
        let problem = self.problem;
        for (stream, flow) in problem.flows.iter().enumerate() {
            let for_host = match problem.mapped {
                Some(_) if flow.destination != host => continue,
                Some(_) => None,
                None => match self.on_host.get(&(host, flow.destination)) {
                    Some(&variable) => Some(variable),
                    None => continue,
                },
            };
            let taken: Option<Vec<usize>> = links.iter().map(|&link| self.r(link, stream)).collect();
            let Some(taken) = taken else { continue };
            let mut terms: Vec<(usize, f64)> =
                taken.into_iter().chain(for_host).map(|variable| (variable, 1.0)).collect();
            let most = terms.len() as f64 - 1.0;
            terms.push((entry, -1.0));
            self.program.constrain(format!("{name}_{stream}"), terms, Sense::AtMost, most);
        }
    }
}

/// The formulation of the paper, solved by a solver of linear programs.
#[derive(Clone, Copy)]
pub struct Paper<'a> {
    /// The solver.
    pub solver: &'a dyn Solver,
}

impl Engine for Paper<'_> {
    fn solve(
        &self,
        problem: &Problem<'_>,
        _: Option<&Plan>,
        stop: &StopCondition<'_>,
    ) -> Result<SearchResult> {
        // With a given mapping, the cost of moved processes is not part of the program.
        let moved = |hosts: &Vec<u32>| problem.cost(&Plan { hosts: hosts.clone(), routes: Vec::new() });
        let moved = problem.mapped.as_ref().map_or(0.0, moved);
        let found = solve(&mut Formulation::new(problem), self.solver, stop)?;
        Ok(SearchResult { bound: found.bound + moved, ..found })
    }
}

/// The cheapest plan of a formulation, with the cost that the program computes.
pub(crate) fn solve(
    formulation: &mut Formulation<'_>,
    solver: &dyn Solver,
    stop: &StopCondition<'_>,
) -> Result<SearchResult> {
    let problem = formulation.problem;
    let mut nodes = 0;
    for _ in 0..MAX_CYCLES {
        let solution = solver.solve(formulation.program(), &stop.rest(nodes, 1.0))?;
        nodes += solution.nodes;
        let (bound, proven) = (solution.bound, solution.proven);
        let Some(values) = &solution.values else {
            return Ok(SearchResult { plan: None, bound, proven, nodes });
        };
        let plan = formulation.plan(values);
        let paths = plan.routes.iter().map(|route| route.links.as_slice());
        let cycle = network::cycle(problem.system.links.len(), paths);
        if !problem.rules.deadlock_free || cycle.is_empty() {
            return Ok(SearchResult { plan: Some(plan), bound, proven, nodes });
        }
        formulation.forbid(&cycle);
    }
    fail(
        format!("{MAX_CYCLES} successive solutions had cycles of waiting links"),
        "omit `deadlock_free` to get one of them",
    )
}

/// Cost of the goal. Not an integer, because a solver that assumes integer costs would do so for the goal, too.
const GOAL_COST: f64 = 0.5;
/// Cost of a component with a shortage. Not an integer, for the same reason.
const PART_COST: f64 = 1.5;

/// Excess over capacity that is allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Excess {
    /// For every link.
    pub link: f64,
    /// For every host.
    pub host: f64,
}

impl Formulation<'_> {
    /// Replaces the objective by the goal: minimise the largest utilisation of a link or host, or the largest load of a switch.
    pub(crate) fn aim(&mut self, goal: Goal) {
        self.forget_costs();
        let largest = self.program.variable("largest".to_owned(), Domain::NotNegative, GOAL_COST);
        let rows = match goal {
            Goal::Objective => Vec::new(),
            Goal::BandwidthSlack => self.used_of_links(),
            Goal::PerformanceSlack => self.used_of_hosts(),
            Goal::SwitchLoad => {
                nodes_of(self.problem.system, NodeKind::Switch).map(|switch| self.arriving(switch)).collect()
            }
        };
        for (number, mut terms) in rows.into_iter().enumerate() {
            terms.push((largest, -1.0));
            self.program.constrain(format!("goal_{number}"), terms, Sense::AtMost, 0.0);
        }
    }

    /// The value of the goal at a cost of the program.
    pub(crate) fn aimed(cost: f64) -> f64 {
        cost / GOAL_COST
    }

    /// Replaces the objective: minimise the number of links and hosts with an excess, then the sum of the excess. `capacity` and
    /// `performance` are the available amounts; the problem of this formulation includes the excess.
    pub(crate) fn spare(&mut self, capacity: &[f64], performance: &[f64], most: Excess) {
        self.forget_costs();
        let mut rows = Vec::new();
        for (link, &there) in capacity.iter().enumerate() {
            if there.is_finite() && most.link > 0.0 {
                rows.push((self.carried(link), there, most.link));
            }
        }
        for &host in &self.problem.hosts {
            let there = performance[host as usize];
            if there.is_finite() && most.host > 0.0 {
                rows.push((self.needed(host), there, most.host));
            }
        }
        rows.retain(|(terms, there, _)| terms.iter().map(|(_, factor)| factor).sum::<f64>() > *there);
        // The total excess costs less than one component.
        let part = 1.0 / (1.0 + rows.len() as f64);
        for (number, (mut terms, there, most)) in rows.into_iter().enumerate() {
            let is_short = self.program.variable(format!("short_{number}"), Domain::Binary, PART_COST);
            // Relative to the maximum, so that the value is between 0 and 1 for all units.
            let excess = self.program.variable(format!("excess_{number}"), Domain::NotNegative, part);
            terms.push((excess, -most));
            self.program.constrain(format!("short_of_{number}"), terms, Sense::AtMost, there);
            let terms = vec![(excess, 1.0), (is_short, -1.0)];
            self.program.constrain(format!("if_short_{number}"), terms, Sense::AtMost, 0.0);
        }
    }

    /// Replaces the objective: minimise the number of the given switches that need a table per input port. In the problem of this
    /// formulation they have such tables.
    pub(crate) fn few_of_type_two(&mut self, switches: &[u32]) {
        self.forget_costs();
        for &switch in switches {
            let needs = self.program.variable(format!("two_{switch}"), Domain::Binary, PART_COST);
            for (host, mut terms) in self.links_out(switch) {
                let others = terms.len() as f64 - 1.0;
                terms.push((needs, -others));
                self.program.constrain(format!("one_way_{switch}_{host}"), terms, Sense::AtMost, 1.0);
            }
        }
    }

    /// By host, variables of the links on which its traffic leaves a switch, for all input ports: at least 1 if it does.
    fn links_out(&mut self, switch: u32) -> BTreeMap<u32, Vec<(usize, f64)>> {
        let links = &self.problem.system.links;
        let own = self.of_port.iter().filter(|((input, ..), _)| links[*input].destination == switch);
        let own: Vec<_> = own.map(|(&key, &entry)| (key, entry)).collect();
        let mut leaves: BTreeMap<(u32, usize), usize> = BTreeMap::new();
        for ((input, output, host), entry) in own {
            let leaving = match leaves.get(&(host, output)) {
                Some(&leaving) => leaving,
                None => self.program.variable(format!("leaves_{output}_{host}"), Domain::NotNegative, 0.0),
            };
            leaves.insert((host, output), leaving);
            let terms = vec![(entry, 1.0), (leaving, -1.0)];
            self.program.constrain(format!("leaving_{input}_{output}_{host}"), terms, Sense::AtMost, 0.0);
        }
        let mut hosts: BTreeMap<u32, Vec<(usize, f64)>> = BTreeMap::new();
        for ((host, _), leaving) in leaves {
            hosts.entry(host).or_default().push((leaving, 1.0));
        }
        hosts
    }

    fn forget_costs(&mut self) {
        self.program.variables.iter_mut().for_each(|variable| variable.cost = 0.0);
    }

    /// The utilisation of each link.
    fn used_of_links(&self) -> Vec<Vec<(usize, f64)>> {
        let used = |(link, there): (usize, &hopmap_model::Link)| {
            let bandwidth = there.bandwidth_bytes_per_s?;
            let carried = self.carried(link).into_iter();
            Some(carried.map(|(variable, factor)| (variable, factor / bandwidth)).collect())
        };
        self.problem.system.links.iter().enumerate().filter_map(used).collect()
    }

    /// The utilisation of each host.
    fn used_of_hosts(&self) -> Vec<Vec<(usize, f64)>> {
        let used = |&host: &u32| {
            let there = self.problem.system.nodes[host as usize].traits.performance?;
            let needed = self.needed(host).into_iter();
            (there > 0.0).then(|| needed.map(|(variable, factor)| (variable, factor / there)).collect())
        };
        self.problem.hosts.iter().filter_map(used).collect()
    }

    /// The demand at a host.
    fn needed(&self, host: u32) -> Vec<(usize, f64)> {
        let demands = (0..).zip(&self.problem.graph.demands.processes);
        let needed =
            demands.filter_map(|(process, demand)| Some((*self.on_host.get(&(host, process))?, demand)));
        needed.map(|(variable, demand)| (variable, demand.performance)).collect()
    }

    /// The incoming load of a switch.
    fn arriving(&self, switch: u32) -> Vec<(usize, f64)> {
        let links = self.problem.system.links.iter().enumerate();
        let arriving = links.filter(|(_, link)| link.destination == switch);
        arriving.flat_map(|(link, _)| self.carried(link)).collect()
    }
}
