//! Matrix Market: row i, column j, and the bytes that rank i - 1 sends to rank j - 1.
//!
//! Source: <https://math.nist.gov/MatrixMarket/formats.html>. The format has no place for message counts;
//! [`export`](crate::export) writes them into comments that begin with [`MESSAGES`], in the order of the
//! entries.

use std::path::Path;

use hopmap_model::{Context, Edge, TaskGraph};
use hopmap_text::{FileError, Line, Lines, Rows, has_no_number, is_sentence, shown};

use super::reader::{self, Reader};
use crate::matrix::{Accumulator, MAX_RANKS};

pub(super) static READER: Reader = Reader {
    recognises: |sample| is_banner(sample.text.trim_start()),
    files: reader::one_file,
    read: |path, _, cx| Ok(read(path, cx)?),
    rows: ROWS,
    ..Reader::BINARY
};

const ROWS: Rows = Rows {
    is_row: |text| {
        let mut words = text.split_ascii_whitespace();
        let is_entry =
            (2..=3).contains(&words.clone().count()) && words.all(|word| word.parse::<f64>().is_ok());
        is_entry || is_banner(text)
    },
    is_other: |line| is_sentence(line) || has_no_number(line),
};

/// First word of a file, case-insensitive.
const BANNER: &str = "%%MatrixMarket";

/// Start of comments with the message counts of the entries.
pub(crate) const MESSAGES: &str = "%hopmap messages";

const HINT: &str = "a file begins with `%%MatrixMarket matrix coordinate integer general`, then come `rows columns \
                    entries` and one line `row column bytes` for every entry; rows are senders, counted from one";

const JOINED: &str = "files were joined: pass each matrix in a file of its own";

/// Contents of the first line.
struct Banner {
    /// Entries have no values.
    is_pattern: bool,
    /// Every entry also counts in the opposite direction.
    is_symmetric: bool,
}

/// Whether a text begins with the banner. One that lost a `%` is refused with its line.
fn is_banner(text: &str) -> bool {
    let begin = text.trim_start_matches('%').get(..BANNER.len() - 2);
    text.starts_with('%') && begin.is_some_and(|begin| begin.eq_ignore_ascii_case(&BANNER[2..]))
}

/// Whether a line between or behind the entries is a comment. Another matrix is none.
fn is_comment(line: Line<'_>) -> Result<bool, FileError> {
    let text = line.text.trim_start();
    match is_banner(text) {
        true => Err(line.error("another matrix begins here").with_help(JOINED)),
        false => Ok(text.starts_with('%')),
    }
}

/// Reads a matrix.
fn read(path: &Path, cx: &Context<'_>) -> Result<TaskGraph, FileError> {
    let mut lines = Lines::open(path, HINT)?.with(cx).lossy().of_rows(ROWS).commented_by(b'%');
    let banner = banner(&mut lines)?;
    let (line, messages, (ranks, entries)) = messages_and_size(&mut lines)?;
    if messages.as_ref().is_some_and(|messages| messages.len() as u64 != entries) {
        return Err(lines.error_at(line, "the number of message counts differs from the number of entries"));
    }
    let mut messages = messages.map(Vec::into_iter);
    let mut accumulator = Accumulator::default();
    if let Some(last) = ranks.checked_sub(1) {
        accumulator.see(last);
    }
    let mut entry = 0;
    while entry < entries {
        let line = lines.next_filled_or(|| format!("the file ends after {entry} of {entries} entries"))?;
        if is_comment(line)? {
            continue;
        }
        entry += 1;
        let mut edge = self::entry(line, ranks, &banner)?;
        if let Some(messages) = messages.as_mut().and_then(Iterator::next) {
            edge.messages = messages;
        }
        accumulator.add(edge).map_err(|overflow| line.error(overflow.to_string()))?;
        if banner.is_symmetric && edge.source != edge.destination {
            let back = Edge { source: edge.destination, destination: edge.source, ..edge };
            accumulator.add(back).map_err(|overflow| line.error(overflow.to_string()))?;
        }
    }
    while let Some(line) = lines.next_filled()? {
        if !is_comment(line)? {
            return Err(line.error(format!("there are more than {entries} entries")));
        }
    }
    reader::warn_of_foreign(lines.foreign(), cx);
    if banner.is_pattern {
        cx.log("warning: the matrix is a pattern: each pair counts as one message of one byte");
    } else if messages.is_none() {
        cx.log("warning: the matrix does not contain message counts: each pair counts as one message");
    }
    Ok(accumulator.into_graph())
}

