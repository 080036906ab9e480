//! Provenance of an artifact: the chain of stages back to the input files, as far as it is known. An exported file is traced to its
//! artifact by its bytes, or by the comment in it.
//!
//! Every artifact of a store has a `provenance.json`, which is not part of its digest: the cell that produced it, its key and what
//! entered the key. It names inputs by digest, so the chain leads from folder to folder.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use hopmap_artifact::{DESCRIPTION, Folder, PROVENANCE};
use hopmap_durable::DurableError;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::engine::{Key, Manifest, ResultRecord, RunSummary, Store};
use crate::registry;

/// Artifacts and their origins, from one of them back to the input files.
#[derive(Debug, Serialize)]
pub(crate) struct Provenance {
    /// Digest of the artifact at the end of the chain.
    pub(crate) root: String,
    /// Every artifact once, before its inputs.
    pub(crate) artifacts: Vec<Origin>,
}

/// An artifact and its origin.
#[derive(Debug, Serialize)]
pub(crate) struct Origin {
    /// Its digest.
    pub(crate) digest: String,
    /// Its kind, if it exists or the log of the store has it.
    pub(crate) kind: Option<String>,
    /// Its folder, if it exists.
    pub(crate) path: Option<PathBuf>,
    /// Its origin, if that is known.
    pub(crate) made: Option<Made>,
    /// Why the chain ends here, unless it ends with input files.
    pub(crate) ends: Option<String>,
}

/// The origin of an artifact.
#[derive(Debug, Serialize)]
pub(crate) struct Made {
    /// The cell that produced it first.
    pub(crate) cell: String,
    /// Kind of the stage.
    pub(crate) stage: String,
    /// Revision of the stage.
    pub(crate) revision: u32,
    /// Parameters that differ from their defaults.
    pub(crate) parameters: BTreeMap<String, Json>,
    /// Input ports and digests of their artifacts.
    pub(crate) inputs: Vec<Input>,
    /// Names of the input files and their BLAKE3.
    pub(crate) files: Vec<InputFile>,
    /// Key of the result.
    pub(crate) key: String,
    /// Version of hopmap that produced it, if that is known.
    pub(crate) hopmap: Option<String>,
    /// The run that produced it, if its journal exists.
    pub(crate) run: Option<ProducingRun>,
}

/// An artifact that another one was computed from.
#[derive(Debug, Serialize)]
pub(crate) struct Input {
    /// The input port.
    pub(crate) port: String,
    /// Digest of the artifact.
    pub(crate) digest: String,
}

/// An input file of an artifact.
#[derive(Debug, Serialize)]
pub(crate) struct InputFile {
    /// Its name, as far as it matters.
    pub(crate) name: String,
    /// BLAKE3 of its contents.
    pub(crate) blake3: String,
}

/// A run that produced an artifact.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ProducingRun {
    /// Its name.
    pub(crate) run: String,
    /// The pipeline.
    pub(crate) pipeline: String,
    /// When it began, in UTC.
    pub(crate) time: String,
}

/// The contents of `provenance.json`.
#[derive(Deserialize)]
struct Written {
    cell: String,
    key: String,
    manifest: Manifest,
    hopmap: String,
}

/// Keys and artifacts of a store; the default is no store.
#[derive(Default)]
pub(crate) struct Memory<'a> {
    store: Option<&'a Store>,
    results: HashMap<&'a str, &'a ResultRecord>,
    cells: HashMap<&'a str, &'a str>,
    runs: HashMap<&'a str, ProducingRun>,
}

impl<'a> Memory<'a> {
    /// Reads a store and the journals of its runs.
    pub(crate) fn of(store: &'a Store, runs: &'a [RunSummary]) -> Self {
        let mut results: HashMap<&str, &ResultRecord> = HashMap::new();
        for result in store.results() {
            for output in result.outputs.values() {
                // Several keys can have the same artifact: always report the same one.
                let kept = results.entry(&output.digest).or_insert(result);
                *kept = if result.key < kept.key { result } else { *kept };
            }
        }
        let mut cells: HashMap<&str, &str> = HashMap::new();
        for (_, cell, current) in store.all_current() {
            let kept = cells.entry(&current.key).or_insert(cell);
            *kept = (*kept).min(cell);
        }
        let mut by_key: HashMap<&str, ProducingRun> = HashMap::new();
        for run in runs {
            let made = run.stages.iter().filter(|stage| stage.state != "cached");
            for key in made.filter_map(|stage| stage.key.as_deref()) {
                by_key.entry(key).or_insert_with(|| ProducingRun {
                    run: run.run.clone(),
                    pipeline: run.pipeline.clone(),
                    time: run.time.clone(),
                });
            }
        }
        Self { store: Some(store), results, cells, runs: by_key }
    }

