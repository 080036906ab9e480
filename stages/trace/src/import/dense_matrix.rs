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
//! the columns, or number them: `0:`, `rank 0`, `P0`, `[0]`. They tell the ranks of rows that are in another order. Sums of rows and
//! columns are refused, as are three or four lines that may be pairs of ranks with their bytes, unless the format is given. Comments
//! begin with `#`, `//`, `%` or `;`.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use hopmap_model::{Context, Edge, TaskGraph, to_u32};
use hopmap_text::{FileError, Line, Lines, Rows, is_command_or_rule, shown};

use super::reader::{self, Reader, Sample};
use crate::matrix::{Accumulator, MAX_RANKS};

pub(super) static READER: Reader = Reader {
    recognises: |sample| judged(sample) == Some(Ok(())),
    files: reader::one_file,
    read: |path, _, cx| Ok(read(path, cx)?),
    rows: ROWS,
    ..Reader::BINARY
};

const ROWS: Rows = Rows {
    is_row: |text| {
        let fields = fields(content(text));
        let names = fields.iter().take_while(|field| !is_number(field)).count();
        fields.len() > names + 1 && names < 3 && fields[names..].iter().all(|field| is_number(field))
    },
    is_other: is_command_or_rule,
};

const HINT: &str = "a dense matrix has as many lines as columns: the bytes that a rank sends to every rank, separated by \
                    commas, semicolons, tabs or blanks; names of columns are in the order of the ranks, and those of rows the same, or missing";

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
        let mut numbers = row[0].split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty());
        let is_counted = numbers.any(|number| first[1..].contains(&number));
        let is_corner = is_wide
            && is_name
            && (first[1..].contains(&bare(row[0]))
                || (begins_with_name && are_names(&first[1..]))
                || (!first[0].contains(|c: char| c.is_ascii_digit()) && is_counted));
        let has_header =
            is_corner || is_next || are_names(&first[usize::from(is_wide && begins_with_name)..]);
        let are_rows_named = is_corner || begins_with_name || is_next;
        let columns = first[usize::from(is_corner)..].iter().map(|name| (*name).to_owned()).collect();
        let ranks = row.len() - usize::from(are_rows_named);
        let words = usize::from(are_rows_named) + usize::from(is_worded);
        Some(Self { names: has_header.then_some(columns), words, ranks })
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

    /// The name of a row, and its numbers.
    fn parts<'f, 'l>(&self, row: usize, fields: &'f [&'l str]) -> Result<(String, &'f [&'l str]), String> {
        let (name, numbers) = fields.split_at(self.words.min(fields.len()));
        let name = name.join(" ");
        if numbered(&name).is_none() {
            check_name(if self.names.is_some() { bare(&name) } else { &name })?;
        }
        let (found, ranks) = (numbers.len(), self.ranks);
        match wrong(numbers).filter(|_| found != ranks || row >= ranks) {
            Some(problem) => Err(problem),
            None if row >= ranks => Err(format!("the matrix has {ranks} columns, but more lines")),
            None if found != ranks => Err(format!("the line has {found} numbers, but others have {ranks}")),
            None => Ok((name, numbers)),
        }
    }

    /// The rank of each row by its name, if that is not its place; otherwise the place of a row that is wrong, and why.
    fn order(&self, rows: &[String]) -> Result<Option<Vec<u32>>, (usize, String)> {
        if self.words == 0 {
            return Ok(None);
        }
        let numbers = numbers_of(rows);
        if let Some(columns) = &self.names {
            let by_name =
                || positions(rows.iter().map(|name| bare(name)), columns.iter().map(|name| bare(name)));
            let by_number = || positions(numbers.clone()?.into_iter(), numbers_of(columns)?.into_iter());
            // Columns may have other names.
            let by_count = || {
                let order = permutation(numbers.as_ref()?).filter(|order| order.is_sorted());
                order.filter(|_| numbers_of(columns).is_none())
            };
            return match by_name().or_else(by_number).or_else(by_count) {
                Some(order) => Ok(Some(order).filter(|order| !order.is_sorted())),
                None => {
                    let mut pairs = rows.iter().zip(columns);
                    let row = pairs.position(|(row, column)| bare(row) != bare(column)).unwrap_or_default();
                    let (name, other) = (shown(&rows[row]), shown(&columns[row]));
                    Err((row, format!("the row is `{name}`, but column {} is `{other}`", row + 1)))
                }
            };
        }
        let Some(numbers) = numbers else { return Ok(None) };
        if let Some(order) = permutation(&numbers) {
            return Ok(Some(order).filter(|order| !order.is_sorted()));
        }
        let first = numbers.first().map_or(0, |first| (*first).min(1));
        let is_count = |name: &String| {
            name.contains([' ', ':', '[', '(', '<'])
                || numbered(name).is_some_and(|(stem, _)| stem.is_empty())
        };
        let stems: BTreeSet<&str> = rows.iter().filter_map(|name| Some(numbered(name)?.0)).collect();
        let wrong = match rows.iter().all(is_count) {
            true => (0..).zip(&numbers).position(|(row, number)| *number != first + row),
            false if stems.len() > 1 => None,
            false => numbers.windows(2).position(|pair| pair[0] >= pair[1]).map(|row| row + 1),
        };
        wrong.map_or(Ok(None), |row| {
            Err((
                row,
                format!("the row is `{}`, but rows are numbered from 0 or 1, each once", shown(&rows[row])),
            ))
        })
    }
}

