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
//! Numbers are separated by commas, semicolons, tabs or blanks. Names of columns and rows are optional. Sums of rows and
//! columns are refused, as are three or four lines that may be pairs of ranks with their bytes, unless the format is given.

use std::collections::BTreeSet;
use std::path::Path;

use hopmap_model::{Context, Edge, TaskGraph, to_u32};
use hopmap_text::{FileError, Line, Lines, shown};

use super::reader::{self, Reader, Sample};
use crate::matrix::{Accumulator, MAX_RANKS};

pub(super) static READER: Reader = Reader {
    recognises: |sample| is_matrix(sample).unwrap_or(false),
    files: reader::one_file,
    read: |path, _, cx| Ok(read(path, cx)?),
};

const HINT: &str = "a dense matrix has as many lines as columns: the bytes that a rank sends to every rank, separated by \
                    commas, semicolons, tabs or blanks; names of columns and of rows are the same, in the order of the ranks, or missing";

/// Refuses sums beside the ranks.
fn check_name(name: &str) -> Result<(), String> {
    match ["sum", "sums", "total", "totals"].iter().any(|sum| name.eq_ignore_ascii_case(sum)) {
        true => Err(format!("`{}` is not a rank: delete its column and its row", shown(name))),
        false => Ok(()),
    }
}

/// Numbers in the begin of a line that is too long to be seen whole.
const MANY: usize = 256;

/// Names of columns and rows, and the number of ranks.
struct Form {
    /// Names of the columns, if any.
    names: Option<Vec<String>>,
    are_rows_named: bool,
    ranks: usize,
}

impl Form {
    /// The form of a matrix with these first two lines.
    fn of(first: &[&str], second: &[&str]) -> Self {
        let named = |fields: &[&str]| fields.iter().filter(|field| !is_number(field)).count();
        let (most, rows_only) = (named(first) > 1, named(second) == 1 && !is_number(second[0]));
        let is_corner = first.len() == second.len() && first.get(1) == second.first() && !is_number(first[0]);
        let has_header =
            is_corner || most || first.len() + 1 == second.len() || (named(first) > 0 && !rows_only);
        let are_rows_named = is_corner || rows_only || (has_header && first.len() + 1 == second.len());
        let columns = first[usize::from(is_corner)..].iter().map(|name| (*name).to_owned()).collect();
        let ranks = second.len() - usize::from(are_rows_named);
        Self { names: has_header.then_some(columns), are_rows_named, ranks }
    }

    /// Refuses sums, and names that number the ranks in another order, as programs sort them: `0, 1, 10, 11, 2`.
    fn check_names(&self) -> Result<(), String> {
        self.names.iter().flatten().try_for_each(|name| check_name(name))?;
        let number = |name: &String| {
            let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
            Some((stem.to_owned(), name[stem.len()..].parse::<u64>().ok()?))
        };
        let names = self.names.iter().flatten();
        let Some(numbers) = names.map(number).collect::<Option<Vec<_>>>() else { return Ok(()) };
        let wrong = numbers.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[0].1 > pair[1].1);
        match wrong {
            Some([(stem, high), (_, low)]) => {
                Err(format!("`{stem}{high}` is before `{stem}{low}`, but ranks are in the order of columns"))
            }
            _ => Ok(()),
        }
    }

    /// Whether every column has a name, or none.
    fn is_consistent(&self) -> bool {
        self.names.as_ref().is_none_or(|names| names.len() == self.ranks)
    }

    /// The numbers of a row.
    fn numbers<'f, 'l>(&self, row: usize, fields: &'f [&'l str]) -> Result<&'f [&'l str], String> {
        let numbers = fields.get(usize::from(self.are_rows_named)..).unwrap_or_default();
        fields[..fields.len() - numbers.len()].iter().try_for_each(|name| check_name(name))?;
        if numbers.len() != self.ranks || row >= self.ranks {
            let (found, ranks) = (numbers.len(), self.ranks);
            return Err(match row < ranks {
                true => format!("the line has {found} numbers, but others have {ranks}"),
                false => format!("the matrix has {ranks} columns, but more lines"),
            });
        }
        match self.names.as_ref().filter(|_| self.are_rows_named).map(|names| names.get(row)) {
            Some(name) if name.map(String::as_str) != Some(fields[0]) => {
                let (name, other) = (shown(fields[0]), shown(name.map_or("nothing", String::as_str)));
                Err(format!("the row is `{name}`, but column {} is `{other}`", row + 1))
            }
            _ => Ok(numbers),
        }
    }
}

