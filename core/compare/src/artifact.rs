//! Two artifacts of one kind: by meaning where the kind has one, else table by table and file by file.

use std::collections::BTreeMap;

use hopmap_artifact::{ArtifactError, Folder};
use hopmap_changes::{Change, Machine, Thresholds, changes};
use hopmap_model::{Artifact, Mapping, Schedule, SystemGraph, TaskGraph};
use serde::Serialize;
use serde_json::Value as Json;

use crate::compared::Compared;
use crate::edges::{self, GraphChanges};
use crate::files::{self, FileChange};
use crate::mapping::{self, MappingChanges};
use crate::merge::names;
use crate::metrics::{MetricChanges, metric_changes};
use crate::schedule::{self, ScheduleChanges};
use crate::tables::{self, TableChanges};

/// What is different between two artifacts of one kind.
#[derive(Debug, Clone, Serialize)]
pub struct ArtifactChanges {
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

/// Compares two artifacts of one kind, after a look at every byte of both: a digest tells nothing of what is damaged. Relative
/// changes of metrics below the threshold are left out.
pub fn compare(
    before: &Compared<'_>,
    after: &Compared<'_>,
    threshold: f64,
) -> Result<ArtifactChanges, ArtifactError> {
    before.folder.verify()?;
    if after.folder.path() != before.folder.path() {
        after.folder.verify()?;
    }
    let (old, new) = (before.folder.description(), after.folder.description());
    let is_same = before.folder.digest() == after.folder.digest();
    let attribute = |name: &String| {
        let of = |all: &BTreeMap<String, Json>| all.get(name).cloned().unwrap_or_default();
        let (old, new) = (of(&old.attributes), of(&new.attributes));
        (old != new).then(|| (name.clone(), old, new))
    };
    Ok(ArtifactChanges {
        metrics: metric_changes(&old.metrics, &new.metrics, threshold),
        attributes: names(&old.attributes, &new.attributes).into_iter().filter_map(attribute).collect(),
        contents: if is_same { Vec::new() } else { contents(before, after)? },
    })
}

/// What is different inside: by meaning, then the tables and files that no meaning covers.
fn contents(before: &Compared<'_>, after: &Compared<'_>) -> Result<Vec<Contents>, ArtifactError> {
    let kind = before.folder.description().kind.as_str();
    let (meant, covered): (Option<Contents>, &[&str]) = match kind {
        TaskGraph::KIND => {
            let found = edges::compare(before.folder, after.folder)?;
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
    found.extend(tables::compare(before.folder, after.folder, covered)?.into_iter().map(Contents::Table));
    found.extend(files::compare(before.folder, after.folder)?.into_iter().map(Contents::File));
    Ok(found)
}

/// What is different between two machines, in the words of `hopmap topology diff`.
fn machines(before: &Compared<'_>, after: &Compared<'_>) -> Result<Vec<Json>, ArtifactError> {
    let read = |side: &Compared<'_>| {
        let system: SystemGraph = Folder::read(side.folder.path())?;
        Ok::<_, ArtifactError>(Machine { system, measurements: None })
    };
    let found = changes(
        &read(before)?.snapshot(),
        &read(after)?.snapshot(),
        &Thresholds { drift: 0.0, ..Thresholds::default() },
    );
    Ok(found.iter().map(Change::as_json).collect())
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
