//! The store: artifacts by digest, and a log of which key gave which artifacts.
//!
//! Small artifacts are put on disk together, half a minute apart, but the log has every result at once, so that a process that is
//! killed loses nothing: what it wrote is in the memory of the machine. Only when the machine itself goes down may artifacts
//! be missing of which the log knows. So the log records which results these are, and in which boot of the machine they were
//! made; after another boot they are read and checked before anybody believes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use foldhash::{HashMap, HashMapExt as _};
use hopmap_artifact::Folder;
use hopmap_durable::{AppendLog, DurableError, is_leftover};
use miette::Diagnostic;
use rayon::prelude::*;

use super::record::{
    Current, OutputRecord, OutputRecords, Partial, PipelineId, Record, ResultRecord, StoredResult, beside,
    names,
};
use crate::input_files::Hashes;
use crate::pipeline::STORE_FOLDER;

pub(super) const FORMAT: &str = "1";

/// So many lines are read by one thread; a log of fewer is read at once.
const MANY_LINES: usize = 1000;

/// What using a store gives.
pub(super) type Result<T = (), E = StoreError> = std::result::Result<T, E>;

/// A store on disk and what is known of it.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    pub(super) results: HashMap<String, StoredResult>,
    pub(super) pipelines: BTreeMap<PipelineId, Cells>,
    /// What copies for people were made of: the pipeline, the place, and the BLAKE3 of each.
    pub(super) saved: BTreeMap<(PipelineId, String), Vec<String>>,
    damaged_lines: usize,
    /// Whether a run ended before it had put its artifacts on disk.
    pub(super) is_unsynced: bool,
    trusts_observations: bool,
    refuses_commands: bool,
    /// Hashes of input files.
    pub(crate) hashes: Hashes,
}

/// What a store knows of the cells of a pipeline, by their names.
#[derive(Debug, Default)]
pub(super) struct Cells {
    pub(super) current: HashMap<String, Current>,
    /// The keys with which they began to run last.
    pub(super) begun: HashMap<String, String>,
    /// What cells gave that were stopped early and have not ended since.
    pub(super) partial: BTreeMap<String, Partial>,
}

impl Cells {
    fn is_empty(&self) -> bool {
        self.current.is_empty() && self.begun.is_empty() && self.partial.is_empty()
    }
}

/// A store that cannot be used.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum StoreError {
    /// The system or a lock is in the way.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// The store was written by another version.
    #[error("the store {} has format {found}, this hopmap reads format {FORMAT}", path.display())]
    #[diagnostic(
        code(engine::format),
        help("use another store with --store, or remove this one: everything in it can be recomputed")
    )]
    Format {
        /// The store.
        path: PathBuf,
        /// Its format.
        found: String,
    },
    /// The folder has other content.
    #[error("{} is not a store, and not empty", .0.display())]
    #[diagnostic(code(engine::no_store), help("name a new folder, an empty one, or a store"))]
    Foreign(PathBuf),
    /// Nothing has been stored yet.
    #[error("there is no store at {}", .0.display())]
    #[diagnostic(code(engine::missing), help("`hopmap run` creates one; --store names another"))]
    Missing(PathBuf),
}

impl Store {
    /// Where the store of a pipeline in some folder is: the nearest one upwards, else next to the file.
    pub(crate) fn find(folder: &Path) -> PathBuf {
        let upwards = folder.ancestors().map(|folder| folder.join(STORE_FOLDER)).find(|store| store.is_dir());
        upwards.unwrap_or_else(|| folder.join(STORE_FOLDER))
    }

