//! A smaller integer program than that of the paper: hosts are parts of their switches.
//!
//! If every host has one cable, a route consists of arcs between switches and two hops. All traffic from one process to another
//! is one commodity. For destinations that are alone on their hosts, the entries of switches of type 1 form a tree of arcs, so no
//! constraints for pairs of hosts and processes are needed. If several processes fit on a host, entries belong to hosts, as in
//! (16) and (17). The weight of the longest route is not left to the solver: one program per upper limit of the route length is
//! solved.
//!
//! Machines with other hosts are solved by the program of the paper.

mod constraints;
mod model;
mod shape;

use std::collections::BTreeMap;

use crate::engine::{Engine, SearchResult, StopCondition};
use crate::error::{Result, RouteError, fail};
use crate::network;
use crate::paper::Paper;
use crate::problem::{Plan, Problem};
use crate::solver::Solver;
use constraints::{star, switches_needed};
use model::{Input, Meaning, Model, Window, switches_of};
use shape::{Shape, Symmetry, UNREACHABLE};

/// Maximum number of constraints. Larger programs take gigabytes, and no solver finishes them.
const MOST_CONSTRAINTS: usize = 2_000_000;

/// The compact program, solved by a solver of linear programs.
#[derive(Clone, Copy)]
pub struct Compact<'a> {
    /// The solver.
    pub solver: &'a dyn Solver,
}

impl Engine for Compact<'_> {
    fn solve(
        &self,
        problem: &Problem<'_>,
        best: Option<&Plan>,
        stop: &StopCondition<'_>,
    ) -> Result<SearchResult> {
        match shape::Shape::new(problem) {
            Some(shape) if shape.size() <= MOST_CONSTRAINTS => {
                Steps::new(&shape, self.solver, best, stop).run()
            }
            None if size(problem) <= MOST_CONSTRAINTS => {
                Paper { solver: self.solver }.solve(problem, best, stop)
            }
            _ => Ok(SearchResult::nothing()),
        }
    }
}

/// Approximate number of constraints of the program of the paper.
fn size(problem: &Problem<'_>) -> usize {
    let hosts = if problem.mapped.is_some() { 1 } else { problem.hosts.len() };
    problem.flows.len().saturating_mul(problem.system.links.len()).saturating_mul(hosts)
}

/// Maximum number of successive solutions with cycles of waiting links.
const MAX_CYCLES: usize = 10_000;
/// Relative tolerance between equal costs: rounding.
const ROUNDING: f64 = 1e-7;

/// The search for the best plan of a shape.
struct Steps<'a> {
    shape: &'a Shape<'a>,
    solver: &'a dyn Solver,
    stop: &'a StopCondition<'a>,
    symmetry: Symmetry,
    /// The best plan, its cost, and the length of its longest route.
    best: Option<(Plan, f64, usize)>,
    /// Whether the best plan was found here.
    is_new: bool,
    /// Lower bound of the cost without the longest route.
    rest: f64,
    nodes: u64,
    cycles: Vec<Vec<u32>>,
}

/// What is known about all plans whose longest route is in a window.
struct Step {
    /// Lower bound of their cost.
    bound: f64,
    /// Whether their optimum is known, or all cost more than another plan.
    proven: bool,
}

impl<'a> Steps<'a> {
    fn new(
        shape: &'a Shape<'a>,
        solver: &'a dyn Solver,
        best: Option<&Plan>,
        stop: &'a StopCondition<'a>,
    ) -> Self {
        let known = |plan: &Plan| (plan.clone(), shape.problem.cost(plan), plan.longest());
        Self {
            shape,
            solver,
            stop,
            symmetry: Symmetry::new(shape),
            best: best.map(known),
            is_new: false,
            rest: rest(shape),
            nodes: 0,
            cycles: Vec::new(),
        }
    }

    /// Increases the length of the longest route until no better plan is possible.
    fn run(mut self) -> Result<SearchResult> {
        let end = self.most();
        let mut least = least_length(self.shape);
        // Combines the results of the lengths examined so far.
        let mut bound = f64::INFINITY;
        let mut proven = true;
        while least <= self.highest(end) {
            let highest = self.highest(end);
            let is_last = self.best.as_ref().is_some_and(|(_, _, longest)| *longest <= least)
                || self.weight() <= 0.0
                || least == highest
                || !proven;
            let most = if is_last { highest } else { least };
            let part = if is_last || self.best.is_some() { 1.0 } else { 0.5 };
            let window = Window { least, most: Some(most) };
            let mut step = self.step(window, part)?;
            if !step.proven && part < 1.0 && self.best.is_some() && !self.stop.is_over(self.nodes) {
                // The other half is for the second attempt, which starts from the plan found.
                let again = self.step(window, 1.0)?;
                step = Step { bound: again.bound.max(step.bound), proven: again.proven };
            }
            bound = bound.min(step.bound);
            proven &= step.proven;
            least = most + 1;
            if self.stop.is_over(self.nodes) {
                break;
            }
        }
        if least <= self.highest(end) {
            proven = false;
            bound = bound.min(self.weight() * least as f64 + self.rest);
        }
        let cost = self.best.as_ref().map_or(f64::INFINITY, |best| best.1);
        let bound = if proven { cost } else { bound.min(cost) };
        let plan = self.best.filter(|_| self.is_new).map(|best| best.0);
        Ok(SearchResult { plan, bound, proven, nodes: self.nodes })
    }

