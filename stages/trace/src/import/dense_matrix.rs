//! A square communication matrix as text: a line per sender with the bytes to every receiver, as numalize and many
//! scripts write it.
//!
//! ```text
//! ,n0,n1,n2
//! n0,0,10,20
//! n1,10,0,0
//! n2,20,0,0
//! ```
//!
//! Numbers are separated by commas, semicolons, tabs or blanks. Names of columns and rows are optional; those of rows are those of
//! the columns, or number them: `0:`, `rank 0`, `P0`. Sums of rows and columns are refused, as are three or four lines that may be pairs of ranks with their bytes, unless the format is given.

use std::collections::BTreeSet;
use std::path::Path;

use hopmap_model::{Context, Edge, TaskGraph, to_u32};
use hopmap_text::{FileError, Line, Lines, shown};

use super::reader::{self, Reader, Sample};
use crate::matrix::{Accumulator, MAX_RANKS};

pub(super) static READER: Reader = Reader {
    recognises: |sample| judged(sample) == Some(Ok(())),
    files: reader::one_file,
    read: |path, _, cx| Ok(read(path, cx)?),
};

const HINT: &str = "a dense matrix has as many lines as columns: the bytes that a rank sends to every rank, separated by \
                    commas, semicolons, tabs or blanks; names of columns and of rows are the same, in the order of the ranks, or missing";

/// Refuses sums beside the ranks, and parts of messages.
fn check_name(name: &str) -> Result<(), String> {
    if name.len() > 1 && name.ends_with([':', '.', '!', '?', ';']) {
        return Err(format!("`{}` is not a name of a rank: delete the line if it is a message", shown(name)));
    }
    match ["sum", "sums", "total", "totals"].iter().any(|sum| name.eq_ignore_ascii_case(sum)) {
        true => Err(format!("`{}` is not a rank: delete its column and its row", shown(name))),
        false => Ok(()),
    }
}

pub(super) const HELP_ON_DOUBT: &str = "set `format = \"dense-matrix\"` if it is one; pairs of ranks need four \
                                        columns and the line `source,destination,messages,bytes` above them";

/// Numbers in the begin of a line that is too long to be seen whole.
const MANY: usize = 256;

/// Lines from which the form follows, and their bytes from which on two are enough.
const FIRST: usize = 9;
const MOST_BYTES: usize = 1 << 20;

/// Names of columns and rows, and the number of ranks.
struct Form {
    /// Names of the columns, if any.
    names: Option<Vec<String>>,
    /// Words of the names of rows: two in `rank 0`.
    words: usize,
    /// The number in the name of the first row, if it has one.
    first: Option<u64>,
    ranks: usize,
}

