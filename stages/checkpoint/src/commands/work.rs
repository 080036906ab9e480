//! Shared by the commands: threads, locks, checkpoint numbers, exit codes of errors, formatting of bytes and
//! times.

use std::time::Duration;

use clap::Args;
use hopmap_command::{Exit, Failure, Mistake, all_cores, duration, holder};
use hopmap_model::Context;
use jiff::Timestamp;
use miette::Report;

use crate::CheckpointError;
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

/// Bytes with three significant digits, such as `1.25 MB`.
pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let decimals = match value {
        _ if unit == 0 => 0,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}", UNITS[unit])
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

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn bytes_have_three_digits() {
        let texts = [0, 999, 1000, 9_994, 9_996, 99_949, 999_499, 999_501, u64::MAX].map(bytes);
        let wanted =
            ["0 B", "999 B", "1.00 kB", "9.99 kB", "10.0 kB", "99.9 kB", "999 kB", "1.00 MB", "18.4 EB"];
        assert_eq!(texts, wanted);
    }
}