    fn problem(&self) -> &'a Problem<'a> {
        self.shape.problem
    }

    fn weight(&self) -> f64 {
        self.problem().rules.weights.longest_route
    }

    /// Upper bound of the length of a route that passes no switch twice, or the limit.
    fn most(&self) -> usize {
        let most = self.problem().rules.max_hops.map_or(usize::MAX, |most| most as usize);
        if self.shape.commodities.is_empty() { 0 } else { (self.shape.switches.len() + 1).min(most) }
    }

    /// The maximum longest route of a plan that is better than the incumbent.
    fn highest(&self, end: usize) -> usize {
        let Some((_, cost, _)) = &self.best else { return end };
        let mut highest = end;
        while highest > 0
            && self.weight() * highest as f64 + self.rest
                >= cost - self.problem().rules.tolerance(*cost, ROUNDING)
        {
            if self.weight() <= 0.0 {
                // All lengths cost the same.
                return end;
            }
            highest -= 1;
        }
        highest
    }

    /// The best plan whose longest route is in a window, within a fraction of the remaining time.
    fn step(&mut self, window: Window, part: f64) -> Result<Step> {
        let least = self.weight() * window.least as f64 + self.rest;
        let mut model = Model::new(self.shape, window);
        for place in &self.symmetry.left_out {
            if let Some(&variable) = model.at[self.symmetry.party].get(place) {
                model.program.limit(variable, 0.0, 0.0);
            }
        }
        self.cycles.iter().for_each(|cycle| model.forbid(cycle));
        let stop = self.stop.rest(self.nodes, part);
        let before = self.nodes;
        for _ in 0..MAX_CYCLES {
            self.begin(&mut model);
            let mut stop = stop.rest(self.nodes - before, 1.0);
            if part < 1.0 {
                stop.limits.nodes = stop.limits.nodes.map(|nodes| nodes.div_ceil(2));
            }
            let solution = self.solver.solve(&model.program, &stop)?;
            self.nodes += solution.nodes;
            let bound = (solution.bound + model.constant).max(least);
            let Some(values) = &solution.values else {
                return Ok(Step { bound, proven: solution.proven });
            };
            let plan = model.plan(values);
            let paths = plan.routes.iter().map(|route| route.links.as_slice());
            let cycle = network::cycle(self.problem().system.links.len(), paths);
            if self.problem().rules.deadlock_free && !cycle.is_empty() {
                model.forbid(&cycle);
                self.cycles.push(cycle);
                if !solution.proven {
                    return Ok(Step { bound, proven: false });
                }
                continue;
            }
            self.keep(plan, model.program.cost(values) + model.constant)?;
            return Ok(Step { bound, proven: solution.proven });
        }
        fail(
            format!("{MAX_CYCLES} successive solutions had cycles of waiting links"),
            "omit `deadlock_free` to get one of them",
        )
    }

    /// Starts a program from the incumbent if it is one of its solutions, otherwise from its cost as a cutoff.
    fn begin(&self, model: &mut Model<'_>) {
        let Some((plan, cost, _)) = &self.best else { return };
        let values = model.values(plan);
        let is_solution = |values: &Vec<f64>| model.program.violated(values, ROUNDING).is_none();
        model.program.start = values.filter(is_solution);
        model.program.cutoff = model.program.start.is_none().then_some(cost - model.constant);
    }

    /// Keeps a plan if it is the best. Its cost must match what the solver reports.
    fn keep(&mut self, plan: Plan, reported: f64) -> Result<()> {
        let cost = self.problem().cost(&plan);
        if !self.problem().keeps_rules(&plan.routes) || cost > reported + ROUNDING * reported.abs().max(1.0) {
            return Err(RouteError::of_solver(format!(
                "a solution of the compact program is not a plan, or its cost is {cost} instead of {reported}"
            )));
        }
        if self.best.as_ref().is_none_or(|best| cost < best.1) {
            let longest = plan.longest();
            self.best = Some((plan, cost, longest));
            self.is_new = true;
        }
        Ok(())
    }
}

