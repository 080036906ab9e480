//! Why a command ended without doing what it was asked for.

use miette::{Diagnostic, Report};

use crate::answer::{Answer, Exit};

/// Why a command ended without doing what it was asked for.
#[derive(Debug)]
pub struct Failure {
    /// The exit status.
    pub exit: Exit,
    /// What is wrong: one error, or all mistakes of a file.
    pub reports: Vec<Report>,
    /// What was found out before.
    pub answer: Answer,
}

impl Failure {
    /// Ends with an exit status, for these reasons.
    pub fn new(exit: Exit, reports: impl IntoIterator<Item = Report>) -> Self {
        Self { exit, reports: reports.into_iter().collect(), answer: Answer::default() }
    }

    /// Something went wrong.
    pub fn failed(error: impl Into<Report>) -> Self {
        Self::new(Exit::Failed, [error.into()])
    }

    /// The command is wrong.
    pub fn usage(error: impl Into<Report>) -> Self {
        Self::new(Exit::Usage, [error.into()])
    }

    /// The same failure, after something was found out.
    #[must_use]
    pub fn after(self, answer: Answer) -> Self {
        Self { answer, ..self }
    }
}

impl From<Report> for Failure {
    fn from(report: Report) -> Self {
        Self::failed(report)
    }
}

/// A mistake in the command, with a hint.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
pub struct Mistake {
    message: String,
    #[help]
    help: Option<String>,
}

impl Mistake {
    /// What is wrong, and what to write instead.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: Some(help.into()) }
    }
}

impl From<Mistake> for Failure {
    fn from(mistake: Mistake) -> Self {
        Self::usage(mistake)
    }
}
