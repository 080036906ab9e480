//! What the commands have in common: cores, locks, the name of a checkpoint, and what an error means to the shell.

use std::time::Duration;

use clap::Args;
use hopmap_command::{Exit, Failure, Mistake, all_cores, holder};
use hopmap_model::Context;
use miette::Report;

use crate::store::{ReadLock, Store, WriteLock};
use crate::{CheckpointError, StoreRule};

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Self {
        let exit = match error {
            CheckpointError::Busy { .. } => Exit::Locked,
            CheckpointError::Interrupted => Exit::Interrupted,
            CheckpointError::NoStore { .. }
            | CheckpointError::IsStore { .. }
            | CheckpointError::NotEmpty { .. }
            | CheckpointError::NoCheckpoint { .. }
            | CheckpointError::SeveralFiles { .. }
            | CheckpointError::NoFile { .. }
            | CheckpointError::Pinned { .. }
            | CheckpointError::NothingKept
            | CheckpointError::IsBase { .. }
            | CheckpointError::OtherRule { .. }
            | CheckpointError::ReadTwice
            | CheckpointError::Setting { .. } => Exit::Usage,
            _ => Exit::Failed,
        };
        Self::new(exit, [Report::new(error)])
    }
}

/// How many cores, and how long to wait for others.
#[derive(Debug, Args)]
pub(super) struct Work {
    /// Cores to use [default: all].
    #[arg(short, long, value_name = "CORES", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// How long to wait while another process has the store, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    wait: u32,
}

impl Work {
    pub(super) fn threads(&self) -> usize {
        self.jobs.map_or_else(all_cores, usize::from)
    }

    fn wait(&self) -> Duration {
        Duration::from_secs(self.wait.into())
    }

    /// Keeps other writers away; an interrupt ends the waiting for them.
    pub(super) fn lock(
        &self,
        store: &Store,
        command: &str,
        cx: &Context<'_>,
    ) -> Result<WriteLock, CheckpointError> {
        store.lock_unless(&|| cx.should_stop(), &holder(&format!("checkpoint {command}")), self.wait())
    }

    /// Keeps what is there from being taken away; an interrupt ends the waiting.
    pub(super) fn read_lock(&self, store: &Store, cx: &Context<'_>) -> Result<ReadLock, CheckpointError> {
        store.read_lock_unless(&|| cx.should_stop(), self.wait())
    }
}

/// What has come of work that an interrupt may have ended: what was being read or written then ends with an error of its own.
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
            let what = name.map(|name| format!(" called `{name}`")).unwrap_or_default();
            let help = "add one with `hopmap checkpoint add`";
            Mistake::new(format!("the store has no checkpoints{what}"), help).into()
        });
    }
    text.parse().map_err(|_| {
        let help = "`hopmap checkpoint list` shows the numbers";
        Mistake::new(format!("`{text}` is neither the number of a checkpoint nor `latest`"), help).into()
    })
}

/// The rule of a name.
pub(super) fn rule(text: &str) -> Result<StoreRule, String> {
    let named = StoreRule::ALL.into_iter().find(|rule| rule.name() == text);
    named.ok_or_else(|| format!("there are {}", StoreRule::ALL.map(StoreRule::name).join(", ")))
}
