//! What answers questions.

use std::time::Instant;

use crate::error::Result;
use crate::problem::{Plan, Problem};

/// A way to answer questions.
pub trait Engine {
    /// The best plan that it finds before it has to stop, and what it knows of better ones. `best` is a plan that is known to keep
    /// all rules; nothing that costs more need be found.
    fn solve(
        &self,
        problem: &Problem<'_>,
        best: Option<&Plan>,
        stop: &StopCondition<'_>,
    ) -> Result<SearchResult>;
}

/// What an engine found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// The best plan; it keeps all rules. Nothing if there is none below what was known before.
    pub plan: Option<Plan>,
    /// No plan costs less; infinite if there is none at all.
    pub bound: f64,
    /// Whether the search came to its end: the plan, or the one that was known, is best, or there is none.
    pub proven: bool,
    /// Nodes of the search tree.
    pub nodes: u64,
}

/// When a search ends before it has proven anything.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// Nodes of the search tree.
    pub nodes: Option<u64>,
    /// Seconds.
    pub seconds: Option<f64>,
}

/// When to stop.
pub struct StopCondition<'a> {
    /// The limits.
    pub limits: Limits,
    begin: Instant,
    should_stop: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> StopCondition<'a> {
    /// Limits that count from now, and what asks to stop before.
    #[must_use]
    pub fn new(limits: Limits, should_stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { limits, begin: Instant::now(), should_stop }
    }

    /// Nothing to stop for.
    #[must_use]
    pub fn endless() -> StopCondition<'static> {
        StopCondition::new(Limits::default(), &|| false)
    }

    /// Whether to stop after so many nodes.
    #[must_use]
    pub fn is_over(&self, nodes: u64) -> bool {
        self.limits.nodes.is_some_and(|most| nodes >= most)
            || self.seconds_left().is_some_and(|left| left <= 0.0)
            || (self.should_stop)()
    }

    /// Seconds that are left, if they are limited.
    #[must_use]
    pub fn seconds_left(&self) -> Option<f64> {
        self.limits.seconds.map(|all| all - self.begin.elapsed().as_secs_f64())
    }

    /// Whether somebody asks to stop.
    #[must_use]
    pub fn should_stop(&self) -> bool {
        (self.should_stop)()
    }

    /// What is left for the next search after so many nodes; a part of the seconds that are left.
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
    /// Nothing found and nothing known.
    #[must_use]
    pub fn nothing() -> Self {
        Self { plan: None, bound: f64::NEG_INFINITY, proven: false, nodes: 0 }
    }

    /// Certainty that there is no plan.
    #[must_use]
    pub fn none() -> Self {
        Self { plan: None, bound: f64::INFINITY, proven: true, nodes: 0 }
    }
}
