//! The interface of all solvers.

use std::time::Instant;

use crate::error::Result;
use crate::problem::{Plan, Problem};

/// A solver of routing problems.
pub trait Engine {
    /// Returns the best plan found before the stop condition, with a lower bound. `best` is a known feasible plan; the engine
    /// need not return plans that cost more.
    fn solve(
        &self,
        problem: &Problem<'_>,
        best: Option<&Plan>,
        stop: &StopCondition<'_>,
    ) -> Result<SearchResult>;
}

/// The result of an engine.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// The best plan, which keeps all rules; none if no plan costs less than the known one.
    pub plan: Option<Plan>,
    /// Lower bound of the cost; infinite if the problem is infeasible.
    pub bound: f64,
    /// Whether the search completed: the returned or known plan is optimal, or the problem is infeasible.
    pub proven: bool,
    /// Nodes of the search tree.
    pub nodes: u64,
}

/// Limits of a search that has proven nothing yet.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// Nodes of the search tree.
    pub nodes: Option<u64>,
    /// Seconds.
    pub seconds: Option<f64>,
}

/// The stop condition of a search.
pub struct StopCondition<'a> {
    /// The limits.
    pub limits: Limits,
    begin: Instant,
    should_stop: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> StopCondition<'a> {
    /// Limits that start now, and a callback that requests an earlier stop.
    #[must_use]
    pub fn new(limits: Limits, should_stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { limits, begin: Instant::now(), should_stop }
    }

    /// No limits.
    #[must_use]
    pub fn endless() -> StopCondition<'static> {
        StopCondition::new(Limits::default(), &|| false)
    }

    /// Whether to stop after this many nodes.
    #[must_use]
    pub fn is_over(&self, nodes: u64) -> bool {
        self.limits.nodes.is_some_and(|most| nodes >= most)
            || self.seconds_left().is_some_and(|left| left <= 0.0)
            || (self.should_stop)()
    }

    /// Remaining seconds, if they are limited.
    #[must_use]
    pub fn seconds_left(&self) -> Option<f64> {
        self.limits.seconds.map(|all| all - self.begin.elapsed().as_secs_f64())
    }

    /// Whether a stop was requested.
    #[must_use]
    pub fn should_stop(&self) -> bool {
        (self.should_stop)()
    }

    /// The remaining limits for the next search after `nodes`, with a fraction of the remaining time.
    #[must_use]
    pub fn rest(&self, nodes: u64, part: f64) -> Self {
        let limits = Limits {
            nodes: self.limits.nodes.map(|most| most.saturating_sub(nodes)),
            seconds: self.seconds_left().map(|left| (left * part).max(0.0)),
        };
        StopCondition::new(limits, self.should_stop)
    }
}

impl SearchResult {
    /// No plan and no bound.
    #[must_use]
    pub fn nothing() -> Self {
        Self { plan: None, bound: f64::NEG_INFINITY, proven: false, nodes: 0 }
    }

    /// Proof that the problem is infeasible.
    #[must_use]
    pub fn none() -> Self {
        Self { plan: None, bound: f64::INFINITY, proven: true, nodes: 0 }
    }
}
