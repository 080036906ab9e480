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
//! Numbers are separated by commas, semicolons, tabs or blanks. Names of columns and rows are optional.

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
                    commas, semicolons, tabs or blanks; names of columns and of rows are the same, or missing";

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

    /// Refuses names that number the ranks in another order, as programs sort them: `0, 1, 10, 11, 2`.
    fn check_order(&self) -> Result<(), String> {
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

/// Whether a file is a matrix as far as it is seen; `None` if it has no two lines.
fn is_matrix(sample: &Sample<'_>) -> Option<bool> {
    let mut rows: Vec<Vec<&str>> = sample.text.lines().filter(|line| is_filled(line)).map(fields).collect();
    if !sample.is_whole {
        let last = rows.pop()?;
        let numbers = last.len().saturating_sub(1);
        if rows.is_empty() {
            return Some(numbers >= MANY && last[1..numbers].iter().all(|field| is_number(field)));
        }
    }
    let form = Form::of(rows.first()?, rows.get(1).or(rows.first().filter(|_| !sample.is_whole))?);
    let rows = &rows[usize::from(form.names.is_some())..];
    let is_row = |(row, fields): (usize, &Vec<&str>)| {
        form.numbers(row, fields).is_ok_and(|numbers| numbers.iter().all(|number| is_number(number)))
    };
    Some(
        form.ranks > 1
            && form.is_consistent()
            && rows.iter().enumerate().all(is_row)
            && (!sample.is_whole || rows.len() == form.ranks),
    )
}

/// Reads a matrix.
fn read(path: &Path, cx: &Context<'_>) -> Result<TaskGraph, FileError> {
    let form = form(path, cx)?;
    form.check_order()
        .map_err(|problem| FileError::new(problem, "sort columns and rows by their numbers").in_file(path))?;
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
