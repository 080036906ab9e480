//! Messages of errors that the formats share.

use std::path::Path;

use crate::error::TraceError;

/// What to do about a trace that lacks ranks, or has those of different steps.
pub(super) const RECORD_ALL: &str = "pass a folder with the traces of all ranks of the job, recorded in the same steps; \
     docs/howto/training-traces.md says how";
/// What to do about files that do not tell their ranks.
pub(super) const NAME_RANKS: &str = "end the names of the files in the rank, such as `step.3.et`, `nccl_trace_rank_3.json` or `rank3.json.gz`";
/// What to do about content that is impossible or unknown.
pub(super) const UNKNOWN: &str = "the file is damaged, or its tool is of a version that hopmap does not know; \
     docs/howto/training-traces.md says what to record";

/// Something in a file of a job is impossible or unknown.
#[cold]
pub(super) fn damaged(path: &Path, problem: impl AsRef<str>) -> TraceError {
    TraceError::of(path, problem, UNKNOWN)
}

/// A job lacks ranks.
#[cold]
pub(super) fn lacking(path: &Path, problem: impl AsRef<str>) -> TraceError {
    TraceError::of(path, problem, RECORD_ALL)
}
