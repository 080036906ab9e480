//! What launchers and loggers write before every line of a program, so that no line looks like one of its file.

use std::path::{Path, PathBuf};

use hopmap_text::{entries, head, is_foreign, prefix_of_lines, row_behind};

use super::reader::{Reader, Sample};
use super::{Format, known, simgrid};

use crate::error::TraceError;

/// Lines before the begin of a file, files of a folder that are looked at, levels of folders in it, and bytes of a file.
const FIRST: usize = 50;
const FILES: usize = 8;
const LEVELS: usize = 2;
const BYTES: u64 = 1 << 16;

/// The format of a text that begins with a row of it, whatever its path has.
fn format_of(text: &str) -> Option<Format> {
    let sample = Sample::of(Path::new(""), false, text.as_bytes().to_vec());
    let begins = |reader: &Reader| sample.first_line().is_some_and(reader.rows.is_row);
    known(&sample).filter(|(_, reader)| begins(reader)).map(|(format, _)| format)
}

/// Refuses a file whose begin is behind a prefix, so that the rest may look like another format.
pub(super) fn check_begin(sample: &Sample<'_>) -> Result<(), TraceError> {
    let is_begin = |text: &str| format_of(text).is_some_and(|format| format != Format::DenseMatrix);
    let head = String::from_utf8_lossy(&sample.head);
    let lines = (1..).zip(head.lines()).filter(|(_, line)| !line.trim().is_empty()).take(FIRST);
    for (number, line) in lines.take_while(|(_, line)| is_foreign(line)) {
        if let Some((prefix, row)) = row_behind(line, is_begin) {
            return Err(prefix.error(number, row).in_file(sample.path).into());
        }
    }
    Ok(())
}

/// Refuses a file, or one of the first of a folder, that has a known format without what is before every line.
pub(super) fn check(path: &Path) -> Result<(), TraceError> {
    for file in files(path, LEVELS) {
        let text = head(&file, BYTES).unwrap_or_default();
        let mut found = None;
        let is_known = |text: &str, says_nothing: bool| {
            // Rows of numbers may have a name each.
            found = format_of(text).filter(|format| *format != Format::DenseMatrix || says_nothing);
            let first = text.lines().map(str::trim).find(|line| !(line.is_empty() || line.starts_with('#')));
            let is_index = first.is_some_and(|line| simgrid::lists(&file, line));
            found = found.or(is_index.then_some(Format::Simgrid));
            let all = || Format::ALL.iter().copied();
            found = found
                .or_else(|| all().find(|format| format.reader().is_some_and(|reader| (reader.begins)(text))));
            found.is_some()
        };
        if let Some(prefix) = prefix_of_lines(&String::from_utf8_lossy(&text), is_known) {
            let name = found.map_or("", Format::name);
            let problem = format!("has `{}` before every line, and is `{name}` without", prefix.shown());
            return Err(TraceError::of(&file, problem, prefix.help()));
        }
    }
    Ok(())
}

/// The file itself, or the first ones of a folder.
fn files(path: &Path, levels: usize) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let inner = entries(path).unwrap_or_default().into_iter().filter(|_| levels > 0);
    inner.flat_map(|inner| files(&inner, levels - 1)).take(FILES).collect()
}
