//! Budgets of evaluations and time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hopmap_model::Context;

/// Evaluations between two looks at the clock, the context and the progress.
const INTERVAL: u64 = 4096;

/// Evaluations of all islands together.
pub(super) struct Progress {
    done: AtomicU64,
    /// Zero where only time is limited.
    total: u64,
}

impl Progress {
    pub(super) fn new(total: Option<u64>) -> Self {
        Self { done: AtomicU64::new(0), total: total.filter(|&total| total < u64::MAX).unwrap_or(0) }
    }

    fn add(&self, evaluations: u64, cx: &Context<'_>) {
        let done = self.done.fetch_add(evaluations, Ordering::Relaxed) + evaluations;
        cx.progress(if self.total == 0 { done } else { done.min(self.total) }, self.total);
    }
}

/// The budget of one island.
pub(super) struct Meter<'a> {
    spent: u64,
    limit: u64,
    /// When to look up next.
    next: u64,
    reported: u64,
    deadline: Option<Instant>,
    cx: Context<'a>,
    progress: &'a Progress,
    interrupted: bool,
}

impl<'a> Meter<'a> {
    pub(super) fn new(
        limit: u64,
        deadline: Option<Instant>,
        cx: Context<'a>,
        progress: &'a Progress,
    ) -> Self {
        Self { spent: 0, limit, next: 0, reported: 0, deadline, cx, progress, interrupted: false }
    }

    /// Takes one evaluation; `false` if there is none left.
    #[inline]
    pub(super) fn take(&mut self) -> bool {
        if self.spent == self.next && !self.look_up() {
            return false;
        }
        self.spent += 1;
        true
    }

    /// Allows more evaluations, until a new deadline.
    pub(super) fn extend(&mut self, evaluations: u64, deadline: Option<Instant>) {
        self.limit = self.spent.saturating_add(evaluations);
        self.deadline = deadline;
        self.next = self.spent;
    }

    /// Evaluations taken so far.
    pub(super) fn spent(&self) -> u64 {
        self.spent
    }

    /// Whether the context asked to stop.
    pub(super) fn interrupted(&self) -> bool {
        self.interrupted
    }

    #[cold]
    fn look_up(&mut self) -> bool {
        self.progress.add(self.spent - self.reported, &self.cx);
        self.reported = self.spent;
        self.interrupted = self.interrupted || self.cx.should_stop();
        let late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        self.next = self.limit.min(self.spent.saturating_add(INTERVAL));
        !(self.interrupted || late || self.spent >= self.limit)
    }
}
