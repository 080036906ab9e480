//! Compares two artifacts of one kind: metrics, then semantically if the kind supports it, then table by
//! table and file by file.

use std::collections::BTreeMap;

use hopmap_artifact::{ArtifactError, Folder};
use hopmap_changes::{Change, Machine, Thresholds, changes};
use hopmap_model::{Artifact, Mapping, Schedule, SystemGraph, TaskGraph};
use serde::Serialize;
use serde_json::Value as Json;

use crate::common::{Compared, names, percent};
use crate::edges::{self, GraphChanges};
use crate::mapping::{self, MappingChanges};
use crate::schedule::{self, ScheduleChanges};
use crate::tables::{self, FileChange, TableChanges};

/// The differences between two artifacts of one kind.
#[derive(Debug, Clone, Serialize)]
pub struct ArtifactChanges {
    /// Metrics that differ.
    pub metrics: MetricChanges,
    /// Attributes that differ: name, old and new value.
    pub attributes: Vec<(String, Json, Json)>,
    /// Differences of the contents; `None` if the artifacts are equal.
    pub contents: Vec<Contents>,
}

/// Differences of the contents, semantic if the kind supports it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contents {
    /// Of two task graphs.
    TaskGraph(GraphChanges),
    /// Of two mappings.
    Mapping(MappingChanges),
    /// Of two machines, as JSON with text.
    SystemGraph(Vec<Json>),
    /// Of two schedules.
    Schedule(ScheduleChanges),
    /// Of two tables of any kind.
    Table(TableChanges),
    /// Of two files.
    File(FileChange),
}

/// Compares two artifacts of one kind after verifying every byte of both, because digests do not reveal
/// damage. Relative changes of metrics below the threshold are omitted.
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

/// Differences of the contents: semantic, then tables and files that the semantic comparison does not cover.
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
    found.extend(tables::compare_files(before.folder, after.folder)?.into_iter().map(Contents::File));
    Ok(found)
}

/// The differences between two machines, as `hopmap topology diff` reports them.
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
    /// The differences as lines of text.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        match self {
            Self::TaskGraph(changes) => changes.words(),
            Self::Mapping(changes) => changes.words(),
            Self::SystemGraph(changes) => {
                let text = |change: &Json| change.get("text").and_then(Json::as_str).map(str::to_owned);
                let lines: Vec<String> = changes.iter().filter_map(text).collect();
                match lines.is_empty() {
                    true => vec![
                        "the same hosts, switches and links, but in another order or with other numbers"
                            .to_owned(),
                    ],
                    false => lines,
                }
            }
            Self::Schedule(changes) => changes.words(),
            Self::Table(changes) => changes.words(),
            Self::File(change) => change.words(),
        }
    }
}

/// A metric that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricChange {
    /// Its name.
    pub name: String,
    /// Its value before; `None` if it is new.
    pub before: Option<f64>,
    /// Its value after; `None` if it is gone.
    pub after: Option<f64>,
    /// (after − before) / |before|; `None` if not finite.
    pub relative: Option<f64>,
}

/// The metrics that differ, the largest relative change first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct MetricChanges {
    /// Those whose relative change reaches the threshold.
    pub changed: Vec<MetricChange>,
    /// Number of metrics that changed by less.
    pub below_threshold: usize,
}

/// The metrics that differ. A metric that is new, gone or was zero counts as the largest change.
#[must_use]
pub fn metric_changes(
    before: &BTreeMap<String, f64>,
    after: &BTreeMap<String, f64>,
    threshold: f64,
) -> MetricChanges {
    let change = |name: &String| {
        let (before, after) = (before.get(name).copied(), after.get(name).copied());
        (before.map(f64::to_bits) != after.map(f64::to_bits)).then(|| MetricChange {
            name: name.clone(),
            relative: before.zip(after).and_then(|(before, after)| relative(before, after)),
            before,
            after,
        })
    };
    let mut changed: Vec<MetricChange> = names(before, after).into_iter().filter_map(change).collect();
    let size = |change: &MetricChange| change.relative.map_or(f64::INFINITY, f64::abs);
    changed.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let all = changed.len();
    changed.retain(|change| size(change) >= threshold);
    MetricChanges { below_threshold: all - changed.len(), changed }
}

fn relative(before: f64, after: f64) -> Option<f64> {
    Some((after - before) / before.abs()).filter(|relative| relative.is_finite())
}

impl MetricChange {
    /// Old and new value and the relative change.
    #[must_use]
    pub fn words(&self) -> String {
        let value = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |value| value.to_string());
        let relative =
            self.relative.map_or_else(String::new, |relative| format!("  ({})", percent(relative)));
        format!("{:<28} {} → {}{relative}", self.name, value(self.before), value(self.after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_change_is_first_and_small_changes_are_hidden() {
        let metrics = |pairs: &[(&str, f64)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect::<BTreeMap<_, _>>()
        };
        let before = metrics(&[("F", 100.0), ("T", 10.0), ("same", 1.0), ("small", 1000.0), ("zero", 0.0)]);
        let after = metrics(&[
            ("F", 110.0),
            ("T", 5.0),
            ("same", 1.0),
            ("small", 1001.0),
            ("zero", 1.0),
            ("new", 1.0),
        ]);
        let found = metric_changes(&before, &after, 0.01);
        let names: Vec<&str> = found.changed.iter().map(|change| change.name.as_str()).collect();
        assert_eq!(names, ["new", "zero", "T", "F"]);
        assert_eq!(found.below_threshold, 1);
        assert_eq!(
            found.changed[2].words().split_whitespace().collect::<Vec<_>>().join(" "),
            "T 10 → 5 (-50.0 %)"
        );
        assert_eq!(metric_changes(&before, &before, 0.0), MetricChanges::default());
    }
}
