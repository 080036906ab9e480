//! Errors of launch files.

use hopmap_model::MappingError;
use miette::Diagnostic;

/// A mapping cannot be written as a launch file.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum LaunchError {
    /// The mapping is inconsistent.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Mapping(#[from] MappingError),
    /// The launcher does not support the mapping.
    #[error("{problem}")]
    #[diagnostic(code(launch::unfit))]
    Unfit {
        /// What is not supported.
        problem: String,
        /// How to fix it, where that is known.
        #[help]
        help: Option<String>,
    },
}

impl LaunchError {
    /// A problem, and a hint that may be empty.
    #[cold]
    pub fn new(problem: impl Into<String>, help: &str) -> Self {
        let help = Some(help.to_owned()).filter(|help| !help.is_empty());
        Self::Unfit { problem: problem.into(), help }
    }
}
