//! Files that survive a crash: written beside their place, synced and renamed; locks that die with their holder;
//! logs that are only ever appended to.

mod crash;
mod lock;
mod log;
mod replace;

use std::io;
use std::path::{Path, PathBuf};

use miette::Diagnostic;

pub use crash::{CRASH_POINTS, crash_point};
pub use lock::{Lock, lock_within};
pub use log::AppendLog;
pub use replace::{
    Staging, adopt_folder, copy_file, is_leftover, replace_file, replace_folder, replace_symlink,
    sync_folder, sync_tree,
};

/// A file, a folder, a lock or a log could not be used.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum DurableError {
    /// The system refused an operation.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried, such as `write`.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process holds the lock.
    #[error("{} is locked by {holder}", path.display())]
    #[diagnostic(help(
        "wait for it to end (`hopmap run` does with --wait 10m), or use another store with --store"
    ))]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// Process, host and command of the holder.
        holder: String,
    },
    /// The file system has no locks.
    #[error("the file system of {} does not support flock", path.display())]
    #[diagnostic(help("put the store on another file system, or mount this one with locks"))]
    NoLocks {
        /// The lock file.
        path: PathBuf,
    },
}

impl DurableError {
    /// Wraps an error of the system. Used as `map_err(DurableError::io("write", path))`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}
