//! Errors of the traces of training jobs, and the messages that formats share.

use std::path::Path;

use hopmap_text::FileError;
use miette::Diagnostic;

/// Traces that cannot be read, or do not make a job.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum TrainingError {
    /// A text file is invalid.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// The traces cannot be used.
    #[error("{problem}")]
    #[diagnostic(code(training::refused))]
    Refused {
        /// Reason.
        problem: String,
        /// Hint.
        #[help]
        help: Option<String>,
    },
}

impl TrainingError {
    /// An error with an optional hint.
    #[cold]
    pub(crate) fn refused(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Refused { problem: problem.into(), help: Some(help.into()).filter(|help| !help.is_empty()) }
    }

    /// An error about a file or folder with an optional hint.
    #[cold]
    pub(crate) fn of(path: &Path, problem: impl AsRef<str>, help: impl Into<String>) -> Self {
        Self::refused(format!("`{}` {}", path.display(), problem.as_ref()), help)
    }
}

/// Largest number of ranks.
pub(crate) const MAX_RANKS: u32 = 1 << 24;

/// What to do about a trace that lacks ranks, or has those of different steps.
pub(crate) const RECORD_ALL: &str = "pass a folder with the traces of all ranks of the job, recorded in the same steps; \
     docs/howto/training-traces.md says how";
/// What to do about files that do not tell their ranks.
pub(crate) const NAME_RANKS: &str = "end the names of the files in the rank, such as `step.3.et`, `nccl_trace_rank_3.json` or `rank3.json.gz`";
/// What to do about content that is impossible or unknown.
pub(crate) const UNKNOWN: &str = "the file is damaged, or its tool is of a version that hopmap does not know; \
     docs/howto/training-traces.md says what to record";

/// Something in a file of a job is impossible or unknown.
#[cold]
pub(crate) fn damaged(path: &Path, problem: impl AsRef<str>) -> TrainingError {
    TrainingError::of(path, problem, UNKNOWN)
}

/// A job lacks ranks.
#[cold]
pub(crate) fn lacking(path: &Path, problem: impl AsRef<str>) -> TrainingError {
    TrainingError::of(path, problem, RECORD_ALL)
}
