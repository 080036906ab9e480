//! Exit codes.

use std::process::ExitCode;

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

    pub(crate) fn of_code(code: u8) -> Self {
        let all = [Self::Done, Self::Failed, Self::Usage, Self::Different, Self::Locked, Self::Interrupted];
        all.into_iter().find(|exit| exit.code() == code).unwrap_or(Self::Failed)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
