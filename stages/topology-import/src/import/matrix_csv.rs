//! Dense square cost matrices as text: cells separated by commas, semicolons, tabs or blanks, comments after
//! `#`, with or without a first line and a first column of names.
//!
//! A name is that of a host, or `host:core`. The slots of a host must be consecutive. Without names, or where these are the numbers of rows
//! (`0:`, `rank 0`), every row is a host, unless the parameter `slots` sets the number of rows per host.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use hopmap_text::{FileError, Foreign, shown, without_foreign};

use super::format::{Sample, malformed};
use super::measured::{MOST_ROWS, Measured, is_host_name, refuse};
use super::{ImportError, ImportParams, Imported, Result};

const HELP: &str = "a matrix must be square with non-negative costs";

/// Column names of other tables.
const OTHER_TABLES: &str = "source destination target from to src dst a b rank bytes messages \
                            latency bandwidth device_a device_b";

pub(super) fn recognises(sample: &Sample) -> bool {
    let Some(text) = sample.text() else { return false };
    let (text, _) = Foreign::of_lines(text, &lines_apart(text));
    let Ok(text) = without_numbers(&text) else { return true };
    let Ok(table) = Table::read(&text) else { return false };
    if !sample.is_whole() && table.is_beginning() {
        return true;
    }
    let is_other = |name: &str| OTHER_TABLES.split(' ').any(|other| name.eq_ignore_ascii_case(other));
    let Ok(Square { names, costs }) = table.square() else { return false };
    let has_corner = text.trim_start().starts_with([',', ';']);
    costs.len() >= 4
        && (has_corner || !names.is_some_and(|names| names.iter().any(|(_, name)| is_other(name))))
}

pub(super) fn read(text: &str, params: &ImportParams) -> Result<Imported> {
    refuse(params, &["slots"])?;
    let text = without_numbers(text)?;
    let Square { names, costs } = Table::read(&text)?.square()?;
    let endpoints = match (names, params.slots()) {
        (Some(names), None) => endpoints(&names)?,
        (None, slots) => numbered(costs.len().isqrt(), slots.unwrap_or(1))?,
        (Some(_), Some(_)) => {
            let problem = "has no effect: the names in the file determine the slots of hosts";
            return Err(ImportError::parameter("slots", problem, "omit it"));
        }
    };
    let mut notes = Vec::new();
    let system = Measured { endpoints, costs }.machine(&mut notes)?;
    Ok(Imported { system, notes })
}

/// Why a text is no matrix, if most of its lines are rows of numbers.
pub(super) fn doubt(text: &str) -> Option<FileError> {
    let (own, _) = Foreign::of_lines(text, &lines_apart(text));
    let separator = separator(rows(&own).next()?.1);
    let is_row = |row: &str| {
        let mut cells = cells(row, separator).skip(1).peekable();
        cells.peek().is_some() && cells.all(|cell| cell.parse::<f64>().is_ok())
    };
    let (like, all) = (rows(&own).filter(|(_, row)| is_row(row)).count(), rows(&own).count());
    if like < 2 || 2 * like <= all {
        return None;
    }
    match read(&own, &ImportParams::default()) {
        Err(ImportError::File(error)) => {
            Some(FileError { problem: format!("as a `matrix`: {}", error.problem), ..error })
        }
        _ => None,
    }
}

/// The lines below the first that are no rows by their shape. In `text`, messages are not left out yet.
#[expect(clippy::unnecessary_wraps, reason = "a row of the table of readers")]
pub(super) fn others(text: &str) -> Result<Vec<usize>> {
    Ok(lines_apart(&without_foreign(text)))
}

/// The lines below the first that are no rows by their shape: of one cell, or between blanks without a number.
fn lines_apart(text: &str) -> Vec<usize> {
    let mut lines = rows(text);
    let separator = lines.next().and_then(|(_, first)| separator(first));
    let is_row = |row: &str| match separator {
        Some(_) => cells(row, separator).count() > 1,
        None => cells(row, None).any(|cell| cell.parse::<f64>().is_ok()),
    };
    lines.filter(|(_, row)| !is_row(row)).map(|(line, _)| line).collect()
}

