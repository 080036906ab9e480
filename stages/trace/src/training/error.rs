//! Messages of errors that the formats share.

use std::path::Path;

use crate::TraceError;

/// What to do about a trace that lacks ranks or groups.
pub(super) const RECORD_ALL: &str = "pass a folder with the traces of all ranks of the job, recorded in the same steps; \
     docs/howto/training-traces.md says how";

/// An error in a file of a job.
#[cold]
pub(super) fn damaged(path: &Path, problem: impl AsRef<str>) -> TraceError {
    TraceError::of(path, problem, RECORD_ALL)
}