fn banner(lines: &mut Lines<'_>) -> Result<Banner, FileError> {
    let line = lines.next_filled_or(|| "the file is empty".to_owned())?;
    let text = line.text.to_ascii_lowercase();
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let ["%%matrixmarket", "matrix", format, field, symmetry] = *words else {
        let what = match words.first() {
            Some(&"%matrixmarket") => "the first line begins with one `%` instead of two",
            _ => "not the first line of a Matrix Market matrix",
        };
        return Err(line.error(what));
    };
    if format != "coordinate" {
        return Err(line.error(format!("unsupported format `{}`, expected `coordinate`", shown(format))));
    }
    let is_pattern = match field {
        "integer" | "real" => false,
        "pattern" => true,
        _ => {
            let what = format!(
                "unsupported type of entries `{}`, expected `integer`, `real` or `pattern`",
                shown(field)
            );
            return Err(line.error(what));
        }
    };
    match symmetry {
        "general" => Ok(Banner { is_pattern, is_symmetric: false }),
        "symmetric" => Ok(Banner { is_pattern, is_symmetric: true }),
        "skew-symmetric" | "hermitian" => {
            let what = format!("`{symmetry}` is not supported: byte counts cannot be negative");
            Err(line.error(what))
        }
        _ => Err(line.error(format!("unknown symmetry `{}`", shown(symmetry)))),
    }
}

/// Skips to the line with the size and returns its number and contents, with the message counts from the
/// comments, if any.
fn messages_and_size(lines: &mut Lines<'_>) -> Result<(usize, Option<Vec<u64>>, Size), FileError> {
    let mut messages = None;
    while let Some(line) = lines.next_filled()? {
        if let Some(numbers) = line.text.strip_prefix(MESSAGES) {
            let known: &mut Vec<u64> = messages.get_or_insert_default();
            for number in numbers.split_ascii_whitespace() {
                known.push(line.whole(Some(number), "number of messages")?);
            }
        } else if !line.text.trim_start().starts_with('%') {
            return Ok((line.number, messages, size(line)?));
        }
    }
    Err(lines.error("the file ends before the line with the size of the matrix"))
}

/// Number of ranks and of entries.
type Size = (u32, u64);

fn size(line: Line<'_>) -> Result<Size, FileError> {
    let mut words = line.words();
    let rows = line.below(words.next(), "number of rows", MAX_RANKS + 1)?;
    let columns = line.below(words.next(), "number of columns", MAX_RANKS + 1)?;
    let entries = line.whole(words.next(), "number of entries")?;
    if words.next().is_some() {
        return Err(line.error("the size must be three numbers: rows, columns and entries"));
    }
    if rows != columns {
        return Err(
            line.error(format!("the matrix must be square, but has {rows} rows and {columns} columns"))
        );
    }
    Ok((rows, entries))
}

fn entry(line: Line<'_>, ranks: u32, banner: &Banner) -> Result<Edge, FileError> {
    let mut words = line.words();
    let place = |value: Option<&str>, name: &str| {
        let place = line.whole(value, name)?;
        let rank = u32::try_from(place).ok().and_then(|place| place.checked_sub(1));
        let fits = rank.filter(|rank| *rank < ranks);
        fits.ok_or_else(|| line.error(format!("the {name} `{place}` is not between 1 and {ranks}")))
    };
    let (source, destination) = (place(words.next(), "row")?, place(words.next(), "column")?);
    if banner.is_symmetric && source < destination {
        return Err(line.error("a symmetric matrix has no entries above the diagonal"));
    }
    let bytes = if banner.is_pattern { 1 } else { line.amount(words.next(), "number of bytes")? };
    if words.next().is_some() {
        return Err(line.error("too many values in an entry"));
    }
    Ok(Edge { source, destination, messages: u64::from(bytes > 0), bytes })
}
