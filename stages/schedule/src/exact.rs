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
use self::state::{Fixed, MOST_TASKS};
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
        if problem.tasks() > MOST_TASKS {
            cx.log(format!("more than {MOST_TASKS} tasks are not searched: there is a bound only"));
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
/// Every round may look at more than the one before. Of problems with more than 128 tasks there is only a bound.
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
    if problem.tasks() > MOST_TASKS || found.is_proven() {
        return found;
    }
    let fixed = Fixed::new(problem);
    let mut rounds = Rounds { tree: Tree::new(&fixed, &stop), found: &mut found, nodes };
    let mut size = FIRST_ROUND;
    while rounds.round(size) {
        size = size.saturating_mul(GROWTH);
    }
    found.complete = found.is_proven() || !stop();
    found
}

/// Ever longer searches.
struct Rounds<'r, 'f, 'p, S> {
    tree: Tree<'f, 'p, S>,
    found: &'r mut Found<Plan>,
    nodes: u64,
}

impl<S: Fn() -> bool> Rounds<'_, '_, '_, S> {
    /// One round. Whether another makes sense.
    fn round(&mut self, size: u64) -> bool {
        // Half-way between bound and best as long as short searches settle it.
        let mut low = self.found.lower_bound;
        while low < self.found.makespan - 1 {
            let middle = low + (self.found.makespan - 1 - low) / 2;
            match self.try_limit(middle, size) {
                Some(true) => low = low.max(self.found.lower_bound),
                Some(false) => low = self.found.lower_bound,
                None => low = middle + 1,
            }
            if self.is_over() {
                return false;
            }
        }
        while !self.found.is_proven() {
            match self.try_limit(self.found.makespan - 1, size) {
                Some(_) => {}
                None => break,
            }
        }
        !self.is_over()
    }

    fn is_over(&self) -> bool {
        self.found.is_proven() || self.tree.nodes >= self.nodes || self.tree.is_stopped()
    }

    /// Whether there is a schedule that is done by a limit, if a search of a size says it.
    fn try_limit(&mut self, limit: i64, size: u64) -> Option<bool> {
        let left = self.nodes.saturating_sub(self.tree.nodes);
        let end = self.tree.search(limit, size.min(left));
        self.found.evaluations = self.tree.nodes;
        let better = self.tree.best.take();
        let is_better = better.is_some();
        if let Some((makespan, plan)) = better {
            (self.found.makespan, self.found.best) = (makespan, plan);
            let point = Point { island: 0, evaluations: self.tree.nodes, cost: makespan };
            self.found.convergence.push(point);
        }
        if end == End::Complete {
            // Nothing is better than what was found, or nothing is done by the limit.
            let proven = if is_better { self.found.makespan } else { limit + 1 };
            self.found.lower_bound = self.found.lower_bound.max(proven);
        }
        (is_better || end == End::Complete).then_some(is_better)
    }
}
