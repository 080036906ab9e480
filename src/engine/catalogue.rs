//! What a store knows of the cells of a pipeline: their names, what went into them and what came out.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};

use hopmap_model::{Artifact, Direction, Mapping, Metrics};
use hopmap_objective::{EVALUATIONS, METRICS};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::key::Manifest;
use super::outcome::{RunReport, RunSummary, Settled, StageEvent, State, state_name};
use super::record::{Current, PipelineId, ResultRecord, names};
use super::store::Store;
use crate::pipeline::{Cell, Pipeline};

/// The cells of a pipeline, as they are now or as a run left them, in the order of their names.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Catalogue {
    /// Name of the pipeline.
    pub pipeline: String,
    /// Its file, as [`PipelineId`] has it.
    #[serde(default)]
    pub file: String,
    /// Name of the run; none if they are what the store has now.
    pub run: Option<String>,
    /// The cells.
    pub cells: Vec<StoredCell>,
    /// The stages of the pipeline, where its file is known: some may have no cells here.
    #[serde(default)]
    pub stages: Vec<StageForm>,
    /// Cells of the pipeline, where its file is known, that the store knows nothing of.
    #[serde(default)]
    pub missing: Vec<StoredCell>,
}

/// What a stage has whether or not it ran.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StageForm {
    /// Its name.
    pub name: String,
    /// Keys of its matrix, with the values of its first cell.
    pub matrix: Vec<(String, Json)>,
    /// Its output ports and the kinds of their artifacts.
    pub outputs: Vec<(String, String)>,
    /// Names of the metrics that its artifacts have.
    #[serde(default)]
    pub metrics: Vec<String>,
}

impl StageForm {
    fn of(cell: &Cell) -> Self {
        let outputs: Vec<(String, String)> = cell
            .entry
            .ports(Direction::Out)
            .map(|port| (port.name.to_owned(), port.kind.to_owned()))
            .collect();
        let of_kind = |kind: &str| -> Vec<&str> {
            let own = hopmap_artifact::form(kind).into_iter().flat_map(|form| form.metrics);
            // The metrics of mappings are described where they are computed.
            let has_quality = [Mapping::KIND, Metrics::KIND].contains(&kind);
            let quality = METRICS.iter().chain([&EVALUATIONS]).filter(|_| has_quality);
            quality.map(|metric| metric.name).chain(own.map(|(name, _)| *name)).collect()
        };
        let metrics = outputs.iter().flat_map(|(_, kind)| of_kind(kind)).map(str::to_owned).collect();
        Self { name: cell.stage.clone(), matrix: cell.matrix.clone(), outputs, metrics }
    }
}

/// A cell and its result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredCell {
    /// Its name, such as `placement[mapper=annealing,seed=3]`.
    pub id: String,
    /// Name of its stage.
    pub stage: String,
    /// Keys and values of its matrix.
    pub matrix: Vec<(String, Json)>,
    /// Its key; none if it never had one.
    pub key: Option<String>,
    /// What became of it: `cached`, `ran`, `failed` …
    pub state: String,
    /// The result of its key; none if it has no result, or none any more. The store has it, so it is not written down twice.
    #[serde(skip)]
    pub result: Option<ResultRecord>,
}

impl StoredCell {
    /// What its key was made of.
    #[must_use]
    pub fn manifest(&self) -> Option<Manifest> {
        self.result.as_ref()?.manifest()
    }
}

impl Catalogue {
    /// The cells of a pipeline as the store has them now. A pipeline that never ran has none. What a cell gave when it was stopped
    /// early is not a result.
    pub(crate) fn now(store: &Store, pipeline: &PipelineId) -> Self {
        let cell = |(id, current): (&str, &Current), state: Option<State>| {
            let result = store.result(&current.key).cloned();
            let ended = if result.is_some() { State::Cached } else { State::Failed };
            StoredCell {
                id: id.to_owned(),
                stage: current.stage.clone(),
                matrix: current.matrix.clone(),
                key: Some(current.key.clone()),
                state: state_name(state.unwrap_or(ended)),
                result,
            }
        };
        let mut cells: BTreeMap<&str, StoredCell> =
            store.cells(pipeline).map(|(id, current)| (id, cell((id, current), None))).collect();
        let stopped = store.partials(pipeline);
        cells.extend(stopped.map(|(id, partial)| (id, cell((id, &partial.current), Some(State::Partial)))));
        let PipelineId { name, file } = pipeline.clone();
        let cells = sorted(cells.into_values().collect());
        Self { pipeline: name, file, run: None, cells, stages: Vec::new(), missing: Vec::new() }
    }

