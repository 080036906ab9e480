//! Matrix Market: row i, column j, and the bytes that rank i - 1 sends to rank j - 1.
//!
//! Source: <https://math.nist.gov/MatrixMarket/formats.html>. How many messages an entry stands for is not part of the
//! format; [`export`](crate::export) writes it into comments that begin with [`MESSAGES`], in the order of the entries.

use std::path::Path;

use hopmap_model::{Context, Edge, TaskGraph};

use super::lines::{Lines, shown};
use super::tally::Tally;
use crate::ImportError;
use crate::csv_matrix::MAX_RANKS;

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
pub(super) fn read(path: &Path, cx: &Context<'_>) -> Result<TaskGraph, ImportError> {
    let mut lines = Lines::open(path, HINT, cx)?;
    let banner = banner(&mut lines)?;
    let messages = comments(&mut lines)?;
    let (ranks, entries) = size(&lines)?;
    if messages.as_ref().is_some_and(|messages| messages.len() as u64 != entries) {
        return Err(lines.fault("there are not as many numbers of messages as entries"));
    }
    let mut tally = Tally::default();
    if let Some(last) = ranks.checked_sub(1) {
        tally.see(last);
    }
    for entry in 0..entries {
        if !lines.next_filled()? {
            return Err(lines.cut_off(format!("it ends after {entry} of {entries} entries")));
        }
        let mut edge = self::entry(&lines, ranks, &banner)?;
        if let Some(messages) = &messages {
            edge.messages = messages[entry as usize];
        }
        tally.add(edge).map_err(|overflow| lines.overflow(overflow))?;
        if banner.is_symmetric && edge.source != edge.destination {
            let back = Edge { source: edge.destination, destination: edge.source, ..edge };
            tally.add(back).map_err(|overflow| lines.overflow(overflow))?;
        }
    }
    if lines.next_filled()? {
        return Err(lines.fault(format!("more than {entries} entries")));
    }
    if banner.is_pattern {
        cx.log("warning: the matrix is a pattern: each of its pairs counts as one message of one byte");
    } else if messages.is_none() {
        cx.log(
            "warning: the matrix does not say how many messages there are: each of its pairs counts as one",
        );
    }
    Ok(tally.into_graph())
}

fn banner(lines: &mut Lines<'_>) -> Result<Banner, ImportError> {
    lines.next()?;
    let line = lines.text().to_ascii_lowercase();
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let ["%%matrixmarket", "matrix", format, field, symmetry] = *words else {
        return Err(lines.fault("this is not the first line of a Matrix Market matrix"));
    };
    if format != "coordinate" {
        return Err(lines.fault(format!("only `coordinate` is read, not `{}`", shown(format))));
    }
    let is_pattern = match field {
        "integer" | "real" => false,
        "pattern" => true,
        _ => {
            let what = format!("entries are `integer`, `real` or `pattern`, not `{}`", shown(field));
            return Err(lines.fault(what));
        }
    };
    match symmetry {
        "general" => Ok(Banner { is_pattern, is_symmetric: false }),
        "symmetric" => Ok(Banner { is_pattern, is_symmetric: true }),
        "skew-symmetric" | "hermitian" => {
            let what = format!("`{symmetry}` is not read: nobody sends fewer than no bytes");
            Err(lines.fault(what))
        }
        _ => Err(lines.fault(format!("`{}` is no symmetry", shown(symmetry)))),
    }
}

/// Goes to the line with the size. Gives the numbers of messages if the comments have them.
fn comments(lines: &mut Lines<'_>) -> Result<Option<Vec<u64>>, ImportError> {
    let mut messages = None;
    while lines.next_filled()? {
        if let Some(numbers) = lines.text().strip_prefix(MESSAGES) {
            let known: &mut Vec<u64> = messages.get_or_insert_default();
            for number in numbers.split_ascii_whitespace() {
                known.push(lines.whole(Some(number), "number of messages")?);
            }
        } else if !lines.text().starts_with('%') {
            return Ok(messages);
        }
    }
    Err(lines.cut_off("it ends before the size of the matrix"))
}

/// Number of ranks and of entries.
fn size(lines: &Lines<'_>) -> Result<(u32, u64), ImportError> {
    let mut words = lines.text().split_ascii_whitespace();
    let rows = lines.rank(words.next(), "number of rows", MAX_RANKS + 1)?;
    let columns = lines.rank(words.next(), "number of columns", MAX_RANKS + 1)?;
    let entries = lines.whole(words.next(), "number of entries")?;
    if words.next().is_some() {
        return Err(lines.fault("the size is three numbers: rows, columns and entries"));
    }
    if rows != columns {
        return Err(lines
            .fault(format!("a matrix of {rows} rows and {columns} columns is not between the same ranks")));
    }
    Ok((rows, entries))
}

fn entry(lines: &Lines<'_>, ranks: u32, banner: &Banner) -> Result<Edge, ImportError> {
    let mut words = lines.text().split_ascii_whitespace();
    let place = |value: Option<&str>, name: &str| {
        let place = lines.whole(value, name)?;
        let rank = u32::try_from(place).ok().and_then(|place| place.checked_sub(1));
        let fits = rank.filter(|rank| *rank < ranks);
        fits.ok_or_else(|| lines.fault(format!("the {name} `{place}` is not from 1 to {ranks}")))
    };
    let (source, destination) = (place(words.next(), "row")?, place(words.next(), "column")?);
    if banner.is_symmetric && source < destination {
        return Err(lines.fault("a symmetric matrix has no entries above the diagonal"));
    }
    let bytes = if banner.is_pattern { 1 } else { lines.amount(words.next(), "number of bytes")? };
    if words.next().is_some() {
        return Err(lines.fault("more values than an entry has"));
    }
    Ok(Edge { source, destination, messages: u64::from(bytes > 0), bytes })
}
