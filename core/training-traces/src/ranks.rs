//! The files of a job: one per rank in a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hopmap_model::{Context, InputPath};
use hopmap_text::{entries, head, without_foreign};

use crate::error::{NAME_RANKS, RECORD_ALL, TrainingError};

/// In place of an ending: files whose names end in `_` and the rank, if a folder has none with another ending. PyTorch
/// writes them as pickles, beside which there may be the JSON that they were converted to.
pub(crate) const RANK: &str = "_RANK";

/// Bytes of a file that recognition reads.
const LOOKED_AT: u64 = 1 << 16;

/// Files of a folder that recognition reads: others may be beside the traces.
const LOOKED_INTO: usize = 8;

/// Levels of folders in which the files of a job may be: tools write a folder per rank, host or run.
const LEVELS: usize = 4;

/// A format: the endings of its files, and whether a file begins like one of them.
pub type Format = (&'static [&'static str], fn(&str) -> bool);

/// The files of a folder whose names end like those of a format, by name, or if it has none, those of the folders in it, as
/// if it has one and they have more. Others beside them, above or below are named and left out. A file is itself.
pub(crate) fn files_of(path: &Path, format: Format, cx: &Context<'_>) -> Result<Vec<PathBuf>, TrainingError> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut files, mut inner, mut others, mut folders) =
        (Vec::new(), Vec::new(), Vec::new(), vec![path.to_owned()]);
    for _ in 0..LEVELS {
        let (mut found, mut below) = (Vec::new(), Vec::new());
        for folder in folders {
            let entries = match entries(&folder) {
                Err(_) if !files.is_empty() => continue,
                entries => entries?,
            };
            let (within, beside): (Vec<_>, _) = entries.into_iter().partition(|entry| entry.is_dir());
            below.extend(within.into_iter().filter(|folder| !is_hidden(folder)));
            for file in ending(beside, format.0) {
                match files.is_empty() {
                    true if !may_be(&file, format.1) => others.push(file),
                    false if !is_begun(&file, format.1) => {}
                    _ => found.push(file),
                }
            }
        }
        folders = below;
        match files.is_empty() {
            true => files = found,
            false => inner = found,
        }
        if !inner.is_empty() {
            break;
        }
    }
    if files.len() == 1 && inner.len() > 1 {
        std::mem::swap(&mut files, &mut inner);
    }
    if let Some(other) = inner.first() {
        let (count, name) = (inner.len(), other.strip_prefix(path).unwrap_or(other).display());
        cx.log(format_args!("warning: traces in other folders than those of the job, skipped: {count}, the first `{name}`; pass its folder, or the file, to read it"));
    }
    if let (false, Some(other)) = (files.is_empty(), others.first()) {
        let (count, name) = (others.len(), other.strip_prefix(path).unwrap_or(other).display());
        cx.log(format_args!("warning: files that are no traces, skipped: {count}, the first `{name}`"));
    }
    // Others alone are refused with what they lack.
    let files = if files.is_empty() { others } else { files };
    let problem = || format!("has no file that ends in `{}`", format.0.join("`, `"));
    if files.is_empty() { Err(TrainingError::of(path, problem(), RECORD_ALL)) } else { Ok(files) }
}

/// Whether a file is like those of a format, or else unreadable, or too long or too short to tell.
fn may_be(file: &Path, like: fn(&str) -> bool) -> bool {
    let is_long = file.metadata().is_ok_and(|data| data.len() >= LOOKED_AT);
    let is_known = |head: Vec<u8>| head.is_empty() || head.len() as u64 == LOOKED_AT || is_like(&head, like);
    is_long || head(file, LOOKED_AT).ok().is_none_or(is_known)
}