/// The place of each of the first in the second, which have the same without repetition.
fn positions<T: std::hash::Hash + Eq>(
    rows: impl ExactSizeIterator<Item = T>,
    columns: impl ExactSizeIterator<Item = T>,
) -> Option<Vec<u32>> {
    let mut places: HashMap<T, u32> = columns.zip(0..).collect();
    let is_square = places.len() == rows.len();
    rows.map(|row| places.remove(&row)).collect::<Option<Vec<u32>>>().filter(|_| is_square)
}

/// Numbers less the least one, if they are all from 0 or from 1.
fn permutation(numbers: &[u64]) -> Option<Vec<u32>> {
    let first = *numbers.iter().min()?;
    let all = first..first.saturating_add(numbers.len() as u64);
    positions(numbers.iter().copied(), all.collect::<Vec<_>>().into_iter()).filter(|_| first < 2)
}

/// The numbers in names: where these differ, or else at their ends.
fn numbers_of(names: &[String]) -> Option<Vec<u64>> {
    let (first, rest) = names.split_first()?;
    let alike = |one: &str, other: &str| {
        one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
    };
    let reversed = |text: &str| text.chars().rev().collect::<String>();
    let is_digit = |c: char| c.is_ascii_digit();
    let before = rest.iter().map(|name| alike(first, name)).min()?;
    let behind = rest.iter().map(|name| alike(&reversed(first), &reversed(name))).min()?;
    let before = first.get(..before).map(|text| text.trim_end_matches(is_digit).len());
    let behind = first.get(first.len() - behind..).map(|text| text.trim_start_matches(is_digit).len());
    let between = |name: &String| name.get(before?..name.len().checked_sub(behind?)?)?.parse().ok();
    let all: Option<Vec<u64>> = names.iter().map(between).collect();
    all.or_else(|| names.iter().map(|name| Some(numbered(name)?.1)).collect())
}

/// A name of a row without the colon behind it.
fn bare(name: &str) -> &str {
    name.trim_end_matches(':')
}

/// The number at the end of a name, and what is before it.
fn numbered(name: &str) -> Option<(&str, u64)> {
    let name = name.trim_end_matches([':', ']', ')', '>']);
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

/// A line without its comment. Those of Matrix Market, without a blank, are of another matrix, and what numbers are behind is none.
fn content(text: &str) -> &str {
    let begins = |(at, mark): (usize, &str)| {
        let (before, behind) = (&text[..at], text[at..].trim_start_matches(mark));
        let is_text = || {
            behind
                .split([' ', '\t', ',', ';'])
                .find(|word| !word.is_empty())
                .is_none_or(|word| !is_number(word))
        };
        (before.trim().is_empty() || before.ends_with([' ', '\t', ',', ';']))
            && match mark {
                "%" => behind.is_empty() || behind.starts_with([' ', '\t', '\r']),
                ";" => is_text(),
                _ => true,
            }
    };
    let marks = ["#", "//", "%", ";"].into_iter();
    let first = marks
        .filter_map(|mark| text.match_indices(mark).find(|found| begins(*found)).map(|(at, _)| at))
        .min();
    first.map_or(text, |end| text[..end].trim_end())
}

/// The number of a line, and its fields.
type Row<'s> = (usize, Vec<&'s str>);

