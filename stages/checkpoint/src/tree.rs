//! Folders as they are: what is in them, and with which modes, owners, times, links and holes.

mod check;
mod plant;
mod walk;

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use miette::Diagnostic;

/// Something in a folder that is not another folder's business.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it is, relative to the folder; never absolute and without `..`. The folder itself has the empty path.
    pub path: PathBuf,
    /// What it is.
    pub kind: EntryKind,
    /// Its mode, without the bits of its kind.
    pub mode: u32,
    /// Number of its owner.
    pub owner: u32,
    /// Number of its group.
    pub group: u32,
    /// When its contents last changed.
    pub modified: Time,
}

impl Entry {
    /// Its bytes, if it is a file.
    #[must_use]
    pub fn length(&self) -> u64 {
        match self.kind {
            EntryKind::File { length, .. } => length,
            _ => 0,
        }
    }
}

/// Nanoseconds since 1970, as seconds and the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time {
    /// Whole seconds; negative before 1970.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanoseconds: u32,
}

/// What something in a folder is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A folder.
    Folder,
    /// A file.
    File {
        /// Its bytes.
        length: u64,
        /// Its holes: where they begin and their bytes, in order.
        holes: Vec<(u64, u64)>,
    },
    /// A symbolic link and where it leads.
    Symlink(PathBuf),
    /// Another name of a file that comes before it; the number of that entry.
    HardLink(u32),
    /// A named pipe.
    Fifo,
}

/// What a walk through a folder found.
#[derive(Debug, Default)]
pub struct Tree {
    /// Everything, parents before what is in them, by the bytes of their paths; the folder itself first.
    pub entries: Vec<Entry>,
    /// What cannot be in a checkpoint, and why.
    pub left_out: Vec<(PathBuf, &'static str)>,
}

/// Looks at everything in a folder. Symbolic links are not followed. Extended attributes and access control lists are not
/// looked at.
pub fn walk(folder: &Path) -> Result<Tree, TreeError> {
    walk::walk(folder)
}

/// Whether a file is what it was: the same one, as long, and neither its contents nor anything else about it changed in between.
#[must_use]
pub fn is_unchanged(before: &Metadata, after: &Metadata) -> bool {
    let of = |file: &Metadata| {
        let modified = (file.mtime(), file.mtime_nsec());
        (file.dev(), file.ino(), file.len(), modified, (file.ctime(), file.ctime_nsec()))
    };
    of(before) == of(after)
}

/// Whether entries can be those of a folder: nothing is outside of it, and everything is in a folder that comes before it, once.
pub fn check(entries: &[Entry]) -> Result<(), TreeError> {
    check::check(entries)
}

/// Makes everything but the contents of files below a folder that is there and empty. Files get their length as one hole.
/// Nothing outside the folder is ever written, whatever the entries say: they are checked as a whole before anything is made,
/// what is there already is an error, and symbolic links come last.
pub fn plant(folder: &Path, entries: &[Entry]) -> Result<(), TreeError> {
    check::check(entries)?;
    plant::plant(folder, entries)
}

/// Gives everything its mode, owner (where the system allows it) and times, when all contents are written. What would run with
/// the rights of its owner or group does so only if both could be given to it.
pub fn finish(folder: &Path, entries: &[Entry]) -> Result<(), TreeError> {
    check::check(entries)?;
    plant::finish(folder, entries)
}

/// Why a folder cannot be read or made.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum TreeError {
    /// The system refused an operation.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried, such as `read`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A path that leads out of the folder.
    #[error("the path `{}` leads out of the folder", path.display())]
    #[diagnostic(help("the checkpoint was not made by hopmap, or somebody changed it; nothing was written"))]
    Outside {
        /// The path.
        path: PathBuf,
    },
    /// Entries that contradict each other.
    #[error("`{}` {reason}", path.display())]
    #[diagnostic(help("the checkpoint was not made by hopmap, or somebody changed it; nothing was written"))]
    Contradiction {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        reason: &'static str,
    },
}
