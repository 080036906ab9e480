//! Differences between two artifacts or two runs, and their causes.
//!
//! This module compares what entered the keys of artifacts; `core/compare` compares their contents. Neither reads pipeline files.
//!
//! # Parts
//!
//! It compares two artifacts of one kind, or the cells of two runs. `src/cli/diff.rs` resolves names (cells with
//! `src/cli/locate.rs`, like all commands) and prints. Causes come from the manifests of both artifacts (`provenance.json`, or the
//! stored result of a cell), and inputs from the store of the artifact.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use hopmap_artifact::{ArtifactError, Folder, PROVENANCE};
use hopmap_compare::{
    ArtifactChanges, Compared, MOST_SHOWN, MetricChange, MetricChanges, compare, metric_changes, more,
    percent,
};
use hopmap_statistics::median;
use serde::Serialize;
use serde_json::Value as Json;

use crate::engine::{Catalogue, Manifest, OutputRecord, Reason, StoredCell, differences, different_inputs};

/// How to compare.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Settings {
    /// Smaller relative changes of metrics are left out.
    pub(crate) threshold: f64,
    /// Whether causes are followed through inputs to where the difference begins.
    pub(crate) is_deep: bool,
}

/// Differences between two artifacts of one kind.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Comparison {
    /// Kind of both.
    pub(crate) kind: String,
    /// Digest of the first.
    pub(crate) before: String,
    /// Digest of the second.
    pub(crate) after: String,
    /// Causes: parameters, inputs, files, revisions.
    pub(crate) causes: Vec<Cause>,
    /// Whether the provenance of both is known.
    pub(crate) origin_known: bool,
    /// Differences of their contents.
    #[serde(flatten)]
    pub(crate) changes: ArtifactChanges,
}

impl Comparison {
    /// Whether the artifacts are different.
    pub(crate) fn is_different(&self) -> bool {
        self.before != self.after
    }

    /// What the artifacts are about and do not share, in which case their metrics cannot be compared.
    pub(crate) fn subjects(&self) -> Vec<&'static str> {
        let has = |ports: &[&str]| {
            self.causes.iter().any(|cause| matches!(&cause.difference, Reason::Input { port, .. } if ports.contains(&port.as_str())))
        };
        let subjects = [
            ("another program", has(&["task-graph", "program", "task-dag"])),
            ("another machine", has(&["system"])),
        ];
        subjects.into_iter().filter(|(_, differ)| *differ).map(|(name, _)| name).collect()
    }
}

/// Compares two artifacts of one kind.
pub(crate) fn artifacts(
    before: &Side,
    after: &Side,
    settings: Settings,
) -> Result<Comparison, ArtifactError> {
    let inputs = [before, after].map(|side| |kind: &str| side.input_of(kind));
    let changes = compare(
        &Compared { folder: &before.folder, input: &inputs[0] },
        &Compared { folder: &after.folder, input: &inputs[1] },
        settings.threshold,
    )?;
    Ok(Comparison {
        kind: before.folder.description().kind.clone(),
        before: before.folder.digest().to_owned(),
        after: after.folder.digest().to_owned(),
        causes: origin(before, after, settings.is_deep),
        origin_known: before.manifest.is_some() && after.manifest.is_some(),
        changes,
    })
}

/// A difference between the origins of two artifacts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Cause {
    /// The difference.
    pub(crate) difference: Reason,
    /// Causes of a different input; empty if they are not known.
    pub(crate) because: Vec<Self>,
}

/// Differences between the origins of two artifacts, and the causes of different inputs one level down, or to the first causes if
/// `is_deep`.
pub(crate) fn origin(before: &Side, after: &Side, is_deep: bool) -> Vec<Cause> {
    let levels = if is_deep { usize::MAX } else { 1 };
    causes(before, after, levels, &mut HashSet::new())
}

