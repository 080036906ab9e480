//! Which lines of a table are rows. What its header and most of its lines are like decides, and not a list of words: the number of
//! cells, what is in each column, and the shape of the names.

use std::collections::{HashMap, HashSet};

use hopmap_text::{FileError, Shapes, is_foreign, row_behind, shown};

/// A line below the header, and its cells.
pub(super) struct TableLine<'t> {
    pub(super) number: usize,
    pub(super) text: &'t str,
    pub(super) cells: Vec<&'t str>,
    /// Whether these are as those of a row.
    pub(super) is_row: bool,
    /// Whether it is a message by its words, and no longer in the text that is read.
    pub(super) is_message: bool,
}

/// A table and what its format says of it.
pub(super) struct Table<'t> {
    pub(super) header: Vec<&'t str>,
    pub(super) lines: Vec<TableLine<'t>>,
    /// The cells of a text if it may be a whole row.
    pub(super) cells: &'t dyn Fn(&'t str) -> Option<Vec<&'t str>>,
    /// The column of hosts, if every row is one.
    pub(super) host: Option<usize>,
    /// The columns of names of hosts and switches.
    pub(super) names: Vec<usize>,
    /// Whether a line whose cells are not those of a row is skipped, rather than a damaged row.
    pub(super) is_aligned: bool,
    /// Whether these are names of columns that the format has.
    pub(super) is_header: fn(&[&str]) -> bool,
}

pub(super) const JOINED: &str =
    "files that are joined have the same columns in the same order: give one with its own header at a time";
const HALF: &str =
    "give all cells of the row, empty ones too; remove the line if it is a message of another program";
const SUM: &str = "remove the line; if it is a host, write its name in quotes: `\"NAME\"`";
const ALIGNED_SUM: &str = "remove the line; if it is a host, give the table with its column STATUS";
const BEHIND: &str =
    "remove what is behind the name, also a comment; if it is of the name, write both in quotes: `\"NAME\"`";
const ALIGNED_BEHIND: &str = "a label has no blanks: remove what is behind the last one, also a comment";
const NAME: &str = "a host name has no blanks; remove the line if it is a message of another program";

fn is_number(cell: &str) -> bool {
    cell.parse::<f64>().is_ok()
}

/// Whether a cell is a number with a unit.
fn is_quantity(cell: &str) -> bool {
    let unit = cell.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim_start();
    unit.len() < cell.len() && unit.len() < 6 && unit.chars().all(|c| c.is_alphabetic() || "/%".contains(c))
}

fn has_digit(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
}

/// What the rows of a table are like.
struct Likeness<'a, 't> {
    table: &'a Table<'t>,
    /// How often each cell is in the table, and the cells behind the first column.
    counts: HashMap<&'t str, usize>,
    behind: HashSet<&'t str>,
    /// The first cells of lines that have not only numbers behind them.
    named: HashSet<&'t str>,
    /// Of the first cells of whole rows.
    first: Shapes,
    /// Whether most cells of a column are words, and whether none is empty in whole rows.
    of_words: Vec<bool>,
    is_filled: Vec<bool>,
    /// Whether first cells with several parts are so few that these may be prefixes.
    is_rare: bool,
    /// Whether the first cells of all rows begin with the same words, and no other cell does.
    has_same_words: bool,
    /// The names without blanks of the columns in which most names have none, and their shapes.
    plain: HashMap<usize, HashSet<&'t str>>,
    names: Shapes,
    /// Whether most lines are whole rows.
    is_whole: bool,
    /// How many names of hosts have digits, and how many have none.
    numbered: (usize, usize),
}

/// The lines that are no rows and are skipped: the header again, rules, sums, and words of a program.
///
/// # Errors
/// For a line that may be a row: behind a prefix, half of one, below another header, or with a name that is none.
pub(super) fn others(table: &Table<'_>) -> Result<Vec<usize>, FileError> {
    let likeness = Likeness::of(table);
    let mut others = Vec::new();
    for line in &table.lines {
        if likeness.is_other(line)? && !line.is_message {
            others.push(line.number);
        }
    }
    Ok(others)
}

