//! Series of checkpoints whose changes are known.

mod change;
mod contents;
mod draws;
mod error;
mod field;
mod image;
mod memory;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hopmap_model::{CheckpointSeries, Context};

use crate::chunk::PAGE;
use crate::{Change, GenerateParams, Layout};

use draws::Stream;
use memory::{Library, Memory};

pub use error::GenerateError;

/// Most checkpoints and ranks: their numbers have four digits.
pub(crate) const MOST: u32 = 9999;

/// Least and most bytes of the memory of a rank.
pub(crate) const BYTES: std::ops::RangeInclusive<u64> = 16 * PAGE as u64..=1 << 32;

/// Most bytes of the memory of a rank at the last checkpoint.
pub(crate) const LARGEST: u64 = 1 << 34;

/// Most insertions between two checkpoints, and most bytes of one.
pub(crate) const MOST_INSERTIONS: (u32, u32) = (10_000, 1 << 20);

/// Checks that there is such a series.
pub(crate) fn check(params: &GenerateParams) -> Result<(), GenerateError> {
    for (key, value) in [("checkpoints", params.checkpoints), ("ranks", params.ranks)] {
        if !(1..=MOST).contains(&value) {
            return Err(GenerateError::Number { key, value });
        }
    }
    if !BYTES.contains(&params.bytes) {
        return Err(GenerateError::Bytes { bytes: params.bytes });
    }
    check_share("shared", params.shared)?;
    params.changes.iter().try_for_each(check_change)?;
    let used = params.shared + params.changes.iter().map(field::share).sum::<f64>();
    if used > 1.0 {
        return Err(GenerateError::TooMuch { used });
    }
    let growth: f64 = params.changes.iter().map(|change| growth(change, params.bytes)).sum();
    match params.bytes as f64 + growth * f64::from(params.checkpoints - 1) {
        bytes if bytes > LARGEST as f64 => Err(GenerateError::Grows { bytes }),
        _ => Ok(()),
    }
}

/// Most bytes by which a change makes the memory grow.
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

/// The series, in a temporary folder that goes when the series does.
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

/// Writes all files of a rank; their bytes.
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
                change::apply(change, index, &mut memory, &mut stream.draws(params.seed));
            }
        }
        let path = folder.join(file_name(params.layout, checkpoint, rank));
        let written = match params.layout {
            Layout::Dmtcp => image::write_dmtcp(&path, &memory, libraries, rank, params.ranks),
            Layout::Plain => image::write_plain(&path, &memory, libraries),
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
