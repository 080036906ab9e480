//! One program after the other: with longest routes of each length from the least that is possible.

use hopmap_model::Error;

use super::cuts::{star, switches_needed};
use super::model::{Model, Window, switches_of};
use super::shape::{NO_WAY, Shape};
use super::symmetry::Symmetry;
use crate::engine::{Found, Watch};
use crate::problem::{Plan, Problem};
use crate::solver::Solver;
use crate::{CheckError, SolverError, deadlock};

/// Solutions whose links wait for each other in a circle, one after the other, before giving up.
const MOST_CIRCLES: usize = 10_000;
/// Part of a cost by which costs that are the same may differ: rounding.
const ROUNDING: f64 = 1e-7;

/// The search for the best plan of a shape.
pub(super) struct Steps<'a> {
    shape: &'a Shape<'a>,
    solver: &'a dyn Solver,
    watch: &'a Watch<'a>,
    symmetry: Symmetry,
    /// The best plan, what it costs, and its longest route.
    best: Option<(Plan, f64, usize)>,
    /// Whether the best plan was found here.
    is_new: bool,
    /// What a plan costs at least beside its longest route.
    rest: f64,
    nodes: u64,
    circles: Vec<Vec<u32>>,
}

/// What is known of all plans with longest routes in a window.
struct Step {
    /// None costs less.
    bound: f64,
    /// Whether the best one is known, or that all cost more than another plan.
    proven: bool,
}

impl<'a> Steps<'a> {
    pub(super) fn new(
        shape: &'a Shape<'a>,
        solver: &'a dyn Solver,
        best: Option<&Plan>,
        watch: &'a Watch<'a>,
    ) -> Self {
        let known = |plan: &Plan| (plan.clone(), shape.problem.cost(plan), longest(plan));
        Self {
            shape,
            solver,
            watch,
            symmetry: Symmetry::new(shape),
            best: best.map(known),
            is_new: false,
            rest: rest(shape),
            nodes: 0,
            circles: Vec::new(),
        }
    }

