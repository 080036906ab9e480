//! The store: artifacts by digest, and a log of which key gave which artifacts.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hopmap_artifact::Folder;
use hopmap_durable::{AppendLog, DurableError, Lock, sync_folder, sync_tree};
use miette::Diagnostic;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use serde_json::value::RawValue;

use super::catalogue::names;
use super::hashes::Hashes;
use super::key::Manifest;
use super::unsynced::{Unsynced, boot};
use crate::pipeline::Cell;

/// Name of the store's folder.
pub const STORE_FOLDER: &str = ".hopmap";

const FORMAT: &str = "1";

/// A store on disk and what is known of it.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    results: HashMap<String, ResultRecord>,
    current: HashMap<(String, String), Current>,
    begun: HashMap<(String, String), String>,
    damaged_lines: usize,
    /// Whether a run ended before it had put its artifacts on disk.
    is_unsynced: bool,
    trusts_observations: bool,
    /// Hashes of input files.
    pub hashes: Hashes,
}

/// How a stored result ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// With an answer.
    Done,
    /// With the proof that there is none.
    Infeasible,
}

/// The artifacts that a key gave.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResultRecord {
    /// The key.
    pub key: String,
    /// How it ended.
    pub ending: Ending,
    /// Whether a budget in seconds shaped it.
    pub timed: bool,
    /// Seconds it took; unknown of results of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The artifacts by output port.
    pub outputs: OutputRecords,
    /// What the key was made of: a [`Manifest`] that is read only when somebody asks.
    manifest: Box<RawValue>,
}

impl ResultRecord {
    /// A result and what its key was made of.
    #[must_use]
    pub fn new(key: &str, ending: Ending, timed: bool, outputs: OutputRecords, manifest: &Manifest) -> Self {
        // Manifests are plain data with text keys: they always have a form in JSON.
        let manifest = serde_json::value::to_raw_value(manifest).unwrap_or_default();
        Self { key: key.to_owned(), ending, timed, seconds: None, outputs, manifest }
    }

    /// The same, with the time it took.
    #[must_use]
    pub fn took(self, seconds: f64) -> Self {
        Self { seconds: Some(seconds), ..self }
    }

    /// Kind of the stage that gave it, without reading the rest of what the key was made of.
    #[must_use]
    pub fn kind(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct OnlyKind {
            kind: String,
        }
        serde_json::from_str::<OnlyKind>(self.manifest.get()).ok().map(|manifest| manifest.kind)
    }

    /// What the key was made of; `None` if another version wrote it in another form.
    #[must_use]
    pub fn manifest(&self) -> Option<Manifest> {
        serde_json::from_str(self.manifest.get()).ok()
    }
}

/// Artifacts by output port. Shared, because every cell that is up to date holds them.
pub type OutputRecords = Arc<BTreeMap<String, OutputRecord>>;

/// An artifact in the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputRecord {
    /// Kind of the artifact.
    pub kind: String,
    /// Its digest.
    pub digest: String,
    /// Its files and their sizes, so that a look at the folder shows whether it is whole.
    pub files: Vec<(String, u64)>,
    /// Its metrics.
    pub metrics: BTreeMap<String, f64>,
}

/// A cell of a pipeline as it was when it last ran or was confirmed.
#[derive(Debug, Clone, PartialEq)]
pub struct Current {
    /// Its key.
    pub key: String,
    /// Name of its stage.
    pub stage: String,
    /// Keys and values of its matrix.
    pub matrix: Vec<(String, Json)>,
}

/// One line of the log.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Record {
    Result(ResultRecord),
    /// A [`Current`]. Its fields stand here, because flattened ones are read through a buffer.
    Current {
        pipeline: String,
        cell: String,
        key: String,
        #[serde(default)]
        stage: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        matrix: Vec<(String, Json)>,
    },
    Begun {
        pipeline: String,
        cell: String,
        key: String,
    },
    /// The artifacts of the results from here on may be in the memory of this boot of the machine only.
    Unsynced {
        boot: String,
    },
    /// The artifacts of all results before are on disk.
    Synced,
}