/// The word before the number of a row, the number, and what follows.
type NumberedRow<'t> = (&'t str, usize, &'t str);

/// `0: 1 2` or `rank 0 1 2`.
fn row_number(row: &str) -> Option<NumberedRow<'_>> {
    let row = row.trim_start();
    let (word, rest) = match row.split_once(' ') {
        Some((word, rest)) if word.bytes().all(|byte| byte.is_ascii_alphabetic()) => {
            (word, rest.trim_start())
        }
        _ => ("", row),
    };
    let (number, behind) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
    let has_colon = behind.starts_with(':');
    let behind = behind.trim_start_matches(':').strip_prefix([' ', '\t', ',', ';'])?;
    (has_colon || !word.is_empty()).then_some((word, number.parse().ok()?, behind))
}

/// Rows that all have a number behind the same word, if any, with their lines.
fn rows_with_numbers<'t>(rows: &[(usize, &'t str)]) -> Option<Vec<(usize, NumberedRow<'t>)>> {
    let of = |&(line, row): &(usize, &'t str)| Some((line, row_number(row)?));
    let found: Vec<_> = rows.iter().map(of).collect::<Option<_>>()?;
    let is_alike = found.len() > 1 && found.iter().all(|(_, row)| row.0 == found[0].1.0);
    is_alike.then_some(found)
}

/// The text without numbers of its rows, and without a line that only numbers the columns. They are no names of hosts, but must be in order.
fn without_numbers(text: &str) -> Result<Cow<'_, str>> {
    let all: Vec<(usize, &str)> = rows(text).collect();
    let is_header = |row: &str| {
        let numbers = row.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
        numbers.map(str::parse::<usize>).zip(0..).all(|(found, at)| found == Ok(at) || found == Ok(at + 1))
    };
    let rows = match (rows_with_numbers(&all), all.first()) {
        (Some(rows), _) => rows,
        (None, Some((_, first))) if is_header(first) => match rows_with_numbers(&all[1..]) {
            Some(rows) => rows,
            None => return Ok(Cow::Borrowed(text)),
        },
        _ => return Ok(Cow::Borrowed(text)),
    };
    let first = rows[0].1.1.min(1);
    let wrong = rows.iter().zip(first..).find(|((_, (_, number, _)), expected)| number != expected);
    if let Some(((line, (_, number, _)), expected)) = wrong {
        let problem = format!("the row has the number {number}, where {expected} is expected");
        return Err(malformed(*line, problem, "give the rows in the order of the columns"));
    }
    let mut kept = String::with_capacity(text.len());
    let mut rows = rows.into_iter().peekable();
    for number in 1..=text.lines().count() {
        if let Some((_, (.., row))) = rows.next_if(|(line, _)| *line == number) {
            kept.push_str(row);
        }
        kept.push('\n');
    }
    Ok(Cow::Owned(kept))
}

/// Hosts without names.
fn numbered(rows: usize, slots: u32) -> Result<Vec<(String, Option<u32>)>> {
    match rows.is_multiple_of(slots as usize) {
        true => Ok((0..rows).map(|row| (format!("host-{}", row / slots as usize), None)).collect()),
        false => {
            let problem = format!("does not divide the {rows} rows of the matrix");
            Err(ImportError::parameter("slots", problem, "give the number of rows per host"))
        }
    }
}

/// A name and its line.
type Name<'a> = (usize, &'a str);

/// Strips quotation marks around a name, and a colon behind it.
fn plain(cell: &str) -> &str {
    let cell = cell.trim().trim_end_matches(':');
    cell.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(cell)
}

/// The names of the first line, which must equal those of the first column, if any.
fn agreed<'a>(header: Vec<Name<'a>>, own: Vec<Name<'a>>) -> Result<Vec<Name<'a>>> {
    match header.iter().zip(&own).find(|((_, column), (_, row))| column != row) {
        None => Ok(if own.is_empty() { header } else { own }),
        Some(((_, column), (line, row))) => {
            let problem = format!("the row is named `{row}`, but the corresponding column `{column}`");
            Err(malformed(*line, problem, "rows and columns must have the same names in the same order"))
        }
    }
}

