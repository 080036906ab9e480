//! The predicted run time of a program under a mapping.

use std::collections::BTreeMap;

use miette::Diagnostic;

use crate::stage::Artifact;

/// The predicted run time of a program under a mapping, and where the time goes.
///
/// The metric `seconds` is the run time. The metrics `critical_computation_s`, `critical_overhead_s`,
/// `critical_latency_s`, `critical_bandwidth_s` and `critical_waiting_s` divide the critical path, whose length it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prediction {
    /// What every rank does; the index is the rank.
    pub ranks: Vec<RankTimes>,
    /// Traffic of the directed links that are used; empty if the machine has no links.
    pub links: Vec<LinkUse>,
    /// What ranks do when, sorted by rank and start; empty unless requested, and bounded.
    pub intervals: Vec<Interval>,
    /// Metrics by name, such as `seconds`.
    pub metrics: BTreeMap<String, f64>,
    /// Whether messages share links. Without links every message has the bandwidth of its pair to itself.
    pub is_contended: bool,
    /// Whether costs of messages were measured or given. Otherwise only links and memory cost time.
    pub is_calibrated: bool,
    /// Whether the replay reached the end of the program.
    pub complete: bool,
}

/// The time of a rank, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RankTimes {
    /// Its slot.
    pub slot: u32,
    /// Computation.
    pub computing_s: f64,
    /// Overheads of messages, and sends that block.
    pub sending_s: f64,
    /// Waiting for messages.
    pub waiting_s: f64,
    /// When it ends.
    pub finish_s: f64,
}

/// Traffic of a directed link.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkUse {
    /// Index of the link in the machine.
    pub link: u32,
    /// Name of the node that sends.
    pub source: String,
    /// Name of the node that receives.
    pub destination: String,
    /// Bytes that cross it.
    pub bytes: f64,
    /// Share of the run time at full capacity, 0 to 1.
    pub saturated: f64,
}

/// What a rank does for some time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The rank.
    pub rank: u32,
    /// Begin, in seconds after the start of the program.
    pub start_s: f64,
    /// End, in seconds after the start of the program.
    pub finish_s: f64,
    /// The activity.
    pub activity: Activity,
    /// The other rank, if there is one.
    pub peer: Option<u32>,
}

crate::named_values! {
    /// What a rank does.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Activity {
        /// Computes.
        Computing = "computing",
        /// Sends.
        Sending = "sending",
        /// Waits for a message.
        Waiting = "waiting",
    }
}

impl Prediction {
    /// The run time in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.ranks.iter().map(|rank| rank.finish_s).fold(0.0, f64::max)
    }

    /// Checks that times are finite and not negative, that shares are at most 1, and that intervals belong to ranks
    /// and are sorted.
    pub fn check(&self) -> Result<(), PredictionError> {
        let is_time = |time: f64| time.is_finite() && time >= 0.0;
        let is_valid = |rank: &RankTimes| {
            [rank.computing_s, rank.sending_s, rank.waiting_s, rank.finish_s].into_iter().all(is_time)
        };
        if let Some(rank) = self.ranks.iter().position(|rank| !is_valid(rank)) {
            return Err(PredictionError::Times(rank));
        }
        let is_valid = |link: &LinkUse| is_time(link.bytes) && (0.0..=1.0).contains(&link.saturated);
        if let Some(link) = self.links.iter().find(|link| !is_valid(link)) {
            return Err(PredictionError::Link(link.link));
        }
        let is_valid = |interval: &Interval| {
            (interval.rank as usize) < self.ranks.len()
                && is_time(interval.start_s)
                && interval.finish_s.is_finite()
                && interval.start_s <= interval.finish_s
        };
        if let Some(interval) = self.intervals.iter().position(|interval| !is_valid(interval)) {
            return Err(PredictionError::Interval(interval));
        }
        let is_sorted = self.intervals.is_sorted_by(|a, b| (a.rank, a.start_s) <= (b.rank, b.start_s));
        if is_sorted { Ok(()) } else { Err(PredictionError::Unsorted) }
    }
}

impl Artifact for Prediction {
    const KIND: &'static str = "prediction";
}

/// An inconsistent prediction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
pub enum PredictionError {
    /// A time is negative or not finite.
    #[error("a time of rank {0} is negative or not finite")]
    #[diagnostic(code(prediction::times))]
    Times(usize),
    /// A link has an impossible use.
    #[error("link {0} has negative bytes, or a share of time that is not between 0 and 1")]
    #[diagnostic(code(prediction::link))]
    Link(u32),
    /// An interval has no rank or no length.
    #[error("interval {0} belongs to no rank, or ends before it begins")]
    #[diagnostic(code(prediction::interval))]
    Interval(usize),
    /// Intervals are not sorted.
    #[error("the intervals are not sorted by rank and start")]
    #[diagnostic(code(prediction::unsorted))]
    Unsorted,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prediction() -> Prediction {
        let rank = |finish_s| RankTimes { computing_s: finish_s, finish_s, ..RankTimes::default() };
        let interval = |rank, start_s| Interval {
            rank,
            start_s,
            finish_s: start_s + 1.0,
            activity: Activity::Computing,
            peer: None,
        };
        Prediction {
            ranks: vec![rank(2.0), rank(3.0)],
            links: vec![LinkUse { bytes: 8.0, saturated: 0.5, ..LinkUse::default() }],
            intervals: vec![interval(0, 0.0), interval(0, 1.0), interval(1, 0.0)],
            ..Prediction::default()
        }
    }

    #[test]
    fn the_last_rank_defines_the_run_time() {
        assert_eq!(prediction().check(), Ok(()));
        assert!((prediction().seconds() - 3.0).abs() < f64::EPSILON);
    }

    #[test]
    fn inconsistent_predictions_are_refused() {
        let changed = |change: fn(&mut Prediction)| {
            let mut prediction = prediction();
            change(&mut prediction);
            prediction.check()
        };
        assert_eq!(changed(|p| p.ranks[1].waiting_s = -1.0), Err(PredictionError::Times(1)));
        assert_eq!(changed(|p| p.links[0].saturated = 1.5), Err(PredictionError::Link(0)));
        assert_eq!(changed(|p| p.intervals[1].rank = 2), Err(PredictionError::Interval(1)));
        assert_eq!(changed(|p| p.intervals[1].finish_s = 0.5), Err(PredictionError::Interval(1)));
        assert_eq!(changed(|p| p.intervals.swap(0, 1)), Err(PredictionError::Unsorted));
    }
}
