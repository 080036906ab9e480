//! Writing to a store.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use hopmap_durable::{
    AppendLog, DurableError, Lock, crash_point, is_leftover, lock_within, sync_folder, sync_tree,
};

use super::batch;
use super::record::{Current, OutputRecords, Partial, PipelineId, Record, ResultRecord, beside, line};
use super::store::{FORMAT, Result, Store, boot, check_format, entries, refuse_foreign};
use crate::pipeline::Cell;

/// The right to write to a store: one process at a time.
#[derive(Debug)]
pub(crate) struct Writer {
    _lock: Lock,
    root: PathBuf,
    state: AppendLog,
    /// Whether something was appended that is not on disk yet.
    unsynced: bool,
    /// Artifacts of results that are not on disk yet.
    unsynced_artifacts: Vec<PathBuf>,
    last_sync: Instant,
}

/// Artifacts are put on disk together, so far apart: thousands of small ones cost thousands of syncs else. As long does the
/// system itself keep what was written in memory.
const BETWEEN_SYNCS: Duration = Duration::from_secs(30);

/// Beyond this number of artifacts the whole file system is synced at once; fewer do not wait for what other programs write.
const MANY: usize = 100;

/// Folder of what was asked for when each pipeline ran last.
pub(crate) fn requests(root: &Path) -> PathBuf {
    root.join("requests")
}

/// Removes files that killed processes were writing in a folder.
pub(super) fn clear_leftovers(folder: &Path) -> Result<(), DurableError> {
    for entry in entries(folder)? {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && is_leftover(&entry.file_name().to_string_lossy()) {
            fs::remove_file(entry.path()).map_err(DurableError::io("remove", &entry.path()))?;
        }
    }
    Ok(())
}

impl Writer {
    /// Creates the store if it does not exist, locks it, and clears what killed runs left.
    pub(crate) fn open(root: &Path, holder: &str) -> Result<Self> {
        Self::open_within(root, holder, Duration::ZERO, &|| false)
    }

