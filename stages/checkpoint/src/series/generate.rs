//! Generates series of checkpoints with known changes: the memory of ranks, written to files.

mod memory;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use hopmap_model::{CheckpointSeries, Context};
use miette::Diagnostic;

use super::dmtcp::{Area, ImageError, ImageWriter, MappedFile, Program};
use crate::chunk::PAGE;
use crate::params::{Change, GenerateParams, Layout};
use memory::{HEAP, LIBRARIES, Library, Memory, Stream};

/// Maximum number of checkpoints and ranks: their numbers have four digits.
pub(crate) const MOST: u32 = 9999;

/// Range of the memory of a rank, in bytes.
pub(crate) const BYTES: std::ops::RangeInclusive<u64> = 16 * PAGE as u64..=1 << 32;

/// Maximum memory of a rank at the last checkpoint, in bytes.
pub(crate) const LARGEST: u64 = 1 << 34;

/// Maximum number of insertions between two checkpoints, and maximum size of one.
pub(crate) const MOST_INSERTIONS: (u32, u32) = (10_000, 1 << 20);

/// Checks the parameters.
pub(crate) fn check(params: &GenerateParams) -> Result<(), GenerateError> {
    for (key, value) in [("checkpoints", params.checkpoints), ("ranks", params.ranks)] {
        if !(1..=MOST).contains(&value) {
            return Err(GenerateError::Number { key, value });
        }
    }
    if !BYTES.contains(&params.bytes) {
        return Err(GenerateError::Bytes(params.bytes));
    }
    check_share("shared", params.shared)?;
    params.changes.iter().try_for_each(check_change)?;
    let used = params.shared + params.changes.iter().map(memory::share).sum::<f64>();
    if used > 1.0 {
        return Err(GenerateError::TooMuch(used));
    }
    let growth: f64 = params.changes.iter().map(|change| growth(change, params.bytes)).sum();
    match params.bytes as f64 + growth * f64::from(params.checkpoints - 1) {
        bytes if bytes > LARGEST as f64 => Err(GenerateError::Grows(bytes)),
        _ => Ok(()),
    }
}

/// Maximum growth of the memory by a change, in bytes.
fn growth(change: &Change, bytes: u64) -> f64 {
    match *change {
        Change::Growth { pages } => pages * bytes as f64,
        Change::Insertions { count, bytes } => f64::from(count) * f64::from(bytes),
        _ => 0.0,
    }
}

fn check_change(change: &Change) -> Result<(), GenerateError> {
    match *change {
        Change::Moves { pages, .. } => check_share("moves: pages", pages),
        Change::Growth { pages } => check_share("growth: pages", pages),
        Change::Zeros { pages } => check_share("zeros: pages", pages),
        Change::Words { pages, words } => {
            check_share("words: pages", pages).and_then(|()| check_share("words: words", words))
        }
        Change::Drift { share, step, .. } => {
            check_share("drift: share", share).and_then(|()| check_share("drift: step", step))
        }
        Change::Insertions { count, bytes } => {
            match count <= MOST_INSERTIONS.0 && (1..=MOST_INSERTIONS.1).contains(&bytes) {
                true => Ok(()),
                false => Err(GenerateError::Insertions { count, bytes }),
            }
        }
    }
}

fn check_share(key: &'static str, share: f64) -> Result<(), GenerateError> {
    match (0.0..=1.0).contains(&share) {
        true => Ok(()),
        false => Err(GenerateError::Share { key, share }),
    }
}

