//! Cells as jobs of a batch system: submitted, watched all together, tried again, taken over.
//!
//! [`BatchSystem`] is all that is known of a batch system; `slurm` is the only one there is.
//!
//! # How jobs run
//!
//! A stage that cannot be several processes, or has `sbatch` without a command behind it, is run by `hopmap worker FOLDER` (hidden), which
//! reads the same `task.json`, is told to stop in the same way and answers with the same files. `src/engine/batch` makes jobs of cells:
//!
//! | file | subject |
//! |---|---|
//! | `mod.rs` | what is wanted of a batch system: submit, ask, find by name, cancel |
//! | `slurm.rs` | the only file that knows `sbatch`, `squeue` and `scancel`, and how their options and complaints look |
//! | `manager.rs` | one thread for all jobs of a run: submits, asks with one call, stops, tries again, takes results over |
//! | `job.rs` | one cell as a job: what is written for it, what it prints, how it stands |
//! | `record.rs` | `jobs/KEY/job.json`: name and number of the job, attempt, log. Written before `sbatch` with the name alone, so that a kill between the two loses nothing. And the script: it runs the stage behind the shell, turns SIGTERM into a `stop`, and leaves the exit status in `ended` |
//! | `failure.rs` | what is said of a job that gave no result |
//!
//! The task of attempt N is in `jobs/KEY/N`, in the store but not in `work/`, so that it outlives us. A result is seen by its `done`, which
//! is there before Slurm has anything to say; the state of a job counts only where there is none. Before another attempt the folder of
//! the last one is removed, so that a process which goes on, though its node is lost, finds its task gone and stops. Time limits are known from what
//! `squeue` says is left, not from clocks. Whoever runs a cell in any other way first ends the job that is on record for its key.

mod failure;
mod job;
mod manager;
mod record;
mod slurm;

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use miette::Diagnostic;

pub(crate) use job::Order;
pub(crate) use manager::serve;
pub(crate) use record::{cancel_unwanted, runs_with_jobs, withdraw};
pub(crate) use slurm::Slurm;

use crate::pipeline::Launcher;

/// What we want of a batch system.
pub(crate) trait BatchSystem: Sync {
    /// The command that a launcher starts within the job.
    fn command<'a>(&self, launcher: &'a Launcher) -> &'a [String];

    /// Queues a script and gives the number of the job.
    fn submit(&self, job: &NewJob<'_>) -> Result<u64, BatchError>;

    /// How jobs stand, all asked for with one call. What the system has forgotten is missing in the answer.
    fn ask(&self, jobs: &[u64]) -> Result<HashMap<u64, Status>, BatchError>;

    /// The number of a job with this name.
    fn find(&self, name: &str) -> Result<Option<u64>, BatchError>;

    /// Ends a job of this number and name; one that has ended already is none of its concern.
    fn cancel(&self, job: u64, name: &str) -> Result<(), BatchError>;
}

/// A job to be queued.
pub(crate) struct NewJob<'a> {
    /// What queues it, with the options that the user wrote.
    pub(crate) launcher: &'a Launcher,
    /// Its name; no other job has it.
    pub(crate) name: &'a str,
    /// What it is, in words.
    pub(crate) comment: &'a str,
    /// The script.
    pub(crate) script: &'a Path,
    /// File for what it prints.
    pub(crate) log: &'a Path,
    /// Cores, if it is one process.
    pub(crate) threads: Option<usize>,
    /// Bytes of memory, if it is one process and the pipeline says how many.
    pub(crate) memory: Option<u64>,
}

/// How a job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    /// Its name: a batch system that lost what it knew may give a number again.
    pub(crate) name: String,
    pub(crate) state: JobState,
    /// The word of the batch system for why it waits or has ended; may be empty.
    pub(crate) reason: String,
    /// Where it runs or ran; may be empty.
    pub(crate) nodes: String,
    /// Time until the batch system ends it.
    pub(crate) left: Option<Duration>,
    /// Time that it has in all.
    pub(crate) limit: Option<Duration>,
}

/// The states of a job that make a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobState {
    Pending,
    Running,
    Completed,
    Failed,
    OutOfTime,
    OutOfMemory,
    NodeFailed,
    Preempted,
    Cancelled,
}

impl JobState {
    /// Whether nothing more will happen.
    pub(crate) fn is_end(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

/// Why a batch system did not do what it was asked for.
#[derive(Debug, Clone, thiserror::Error, Diagnostic)]
pub(crate) enum BatchError {
    /// It does not answer now. Asking again may help.
    #[error("the batch system does not answer: {0}")]
    #[diagnostic(help(
        "jobs that are in its queue stay there: run again when it is back, and their results are taken over"
    ))]
    Silent(String),
    /// It does not want to.
    #[error("{message}")]
    Refused {
        message: String,
        #[help]
        help: String,
    },
}
