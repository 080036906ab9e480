//! The time that is left of the Slurm job in which a command runs.

use std::time::{Duration, Instant};

use crate::engine::time_left_of_job;

/// A command has to be done this long before the job ends, which kills everything.
const MARGIN: Duration = Duration::from_secs(5);

/// When a command has to be done, and whether that is because its job ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) at: Instant,
    /// What there was from the begin of the command.
    pub(super) time: Duration,
    pub(super) is_of_job: bool,
}

impl End {
    /// The earlier of a deadline from now and the end of the Slurm job, as far as there is any.
    pub(super) fn new(deadline: Option<Duration>) -> Option<Self> {
        let now = Instant::now();
        let end = |time, is_of_job| Some(Self { at: now.checked_add(time)?, time, is_of_job });
        let own = deadline.and_then(|time| end(time, false));
        let job =
            std::env::var("SLURM_JOB_ID").ok().and_then(|job| time_left_of_job(job.trim().parse().ok()?));
        let job = job.and_then(|left| end(left.saturating_sub(MARGIN), true));
        own.into_iter().chain(job).min_by_key(|end| end.at)
    }

    pub(super) fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    pub(super) fn is_over(self) -> bool {
        self.left().is_zero()
    }
}
