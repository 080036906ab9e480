//! What can go wrong.

use std::path::{Path, PathBuf};

use hopmap_artifact::ArtifactError;
use hopmap_model::NotBuilt;
use hopmap_replay::Refusal;
use hopmap_text::FileError;
use miette::Diagnostic;

use crate::LIBOTF2;

/// What can go wrong when traces are read or made.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum TraceError {
    /// Something that is asked for is not in this build.
    #[error(transparent)]
    #[diagnostic(transparent)]
    NotBuilt(#[from] NotBuilt),
    /// Something is wrong with a file of text.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// A table of what is read cannot be written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Table(#[from] ArtifactError),
    /// A program has no steps.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Steps(#[from] Refusal),
    /// A file cannot be opened or read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Files cannot be written.
    #[error("cannot write below `{}`", path.display())]
    #[diagnostic(help("{help}"))]
    Write {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
        /// What to do.
        help: &'static str,
    },
    /// A file of an OTF2 archive is cut off or its bytes make no sense.
    #[error("`{}`{} is damaged at byte {offset}: {what}", path.display(), of_location(*location))]
    #[diagnostic(help(
        "the trace was not written to its end, or not copied as a whole: copy or record it again, or take what comes before with `allow_truncated = true`"
    ))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The location whose file it is.
        location: Option<u64>,
        /// Where.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// A later version of OTF2 is used, which only libotf2 may know.
    #[error("`{}` (location {location}) holds {what} of a kind that the native reader does not know", path.display())]
    #[diagnostic(help("{}", if LIBOTF2.is_built { "read the archive with `reader = \"libotf2\"`".into() } else { format!("libotf2 may know them: {}", LIBOTF2.hint()) }))]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The location.
        location: u64,
        /// What is not known.
        what: &'static str,
    },
    /// What is asked for cannot be done.
    #[error("{problem}")]
    Refused {
        /// Why not.
        problem: String,
        /// What to do.
        #[help]
        help: Option<String>,
    },
}

impl TraceError {
    /// What cannot be done, and what to do about it, if anything.
    #[cold]
    pub(crate) fn refused(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Refused { problem: problem.into(), help: Some(help.into()).filter(|help| !help.is_empty()) }
    }

    /// A file or folder cannot be opened or read.
    #[cold]
    pub(crate) fn unreadable(path: &Path, source: std::io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    /// What is wrong with a file or folder, and what to do about it, if anything.
    #[cold]
    pub(crate) fn of(path: &Path, problem: impl AsRef<str>, help: impl Into<String>) -> Self {
        Self::refused(format!("`{}` {}", path.display(), problem.as_ref()), help)
    }
}

/// Which location of an OTF2 archive a file belongs to, in brackets.
pub(crate) fn of_location(location: Option<u64>) -> String {
    location.map(|location| format!(" (location {location})")).unwrap_or_default()
}
