//! Files that a user names for what a command writes: only those that hopmap wrote are replaced.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use hopmap_command::{Failure, shown};
use miette::Diagnostic;

use super::output::Result;
use crate::accepted::Accepted;
use crate::{archive, engine, lock, refresh, report};

/// What a command writes to a file that its user named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Report,
    Timeline,
    Archive,
    Lock,
    Accepted,
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
            Ok(there) if there.len() > 0 && !self.is_at(path) => {
                Err(refused("is there, and hopmap did not write it"))
            }
            // What else is wrong is found by writing.
            _ => Ok(()),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Report => "a report",
            Self::Timeline => "a timeline",
            Self::Archive => "an archive",
            Self::Lock => "a lock file",
            Self::Accepted => "an accepted state",
            Self::Metrics => "metrics",
        }
    }

    /// Whether such a file is at a path.
    fn is_at(self, path: &Path) -> bool {
        match self {
            Self::Report => report::is_one(path),
            Self::Timeline => head(path).contains(report::TIMELINE_MARK),
            Self::Archive => archive::is_whole(path),
            Self::Lock => head(path).starts_with(lock::HEADING),
            Self::Accepted => Accepted::read(path).is_ok(),
            Self::Metrics => head(path).starts_with(refresh::METRICS_MARK),
        }
    }
}

/// How a file begins.
fn head(path: &Path) -> String {
    let mut head = Vec::new();
    let _ = File::open(path).and_then(|file| file.take(4096).read_to_end(&mut head));
    String::from_utf8_lossy(&head).into_owned()
}

/// Whether a path is in a store, but not among its reports.
fn is_in_store(path: &Path) -> bool {
    let folder = path.parent().and_then(|parent| fs::canonicalize(parent).ok());
    let mut folders = folder.iter().flat_map(|folder| folder.ancestors());
    folders.any(|root| {
        engine::is_store(root) && folder.as_ref().is_none_or(|folder| *folder != root.join("reports"))
    })
}
