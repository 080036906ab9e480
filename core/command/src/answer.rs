//! What a command answers, and the exit codes.

use std::fmt::Display;
use std::process::ExitCode;

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