/// Generates the series in a temporary folder that is removed with it.
pub(crate) fn generate(params: &GenerateParams, cx: &Context<'_>) -> Result<CheckpointSeries, GenerateError> {
    check(params)?;
    let scratch = cx.scratch();
    let unwritable = |source| GenerateError::Write { path: scratch.clone(), source };
    let folder =
        tempfile::Builder::new().prefix(".hopmap-checkpoints-").tempdir_in(&scratch).map_err(unwritable)?;
    for checkpoint in 1..=params.checkpoints {
        fs::create_dir(folder.path().join(checkpoint_name(checkpoint))).map_err(unwritable)?;
    }
    let libraries = memory::libraries(params);
    let mut bytes = 0;
    for rank in 0..params.ranks {
        bytes += generate_rank(params, rank, &libraries, folder.path(), cx)?;
    }
    cx.log(format_args!("{} checkpoints of {} ranks, {bytes} bytes", params.checkpoints, params.ranks));
    Ok(CheckpointSeries::new(files(params, folder.path())).kept_by(folder))
}

/// Writes all files of a rank; returns their size.
fn generate_rank(
    params: &GenerateParams,
    rank: u32,
    libraries: &[Library],
    folder: &Path,
    cx: &Context<'_>,
) -> Result<u64, GenerateError> {
    let files = params.checkpoints * params.ranks;
    let mut memory = Memory::new(params, rank);
    let mut bytes = 0;
    for checkpoint in 1..=params.checkpoints {
        let done = rank * params.checkpoints + checkpoint - 1;
        if cx.should_stop() {
            return Err(GenerateError::Stopped { done, files });
        }
        if checkpoint > 1 {
            for (index, change) in (0..).zip(&params.changes) {
                let stream = Stream { rank, checkpoint, change: index };
                memory::apply(change, index, &mut memory, &mut stream.draws(params.seed));
            }
        }
        let path = folder.join(file_name(params.layout, checkpoint, rank));
        let written = match params.layout {
            Layout::Dmtcp => write_dmtcp(&path, &memory, libraries, rank, params.ranks),
            Layout::Plain => write_plain(&path, &memory, libraries),
        };
        bytes += written.map_err(|source| GenerateError::Write { path, source })?;
        cx.progress(u64::from(done) + 1, files.into());
    }
    Ok(bytes)
}

fn files(params: &GenerateParams, folder: &Path) -> BTreeMap<String, PathBuf> {
    let of = |checkpoint| (0..params.ranks).map(move |rank| file_name(params.layout, checkpoint, rank));
    (1..=params.checkpoints).flat_map(of).map(|name| (name.clone(), folder.join(name))).collect()
}

fn checkpoint_name(checkpoint: u32) -> String {
    format!("{checkpoint:04}")
}

fn file_name(layout: Layout, checkpoint: u32, rank: u32) -> String {
    let ending = match layout {
        Layout::Dmtcp => "dmtcp",
        Layout::Plain => "bin",
    };
    format!("{}/rank-{rank:04}.{ending}", checkpoint_name(checkpoint))
}

/// Process id of rank 0.
const FIRST_PROCESS: u32 = 40_000;

/// Writes a DMTCP v4 image; returns its size.
fn write_dmtcp(
    path: &Path,
    memory: &Memory,
    libraries: &[Library],
    rank: u32,
    ranks: u32,
) -> io::Result<u64> {
    let program = Program {
        name: "generated".into(),
        executable: "/usr/bin/generated".into(),
        process: FIRST_PROCESS + rank,
        peers: ranks,
    };
    let write = || {
        let mut image = ImageWriter::new(BufWriter::new(File::create(path)?), &program)?;
        for (area, bytes) in areas(memory) {
            match bytes.len() as u64 == area.length {
                true => image.anonymous(&area, bytes)?,
                false => image.anonymous(&area, &whole_pages(bytes))?,
            }
        }
        for library in libraries {
            image.mapped(&area_of(library), &library.bytes)?;
        }
        Ok(length(image.finish()?)?)
    };
    write().map_err(|error: ImageError| match error {
        ImageError::Write(error) => error,
        other => io::Error::other(other),
    })
}

/// Writes the raw memory; returns its size.
fn write_plain(path: &Path, memory: &Memory, libraries: &[Library]) -> io::Result<u64> {
    let mut file = BufWriter::new(File::create(path)?);
    for (_, bytes) in areas(memory) {
        file.write_all(bytes)?;
    }
    for library in libraries {
        file.write_all(&library.bytes)?;
    }
    length(file)
}

