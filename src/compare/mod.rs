//! What is different between two artifacts, or between two runs, and why.
//!
//! Knows artifacts and what their keys were made of, and nothing of pipeline files. Kinds with a meaning are compared by it
//! ([`Contents`]), all others table by table.
//!
//! # Parts
//!
//! `src/compare` compares two artifacts of a kind (`artifacts`) or the cells of two runs (`runs`). It knows artifacts and the manifests
//! of their keys, and no pipeline files; `src/cli/diff.rs` decides what a name stands for (`src/cli/cells.rs` which cells, for all commands)
//! and prints. Why two artifacts differ is read off their manifests (`provenance.json`, or the result of the cell that was named); inputs are found beside the artifact in its store.
//! Edges and rows that stand in the order of a key are merged as they are read, so memory does not grow with them. Lines of files are
//! compared by the crate `similar`, which insta brings anyway; five thousand lines are the most, as its time grows with their square.

mod edges;
mod files;
mod levels;
mod mapping;
mod metrics;
mod origin;
mod runs;
mod schedule;
mod tables;

use std::path::{Path, PathBuf};

use hopmap_artifact::{ArtifactError, Folder, PROVENANCE};
use hopmap_changes::{Machine, Thresholds, changes};
use hopmap_model::{Artifact, Mapping, Schedule, SystemGraph, TaskGraph};
use serde::Serialize;
use serde_json::Value as Json;

use crate::engine::Manifest;
use crate::refresh::change_as_json;

pub use edges::{EdgeChange, GraphChanges, Traffic};
pub use files::FileChange;
pub use levels::{LevelCost, LevelShare};
pub use mapping::{MappingChanges, Move};
pub use metrics::{MetricChange, MetricChanges, metric_changes};
pub use origin::{Cause, origin};
pub use runs::{CellChange, CellState, FirstCause, RunChanges, StageSummary, runs};
pub use schedule::{ScheduleChanges, TaskChange};
pub use tables::{RowChange, TableChanges};

/// Items of a list that are shown to people.
const MOST_SHOWN: usize = 10;

/// One of two artifacts.
#[derive(Debug, Clone)]
pub struct Side {
    /// The artifact.
    pub folder: Folder,
    /// What its key was made of, if that is known.
    pub manifest: Option<Manifest>,
}

impl Side {
    /// Opens an artifact; what it was made from stands beside it.
    pub fn open(path: &Path) -> Result<Self, ArtifactError> {
        let folder = Folder::open(path)?;
        let manifest = std::fs::read(path.join(PROVENANCE))
            .ok()
            .and_then(|text| serde_json::from_slice::<Json>(&text).ok())
            .and_then(|provenance| serde_json::from_value(provenance.get("manifest")?.clone()).ok());
        Ok(Self { folder, manifest })
    }

    /// An artifact that it was made from, if it is still in the same store.
    fn input(&self, digest: &str) -> Option<Self> {
        Self::open(&self.folder.path().parent()?.join(digest)).ok()
    }

    /// The first input of a kind.
    fn input_of(&self, kind: &str) -> Option<PathBuf> {
        let inputs =
            self.manifest.iter().flat_map(|manifest| &manifest.inputs).flat_map(|(_, inputs)| inputs);
        let mut sides = inputs.filter_map(|input| self.input(&input.digest));
        let found = sides.find(|side| side.folder.description().kind == kind)?;
        Some(found.folder.path().to_owned())
    }
}

/// How to compare.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// Relative changes of metrics that are smaller are left out.
    pub threshold: f64,
    /// Whether causes are followed to the first ones.
    pub is_deep: bool,
}

/// What is different between two artifacts of one kind.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// Kind of both.
    pub kind: String,
    /// Digest of the first.
    pub before: String,
    /// Digest of the second.
    pub after: String,
    /// Why they are different: parameters, inputs, files, revisions.
    pub causes: Vec<Cause>,
    /// Whether it is known how both were made.
    pub origin_known: bool,
    /// Metrics that are different.
    pub metrics: MetricChanges,
    /// Attributes that are different: name, old and new value.
    pub attributes: Vec<(String, Json, Json)>,
    /// What is different inside; none if the artifacts are the same.
    pub contents: Vec<Contents>,
}

/// What is different inside two artifacts, by meaning where the kind has one.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contents {
    /// Of two task graphs.
    TaskGraph(GraphChanges),
    /// Of two mappings.
    Mapping(MappingChanges),
    /// Of two machines, each change with its text.
    SystemGraph(Vec<Json>),
    /// Of two schedules.
    Schedule(ScheduleChanges),
    /// Of two tables of any kind.
    Table(TableChanges),
    /// Of two files.
    File(FileChange),
}