/// Inputs that several paths lead to are explained once.
fn causes(before: &Side, after: &Side, levels: usize, seen: &mut HashSet<(String, String)>) -> Vec<Cause> {
    let (Some(old), Some(new)) = (&before.manifest, &after.manifest) else { return Vec::new() };
    let cause = |difference: Reason| {
        let pairs: Vec<(String, String)> = match &difference {
            Reason::Input { old, new, .. } if levels > 0 && old.len() == new.len() => {
                old.iter().cloned().zip(new.iter().cloned()).filter(|(old, new)| old != new).collect()
            }
            _ => Vec::new(),
        };
        let mut because = Vec::new();
        for pair in pairs {
            if !seen.insert(pair.clone()) {
                continue;
            }
            if let (Some(old), Some(new)) = (before.input(&pair.0), after.input(&pair.1)) {
                because.extend(causes(&old, &new, levels - 1, seen));
            }
        }
        Cause { difference, because }
    };
    let mut all = differences(old, new);
    if old.kind != new.kind {
        // Stages of other kinds may have the same inputs, or those of another program and machine.
        let is_of_both = |reason: &Reason| matches!(reason, Reason::Input { old, new, .. } if !old.is_empty() && !new.is_empty());
        all.extend(different_inputs(old, new).into_iter().filter(is_of_both));
    }
    all.into_iter().map(cause).collect()
}

impl Cause {
    /// The difference and its causes, indented by level.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut lines = vec![self.difference.to_string()];
        for cause in &self.because {
            let inner = cause.words();
            lines.extend(inner.iter().enumerate().map(|(index, line)| {
                if index == 0 { format!("  because {line}") } else { format!("  {line}") }
            }));
        }
        lines
    }
}

/// One of two artifacts.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    /// The artifact.
    pub(crate) folder: Folder,
    /// What entered its key, if that is known.
    pub(crate) manifest: Option<Manifest>,
}

impl Side {
    /// Opens an artifact and the manifest in its folder.
    pub(crate) fn open(path: &Path) -> Result<Self, ArtifactError> {
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

/// How a cell changed from one run to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CellState {
    /// Only the second run has it.
    New,
    /// Only the first run has it.
    Gone,
    /// Its dependencies are the same.
    Same,
    /// Its dependencies differ, its result does not.
    SameResult,
    /// Its result differs.
    Changed,
    /// One of the results is missing: it failed, or was cleared from the store.
    Unknown,
}

/// A cell whose result differs or is missing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct CellChange {
    /// The cell.
    pub(crate) cell: String,
    /// Its stage.
    pub(crate) stage: String,
    /// Its state in both runs: `ran`, `cached`, `failed` …
    pub(crate) states: [String; 2],
    /// Metrics that are different.
    pub(crate) metrics: MetricChanges,
}

/// A difference that does not follow from another one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FirstCause {
    /// The stage.
    pub(crate) stage: String,
    /// The difference.
    pub(crate) difference: Reason,
    /// The cells that have it.
    pub(crate) cells: Vec<String>,
}

/// The cells of a stage.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct StageSummary {
    /// Number of cells by how they changed.
    pub(crate) cells: BTreeMap<CellState, usize>,
    /// The median relative change of every metric, over all changed cells that have a number for it.
    pub(crate) median_relative: BTreeMap<String, f64>,
}

/// Differences between two runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct RunChanges {
    /// Names of the runs.
    pub(crate) runs: [String; 2],
    /// Names of their pipelines.
    pub(crate) pipelines: [String; 2],
    /// Cells that only the second run has.
    pub(crate) new: Vec<String>,
    /// Cells that only the first run has.
    pub(crate) gone: Vec<String>,
    /// Cells whose result differs or is missing, the largest relative change first.
    pub(crate) changed: Vec<CellChange>,
    /// The stages, by name.
    pub(crate) stages: BTreeMap<String, StageSummary>,
    /// Where the differences begin.
    pub(crate) first_causes: Vec<FirstCause>,
}