/// The areas of the rank without libraries, by address, and their contents.
fn areas(memory: &Memory) -> Vec<(Area, &[u8])> {
    let others = memory.areas.iter().chain(memory.fields.values());
    let mut areas: Vec<_> = std::iter::once((HEAP, &memory.heap, "[heap]"))
        .chain(others.map(|area| (area.start, &area.bytes, "")))
        .filter(|(_, bytes, _)| !bytes.is_empty())
        .map(|(start, bytes, name)| {
            let length = bytes.len().next_multiple_of(PAGE) as u64;
            let area = Area { start, length, protection: 3, name: name.into(), ..Area::default() };
            (area, bytes.as_slice())
        })
        .collect();
    areas.sort_by_key(|(area, _)| area.start);
    areas
}

fn area_of(library: &Library) -> Area {
    Area {
        start: library.start,
        length: library.bytes.len().next_multiple_of(PAGE) as u64,
        protection: if library.executable { 5 } else { 1 },
        shared: false,
        name: "/usr/lib/libgenerated.so.1".into(),
        file: Some(MappedFile { offset: library.start - LIBRARIES, device: (254, 0), inode: 1 }),
    }
}

fn whole_pages(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(PAGE), 0);
    padded
}

/// The size of a file that was written from its beginning.
fn length(mut file: BufWriter<File>) -> io::Result<u64> {
    file.flush()?;
    file.stream_position()
}

/// A series that cannot be generated.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum GenerateError {
    /// The parameter `checkpoints` or `ranks` is out of range.
    #[error("`{key}` = {value} is out of range")]
    #[diagnostic(code(checkpoint::number), help("the range is 1 to {MOST}"))]
    Number {
        /// Its name.
        key: &'static str,
        /// Its value.
        value: u32,
    },
    /// The parameter `bytes` is out of range.
    #[error("`bytes` = {0} is out of range")]
    #[diagnostic(code(checkpoint::bytes), help("a rank has from {} to {} bytes", BYTES.start(), BYTES.end()))]
    Bytes(u64),
    /// A fraction out of range.
    #[error("`{key}` = {share} is out of range")]
    #[diagnostic(code(checkpoint::share), help("the range is 0 to 1"))]
    Share {
        /// Its name.
        key: &'static str,
        /// Its value.
        share: f64,
    },
    /// Fractions that exceed 1 in total.
    #[error("libraries and fields take {0} of the memory, more than 1")]
    #[diagnostic(
        code(checkpoint::too_much),
        help("`shared` plus the `share` of each `drift` must be at most 1; the heap has the rest")
    )]
    TooMuch(f64),
    /// Too many insertions, or empty ones.
    #[error("`insertions` = {count} of {bytes} bytes each is out of range")]
    #[diagnostic(code(checkpoint::insertions), help("at most {} insertions of 1 to {} bytes each", MOST_INSERTIONS.0, MOST_INSERTIONS.1))]
    Insertions {
        /// Their number.
        count: u32,
        /// Size of each.
        bytes: u32,
    },
    /// Too much memory at the last checkpoint.
    #[error("the memory of a rank grows to {0:.3e} bytes")]
    #[diagnostic(
        code(checkpoint::grows),
        help("the maximum is {LARGEST} bytes; use fewer checkpoints, or less `growth` and `insertions`")
    )]
    Grows(f64),
    /// A file cannot be written.
    #[error("cannot write the series: {}", path.display())]
    #[diagnostic(
        code(checkpoint::generate_write),
        help("a file takes `bytes` plus its growth; set TMPDIR to use another disk")
    )]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Stopped by the user or a deadline. Half a series is useless.
    #[error("stopped after {done} of {files} files")]
    #[diagnostic(code(checkpoint::stopped))]
    Stopped {
        /// Number of written files.
        done: u32,
        /// Total number of files.
        files: u32,
    },
}
