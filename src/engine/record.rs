//! Records in the log of a store: results, the cells of pipelines, and what is on disk. A pipeline is known by its name
//! and its file: a name alone would make one pipeline of two files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{fmt, fs};

use hopmap_artifact::Folder;
use hopmap_durable::DurableError;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value as Json;
use serde_json::value::RawValue;

use super::key::Manifest;
use crate::accepted::relative;
use crate::pipeline::{EMBEDDED, Pipeline};

/// How a stored result ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ending {
    /// With an answer.
    Done,
    /// With the proof that there is none.
    Infeasible,
}

/// The artifacts that a key gave.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResultRecord {
    /// The key.
    pub(crate) key: String,
    /// How it ended.
    pub(crate) ending: Ending,
    /// Whether it depends on a time limit.
    pub timed: bool,
    /// Seconds it took; unknown of results of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The artifacts by output port.
    pub outputs: OutputRecords,
    /// What the key was made of: a [`Manifest`] that is read only on demand.
    manifest: Box<RawValue>,
}

impl ResultRecord {
    /// A result and what its key was made of.
    pub(crate) fn new(
        key: &str,
        ending: Ending,
        timed: bool,
        outputs: OutputRecords,
        manifest: &Manifest,
    ) -> Self {
        // Manifests are plain data with text keys: they always have a form in JSON.
        let manifest = serde_json::value::to_raw_value(manifest).unwrap_or_default();
        Self { key: key.to_owned(), ending, timed, seconds: None, outputs, manifest }
    }

    /// The same, with the time it took.
    pub(crate) fn took(self, seconds: f64) -> Self {
        Self { seconds: Some(seconds), ..self }
    }

    /// Kind of the stage that gave it, without reading the rest of what the key was made of.
    pub(crate) fn kind(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct OnlyKind {
            kind: String,
        }
        serde_json::from_str::<OnlyKind>(self.manifest.get()).ok().map(|manifest| manifest.kind)
    }

    /// What the key was made of; `None` if another version wrote it in another form.
    pub(crate) fn manifest(&self) -> Option<Manifest> {
        serde_json::from_str(self.manifest.get()).ok()
    }
}

/// Artifacts by output port. Shared, because every cell that is up to date holds them.
pub type OutputRecords = Arc<BTreeMap<String, OutputRecord>>;

/// An artifact in the store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OutputRecord {
    /// Kind of the artifact.
    pub kind: String,
    /// Its digest.
    pub digest: String,
    /// Its files and their sizes, so that listing the folder shows whether it is complete.
    pub files: Vec<(String, u64)>,
    /// Its metrics.
    pub metrics: BTreeMap<String, f64>,
}

/// A cell of a pipeline as it was when it last ran or was confirmed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Current {
    /// Its key.
    pub(crate) key: String,
    /// Name of its stage.
    pub(crate) stage: String,
    /// Keys and values of its matrix.
    pub(crate) matrix: Vec<(String, Json)>,
}

/// What a cell gave that was stopped early. It does not replace a result: the cell runs again, and resumes from here if it can.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Partial {
    /// The cell, with the key that it had.
    pub(crate) current: Current,
    /// The best that it had, by output port.
    pub(crate) outputs: OutputRecords,
    /// Seconds that it took so far, in all its runs.
    pub(crate) seconds: f64,
}

/// A result as the log has it: read on demand, because most of a hundred thousand are not needed.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Box<RawValue>")]
pub(super) struct StoredResult {
    pub(super) key: String,
    /// The [`ResultRecord`].
    text: Box<RawValue>,
    record: OnceLock<Option<Box<ResultRecord>>>,
}

impl StoredResult {
    /// Its record in the log; `None` if another version wrote it in another form.
    pub(super) fn record(&self) -> Option<&ResultRecord> {
        self.record.get_or_init(|| serde_json::from_str(self.text.get()).ok()).as_deref()
    }

