//! Files that a user names for what a command writes: only those that hopmap wrote are replaced.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use hopmap_command::{Failure, shown};
use miette::Diagnostic;
use rustix::fs::{XattrFlags, getxattr, setxattr};

use super::output::Result;
use crate::accepted::Accepted;
use crate::verdict::AcceptedMetrics;
use crate::{archive, engine, lock, refresh, report};

/// What a command writes to a file that its user named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Report,
    Timeline,
    Archive,
    Lock,
    Accepted,
    AcceptedValues,
    Metrics,
}

/// What is in the place of a file that a command would write was not written by hopmap.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{path} {what}, and would be replaced by {new}")]
#[diagnostic(code(cli::foreign_file), help("name another file, or move this one away"))]
struct Foreign {
    path: String,
    what: &'static str,
    new: &'static str,
}

impl Written {
    /// Refuses to write to a path: something else is there, or it is in a store. Asked before the work, so that none is lost.
    pub(crate) fn check_place(self, path: &Path) -> Result<()> {
        let refused = |what| Failure::usage(Foreign { path: shown(path), what, new: self.name() });
        if is_in_store(path) {
            return Err(refused("is in a store"));
        }
        match fs::symlink_metadata(path) {
            Ok(there) if there.is_symlink() => Err(refused("is a symbolic link")),
            Ok(there) if !there.is_file() => Err(refused("is not a regular file")),
            Ok(there) if there.len() > 0 && (!self.is_at(path) || is_edited(path)) => {
                Err(refused("exists, was not written by hopmap or was edited"))
            }
            // What else is wrong is found by writing.
            _ => Ok(()),
        }
    }

    /// Marks a file that was written, so that an edited one is known, where the file system takes marks.
    pub(crate) fn mark(path: &Path) {
        if let Some(blake3) = blake3_of(path) {
            let _ = setxattr(path, MARK, blake3.as_bytes(), XattrFlags::empty());
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Report => "a report",
            Self::Timeline => "a timeline",
            Self::Archive => "an archive",
            Self::Lock => "a lock file",
            Self::Accepted => "an accepted state",
            Self::AcceptedValues => "accepted values",
            Self::Metrics => "metrics",
        }
    }

    /// Whether such a file is at a path.
    fn is_at(self, path: &Path) -> bool {
        match self {
            Self::Report => report::is_one(path) && !report::is_edited(path),
            Self::Timeline => {
                let head = head(path);
                head.starts_with('{') && head.contains(report::TIMELINE_MARK)
            }
            Self::Archive => archive::is_whole(path),
            Self::Lock => head(path).starts_with(lock::HEADING),
            Self::Accepted => Accepted::read(path).is_ok(),
            Self::AcceptedValues => AcceptedMetrics::read(path).is_ok(),
            Self::Metrics => head(path).starts_with(refresh::METRICS_MARK),
        }
    }
}

/// The extended attribute with the BLAKE3 of what was written.
const MARK: &str = "user.hopmap.written";

/// Whether a file is known to be other than it was written.
fn is_edited(path: &Path) -> bool {
    let mut marked = [0; 64];
    let is_marked = getxattr(path, MARK, &mut marked[..]).is_ok_and(|length| length == marked.len());
    is_marked && blake3_of(path).is_none_or(|blake3| blake3.as_bytes() != marked)
}

fn blake3_of(path: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path).ok()?).ok()?;
    Some(hasher.finalize().to_hex().to_string())
}

/// How a file begins.
fn head(path: &Path) -> String {
    let mut head = Vec::new();
    let _ = File::open(path).and_then(|file| file.take(4096).read_to_end(&mut head));
    String::from_utf8_lossy(&head).into_owned()
}

/// Whether a path is in a store, but neither among its reports nor in the folder of a process that works for it.
pub(crate) fn is_in_store(path: &Path) -> bool {
    let folder = path.ancestors().skip(1).find_map(|folder| fs::canonicalize(folder).ok());
    let Some(folder) = folder else { return false };
    let is_free = |root: &Path| folder == root.join("reports") || folder.starts_with(root.join("work"));
    folder.ancestors().any(|root| engine::is_store(root) && !is_free(root))
}
