//! What can be wrong with a schedule.

use miette::Diagnostic;

/// What is wrong with a schedule, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("{problem}")]
#[diagnostic(help("{help}"))]
pub struct CheckError {
    /// What is wrong, with the task that it is about.
    pub problem: String,
    /// What it should be, or what to do.
    pub help: String,
}

/// What helps where a schedule was not made for what it is checked with.
pub(super) const ANOTHER: &str =
    "connect the program and the machine that the schedule was made for, with the same parameters";

impl CheckError {
    pub(super) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { problem: problem.into(), help: help.into() }
    }

    pub(super) fn no_schedule() -> Self {
        Self::new("there is no schedule to check", "connect a `schedule`, or name a `.sch` file in `file`")
    }

    pub(super) fn two_schedules() -> Self {
        Self::new("there is a `schedule`, and a `file` beside it", "leave one of them out")
    }
}
