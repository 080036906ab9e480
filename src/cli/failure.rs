//! Why a command ended without doing what it was asked for.

use hopmap_durable::DurableError;
use miette::{Diagnostic, Report};
use serde_json::json;

use super::exit::Exit;
use super::output::Output;
use crate::engine::StoreError;
use crate::pipeline::Problems;

/// Why a command ended without doing what it was asked for.
pub enum Failure {
    /// The command is wrong.
    Usage(Report),
    /// The pipeline file, or values of the command line, are wrong.
    Problems(Problems),
    /// Something went wrong while doing it.
    Failed(Report),
    /// Something is not as it should be.
    Different(Report),
    /// Another run has the store.
    Locked(Report),
    /// The user interrupted it.
    Interrupted(Report),
}

impl Failure {
    /// The command is wrong, for a reason.
    pub fn usage(error: impl Into<Report>) -> Self {
        Self::Usage(error.into())
    }

    /// Prints it to standard error.
    pub(crate) fn report(self, output: Output) -> Exit {
        let (exit, reports) = match self {
            Self::Usage(report) => (Exit::Usage, vec![report]),
            Self::Problems(problems) => (Exit::Usage, problems.0.into_iter().map(Report::new).collect()),
            Self::Failed(report) => (Exit::Failed, vec![report]),
            Self::Different(report) => (Exit::Different, vec![report]),
            Self::Locked(report) => (Exit::Locked, vec![report]),
            Self::Interrupted(report) => (Exit::Interrupted, vec![report]),
        };
        if output.is_json() {
            let errors: Vec<_> = reports
                .iter()
                .map(|report| json!({ "message": message(report), "help": report.help().map(|help| help.to_string()) }))
                .collect();
            output.json(&json!({ "errors": errors }));
        }
        for report in &reports {
            output.error(report);
        }
        if reports.len() > 1 {
            output.problem_count(reports.len());
        }
        exit
    }
}

/// An error with its causes, in one line.
pub(crate) fn message(report: &Report) -> String {
    report.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::Problems(problems)
    }
}

impl From<Report> for Failure {
    fn from(report: Report) -> Self {
        Self::Failed(report)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Durable(DurableError::Busy { .. }) => Self::Locked(Report::new(error)),
            StoreError::Missing { .. } => Self::Usage(Report::new(error)),
            error => Self::Failed(Report::new(error)),
        }
    }
}

/// A mistake in the command, with a hint.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
pub(crate) struct Mistake {
    message: String,
    #[help]
    help: Option<String>,
}

impl Mistake {
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: Some(help.into()) }
    }
}

impl From<Mistake> for Failure {
    fn from(mistake: Mistake) -> Self {
        Self::usage(mistake)
    }
}