    /// Digests of its artifacts and the bytes of their files, without reading the rest.
    pub(super) fn sizes(&self) -> Vec<(&str, u64)> {
        #[derive(Deserialize)]
        struct OnlyOutputs<'a> {
            #[serde(borrow)]
            outputs: BTreeMap<&'a str, OnlyFiles<'a>>,
        }
        #[derive(Deserialize)]
        struct OnlyFiles<'a> {
            digest: &'a str,
            files: Vec<(IgnoredAny, u64)>,
        }
        let result = serde_json::from_str::<OnlyOutputs>(self.text.get());
        let outputs = result.map(|result| result.outputs).unwrap_or_default();
        let size = |output: &OnlyFiles| output.files.iter().map(|(_, size)| size).sum();
        outputs.values().map(|output| (output.digest, size(output))).collect()
    }
}

impl TryFrom<Box<RawValue>> for StoredResult {
    type Error = serde_json::Error;

    fn try_from(text: Box<RawValue>) -> Result<Self, Self::Error> {
        #[derive(Deserialize)]
        struct OnlyKey {
            key: String,
        }
        // The key comes first in lines that we wrote: the rest of it need not be read.
        let first = text.get().strip_prefix(r#"{"key":""#).and_then(|rest| rest.split_once('"'));
        let key = match first {
            Some((key, _)) if !key.contains('\\') => key.to_owned(),
            _ => serde_json::from_str::<OnlyKey>(text.get())?.key,
        };
        Ok(Self { key, text, record: OnceLock::new() })
    }
}

impl From<ResultRecord> for StoredResult {
    fn from(record: ResultRecord) -> Self {
        // Records are plain data with text keys: they always have a form in JSON.
        let text = serde_json::value::to_raw_value(&record).unwrap_or_default();
        Self { key: record.key.clone(), text, record: OnceLock::from(Some(Box::new(record))) }
    }
}

impl Serialize for StoredResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

/// One line of the log.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Record {
    Result(StoredResult),
    /// A [`Current`]. Its fields are repeated here, because flattened ones are read through a buffer.
    Current {
        pipeline: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        file: String,
        cell: String,
        key: String,
        #[serde(default)]
        stage: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        matrix: Vec<(String, Json)>,
    },
    Begun {
        pipeline: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        file: String,
        cell: String,
        key: String,
    },
    /// Cells that a pipeline does not have any more.
    Dropped {
        pipeline: String,
        file: String,
        cells: Vec<String>,
    },
    /// What a `save` of a pipeline puts in a place: the BLAKE3 of a file, or the digest of an artifact.
    Saved {
        pipeline: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        file: String,
        path: String,
        blake3: String,
    },
    /// A [`Partial`].
    Partial {
        pipeline: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        file: String,
        cell: String,
        key: String,
        stage: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        matrix: Vec<(String, Json)>,
        outputs: OutputRecords,
        seconds: f64,
    },
    /// The artifacts of the results from here on may be in the memory of this boot of the machine only.
    Unsynced {
        boot: String,
    },
    /// The artifacts of all results before are on disk.
    Synced,
}

impl Record {
    pub(super) fn current(pipeline: &PipelineId, cell: &str, current: Current) -> Self {
        let (PipelineId { name: pipeline, file }, Current { key, stage, matrix }) =
            (pipeline.clone(), current);
        Self::Current { pipeline, file, cell: cell.to_owned(), key, stage, matrix }
    }

    pub(super) fn begun(pipeline: &PipelineId, cell: &str, key: &str) -> Self {
        let PipelineId { name: pipeline, file } = pipeline.clone();
        Self::Begun { pipeline, file, cell: cell.to_owned(), key: key.to_owned() }
    }

    pub(super) fn saved(pipeline: &PipelineId, path: String, blake3: &str) -> Self {
        let PipelineId { name: pipeline, file } = pipeline.clone();
        Self::Saved { pipeline, file, path, blake3: blake3.to_owned() }
    }