/// The complete lines that are seen, with their numbers, and the last one if the file goes on.
fn rows<'s>(sample: &'s Sample<'_>) -> (Vec<Row<'s>>, Option<Vec<&'s str>>) {
    let filled = (1..).zip(sample.text.lines()).filter(|(_, line)| !(ROWS.is_other)(line));
    let filled =
        filled.map(|(number, line)| (number, content(line))).filter(|(_, line)| !line.trim().is_empty());
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
    if let Some(row) = half(&all).filter(|_| sample.is_whole) {
        let problem = "the rows become longer or shorter, as those of half a matrix: write the bytes in both directions";
        return Some(Err((row, problem.to_owned())));
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
        let numbers = form.parts(row, fields);
        Some((*line, numbers.map_or_else(Some, |(_, numbers)| wrong(numbers))?))
    };
    let of_names = form.check_names().err().map(|problem| (first, problem));
    let of_file = || match sample.is_whole {
        true if are_numbered(&form, rows) => Some((first, NUMBERED.to_owned())),
        true if rows.len() < form.ranks => {
            Some((last, format!("the file ends after {} of {} rows", rows.len(), form.ranks)))
        }
        true if may_be_pairs(&form, rows) => {
            Some((first, "the lines may also be pairs of ranks with their bytes".to_owned()))
        }
        true => {
            let names = rows.iter().map(|(_, fields)| fields[..form.words.min(fields.len())].join(" "));
            form.order(&names.collect::<Vec<_>>()).err().map(|(row, problem)| (rows[row].0, problem))
        }
        false => None,
    };
    let wrong = of_names.or_else(|| rows.iter().enumerate().find_map(problem)).or_else(of_file);
    Some(wrong.map_or(Ok(()), Err))
}

const NUMBERED: &str = "the first numbers may be those of the rows, or of a matrix whose last row is missing; delete them if they are: \
                        `sed -E 's/^[[:blank:]]*[0-9]+[[:blank:],;]+//'`";

/// Whether rows begin with their numbers, which makes them one longer than the matrix has rows.
fn are_numbered(form: &Form, rows: &[Row<'_>]) -> bool {
    let number = |(_, fields): &Row<'_>| fields.first().and_then(|field| field.parse::<usize>().ok());
    let counts_from = |first: usize| (first..).zip(rows).all(|(expected, row)| number(row) == Some(expected));
    form.words == 0 && rows.len() > 1 && rows.len() + 1 == form.ranks && (counts_from(0) || counts_from(1))
}

/// The second line of rows that have a number more each, or a number less, as those above or below a diagonal.
fn half(rows: &[Row<'_>]) -> Option<usize> {
    let is_row = |(_, fields): &Row<'_>| fields.iter().skip(1).all(|field| is_number(field));
    let grows = |by: fn(&[Row<'_>]) -> bool| rows.windows(2).all(by);
    let is_half = grows(|pair| pair[0].1.len() + 1 == pair[1].1.len())
        || grows(|pair| pair[1].1.len() + 1 == pair[0].1.len());
    (rows.len() > 2 && is_half && rows.iter().all(is_row)).then(|| rows[1].0)
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
    let mut lines = Lines::open(path, HINT)?.with(cx).lossy().of_rows(ROWS).commented_by(b'#');
    let mut accumulator = Accumulator::default();
    accumulator.see(to_u32(form.ranks) - 1);
    let (mut row, mut is_header) = (0, form.names.is_some());
    let (mut names, mut numbers_of_lines) = (Vec::new(), Vec::new());
    while let Some(line) = lines.next_filled()? {
        let text = content(line.text);
        if !text.trim().is_empty() && !std::mem::take(&mut is_header) {
            let fields = fields(text);
            let (name, numbers) = form.parts(row, &fields).map_err(|problem| line.error(problem))?;
            add(line, &mut accumulator, (row, numbers))?;
            names.push(name);
            numbers_of_lines.push(line.number);
            row += 1;
        }
    }
    if row < form.ranks {
        return Err(lines.error(format!("the file ends after {row} of {} rows", form.ranks)));
    }
    let order =
        form.order(&names).map_err(|(row, problem)| lines.error_at(numbers_of_lines[row], problem))?;
    reader::warn_of_foreign(lines.foreign(), cx);
    cx.log("warning: the matrix does not contain message counts: each pair counts as one message");
    let mut graph = accumulator.into_graph();
    if let Some(order) = order {
        cx.log(format_args!(
            "the names of the rows tell their ranks: the first row, `{}`, is of rank {}",
            shown(&names[0]),
            order[0]
        ));
        graph.edges.iter_mut().for_each(|edge| edge.source = order[edge.source as usize]);
        graph.edges.sort_unstable_by_key(Edge::pair);
    }
    Ok(graph)
}

/// The form of the matrix, from its first lines.
fn form(path: &Path, cx: &Context<'_>) -> Result<Form, FileError> {
    let mut lines = Lines::open(path, HINT)?.with(cx).lossy().of_rows(ROWS).commented_by(b'#');
    let (mut first, mut bytes) = (Vec::new(), 0);
    while (first.len() < 2 || (first.len() < FIRST && bytes < MOST_BYTES))
        && let Some(line) = lines.next_filled()?
    {
        let text = content(line.text);
        if !text.trim().is_empty() {
            bytes += text.len();
            first.push((line.number, text.to_owned()));
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
