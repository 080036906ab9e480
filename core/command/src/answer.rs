//! What a command answers, why it ended without doing what it was asked for, and the exit codes.

use std::fmt::Display;
use std::process::ExitCode;

use miette::{Diagnostic, Report};
use serde::Serialize;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// A stage failed or has no solution.
    Failed,
    /// The command or the pipeline file is wrong.
    Usage,
    /// A gate did not hold or, where that is asked for, something has changed.
    Different,
    /// The store is locked by another run.
    Locked,
    /// Interrupted by the user.
    Interrupted,
}

impl Exit {
    /// The number the shell sees.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Different => 3,
            Self::Locked => 75,
            Self::Interrupted => 130,
        }
    }

    /// The exit status that a number stands for.
    #[must_use]
    pub fn of_code(code: u8) -> Self {
        let all = [Self::Done, Self::Failed, Self::Usage, Self::Different, Self::Locked, Self::Interrupted];
        all.into_iter().find(|exit| exit.code() == code).unwrap_or(Self::Failed)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// What a command answers: lines for people, the same as JSON for programs, and the exit status.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// How the command ended.
    pub exit: Exit,
    /// What people read.
    pub lines: Vec<String>,
    /// What programs read: a JSON document, with its keys in the order in which they were written.
    pub json: Option<String>,
}

impl Default for Answer {
    fn default() -> Self {
        Self { exit: Exit::Done, lines: Vec::new(), json: None }
    }
}

impl Answer {
    /// An answer that programs read as this value, and people as the lines that follow.
    #[must_use]
    pub fn of(value: &impl Serialize) -> Self {
        // Values are plain data with text keys: they always have a form in JSON.
        Self { json: Some(serde_json::to_string_pretty(value).unwrap_or_default()), ..Self::default() }
    }

    /// One more line.
    pub fn line(&mut self, line: impl Display) {
        self.lines.push(line.to_string());
    }

    /// The same answer with another exit status.
    #[must_use]
    pub fn ending(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }
}

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
