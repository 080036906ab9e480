//! Two runs: which cells are new, gone, the same, made again, or different, and what came first.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_compare::{MOST_SHOWN, MetricChange, MetricChanges, metric_changes, more, percent};
use hopmap_statistics::median;
use serde::Serialize;

use crate::engine::{Catalogue, Reason, StoredCell, differences};

/// What became of a cell from one run to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellState {
    /// Only the second run has it.
    New,
    /// Only the first run has it.
    Gone,
    /// Nothing it depends on is different.
    Same,
    /// Something it depends on is different, but its result is not.
    SameResult,
    /// Its result is different.
    Changed,
    /// One of the results is missing: it failed, or was cleared from the store.
    Unknown,
}

/// A cell whose result is different or missing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellChange {
    /// The cell.
    pub cell: String,
    /// Its stage.
    pub stage: String,
    /// What became of it in both runs: `ran`, `cached`, `failed` …
    pub states: [String; 2],
    /// Metrics that are different.
    pub metrics: MetricChanges,
}

/// A difference that does not follow from another one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FirstCause {
    /// The stage.
    pub stage: String,
    /// The difference.
    pub difference: Reason,
    /// The cells in which it is found.
    pub cells: Vec<String>,
}

/// The cells of a stage.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct StageSummary {
    /// Number of cells by what became of them.
    pub cells: BTreeMap<CellState, usize>,
    /// The median relative change of every metric, over all changed cells that have a number for it.
    pub median_relative: BTreeMap<String, f64>,
}

/// What is different between two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunChanges {
    /// Names of the runs.
    pub runs: [String; 2],
    /// Names of their pipelines.
    pub pipelines: [String; 2],
    /// Cells that only the second run has.
    pub new: Vec<String>,
    /// Cells that only the first run has.
    pub gone: Vec<String>,
    /// Cells whose result is different or missing, the largest relative change first.
    pub changed: Vec<CellChange>,
    /// The stages, by name.
    pub stages: BTreeMap<String, StageSummary>,
    /// Where the differences begin.
    pub first_causes: Vec<FirstCause>,
}

/// Compares two runs, or one stage of them.
#[must_use]
pub fn runs(before: &Catalogue, after: &Catalogue, stage: Option<&str>, threshold: f64) -> RunChanges {
    let by_name = |catalogue: &Catalogue| {
        catalogue.cells.iter().map(|cell| (cell.id.clone(), cell.clone())).collect::<BTreeMap<_, _>>()
    };
    let (old, new) = (by_name(before), by_name(after));
    let mut found = RunChanges {
        runs: [before, after].map(|catalogue| catalogue.run.clone().unwrap_or_default()),
        pipelines: [before, after].map(|catalogue| catalogue.pipeline.clone()),
        new: Vec::new(),
        gone: Vec::new(),
        changed: Vec::new(),
        stages: BTreeMap::new(),
        first_causes: first_causes(&old, &new),
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
            let digests = |record: &crate::engine::ResultRecord| {
                record
                    .outputs
                    .iter()
                    .map(|(port, output)| (port.clone(), output.digest.clone()))
                    .collect::<Vec<_>>()
            };
            if digests(one) == digests(other) { CellState::SameResult } else { CellState::Changed }
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

/// Parameters, files, kinds and revisions that are different, and inputs that no other difference explains: such as what a stage saw
/// that looks at the world, whose key stays the same.
fn first_causes(old: &BTreeMap<String, StoredCell>, new: &BTreeMap<String, StoredCell>) -> Vec<FirstCause> {
    let explained: BTreeSet<&str> = new
        .iter()
        .filter(|(name, cell)| old.get(*name).is_none_or(|old| old.key != cell.key))
        .map(|(_, cell)| cell)
        .filter_map(|cell| cell.result.as_ref())
        .flat_map(|result| result.outputs.values().map(|output| output.digest.as_str()))
        .collect();
    let is_first = |reason: &Reason| match reason {
        Reason::Input { new, .. } => {
            new.is_empty() || new.iter().any(|digest| !explained.contains(digest.as_str()))
        }
        _ => true,
    };
    let mut causes: Vec<FirstCause> = Vec::new();
    for (name, after) in new {
        let Some((before, after_manifest)) =
            old.get(name).and_then(StoredCell::manifest).zip(after.manifest())
        else {
            continue;
        };
        for difference in differences(&before, &after_manifest).into_iter().filter(is_first) {
            let same =
                causes.iter_mut().find(|cause| cause.stage == after.stage && cause.difference == difference);
            match same {
                Some(cause) => cause.cells.push(name.clone()),
                None => causes.push(FirstCause {
                    stage: after.stage.clone(),
                    difference,
                    cells: vec![name.clone()],
                }),
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
    /// Whether something is different.
    #[must_use]
    pub fn is_different(&self) -> bool {
        !(self.new.is_empty() && self.gone.is_empty() && self.changed.is_empty())
    }

    /// What is different, line by line.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.pipelines[0] != self.pipelines[1] {
            lines.push(format!("pipeline: {} → {}", self.pipelines[0], self.pipelines[1]));
        }
        for cause in &self.first_causes {
            let more = if cause.cells.len() > 1 {
                format!("  ({} cells)", cause.cells.len())
            } else {
                String::new()
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
            let state =
                if old == new || [old, new].iter().all(|state| ["ran", "cached"].contains(&state.as_str())) {
                    String::new()
                } else {
                    format!(" ({old} → {new})")
                };
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
            Self::SameResult => "made again with the same result",
            Self::Changed => "changed",
            Self::Unknown => "without a result",
        }
    }
}