impl Form {
    /// The form of a matrix with these first lines, of which any one may be wrong: most of them say what rows are like.
    fn of(lines: &[Row<'_>]) -> Option<Self> {
        let ((_, first), rest) = lines.split_first()?;
        let form = |fields: &[&str]| (fields.len(), is_number(fields[0]));
        let alike = |row: &&Row<'_>| lines.iter().filter(|other| form(&other.1) == form(&row.1)).count();
        let row = rest
            .iter()
            .rev()
            .max_by_key(|row| (alike(row), is_number(row.1[0])))
            .map_or(first, |(_, fields)| fields);
        // The same word before the number of every rank: `rank 0`, `rank 1`.
        let same = lines.iter().filter(|(_, fields)| fields[0] == row[0]).count();
        let is_worded = row.len() > 2
            && same + 1 >= lines.len().max(3)
            && !is_number(row[0])
            && bare(row[1]).parse::<u64>().is_ok();
        let is_row = is_worded && first[0] == row[0] && first.len() == row.len();
        let (first, row) = (&first[usize::from(is_row)..], &row[usize::from(is_worded)..]);
        let are_names =
            |fields: &[&str]| fields.iter().filter(|field| !is_number(field)).count() * 2 > fields.len();
        let (is_wide, is_next) = (first.len() == row.len(), first.len() + 1 == row.len());
        let begins_with_name = is_worded || (!is_number(row[0]) && !are_names(&row[1..]));
        let is_name = !is_number(first[0]) && !first[0].starts_with(|c: char| c.is_ascii_digit());
        let number = numbered(row[0]).map(|(_, number)| number.to_string());
        let is_counted = number.is_some_and(|number| first[1..].contains(&number.as_str()));
        let is_corner = is_wide
            && is_name
            && (first[1..].contains(&bare(row[0]))
                || (begins_with_name && are_names(&first[1..]))
                || (numbered(first[0]).is_none() && is_counted));
        let has_header =
            is_corner || is_next || are_names(&first[usize::from(is_wide && begins_with_name)..]);
        let are_rows_named = is_corner || begins_with_name || is_next;
        let columns = first[usize::from(is_corner)..].iter().map(|name| (*name).to_owned()).collect();
        let ranks = row.len() - usize::from(are_rows_named);
        let words = usize::from(are_rows_named) + usize::from(is_worded);
        let name = lines.get(usize::from(has_header)).zip(words.checked_sub(1));
        let first = name.and_then(|((_, fields), last)| Some(numbered(fields.get(last)?)?.1));
        Some(Self { names: has_header.then_some(columns), words, first, ranks })
    }

    /// Refuses sums, and names that number the ranks in another order, as programs sort them: `0, 1, 10, 11, 2`.
    fn check_names(&self) -> Result<(), String> {
        if let Some(names) = self.names.as_ref().filter(|names| names.len() != self.ranks) {
            return Err(format!("the line has {} names, but others {} numbers", names.len(), self.ranks));
        }
        self.names.iter().flatten().try_for_each(|name| check_name(name))?;
        let names = self.names.iter().flatten();
        let Some(numbers) = names.map(|name| numbered(name)).collect::<Option<Vec<_>>>() else {
            return Ok(());
        };
        let wrong = numbers.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[0].1 > pair[1].1);
        match wrong {
            Some([(stem, high), (_, low)]) => {
                Err(format!("`{stem}{high}` is before `{stem}{low}`, but ranks are in the order of columns"))
            }
            _ => Ok(()),
        }
    }

    /// The numbers of a row.
    fn numbers<'f, 'l>(&self, row: usize, fields: &'f [&'l str]) -> Result<&'f [&'l str], String> {
        let (name, numbers) = fields.split_at(self.words.min(fields.len()));
        let name = name.join(" ");
        let number = numbered(&name).map(|(_, number)| number);
        let in_order = self.first.filter(|first| *first < 2).map(|first| first + row as u64);
        let is_in_order = number.is_some() && number == in_order;
        if numbers.len() != self.ranks || row >= self.ranks {
            if !is_in_order {
                check_name(&name)?;
            }
            let (found, ranks) = (numbers.len(), self.ranks);
            return Err(match (wrong(numbers), row < ranks) {
                (Some(problem), _) => problem,
                (None, true) => format!("the line has {found} numbers, but others have {ranks}"),
                (None, false) => format!("the matrix has {ranks} columns, but more lines"),
            });
        }
        let column = self.names.as_ref().and_then(|names| names.get(row)).filter(|_| self.words > 0);
        let is_of_column = |column: &String| {
            let other = numbered(column).map(|(_, number)| number);
            column == bare(&name) || (is_in_order && other.is_none_or(|other| number == Some(other)))
        };
        match column {
            Some(column) if is_of_column(column) => Ok(numbers),
            Some(column) => {
                check_name(bare(&name))?;
                let (name, other) = (shown(&name), shown(column));
                Err(format!("the row is `{name}`, but column {} is `{other}`", row + 1))
            }
            None if is_in_order => Ok(numbers),
            None if number.is_some() && name.contains([' ', ':']) => {
                Err(format!("the row is `{}`, but rows are numbered in order from 0 or 1", shown(&name)))
            }
            None => check_name(&name).map(|()| numbers),
        }
    }
}

