//! What became of a cell.

use std::path::PathBuf;

use miette::{Diagnostic, Report};
use serde::Serialize;

use super::reason::Reason;
use super::record::OutputRecords;
use crate::pipeline::{Cell, Pipeline};

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
