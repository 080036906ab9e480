//! The interface of format readers, the sample for recognition, and shared code.

use std::io::Read;
use std::num::NonZeroU32;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use hopmap_model::{Context, Error, InputPath, TaskGraph, open_input};
use hopmap_recording::is_profiles;
use hopmap_text::{FileError, Foreign, Rows, without_foreign};

use crate::archive::log_count;
use crate::error::TraceError;
use crate::params::{Algorithms, Collectives};

/// Bytes of a file that recognition reads.
const LOOKED_AT: u64 = 1 << 16;

/// A format of communication matrices.
pub(super) struct Reader {
    /// Whether the sample has this format. At most one format accepts a given sample.
    pub(super) recognises: fn(&Sample<'_>) -> bool,
    /// All files behind a path, under the names that keys use.
    pub(super) files: fn(&Path) -> Result<Vec<InputPath>, TraceError>,
    /// Messages and bytes per ordered pair of processes.
    pub(super) read: fn(&Path, Options, &Context<'_>) -> Result<TaskGraph, Error>,
    /// What the lines of a file are like.
    pub(super) rows: Rows,
    /// Whether a text begins like a file of a folder in this format.
    pub(super) begins: fn(&str) -> bool,
}

impl Reader {
    /// Of a format that is no text.
    pub(super) const BINARY: Self = Self {
        recognises: |_| false,
        files: one_file,
        read: |path, _, _| Err(TraceError::of(path, "has an unknown format", "").into()),
        rows: Rows::ANY,
        begins: |_| false,
    };
}

/// What a reader may use besides the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// The requested number of ranks, as a hint.
    pub(crate) ranks: Option<u32>,
    /// Ranks per host of files without hosts.
    pub(crate) ranks_per_host: Option<NonZeroU32>,
    /// Whether collective operations count, where the format has them.
    pub(crate) collectives: Collectives,
    /// Their algorithms.
    pub(crate) algorithms: Algorithms,
    /// Whether a log that ends early counts up to its end.
    pub(crate) allow_truncated: bool,
}

/// Input of format recognition.
pub(super) struct Sample<'a> {
    pub(super) path: &'a Path,
    pub(super) is_folder: bool,
    /// The first bytes of a file; empty for a folder.
    pub(super) head: Vec<u8>,
    /// The same as text, unpacked, with lines of other programs empty.
    pub(super) text: String,
    /// Whether that is the whole file.
    pub(super) is_whole: bool,
    pub(super) is_packed: bool,
}

impl<'a> Sample<'a> {
    pub(super) fn new(path: &'a Path) -> Result<Self, FileError> {
        let is_folder = path.is_dir();
        let mut head = Vec::new();
        // The prefix of profiles need not be a file.
        if !is_folder && (path.exists() || !is_profiles(path)) {
            let read = open_input(path).and_then(|file| file.take(LOOKED_AT).read_to_end(&mut head));
            read.map_err(|error| FileError::unreadable(path, &error))?;
        }
        Ok(Self::of(path, is_folder, head))
    }

    pub(super) fn of(path: &'a Path, is_folder: bool, head: Vec<u8>) -> Self {
        let is_packed = head.starts_with(&[0x1f, 0x8b]);
        let mut unpacked = Vec::new();
        if is_packed {
            // The begin of a packed file ends before the stream does.
            let _ = MultiGzDecoder::new(head.as_slice()).take(LOOKED_AT).read_to_end(&mut unpacked);
        }
        let bytes = if is_packed { &unpacked } else { &head };
        let is_whole = [&head, bytes].iter().all(|bytes| (bytes.len() as u64) < LOOKED_AT);
        let text = String::from_utf8_lossy(bytes);
        let text = without_foreign(text.trim_start_matches('\u{feff}')).into_owned();
        Self { path, is_folder, head, text, is_whole, is_packed }
    }

    /// Whether a packed file is whole and has nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        let mut content = MultiGzDecoder::new(self.head.as_slice());
        matches!(content.read(&mut [0]), Ok(0))
    }

    /// The first line that is neither blank nor a comment.
    pub(super) fn first_line(&self) -> Option<&str> {
        self.text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))
    }
}

/// The file alone, under a fixed name, so that renaming it does not change keys.
#[expect(clippy::unnecessary_wraps, reason = "other readers look for files and may fail")]
pub(super) fn one_file(path: &Path) -> Result<Vec<InputPath>, TraceError> {
    Ok(vec![InputPath::named(path, "trace")])
}

/// Warns about lines of other programs, which are skipped.
pub(super) fn warn_of_foreign(foreign: Option<&Foreign>, cx: &Context<'_>) {
    foreign.into_iter().for_each(|foreign| cx.log(format_args!("warning: {foreign}")));
}

/// Warns about collective operations, which are not counted.
pub(super) fn warn_of_collectives(count: u64, cx: &Context<'_>) {
    log_count(cx, "warning: collective operations (once per process), which are not counted", count);
}