/// Hosts and cores: `host:core` if all names have that form, otherwise host names.
fn endpoints(names: &[Name<'_>]) -> Result<Vec<(String, Option<u32>)>> {
    let split = |name: &str| {
        let (host, core) = name.rsplit_once(':')?;
        Some((host.to_owned(), Some(core.parse().ok()?)))
    };
    let all: Option<Vec<(String, Option<u32>)>> = names.iter().map(|(_, name)| split(name)).collect();
    let host_names = || names.iter().map(|(_, name)| ((*name).to_owned(), None)).collect();
    let endpoints: Vec<(String, Option<u32>)> = all.unwrap_or_else(host_names);
    let mut last: HashMap<&str, usize> = HashMap::new();
    let mut cores = HashSet::new();
    for (place, ((line, name), (host, core))) in names.iter().zip(&endpoints).enumerate() {
        let wrong = |problem: String, help: &str| Err(malformed(*line, problem, help));
        if !is_host_name(host) {
            let help = "names must not be empty or contain blanks";
            return wrong(format!("`{name}` is not a valid host name"), help);
        }
        if last.insert(host, place).is_some_and(|before| before + 1 != place) {
            let help = "the rows of a host must be consecutive";
            return wrong(format!("the slots of host `{host}` are not consecutive"), help);
        }
        if core.is_some() && !cores.insert((host, core)) {
            return wrong(format!("duplicate `{name}`"), "give one row per core");
        }
    }
    Ok(endpoints)
}

/// The structure of a file: its first row, whose meaning follows from the number of the other rows, and the
/// others.
#[derive(Debug, Default)]
struct Table<'a> {
    /// Line of the first row.
    line: usize,
    first: Vec<&'a str>,
    /// Whether the other rows begin with a name.
    is_named: bool,
    names: Vec<Name<'a>>,
    costs: Vec<f64>,
    /// Number of other rows.
    rows: usize,
    /// Number of costs in each of them.
    columns: usize,
}

/// A matrix and the names of its rows.
#[derive(Debug)]
struct Square<'a> {
    names: Option<Vec<Name<'a>>>,
    costs: Vec<f64>,
}

impl<'a> Table<'a> {
    fn read(text: &'a str) -> Result<Self> {
        let mut rows = rows(text);
        let Some((line, first)) = rows.next() else {
            return Err(malformed(None, "the file contains no matrix", HELP));
        };
        let separator = separator(first);
        let first = cells(first, separator).take(MOST_ROWS + 2).collect();
        let mut table = Self { line, first, ..Self::default() };
        for (line, row) in rows {
            let mut cells = cells(row, separator);
            if table.rows == 0 {
                // Below an empty corner there are names, even if they are numbers.
                let is_corner = table.first.first().is_some_and(|cell| cell.is_empty());
                let is_name = |cell: &str| cell.parse::<f64>().is_err();
                table.is_named = is_corner || cells.clone().next().is_some_and(is_name);
            }
            if table.is_named {
                table.names.push((line, plain(cells.next().unwrap_or_default())));
            }
            table.row(line, cells)?;
        }
        Ok(table)
    }

    fn row(&mut self, line: usize, cells: impl Iterator<Item = &'a str>) -> Result<()> {
        let count = costs(line, cells, &mut self.costs)?;
        if self.rows > 0 && count != self.columns {
            let problem = format!("the row has {count} costs, the previous rows have {}", self.columns);
            return Err(malformed(line, problem, HELP));
        }
        (self.columns, self.rows) = (count, self.rows + 1);
        match self.rows > self.columns {
            false => Ok(()),
            true => {
                let problem = format!("there are more rows than the {count} columns");
                Err(malformed(line, problem, HELP))
            }
        }
    }

