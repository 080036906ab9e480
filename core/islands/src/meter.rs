//! Budgets of evaluations and time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hopmap_model::Context;

use crate::curve::Curve;

/// Maximum evaluations between two checks of the clock, the context and the progress.
const INTERVAL: u64 = 4096;
/// With a deadline there are fewer if they take longer than this: an evaluation may take milliseconds.
const SHORT: Duration = Duration::from_millis(5);
/// Minimum number of evaluations granted to a final local search.
const DESCENT_EVALUATIONS: u64 = 1 << 22;

/// Evaluations of all islands, for the progress display.
pub struct Progress {
    done: AtomicU64,
    /// Zero if only the time is limited.
    total: u64,
}

impl Progress {
    /// Progress out of `total` evaluations, if the total is known.
    #[must_use]
    pub fn new(total: Option<u64>) -> Self {
        Self { done: AtomicU64::new(0), total: total.filter(|&total| total < u64::MAX).unwrap_or(0) }
    }

    fn add(&self, evaluations: u64, cx: &Context<'_>) {
        let done = self.done.fetch_add(evaluations, Ordering::Relaxed) + evaluations;
        cx.progress(if self.total == 0 { done } else { done.min(self.total) }, self.total);
    }
}

/// Meters the budget of one island.
pub struct Meter<'a> {
    spent: u64,
    limit: u64,
    /// Evaluations at the next check.
    next: u64,
    reported: u64,
    /// Evaluations between two checks, and the time of the last one, if there is a deadline.
    interval: u64,
    looked: Option<Instant>,
    deadline: Option<Instant>,
    /// Deadline of the final local search.
    end: Option<Instant>,
    cx: Context<'a>,
    progress: &'a Progress,
    interrupted: bool,
    late: bool,
    /// Whether more evaluations were requested than were left.
    exhausted: bool,
    begin: Instant,
    /// Evaluations before the search was resumed.
    resumed_at: u64,
    /// Improvements of the island.
    pub(crate) curve: Curve,
}

impl<'a> Meter<'a> {
    /// A budget of `limit` evaluations until the deadline of the search, followed by a local search until its
    /// own deadline.
    #[must_use]
    pub fn new(
        limit: u64,
        [deadline, end]: [Option<Instant>; 2],
        cx: Context<'a>,
        progress: &'a Progress,
    ) -> Self {
        let is_timed = deadline.is_some() || end.is_some() || cx.deadline().is_some();
        Self {
            spent: 0,
            limit,
            next: 0,
            reported: 0,
            interval: if is_timed { 1 } else { INTERVAL },
            looked: is_timed.then(Instant::now),
            deadline,
            end,
            cx,
            progress,
            interrupted: false,
            late: false,
            exhausted: false,
            begin: Instant::now(),
            resumed_at: 0,
            curve: Curve::default(),
        }
    }

    /// The same budget with `spent` evaluations already used.
    #[must_use]
    pub fn after(self, spent: u64) -> Self {
        Self { spent, next: spent, reported: spent, resumed_at: spent, ..self }
    }

    /// Takes one evaluation; `false` if none is left.
    #[inline]
    pub fn take(&mut self) -> bool {
        if self.spent == self.next && !self.look_and_adapt() {
            return false;
        }
        self.spent += 1;
        true
    }

    /// Takes `evaluations` at once; takes none and returns `false` if fewer are left.
    pub fn take_all(&mut self, evaluations: u64) -> bool {
        if self.spent.saturating_add(evaluations) >= self.next && !self.look_and_adapt() {
            return false;
        }
        if evaluations > self.limit - self.spent {
            self.exhausted = true;
            return false;
        }
        self.spent += evaluations;
        self.next = self.next.max(self.spent);
        true
    }

    /// Grants the evaluations spent so far once more, but at least `DESCENT_EVALUATIONS`, until the final
    /// deadline; `false` if the context requested a stop.
    pub fn begin_descent(&mut self) -> bool {
        self.limit = self.spent.saturating_add(self.limit.max(DESCENT_EVALUATIONS));
        self.deadline = self.end;
        self.exhausted = false;
        self.next = self.spent;
        !self.interrupted
    }

    /// Leaves a share of the remaining time to the islands that follow on the same thread.
    pub(crate) fn leave_turns(&mut self, turns: usize) {
        let now = Instant::now();
        self.end = self.end.map(|end| now + share(end.saturating_duration_since(now), turns));
    }

    /// Whether no evaluation is left.
    #[must_use]
    pub fn is_out(&self) -> bool {
        self.exhausted || self.was_stopped() || self.spent >= self.limit
    }

    /// Whether a deadline or the context stopped the search.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        self.interrupted || self.late
    }

    /// Evaluations left, ignoring time limits.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.spent)
    }

    /// Expected number of remaining evaluations. For a time limit it is extrapolated from the speed so far,
    /// and zero before there is a measurement.
    #[must_use]
    pub fn outlook(&self) -> u64 {
        let Some(deadline) = self.deadline else { return self.left() };
        let now = Instant::now();
        let took = now.duration_since(self.begin).as_secs_f64();
        let left = deadline.saturating_duration_since(now).as_secs_f64();
        let speed = (self.spent - self.resumed_at) as f64 / took.max(f64::MIN_POSITIVE);
        self.left().min((speed * left) as u64)
    }

    /// Time left until the deadline, if there is one.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// When the search must end, if its time is limited.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Records a cost for the convergence curve if it is the best of the island so far. Costs at the end of an epoch are recorded
    /// anyway.
    #[inline]
    pub fn record(&mut self, cost: i64) {
        self.curve.record(self.spent, cost);
    }

    /// Evaluations spent.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Whether the context requested a stop.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.interrupted
    }

    /// Adapts the evaluations until the next check to the time that they take.
    fn adapt(&mut self) {
        let Some(looked) = &mut self.looked else { return };
        let now = Instant::now();
        self.interval = match now - *looked > SHORT {
            true => (self.interval / 2).max(1),
            false => (2 * self.interval).min(INTERVAL),
        };
        *looked = now;
    }

    #[cold]
    fn look_and_adapt(&mut self) -> bool {
        self.adapt();
        self.look()
    }

    /// Checks the clock and the context now, for long evaluations; `false` if the budget is exhausted.
    #[cold]
    pub fn look(&mut self) -> bool {
        self.progress.add(self.spent - self.reported, &self.cx);
        self.reported = self.spent;
        self.interrupted = self.interrupted || self.cx.should_stop();
        self.late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        self.next = self.limit.min(self.spent.saturating_add(self.interval));
        !(self.was_stopped() || self.spent >= self.limit)
    }
}

/// The share of the remaining time that each of `turns` turns gets.
pub(crate) fn share(left: Duration, turns: usize) -> Duration {
    left.div_f64(turns.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Once the clock was read every 4096 evaluations, however long one took.
    #[test]
    fn a_deadline_ends_slow_evaluations_soon() {
        let progress = Progress::new(None);
        let deadline = Instant::now() + Duration::from_millis(30);
        let mut meter = Meter::new(u64::MAX, [Some(deadline); 2], Context::detached(), &progress);
        while meter.take() {
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(meter.was_stopped() && meter.spent() < 64, "{}", meter.spent());
    }
}
