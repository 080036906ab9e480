//! Errors of reading recordings.

use std::path::PathBuf;

use hopmap_durable::DurableError;
use hopmap_text::FileError;
use miette::Diagnostic;

/// A recording that cannot be read.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum RecordingError {
    /// A file cannot be written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// A text file is invalid, or a file cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// The file of a rank is damaged.
    #[error("`{}` is damaged at byte {offset}: {what}", path.display())]
    #[diagnostic(code(recording::damaged), help("record the program again, or copy the folder again"))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Byte offset.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// Another version of hopmap wrote the recording.
    #[error("`{}` has version {version} of the format, but this hopmap reads version {reads}", path.display())]
    #[diagnostic(code(recording::version), help("read it with the hopmap that recorded it"))]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The version that is read.
        reads: u32,
    },
    /// The recording has no rank.
    #[error("`{}` has no file of a rank", path.display())]
    #[diagnostic(
        code(recording::empty),
        help("the program recorded nothing: check that it is an MPI program and calls MPI_Init")
    )]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// The recording exceeds a limit.
    #[error("{what}")]
    #[diagnostic(code(recording::limit), help("{help}"))]
    Limit {
        /// What is too large.
        what: String,
        /// What to do.
        help: &'static str,
    },
}