    /// Raises the length of the longest route until nothing better can come.
    pub(super) fn run(mut self) -> Result<Found, Error> {
        let end = self.most();
        let mut least = least_length(self.shape);
        // What is known of the lengths that were looked at.
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
            if !step.proven && part < 1.0 && self.best.is_some() && !self.watch.is_over(self.nodes) {
                // The other half is for the same, with what was found to begin with.
                let again = self.step(window, 1.0)?;
                step = Step { bound: again.bound.max(step.bound), proven: again.proven };
            }
            bound = bound.min(step.bound);
            proven &= step.proven;
            least = most + 1;
            if self.watch.is_over(self.nodes) {
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
        Ok(Found { plan, bound, proven, nodes: self.nodes })
    }

    fn problem(&self) -> &'a Problem<'a> {
        self.shape.problem
    }

    fn weight(&self) -> f64 {
        self.problem().rules.weights.longest
    }

    /// No route that passes no switch twice is longer, or may be.
    fn most(&self) -> usize {
        let most = self.problem().rules.most_hops.map_or(usize::MAX, |most| most as usize);
        if self.shape.commodities.is_empty() { 0 } else { (self.shape.switches.len() + 1).min(most) }
    }

    /// The longest route that a plan can have that is better than the best.
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

    /// The best plan with longest routes in a window; a part of the time that is left is for it.
    fn step(&mut self, window: Window, part: f64) -> Result<Step, Error> {
        let least = self.weight() * window.least as f64 + self.rest;
        let mut model = Model::new(self.shape, window);
        self.symmetry.restrict(&mut model);
        self.circles.iter().for_each(|circle| model.forbid(circle));
        let watch = self.watch.rest(self.nodes, part);
        let before = self.nodes;
        for _ in 0..MOST_CIRCLES {
            self.begin(&mut model);
            let mut watch = watch.rest(self.nodes - before, 1.0);
            if part < 1.0 {
                watch.limits.nodes = watch.limits.nodes.map(|nodes| nodes.div_ceil(2));
            }
            let solution = self.solver.solve(&model.program, &watch)?;
            self.nodes += solution.nodes;
            let bound = (solution.bound + model.constant).max(least);
            let Some(values) = &solution.values else {
                return Ok(Step { bound, proven: solution.proven });
            };
            let plan = model.plan(values);
            let ways = plan.routes.iter().map(|route| route.links.as_slice());
            let circle = deadlock::cycle(self.problem().system.links.len(), ways);
            if self.problem().rules.deadlock_free && !circle.is_empty() {
                model.forbid(&circle);
                self.circles.push(circle);
                if !solution.proven {
                    return Ok(Step { bound, proven: false });
                }
                continue;
            }
            self.keep(plan, model.program.cost(values) + model.constant)?;
            return Ok(Step { bound, proven: solution.proven });
        }
        Err(CheckError::new(
            format!("after {MOST_CIRCLES} solutions links still wait for each other in a circle"),
            "leave `deadlock_free` out to see one of them",
        )
        .into())
    }

    /// Gives a program the best plan to begin with if it is one of its solutions, else what that costs.
    fn begin(&self, model: &mut Model<'_>) {
        let Some((plan, cost, _)) = &self.best else { return };
        let values = model.values(plan);
        let is_solution = |values: &Vec<f64>| model.program.violated(values, ROUNDING).is_none();
        model.program.start = values.filter(is_solution);
        model.program.cutoff = model.program.start.is_none().then_some(cost - model.constant);
    }

    /// Keeps a plan if it is the best. It has to be what the solver says it is.
    fn keep(&mut self, plan: Plan, said: f64) -> Result<(), SolverError> {
        let cost = self.problem().cost(&plan);
        if !self.problem().keeps_rules(&plan.routes) || cost > said + ROUNDING * said.abs().max(1.0) {
            return Err(SolverError::Failed {
                problem: format!(
                    "a solution of the compact program is no plan, or one that costs {cost} and not {said}"
                ),
            });
        }
        if self.best.as_ref().is_none_or(|best| cost < best.1) {
            let longest = longest(&plan);
            self.best = Some((plan, cost, longest));
            self.is_new = true;
        }
        Ok(())
    }
}

fn longest(plan: &Plan) -> usize {
    plan.routes.iter().map(|route| route.links.len()).max().unwrap_or_default()
}

/// The least arcs of a commodity.
fn least_arcs(shape: &Shape<'_>, commodity: usize) -> usize {
    let own = &shape.commodities[commodity];
    let [from, to] = [own.source, own.destination].map(|party| switches_of(shape, party));
    let pairs = from.iter().flat_map(|&from| to.iter().map(move |&to| shape.distances[from][to]));
    pairs.min().unwrap_or(0)
}

/// No longest route is shorter.
fn least_length(shape: &Shape<'_>) -> usize {
    let arcs = (0..shape.commodities.len()).map(|commodity| least_arcs(shape, commodity));
    let Some(arcs) = arcs.max().filter(|arcs| *arcs < NO_WAY) else { return 0 };
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

/// What a plan costs at least beside its longest route.
fn rest(shape: &Shape<'_>) -> f64 {
    let weights = shape.problem.rules.weights;
    if !shape.exclusive {
        return 0.0;
    }
    let finite = |arcs: usize| if arcs < NO_WAY { arcs as f64 } else { 0.0 };
    let hops: f64 = (0..shape.commodities.len())
        .map(|number| {
            (2.0 + finite(least_arcs(shape, number))) * shape.commodities[number].flows.len() as f64
        })
        .sum();
    let best = |party: usize, what: &dyn Fn(usize) -> usize| {
        shape.parties[party].places.iter().map(|&place| what(place)).min().unwrap_or_default() as f64
    };
    let stars: f64 = (0..shape.parties.len())
        .map(|party| best(party, &|place| star(shape, party, place, NO_WAY).unwrap_or_default()) / 2.0)
        .sum();
    let is_mixed = (0..shape.switches.len()).any(|switch| shape.is_two(switch));
    let entries: f64 = (0..shape.parties.len())
        .filter(|&party| shape.received(party).next().is_some())
        .map(|party| {
            1.0 + if is_mixed { 0.0 } else { best(party, &|place| switches_needed(shape, party, place)) }
        })
        .sum();
    weights.hops * hops.max(stars) + weights.entries * entries
}
