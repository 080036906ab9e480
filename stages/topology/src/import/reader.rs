//! What formats are recognised by, and what all their readers use.

use std::io::Read;
use std::path::{Path, PathBuf};

use hopmap_model::{InputPath, open_input};
use hopmap_text::FileError;

use super::ImportError;

/// Bytes by which a format is recognised.
const HEAD: u64 = 64 << 10;
/// Bytes of a file that is read as a whole.
pub(super) const MOST_BYTES: u64 = 1 << 32;
/// Files of a folder by which a format is recognised.
const MOST_ENTRIES: usize = 100_000;

/// What a format is recognised by.
pub(super) struct Sample {
    pub(super) path: PathBuf,
    /// The names in a folder, sorted; `None` of a file.
    pub(super) entries: Option<Vec<String>>,
    /// The first bytes of a file.
    pub(super) head: Vec<u8>,
}

impl Sample {
    pub(super) fn new(path: &Path) -> Result<Self, ImportError> {
        let failed = |error| FileError::unreadable(path, &error);
        if path.is_dir() {
            let mut entries = Vec::new();
            for entry in std::fs::read_dir(path).map_err(failed)?.take(MOST_ENTRIES) {
                entries.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
            }
            entries.sort_unstable();
            return Ok(Self { path: path.to_owned(), entries: Some(entries), head: Vec::new() });
        }
        let mut head = Vec::new();
        open_input(path).map_err(failed)?.take(HEAD).read_to_end(&mut head).map_err(failed)?;
        Ok(Self { path: path.to_owned(), entries: None, head })
    }

    /// Whether the first bytes are all.
    pub(super) fn is_whole(&self) -> bool {
        (self.head.len() as u64) < HEAD
    }

    /// The first bytes as text, if this is a file of text: up to the last whole line if there are more.
    pub(super) fn text(&self) -> Option<&str> {
        if self.entries.is_some() {
            return None;
        }
        let whole = match self.head.len() as u64 == HEAD {
            true => self.head.iter().rposition(|&byte| byte == b'\n').map_or(self.head.len(), |end| end + 1),
            false => self.head.len(),
        };
        std::str::from_utf8(&self.head[..whole]).ok().filter(|text| !text.contains('\0'))
    }
}

/// The only file behind a path, always under one name, so that renaming it changes no key.
#[expect(clippy::unnecessary_wraps, reason = "a reader gives files or an error")]
pub(super) fn one_file(path: &Path) -> Result<Vec<InputPath>, ImportError> {
    Ok(vec![InputPath::named(path, "machine")])
}

/// Reads a whole file of text.
pub(super) fn read_text(path: &Path) -> Result<String, FileError> {
    hopmap_text::read_text(path, MOST_BYTES)
}

/// An error at a place of a file.
pub(super) fn malformed(
    path: &Path,
    line: impl Into<Option<usize>>,
    problem: impl Into<String>,
    help: impl Into<String>,
) -> ImportError {
    FileError { line: line.into(), ..FileError::new(problem, help).in_file(path) }.into()
}
