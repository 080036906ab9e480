//! What became of a pipeline and of each of its cells, and the events of a run.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::time::Instant;

use hopmap_durable::{AppendLog, DurableError, crash_point};
use jiff::Timestamp;
use miette::{Diagnostic, Report};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::key::Reason;
use super::record::{OutputRecords, PipelineId};
use super::store::{Result, Store, check_format, entries};
use crate::pipeline::{Cell, Pipeline};
use crate::query::AnsweredTable;
use crate::verdict::{GateStatus, Verdict};

/// What became of a pipeline.
#[derive(Debug, Default)]
pub(crate) struct RunReport {
    /// What became of each cell.
    pub(crate) cells: Vec<Settled>,
    /// Folder of the run; missing if nothing ran.
    pub(crate) folder: Option<PathBuf>,
    /// Whether the user interrupted it.
    pub(crate) interrupted: bool,
    /// Seconds it took.
    pub(crate) seconds: f64,
    /// Answers to the questions of the pipeline.
    pub(crate) tables: Vec<AnsweredTable>,
    /// The verdicts of its gates, once they are judged.
    pub(crate) gates: Vec<Verdict>,
    /// Copies that were not made, as a gate does not hold.
    pub(crate) held: Vec<PathBuf>,
}

impl RunReport {
    /// What became of cells since a moment, before anything is judged.
    pub(super) fn new(settled: Vec<Option<Settled>>, started: Instant) -> Self {
        let cells = settled.into_iter().flatten().collect();
        Self { cells, seconds: started.elapsed().as_secs_f64(), ..Self::default() }
    }

    /// Number of cells in a state.
    pub(crate) fn count(&self, state: State) -> usize {
        self.cells.iter().filter(|settled| settled.state == state).count()
    }

    /// Whether every cell has its result.
    pub(crate) fn is_success(&self) -> bool {
        let is_success =
            |state| matches!(state, State::Cached | State::Ran | State::Partial | State::NotWorthIt);
        self.cells.iter().all(|settled| is_success(settled.state))
    }

    /// Whether a gate is broken.
    pub(crate) fn is_broken(&self) -> bool {
        self.gates.iter().any(|verdict| verdict.status == GateStatus::Broken)
    }

    /// Whether copies of its results may be made: every gate holds, or has nothing accepted yet to compare with.
    pub(crate) fn may_save(&self) -> bool {
        self.gates.iter().all(|verdict| matches!(verdict.status, GateStatus::Holds | GateStatus::Open))
    }

    /// Exit code of the run.
    pub(crate) fn exit_code(&self) -> u8 {
        match () {
            () if self.interrupted => 130,
            () if !self.is_success() => 1,
            () if self.is_broken() => 3,
            () => 0,
        }
    }
}

/// What became of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// Its result was in the store.
    Cached,
    /// It ran.
    Ran,
    /// It ran and was stopped early; its result is the best so far.
    Partial,
    /// It is proved infeasible.
    Infeasible,
    /// It failed.
    Failed,
    /// Something it needs failed or has no solution.
    Blocked,
    /// No placement gains as much as is wanted, so that none is searched; or it needs such a placement.
    NotWorthIt,
    /// The run was stopped before it began.
    #[default]
    NotStarted,
    /// It would run (in a plan).
    WouldRun,
    /// Whether it would run depends on what would run before it (in a plan).
    Waits,
}

impl State {
    /// States of a cell when a run has ended, in the order in which reports count them.
    pub(crate) const ENDINGS: [Self; 8] = [
        Self::Ran,
        Self::Cached,
        Self::Partial,
        Self::Infeasible,
        Self::Failed,
        Self::Blocked,
        Self::NotWorthIt,
        Self::NotStarted,
    ];
}

/// What became of a cell, and what it gave.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// What became of it.
    pub(crate) state: State,
    /// Why it had to run.
    pub(crate) reasons: Vec<Reason>,
    /// Its key, if it could be computed.
    pub(crate) key: Option<String>,
    /// Its artifacts by output port.
    pub(crate) outputs: OutputRecords,
    /// Copies that were made for people.
    pub(crate) saved: Vec<Saved>,
    /// Seconds it ran.
    pub(crate) seconds: f64,
    /// The cell that blocks it, or that it waits for.
    pub(crate) because_of: Option<usize>,
    /// Log of the stage, if it wrote one.
    pub(crate) log: Option<PathBuf>,
    /// Why it failed.
    pub(crate) error: Option<Report>,
}

impl Settled {
    pub(crate) fn new(state: State) -> Self {
        Self { state, ..Self::default() }
    }

    pub(crate) fn failed(error: impl Into<Report>) -> Self {
        Self { error: Some(error.into()), ..Self::new(State::Failed) }
    }