/// Compares two runs, or one stage of them.
pub(crate) fn runs(before: &Catalogue, after: &Catalogue, stage: Option<&str>, threshold: f64) -> RunChanges {
    let by_name = |catalogue: &Catalogue| {
        catalogue.cells.iter().map(|cell| (cell.id.clone(), cell.clone())).collect::<BTreeMap<_, _>>()
    };
    let (old, new) = (by_name(before), by_name(after));
    let mut found = RunChanges {
        runs: [before, after].map(|catalogue| catalogue.run.clone().unwrap_or_default()),
        pipelines: [before, after].map(|catalogue| catalogue.pipeline.clone()),
        first_causes: first_causes(&old, &new),
        ..RunChanges::default()
    };
    let order: Vec<&StoredCell> =
        before.cells.iter().chain(after.cells.iter().filter(|cell| !old.contains_key(&cell.id))).collect();
    for cell in order.into_iter().filter(|cell| stage.is_none_or(|stage| stage == cell.stage)) {
        let pair = (old.get(&cell.id), new.get(&cell.id));
        let became = state_of(pair);
        *found.stages.entry(cell.stage.clone()).or_default().cells.entry(became).or_default() += 1;
        match (became, pair) {
            (CellState::New, _) => found.new.push(cell.id.clone()),
            (CellState::Gone, _) => found.gone.push(cell.id.clone()),
            (CellState::Changed | CellState::Unknown, (Some(old), Some(new))) => {
                found.changed.push(CellChange {
                    cell: cell.id.clone(),
                    stage: cell.stage.clone(),
                    states: [old.state.clone(), new.state.clone()],
                    metrics: metric_changes(&metrics(old), &metrics(new), threshold),
                });
            }
            _ => {}
        }
    }
    for (name, summary) in &mut found.stages {
        summary.median_relative = medians(found.changed.iter().filter(|change| change.stage == *name));
    }
    found.changed.sort_by(|a, b| b.size().total_cmp(&a.size()));
    found
}

fn state_of(pair: (Option<&StoredCell>, Option<&StoredCell>)) -> CellState {
    let (old, new) = match pair {
        (None, _) => return CellState::New,
        (_, None) => return CellState::Gone,
        (Some(old), Some(new)) => (old, new),
    };
    match (&old.result, &new.result) {
        _ if old.key.is_some() && old.key == new.key => CellState::Same,
        (Some(one), Some(other)) => {
            let digests = |(port, output): (&String, &OutputRecord)| (port.clone(), output.digest.clone());
            let is_same = one.outputs.iter().map(digests).eq(other.outputs.iter().map(digests));
            if is_same { CellState::SameResult } else { CellState::Changed }
        }
        _ => CellState::Unknown,
    }
}

/// The metrics of all outputs, with the name of the output where there are several.
fn metrics(cell: &StoredCell) -> BTreeMap<String, f64> {
    let outputs = cell.result.iter().flat_map(|result| result.outputs.iter());
    let is_one = cell.result.as_ref().is_none_or(|result| result.outputs.len() == 1);
    outputs
        .flat_map(|(port, output)| output.metrics.iter().map(move |(name, value)| (port, name, *value)))
        .map(|(port, name, value)| (if is_one { name.clone() } else { format!("{port}.{name}") }, value))
        .collect()
}

fn medians<'a>(changes: impl Iterator<Item = &'a CellChange>) -> BTreeMap<String, f64> {
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for metric in changes.flat_map(|change| &change.metrics.changed) {
        if let Some(relative) = metric.relative {
            values.entry(metric.name.clone()).or_default().push(relative);
        }
    }
    values.into_iter().map(|(name, values)| (name, median(values).unwrap_or_default())).collect()
}

