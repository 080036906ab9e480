//! What became of a pipeline.

use std::path::PathBuf;

use super::settled::{Settled, State};
use crate::gates::{Standing, Verdict};
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
