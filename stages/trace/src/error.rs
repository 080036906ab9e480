//! Errors of the trace stages.

use std::path::{Path, PathBuf};

use hopmap_artifact::ArtifactError;
use hopmap_model::NotBuilt;
use hopmap_recording::RecordingError;
use hopmap_replay::Refusal;
use hopmap_text::FileError;
use miette::Diagnostic;

use crate::LIBOTF2;

/// Errors of reading and generating traces.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum TraceError {
    /// A requested feature is not in this build.
    #[error(transparent)]
    #[diagnostic(transparent)]
    NotBuilt(#[from] NotBuilt),
    /// A text file is invalid.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// A recording is invalid.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Recording(#[from] RecordingError),
    /// Traces of a training job are invalid.
    #[cfg(feature = "training")]
    #[error(transparent)]
    #[diagnostic(transparent)]
    Training(#[from] hopmap_training_traces::error::TrainingError),
    /// An output table cannot be written, or a stored artifact cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Table(#[from] ArtifactError),
    /// The task DAG cannot be replayed as steps.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Steps(#[from] Refusal),
    /// A file cannot be opened or read.
    #[error("cannot read `{}`", path.display())]
    #[diagnostic(code(trace::read))]
    Read {
        /// The file.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// Files cannot be written.
    #[error("cannot write below `{}`", path.display())]
    #[diagnostic(code(trace::write), help("{help}"))]
    Write {
        /// The folder.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
        /// Hint.
        help: &'static str,
    },
    /// A file of an OTF2 archive is truncated or corrupted.
    #[error("`{}`{} is damaged at byte {offset}: {what}", path.display(), of_location(*location))]
    #[diagnostic(
        code(trace::damaged),
        help(
            "the trace was not written or copied completely: copy or record it again, or use the part before the damage with `allow_truncated = true`"
        )
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Location of the file.
        location: Option<u64>,
        /// Byte offset.
        offset: u64,
        /// Problem at this offset.
        what: &'static str,
    },
    /// The archive uses a later version of OTF2, which libotf2 may support.
    #[error("`{}` (location {location}) contains {what} of a kind that the native reader does not support", path.display())]
    #[diagnostic(code(trace::unknown), help("{}", if LIBOTF2.is_built { "read the archive with `reader = \"libotf2\"`".into() } else { format!("libotf2 may support them: {}", LIBOTF2.hint()) }))]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The location.
        location: u64,
        /// Records of an unknown kind.
        what: &'static str,
    },
    /// The request cannot be fulfilled.
    #[error("{problem}")]
    #[diagnostic(code(trace::refused))]
    Refused {
        /// Reason.
        problem: String,
        /// Hint.
        #[help]
        help: Option<String>,
    },
}

impl TraceError {
    /// An error with an optional hint.
    #[cold]
    pub(crate) fn refused(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Refused { problem: problem.into(), help: Some(help.into()).filter(|help| !help.is_empty()) }
    }

    /// A file or folder cannot be opened or read.
    #[cold]
    pub(crate) fn unreadable(path: &Path, source: std::io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    /// An error about a file or folder with an optional hint.
    #[cold]
    pub(crate) fn of(path: &Path, problem: impl AsRef<str>, help: impl Into<String>) -> Self {
        Self::refused(format!("`{}` {}", path.display(), problem.as_ref()), help)
    }
}

/// The location of a file of an OTF2 archive, in brackets, for messages.
pub(crate) fn of_location(location: Option<u64>) -> String {
    location.map(|location| format!(" (location {location})")).unwrap_or_default()
}
