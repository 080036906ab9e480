//! What can be wrong with an artifact that was made before.

use std::path::PathBuf;

use miette::Diagnostic;

/// There is no artifact.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum StoredError {
    /// The folder holds none.
    #[error("{} is no artifact: it has no artifact.json", .folder.display())]
    #[diagnostic(help(
        "give the folder that `hopmap exec KIND --out FOLDER` wrote, or one that `hopmap show STAGE` names"
    ))]
    NoArtifact {
        /// The folder.
        folder: PathBuf,
    },
}
