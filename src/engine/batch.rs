//! Cells as jobs of a batch system: submitted, watched all together, tried again, taken over.
//!
//! [`BatchSystem`] is all that is known of a batch system; `slurm` is the only one there is.
//!
//! # How jobs run
//!
//! A stage that cannot be several processes, or has `sbatch` without a command behind it, is run by `hopmap worker FOLDER` (hidden), which
//! reads the same `task.json`, is stopped in the same way and answers with the same files. `src/engine/batch` makes jobs of cells:
//!
//! | file | subject |
//! |---|---|
//! | `batch.rs` | what is wanted of a batch system: submit, ask, find by name, cancel; and `jobs/KEY/job.json`: name and number of the job, attempt, log, written before `sbatch` with the name alone, so that a kill between the two loses nothing; and the script, which runs the stage behind the shell, turns SIGTERM into a `stop`, and leaves the exit status in `ended` |
//! | `slurm.rs` | the only file that knows `sbatch`, `squeue` and `scancel`, and how their options and complaints look |
//! | `manager.rs` | one thread for all jobs of a run: submits, asks with one call, stops, tries again, takes results over |
//! | `job.rs` | one cell as a job: what is written for it, what it prints, its state, the message if it gave no result |
//!
//! The task of attempt N is in `jobs/KEY/N`, in the store but not in `work/`, so that it outlives us. A result is seen by its `done`, which
//! is there before Slurm has anything to say; the state of a job counts only where there is none. Before another attempt the folder of
//! the last one is removed, so that a process which goes on, though its node is lost, finds its task gone and stops. Time limits follow from the
//! time left in `squeue`, not from clocks. Whoever runs a cell in any other way first ends the job that is on record for its key.

mod job;
mod manager;
mod slurm;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hopmap_durable::{DurableError, replace_file};
use miette::{Diagnostic, Report};
use serde::{Deserialize, Serialize};

use super::store::Store;
use crate::pipeline::Launcher;
use crate::ranks::{self, DONE, OUT};
pub(crate) use job::Order;
pub(crate) use manager::serve;
pub(crate) use slurm::{Slurm, time_left_of_job};

/// What we want of a batch system.
pub(crate) trait BatchSystem: Sync {
    /// The command that a launcher starts within the job.
    fn command<'a>(&self, launcher: &'a Launcher) -> &'a [String];

    /// Queues a script and gives the number of the job.
    fn submit(&self, job: &NewJob<'_>) -> Result<u64, BatchError>;

    /// The states of jobs, queried with one call. Jobs that the system has forgotten are missing.
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
    /// Bytes of memory, if it is one process and the pipeline sets them.
    pub(crate) memory: Option<u64>,
}

/// The state of a job.
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

/// A job that was not waited for to the end.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(super) enum Unfinished {
    #[error("its job was stopped before it began")]
    #[diagnostic(code(engine::not_begun))]
    NotBegun,
    #[error("job {0} did not end when cancelled")]
    #[diagnostic(
        code(engine::not_ended),
        help("cancel it with `scancel`; the next run takes it over or cancels it")
    )]
    NotEnded(u64),
}

/// Why a batch system did not do what it was asked for.
#[derive(Debug, Clone, thiserror::Error, Diagnostic)]
pub(crate) enum BatchError {
    /// It does not answer now. Asking again may help.
    #[error("the batch system does not answer: {0}")]
    #[diagnostic(
        code(engine::silent),
        help("queued jobs stay in its queue: run again when it is back to collect their results")
    )]
    Silent(String),
    /// It does not want to.
    #[error("{message}")]
    #[diagnostic(code(engine::refused))]
    Refused {
        message: String,
        #[help]
        help: String,
    },
}

const RECORD: &str = "job.json";

/// Time between two checks of a cancelled job.
const INTERVAL: Duration = Duration::from_millis(500);

/// The job of a cell.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    /// The cell.
    cell: String,
    /// What queues it.
    launcher: String,
    /// How often the cell was submitted.
    attempt: u32,
    /// Name of the job, written down before it is submitted.
    name: String,
    /// Its number, written down when the batch system has said it.
    job: Option<u64>,
    /// What it prints.
    log: PathBuf,
}

impl Record {
    fn read(folder: &Path) -> Option<Self> {
        ranks::read(&folder.join(RECORD)).ok()
    }

    fn write(&self, folder: &Path) -> Result<(), Report> {
        ranks::write(&folder.join(RECORD), self)
    }