    /// Reads what a store knows. One that does not exist yet is empty.
    pub fn load(root: &Path) -> Result<Self> {
        check_format(root)?;
        let mut store = Self {
            root: root.into(),
            results: HashMap::new(),
            pipelines: BTreeMap::new(),
            saved: BTreeMap::new(),
            damaged_lines: 0,
            is_unsynced: false,
            trusts_observations: false,
            refuses_commands: false,
            hashes: Hashes::load(&root.join("hashes.log"))?,
        };
        let mut unsynced = Unsynced::default();
        let log = AppendLog::read(&root.join("state.log"))?;
        let lines: Vec<&str> = log.lines().collect();
        let records: Vec<serde_json::Result<Record>> =
            lines.into_par_iter().with_min_len(MANY_LINES).map(serde_json::from_str).collect();
        for record in records {
            match record {
                Ok(record) => {
                    unsynced.hear(&record);
                    store.learn(record);
                }
                Err(_) => store.damaged_lines += 1,
            }
        }
        store.is_unsynced = !unsynced.is_empty();
        unsynced.lost().for_each(|key| store.forget_if_damaged(key));
        Ok(store)
    }

    /// Forgets a result whose artifacts did not get on disk before the machine went down.
    fn forget_if_damaged(&mut self, key: &str) {
        let is_whole = |output: &OutputRecord| {
            let folder = Folder::open(&self.artifact(&output.digest));
            folder.is_ok_and(|folder| folder.digest() == output.digest && folder.verify().is_ok())
        };
        if self.result(key).is_some_and(|result| !result.outputs.values().all(is_whole)) {
            self.results.remove(key);
        }
    }

    pub(super) fn learn(&mut self, record: Record) {
        match record {
            Record::Result(result) => {
                self.results.insert(result.key.clone(), result);
            }
            Record::Current { pipeline, file, cell, key, stage, matrix } => {
                // Older versions kept no more than the name of the cell.
                let (stage, matrix) = if stage.is_empty() { names(&cell) } else { (stage, matrix) };
                let id = PipelineId { name: pipeline, file };
                self.take_over(&id, &cell, &key);
                // A run that failed takes nothing from what was there before.
                let is_over =
                    |partial: &Partial| partial.current.key != key || self.results.contains_key(&key);
                let cells = self.pipelines.entry(id).or_default();
                if cells.partial.get(&cell).is_some_and(is_over) {
                    cells.partial.remove(&cell);
                }
                cells.current.insert(cell, Current { key, stage, matrix });
            }
            Record::Begun { pipeline, file, cell, key } => {
                let id = PipelineId { name: pipeline, file };
                self.take_over(&id, &cell, &key);
                self.pipelines.entry(id).or_default().begun.insert(cell, key);
            }
            Record::Dropped { pipeline, file, cells } => {
                let id = PipelineId { name: pipeline, file };
                let known = self.pipelines.entry(id).or_default();
                for cell in &cells {
                    known.current.remove(cell);
                    known.begun.remove(cell);
                    known.partial.remove(cell);
                }
            }
            Record::Saved { pipeline, file, path, blake3 } => {
                let id = PipelineId { name: pipeline, file };
                let known = self.saved.entry((id, path)).or_default();
                if !known.contains(&blake3) {
                    known.push(blake3);
                }
            }
            Record::Partial { pipeline, file, cell, key, stage, matrix, outputs, seconds } => {
                let id = PipelineId { name: pipeline, file };
                let current = Current { key, stage, matrix };
                self.pipelines
                    .entry(id)
                    .or_default()
                    .partial
                    .insert(cell, Partial { current, outputs, seconds });
            }
            Record::Unsynced { .. } | Record::Synced => {}
        }
    }

    /// What an older version wrote down under the name alone belongs to the first pipeline of the name that has the same key. What
    /// has another key may be of another file, and stays.
    fn take_over(&mut self, id: &PipelineId, cell: &str, key: &str) {
        let older = id.without_file();
        if *id == older {
            return;
        }
        let Some(cells) = self.pipelines.get_mut(&older) else { return };
        if cells.current.get(cell).is_some_and(|current| current.key == key) {
            cells.current.remove(cell);
        }
        if cells.begun.get(cell).is_some_and(|begun| begun == key) {
            cells.begun.remove(cell);
        }
        if cells.is_empty() {
            self.pipelines.remove(&older);
        }
    }

    /// From now on the world is taken to be as it was seen last: results of stages that look at it count like others.
    pub(crate) fn trust_observations(&mut self) {
        self.trusts_observations = true;
    }

    /// From now on no stage with commands of the user runs for this store.
    pub(crate) fn refuse_commands(&mut self) {
        self.refuses_commands = true;
    }

