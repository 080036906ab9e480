//! Errors in the parameters of a training step, and its size limits.

use miette::Diagnostic;

/// Maximum number of ranks.
pub(crate) const MAX_RANKS: u32 = 1 << 20;

/// Maximum number of neighbours of all ranks.
pub(crate) const MAX_NEIGHBOURS: u64 = 1 << 27;

/// The parameters of a training step are invalid.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{problem}")]
#[diagnostic(code(training::invalid))]
pub struct TrainingError {
    problem: String,
    #[help]
    help: String,
}

impl TrainingError {
    /// A problem and a hint.
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { problem: problem.into(), help: help.into() }
    }

    /// The bytes or messages of a training step do not fit.
    pub(crate) fn too_many_bytes() -> Self {
        let help = "give the bytes of one step of one group, and the sizes of a real model";
        Self::new("the bytes of a step exceed 64 bits", help)
    }
}