/// The minimum number of arcs of a commodity.
fn least_arcs(shape: &Shape<'_>, commodity: usize) -> usize {
    let [from, to] = shape.commodities[commodity].ends().map(|party| switches_of(shape, party));
    let pairs = from.iter().flat_map(|&from| to.iter().map(move |&to| shape.distances[from][to]));
    pairs.min().unwrap_or(0)
}

/// Lower bound of the longest route.
fn least_length(shape: &Shape<'_>) -> usize {
    let arcs = (0..shape.commodities.len()).map(|commodity| least_arcs(shape, commodity));
    let Some(arcs) = arcs.max().filter(|arcs| *arcs < UNREACHABLE) else { return 0 };
    let mut least = if shape.exclusive || arcs > 0 { arcs + 2 } else { 0 };
    let fits = |party: usize, length: usize| {
        shape.parties[party].places.iter().any(|&place| star(shape, party, place, length).is_some())
    };
    let is_free = |party: &usize| shape.parties[*party].places.len() > 1;
    for party in (0..shape.parties.len()).filter(is_free) {
        while least <= shape.switches.len() + 1 && !fits(party, least) {
            least += 1;
        }
    }
    least
}

/// Lower bound of the cost without the longest route.
fn rest(shape: &Shape<'_>) -> f64 {
    let weights = shape.problem.rules.weights;
    if !shape.exclusive {
        return 0.0;
    }
    let finite = |arcs: usize| if arcs < UNREACHABLE { arcs as f64 } else { 0.0 };
    let hops: f64 = (0..shape.commodities.len())
        .map(|number| {
            (2.0 + finite(least_arcs(shape, number))) * shape.commodities[number].flows.len() as f64
        })
        .sum();
    let best = |party: usize, what: &dyn Fn(usize) -> usize| {
        shape.parties[party].places.iter().map(|&place| what(place)).min().unwrap_or_default() as f64
    };
    let stars: f64 = (0..shape.parties.len())
        .map(|party| best(party, &|place| star(shape, party, place, UNREACHABLE).unwrap_or_default()) / 2.0)
        .sum();
    let is_mixed = (0..shape.switches.len()).any(|switch| shape.is_two(switch));
    let entries: f64 = (0..shape.parties.len())
        .filter(|&party| shape.received(party).next().is_some())
        .map(|party| {
            1.0 + if is_mixed { 0.0 } else { best(party, &|place| switches_needed(shape, party, place)) }
        })
        .sum();
    weights.total_hops * hops.max(stars) + weights.table_entries * entries
}

/// A plan in the terms of a shape.
#[derive(Debug, Clone, PartialEq)]
struct Layout {
    /// The place of every party.
    places: Vec<usize>,
    /// The arcs of every commodity, in order.
    paths: Vec<Vec<usize>>,
    /// Whether the ends of each commodity are on different hosts.
    outside: Vec<bool>,
    longest: usize,
}

impl Layout {
    /// The layout of a plan; none if it does not fit this shape.
    fn new(shape: &Shape<'_>, plan: &Plan) -> Option<Self> {
        let arc_of: BTreeMap<u32, usize> =
            shape.arcs.iter().zip(0..).map(|(arc, number)| (arc.link, number)).collect();
        let host = |party: usize| match shape.problem.mapped {
            Some(_) => Some(shape.parties[party].id),
            None => plan.hosts.get(party).copied(),
        };
        let place = |party: usize| {
            let host = host(party)?;
            shape.parties[party]
                .places
                .iter()
                .copied()
                .find(|&place| shape.places[place].hosts.contains(&host))
        };
        let places: Vec<usize> = (0..shape.parties.len()).map(place).collect::<Option<_>>()?;
        let path = |commodity: &shape::Commodity| -> Option<Vec<usize>> {
            let links = &plan.routes.get(*commodity.flows.first()?)?.links;
            Some(links.iter().filter_map(|link| arc_of.get(link).copied()).collect())
        };
        let paths = shape.commodities.iter().map(path).collect::<Option<_>>()?;
        let outside = shape.commodities.iter().map(|it| host(it.source) != host(it.destination)).collect();
        Some(Self { places, paths, outside, longest: plan.longest() })
    }