    /// Whether no stage with commands of the user runs for this store.
    pub(crate) fn refuses_commands(&self) -> bool {
        self.refuses_commands
    }

    /// Whether results of stages that look at the world count like others.
    pub(crate) fn trusts_observations(&self) -> bool {
        self.trusts_observations
    }

    /// Its folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Lines of the log that could not be read; hopmap recomputes what they recorded.
    pub(crate) fn damaged_lines(&self) -> usize {
        self.damaged_lines
    }

    /// Folder of an artifact.
    pub(crate) fn artifact(&self, digest: &str) -> PathBuf {
        self.root.join("artifacts").join(digest)
    }

    /// Folder for work in progress; emptied by the next writer.
    pub(crate) fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// Folder of the states of searches that have not ended.
    pub(crate) fn states(&self) -> PathBuf {
        self.root.join("states")
    }

    /// File in which the stage of a key may keep the state of its search.
    pub(crate) fn state(&self, key: &str) -> PathBuf {
        self.states().join(key)
    }

    /// Keys that some cell began with last and that have no result yet: a run that goes on needs their states.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = &str> {
        let begun = self.pipelines.values().flat_map(|cells| cells.begun.values());
        begun.map(String::as_str).filter(|key| !self.results.contains_key(*key))
    }

    /// Folder of what was handed to batch systems, by key.
    pub(crate) fn jobs(&self) -> PathBuf {
        self.root.join("jobs")
    }

    /// Folder of the runs.
    pub(crate) fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// The result of a key.
    pub(crate) fn result(&self, key: &str) -> Option<&ResultRecord> {
        self.results.get(key)?.record()
    }

    /// All results.
    pub(crate) fn results(&self) -> impl Iterator<Item = &ResultRecord> {
        self.results.values().filter_map(StoredResult::record)
    }

    /// Keys of all results, with digests of their artifacts and the bytes of their files.
    pub(super) fn sizes(&self) -> Vec<(&str, Vec<(&str, u64)>)> {
        self.results.par_iter().map(|(key, result)| (key.as_str(), result.sizes())).collect()
    }

    /// The key that a cell of a pipeline had when it last ran or was confirmed.
    pub(crate) fn current(&self, pipeline: &PipelineId, cell: &str) -> Option<&str> {
        let of = |id: &PipelineId| self.pipelines.get(id)?.current.get(cell);
        of(pipeline).or_else(|| of(&pipeline.without_file())).map(|current| current.key.as_str())
    }

    /// The cells of a pipeline, and what they were last: what an older version knew of its name until it has run.
    pub(crate) fn cells(&self, pipeline: &PipelineId) -> impl Iterator<Item = (&str, &Current)> {
        let own = self.pipelines.get(pipeline).filter(|cells| !cells.current.is_empty());
        let cells = own.or_else(|| self.pipelines.get(&pipeline.without_file()));
        cells.into_iter().flat_map(|cells| &cells.current).map(|(cell, current)| (cell.as_str(), current))
    }

    /// Whether a `save` of a pipeline put this in a place.
    pub(super) fn has_saved(&self, pipeline: &PipelineId, path: &Path, blake3: &str) -> bool {
        self.saved_in(pipeline, path).any(|known| known == blake3)
    }

    /// Takes what is in a place for a copy of a pipeline.
    pub(super) fn know_saved(&mut self, pipeline: &PipelineId, path: &Path, blake3: &str) {
        let (PipelineId { name, file }, path) = (pipeline.clone(), beside(&self.root, path));
        self.learn(Record::Saved { pipeline: name, file, path, blake3: blake3.to_owned() });
    }

    /// Whether a `save` of a pipeline put anything in a place.
    pub(super) fn knows_place(&self, pipeline: &PipelineId, path: &Path) -> bool {
        self.saved_in(pipeline, path).next().is_some()
    }

    fn saved_in(&self, pipeline: &PipelineId, path: &Path) -> impl Iterator<Item = &String> {
        let path = beside(&self.root, path);
        let places = pipeline.and_embedded().map(|id| (id, path.clone()));
        places.into_iter().filter_map(|place| self.saved.get(&place)).flatten()
    }

    /// The pipelines of which it knows cells that have ended or were stopped early.
    pub(crate) fn pipelines(&self) -> impl Iterator<Item = &PipelineId> {
        let is_known = |cells: &Cells| !cells.current.is_empty() || !cells.partial.is_empty();
        self.pipelines.iter().filter(move |(_, cells)| is_known(cells)).map(|(id, _)| id)
    }

    /// Other files whose pipelines have the same name.
    pub(crate) fn namesakes<'a>(&'a self, pipeline: &'a PipelineId) -> impl Iterator<Item = &'a PipelineId> {
        let others = self.pipelines().filter(move |other| other.name == pipeline.name && *other != pipeline);
        others.filter(|other| !other.is_gone(&self.root))
    }

    /// Every cell of every pipeline, and what it was last.
    pub(crate) fn all_current(&self) -> impl Iterator<Item = (&PipelineId, &str, &Current)> {
        self.pipelines.iter().flat_map(|(id, cells)| {
            cells.current.iter().map(move |(cell, current)| (id, cell.as_str(), current))
        })
    }

    /// What a cell gave with some key when it was stopped early, if it has not ended since.
    pub(crate) fn partial(&self, pipeline: &PipelineId, cell: &str, key: &str) -> Option<&Partial> {
        let partial = self.pipelines.get(pipeline)?.partial.get(cell)?;
        (partial.current.key == key && !self.results.contains_key(key)).then_some(partial)
    }

    /// The cells of a pipeline that were stopped early and have not ended since.
    pub(super) fn partials(&self, pipeline: &PipelineId) -> impl Iterator<Item = (&str, &Partial)> {
        let partial = self.pipelines.get(pipeline).into_iter().flat_map(|cells| &cells.partial);
        let is_open = |partial: &Partial| !self.results.contains_key(&partial.current.key);
        partial.filter(move |(_, partial)| is_open(partial)).map(|(cell, partial)| (cell.as_str(), partial))
    }

    /// What all cells gave that were stopped early and have not ended since.
    pub(super) fn all_partial(&self) -> impl Iterator<Item = (&PipelineId, &str, &Partial)> {
        self.pipelines.iter().flat_map(|(id, cells)| {
            cells.partial.iter().map(move |(cell, partial)| (id, cell.as_str(), partial))
        })
    }

    /// As [`all_current`](Self::all_current), but cells that were stopped early are what they were then.
    pub(crate) fn all_newest(&self) -> impl Iterator<Item = (&PipelineId, &str, &Current)> {
        let is_partial = |id: &PipelineId, cell: &str| {
            self.pipelines.get(id).is_some_and(|cells| cells.partial.contains_key(cell))
        };
        let ended = self.all_current().filter(move |(id, cell, _)| !is_partial(id, cell));
        ended.chain(self.all_partial().map(|(id, cell, partial)| (id, cell, &partial.current)))
    }

    /// The artifacts of a key, and whether they are only what there was when it was stopped early.
    pub(crate) fn newest(&self, key: &str) -> Option<(&OutputRecords, bool)> {
        let partial = || self.all_partial().find(|(.., partial)| partial.current.key == key);
        match self.result(key) {
            Some(result) => Some((&result.outputs, false)),
            None => partial().map(|(.., partial)| (&partial.outputs, true)),
        }
    }

    /// Digests of the artifacts of all results, and of what all cells gave that were stopped early.
    pub(crate) fn digests(&self) -> impl Iterator<Item = &str> {
        let partial = self.all_partial().map(|(.., partial)| &partial.outputs);
        let outputs = self.results().map(|result| &result.outputs).chain(partial);
        outputs.flat_map(|outputs| outputs.values()).map(|output| output.digest.as_str())
    }

    /// The first file of an artifact that is missing or has another size than it should have.
    pub(crate) fn flaw(&self, output: &OutputRecord) -> Option<String> {
        let folder = self.artifact(&output.digest);
        let broken = |(name, size): &&(String, u64)| {
            fs::metadata(folder.join(name)).map_or(true, |metadata| metadata.len() != *size)
        };
        output.files.iter().find(broken).map(|(name, _)| name.clone())
    }
}

