//! Common to archives of OTF 1 and OTF2: finding them in folders, and reading their files on several
//! threads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use hopmap_model::Context;
use hopmap_text::entries;
use rayon::prelude::*;

use crate::error::TraceError;

/// Logs a count unless it is zero.
pub(crate) fn log_count(cx: &Context<'_>, what: &str, count: u64) {
    if count > 0 {
        cx.log(format_args!("{what}: {count}"));
    }
}

/// Warns about an input without messages, with the reason if it is known.
pub(crate) fn warn_of_silence(is_silent: bool, reason: &str, cx: &Context<'_>) {
    if is_silent {
        cx.log(format_args!("warning: no messages between ranks were recorded{reason}"));
    }
}

/// What to do about a file that ends within a line, and whose part before is of no use.
pub(crate) const COPY: &str = "the file was not written or copied completely: copy or record it again";

/// Warns about files that end early, of which the part before counts.
pub(crate) fn warn_of_cut(files: u64, cx: &Context<'_>) {
    log_count(cx, "warning: files that end within a line or record, which is left out", files);
}

pub(crate) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// Refuses what people give in place of an archive, with the way to it: a profile of Score-P or its folder, and a part of
/// an OTF2 archive.
pub(crate) fn check_kind(path: &Path) -> Result<(), TraceError> {
    let is_profile = has_extension(path, "cubex") || path.join("profile.cubex").is_file();
    let is_part = has_extension(path, "def") || has_extension(path, "evt");
    let anchors = [Some(path), path.parent()].into_iter().flatten().map(|path| path.with_extension("otf2"));
    let (problem, help) = match anchors.filter(|_| is_part).find(|anchor| anchor.is_file()) {
        _ if is_profile => (
            "is a profile of Score-P: it has totals per call path, but no receivers",
            "record a trace: SCOREP_ENABLE_TRACING=true writes `traces.otf2` into its folder".into(),
        ),
        Some(anchor) => {
            ("is a part of an OTF2 archive", format!("pass its anchor file, `{}`", anchor.display()))
        }
        None => return Ok(()),
    };
    Err(TraceError::of(path, problem, help))
}

/// The only file with an extension in a folder. If there is none, the only one in its subfolders, down to
/// the given depth. `what` is the kind of file, for messages.
pub(crate) fn only_one(
    folder: &Path,
    (extension, what): (&str, &str),
    levels: usize,
) -> Result<PathBuf, TraceError> {
    let mut found = files_in(folder, extension, levels)?;
    if let [file] = found.as_mut_slice() {
        return Ok(std::mem::take(file));
    }
    let names: Vec<_> =
        found.iter().map(|file| file.strip_prefix(folder).unwrap_or(file).display().to_string()).collect();
    let problem = match names.as_slice() {
        [] => {
            check_kind(folder)?;
            format!("does not contain {what} files")
        }
        names => format!("contains several {what} files: {}", names.join(", ")),
    };
    let help = format!("pass the path of the {what} file (`.{extension}`)");
    Err(TraceError::of(folder, problem, help))
}

pub(crate) fn files_in(folder: &Path, extension: &str, levels: usize) -> Result<Vec<PathBuf>, TraceError> {
    let (folders, mut files): (Vec<_>, Vec<_>) =
        entries(folder)?.into_iter().partition(|entry| entry.is_dir());
    files.retain(|entry| has_extension(entry, extension) && entry.is_file());
    if !files.is_empty() || levels == 0 {
        return Ok(files);
    }
    for below in folders {
        files.extend(files_in(&below, extension, levels - 1)?);
    }
    Ok(files)
}

/// Reads the parts of an archive on as many threads as the context allows; each thread has a buffer. If
/// several parts fail, the result is the error of the lowest one, independent of the number of threads.
/// `what` names the parts in the message about an interruption.
pub(crate) fn on_threads<T: Send>(
    (total, what): (usize, &str),
    cx: &Context<'_>,
    read: impl Fn(usize, &mut Vec<u8>) -> Result<Option<T>, TraceError> + Sync,
) -> Result<Vec<T>, TraceError> {
    let next = AtomicUsize::new(0);
    // Parts after the first failed one are not read.
    let limit = AtomicUsize::new(total);
    let done = Mutex::new(0);
    let work = |_| {
        let mut results = BTreeMap::new();
        let mut buffer = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= limit.load(Ordering::Relaxed) {
                return results;
            }
            let result = if cx.should_stop() { None } else { read(index, &mut buffer).transpose() };
            let count = |done: &mut usize| {
                *done += 1;
                cx.progress(*done as u64, total as u64);
            };
            match &result {
                Some(Ok(_)) => count(&mut done.lock().unwrap_or_else(PoisonError::into_inner)),
                _ => drop(limit.fetch_min(index, Ordering::Relaxed)),
            }
            results.insert(index, result);
        }
    };
    let results: BTreeMap<usize, Option<Result<T, TraceError>>> =
        (0..cx.threads().clamp(1, total.max(1))).into_par_iter().map(work).flatten().collect();
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let stopped = || Err(TraceError::refused(format!("stopped after {done} of {total} {what}"), ""));
    results.into_values().map(|result| result.unwrap_or_else(stopped)).collect()
}
