//! Shared by the commands: threads, locks, checkpoint numbers, exit codes of errors, formatting of
//! times.

use std::time::Duration;

use clap::Args;
use hopmap_command::{Exit, Failure, Mistake, all_cores, duration, holder};
use hopmap_model::Context;
use jiff::Timestamp;
use miette::Report;

use crate::error::CheckpointError;
use crate::store::{ReadLock, Store, WriteLock};
use crate::tree::Time;

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Self {
        let exit = match error {
            CheckpointError::Busy { .. } => Exit::Locked,
            CheckpointError::Interrupted => Exit::Interrupted,
            CheckpointError::NoStore(..)
            | CheckpointError::IsStore(..)
            | CheckpointError::NotEmpty(..)
            | CheckpointError::NoCheckpoint { .. }
            | CheckpointError::SeveralFiles { .. }
            | CheckpointError::NoFile { .. }
            | CheckpointError::Pinned(..)
            | CheckpointError::NothingKept
            | CheckpointError::IsBase(..)
            | CheckpointError::OtherRule { .. }
            | CheckpointError::ReadTwice
            | CheckpointError::Setting { .. } => Exit::Usage,
            _ => Exit::Failed,
        };
        Self::new(exit, [Report::new(error)])
    }
}

/// Number of threads, and time to wait for locks.
#[derive(Debug, Args)]
pub(super) struct Work {
    /// Number of threads [default: all cores].
    #[arg(short, long, value_name = "CORES", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Wait up to TIME, such as 10m, while another process has locked the store.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    wait: Duration,
}

impl Work {
    pub(super) fn threads(&self) -> usize {
        self.jobs.map_or_else(all_cores, usize::from)
    }

    /// Excludes other writers; an interrupt ends the wait.
    pub(super) fn lock(
        &self,
        store: &Store,
        command: &str,
        cx: &Context<'_>,
    ) -> Result<WriteLock, CheckpointError> {
        store.lock_unless(&|| cx.should_stop(), &holder(&format!("checkpoint {command}")), self.wait)
    }

    /// Prevents the removal of data; an interrupt ends the wait.
    pub(super) fn read_lock(&self, store: &Store, cx: &Context<'_>) -> Result<ReadLock, CheckpointError> {
        store.read_lock_unless(&|| cx.should_stop(), self.wait)
    }
}

/// The error of work that was interrupted is [`CheckpointError::Interrupted`], not the I/O error that
/// resulted.
pub(super) fn unless_interrupted<T>(
    done: Result<T, CheckpointError>,
    cx: &Context<'_>,
) -> Result<T, CheckpointError> {
    done.map_err(|error| if cx.should_stop() { CheckpointError::Interrupted } else { error })
}

/// The number of a checkpoint: `latest`, or digits.
pub(super) fn number(store: &Store, text: &str, name: Option<&str>) -> Result<u32, Failure> {
    if text == "latest" {
        let latest = match name {
            Some(name) => store.latest_named(name)?,
            None => store.latest()?,
        };
        return latest.ok_or_else(|| {
            let what = name.map(|name| format!(" named `{name}`")).unwrap_or_default();
            let help = "add one with `hopmap checkpoint add`";
            Mistake::new(format!("the store has no checkpoints{what}"), help).into()
        });
    }
    text.parse().map_err(|_| {
        let help = "`hopmap checkpoint list` shows the numbers";
        Mistake::new(format!("`{text}` is neither the number of a checkpoint nor `latest`"), help).into()
    })
}

/// A compression ratio, such as `12.3 ×`.
pub(super) fn times(size: u64, stored: u64) -> String {
    match stored {
        0 => "–".to_owned(),
        _ => format!("{:.1} ×", size as f64 / stored as f64),
    }
}

/// A time in UTC, in seconds.
pub(super) fn time(time: Time) -> String {
    match Timestamp::from_second(time.seconds) {
        Ok(time) => time.to_string(),
        Err(_) => "–".to_owned(),
    }
}

/// The current time.
pub(super) fn now() -> Time {
    let now = Timestamp::now();
    let (seconds, nanoseconds) = (now.as_second(), now.subsec_nanosecond());
    Time { seconds, nanoseconds: nanoseconds.unsigned_abs() }
}