    pub(super) fn partial(pipeline: &PipelineId, cell: &str, partial: Partial) -> Self {
        let PipelineId { name: pipeline, file } = pipeline.clone();
        let Partial { current: Current { key, stage, matrix }, outputs, seconds } = partial;
        Self::Partial { pipeline, file, cell: cell.to_owned(), key, stage, matrix, outputs, seconds }
    }
}

impl OutputRecord {
    /// Describes an artifact that was written.
    pub(crate) fn of(folder: &Folder) -> Result<Self, DurableError> {
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

/// A record as the log has it.
pub(super) fn line(record: &Record) -> String {
    // Records are plain data with text keys: they always have a form in JSON.
    let mut line = serde_json::to_string(record).unwrap_or_default();
    line.push('\n');
    line
}

/// Stage and matrix of a cell, from its name alone.
pub(super) fn names(cell: &str) -> (String, Vec<(String, Json)>) {
    let Some((stage, rest)) = cell.split_once('[') else { return (cell.to_owned(), Vec::new()) };
    let pairs = rest.trim_end_matches(']').split(',').filter_map(|pair| pair.split_once('='));
    let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Json::String(text.to_owned()));
    (stage.to_owned(), pairs.map(|(key, text)| (key.to_owned(), value(text))).collect())
}

/// Begins the place of a pipeline that comes with hopmap.
const EMBEDDED_PLACE: &str = "embedded:";

/// By what a store knows a pipeline.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PipelineId {
    /// Its name.
    pub(crate) name: String,
    /// Its file: relative to the folder that holds the store, absolute if it is not below that. `embedded:NAME` if it comes
    /// with hopmap, empty if an older version ran it, which wrote down the name alone.
    pub(crate) file: String,
}

impl PipelineId {
    /// What the store in a folder knows a pipeline by.
    pub(crate) fn of(pipeline: &Pipeline, root: &Path) -> Self {
        Self::of_file(&pipeline.name, pipeline.file(), pipeline.source.name(), root)
    }

    /// The same of a name and a file; without one, of what comes with hopmap as `embedded`.
    pub(crate) fn of_file(name: &str, file: Option<PathBuf>, embedded: &str, root: &Path) -> Self {
        let file = file.map_or_else(|| format!("{EMBEDDED_PLACE}{embedded}"), |file| beside(root, &file));
        Self { name: name.to_owned(), file }
    }

    /// What an older version knew it by.
    pub(super) fn without_file(&self) -> Self {
        Self { name: self.name.clone(), file: String::new() }
    }

    /// Those whose copies it may replace: itself, and the pipeline of its name that comes with hopmap, as which it may have begun.
    pub(super) fn and_embedded(&self) -> [Self; 2] {
        let file = format!("{EMBEDDED_PLACE}{}", self.name);
        [self.clone(), Self { name: self.name.clone(), file }]
    }

    /// What a copy that it saves is marked with: its name, and the path from the copy to its file, which is the same whatever store it
    /// is run with.
    pub(super) fn beside_copy(&self, copy: &Path, root: &Path) -> String {
        let file = match self.file.is_empty() || self.file.starts_with(EMBEDDED_PLACE) {
            true => PathBuf::from(&self.file),
            false => path_between(copy, &holder(root).join(&self.file)),
        };
        format!("{}\n{}", self.name, file.display())
    }