fn ending(mut entries: Vec<PathBuf>, endings: &[&str]) -> Vec<PathBuf> {
    let name =
        |file: &PathBuf| file.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    entries.retain(|file| !is_hidden(file) && file.is_file());
    let has_ending = |file: &PathBuf| endings.iter().any(|ending| name(file).ends_with(ending));
    if endings.contains(&RANK) && !entries.iter().any(has_ending) {
        entries.retain(|file| stem(file).and_then(numbered).is_some_and(|(before, _)| before.ends_with('_')));
    } else {
        entries.retain(has_ending);
    }
    entries
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// The files under their names, so that moving the folder does not change keys.
pub fn inputs(path: &Path, format: Format) -> Result<Vec<InputPath>, TrainingError> {
    let files = files_of(path, format, &Context::detached())?;
    if path.is_file() {
        return Ok(vec![InputPath::named(path, "trace")]);
    }
    let named = |file: PathBuf| {
        let name = file.strip_prefix(path).unwrap_or(&file).to_string_lossy().into_owned();
        InputPath::named(file, name)
    };
    Ok(files.into_iter().map(named).collect())
}

/// The last number in a name without its endings: `trace_rank_12.json` is of rank 12.
pub(crate) fn rank_of_name(file: &Path) -> Option<u32> {
    numbered(stem(file)?).map(|(_, rank)| rank)
}

fn stem(file: &Path) -> Option<&str> {
    let name = file.file_name()?.to_str()?;
    let stem = [".gz", ".json", ".jsonl", ".log", ".et"]
        .iter()
        .fold(name, |name, end| name.strip_suffix(end).unwrap_or(name));
    Some(stem.strip_suffix(".pt.trace").unwrap_or(stem))
}

/// The number at the end of a name, and what is before it.
fn numbered(name: &str) -> Option<(&str, u32)> {
    let before = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    Some((before, name[before.len()..].parse().ok()?))
}

/// The folders in that of a job that have a file, the nearest one first.
fn folders<'a>(job: &Path, file: &'a Path) -> impl Iterator<Item = &'a Path> {
    file.ancestors().skip(1).take_while(move |folder| *folder != job && folder.starts_with(job))
}

/// The rank of a file of a job: of a folder in it that has the file, or else of the file.
pub(crate) fn rank_of(job: &Path, file: &Path) -> Option<u32> {
    folders(job, file).find_map(rank_of_name).or_else(|| rank_of_name(file))
}

/// Like [`rank_of`], for one of `files` whose names need not have ranks: PyTorch ends them in the id of the process and a
/// time. A number is a rank behind the word, or else if it counts the files and no time is behind it.
pub(crate) fn likely_rank_of(job: &Path, file: &Path, files: u32) -> Option<u32> {
    let is_time = |part: &str| part.len() > 8 && part.bytes().all(|byte| byte.is_ascii_digit());
    let likely = |path: &Path| {
        let stem = stem(path)?;
        let timed = stem.rsplit_once('.').filter(|(_, time)| is_time(time));
        let (before, rank) = numbered(timed.map_or(stem, |(before, _)| before))?;
        let before = before.trim_end_matches(['_', '-', '.', '=']).to_ascii_lowercase();
        (before.ends_with("rank") || (timed.is_none() && rank < files)).then_some(rank)
    };
    folders(job, file).find_map(likely).or_else(|| likely(file))
}

/// The files by the rank in their names.
pub(crate) fn by_rank(
    path: &Path,
    format: Format,
    cx: &Context<'_>,
) -> Result<BTreeMap<u32, PathBuf>, TrainingError> {
    let mut ranks = BTreeMap::new();
    for file in files_of(path, format, cx)? {
        let rank = rank_of(path, &file)
            .ok_or_else(|| TrainingError::of(&file, "does not end in the number of its rank", NAME_RANKS))?;
        if let Some(other) = ranks.insert(rank, file.clone()) {
            let problem = format!("is of rank {rank}, like `{}`", other.display());
            return Err(TrainingError::of(&file, problem, RECORD_ALL));
        }
    }
    Ok(ranks)
}

/// Whether one of the first files of a folder, or a file, begins like those of a format.
pub fn begins(path: &Path, format: Format) -> bool {
    let files = files_of(path, format, &Context::detached());
    files.is_ok_and(|files| files.iter().take(LOOKED_INTO).any(|file| is_begun(file, format.1)))
}

fn is_begun(file: &Path, like: fn(&str) -> bool) -> bool {
    head(file, LOOKED_AT).is_ok_and(|head| is_like(&head, like))
}

fn is_like(head: &[u8], like: fn(&str) -> bool) -> bool {
    like(&without_foreign(String::from_utf8_lossy(head).trim_start_matches('\u{feff}')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_is_the_last_number_of_a_name() {
        let rank = |name: &str| rank_of_name(Path::new(name));
        assert_eq!(
            ["a/all_reduce.11.et", "nccl_trace_rank_3", "rank7.pt.trace.json.gz"].map(rank),
            [Some(11), Some(3), Some(7)]
        );
        assert_eq!(["trace.json", "rank4_part.json"].map(rank), [None, None]);
    }

    #[test]
    fn a_time_or_an_id_of_a_process_is_no_rank() {
        let rank = |name: &str| likely_rank_of(Path::new("job"), &Path::new("job").join(name), 4);
        let none = ["n7_4711.172300000.pt.trace.json", "pod_1.172300000.pt.trace.json", "t_4711.json"];
        assert_eq!(none.map(rank), [None; 3]);
        let some = ["rank1.172300000.pt.trace.json", "rank_9.json", "step.3.json.gz"];
        assert_eq!(some.map(rank), [Some(1), Some(9), Some(3)]);
    }
}
