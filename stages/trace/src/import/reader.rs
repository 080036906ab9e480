//! What a reader of a format is, what it is recognised by, and what all of them share.

use std::io::Read;
use std::path::Path;

use hopmap_model::{Context, InputPath, TaskGraph, open_input};
use hopmap_text::FileError;

use crate::TraceError;
use crate::archive::tell;

/// So much of a file is looked at.
const LOOKED_AT: u64 = 1 << 16;

/// A format that task graphs are read from.
pub(super) struct Reader {
    /// Whether something looks like this format. At most one of all formats says so of one file or folder.
    pub(super) recognises: fn(&Sample<'_>) -> bool,
    /// Every file behind a path, as the stage names them in keys.
    pub(super) files: fn(&Path) -> Result<Vec<InputPath>, FileError>,
    /// Messages and bytes per ordered pair of processes; the ranks that are asked for are a hint.
    pub(super) read: fn(&Path, Option<u32>, &Context<'_>) -> Result<TaskGraph, TraceError>,
}

/// What a format is recognised by.
pub(super) struct Sample<'a> {
    pub(super) path: &'a Path,
    pub(super) is_folder: bool,
    /// The first bytes of a file; none of a folder.
    pub(super) head: Vec<u8>,
    /// The same as text.
    pub(super) text: String,
}

impl<'a> Sample<'a> {
    pub(super) fn new(path: &'a Path) -> Result<Self, FileError> {
        let is_folder = path.is_dir();
        let mut head = Vec::new();
        if !is_folder {
            let read = open_input(path).and_then(|file| file.take(LOOKED_AT).read_to_end(&mut head));
            read.map_err(|error| FileError::unreadable(path, &error))?;
        }
        Ok(Self::of(path, is_folder, head))
    }

    pub(super) fn of(path: &'a Path, is_folder: bool, head: Vec<u8>) -> Self {
        let text = String::from_utf8_lossy(&head);
        let text = text.trim_start_matches('\u{feff}').to_owned();
        Self { path, is_folder, head, text }
    }

    /// The first line that says something and is no comment.
    pub(super) fn first_line(&self) -> Option<&str> {
        self.text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))
    }
}

/// The file alone, always under one name, so that renaming it changes no key.
#[expect(clippy::unnecessary_wraps, reason = "other readers look for files and may fail")]
pub(super) fn one_file(path: &Path) -> Result<Vec<InputPath>, FileError> {
    Ok(vec![InputPath::named(path, "trace")])
}

/// Says how much of a trace does not count.
pub(super) fn warn_of_collectives(count: u64, cx: &Context<'_>) {
    tell(cx, "warning: collective operations, once for every process, which do not count", count);
}