/// A store that cannot be used.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum StoreError {
    /// The system or a lock is in the way.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// The store was written by another version.
    #[error("the store {} has format {found}, this hopmap knows format {FORMAT}", path.display())]
    #[diagnostic(help(
        "use another store with --store, or remove this one: everything in it can be made again"
    ))]
    Format {
        /// The store.
        path: PathBuf,
        /// Its format.
        found: String,
    },
    /// Nothing has been stored yet.
    #[error("there is no store at {}", path.display())]
    #[diagnostic(help("`hopmap run` makes one; --store names one elsewhere"))]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
}

impl Store {
    /// Where the store of a pipeline in some folder is: the nearest one upwards, else beside the file.
    #[must_use]
    pub fn find(folder: &Path) -> PathBuf {
        let upwards = folder.ancestors().map(|folder| folder.join(STORE_FOLDER)).find(|store| store.is_dir());
        upwards.unwrap_or_else(|| folder.join(STORE_FOLDER))
    }

    /// Reads what a store knows. One that does not exist yet is empty.
    pub fn load(root: &Path) -> Result<Self, StoreError> {
        check_format(root)?;
        let mut store = Self {
            root: root.into(),
            results: HashMap::new(),
            current: HashMap::new(),
            begun: HashMap::new(),
            damaged_lines: 0,
            is_unsynced: false,
            trusts_observations: false,
            hashes: Hashes::load(&root.join("hashes.log"))?,
        };
        let mut unsynced = Unsynced::default();
        for line in AppendLog::read(&root.join("state.log"))?.lines() {
            match serde_json::from_str(line) {
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
        if self.results.get(key).is_some_and(|result| !result.outputs.values().all(is_whole)) {
            self.results.remove(key);
        }
    }

    fn learn(&mut self, record: Record) {
        match record {
            Record::Result(result) => {
                self.results.insert(result.key.clone(), result);
            }
            Record::Current { pipeline, cell, key, stage, matrix } => {
                // Older versions kept no more than the name of the cell.
                let (stage, matrix) = if stage.is_empty() { names(&cell) } else { (stage, matrix) };
                self.current.insert((pipeline, cell), Current { key, stage, matrix });
            }
            Record::Begun { pipeline, cell, key } => {
                self.begun.insert((pipeline, cell), key);
            }
            Record::Unsynced { .. } | Record::Synced => {}
        }
    }

    /// From now on the world is taken to be as it was seen last: results of stages that look at it count like others.
    pub fn trust_observations(&mut self) {
        self.trusts_observations = true;
    }

    /// Whether results of stages that look at the world count like others.
    #[must_use]
    pub fn trusts_observations(&self) -> bool {
        self.trusts_observations
    }

    /// Its folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Lines of the log that could not be read; what they said is made again.
    #[must_use]
    pub fn damaged_lines(&self) -> usize {
        self.damaged_lines
    }

    /// Folder of an artifact.
    #[must_use]
    pub fn artifact(&self, digest: &str) -> PathBuf {
        self.root.join("artifacts").join(digest)
    }

    /// Folder for work in progress; emptied by the next writer.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// Folder of the states of searches that have not ended.
    #[must_use]
    pub fn states(&self) -> PathBuf {
        self.root.join("states")
    }

    /// File in which the stage of a key may keep the state of its search.
    #[must_use]
    pub fn state(&self, key: &str) -> PathBuf {
        self.states().join(key)
    }

    /// Keys that some cell began with last and that have no result yet: a run that goes on needs their states.
    pub fn unfinished(&self) -> impl Iterator<Item = &str> {
        self.begun.values().map(String::as_str).filter(|key| !self.results.contains_key(*key))
    }

    /// Folder of what was handed to batch systems, by key.
    #[must_use]
    pub fn jobs(&self) -> PathBuf {
        self.root.join("jobs")
    }

    /// Folder of the runs.
    #[must_use]
    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// The result of a key.
    #[must_use]
    pub fn result(&self, key: &str) -> Option<&ResultRecord> {
        self.results.get(key)
    }

    /// All results.
    pub fn results(&self) -> impl Iterator<Item = &ResultRecord> {
        self.results.values()
    }

    /// The key that a cell of a pipeline had when it last ran or was confirmed.
    #[must_use]
    pub fn current(&self, pipeline: &str, cell: &str) -> Option<&str> {
        self.current.get(&(pipeline.to_owned(), cell.to_owned())).map(|current| current.key.as_str())
    }

    /// Names of pipeline and cell, and what they were last.
    pub fn all_current(&self) -> impl Iterator<Item = (&str, &str, &Current)> {
        self.current.iter().map(|((pipeline, cell), current)| (pipeline.as_str(), cell.as_str(), current))
    }

    /// The first file of an artifact that is missing or has another size than it should have.
    #[must_use]
    pub fn flaw(&self, output: &OutputRecord) -> Option<String> {
        let folder = self.artifact(&output.digest);
        let broken = |(name, size): &&(String, u64)| {
            fs::metadata(folder.join(name)).map_or(true, |metadata| metadata.len() != *size)
        };
        output.files.iter().find(broken).map(|(name, _)| name.clone())
    }
}

/// The right to write to a store: one process at a time.
#[derive(Debug)]
pub struct Writer {
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

/// Beyond so many artifacts the whole file system is synced at once; fewer do not wait for what other programs write.
const MANY: usize = 100;

impl Writer {
    /// Creates the store if it does not exist, locks it, and clears what killed runs left.
    pub fn open(root: &Path, holder: &str) -> Result<Self, StoreError> {
        for folder in [root.to_owned(), root.join("artifacts"), root.join("states"), root.join("runs")] {
            fs::create_dir_all(&folder).map_err(DurableError::io("create", &folder))?;
        }
        let lock = Lock::try_exclusive(&root.join("lock"), holder)?;
        check_format(root)?;
        let format = root.join("format");
        if !format.exists() {
            let ignore = root.join(".gitignore");
            fs::write(&ignore, "*\n").map_err(DurableError::io("write", &ignore))?;
            hopmap_durable::replace_file(&format, FORMAT.as_bytes())?;
        }
        let work = root.join("work");
        if work.exists() {
            fs::remove_dir_all(&work).map_err(DurableError::io("remove", &work))?;
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
    /// If its artifacts are not on disk yet the log says so until they are, which is soon.
    pub fn record(
        &mut self,
        store: &mut Store,
        result: ResultRecord,
        is_on_disk: bool,
    ) -> Result<(), StoreError> {
        if !is_on_disk {
            if self.unsynced_artifacts.is_empty() {
                self.append(&Record::Unsynced { boot: boot() })?;
            }
            let artifacts = result.outputs.values().map(|output| store.artifact(&output.digest));
            self.unsynced_artifacts.extend(artifacts);
        }
        self.append(&Record::Result(result.clone()))?;
        // One that cannot be removed is waste, which is cleared with the rest.
        let _ = fs::remove_file(store.state(&result.key));
        store.learn(Record::Result(result));
        if self.last_sync.elapsed() > BETWEEN_SYNCS {
            self.sync_artifacts(store)?;
        }
        Ok(())
    }

    /// Puts the artifacts of all results on disk, and says so in the log.
    fn sync_artifacts(&mut self, store: &mut Store) -> Result<(), StoreError> {
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
        self.unsynced_artifacts.clear();
        self.last_sync = Instant::now();
        if std::mem::take(&mut store.is_unsynced) {
            // What the machine lost when it went down must not come back with the line that all is well.
            return self.compact(store);
        }
        self.append(&Record::Synced)
    }

    /// Records the key with which a cell begins to run, if that is news: until it has a result its state is needed.
    pub fn begin(
        &mut self,
        store: &mut Store,
        pipeline: &str,
        cell: &str,
        key: &str,
    ) -> Result<(), StoreError> {
        if store.begun.get(&(pipeline.to_owned(), cell.to_owned())).is_some_and(|begun| begun == key) {
            return Ok(());
        }
        let record = || Record::Begun { pipeline: pipeline.into(), cell: cell.into(), key: key.into() };
        self.append(&record())?;
        store.learn(record());
        Ok(())
    }

    /// Records which key a cell has now, if that is news.
    pub fn set_current(
        &mut self,
        store: &mut Store,
        pipeline: &str,
        cell: &Cell,
        key: &str,
    ) -> Result<(), StoreError> {
        if store.current(pipeline, &cell.id) == Some(key) {
            return Ok(());
        }
        let record = || Record::Current {
            pipeline: pipeline.into(),
            cell: cell.id.clone(),
            key: key.into(),
            stage: cell.stage.clone(),
            matrix: cell.matrix.clone(),
        };
        self.append(&record())?;
        store.learn(record());
        Ok(())
    }

    /// Puts everything recorded on disk.
    pub fn sync(&mut self, store: &mut Store) -> Result<(), StoreError> {
        self.sync_artifacts(store)?;
        if std::mem::take(&mut self.unsynced) {
            self.state.sync()?;
        }
        Ok(store.hashes.save(&self.root.join("hashes.log"))?)
    }

    /// Writes the log anew with only what is still known.
    pub fn compact(&mut self, store: &mut Store) -> Result<(), StoreError> {
        if store.is_unsynced {
            self.unsynced_artifacts.push(self.root.join("artifacts"));
            return self.sync_artifacts(store);
        }
        let mut keys: Vec<&String> = store.results.keys().collect();
        keys.sort();
        let results = keys.into_iter().map(|key| Record::Result(store.results[key].clone()));
        let mut current: Vec<_> = store.all_current().collect();
        current.sort_unstable_by_key(|(pipeline, cell, _)| (*pipeline, *cell));
        let current = current.into_iter().map(|(pipeline, cell, current)| Record::Current {
            pipeline: pipeline.into(),
            cell: cell.into(),
            key: current.key.clone(),
            stage: current.stage.clone(),
            matrix: current.matrix.clone(),
        });
        let mut begun: Vec<_> = store.begun.iter().collect();
        begun.sort_unstable();
        let begun = begun.into_iter().map(|((pipeline, cell), key)| Record::Begun {
            pipeline: pipeline.clone(),
            cell: cell.clone(),
            key: key.clone(),
        });
        let lines: Vec<String> = results.chain(current).chain(begun).map(|record| line(&record)).collect();
        let path = store.root.join("state.log");
        hopmap_durable::replace_file(&path, lines.concat().as_bytes())?;
        self.state = AppendLog::open(&path)?;
        Ok(())
    }

    fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        self.unsynced = true;
        Ok(self.state.append(line(record).trim_end())?)
    }
}

impl Store {
    /// Forgets all results but those with these keys.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.results.retain(|key, _| keep(key));
        let results = &self.results;
        self.current.retain(|_, current| results.contains_key(&current.key));
        self.begun.retain(|_, key| !results.contains_key(key));
    }
}

impl OutputRecord {
    /// Describes an artifact that was written.
    pub fn of(folder: &Folder) -> Result<Self, DurableError> {
        let description = folder.description();
        let tables = description.tables.keys().map(|name| format!("{name}.parquet"));
        let files = description.files.keys().map(|name| format!("files/{name}"));
        let sized = |name: String| {
            let path = folder.path().join(&name);
            let size = fs::metadata(&path).map_err(DurableError::io("read", &path))?.len();
            Ok((name, size))
        };
        let names = std::iter::once(hopmap_artifact::DESCRIPTION.to_owned()).chain(tables).chain(files);
        Ok(Self {
            kind: description.kind.clone(),
            digest: folder.digest().to_owned(),
            files: names.map(sized).collect::<Result<_, DurableError>>()?,
            metrics: description.metrics.clone(),
        })
    }
}

fn line(record: &Record) -> String {
    // Records are plain data with text keys: they always have a form in JSON.
    let mut line = serde_json::to_string(record).unwrap_or_default();
    line.push('\n');
    line
}

pub(super) fn check_format(root: &Path) -> Result<(), StoreError> {
    let path = root.join("format");
    match fs::read_to_string(&path) {
        Ok(found) if found == FORMAT => Ok(()),
        Ok(found) => Err(StoreError::Format { path: root.into(), found }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(DurableError::io("read", &path)(error).into()),
    }
}
