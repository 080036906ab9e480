//! The journal of a run: what happened when. Wall times are here and nowhere else.

use std::path::{Path, PathBuf};

use hopmap_durable::{AppendLog, DurableError, crash_point};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::outcome::{Settled, State};
use super::record::PipelineId;
use super::store::{Store, StoreError, check_format};
use crate::pipeline::Cell;

/// One line of a journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The run began.
    Start {
        /// Name of the pipeline.
        pipeline: String,
        /// Its file, as [`PipelineId`] has it.
        #[serde(default)]
        file: String,
        /// Version of hopmap.
        hopmap: String,
        /// When, in UTC.
        time: String,
    },
    /// A cell settled.
    Stage(StageEvent),
    /// The run ended.
    End {
        /// Seconds it took.
        seconds: f64,
        /// Its exit code.
        exit: u8,
    },
}

/// What the journal says of a cell.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StageEvent {
    /// The cell.
    pub cell: String,
    /// Its stage.
    #[serde(default)]
    pub stage: String,
    /// Keys and values of its matrix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrix: Vec<(String, Json)>,
    /// Its key, if it could be computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What became of it.
    pub state: String,
    /// Seconds from the begin of the run to the end of the cell.
    pub at_s: f64,
    /// Seconds it ran.
    pub seconds: f64,
    /// Why it ran.
    pub reasons: Vec<String>,
}

/// A run as its journal tells it.
#[derive(Debug, Clone, Serialize)]
pub struct RunSummary {
    /// Name of the run: when it began.
    pub run: String,
    /// Name of the pipeline.
    pub pipeline: String,
    /// Its file, as [`PipelineId`] has it; empty if an older version ran it.
    pub file: String,
    /// When it began, in UTC.
    pub time: String,
    /// Seconds it took; missing if it was killed.
    pub seconds: Option<f64>,
    /// Its exit code; missing if it was killed.
    pub exit: Option<u8>,
    /// Its cells.
    pub stages: Vec<StageEvent>,
}

impl RunSummary {
    /// Whether it ran a pipeline; of a run of an older version the name has to do.
    #[must_use]
    pub fn is_of(&self, pipeline: &PipelineId) -> bool {
        let is_file = self.file.is_empty() || pipeline.file.is_empty() || self.file == pipeline.file;
        self.pipeline == pipeline.name && is_file
    }

    /// What it ran.
    #[must_use]
    pub fn id(&self) -> PipelineId {
        PipelineId { name: self.pipeline.clone(), file: self.file.clone() }
    }
}

/// A journal that is being written.
pub(crate) struct Journal {
    log: AppendLog,
    folder: PathBuf,
}

impl Journal {
    /// Creates the folder of a new run.
    pub(crate) fn create(store: &Store, pipeline: &PipelineId) -> Result<Self, StoreError> {
        let now = Timestamp::now();
        let stamp = now.strftime("%Y-%m-%dT%H-%M-%S").to_string();
        let runs = store.runs();
        // Several runs can begin within a second.
        let mut folder = runs.join(&stamp);
        let mut number = 1;
        while folder.exists() {
            number += 1;
            folder = runs.join(format!("{stamp}.{number}"));
        }
        std::fs::create_dir_all(&folder).map_err(DurableError::io("create", &folder))?;
        crash_point("store.run-begun", &folder);
        let mut journal = Self { log: AppendLog::open(&folder.join("journal.jsonl"))?, folder };
        journal.write(&Event::Start {
            pipeline: pipeline.name.clone(),
            file: pipeline.file.clone(),
            hopmap: env!("CARGO_PKG_VERSION").into(),
            time: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        })?;
        Ok(journal)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn settled(&mut self, cell: &Cell, settled: &Settled, at_s: f64) -> Result<(), StoreError> {
        self.write(&Event::Stage(StageEvent {
            cell: cell.id.clone(),
            stage: cell.stage.clone(),
            matrix: cell.matrix.clone(),
            key: settled.key.clone(),
            state: state_name(settled.state),
            at_s,
            seconds: settled.seconds,
            reasons: settled.reasons.iter().map(ToString::to_string).collect(),
        }))
    }

    pub(crate) fn end(&mut self, seconds: f64, exit: u8) -> Result<(), StoreError> {
        self.write(&Event::End { seconds, exit })
    }

    fn write(&mut self, event: &Event) -> Result<(), StoreError> {
        Ok(self.log.append(&serde_json::to_string(event).unwrap_or_default())?)
    }
}

/// Writes down how a run ended whose gates were judged after its last cell: the later word counts.
pub fn ended_otherwise(folder: &Path, seconds: f64, exit: u8) -> Result<(), StoreError> {
    let mut journal =
        Journal { log: AppendLog::open(&folder.join("journal.jsonl"))?, folder: folder.to_owned() };
    journal.end(seconds, exit)
}

/// A state as it is written in JSON.
pub(crate) fn state_name(state: State) -> String {
    match serde_json::to_value(state) {
        Ok(Json::String(name)) => name,
        _ => String::new(),
    }
}

/// All runs of a store, the oldest first.
pub fn read_runs(store: &Store) -> Result<Vec<RunSummary>, StoreError> {
    read_runs_below(store.root(), usize::MAX)
}

/// The newest runs of the store in a folder, the oldest of them first. What else the store knows is not read.
pub fn read_runs_below(root: &Path, newest: usize) -> Result<Vec<RunSummary>, StoreError> {
    check_format(root)?;
    let folder = root.join("runs");
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(DurableError::io("read", &folder)(error).into()),
    };
    let mut folders: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.sort();
    folders.drain(..folders.len().saturating_sub(newest));
    Ok(folders.iter().filter_map(|folder| read_run(folder).ok()).collect())
}

/// One run.
pub fn read_run(folder: &Path) -> Result<RunSummary, StoreError> {
    let text = AppendLog::read(&folder.join("journal.jsonl"))?;
    let mut summary = RunSummary {
        run: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        pipeline: String::new(),
        file: String::new(),
        time: String::new(),
        seconds: None,
        exit: None,
        stages: Vec::new(),
    };
    for event in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        match event {
            Event::Start { pipeline, file, time, .. } => {
                (summary.pipeline, summary.file, summary.time) = (pipeline, file, time);
            }
            Event::Stage(stage) => summary.stages.push(stage),
            Event::End { seconds, exit } => (summary.seconds, summary.exit) = (Some(seconds), Some(exit)),
        }
    }
    Ok(summary)
}