    pub(super) fn because_of(state: State, cell: usize) -> Self {
        Self { because_of: Some(cell), ..Self::new(state) }
    }

    /// Adds the stage and its place in the pipeline file to the error.
    pub(crate) fn located(mut self, pipeline: &Pipeline, cell: &Cell) -> Self {
        self.error = self.error.map(|error| {
            let stage = format!("stage `{}` ({})", cell.name, pipeline.place(cell));
            match pipeline.own_files(cell) {
                Some(help) => Report::new(NotHere { stage, help, source: error.into() }),
                None => error.wrap_err(stage),
            }
        });
        self
    }

    /// Whether the cell has artifacts that others can use.
    pub(crate) fn is_usable(&self) -> bool {
        matches!(self.state, State::Cached | State::Ran | State::Partial)
    }
}

/// A copy of an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Saved {
    /// The output port.
    pub(crate) output: String,
    /// Where the copy is.
    pub(crate) path: PathBuf,
    /// Whether it had to be written, or would have to be.
    pub(crate) written: bool,
}

/// A stage whose files are not where the pipeline has them that comes with hopmap.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{stage}")]
#[diagnostic(code(engine::not_here))]
struct NotHere {
    stage: String,
    #[help]
    help: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// Hears what happens during a run.
pub(crate) trait Events: Sync {
    /// A cell begins.
    fn started(&self, cell: &Cell, reasons: &[Reason]);
    /// A cell has finished `done` of `total` units; `total` is zero when it is not known.
    fn progress(&self, cell: &Cell, done: u64, total: u64);
    /// A cell has something to say.
    fn log(&self, cell: &Cell, line: &str);
    /// A cell has settled.
    fn settled(&self, cell: &Cell, settled: &Settled);
}

/// One line of a journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Event {
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

/// The entry of a cell in the journal.
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
    pub(crate) at_s: f64,
    /// Seconds it ran.
    pub seconds: f64,
    /// Why it ran.
    pub(crate) reasons: Vec<String>,
}

/// A run as its journal records it.
#[derive(Debug, Clone, Default, Serialize)]
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
    pub(crate) fn is_of(&self, pipeline: &PipelineId) -> bool {
        let is_file = self.file.is_empty() || pipeline.file.is_empty() || self.file == pipeline.file;
        self.pipeline == pipeline.name && is_file
    }

    /// What it ran.
    pub(crate) fn id(&self) -> PipelineId {
        PipelineId { name: self.pipeline.clone(), file: self.file.clone() }
    }
}

/// A journal that is being written.
pub(crate) struct Journal {
    log: AppendLog,
    pub(crate) folder: PathBuf,
}

impl Journal {
    /// Creates the folder of a new run.
    pub(crate) fn create(store: &Store, pipeline: &PipelineId) -> Result<Self> {
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

    pub(crate) fn settled(&mut self, cell: &Cell, settled: &Settled, at_s: f64) -> Result {
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

    pub(crate) fn end(&mut self, seconds: f64, exit: u8) -> Result {
        self.write(&Event::End { seconds, exit })
    }

    fn write(&mut self, event: &Event) -> Result {
        Ok(self.log.append(&serde_json::to_string(event).unwrap_or_default())?)
    }
}

/// Writes down how a run ended whose gates were judged after its last cell: the later word counts.
pub(crate) fn ended_otherwise(folder: &Path, seconds: f64, exit: u8) -> Result {
    let mut journal =
        Journal { log: AppendLog::open(&folder.join("journal.jsonl"))?, folder: folder.to_owned() };
    journal.end(seconds, exit)
}

/// The name of a state in JSON.
pub(crate) fn state_name(state: State) -> String {
    match serde_json::to_value(state) {
        Ok(Json::String(name)) => name,
        _ => String::new(),
    }
}

/// All runs of a store, the oldest first.
pub fn read_runs(store: &Store) -> Result<Vec<RunSummary>> {
    read_runs_below(store.root(), usize::MAX)
}

/// The newest runs of the store in a folder, the oldest of them first. What else the store knows is not read.
pub(crate) fn read_runs_below(root: &Path, newest: usize) -> Result<Vec<RunSummary>> {
    check_format(root)?;
    let folder = root.join("runs");
    let mut folders: Vec<PathBuf> = entries(&folder)?.iter().map(DirEntry::path).collect();
    folders.sort();
    folders.drain(..folders.len().saturating_sub(newest));
    Ok(folders.iter().filter_map(|folder| read_run(folder).ok()).collect())
}

/// One run.
pub(crate) fn read_run(folder: &Path) -> Result<RunSummary> {
    let text = AppendLog::read(&folder.join("journal.jsonl"))?;
    let mut summary = RunSummary {
        run: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        ..RunSummary::default()
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