    /// As [`Writer::open`], but waits for another process that has the store, at most `wait` and until `stop` is true.
    pub(crate) fn open_within(
        root: &Path,
        holder: &str,
        wait: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self> {
        check_format(root)?;
        refuse_foreign(root)?;
        for folder in [root.to_owned(), root.join("artifacts"), root.join("states"), root.join("runs")] {
            fs::create_dir_all(&folder).map_err(DurableError::io("create", &folder))?;
        }
        let path = root.join("lock");
        let lock = lock_within(wait, stop, || Lock::try_exclusive(&path, holder))?;
        check_format(root)?;
        clear_leftovers(root)?;
        clear_leftovers(&requests(root))?;
        let format = root.join("format");
        if !format.exists() {
            let ignore = root.join(".gitignore");
            if !ignore.exists() {
                fs::write(&ignore, "*\n").map_err(DurableError::io("write", &ignore))?;
            }
            hopmap_durable::replace_file(&format, FORMAT.as_bytes())?;
        }
        let work = root.join("work");
        if work.exists() {
            fs::remove_dir_all(&work).map_err(DurableError::io("remove", &work))?;
            crash_point("store.work-cleared", &work);
        }
        // Stages that keep files too large for memory expect it.
        fs::create_dir(&work).map_err(DurableError::io("create", &work))?;
        let state = AppendLog::open(&root.join("state.log"))?;
        Ok(Self {
            _lock: lock,
            root: root.to_owned(),
            state,
            unsynced: false,
            unsynced_artifacts: Vec::new(),
            last_sync: Instant::now(),
        })
    }

    /// Records a result. The state of the search that led to it is of no more use.
    ///
    /// If its artifacts are not on disk yet, the log has them as unsynced until they are, which is soon.
    pub(crate) fn record(&mut self, store: &mut Store, result: ResultRecord, is_on_disk: bool) -> Result {
        if !is_on_disk {
            if self.unsynced_artifacts.is_empty() {
                self.append(&Record::Unsynced { boot: boot() })?;
            }
            let artifacts = result.outputs.values().map(|output| store.artifact(&output.digest));
            self.unsynced_artifacts.extend(artifacts);
        }
        // A state that cannot be removed is waste, which is cleared with the rest.
        let state = store.state(&result.key);
        let record = Record::Result(result.into());
        self.append(&record)?;
        let _ = fs::remove_file(state);
        store.learn(record);
        if self.last_sync.elapsed() > BETWEEN_SYNCS {
            self.sync_artifacts(store)?;
        }
        Ok(())
    }

    /// Puts the artifacts of all results on disk, and records this in the log.
    fn sync_artifacts(&mut self, store: &mut Store) -> Result {
        if self.unsynced_artifacts.is_empty() {
            return Ok(());
        }
        let artifacts = self.root.join("artifacts");
        if store.is_unsynced || self.unsynced_artifacts.len() > MANY {
            let synced = fs::File::open(&artifacts).and_then(|folder| Ok(rustix::fs::syncfs(folder)?));
            synced.map_err(DurableError::io("sync", &artifacts))?;
        } else {
            self.unsynced_artifacts.iter().try_for_each(|artifact| sync_tree(artifact))?;
            sync_folder(&artifacts)?;
        }
        crash_point("store.artifacts-synced", &artifacts);
        self.unsynced_artifacts.clear();
        self.last_sync = Instant::now();
        if std::mem::take(&mut store.is_unsynced) {
            // What the machine lost when it went down must not come back with the line that all is well.
            return self.compact(store);
        }
        self.append(&Record::Synced)
    }

    /// Records the key with which a cell begins to run, if that is news: until it has a result its state is needed.
    pub(crate) fn begin(
        &mut self,
        store: &mut Store,
        pipeline: &PipelineId,
        cell: &str,
        key: &str,
    ) -> Result {
        let begun = store.pipelines.get(pipeline).and_then(|cells| cells.begun.get(cell));
        if begun.is_some_and(|begun| begun == key) {
            return Ok(());
        }
        self.record_and_learn(store, Record::begun(pipeline, cell, key))
    }

    /// Records which key a cell has now, if that is news.
    pub(crate) fn set_current(
        &mut self,
        store: &mut Store,
        pipeline: &PipelineId,
        cell: &Cell,
        key: &str,
    ) -> Result {
        let known = store.pipelines.get(pipeline);
        let current = known.and_then(|cells| cells.current.get(&cell.id));
        let is_partial = known.is_some_and(|cells| cells.partial.contains_key(&cell.id));
        if current.is_some_and(|current| current.key == key) && !is_partial {
            return Ok(());
        }
        self.record_and_learn(store, Record::current(pipeline, &cell.id, current_of(cell, key)))
    }

    /// Records which cells a pipeline has, if it had others, which are no longer used.
    pub(crate) fn keep_cells(&mut self, store: &mut Store, pipeline: &PipelineId, cells: &[Cell]) -> Result {
        let Some(known) = store.pipelines.get(pipeline) else { return Ok(()) };
        let kept: HashSet<&str> = cells.iter().map(|cell| cell.id.as_str()).collect();
        let names = known.current.keys().chain(known.begun.keys()).chain(known.partial.keys());
        let mut dropped: Vec<String> = names.filter(|cell| !kept.contains(cell.as_str())).cloned().collect();
        if dropped.is_empty() {
            return Ok(());
        }
        dropped.sort();
        dropped.dedup();
        let PipelineId { name, file } = pipeline.clone();
        self.record_and_learn(store, Record::Dropped { pipeline: name, file, cells: dropped })
    }

    /// Records what a cell gave that was stopped early, after some seconds, and syncs it to disk.
    pub(crate) fn set_partial(
        &mut self,
        store: &mut Store,
        pipeline: &PipelineId,
        (cell, key): (&Cell, &str),
        outputs: &OutputRecords,
        seconds: f64,
    ) -> Result {
        let artifacts = outputs.values().map(|output| store.artifact(&output.digest));
        artifacts.into_iter().try_for_each(|artifact| sync_tree(&artifact))?;
        sync_folder(&self.root.join("artifacts"))?;
        let before = store.partial(pipeline, &cell.id, key).filter(|_| store.state(key).exists());
        let partial = Partial {
            current: current_of(cell, key),
            outputs: outputs.clone(),
            seconds: seconds + before.map_or(0.0, |partial| partial.seconds),
        };
        self.record_and_learn(store, Record::partial(pipeline, &cell.id, partial))
    }

    /// Records what a `save` of a pipeline puts in a place, if that is news.
    pub(super) fn saved(
        &mut self,
        store: &mut Store,
        pipeline: &PipelineId,
        path: &Path,
        blake3: &str,
    ) -> Result {
        if store.has_saved(pipeline, path, blake3) {
            return Ok(());
        }
        let path = beside(store.root(), path);
        self.record_and_learn(store, Record::saved(pipeline, path, blake3))
    }

    /// Puts everything recorded on disk.
    pub(crate) fn sync(&mut self, store: &mut Store) -> Result {
        self.sync_artifacts(store)?;
        if std::mem::take(&mut self.unsynced) {
            self.state.sync()?;
        }
        Ok(store.hashes.save(&self.root.join("hashes.log"))?)
    }

    /// Writes the log anew with only what is still known.
    pub(crate) fn compact(&mut self, store: &mut Store) -> Result {
        if store.is_unsynced {
            self.unsynced_artifacts.push(self.root.join("artifacts"));
            return self.sync_artifacts(store);
        }
        let mut keys: Vec<&String> = store.results.keys().collect();
        keys.sort();
        let results = keys.into_iter().map(|key| Record::Result(store.results[key].clone()));
        let mut current: Vec<_> = store.all_current().collect();
        current.sort_unstable_by_key(|(pipeline, cell, _)| (*pipeline, *cell));
        let current = current
            .into_iter()
            .map(|(pipeline, cell, current)| Record::current(pipeline, cell, current.clone()));
        let begun =
            store.pipelines.iter().flat_map(|(id, cells)| cells.begun.iter().map(move |begun| (id, begun)));
        let mut begun: Vec<_> = begun.collect();
        begun.sort_unstable();
        let begun = begun.into_iter().map(|(pipeline, (cell, key))| Record::begun(pipeline, cell, key));
        let saved = store.saved.iter().flat_map(|((pipeline, path), known)| {
            known.iter().map(|blake3| Record::saved(pipeline, path.clone(), blake3))
        });
        let partial = store
            .all_partial()
            .map(|(pipeline, cell, partial)| Record::partial(pipeline, cell, partial.clone()));
        let records = results.chain(current).chain(begun).chain(partial).chain(saved);
        let lines: Vec<String> = records.map(|record| line(&record)).collect();
        let path = self.root.join("state.log");
        hopmap_durable::replace_file(&path, lines.concat().as_bytes())?;
        self.state = AppendLog::open(&path)?;
        Ok(())
    }

    /// Appends a record to the log and updates the store.
    fn record_and_learn(&mut self, store: &mut Store, record: Record) -> Result {
        self.append(&record)?;
        store.learn(record);
        Ok(())
    }

    fn append(&mut self, record: &Record) -> Result {
        self.unsynced = true;
        Ok(self.state.append(line(record).trim_end())?)
    }
}

/// A cell with the key that it has now.
fn current_of(cell: &Cell, key: &str) -> Current {
    Current { key: key.to_owned(), stage: cell.stage.clone(), matrix: cell.matrix.clone() }
}

/// What to keep.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    /// Results that are younger than this stay even if no pipeline uses them now.
    pub(crate) keep: Duration,
    /// Number of the newest runs that stay.
    pub(crate) runs: usize,
    /// Whether what pipelines used whose files are gone may go.
    pub(crate) gone: bool,
}

