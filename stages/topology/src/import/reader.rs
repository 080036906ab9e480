//! Which format a file has, and how it is read.

use std::io::Read;
use std::path::{Path, PathBuf};

use hopmap_model::{InputPath, open_input};
use hopmap_text::FileError;

use super::{Format, ImportError, ImportParams, Imported, finish};
use super::{
    core_to_core, graph_csv, graph_json, hwloc, ibnetdiscover, kahip, matrix_csv, mpigraph, netloc,
    netloc_dat, netloc_raw, omnipath, parus, parus_netcdf, scotch, simgrid, slurm_conf, slurm_yaml,
    topomatch,
};

/// Bytes by which a format is recognised.
const HEAD: u64 = 64 << 10;
/// Bytes of a file that is read as a whole.
pub(super) const MOST_BYTES: u64 = 1 << 32;
/// Files of a folder by which a format is recognised.
const MOST_ENTRIES: usize = 100_000;

/// A format that machines are imported from.
pub(super) struct Reader {
    pub(super) format: Format,
    /// Whether something looks like this format. At most one of all formats says so of one file.
    pub(super) recognises: fn(&Sample) -> bool,
    /// Every file behind a path, under names that do not tell where they lie.
    pub(super) files: fn(&Path) -> Result<Vec<InputPath>, ImportError>,
    pub(super) read: fn(&Path, &ImportParams) -> Result<Imported, ImportError>,
}

/// All formats, those that are told apart most surely first.
static READERS: &[&Reader] = &[
    &netloc::READER,
    &netloc_dat::READER,
    &netloc_raw::READER,
    &ibnetdiscover::READER,
    &omnipath::READER,
    &hwloc::READER,
    &simgrid::READER,
    &parus_netcdf::READER,
    &parus::READER,
    &mpigraph::READER,
    &scotch::READER,
    &topomatch::READER,
    &slurm_yaml::READER,
    &slurm_conf::READER,
    &graph_json::READER,
    &kahip::READER,
    &graph_csv::READER,
    &core_to_core::READER,
    &matrix_csv::READER,
];

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

/// What is in a file or a folder.
pub fn recognise(path: &Path) -> Result<Format, ImportError> {
    let sample = Sample::new(path)?;
    let found = READERS.iter().find(|reader| (reader.recognises)(&sample));
    found.map(|reader| reader.format).ok_or_else(|| ImportError::Unknown { path: path.to_owned() })
}

/// Every file behind a path.
pub fn files(path: &Path, format: Option<Format>) -> Result<Vec<InputPath>, ImportError> {
    (reader(path, format)?.files)(path)
}

/// Reads a machine. The path is that of the parameters.
pub fn read(path: &Path, params: &ImportParams) -> Result<Imported, ImportError> {
    let mut imported = (reader(path, params.format)?.read)(path, params)?;
    imported.notes.extend(finish::notes_of_hosts(&imported.system, params)?);
    Ok(imported)
}

fn reader(path: &Path, format: Option<Format>) -> Result<&'static Reader, ImportError> {
    let format = format.map_or_else(|| recognise(path), Ok)?;
    let found = READERS.iter().find(|reader| reader.format == format);
    found.copied().ok_or_else(|| ImportError::Unknown { path: path.to_owned() })
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