    /// The folder of the task.
    fn task(&self, folder: &Path) -> PathBuf {
        folder.join(self.attempt.to_string())
    }
}

/// A name that no other job has.
fn new_name(key: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("hopmap-{}-{:x}", &key[..key.len().min(8)], now.as_nanos())
}

/// Cancels a job that may have been submitted; whether it is gone.
fn leave(system: &dyn BatchSystem, record: &Record) -> Result<bool, BatchError> {
    let job = match record.job {
        Some(job) => Some(job),
        None => system.find(&record.name)?,
    };
    let Some(job) = job else { return Ok(true) };
    system.cancel(job, &record.name)?;
    let status = system.ask(&[job])?.remove(&job).filter(|status| status.name == record.name);
    Ok(status.is_none_or(|status| status.state.is_end()))
}

/// Ends the job that an earlier run left for a cell, and waits until it is gone: no cell runs twice at once.
pub(crate) fn withdraw(
    system: &dyn BatchSystem,
    folder: &Path,
    patience: Duration,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), Report> {
    let started = Instant::now();
    while let Some(record) = Record::read(folder) {
        match leave(system, &record) {
            Ok(true) => break,
            Ok(false) | Err(BatchError::Silent(_)) if started.elapsed() < patience && !is_stopped() => {}
            Ok(false) => return Err(Unfinished::NotEnded(record.job.unwrap_or_default()).into()),
            Err(error) => return Err(error.into()),
        }
        std::thread::sleep(INTERVAL);
    }
    fs::remove_dir_all(folder).map_err(DurableError::io("remove", folder))?;
    Ok(())
}

/// Folders of the runs whose jobs may still be in a queue: they write there.
pub(crate) fn runs_with_jobs(store: &Store) -> HashSet<PathBuf> {
    let entries = fs::read_dir(store.jobs()).into_iter().flatten().flatten();
    let records = entries.filter_map(|entry| Record::read(&entry.path()));
    records.filter_map(|record| Some(record.log.parent()?.parent()?.to_owned())).collect()
}

/// Ends the jobs of cells that want something else by now. Where the batch system does not hear it, their processes find their
/// task gone and stop by themselves.
pub(crate) fn cancel_unwanted(system: &dyn BatchSystem, store: &Store) {
    let Ok(entries) = fs::read_dir(store.jobs()) else { return };
    let wanted: HashSet<&str> = store.unfinished().collect();
    let unwanted: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|folder| {
            folder.file_name().and_then(|name| name.to_str()).is_none_or(|key| !wanted.contains(key))
        })
        .collect();
    for folder in unwanted {
        if let Some(Record { job: Some(job), name, .. }) = Record::read(&folder) {
            let _ = system.cancel(job, &name);
        }
        // What is left of it is cleared next time.
        let _ = fs::remove_dir_all(folder);
    }
}

/// Written by the script when the stage has ended, with its exit status: whatever it left is there.
const ENDED: &str = "ended";

/// Writes the script that runs `command` on the task in `folder`.
///
/// The stage runs behind the shell so that the shell hears signals: one that comes before the end of the job asks the stage for
/// what it has. A job that its batch system starts again begins anew.
fn write(place: &Path, title: &str, command: &[String], folder: &Path) -> Result<(), DurableError> {
    let quoted =
        |word: &str| shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned);
    let command: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let text = format!(
        "#!/bin/sh
# {title}, written by hopmap
folder={folder}
rm -rf \"$folder/begun\" \"$folder/stop\" \"$folder/{ENDED}\" \"$folder/{DONE}\" \"$folder/{OUT}\" \"$folder\"/fault*.json
trap 'touch \"$folder/stop\" 2> /dev/null' TERM
{command} \"$folder\" &
child=$!
status=0
wait $child || status=$?
while kill -0 $child 2> /dev/null; do
  status=0
  wait $child || status=$?
done
[ -e \"$folder/task.json\" ] || exit $status
echo $status > \"$folder/{ENDED}.part\" && mv \"$folder/{ENDED}.part\" \"$folder/{ENDED}\"
exit $status
",
        title = title.replace(['\n', '\r'], " "),
        folder = quoted(&folder.to_string_lossy()),
        command = command.join(" "),
    );
    replace_file(place, text.as_bytes())
}

/// The exit status that the script of a task left.
fn ended(folder: &Path) -> Option<i32> {
    std::fs::read_to_string(folder.join(ENDED)).ok()?.trim().parse().ok()
}
