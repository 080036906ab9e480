//! Files that survive a crash: written under a temporary name, synced and renamed; locks that end with their
//! holder; append-only logs.

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

/// An operation on a file, a folder, a lock or a log failed.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum DurableError {
    /// The operating system reported an error.
    #[error("cannot {action} {}", path.display())]
    #[diagnostic(code(durable::io))]
    Io {
        /// The attempted operation, such as `write`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process holds the lock.
    #[error("{} is locked by {holder}", path.display())]
    #[diagnostic(
        code(durable::busy),
        help(
            "wait until it ends (`hopmap run --wait 10m` waits up to 10 minutes), or use another store with --store"
        )
    )]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// Process, host and command of the holder.
        holder: String,
    },
    /// The file system does not support locks.
    #[error("the file system of {} does not support flock", path.display())]
    #[diagnostic(
        code(durable::no_locks),
        help("use a store on another file system, or mount this one with lock support (Lustre: `-o flock`)")
    )]
    NoLocks {
        /// The lock file.
        path: PathBuf,
    },
}

impl DurableError {
    /// Wraps an I/O error. Used as `map_err(DurableError::io("write", path))`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}