    /// What follows its file or its name in `place:quality[seed=1]`.
    pub(crate) fn strip<'a>(&self, name: &'a str) -> Option<&'a str> {
        let own = [&self.file, &self.name].into_iter().filter(|own| !own.is_empty());
        own.into_iter().find_map(|own| name.strip_prefix(own.as_str())?.strip_prefix(':'))
    }

    /// Whether its file is not there any more, or was never recorded: what it still uses is unknown.
    pub(crate) fn is_gone(&self, root: &Path) -> bool {
        match self.file.strip_prefix(EMBEDDED_PLACE) {
            Some(name) => EMBEDDED.iter().all(|embedded| embedded.name != name),
            None => self.file.is_empty() || !holder(root).join(&self.file).is_file(),
        }
    }

    /// Eight digits that distinguish it from others of its name.
    pub(crate) fn digits(&self) -> String {
        let text = format!("{}\n{}", self.name, self.file);
        blake3::hash(text.as_bytes()).to_hex()[..8].to_owned()
    }
}

impl fmt::Display for PipelineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file.strip_prefix(EMBEDDED_PLACE) {
            Some(_) => write!(f, "`{}`, which comes with hopmap", self.name),
            None if self.file.is_empty() => write!(f, "`{}` of an older version of hopmap", self.name),
            None => write!(f, "`{}` of {}", self.name, self.file),
        }
    }
}

/// The folder that holds a store.
fn holder(root: &Path) -> PathBuf {
    canonical(root.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

/// A path as stored, relative if possible, because the folder that holds the store may be moved.
pub(super) fn beside(root: &Path, path: &Path) -> String {
    let path = canonical(path);
    path.strip_prefix(holder(root)).unwrap_or(&path).display().to_string()
}

/// The path from the folder of one file to another file, whose path has no links.
fn path_between(from: &Path, to: &Path) -> PathBuf {
    let from = canonical(from);
    relative(to, from.parent().unwrap_or(Path::new("")))
}

/// A path without links; of something that is not there, as far as its folder is.
fn canonical(path: &Path) -> PathBuf {
    let of_folder = || Some(std::fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?));
    std::fs::canonicalize(path).ok().or_else(of_folder).unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_has_stage_and_matrix() {
        assert_eq!(names("program"), ("program".to_owned(), vec![]));
        let matrix = vec![("mapper".to_owned(), json!("annealing")), ("seed".to_owned(), json!(3))];
        assert_eq!(names("placement[mapper=annealing,seed=3]"), ("placement".to_owned(), matrix));
    }

    #[test]
    fn what_is_beside_a_store_moves_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join(".hopmap");
        std::fs::create_dir(folder.path().join("lu")).unwrap();
        assert_eq!(beside(&root, &folder.path().join("lu/../lu/place.toml")), "lu/place.toml");
        assert_eq!(beside(&folder.path().join("lu/.hopmap"), Path::new("/etc/hosts")), "/etc/hosts");
    }

    #[test]
    fn a_copy_distinguishes_pipelines_of_one_name_in_any_store() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().canonicalize().unwrap();
        std::fs::create_dir(here.join("out")).unwrap();
        let copy = here.join("out/rankfile");
        let seen = |file: &str, root: &str| {
            let id = PipelineId { name: "place".into(), file: file.into() };
            id.beside_copy(&copy, &here.join(root))
        };
        assert_eq!(seen("place.toml", ".hopmap"), "place\n../place.toml");
        assert_eq!(seen("out/place.toml", ".hopmap"), "place\nplace.toml");
        let absolute = here.join("place.toml").display().to_string();
        assert_eq!(seen(&absolute, "out/.hopmap"), "place\n../place.toml");
        assert_eq!(seen("embedded:place", ".hopmap"), "place\nembedded:place");
    }

    #[test]
    fn pipelines_of_one_name_have_other_digits() {
        let id = |file: &str| PipelineId { name: "place".into(), file: file.into() };
        assert_ne!(id("a/place.toml").digits(), id("b/place.toml").digits());
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join(".hopmap");
        assert!(!id("embedded:place").is_gone(&root) && id("embedded:no").is_gone(&root));
        assert!(id("").is_gone(&root) && id("place.toml").is_gone(&root));
        std::fs::write(folder.path().join("place.toml"), "").unwrap();
        assert!(!id("place.toml").is_gone(&root));
    }
}
