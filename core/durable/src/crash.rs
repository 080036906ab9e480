//! Crash points for tests: one after every step that later steps rely on.
//!
//! `HOPMAP_CRASH_AT=NAME:N` kills the process when it reaches a point for the N-th time (default: first
//! time). `HOPMAP_CRASH_LOG=FILE` gets a line for each time a point is reached: name, number, and path. Both
//! are ignored by builds without debug assertions, such as releases.

use std::path::Path;

/// The names of all points.
pub const CRASH_POINTS: &[&str] = &[
    "file.written",
    "file.renamed",
    "link.made",
    "link.renamed",
    "staging.made",
    "folder.synced",
    "folder.aside",
    "folder.replaced",
    "folder.renamed",
    "log.appended",
    "log.synced",
    "store.work-cleared",
    "store.artifact-renamed",
    "store.artifacts-synced",
    "store.run-begun",
    "store.garbage-removed",
    "job.submitted",
    "job.taken-over",
    "job.forgotten",
    "archive.written",
    "archive.renamed",
    "archive.kept",
    "checkpoint.pack-written",
    "checkpoint.pack-renamed",
    "checkpoint.manifest-removed",
    "checkpoint.mark-removed",
    "checkpoint.pack-removed",
    "checkpoint.pack-replaced",
    "checkpoint.restore-filled",
    "checkpoint.restore-renamed",
    "refresh.consumer-done",
    "refresh.pending-cleared",
    "refresh.entry-aside",
    "refresh.entry-removed",
];

/// Marks a crash point after a step on a file or folder.
#[inline]
pub fn crash_point(name: &'static str, path: &Path) {
    #[cfg(debug_assertions)]
    asked::pass(name, path);
    #[cfg(not(debug_assertions))]
    let _ = (name, path);
}

#[cfg(debug_assertions)]
mod asked {
    use std::collections::BTreeMap;
    use std::ffi::OsString;
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::path::Path;
    use std::sync::{LazyLock, Mutex, PoisonError};

    /// Where to crash, and the log.
    static ASKED: LazyLock<(Option<OsString>, Option<OsString>)> =
        LazyLock::new(|| (std::env::var_os("HOPMAP_CRASH_AT"), std::env::var_os("HOPMAP_CRASH_LOG")));
    static PASSED: Mutex<BTreeMap<&str, u32>> = Mutex::new(BTreeMap::new());

    pub(super) fn pass(name: &'static str, path: &Path) {
        assert!(super::CRASH_POINTS.contains(&name), "{name} is not in the table of crash points");
        let (at, log) = &*ASKED;
        if at.is_none() && log.is_none() {
            return;
        }
        let mut passed = PASSED.lock().unwrap_or_else(PoisonError::into_inner);
        let count = passed.entry(name).or_default();
        *count += 1;
        let passing = format!("{name}:{count}");
        if let Some(log) = log {
            let line = format!("{passing} {}\n", path.display());
            let written = OpenOptions::new().append(true).create(true).open(log);
            let written = written.and_then(|mut log| log.write_all(line.as_bytes()));
            assert!(written.is_ok(), "HOPMAP_CRASH_LOG: {written:?}");
        }
        if at.as_ref().is_some_and(|at| *at == *passing || *count == 1 && at == name) {
            // Nothing is dropped or flushed. Other threads may run a little longer, as with a kill from
            // outside.
            let killed =
                rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            unreachable!("killed itself: {killed:?}");
        }
    }
}