    /// The cells as a run left them. Results that were cleared since then are missing.
    pub(crate) fn of_run(store: &Store, run: &RunSummary) -> Self {
        let cell = |event: &StageEvent| {
            let (stage, matrix) = match event.stage.is_empty() {
                true => names(&event.cell),
                false => (event.stage.clone(), event.matrix.clone()),
            };
            StoredCell {
                id: event.cell.clone(),
                stage,
                matrix,
                key: event.key.clone(),
                state: event.state.clone(),
                result: event.key.as_deref().and_then(|key| store.result(key)).cloned(),
            }
        };
        let cells = sorted(run.stages.iter().map(cell).collect());
        let PipelineId { name, file } = run.id();
        Self {
            pipeline: name,
            file,
            run: Some(run.run.clone()),
            cells,
            stages: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// The cells of a pipeline as a run or a plan just left them, and no others that it once had.
    pub(crate) fn of_report(store: &Store, pipeline: &Pipeline, report: &RunReport) -> Self {
        let cell = |(cell, settled): (&Cell, &Settled)| StoredCell {
            id: cell.id.clone(),
            stage: cell.stage.clone(),
            matrix: cell.matrix.clone(),
            key: settled.key.clone(),
            state: state_name(settled.state),
            result: settled.key.as_deref().and_then(|key| store.result(key)).cloned(),
        };
        let cells = sorted(pipeline.cells.iter().zip(&report.cells).map(cell).collect());
        let PipelineId { name, file } = PipelineId::of(pipeline, store.root());
        Self { pipeline: name, file, run: None, cells, stages: Vec::new(), missing: Vec::new() }
            .with_stages(pipeline)
    }

    /// The same, with what is known of the stages, and the cells that have no result.
    pub(crate) fn with_stages(mut self, pipeline: &Pipeline) -> Self {
        let known: HashSet<&str> = self.cells.iter().map(|cell| cell.id.as_str()).collect();
        let missing = pipeline.cells.iter().filter(|cell| !known.contains(cell.id.as_str()));
        let missing = missing.map(|cell| StoredCell {
            id: cell.id.clone(),
            stage: cell.stage.clone(),
            matrix: cell.matrix.clone(),
            key: None,
            state: state_name(State::NotStarted),
            result: None,
        });
        self.missing = sorted(missing.collect());
        for cell in &pipeline.cells {
            if self.stages.iter().all(|stage| stage.name != cell.stage) {
                self.stages.push(StageForm::of(cell));
            }
        }
        self
    }

    /// Whether a run is of its pipeline.
    #[must_use]
    pub fn has(&self, run: &RunSummary) -> bool {
        run.is_of(&PipelineId { name: self.pipeline.clone(), file: self.file.clone() })
    }

    /// Looks the results up that are not part of a catalogue on its way to another process.
    pub fn look_up(&mut self, store: &Store) {
        for cell in &mut self.cells {
            cell.result = cell.key.as_deref().and_then(|key| store.result(key)).cloned();
        }
    }
}

fn sorted(mut cells: Vec<StoredCell>) -> Vec<StoredCell> {
    cells.sort_by(|one, other| {
        one.stage
            .cmp(&other.stage)
            .then_with(|| by_matrix(&one.matrix, &other.matrix))
            .then_with(|| one.id.cmp(&other.id))
    });
    cells
}

/// The order of the cells of a stage by the values of their keys.
pub(crate) fn by_matrix(one: &[(String, Json)], other: &[(String, Json)]) -> Ordering {
    let mut pairs = one.iter().zip(other).map(|(one, other)| by_value(&one.1, &other.1));
    let first = pairs.find(|ordering| ordering.is_ne());
    first.unwrap_or_else(|| one.len().cmp(&other.len()))
}

/// Numbers by their size, everything else as text.
fn by_value(one: &Json, other: &Json) -> Ordering {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        _ => one.to_string().cmp(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cells_are_in_the_order_of_their_numbers() {
        let cell = |seed: i64| StoredCell {
            id: format!("a[seed={seed}]"),
            stage: "a".into(),
            matrix: vec![("seed".into(), json!(seed))],
            key: None,
            state: "ran".into(),
            result: None,
        };
        let order: Vec<String> =
            sorted([10, 9, 1].map(cell).into()).into_iter().map(|cell| cell.id).collect();
        assert_eq!(order, ["a[seed=1]", "a[seed=9]", "a[seed=10]"]);
    }
}
