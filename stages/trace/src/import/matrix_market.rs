//! Matrix Market: row i, column j, and the bytes that rank i - 1 sends to rank j - 1.
//!
//! Source: <https://math.nist.gov/MatrixMarket/formats.html>. How many messages an entry stands for is not part of the
//! format; [`export`](crate::export) writes it into comments that begin with [`MESSAGES`], in the order of the entries.

use std::path::Path;

use hopmap_model::{Context, Edge, TaskGraph};
use hopmap_text::{FileError, Line, Lines, shown};

use super::reader::{self, Reader};
use crate::matrix::{Accumulator, MAX_RANKS};

pub(super) static READER: Reader = Reader {
    recognises: |sample| {
        let begin = sample.text.get(..BANNER.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(BANNER))
    },
    files: reader::one_file,
    read: |path, _, cx| Ok(read(path, cx)?),
};

/// What a file begins with, in whatever case.
const BANNER: &str = "%%MatrixMarket";

/// Comments that say how many messages the entries stand for.
pub(crate) const MESSAGES: &str = "%hopmap messages";

const HINT: &str = "a file begins with `%%MatrixMarket matrix coordinate integer general`, then come `rows columns \
                    entries` and one line `row column bytes` for every entry; rows are senders, counted from one";

/// What the first line says.
struct Banner {
    /// Entries have no values.
    is_pattern: bool,
    /// Every entry stands for itself and for the one on the other side of the diagonal.
    is_symmetric: bool,
}

/// Reads a matrix.
fn read(path: &Path, cx: &Context<'_>) -> Result<TaskGraph, FileError> {
    let mut lines = Lines::open(path, HINT)?.with(cx).lossy();
    let banner = banner(&mut lines)?;
    let (line, messages, (ranks, entries)) = messages_and_size(&mut lines)?;
    if messages.as_ref().is_some_and(|messages| messages.len() as u64 != entries) {
        return Err(lines.error_at(line, "there are not as many numbers of messages as entries"));
    }
    let mut accumulator = Accumulator::default();
    if let Some(last) = ranks.checked_sub(1) {
        accumulator.see(last);
    }
    for entry in 0..entries {
        let line = lines.next_filled_or(|| format!("the file ends after {entry} of {entries} entries"))?;
        let mut edge = self::entry(line, ranks, &banner)?;
        if let Some(messages) = &messages {
            edge.messages = messages[entry as usize];
        }
        accumulator.add(edge).map_err(|overflow| line.error(overflow.to_string()))?;
        if banner.is_symmetric && edge.source != edge.destination {
            let back = Edge { source: edge.destination, destination: edge.source, ..edge };
            accumulator.add(back).map_err(|overflow| line.error(overflow.to_string()))?;
        }
    }
    if let Some(line) = lines.next_filled()? {
        return Err(line.error(format!("more than {entries} entries")));
    }
    if banner.is_pattern {
        cx.log("warning: the matrix is a pattern: each of its pairs counts as one message of one byte");
    } else if messages.is_none() {
        cx.log(
            "warning: the matrix does not say how many messages there are: each of its pairs counts as one",
        );
    }
    Ok(accumulator.into_graph())
}

fn banner(lines: &mut Lines<'_>) -> Result<Banner, FileError> {
    let line = lines.next_or(|| "the file is empty".to_owned())?;
    let text = line.text.to_ascii_lowercase();
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let ["%%matrixmarket", "matrix", format, field, symmetry] = *words else {
        return Err(line.error("this is not the first line of a Matrix Market matrix"));
    };
    if format != "coordinate" {
        return Err(line.error(format!("only `coordinate` is read, not `{}`", shown(format))));
    }
    let is_pattern = match field {
        "integer" | "real" => false,
        "pattern" => true,
        _ => {
            let what = format!("entries are `integer`, `real` or `pattern`, not `{}`", shown(field));
            return Err(line.error(what));
        }
    };
    match symmetry {
        "general" => Ok(Banner { is_pattern, is_symmetric: false }),
        "symmetric" => Ok(Banner { is_pattern, is_symmetric: true }),
        "skew-symmetric" | "hermitian" => {
            let what = format!("`{symmetry}` is not read: nobody sends fewer than no bytes");
            Err(line.error(what))
        }
        _ => Err(line.error(format!("`{}` is no symmetry", shown(symmetry)))),
    }
}

/// Goes to the line with the size, of which it gives the number and what stands there. The numbers of messages come with it
/// if comments have them.
fn messages_and_size(lines: &mut Lines<'_>) -> Result<(usize, Option<Vec<u64>>, Size), FileError> {
    let mut messages = None;
    while let Some(line) = lines.next_filled()? {
        if let Some(numbers) = line.text.strip_prefix(MESSAGES) {
            let known: &mut Vec<u64> = messages.get_or_insert_default();
            for number in numbers.split_ascii_whitespace() {
                known.push(line.whole(Some(number), "number of messages")?);
            }
        } else if !line.text.starts_with('%') {
            return Ok((line.number, messages, size(line)?));
        }
    }
    Err(lines.error("it ends before the size of the matrix"))
}

/// Number of ranks and of entries.
type Size = (u32, u64);

fn size(line: Line<'_>) -> Result<Size, FileError> {
    let mut words = line.words();
    let rows = line.below(words.next(), "number of rows", MAX_RANKS + 1)?;
    let columns = line.below(words.next(), "number of columns", MAX_RANKS + 1)?;
    let entries = line.whole(words.next(), "number of entries")?;
    if words.next().is_some() {
        return Err(line.error("the size is three numbers: rows, columns and entries"));
    }
    if rows != columns {
        return Err(line
            .error(format!("a matrix of {rows} rows and {columns} columns is not between the same ranks")));
    }
    Ok((rows, entries))
}

fn entry(line: Line<'_>, ranks: u32, banner: &Banner) -> Result<Edge, FileError> {
    let mut words = line.words();
    let place = |value: Option<&str>, name: &str| {
        let place = line.whole(value, name)?;
        let rank = u32::try_from(place).ok().and_then(|place| place.checked_sub(1));
        let fits = rank.filter(|rank| *rank < ranks);
        fits.ok_or_else(|| line.error(format!("the {name} `{place}` is not from 1 to {ranks}")))
    };
    let (source, destination) = (place(words.next(), "row")?, place(words.next(), "column")?);
    if banner.is_symmetric && source < destination {
        return Err(line.error("a symmetric matrix has no entries above the diagonal"));
    }
    let bytes = if banner.is_pattern { 1 } else { line.amount(words.next(), "number of bytes")? };
    if words.next().is_some() {
        return Err(line.error("more values than an entry has"));
    }
    Ok(Edge { source, destination, messages: u64::from(bytes > 0), bytes })
}
