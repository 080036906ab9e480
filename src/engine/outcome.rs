//! What became of a pipeline and of each of its cells, and what those who watch a run are told.

use std::path::PathBuf;

use miette::{Diagnostic, Report};
use serde::Serialize;

use super::reason::Reason;
use super::record::OutputRecords;
use crate::gates::{Standing, Verdict};
use crate::pipeline::{Cell, Pipeline};
use crate::query::AnsweredTable;

/// What became of a pipeline.
#[derive(Debug)]
pub struct RunReport {
    /// What became of each cell.
    pub cells: Vec<Settled>,
    /// Folder of the run; missing if nothing ran.
    pub folder: Option<PathBuf>,
    /// Whether the user interrupted it.
    pub interrupted: bool,
    /// Seconds it took.
    pub seconds: f64,
    /// Answers to the questions of the pipeline.
    pub tables: Vec<AnsweredTable>,
    /// How its gates stand, once they are judged.
    pub gates: Vec<Verdict>,
    /// Copies that were not made, as a gate does not hold.
    pub held: Vec<PathBuf>,
}

impl RunReport {
    /// Number of cells in a state.
    #[must_use]
    pub fn count(&self, state: State) -> usize {
        self.cells.iter().filter(|settled| settled.state == state).count()
    }

    /// Whether every cell has its result.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.cells.iter().all(|settled| matches!(settled.state, State::Cached | State::Ran | State::Partial))
    }

    /// Whether a gate is broken.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.gates.iter().any(|verdict| verdict.standing == Standing::Broken)
    }

    /// Whether copies of its results may be made: every gate holds, or has nothing accepted yet to compare with.
    #[must_use]
    pub fn may_save(&self) -> bool {
        self.gates.iter().all(|verdict| matches!(verdict.standing, Standing::Holds | Standing::Open))
    }

    /// Exit code of the run.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match () {
            () if self.interrupted => 130,
            () if !self.is_success() => 1,
            () if self.is_broken() => 3,
            () => 0,
        }
    }
}

/// What became of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Its result was in the store.
    Cached,
    /// It ran.
    Ran,
    /// It ran and was stopped early; its result is the best it had.
    Partial,
    /// It proved that there is no solution.
    Infeasible,
    /// It failed.
    Failed,
    /// Something it needs failed or has no solution.
    Blocked,
    /// The run was stopped before it began.
    NotStarted,
    /// It would run (in a plan).
    WouldRun,
    /// Whether it would run depends on what would run before it (in a plan).
    Waits,
}

impl State {
    /// How a cell can stand when a run has ended, in the order in which reports count them.
    pub const ENDINGS: [Self; 7] = [
        Self::Ran,
        Self::Cached,
        Self::Partial,
        Self::Infeasible,
        Self::Failed,
        Self::Blocked,
        Self::NotStarted,
    ];
}

/// What became of a cell, and what it gave.
#[derive(Debug)]
pub struct Settled {
    /// What became of it.
    pub state: State,
    /// Why it had to run.
    pub reasons: Vec<Reason>,
    /// Its key, if it could be computed.
    pub key: Option<String>,
    /// Its artifacts by output port.
    pub outputs: OutputRecords,
    /// Copies that were made for people.
    pub saved: Vec<Saved>,
    /// Seconds it ran.
    pub seconds: f64,
    /// The cell that stands in its way, or that it waits for.
    pub because_of: Option<usize>,
    /// Log of the stage, if it wrote one.
    pub log: Option<PathBuf>,
    /// Why it failed.
    pub error: Option<Report>,
}

impl Settled {
    pub(crate) fn new(state: State) -> Self {
        Self {
            state,
            reasons: Vec::new(),
            key: None,
            outputs: OutputRecords::default(),
            saved: Vec::new(),
            seconds: 0.0,
            because_of: None,
            log: None,
            error: None,
        }
    }

    pub(crate) fn failed(error: impl Into<Report>) -> Self {
        Self { error: Some(error.into()), ..Self::new(State::Failed) }
    }

    pub(super) fn because_of(state: State, cell: usize) -> Self {
        Self { because_of: Some(cell), ..Self::new(state) }
    }

    /// Says in the error which stage it was and where it stands.
    pub(crate) fn located(mut self, pipeline: &Pipeline, cell: &Cell) -> Self {
        self.error = self.error.map(|error| {
            let stage = format!("stage `{}` ({})", cell.id, pipeline.place(cell));
            match pipeline.own_files(cell) {
                Some(help) => Report::new(NotHere { stage, help, source: error.into() }),
                None => error.wrap_err(stage),
            }
        });
        self
    }

    /// Whether the cell has artifacts that others can use.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        matches!(self.state, State::Cached | State::Ran | State::Partial)
    }
}

/// A copy of an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Saved {
    /// The output port.
    pub output: String,
    /// Where the copy is.
    pub path: PathBuf,
    /// Whether it had to be written, or would have to be.
    pub written: bool,
}

/// A stage whose files are not where the pipeline has them that comes with hopmap.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{stage}")]
struct NotHere {
    stage: String,
    #[help]
    help: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// Hears what happens during a run.
pub trait Events: Sync {
    /// A cell begins.
    fn started(&self, cell: &Cell, reasons: &[Reason]);
    /// A cell has finished `done` of `total` units; `total` is zero when it is not known.
    fn progress(&self, cell: &Cell, done: u64, total: u64);
    /// A cell has something to say.
    fn log(&self, cell: &Cell, line: &str);
    /// A cell has settled; `remaining` have not.
    fn settled(&self, cell: &Cell, settled: &Settled, remaining: usize);
}

/// Hears nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoEvents;

impl Events for NoEvents {
    fn started(&self, _: &Cell, _: &[Reason]) {}
    fn progress(&self, _: &Cell, _: u64, _: u64) {}
    fn log(&self, _: &Cell, _: &str) {}
    fn settled(&self, _: &Cell, _: &Settled, _: usize) {}
}
