//! Why a mapping has no launch file.

use hopmap_model::MappingError;
use miette::Diagnostic;

/// Why a mapping cannot be written as a launch file.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum LaunchError {
    /// The mapping contradicts itself.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Mapping(#[from] MappingError),
    /// The launcher does not take such a mapping.
    #[error("{problem}")]
    Unfit {
        /// What it does not take.
        problem: String,
        /// What to do about it, where that is known.
        #[help]
        help: Option<String>,
    },
}

impl LaunchError {
    #[cold]
    pub(crate) fn new(problem: impl Into<String>, help: &str) -> Self {
        let help = Some(help.to_owned()).filter(|help| !help.is_empty());
        Self::Unfit { problem: problem.into(), help }
    }
}
