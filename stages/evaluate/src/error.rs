//! Errors of comparisons.

use hopmap_text::FileError;
use miette::Diagnostic;

/// A comparison failed.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum EvaluateError {
    /// Mappings, parameters or known values that do not belong together.
    #[error("{problem}")]
    #[diagnostic(code(evaluate::invalid))]
    Invalid {
        /// What is wrong.
        problem: String,
        /// How to fix it.
        #[help]
        help: String,
    },
    /// The file of known values cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
}

impl EvaluateError {
    #[cold]
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Invalid { problem: problem.into(), help: help.into() }
    }
}
