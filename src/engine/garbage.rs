//! Clearing a store: results that no pipeline uses any more, artifacts that no result uses, states of searches that nobody
//! goes on with, old runs.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use hopmap_durable::{DurableError, crash_point};

use super::batch;
use super::record::PipelineId;
use super::store::{Store, StoreError};
use super::writer::{Writer, clear_leftovers};

/// What to keep.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Results that are younger than this stay even if no pipeline uses them now.
    pub keep: Duration,
    /// Number of the newest runs that stay.
    pub runs: usize,
    /// Whether what pipelines used whose files are gone may go.
    pub gone: bool,
}

/// What can go.
#[derive(Debug, Default)]
pub struct Garbage {
    /// Keys of results.
    pub results: Vec<String>,
    /// Folders of artifacts and the bytes of their tables and files.
    pub artifacts: Vec<(PathBuf, u64)>,
    /// Files with states of searches and their sizes in bytes.
    pub states: Vec<(PathBuf, u64)>,
    /// Folders of runs and their sizes in bytes.
    pub runs: Vec<(PathBuf, u64)>,
    /// Pipelines whose files are gone, and which are forgotten.
    pub forgotten: Vec<PipelineId>,
    /// The same that are not, so that what they used stays.
    pub gone: Vec<PipelineId>,
}

impl Garbage {
    /// Bytes that would be free.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.artifacts.iter().chain(&self.states).chain(&self.runs).map(|(_, bytes)| bytes).sum()
    }

    /// Whether there is nothing to clear.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let files = [&self.artifacts, &self.states, &self.runs];
        self.results.is_empty() && self.forgotten.is_empty() && files.iter().all(|files| files.is_empty())
    }
}

/// Finds what can go. Writes nothing.
pub fn find_garbage(store: &Store, policy: Policy) -> Result<Garbage, StoreError> {
    let gone: Vec<PipelineId> =
        store.pipelines.keys().filter(|id| id.is_gone(store.root())).cloned().collect();
    let (forgotten, gone) = if policy.gone { (gone, Vec::new()) } else { (Vec::new(), gone) };
    let cells = || store.pipelines.iter().filter(|(id, _)| !forgotten.contains(id)).map(|(_, cells)| cells);
    let used: HashSet<&str> =
        cells().flat_map(|cells| cells.current.values()).map(|current| current.key.as_str()).collect();
    let is_young = |path: &Path| {
        if policy.keep.is_zero() {
            return false;
        }
        let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
        modified.is_ok_and(|time| SystemTime::now().duration_since(time).unwrap_or_default() < policy.keep)
    };
    let mut results = Vec::new();
    let mut needed: HashSet<&str> = HashSet::new();
    let mut sizes: HashMap<&str, u64> = HashMap::new();
    for (key, outputs) in store.sizes() {
        if used.contains(key) || outputs.iter().any(|(digest, _)| is_young(&store.artifact(digest))) {
            needed.extend(outputs.into_iter().map(|(digest, _)| digest));
        } else {
            results.push(key.to_owned());
            sizes.extend(outputs);
        }
    }
    // What a cell gave when it was stopped early stays until it has ended, as does its state.
    let partial = store.all_partial().flat_map(|(.., partial)| partial.outputs.values());
    needed.extend(partial.map(|output| output.digest.as_str()));
    results.sort();
    let is_needed = |name: &OsStr| name.to_str().is_some_and(|digest| needed.contains(digest));
    let mut artifacts = Vec::new();
    for folder in entries_but(&store.root().join("artifacts"), is_needed)? {
        if is_young(&folder) {
            continue;
        }
        let digest = folder.file_name().and_then(OsStr::to_str).unwrap_or_default();
        // What the log says saves looking into a hundred thousand folders.
        let bytes = sizes.get(digest).copied().unwrap_or_else(|| size(&folder));
        artifacts.push((folder, bytes));
    }
    let begun = cells().flat_map(|cells| cells.begun.values());
    let unfinished: HashSet<PathBuf> =
        begun.filter(|key| !store.results.contains_key(*key)).map(|key| store.state(key)).collect();
    let mut states = entries(&store.states())?;
    states.retain(|file| !unfinished.contains(file) && !is_young(file));
    let states = states.into_iter().map(|file| (file.clone(), size(&file))).collect();
    let runs =
        old_runs(store, policy.runs)?.into_iter().map(|folder| (folder.clone(), size(&folder))).collect();
    Ok(Garbage { results, artifacts, states, runs, forgotten, gone })
}

/// Clears the store. The log goes first: a result without artifacts would be a lie, artifacts without a result are waste.
pub fn collect(store: &mut Store, writer: &mut Writer, garbage: &Garbage) -> Result<(), StoreError> {
    let gone: HashSet<&str> = garbage.results.iter().map(String::as_str).collect();
    garbage.forgotten.iter().for_each(|id| store.forget(id));
    store.retain(|key| !gone.contains(key));
    writer.compact(store)?;
    clear_leftovers(&store.root().join("reports"))?;
    for (folder, _) in garbage.artifacts.iter().chain(&garbage.runs) {
        fs::remove_dir_all(folder).map_err(DurableError::io("remove", folder))?;
        crash_point("store.garbage-removed", folder);
    }
    for (file, _) in &garbage.states {
        fs::remove_file(file).map_err(DurableError::io("remove", file))?;
        crash_point("store.garbage-removed", file);
    }
    Ok(())
}

/// Removes all runs but so many of the newest: their journals and logs, no result.
pub fn keep_runs(store: &Store, _writer: &Writer, count: usize) -> Result<(), StoreError> {
    for folder in old_runs(store, count)? {
        fs::remove_dir_all(&folder).map_err(DurableError::io("remove", &folder))?;
        crash_point("store.garbage-removed", &folder);
    }
    Ok(())
}

/// All runs but so many of the newest.
fn old_runs(store: &Store, keep: usize) -> Result<Vec<PathBuf>, DurableError> {
    let mut runs = entries(&store.runs())?;
    runs.truncate(runs.len().saturating_sub(keep));
    let in_use = batch::runs_with_jobs(store);
    runs.retain(|run| !in_use.contains(run));
    Ok(runs)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, DurableError> {
    entries_but(folder, |_| false)
}

/// What is in a folder, by name, without what is passed over; nothing if there is no such folder.
fn entries_but(folder: &Path, is_passed: impl Fn(&OsStr) -> bool) -> Result<Vec<PathBuf>, DurableError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(DurableError::io("read", folder)(error)),
    };
    let paths = entries.flatten().filter(|entry| !is_passed(&entry.file_name()));
    let mut paths: Vec<PathBuf> = paths.map(|entry| entry.path()).collect();
    // As bytes: comparing paths part by part takes longer than reading the folder.
    paths.sort_unstable_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    Ok(paths)
}

fn size(path: &Path) -> u64 {
    if !path.is_dir() {
        return fs::symlink_metadata(path).map_or(0, |metadata| metadata.len());
    }
    entries(path).unwrap_or_default().iter().map(|entry| size(entry)).sum()
}