/// A name of a row without the colon behind it.
fn bare(name: &str) -> &str {
    name.trim_end_matches(':')
}

/// The number at the end of a name, and what is before it.
fn numbered(name: &str) -> Option<(&str, u64)> {
    let name = bare(name);
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((stem, name[stem.len()..].parse().ok()?))
}

fn is_number(field: &str) -> bool {
    field.parse::<f64>().is_ok()
}

/// What is wrong with numbers, if not all are.
fn wrong(numbers: &[&str]) -> Option<String> {
    let (column, word) = numbers.iter().enumerate().find(|(_, field)| !is_number(field))?;
    Some(match ["-", "x", "X"].contains(word) {
        true => {
            format!("`{word}` in column {} is not a number: write 0 where there is no message", column + 1)
        }
        false => format!("`{}` is not a number", shown(word)),
    })
}

/// The fields of a line.
fn fields(text: &str) -> Vec<&str> {
    let Some(separator) = [',', ';', '\t'].into_iter().find(|separator| text.contains(*separator)) else {
        return text.split_ascii_whitespace().collect();
    };
    let mut fields: Vec<&str> =
        text.split(separator).map(|field| field.trim().trim_matches('"').trim()).collect();
    // Some write a separator behind every number.
    if fields.len() > 2 && fields.last() == Some(&"") {
        fields.pop();
    }
    fields
}

/// Whether a line has a row or names, and is not a comment. Those of Matrix Market, without a blank, are of another matrix.
fn is_filled(text: &str) -> bool {
    let text = text.trim();
    !(text.is_empty() || text.starts_with('#') || text.starts_with("% ") || text == "%")
}

/// The number of a line, and its fields.
type Row<'s> = (usize, Vec<&'s str>);

/// The complete lines that are seen, with their numbers, and the last one if the file goes on.
fn rows<'s>(sample: &'s Sample<'_>) -> (Vec<Row<'s>>, Option<Vec<&'s str>>) {
    let filled = (1..).zip(sample.text.lines()).filter(|(_, line)| is_filled(line));
    let mut rows: Vec<_> = filled.map(|(number, line)| (number, fields(line))).collect();
    let last = if sample.is_whole { None } else { rows.pop().map(|(_, fields)| fields) };
    (rows, last)
}

/// What is wrong with a matrix as far as it is seen, with the line; `None` if the file has no rows of numbers.
pub(super) fn judged(sample: &Sample<'_>) -> Option<Result<(), (usize, String)>> {
    let (all, last) = rows(sample);
    if let (true, Some(last)) = (all.len() < 2, last) {
        let seen = [all.first().map_or(&[][..], |(_, fields)| fields), &last[..last.len() - 1]];
        let is_long = |fields: &&[&str]| fields.len() > MANY && wrong(&fields[1..]).is_none();
        return seen.iter().any(is_long).then_some(Ok(()));
    }
    let form = Form::of(&all[..all.len().min(FIRST)])?;
    let rows = &all[usize::from(form.names.is_some())..];
    let fields = rows.iter().flat_map(|(_, fields)| &fields[form.words.min(fields.len())..]);
    let numbers = fields.clone().filter(|field| is_number(field)).count();
    if form.ranks < 2 || numbers * 2 <= fields.count() {
        return None;
    }
    let (first, last) = (all.first()?.0, all.last()?.0);
    let problem = |(row, (line, fields)): (usize, &Row<'_>)| {
        let numbers = form.numbers(row, fields);
        Some((*line, numbers.map_or_else(Some, wrong)?))
    };
    let of_names = form.check_names().err().map(|problem| (first, problem));
    let of_file = || match sample.is_whole {
        true if rows.len() < form.ranks => {
            Some((last, format!("the file ends after {} of {} rows", rows.len(), form.ranks)))
        }
        true if may_be_pairs(&form, rows) => {
            Some((first, "the lines may also be pairs of ranks with their bytes".to_owned()))
        }
        _ => None,
    };
    let wrong = of_names.or_else(|| rows.iter().enumerate().find_map(problem)).or_else(of_file);
    Some(wrong.map_or(Ok(()), Err))
}

