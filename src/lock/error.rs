//! What can be wrong with a lock file.

use std::path::PathBuf;
use std::sync::Arc;

use hopmap_durable::DurableError;
use miette::{Diagnostic, NamedSource, SourceSpan};

/// A lock file that cannot be used.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum LockError {
    /// The system is in the way.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// There is none.
    #[error("there is no lock file {}", path.display())]
    #[diagnostic(help(
        "`hopmap lock` writes one from what is in the store, `hopmap run --lock` after a run"
    ))]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// It is damaged.
    #[error("{} is no lock file, or a damaged one: {reason}", path.display())]
    #[diagnostic(help("take it from version control, or write it again with `hopmap lock`"))]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
        /// The text.
        #[source_code]
        text: Arc<NamedSource<String>>,
        /// The place, if it is known.
        #[label("here")]
        place: Option<SourceSpan>,
    },
    /// It is no text, or far too much of it.
    #[error("{} is no lock file: {reason}", path.display())]
    #[diagnostic(help("take it from version control, or write it again with `hopmap lock`"))]
    NotText {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// It is of another version.
    #[error("{} has format {found}, this hopmap knows format {known}", path.display())]
    #[diagnostic(help("use the hopmap that wrote it, or write it again with `hopmap lock`"))]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: String,
        /// The format that is known.
        known: u32,
    },
    /// It belongs to another pipeline.
    #[error("{} is the lock file of the pipeline `{found}`, not of `{wanted}`", path.display())]
    #[diagnostic(help("name the right one with `=FILE`, or write it with `hopmap lock`"))]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The pipeline it belongs to.
        found: String,
        /// The pipeline that was asked for.
        wanted: String,
    },
}