/// What can go.
#[derive(Debug, Default)]
pub(crate) struct Garbage {
    /// Keys of results.
    pub(crate) results: Vec<String>,
    /// Folders of artifacts and the bytes of their tables and files.
    pub(crate) artifacts: Vec<(PathBuf, u64)>,
    /// Files with states of searches and their sizes in bytes.
    pub(crate) states: Vec<(PathBuf, u64)>,
    /// Folders of runs and their sizes in bytes.
    pub(crate) runs: Vec<(PathBuf, u64)>,
    /// Pipelines whose files are gone, and which are forgotten.
    pub(crate) forgotten: Vec<PipelineId>,
    /// The same that are not, so that what they used stays.
    pub(crate) gone: Vec<PipelineId>,
}

impl Garbage {
    /// Bytes that would be free.
    pub(crate) fn bytes(&self) -> u64 {
        self.artifacts.iter().chain(&self.states).chain(&self.runs).map(|(_, bytes)| bytes).sum()
    }

    /// Whether there is nothing to clear.
    pub(crate) fn is_empty(&self) -> bool {
        let files = [&self.artifacts, &self.states, &self.runs];
        self.results.is_empty() && self.forgotten.is_empty() && files.iter().all(|files| files.is_empty())
    }
}

/// Finds what can go. Writes nothing.
pub(crate) fn find_garbage(store: &Store, policy: Policy) -> Result<Garbage> {
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
    for folder in paths_but(&store.root().join("artifacts"), is_needed)? {
        if is_young(&folder) {
            continue;
        }
        let digest = folder.file_name().and_then(OsStr::to_str).unwrap_or_default();
        // The sizes in the log save looking into a hundred thousand folders.
        let bytes = sizes.get(digest).copied().unwrap_or_else(|| size(&folder));
        artifacts.push((folder, bytes));
    }
    let begun = cells().flat_map(|cells| cells.begun.values());
    let unfinished: HashSet<PathBuf> =
        begun.filter(|key| !store.results.contains_key(*key)).map(|key| store.state(key)).collect();
    let mut states = paths(&store.states())?;
    states.retain(|file| !unfinished.contains(file) && !is_young(file));
    let states = states.into_iter().map(|file| (file.clone(), size(&file))).collect();
    let runs =
        old_runs(store, policy.runs)?.into_iter().map(|folder| (folder.clone(), size(&folder))).collect();
    Ok(Garbage { results, artifacts, states, runs, forgotten, gone })
}

