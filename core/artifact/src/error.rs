//! Errors of artifacts.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use miette::Diagnostic;

/// An artifact that cannot be read or written.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ArtifactError {
    /// Reading or writing failed.
    #[error("cannot {action} {}", path.display())]
    #[diagnostic(code(artifact::io))]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The folder is not an artifact.
    #[error("{} is not an artifact: {reason}", path.display())]
    #[diagnostic(
        code(artifact::not_an_artifact),
        help("an artifact is a folder with an artifact.json, as `hopmap exec --out` writes it")
    )]
    NotAnArtifact {
        /// The folder.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// The artifact has another kind.
    #[error("{} is an artifact of kind `{found}`, expected `{expected}`", path.display())]
    #[diagnostic(code(artifact::wrong_kind))]
    WrongKind {
        /// The folder.
        path: PathBuf,
        /// Kind that is expected.
        expected: &'static str,
        /// Kind of the artifact.
        found: String,
    },
    /// The artifact has another schema version.
    #[error("{} has schema version {found} of `{kind}`, but this hopmap reads version {expected}", path.display())]
    #[diagnostic(
        code(artifact::wrong_schema),
        help("recompute it with this version: `hopmap run` does so automatically")
    )]
    WrongSchema {
        /// The folder.
        path: PathBuf,
        /// Kind of the artifact.
        kind: String,
        /// Version that this build reads.
        expected: u32,
        /// Version of the artifact.
        found: u32,
    },
    /// A file is missing or differs from its description.
    #[error("{} is damaged: {reason}", path.display())]
    #[diagnostic(code(artifact::damaged), help("remove the artifact and recompute it"))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The artifact does not contain this table.
    #[error("{} does not contain a table `{table}`", path.display())]
    #[diagnostic(code(artifact::no_table), help("its tables: {tables}"))]
    NoTable {
        /// The folder.
        path: PathBuf,
        /// The table.
        table: String,
        /// Tables that it contains.
        tables: String,
    },
    /// A column is missing or invalid.
    #[error("{}: column `{column}` {reason}", path.display())]
    #[diagnostic(code(artifact::column))]
    Column {
        /// The Parquet file.
        path: PathBuf,
        /// The column.
        column: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The tables are well formed, but inconsistent.
    #[error("{} is inconsistent", path.display())]
    #[diagnostic(code(artifact::invalid))]
    Invalid {
        /// The folder.
        path: PathBuf,
        /// The inconsistency.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl ArtifactError {
    /// An I/O error of a file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.into(), source }
    }

    /// An error for a damaged file.
    pub(crate) fn damaged(path: &Path, reason: &dyn Display) -> Self {
        Self::Damaged { path: path.into(), reason: reason.to_string() }
    }
}
