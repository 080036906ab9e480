//! What can be wrong with an artifact.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use miette::Diagnostic;

/// An artifact that cannot be read or written.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ArtifactError {
    /// The system refused to read or write.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The folder is not an artifact.
    #[error("{} is not an artifact: {reason}", path.display())]
    #[diagnostic(help("an artifact is a folder with an artifact.json, as `hopmap exec --out` writes it"))]
    NotAnArtifact {
        /// The folder.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The artifact is of another kind.
    #[error("{} holds a `{found}`, but a `{expected}` is needed", path.display())]
    WrongKind {
        /// The folder.
        path: PathBuf,
        /// Kind that is needed.
        expected: &'static str,
        /// Kind that is there.
        found: String,
    },
    /// The artifact was written by a version that knows another schema.
    #[error("{} has schema version {found} of `{kind}`, this hopmap reads version {expected}", path.display())]
    #[diagnostic(help("make it again with this version: `hopmap run` does so by itself"))]
    WrongSchema {
        /// The folder.
        path: PathBuf,
        /// Kind of the artifact.
        kind: String,
        /// Version that is read.
        expected: u32,
        /// Version that is there.
        found: u32,
    },
    /// A file is missing or is not what the description says.
    #[error("{} is damaged: {reason}", path.display())]
    #[diagnostic(help("remove the artifact and make it again"))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The artifact has no such table.
    #[error("{} has no table `{table}`", path.display())]
    #[diagnostic(help("its tables: {tables}"))]
    NoTable {
        /// The folder.
        path: PathBuf,
        /// The table.
        table: String,
        /// Tables it has.
        tables: String,
    },
    /// A table does not have the columns it must have.
    #[error("{}: column `{column}` {reason}", path.display())]
    Column {
        /// The Parquet file.
        path: PathBuf,
        /// The column.
        column: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The tables are well formed, but contradict each other.
    #[error("{} contradicts itself", path.display())]
    Invalid {
        /// The folder.
        path: PathBuf,
        /// The contradiction.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl ArtifactError {
    /// That the system refused to read or write a file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.into(), source }
    }

    /// That a file is not what it should be.
    pub(crate) fn damaged(path: &Path, reason: &dyn Display) -> Self {
        Self::Damaged { path: path.into(), reason: reason.to_string() }
    }
}