/// Clears the store. The log goes first: a result without artifacts would be a lie, artifacts without a result are waste.
pub(crate) fn collect(store: &mut Store, writer: &mut Writer, garbage: &Garbage) -> Result {
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

/// Removes journals and logs of all runs but the newest; results stay.
pub(crate) fn keep_runs(store: &Store, _writer: &Writer, count: usize) -> Result {
    for folder in old_runs(store, count)? {
        fs::remove_dir_all(&folder).map_err(DurableError::io("remove", &folder))?;
        crash_point("store.garbage-removed", &folder);
    }
    Ok(())
}

/// All runs but the newest.
fn old_runs(store: &Store, keep: usize) -> Result<Vec<PathBuf>, DurableError> {
    let mut runs = paths(&store.runs())?;
    runs.truncate(runs.len().saturating_sub(keep));
    let in_use = batch::runs_with_jobs(store);
    runs.retain(|run| !in_use.contains(run));
    Ok(runs)
}

fn paths(folder: &Path) -> Result<Vec<PathBuf>, DurableError> {
    paths_but(folder, |_| false)
}

/// What is in a folder, by name, without what is passed over; nothing if there is no such folder.
fn paths_but(folder: &Path, is_passed: impl Fn(&OsStr) -> bool) -> Result<Vec<PathBuf>, DurableError> {
    let entries = entries(folder)?;
    let paths = entries.iter().filter(|entry| !is_passed(&entry.file_name()));
    let mut paths: Vec<PathBuf> = paths.map(fs::DirEntry::path).collect();
    // As bytes: comparing paths part by part takes longer than reading the folder.
    paths.sort_unstable_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    Ok(paths)
}

fn size(path: &Path) -> u64 {
    if !path.is_dir() {
        return fs::symlink_metadata(path).map_or(0, |metadata| metadata.len());
    }
    paths(path).unwrap_or_default().iter().map(|entry| size(entry)).sum()
}