impl Comparison {
    /// Whether the artifacts are different.
    #[must_use]
    pub fn is_different(&self) -> bool {
        self.before != self.after
    }
}

/// Compares two artifacts of one kind, after a look at every byte of both: a digest tells nothing of what is damaged.
pub fn artifacts(before: &Side, after: &Side, settings: Settings) -> Result<Comparison, ArtifactError> {
    before.folder.verify()?;
    if after.folder.path() != before.folder.path() {
        after.folder.verify()?;
    }
    let (old, new) = (before.folder.description(), after.folder.description());
    let is_same = before.folder.digest() == after.folder.digest();
    let names: std::collections::BTreeSet<&String> =
        old.attributes.keys().chain(new.attributes.keys()).collect();
    let attribute = |name: &String| {
        let of = |all: &std::collections::BTreeMap<String, Json>| all.get(name).cloned().unwrap_or_default();
        let (old, new) = (of(&old.attributes), of(&new.attributes));
        (old != new).then(|| (name.clone(), old, new))
    };
    Ok(Comparison {
        kind: old.kind.clone(),
        before: before.folder.digest().to_owned(),
        after: after.folder.digest().to_owned(),
        causes: origin(before, after, settings.is_deep),
        origin_known: before.manifest.is_some() && after.manifest.is_some(),
        metrics: metric_changes(&old.metrics, &new.metrics, settings.threshold),
        attributes: names.into_iter().filter_map(attribute).collect(),
        contents: if is_same { Vec::new() } else { contents(before, after)? },
    })
}

/// What is different inside: by meaning, then the tables and files that no meaning covers.
fn contents(before: &Side, after: &Side) -> Result<Vec<Contents>, ArtifactError> {
    let kind = before.folder.description().kind.as_str();
    let (meant, covered): (Option<Contents>, &[&str]) = match kind {
        TaskGraph::KIND => {
            let found = edges::compare(&before.folder, &after.folder)?;
            (found.is_different().then_some(Contents::TaskGraph(found)), &["edges"])
        }
        Mapping::KIND => (mapping::compare(before, after)?.map(Contents::Mapping), &["ranks", "convergence"]),
        SystemGraph::KIND => return Ok(vec![Contents::SystemGraph(machines(before, after)?)]),
        Schedule::KIND => {
            let found =
                schedule::compare(&Folder::read(before.folder.path())?, &Folder::read(after.folder.path())?);
            (Some(Contents::Schedule(found)), &["tasks", "convergence"])
        }
        _ => (None, &[]),
    };
    let mut found: Vec<Contents> = meant.into_iter().collect();
    found.extend(tables::compare(&before.folder, &after.folder, covered)?.into_iter().map(Contents::Table));
    found.extend(files::compare(&before.folder, &after.folder)?.into_iter().map(Contents::File));
    Ok(found)
}

/// What is different between two machines, in the words of `hopmap topology diff`.
fn machines(before: &Side, after: &Side) -> Result<Vec<Json>, ArtifactError> {
    let read = |side: &Side| {
        let system: SystemGraph = Folder::read(side.folder.path())?;
        Ok::<_, ArtifactError>(Machine { system, measurements: None })
    };
    let found = changes(
        &read(before)?.snapshot(),
        &read(after)?.snapshot(),
        &Thresholds { drift: 0.0, ..Thresholds::default() },
    );
    Ok(found.iter().map(change_as_json).collect())
}

impl Contents {
    /// What is different, line by line.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        match self {
            Self::TaskGraph(changes) => changes.words(),
            Self::Mapping(changes) => changes.words(),
            Self::SystemGraph(changes) => {
                let text = |change: &Json| change.get("text").and_then(Json::as_str).map(str::to_owned);
                let lines: Vec<String> = changes.iter().filter_map(text).collect();
                match lines.is_empty() {
                    true => vec!["the same hosts, switches and links, told in another order, with other numbers or ties".to_owned()],
                    false => lines,
                }
            }
            Self::Schedule(changes) => changes.words(),
            Self::Table(changes) => changes.words(),
            Self::File(change) => change.words(),
        }
    }
}

/// A line for what a list leaves out.
fn more(all: u64, shown: usize) -> Option<String> {
    let left = all.saturating_sub(shown as u64);
    (left > 0).then(|| format!("  … and {left} more"))
}
