//! What is on disk of a job: `jobs/KEY/job.json` says which one it is, `jobs/KEY/ATTEMPT/` is the folder of its task, with the
//! script that the batch system runs.
//!
//! It outlives the run that submitted the job, so that the next one knows of it.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hopmap_durable::{DurableError, replace_file};
use miette::Report;
use serde::{Deserialize, Serialize};

use super::failure::Given as Unfinished;
use super::{BatchError, BatchSystem};
use crate::engine::store::Store;
use crate::ranks;
use crate::ranks::{DONE, OUT};

const RECORD: &str = "job.json";

/// Time between two looks at a job that was told to go.
const INTERVAL: Duration = Duration::from_millis(500);

/// The job of a cell.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    /// The cell.
    pub(super) cell: String,
    /// What queues it.
    pub(super) launcher: String,
    /// How often the cell was submitted.
    pub(super) attempt: u32,
    /// Name of the job, written down before it is submitted.
    pub(super) name: String,
    /// Its number, written down when the batch system has said it.
    pub(super) job: Option<u64>,
    /// What it prints.
    pub(super) log: PathBuf,
}

impl Record {
    pub(super) fn read(folder: &Path) -> Option<Self> {
        ranks::read(&folder.join(RECORD)).ok()
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), Report> {
        ranks::write(&folder.join(RECORD), self)
    }

    /// The folder of the task.
    pub(super) fn task(&self, folder: &Path) -> PathBuf {
        folder.join(self.attempt.to_string())
    }
}

/// A name that no other job has.
pub(super) fn new_name(key: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("hopmap-{}-{:x}", &key[..key.len().min(8)], now.as_nanos())
}

/// Cancels a job that may have been submitted; whether it is gone.
pub(super) fn leave(system: &dyn BatchSystem, record: &Record) -> Result<bool, BatchError> {
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
pub(super) const ENDED: &str = "ended";

/// Writes the script that runs `command` on the task in `folder`.
///
/// The stage runs behind the shell so that the shell hears signals: one that comes before the end of the job asks the stage for
/// what it has. A job that its batch system starts again begins anew.
pub(super) fn write(
    place: &Path,
    title: &str,
    command: &[String],
    folder: &Path,
) -> Result<(), DurableError> {
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
pub(super) fn ended(folder: &Path) -> Option<i32> {
    std::fs::read_to_string(folder.join(ENDED)).ok()?.trim().parse().ok()
}
