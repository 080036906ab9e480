//! Two artifacts of one kind: metrics, then by meaning where the kind has one, else table by table and file by file.

use std::collections::BTreeMap;

use hopmap_artifact::{ArtifactError, Folder};
use hopmap_changes::{Change, Machine, Thresholds, changes};
use hopmap_model::{Artifact, Mapping, Schedule, SystemGraph, TaskGraph};
use serde::Serialize;
use serde_json::Value as Json;

use crate::common::{Compared, names, percent};
use crate::edges::GraphChanges;
use crate::mapping::MappingChanges;
use crate::schedule::ScheduleChanges;
use crate::tables::{FileChange, TableChanges};
use crate::{edges, mapping, schedule, tables};

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
    found.extend(tables::compare_files(before.folder, after.folder)?.into_iter().map(Contents::File));
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

/// A metric that is different.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricChange {
    /// Its name.
    pub name: String,
    /// Its value before; none if there was none.
    pub before: Option<f64>,
    /// Its value after; none if there is none.
    pub after: Option<f64>,
    /// (after − before) / |before|; none where that is no number.
    pub relative: Option<f64>,
}

/// The metrics that are different, the largest relative change first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct MetricChanges {
    /// Those whose relative change reaches the threshold.
    pub changed: Vec<MetricChange>,
    /// Number of those that changed by less.
    pub below_threshold: usize,
}

/// The metrics that are different. One that is new, gone or was zero counts as changed by more than any other.
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
        let value =
            |value: Option<f64>| value.map_or_else(|| "nothing".to_owned(), |value| value.to_string());
        let relative =
            self.relative.map_or_else(String::new, |relative| format!("  ({})", percent(relative)));
        format!("{:<28} {} → {}{relative}", self.name, value(self.before), value(self.after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_change_is_first_and_small_ones_are_hidden() {
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