impl<'a, 't> Likeness<'a, 't> {
    fn of(table: &'a Table<'t>) -> Self {
        let width = table.header.len();
        let rows = || table.lines.iter().filter(|line| line.is_row && line.cells.len() == width);
        let mut counts = HashMap::new();
        for cell in table.lines.iter().flat_map(|line| &line.cells) {
            *counts.entry(*cell).or_default() += 1;
        }
        let of_column =
            |column: usize| rows().map(move |line| line.cells[column]).filter(|cell| !cell.is_empty());
        let is_word = |cell: &&str| !is_number(cell) && !is_quantity(cell);
        let of_words = |column| 2 * of_column(column).filter(is_word).count() > of_column(column).count();
        let names = || rows().filter_map(|line| Some(line.cells[table.host?]));
        let parted = rows().filter(|line| has_parts(line.cells[0])).count();
        let plain_of = |&column: &usize| {
            let (plain, others): (Vec<_>, Vec<_>) =
                of_column(column).partition(|cell| !cell.contains(char::is_whitespace));
            (plain.len() >= others.len()).then(|| (column, HashSet::from_iter(plain)))
        };
        let plain: HashMap<usize, HashSet<&str>> = table.names.iter().filter_map(plain_of).collect();
        Self {
            table,
            counts,
            behind: table.lines.iter().flat_map(|line| line.cells.iter().skip(1).copied()).collect(),
            named: table.lines.iter().filter(|line| !is_counted(line)).map(|line| line.cells[0]).collect(),
            first: Shapes::of(rows().map(|line| line.cells[0]).filter(|cell| !has_parts(cell))),
            of_words: (0..width).map(of_words).collect(),
            is_filled: (0..width).map(|column| of_column(column).count() == rows().count()).collect(),
            has_same_words: have_same_words(rows().map(|line| &line.cells[..])),
            is_rare: 2 * parted < rows().count() + 1,
            names: Shapes::of(plain.values().flatten().copied()),
            plain,
            is_whole: 2 * rows().count() > table.lines.iter().filter(|line| !line.is_message).count(),
            numbered: (
                names().filter(|name| has_digit(name)).count(),
                names().filter(|name| !has_digit(name)).count(),
            ),
        }
    }

    /// Whether a line is skipped, as it is not a row.
    fn is_other(&self, line: &TableLine<'t>) -> Result<bool, FileError> {
        let TableLine { number, text, ref cells, is_row, is_message } = *line;
        let width = self.table.header.len();
        if !is_message && self.is_header(cells, number)? {
            return Ok(true);
        }
        self.refuse_prefixed(line)?;
        let is_alone = cells.iter().skip(1).all(|cell| cell.is_empty());
        let is_word = !cells[0].is_empty() && !cells[0].contains(char::is_whitespace);
        if is_message
            || !text.contains(char::is_alphanumeric)
            || is_alone && (!is_word || is_foreign(cells[0]))
        {
            return Ok(true);
        }
        if self.is_sum(line)? {
            return Ok(true);
        }
        if !is_row && self.is_whole && cells.len() < width && is_word && self.first.have(cells[0]) {
            let is_left_out = |column: &usize| self.is_filled[*column];
            if let Some(column) = (cells.len()..width).find(is_left_out) {
                let problem = format!(
                    "the row of `{}` ends before its `{}`",
                    shown(cells[0]),
                    self.table.header[column]
                );
                return Err(FileError::at(number, problem, HALF));
            }
        }
        if !is_row && self.table.is_aligned && cells.len() > width && self.first.have(cells[0]) {
            let problem = format!("the row of `{}` has more cells than the header", shown(cells[0]));
            return Err(FileError::at(number, problem, ALIGNED_BEHIND));
        }
        if !is_row {
            return Ok(cells.len() == 1 || !is_word || self.table.is_aligned);
        }
        match self.table.host {
            Some(host) if cells.get(host).is_some_and(|name| is_no_name(name)) => {
                let problem = format!("`{}` is not a host name", shown(cells[host]));
                Err(FileError::at(number, problem, NAME))
            }
            _ => self.refuse_behind(line).map(|()| false),
        }
    }

    /// Refuses a row with text behind a name, where others of the column have none. A name with a blank is taken where several rows
    /// have it, unless what follows the blank begins as a comment does.
    fn refuse_behind(&self, line: &TableLine<'t>) -> Result<(), FileError> {
        let is_behind = |(column, cell): &(usize, &&str)| {
            let Some((name, behind)) = cell.split_once(char::is_whitespace) else { return false };
            let is_once = self.counts.get(*cell) == Some(&1) || behind.trim_start().starts_with(['#', '/']);
            let is_name = |names: &HashSet<&str>| names.contains(name) || self.names.have(name);
            let quoted = || format!("\"{}\"", cell.replace('"', "\"\""));
            is_once && self.plain.get(column).is_some_and(is_name) && !line.text.contains(&quoted())
        };
        let Some((column, cell)) = line.cells.iter().enumerate().find(is_behind) else { return Ok(()) };
        let problem = format!(
            "`{}` has text behind a name, unlike the others of the column `{}`",
            shown(cell),
            shown(self.table.header[column])
        );
        Err(FileError::at(line.number, problem, if self.table.is_aligned { ALIGNED_BEHIND } else { BEHIND }))
    }

    /// Whether these are the names of the columns again; an error if they are others.
    fn is_header(&self, cells: &[&str], number: usize) -> Result<bool, FileError> {
        let names = &self.table.header;
        let is_same = |(cell, name): (&&str, &&str)| cell.eq_ignore_ascii_case(name);
        if cells.len() == names.len() && cells.iter().zip(names).all(is_same) {
            return Ok(true);
        }
        let known =
            cells.iter().filter(|cell| names.iter().any(|name| cell.eq_ignore_ascii_case(name))).count();
        // Devices may have the names of columns.
        let is_once = || cells.iter().all(|cell| self.counts.get(cell) == Some(&1));
        let is_new = || {
            (self.table.is_header)(cells)
                && (self.table.host.is_some() || 2 * known > cells.len() || is_once())
        };
        if cells.len() > 1 && (known == cells.len() || is_new()) {
            let problem = format!(
                "the line names other columns than the first one, which has `{}`",
                shown(&names.join(" "))
            );
            return Err(FileError::at(number, problem, JOINED));
        }
        Ok(false)
    }

