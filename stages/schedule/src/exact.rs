//! `schedule/exact` where tasks may run anywhere: branch and bound.

mod branch;
mod room;
mod state;
#[cfg(test)]
mod tests;
mod windows;

use std::time::{Duration, Instant};

use hopmap_islands::Point;
use hopmap_model::{Context, Error};

use self::branch::{End, Tree};
use self::state::{Fixed, is_small};
use crate::bounds::lower_bound;
use crate::{Evaluator, ExactParams, Found, ParameterError, Plan, Problem, Scheduler, list};

/// States that are looked at where nobody says how many.
const DEFAULT_NODES: u64 = 20_000_000;
/// States of the first round.
const FIRST_ROUND: u64 = 2000;
/// How many times as many states the next round may see.
const GROWTH: u64 = 4;

/// Branch and bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Exact {
    params: ExactParams,
}

impl Exact {
    /// Checks the parameters.
    pub fn new(params: &ExactParams) -> Result<Self, ParameterError> {
        let wrong = |name: &'static str, value: String, help: &str| ParameterError::Value {
            name,
            value,
            help: help.to_owned(),
        };
        if params.evaluations == Some(0) {
            return Err(wrong("evaluations", "0".to_owned(), "give at least 1"));
        }
        match params.seconds {
            Some(seconds) if !(seconds.is_finite() && seconds > 0.0 && seconds < 1e9) => {
                Err(wrong("seconds", seconds.to_string(), "give more than 0"))
            }
            _ => Ok(Self { params: params.clone() }),
        }
    }
}

impl Scheduler for Exact {
    fn schedule(&self, problem: &Problem, cx: &Context<'_>) -> Result<Found<Plan>, Error> {
        let started = Instant::now();
        let tried = list::all(problem);
        let mut evaluator = Evaluator::new(problem);
        let best = tried.into_iter().map(|(_, plan)| plan).min_by_key(|plan| evaluator.makespan(plan));
        let best = best.unwrap_or_else(|| Plan::serial(problem, 0));
        if !is_small(problem) {
            cx.log("the problem is too large to be searched: there is a bound only");
        }
        let time = self.params.seconds.map(Duration::from_secs_f64);
        let default = if time.is_some() { u64::MAX } else { DEFAULT_NODES };
        let is_over = || time.is_some_and(|time| started.elapsed() >= time);
        let nodes = self.params.evaluations.unwrap_or(default);
        let mut found = search(problem, &best, nodes, || is_over() || cx.should_stop());
        found.complete = found.is_proven() || !cx.should_stop();
        Ok(found)
    }
}

/// Looks for a better plan than one that is known, or for the proof that there is none, through so many partial schedules at most or
/// until it is told to stop. [`Found::complete`] says whether it was not told to.
///
/// It begins with a short search for every makespan that it tries: half-way between the best and the bound, and just below the best.
/// Every round may look at more than the one before. Of problems with more than 128 tasks, or that many on more than 500
/// different processors, there is only a bound.
///
/// The tree is that of all orders in which tasks begin one after the other, on any processor (exhaustive list scheduling of Sinnen
/// 2014, *Reducing the solution space of optimal task scheduling*), without states that were seen before, processors that are alike,
/// tasks that are the same, and neighbours on a processor that could as well change places. What is left is narrowed, for every
/// task on every processor, by when it could begin there and what would follow; tasks that cannot be apart in time take turns.
pub fn search(problem: &Problem, incumbent: &Plan, nodes: u64, stop: impl Fn() -> bool) -> Found<Plan> {
    let makespan = Evaluator::new(problem).makespan(incumbent);
    let mut found = Found {
        best: incumbent.clone(),
        makespan,
        lower_bound: lower_bound(problem).min(makespan),
        evaluations: 0,
        convergence: vec![Point { island: 0, evaluations: 0, cost: makespan }],
        complete: true,
    };
    if !is_small(problem) || found.is_proven() {
        return found;
    }
    let backward = problem.reversed();
    let (fixed, mirrored) = (Fixed::new(problem), backward.as_ref().map(Fixed::new));
    let mut trees = vec![Tree::new(&fixed, nodes, &stop)];
    trees.extend(mirrored.as_ref().map(|mirrored| Tree::new(mirrored, nodes, &stop)));
    // What waits for little is quick to begin with: where more tasks end a program than begin one, from the beginning.
    let count = |ends: &dyn Fn(u32) -> bool| (0..problem.tasks() as u32).filter(|&task| ends(task)).count();
    let begin = count(&|task| problem.parents(task).is_empty());
    if begin > count(&|task| problem.children(task).is_empty()) {
        trees.reverse();
    }
    let mut rounds = Rounds { problem, found: &mut found, nodes, stop: &stop };
    let mut size = FIRST_ROUND;
    while trees.iter_mut().all(|tree| rounds.round(tree, size)) {
        size = size.saturating_mul(GROWTH);
    }
    found.complete = found.is_proven() || !stop();
    found
}

/// Ever longer searches.
struct Rounds<'r, 'p, S> {
    problem: &'p Problem,
    found: &'r mut Found<Plan>,
    nodes: u64,
    stop: &'r S,
}

impl<S: Fn() -> bool> Rounds<'_, '_, S> {
    /// One round. Whether another makes sense.
    fn round(&mut self, tree: &mut Tree<'_, '_, &S>, size: u64) -> bool {
        // Half-way between bound and best as long as short searches settle it.
        let mut low = self.found.lower_bound;
        while low < self.found.makespan - 1 && !self.is_over() {
            let middle = low + (self.found.makespan - 1 - low) / 2;
            low =
                if self.try_limit(tree, middle, size) { self.found.lower_bound.max(low) } else { middle + 1 };
        }
        while !self.is_over() && self.try_limit(tree, self.found.makespan - 1, size) {}
        !self.is_over()
    }

    fn is_over(&self) -> bool {
        self.found.is_proven() || self.found.evaluations >= self.nodes || (self.stop)()
    }

    /// Looks for a schedule that is done by a limit, and says whether there was one or is none.
    fn try_limit(&mut self, tree: &mut Tree<'_, '_, &S>, limit: i64, size: u64) -> bool {
        let left = self.nodes.saturating_sub(self.found.evaluations);
        let before = tree.nodes;
        let end = tree.search(limit, size.min(left));
        self.found.evaluations += tree.nodes - before;
        let better = tree.best.take();
        let is_better = better.is_some();
        if let Some((makespan, plan)) = better {
            let plan = if tree.is_of(self.problem) { plan } else { plan.reversed(tree.problem()) };
            let makespan = Evaluator::new(self.problem).makespan(&plan).min(makespan);
            (self.found.makespan, self.found.best) = (makespan, plan);
            let point = Point { island: 0, evaluations: self.found.evaluations, cost: makespan };
            self.found.convergence.push(point);
        }
        if end == End::Complete {
            // Nothing is better than what was found, or nothing is done by the limit.
            let proven = if is_better { self.found.makespan } else { limit + 1 };
            self.found.lower_bound = self.found.lower_bound.max(proven);
        }
        is_better || end == End::Complete
    }
}