    /// Whether this may be the beginning of a matrix.
    fn is_beginning(&self) -> bool {
        let inner = self.first.get(1..self.first.len().saturating_sub(1)).unwrap_or_default();
        match self.rows {
            0 => inner.len() > 99 && inner.iter().all(|cell| cost(cell).is_some()),
            rows => {
                let with_names = self.columns + usize::from(self.is_named);
                let is_row = [self.columns, with_names].contains(&self.first.len());
                is_row && self.columns > 99 && rows < self.columns
            }
        }
    }

    /// The matrix. With as many other rows as columns, the first row contains names. With one row less, it
    /// belongs to the matrix.
    fn square(self) -> Result<Square<'a>> {
        let wrong = |problem: String| Err(malformed(self.line, problem, HELP));
        let columns = if self.rows == 0 { 1 } else { self.columns };
        if self.rows == columns {
            if !self.is_named && self.first.iter().all(|cell| cell.parse::<f64>().is_ok()) {
                return wrong(format!("there are {} rows of {columns} columns", self.rows + 1));
            }
            let corner = self.first.len().wrapping_sub(columns);
            if corner > usize::from(self.is_named) {
                return wrong(format!("there are {} names for {columns} columns", self.first.len()));
            }
            let header: Vec<_> = self.first[corner..].iter().map(|cell| (self.line, plain(cell))).collect();
            let names = agreed(header, self.names)?;
            return Ok(Square { names: Some(names), costs: self.costs });
        }
        if self.rows + 1 != columns {
            return wrong(format!("there are {} rows of {columns} columns", self.rows + 1));
        }
        let is_named = if self.rows == 0 { self.first.len() > 1 } else { self.is_named };
        let mut first = self.first.iter().copied();
        let name = if is_named { first.next() } else { None };
        let mut costs_of_all = Vec::with_capacity(self.costs.len() + columns);
        let count = costs(self.line, first, &mut costs_of_all)?;
        if count != columns {
            return wrong(format!("the first row has {count} costs, the others have {columns}"));
        }
        costs_of_all.extend(self.costs);
        let names = name.map(|name| {
            std::iter::once((self.line, plain(name))).chain(self.names.iter().copied()).collect()
        });
        Ok(Square { names, costs: costs_of_all })
    }
}

/// The lines with content, with their numbers.
fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_row = |(_, line): &(usize, &str)| !line.is_empty() && !line.trim_start().starts_with('#');
    (1..).zip(text.lines().map(|line| line.trim_end_matches([' ', '\r']))).filter(is_row)
}

fn separator(first: &str) -> Option<char> {
    [';', '\t', ','].into_iter().find(|&separator| first.contains(separator))
}

fn cells(row: &str, separator: Option<char>) -> impl Iterator<Item = &str> + Clone {
    // Consecutive blanks count as one; a separator after the last cell ends the row.
    let row = match separator {
        Some(separator) if separator != '\t' => row,
        Some(_) => row.trim_end_matches('\t'),
        None => row.trim(),
    };
    row.split(move |c: char| separator.map_or(c == ' ', |separator| c == separator))
        .filter(move |cell| separator.is_some() || !cell.is_empty())
        .map(str::trim)
}

/// Appends the costs of a row and returns their number.
fn costs<'a>(line: usize, cells: impl Iterator<Item = &'a str>, costs: &mut Vec<f64>) -> Result<usize> {
    let before = costs.len();
    for cell in cells {
        let Some(cost) = cost(cell) else {
            let problem = format!("`{}` is not a valid cost", shown(cell));
            return Err(malformed(line, problem, HELP));
        };
        costs.push(cost);
        if costs.len() - before > MOST_ROWS {
            let problem = format!("the row has more than {MOST_ROWS} costs");
            return Err(malformed(line, problem, "measure or choose fewer hosts"));
        }
    }
    Ok(costs.len() - before)
}

/// A finite non-negative number.
fn cost(cell: &str) -> Option<f64> {
    let is_plain = (1..=15).contains(&cell.len()) && cell.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain {
        // Below 2^53, and thus exact.
        let number = cell.bytes().fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'));
        return Some(number as f64);
    }
    cell.parse().ok().filter(|cost: &f64| cost.is_finite() && *cost >= 0.0).map(|cost| cost + 0.0)
}