/// Whether three or four lines may be different pairs of ranks, each with bytes or also messages. A matrix that may be
/// has something on its diagonal, where most have nothing.
fn may_be_pairs(form: &Form, rows: &[Row<'_>]) -> bool {
    let rank = |field: &str| field.parse::<u32>().ok();
    let pair = |fields: &[&str]| Some((rank(fields[0])?, rank(fields[1])?));
    let pairs = rows.iter().filter_map(|(_, fields)| pair(fields)).filter(|(one, other)| one != other);
    let is_empty = |(row, (_, fields)): (usize, &Row<'_>)| fields[row].parse::<f64>() == Ok(0.0);
    form.words == 0
        && (3..=4).contains(&form.ranks)
        && pairs.collect::<BTreeSet<_>>().len() == rows.len()
        && !rows.iter().enumerate().all(is_empty)
}

/// Reads a matrix.
fn read(path: &Path, cx: &Context<'_>) -> Result<TaskGraph, FileError> {
    let form = form(path, cx)?;
    let mut lines = Lines::open(path, HINT)?.with(cx).lossy().without_foreign().commented_by(b'#');
    let mut accumulator = Accumulator::default();
    accumulator.see(to_u32(form.ranks) - 1);
    let (mut row, mut is_header) = (0, form.names.is_some());
    while let Some(line) = lines.next_filled()? {
        if is_filled(line.text) && !std::mem::take(&mut is_header) {
            let fields = fields(line.text);
            let numbers = form.numbers(row, &fields).map_err(|problem| line.error(problem))?;
            add(line, &mut accumulator, (row, numbers))?;
            row += 1;
        }
    }
    if row < form.ranks {
        return Err(lines.error(format!("the file ends after {row} of {} rows", form.ranks)));
    }
    reader::warn_of_foreign(lines.foreign(), cx);
    cx.log("warning: the matrix does not contain message counts: each pair counts as one message");
    Ok(accumulator.into_graph())
}

/// The form of the matrix, from its first lines.
fn form(path: &Path, cx: &Context<'_>) -> Result<Form, FileError> {
    let mut lines = Lines::open(path, HINT)?.with(cx).lossy().without_foreign().commented_by(b'#');
    let (mut first, mut bytes) = (Vec::new(), 0);
    while (first.len() < 2 || (first.len() < FIRST && bytes < MOST_BYTES))
        && let Some(line) = lines.next_filled()?
    {
        if is_filled(line.text) {
            bytes += line.text.len();
            first.push((line.number, line.text.to_owned()));
        }
    }
    let rows: Vec<Row<'_>> = first.iter().map(|(number, text)| (*number, fields(text))).collect();
    let form = Form::of(&rows).ok_or_else(|| lines.error("the file has no numbers"))?;
    if form.ranks == 0 || form.ranks > MAX_RANKS as usize {
        return Err(lines.error_at(rows[0].0, format!("the lines have {} numbers", form.ranks)));
    }
    form.check_names().map_err(|problem| lines.error_at(rows[0].0, problem))?;
    Ok(form)
}

fn add(
    line: Line<'_>,
    accumulator: &mut Accumulator,
    (row, numbers): (usize, &[&str]),
) -> Result<(), FileError> {
    for (destination, number) in (0..).zip(numbers) {
        let bytes = line.amount(Some(number), "number of bytes")?;
        let edge = Edge { source: to_u32(row), destination, messages: u64::from(bytes > 0), bytes };
        accumulator.add(edge).map_err(|overflow| line.error(overflow.to_string()))?;
    }
    Ok(())
}