/// Parameters, files, kinds and revisions that differ, and inputs that no other difference explains, such as the output of a live
/// stage, whose key stays the same.
fn first_causes(old: &BTreeMap<String, StoredCell>, new: &BTreeMap<String, StoredCell>) -> Vec<FirstCause> {
    let is_new = |name: &str, cell: &StoredCell| old.get(name).is_none_or(|old| old.key != cell.key);
    let cells = new.iter().filter(|(name, cell)| is_new(name, cell));
    let outputs =
        cells.filter_map(|(_, cell)| cell.result.as_ref()).flat_map(|result| result.outputs.values());
    let explained: BTreeSet<&str> = outputs.map(|output| output.digest.as_str()).collect();
    let is_first = |reason: &Reason| match reason {
        Reason::Input { new, .. } => {
            new.is_empty() || new.iter().any(|digest| !explained.contains(digest.as_str()))
        }
        _ => true,
    };
    let mut causes: Vec<FirstCause> = Vec::new();
    for (name, after) in new {
        let manifests = old.get(name).and_then(StoredCell::manifest).zip(after.manifest());
        let Some((old, new)) = manifests else { continue };
        for difference in differences(&old, &new).into_iter().filter(is_first) {
            let same =
                causes.iter_mut().find(|cause| cause.stage == after.stage && cause.difference == difference);
            match same {
                Some(cause) => cause.cells.push(name.clone()),
                None => {
                    let (stage, cells) = (after.stage.clone(), vec![name.clone()]);
                    causes.push(FirstCause { stage, difference, cells });
                }
            }
        }
    }
    causes
}

impl CellChange {
    /// The largest relative change of a metric.
    fn size(&self) -> f64 {
        let size = |metric: &MetricChange| metric.relative.map_or(f64::INFINITY, f64::abs);
        self.metrics.changed.iter().map(size).fold(0.0, f64::max)
    }
}

impl RunChanges {
    /// Whether there are differences.
    pub(crate) fn is_different(&self) -> bool {
        !(self.new.is_empty() && self.gone.is_empty() && self.changed.is_empty())
    }

    /// The differences, one per line.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.pipelines[0] != self.pipelines[1] {
            lines.push(format!("pipeline: {} → {}", self.pipelines[0], self.pipelines[1]));
        }
        for cause in &self.first_causes {
            let more = match cause.cells.len() {
                0 | 1 => String::new(),
                count => format!("  ({count} cells)"),
            };
            lines.push(format!("cause: {}: {}{more}", cause.stage, cause.difference));
        }
        for (name, summary) in &self.stages {
            let counts: Vec<String> =
                summary.cells.iter().map(|(state, count)| format!("{count} {}", state.words())).collect();
            lines.push(format!("{name:<20} {}", counts.join(", ")));
            let is_sweep = summary.cells.get(&CellState::Changed).is_some_and(|&count| count > 1);
            let median = |(metric, relative): (&String, &f64)| {
                format!("    median of {metric:<18} {}", percent(*relative))
            };
            lines.extend(summary.median_relative.iter().map(median).filter(|_| is_sweep));
        }
        for (cells, what) in [(&self.new, "new"), (&self.gone, "gone")] {
            lines.extend(cells.iter().take(MOST_SHOWN).map(|cell| format!("{cell} is {what}")));
            lines.extend(more(cells.len() as u64, MOST_SHOWN));
        }
        for change in self.changed.iter().take(MOST_SHOWN) {
            let [old, new] = &change.states;
            let is_good = [old, new].iter().all(|state| ["ran", "cached"].contains(&state.as_str()));
            let state = if old == new || is_good { String::new() } else { format!(" ({old} → {new})") };
            lines.push(format!("{}{state}", change.cell));
            lines.extend(change.metrics.changed.iter().map(|metric| format!("    {}", metric.words())));
        }
        lines.extend(more(self.changed.len() as u64, MOST_SHOWN));
        lines
    }
}

impl CellState {
    fn words(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Gone => "gone",
            Self::Same => "the same",
            Self::SameResult => "recomputed with the same result",
            Self::Changed => "changed",
            Self::Unknown => "without a result",
        }
    }
}
