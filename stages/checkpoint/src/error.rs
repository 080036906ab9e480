//! What goes wrong with checkpoints.

use std::path::PathBuf;

use hopmap_durable::DurableError;
use miette::Diagnostic;

use crate::codec::CodecError;
use crate::cut::CutError;
use crate::tree::TreeError;

/// Why something cannot be done with a store of checkpoints.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CheckpointError {
    /// A file could not be used.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// A folder could not be used.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Tree(#[from] TreeError),
    /// A file that cannot be taken.
    #[error("{}: {source}", path.display())]
    #[diagnostic(forward(source))]
    Cut {
        /// The file.
        path: PathBuf,
        /// Why.
        source: CutError,
    },
    /// A block that cannot be encoded or decoded.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Codec(#[from] CodecError),
}
