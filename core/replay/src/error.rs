//! Errors of machines and programs.

use hopmap_model::OutOfRange;
use miette::Diagnostic;

/// Invalid processors.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum MachineError {
    /// A parameter is out of its range.
    #[error(transparent)]
    #[diagnostic(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// More processors are requested than exist.
    #[error("{wanted} processors requested, but only {there} exist")]
    #[diagnostic(
        code(replay::too_few),
        help(
            "lower `processors`; with `coordinator = true` the first process of the files does not run tasks"
        )
    )]
    TooFew {
        /// Requested processors.
        wanted: usize,
        /// Existing processors.
        there: usize,
    },
    /// Any other error.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Refused(#[from] Refusal),
}

/// A program cannot be replayed on a machine.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ProblemError {
    /// The program does not contain tasks.
    #[error("the program does not contain tasks")]
    #[diagnostic(code(replay::empty))]
    Empty,
    /// Any other error.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Refused(#[from] Refusal),
}

/// A problem and a hint.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{problem}")]
#[diagnostic(code(replay::refusal))]
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