    /// Whether the store has or had an artifact.
    pub(crate) fn knows(&self, digest: &str) -> bool {
        self.results.contains_key(digest) || self.folder(digest).is_some()
    }

    /// The artifact's folder in the store, if it exists.
    fn folder(&self, digest: &str) -> Option<PathBuf> {
        let folder = self.store?.artifact(digest);
        folder.join(DESCRIPTION).is_file().then_some(folder)
    }
}

/// Follows an artifact back to the input files. `folder` is where it is, if that is not in the store.
pub(crate) fn trace(root: &str, folder: Option<&Path>, memory: &Memory<'_>) -> Provenance {
    let mut artifacts: Vec<Origin> = Vec::new();
    let mut seen = HashSet::from([root.to_owned()]);
    let mut waiting = vec![(root.to_owned(), folder.map(Path::to_owned))];
    while let Some((digest, folder)) = waiting.pop() {
        let origin = origin(digest, folder, memory);
        let inputs = origin.made.iter().flat_map(|made| &made.inputs);
        let new: Vec<String> =
            inputs.map(|input| input.digest.clone()).filter(|digest| seen.insert(digest.clone())).collect();
        // The last one is next.
        waiting.extend(new.into_iter().rev().map(|digest| (digest, None)));
        artifacts.push(origin);
    }
    Provenance { root: root.to_owned(), artifacts }
}

fn origin(digest: String, folder: Option<PathBuf>, memory: &Memory<'_>) -> Origin {
    let path = folder.or_else(|| memory.folder(&digest));
    let record = memory.results.get(digest.as_str()).copied();
    let described = path.as_deref().and_then(|path| Folder::open(path).ok());
    let recorded = record.and_then(|result| result.outputs.values().find(|output| output.digest == digest));
    let kind = described
        .map(|folder| folder.description().kind.clone())
        .or_else(|| recorded.map(|output| output.kind.clone()));
    let written = path.as_deref().map_or(Ok(None), |path| read(&path.join(PROVENANCE)));
    let (made, ends) = match (written, record) {
        (Ok(Some(Written { cell, key, manifest, hopmap })), _) => {
            (Some(made(cell, key, manifest, Some(hopmap), memory)), None)
        }
        // The log of the store still has artifacts that were removed.
        (_, Some(result)) => match result.manifest() {
            Some(manifest) => {
                let cell = memory.cells.get(result.key.as_str()).copied().unwrap_or("?");
                (Some(made(cell.to_owned(), result.key.clone(), manifest, None, memory)), None)
            }
            None => (None, Some("another version of hopmap recorded its origin".to_owned())),
        },
        (Err(reason), None) => (None, Some(reason)),
        (Ok(None), None) => (None, Some(unknown(path.as_deref(), memory))),
    };
    Origin { digest, kind, path, made, ends }
}

fn unknown(path: Option<&Path>, memory: &Memory<'_>) -> String {
    match (path, memory.store) {
        (Some(_), _) => format!("its folder has no {PROVENANCE}"),
        (None, Some(_)) => "it is not in this store, or was removed".to_owned(),
        (None, None) => "there is no store to look it up in".to_owned(),
    }
}

/// Reads `provenance.json`, if there is one; an error if it does not match the key in it.
fn read(path: &Path) -> Result<Option<Written>, String> {
    let Ok(text) = std::fs::read_to_string(path) else { return Ok(None) };
    let damaged = || format!("its {PROVENANCE} is damaged");
    let written: Written = serde_json::from_str(&text).map_err(|_| damaged())?;
    if Key::parse(&written.key) == Some(written.manifest.key()) { Ok(Some(written)) } else { Err(damaged()) }
}

fn made(cell: String, key: String, manifest: Manifest, hopmap: Option<String>, memory: &Memory<'_>) -> Made {
    let parameters = not_default(&manifest);
    let inputs = manifest.inputs.into_iter().flat_map(|(port, inputs)| {
        inputs.into_iter().map(move |input| Input { port: port.clone(), digest: input.digest })
    });
    Made {
        run: memory.runs.get(key.as_str()).cloned(),
        inputs: inputs.collect(),
        files: manifest.files.into_iter().map(|(name, blake3)| InputFile { name, blake3 }).collect(),
        stage: manifest.kind,
        revision: manifest.revision,
        parameters,
        cell,
        key,
        hopmap,
    }
}

/// Parameters that differ from the defaults in the schema of the stage.
fn not_default(manifest: &Manifest) -> BTreeMap<String, Json> {
    let schema = registry::stage(&manifest.kind).map(|entry| &entry.schema["properties"]);
    let default = |name: &str| schema.map_or(&Json::Null, |schema| &schema[name]["default"]);
    let given = manifest.parameters.as_object().into_iter().flatten();
    // Paths never enter a key; the files behind them do, by name and contents.
    let is_path = |value: &Json| value.as_str() == Some("(path)");
    let differs =
        |(name, value): &(&String, &Json)| !value.is_null() && !is_path(value) && *value != default(name);
    given.filter(differs).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Bytes at the beginning of a file that are searched for a comment.
const HEAD: u64 = 64 << 10;

/// The artifact that a file was exported from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileOrigin {
    /// It is identical to a file of this artifact.
    Bytes {
        /// Digest of the artifact.
        digest: String,
    },
    /// A comment in it names its artifact.
    Comment {
        /// Kind of the artifact.
        kind: String,
        /// Its digest.
        digest: String,
    },
}

