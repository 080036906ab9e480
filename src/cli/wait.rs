//! Waiting for another process that has the store.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use hopmap_command::{Exit, Failure, holder};
use hopmap_durable::DurableError;
use miette::Report;

use super::interrupt::on_interrupt;
use super::values::duration;
use crate::engine::{StoreError, Writer};

/// How long to wait.
#[derive(Debug, Args)]
pub(crate) struct WaitArguments {
    /// Time to wait while another run has the store [default: end with 75 at once].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait: Option<Duration>,
}

impl WaitArguments {
    /// Whether time may pass until the store is ours.
    pub(crate) fn waits(&self) -> bool {
        self.wait.is_some()
    }

    /// The right to write to a store. Ctrl-C ends the waiting for it.
    pub(crate) fn writer(&self, root: &Path, command: &str) -> Result<Writer, Failure> {
        let cancelled = on_interrupt()?;
        let stop = || cancelled.load(Ordering::Relaxed);
        match Writer::open_within(root, &holder(command), self.wait.unwrap_or_default(), &stop) {
            Err(error @ StoreError::Durable(DurableError::Busy { .. })) if stop() => {
                Err(Failure::new(Exit::Interrupted, [Report::new(error)]))
            }
            result => Ok(result?),
        }
    }
}
