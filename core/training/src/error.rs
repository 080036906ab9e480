//! Errors of the traces of training jobs, and the messages that formats share.

use std::path::{Path, PathBuf};

use hopmap_model::Context;
use hopmap_text::FileError;
use miette::Diagnostic;

/// Traces that cannot be read, or do not make a job.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum TrainingError {
    /// A text file is invalid.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// A file or folder cannot be opened or read.
    #[error("cannot read `{}`", path.display())]
    #[diagnostic(code(training::read))]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
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

/// What to do about a log that ends within a line.
pub(crate) const CUT: &str = "the file was not written or copied completely: copy or record it again, or use the part \
     before its end with `allow_truncated = true`";

/// Steps between two questions whether to stop: some milliseconds.
const STEPS: usize = 1 << 16;

/// Fails now and then over many steps if the run is to stop.
pub(crate) fn check_stop(step: usize, cx: &Context<'_>) -> Result<(), TrainingError> {
    if step.is_multiple_of(STEPS) && cx.should_stop() {
        return Err(TrainingError::refused("stopped before the trace was matched", ""));
    }
    Ok(())
}

/// Everything in a folder, sorted by name.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>, TrainingError> {
    let entries = std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect());
    let failed = |source| TrainingError::Read { path: folder.to_owned(), source };
    let mut entries: Vec<PathBuf> = entries.map_err(failed)?;
    entries.sort_unstable();
    Ok(entries)
}

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
