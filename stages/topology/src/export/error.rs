//! Why a machine cannot be written as some text.

use hopmap_model::CostsError;
use miette::Diagnostic;

/// A machine that a format has no words for.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ExportError {
    /// The format cannot say what the machine is.
    #[error("{format} cannot hold this machine: {problem}")]
    #[diagnostic(help("{help}"))]
    Impossible {
        /// The format.
        format: &'static str,
        /// What it cannot hold.
        problem: String,
        /// What to do instead.
        help: String,
    },
    /// The costs of the machine cannot be written down.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Costs(#[from] CostsError),
}