    /// Refuses a line in which something is before a row.
    fn refuse_prefixed(&self, line: &TableLine<'t>) -> Result<(), FileError> {
        let TableLine { number, text, ref cells, is_row, is_message } = *line;
        let is_no_name = self.table.host == Some(0) && is_no_name(cells[0]);
        let is_row = is_row && cells.len() == self.table.header.len();
        let may_be = is_message
            || !is_row
            || is_no_name
            || (self.is_rare || self.has_same_words) && has_parts(cells[0]);
        if !may_be || is_row && self.behind.contains(cells[0]) {
            return Ok(());
        }
        let is_known = |name: &str| self.named.contains(name) || self.behind.contains(name);
        // Names of devices may have blanks: there only a mark or a word in capitals is a prefix of a new name.
        let is_like = |prefix: &str, name: &str| {
            let is_mark = prefix.contains([':', ']', '>', '|'])
                || prefix.contains(char::is_uppercase) && !prefix.contains(char::is_lowercase);
            let is_shaped = (self.table.host.is_some() || is_mark) && self.first.have(name)
                || self.has_same_words && is_mark && name.starts_with(char::is_alphabetic);
            !has_parts(name) && (is_known(name) || is_shaped || is_no_name && !self::is_no_name(name))
        };
        let found = row_behind(text, |rest: &str| {
            // A row begins with its name.
            let (prefix, rest) = text.split_at(text.len() - rest.len());
            let has_more = |cells: &[&str]| cells.iter().skip(1).any(|cell| !cell.is_empty());
            (self.table.cells)(rest).is_some_and(|cells| has_more(&cells) && is_like(prefix, cells[0]))
        });
        found.map_or(Ok(()), |(prefix, row)| Err(prefix.error(number, row)))
    }

    /// Whether a line counts the others: a word that is nowhere else before numbers, of which one is in a column of words. An error if all
    /// columns are of numbers, and the names of the other rows have digits.
    fn is_sum(&self, line: &TableLine<'t>) -> Result<bool, FileError> {
        let name = line.cells[0];
        let counted = || (1..).zip(&line.cells[1..]).filter(|(_, cell)| !cell.is_empty());
        let is_known = || has_digit(name) || self.behind.contains(name) || self.named.contains(name);
        if !is_counted(line) || is_known() || line.cells.len() > self.of_words.len() {
            return Ok(false);
        }
        if counted().any(|(column, cell)| self.of_words[column] && is_number(cell)) {
            return Ok(true);
        }
        let (with, without) = self.numbered;
        if self.table.host == Some(0) && with > without && !line.text.trim_start().starts_with('"') {
            let problem = format!(
                "`{}` may be no host: its cells are numbers, and the other hosts have one in their names",
                shown(name)
            );
            let help = if self.table.is_aligned { ALIGNED_SUM } else { SUM };
            return Err(FileError::at(line.number, problem, help));
        }
        Ok(false)
    }
}

/// Whether a line has numbers behind its first cell, and nothing else.
fn is_counted(line: &TableLine<'_>) -> bool {
    let mut cells = line.cells.iter().skip(1).filter(|cell| !cell.is_empty()).peekable();
    cells.peek().is_some() && cells.all(|cell| is_number(cell) || is_quantity(cell))
}

/// Whether the first cells of rows have the same text before a blank or a mark, and no other cell has it.
fn have_same_words<'c>(mut rows: impl Iterator<Item = &'c [&'c str]> + Clone) -> bool {
    let first = rows.clone().next().map_or("", |cells| cells[0]);
    let is_begin = |end: &usize| rows.clone().all(|cells| cells[0].starts_with(&first[..*end]));
    let ends = first.char_indices().map(|(at, c)| at + c.len_utf8());
    let ends = ends.filter(|end| first[..*end].ends_with([' ', '\t', ':', '>', ']', '|']));
    let Some(end) = ends.take_while(is_begin).last() else { return false };
    !rows.any(|cells| cells[1..].iter().any(|cell| cell.starts_with(&first[..end])))
}

/// Whether a cell has parts of which the first may be a prefix.
fn has_parts(cell: &str) -> bool {
    cell.trim().contains([' ', '\t', '>', ']', '|'])
}

/// Whether no host has this name.
fn is_no_name(name: &str) -> bool {
    !name.is_empty()
        && (name.contains(|c: char| c.is_whitespace() || "<>()[]{}|\"'`$".contains(c)) || name.ends_with(':'))
}
