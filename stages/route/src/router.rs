//! Routes and tables for processes that are where they are, without a solver of linear programs.
//!
//! [`quick`] finds good routes in less than a millisecond or a few; [`Router`] goes on from them to the best ones, with a proof. A bound
//! comes from prices of contested links under which every destination has its cheapest tree; what is left is decided entry by entry.

mod branch;
mod improve;
mod lower;
mod model;
mod paths;
mod quick;

use hopmap_model::Error;

use crate::engine::{Engine, Found, StopCondition};
use crate::problem::{Plan, Problem};

use branch::Branch;
use lower::{Forbidden, Prices, Question, Trees};
use model::{Graph, Model};

pub use quick::{Quick, QuickRouter};

/// Finds the best routes for a given mapping, and proves that they are or that there are none. A search without limits ends after an
/// effort of its own, the same for the same problem, if it proves nothing before.
#[derive(Debug, Clone, Copy, Default)]
pub struct Router {}

impl Engine for Router {
    fn solve(
        &self,
        problem: &Problem<'_>,
        best: Option<&Plan>,
        stop: &StopCondition<'_>,
    ) -> Result<Found, Error> {
        let Some(hosts) = &problem.mapped else { return Ok(Found::nothing()) };
        let model = Model::new(problem, hosts);
        if !model.parts.iter().all(Graph::is_joined) {
            return Ok(Found::none());
        }
        let mut branch = Branch::new(&model, stop);
        let quick = quick(problem, hosts);
        for routes in best.iter().map(|plan| &plan.routes).chain([&quick.routes]) {
            branch.offer(&routes.iter().map(|route| route.links.clone()).collect::<Vec<_>>());
        }
        branch.polish();
        Ok(by_length(&model, branch))
    }
}

/// Looks for best routes, those whose longest is shortest first.
fn by_length(model: &Model<'_>, mut branch: Branch<'_, '_>) -> Found {
    let longest = model.problem.rules.weights.longest_route;
    let base = |hops: u32| longest * f64::from(hops) + model.offset;
    let mut hops = model.least_longest;
    if branch.best.is_none() {
        let end = branch.search(model.max_hops, base(hops), true);
        if branch.best.is_none() {
            let bound = if end.is_over { f64::INFINITY } else { branch.on_grid(end.bound) };
            return Found { plan: None, bound, proven: end.is_over, nodes: branch.nodes };
        }
        branch.polish();
    }
    if longest <= 0.0 {
        hops = model.max_hops;
    }
    let Some(rest) = without_prices(model) else { return Found::none() };
    let (mut bound, mut proven) = (f64::INFINITY, true);
    while proven && hops <= model.max_hops && !branch.is_settled(base(hops) + rest) {
        let end = branch.search(hops, base(hops), false);
        bound = bound.min(end.bound);
        proven = end.is_over;
        hops += 1;
    }
    if hops <= model.max_hops {
        bound = bound.min(base(hops) + rest);
    }
    let bound = if proven { branch.cost } else { branch.on_grid(bound).min(branch.cost) };
    Found { plan: branch.best, bound, proven, nodes: branch.nodes }
}

/// What lengths and entries cost at least if nothing is contested.
fn without_prices(model: &Model<'_>) -> Option<f64> {
    let forbidden = vec![Forbidden::default(); model.groups.len()];
    let question = Question {
        max_hops: model.max_hops,
        forbidden: &forbidden,
        cutoff: f64::INFINITY,
        steps: 1,
        start: &[],
        stale: lower::Stale::All,
    };
    let mut prices = Prices::zero(model);
    let lower = lower::bound(model, &mut Trees::default(), &question, &mut prices, &mut |_, _| f64::INFINITY);
    lower.map(|lower| lower.value)
}

/// Routes for processes on given hosts, quickly. The same for the same problem and hosts. [`QuickRouter`] is faster for several mappings.
#[must_use]
pub fn quick(problem: &Problem<'_>, hosts: &[u32]) -> Quick {
    QuickRouter::new(problem).route(hosts)
}