    /// The meaning of a variable.
    fn value(&self, shape: &Shape<'_>, meaning: Meaning) -> f64 {
        let takes = |commodity: usize, arc: usize| self.paths[commodity].contains(&arc);
        let ends = |commodity: usize| shape.commodities[commodity].ends().map(|party| self.places[party]);
        // Destinations are parties that are alone on their hosts, otherwise places.
        let is_for = |commodity: usize, destination: usize| match shape.exclusive {
            true => shape.commodities[commodity].destination == destination,
            false => ends(commodity)[1] == destination && self.outside[commodity],
        };
        let any = |holds: &dyn Fn(usize) -> bool| (0..shape.commodities.len()).any(holds);
        let goes_on = |commodity: usize, arc: usize, next: usize| {
            self.paths[commodity].windows(2).any(|pair| pair == [arc, next])
        };
        let is_so = match meaning {
            Meaning::Longest => return self.longest as f64,
            Meaning::At { party, place } => self.places[party] == place,
            Meaning::Takes { commodity, arc } => takes(commodity, arc),
            Meaning::OnHost { commodity, place } => ends(commodity) == [place; 2] && !self.outside[commodity],
            Meaning::AtSwitch { commodity, switch } => {
                ends(commodity).map(|place| shape.places[place].switch) == [Some(switch); 2]
            }
            Meaning::Entry { arc, destination } => any(&|it| is_for(it, destination) && takes(it, arc)),
            Meaning::Arrives { destination } => any(&|it| is_for(it, destination)),
            Meaning::GoesOn { arc, next } => any(&|it| goes_on(it, arc, next)),
            Meaning::Turn { input, output, destination } => any(&|it| {
                if !is_for(it, destination) {
                    return false;
                }
                let path = &self.paths[it];
                match (input, output) {
                    (Input::Arc(arc), Some(next)) => goes_on(it, arc, next),
                    (Input::Arc(arc), None) => path.last() == Some(&arc),
                    (Input::Host(place), next) => ends(it)[0] == place && path.first().copied() == next,
                }
            }),
        };
        f64::from(u8::from(is_so))
    }
}

impl Model<'_> {
    /// The values of the variables for a plan.
    fn values(&self, plan: &Plan) -> Option<Vec<f64>> {
        let layout = Layout::new(self.shape, plan)?;
        let least = self.window.least as f64;
        let value = |&meaning: &Meaning| match meaning {
            Meaning::Longest => layout.value(self.shape, meaning).max(least),
            _ => layout.value(self.shape, meaning),
        };
        Some(self.meanings.iter().map(value).collect())
    }

    /// The plan of a solution.
    fn plan(&self, values: &[f64]) -> Plan {
        let (shape, problem) = (self.shape, self.shape.problem);
        let is_set = |variable: usize| values.get(variable).is_some_and(|&value| value > 0.5);
        let place = |party: usize| {
            let places = &shape.parties[party].places;
            let chosen =
                self.at[party].iter().find(|(_, variable)| is_set(**variable)).map(|(&place, _)| place);
            chosen.or(places.first().copied()).unwrap_or_default()
        };
        let places: Vec<usize> = (0..shape.parties.len()).map(place).collect();
        let hosts = problem.mapped.clone().unwrap_or_else(|| hosts(shape, &places));
        let mut routes: Vec<_> =
            problem.flows.iter().map(|flow| problem.route(flow, &hosts, Vec::new())).collect();
        for (number, commodity) in shape.commodities.iter().enumerate() {
            for &flow in &commodity.flows {
                let ends = [routes[flow].source, routes[flow].destination];
                routes[flow].links = self.path(number, ends, &is_set);
            }
        }
        Plan { hosts, routes }
    }

    /// The links of a commodity between two hosts.
    fn path(&self, commodity: usize, ends: [u32; 2], is_set: &dyn Fn(usize) -> bool) -> Vec<u32> {
        let ([source, destination], shape) = (ends, self.shape);
        if source == destination {
            return Vec::new();
        }
        let network = &shape.problem.network;
        let links = &shape.problem.system.links;
        let mut path: Vec<u32> = network.leaving(source).first().copied().into_iter().collect();
        let Some(first) = path.first() else { return path };
        let mut node = links[*first as usize].destination;
        while path.len() <= shape.arcs.len() + 1 {
            let arcs = &self.takes[commodity];
            let next = arcs
                .iter()
                .find(|(arc, variable)| shape.switches[shape.arcs[**arc].from] == node && is_set(**variable));
            let Some((&arc, _)) = next else { break };
            path.push(shape.arcs[arc].link);
            node = shape.switches[shape.arcs[arc].to];
        }
        let last =
            network.leaving(node).iter().find(|&&link| links[link as usize].destination == destination);
        path.extend(last);
        path
    }
}

/// Assigns a host to every party: alike hosts are used in turn if each holds one.
fn hosts(shape: &Shape<'_>, places: &[usize]) -> Vec<u32> {
    let mut taken = vec![0; shape.places.len()];
    let host = |&place: &usize| {
        let Some(own) = shape.places.get(place) else { return 0 };
        let at = if shape.exclusive { taken[place] } else { 0 };
        taken[place] += 1;
        own.hosts.get(at).or(own.hosts.first()).copied().unwrap_or_default()
    };
    places.iter().map(host).collect()
}