impl Store {
    /// Forgets all results but those with these keys.
    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.results.retain(|key, _| keep(key));
        let results = &self.results;
        self.pipelines.retain(|_, cells| {
            cells.current.retain(|_, current| results.contains_key(&current.key));
            cells.begun.retain(|_, key| !results.contains_key(key));
            cells.partial.retain(|_, partial| !results.contains_key(&partial.current.key));
            !cells.is_empty()
        });
    }

    /// Forgets what a pipeline had; its results stay until they are cleared.
    pub(super) fn forget(&mut self, pipeline: &PipelineId) {
        self.pipelines.remove(pipeline);
    }
}

pub(super) fn check_format(root: &Path) -> Result {
    let path = root.join("format");
    match fs::read_to_string(&path) {
        Ok(found) if found == FORMAT => Ok(()),
        Ok(found) => Err(StoreError::Format { path: root.into(), found }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(DurableError::io("read", &path)(error).into()),
    }
}

/// Refuses a folder with anything but what the creation of a store begins with, or what is written where there is none yet: reports,
/// consent, and second stores of `hopmap verify`.
pub(super) fn refuse_foreign(root: &Path) -> Result {
    const FIRST: [&str; 3] = ["artifacts", "states", "runs"];
    let is_one = || root.join("format").exists() && root.join("state.log").exists();
    if is_one() || root.file_name().is_some_and(|name| name == STORE_FOLDER) {
        return Ok(());
    }
    for entry in entries(root)? {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let is_own = match name.as_ref() {
            // `kept` is in a second store that `hopmap verify` is to keep.
            "lock" | ".gitignore" | "kept" | "consent" | "format" | "hashes.log" => path.is_file(),
            // `lost+found`: the store is the root of a file system.
            "reports" | "lost+found" => path.is_dir(),
            "work" => path.is_dir() && entries(&path)?.is_empty(),
            name if name.starts_with("verify-") => path.is_dir(),
            name if FIRST.contains(&name) => path.is_dir() && entries(&path)?.is_empty(),
            name => is_leftover(name),
        };
        // Another process may have made it meanwhile.
        if !is_own && !is_one() {
            return Err(StoreError::Foreign(root.into()));
        }
    }
    Ok(())
}

/// Whether a folder is a store of this format.
pub(crate) fn is_store(folder: &Path) -> bool {
    fs::read_to_string(folder.join("format")).is_ok_and(|found| found == FORMAT)
}

/// What is in a folder; nothing if there is no such folder.
pub(crate) fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, DurableError> {
    let found = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        found => found.and_then(Iterator::collect),
    };
    found.map_err(DurableError::io("read", folder))
}

/// Results whose artifacts were not on disk when the log last said so.
#[derive(Default)]
pub(super) struct Unsynced {
    /// The boot in which they were made, and their keys.
    boots: Vec<(String, Vec<String>)>,
}

impl Unsynced {
    pub(super) fn is_empty(&self) -> bool {
        self.boots.is_empty()
    }

    /// Reads on in the log.
    pub(super) fn hear(&mut self, record: &Record) {
        match record {
            Record::Unsynced { boot } => self.boots.push((boot.clone(), Vec::new())),
            Record::Synced => self.boots.clear(),
            Record::Result(result) => {
                if let Some((_, keys)) = self.boots.last_mut() {
                    keys.push(result.key.clone());
                }
            }
            _ => {}
        }
    }

    /// Those that an earlier boot left: a process that is killed loses nothing, a machine that goes down may.
    pub(super) fn lost(&self) -> impl Iterator<Item = &str> {
        let boot = boot();
        let is_lost = move |other: &String| other.is_empty() || *other != boot;
        let lost = self.boots.iter().filter(move |(other, _)| is_lost(other));
        lost.flat_map(|(_, keys)| keys).map(String::as_str)
    }
}

/// What this boot of the machine is called; nothing where the system does not say.
pub(super) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