fn is_number(field: &str) -> bool {
    field.parse::<f64>().is_ok()
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

fn is_filled(text: &str) -> bool {
    !text.trim().is_empty() && !text.trim_start().starts_with('#')
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

/// Whether a file is a matrix as far as it is seen; `None` if it has no two lines.
fn is_matrix(sample: &Sample<'_>) -> Option<bool> {
    let (rows, last) = rows(sample);
    if let (true, Some(last)) = (rows.is_empty(), last) {
        let numbers = last.len().saturating_sub(1);
        return Some(numbers >= MANY && last[1..numbers].iter().all(|field| is_number(field)));
    }
    let form = Form::of(&rows.first()?.1, &rows.get(1).or(rows.first().filter(|_| !sample.is_whole))?.1);
    let rows = &rows[usize::from(form.names.is_some())..];
    let is_row = |(row, (_, fields)): (usize, &Row<'_>)| {
        form.numbers(row, fields).is_ok_and(|numbers| numbers.iter().all(|number| is_number(number)))
    };
    Some(
        form.ranks > 1
            && form.is_consistent()
            && rows.iter().enumerate().all(is_row)
            && (!sample.is_whole || (rows.len() == form.ranks && !may_be_pairs(&form, rows))),
    )
}

/// Whether three or four lines may be different pairs of ranks, each with bytes or also messages. A matrix that may be
/// has something on its diagonal, where most have nothing.
fn may_be_pairs(form: &Form, rows: &[Row<'_>]) -> bool {
    let rank = |field: &str| field.parse::<u32>().ok();
    let pair = |fields: &[&str]| Some((rank(fields[0])?, rank(fields[1])?));
    let pairs = rows.iter().filter_map(|(_, fields)| pair(fields)).filter(|(one, other)| one != other);
    let is_empty = |(row, (_, fields)): (usize, &Row<'_>)| fields[row].parse::<f64>() == Ok(0.0);
    !form.are_rows_named
        && (3..=4).contains(&form.ranks)
        && pairs.collect::<BTreeSet<_>>().len() == rows.len()
        && !rows.iter().enumerate().all(is_empty)
}

/// Why a file that has rows of numbers is not taken for a matrix, with its line; `None` if it has not.
pub(super) fn doubt(sample: &Sample<'_>) -> Option<(usize, String)> {
    let (all, _) = rows(sample);
    let alike = |row: &&Row<'_>| all.iter().filter(|(_, other)| other.len() == row.1.len()).count();
    let form = Form::of(&all.first()?.1, &all[1..].iter().take(8).max_by_key(alike)?.1);
    let rows = &all[usize::from(form.names.is_some())..];
    let numbers =
        |fields: &Vec<&str>| fields[usize::from(form.are_rows_named)..].iter().all(|field| is_number(field));
    if form.ranks < 2 || !rows.iter().all(|(_, fields)| numbers(fields)) {
        return None;
    }
    let (first, last) = (all.first()?.0, all.last()?.0);
    let of_names = form.check_names().err().map(|problem| (first, problem));
    let of_row = || {
        let problem =
            |(row, (line, fields)): (usize, &Row<'_>)| Some((*line, form.numbers(row, fields).err()?));
        rows.iter().enumerate().find_map(problem)
    };
    Some(of_names.or_else(of_row).unwrap_or_else(|| match rows.len() < form.ranks {
        true => (last, format!("the file ends after {} of {} rows", rows.len(), form.ranks)),
        false => (first, "the lines may also be pairs of ranks with their bytes".to_owned()),
    }))
}

/// Reads a matrix.
fn read(path: &Path, cx: &Context<'_>) -> Result<TaskGraph, FileError> {
    let form = form(path, cx)?;
    form.check_names().map_err(|problem| FileError::new(problem, HINT).in_file(path))?;
    let mut lines = Lines::open(path, HINT)?.with(cx).lossy();
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
    cx.log("warning: the matrix does not contain message counts: each pair counts as one message");
    Ok(accumulator.into_graph())
}

/// The form of the matrix, from its first two lines.
fn form(path: &Path, cx: &Context<'_>) -> Result<Form, FileError> {
    let mut lines = Lines::open(path, HINT)?.with(cx).lossy();
    let mut first: Option<String> = None;
    while let Some(line) = lines.next_filled()? {
        if !is_filled(line.text) {
            continue;
        }
        let Some(first) = &first else {
            first = Some(line.text.to_owned());
            continue;
        };
        let form = Form::of(&fields(first), &fields(line.text));
        if form.ranks == 0 || form.ranks > MAX_RANKS as usize {
            return Err(line.error(format!("the line has {} numbers", form.ranks)));
        }
        if !form.is_consistent() {
            return Err(
                line.error(format!("the line has {} numbers, but the first one other names", form.ranks))
            );
        }
        return Ok(form);
    }
    Err(lines.error("the file has fewer than two lines with numbers"))
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