/// Finds the artifact of a file, if its bytes or a comment identify it.
pub(crate) fn origin_of(path: &Path, store: Option<&Store>) -> Result<Option<FileOrigin>, DurableError> {
    let read = || DurableError::io("read", path);
    let mut file = File::open(path).map_err(|error| read()(error))?;
    let size = file.metadata().map_err(|error| read()(error))?.len();
    let mut head = Vec::new();
    (&mut file).take(HEAD).read_to_end(&mut head).map_err(|error| read()(error))?;
    if let Some(store) = store {
        let candidates = candidates(store, size);
        if !candidates.is_empty() {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&head);
            hasher.update_reader(file).map_err(|error| read()(error))?;
            let hash = hasher.finalize().to_hex();
            let is_it = |(digest, name): &&(&str, &str)| {
                let folder = Folder::open(&store.artifact(digest)).ok();
                folder.is_some_and(|folder| {
                    folder.description().files.get(*name).is_some_and(|found| *found == *hash)
                })
            };
            if let Some((digest, _)) = candidates.iter().find(is_it) {
                return Ok(Some(FileOrigin::Bytes { digest: (*digest).to_owned() }));
            }
        }
    }
    Ok(comment(&String::from_utf8_lossy(&head)).map(|(kind, digest)| FileOrigin::Comment { kind, digest }))
}

/// Artifacts of a store with a file of this size and the names of these files, in a fixed order.
fn candidates(store: &Store, size: u64) -> Vec<(&str, &str)> {
    let outputs = store.results().flat_map(|result| result.outputs.values());
    let files = outputs.flat_map(|output| output.files.iter().map(move |file| (output, file)));
    let fitting = files.filter(|(_, (_, bytes))| *bytes == size);
    let named = fitting
        .filter_map(|(output, (name, _))| Some((output.digest.as_str(), name.strip_prefix("files/")?)));
    let mut found: Vec<(&str, &str)> = named.collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The first `hopmap KIND DIGEST` in a text.
fn comment(text: &str) -> Option<(String, String)> {
    let is_digest = |word: &str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let found = words.windows(3).find(|words| words[0] == "hopmap" && is_digest(words[2]))?;
        Some((found[1].to_owned(), found[2].to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn manifest(parameters: Json) -> Manifest {
        Manifest {
            kind: "map/annealing".into(),
            revision: 1,
            parameters,
            inputs: Vec::new(),
            files: Vec::new(),
        }
    }

    #[test]
    fn only_what_is_not_the_default_is_told() {
        let default =
            registry::stage("map/annealing").unwrap().schema["properties"]["seed"]["default"].clone();
        assert!(default.is_number(), "{default}");
        let others = not_default(&manifest(json!({ "seed": default, "evaluations": 17, "pinned": null })));
        assert_eq!(others, BTreeMap::from([("evaluations".to_owned(), json!(17))]));
    }

    #[test]
    fn a_changed_provenance_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(PROVENANCE);
        assert!(read(&path).unwrap().is_none());
        let manifest = manifest(json!({ "seed": 1 }));
        let mut written =
            json!({ "cell": "a", "key": manifest.key().to_string(), "manifest": manifest, "hopmap": "0" });
        std::fs::write(&path, written.to_string()).unwrap();
        assert_eq!(read(&path).unwrap().unwrap().cell, "a");
        written["manifest"]["parameters"]["seed"] = json!(2);
        std::fs::write(&path, written.to_string()).unwrap();
        assert!(read(&path).is_err());
        std::fs::write(&path, "{").unwrap();
        assert!(read(&path).is_err());
    }

    #[test]
    fn comments_are_found_in_whatever_form() {
        let digest = "0123456789abcdef".repeat(4);
        let found = Some(("mapping".to_owned(), digest.clone()));
        assert_eq!(comment(&format!("# hopmap mapping {digest}\nn01\n")), found);
        assert_eq!(comment(&format!("<?xml?>\n<!-- hopmap mapping {digest} -->")), found);
        assert_eq!(comment(&format!("# hopmap mapping {digest}0")), None);
        assert_eq!(comment("hopmap"), None);
    }

    #[test]
    fn a_file_without_a_comment_came_from_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
        assert_eq!(origin_of(&path, None).unwrap(), None);
        assert!(origin_of(folder.path().join("y").as_path(), None).is_err());
    }
}
