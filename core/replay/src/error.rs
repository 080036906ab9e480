//! What can be wrong with a machine or a program.

use miette::Diagnostic;

/// Processors that make no machine.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum MachineError {
    /// A number of processors that makes no sense.
    #[error("processors is {processors}")]
    #[diagnostic(help("it is at least 1 and at most 65536"))]
    Processors {
        /// The number.
        processors: u32,
    },
    /// More processors are asked for than there are.
    #[error("{wanted} processors are asked for, and there are {there}")]
    #[diagnostic(help(
        "lower `processors`; with `coordinator = true` the first process of the files runs no task"
    ))]
    TooFew {
        /// Processors asked for.
        wanted: usize,
        /// Processors there.
        there: usize,
    },
    /// Anything else.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Refused(#[from] Refusal),
}

/// A program that cannot be placed on a machine.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ProblemError {
    /// There is nothing to do.
    #[error("there are no tasks")]
    Empty,
    /// Anything else.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Refused(#[from] Refusal),
}

/// What is wrong, and what to do about it.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{problem}")]
pub struct Refusal {
    problem: String,
    #[help]
    help: &'static str,
}

impl Refusal {
    #[cold]
    pub(crate) fn new(problem: impl Into<String>, help: &'static str) -> Self {
        Self { problem: problem.into(), help }
    }
}
