//! Compares tables of any kind row by row, and files: text line by line, others by their bytes.
//!
//! The key of a table is the shortest prefix of integer columns that is unique and sorted: rows of such
//! tables are merged while they are read. Tables without a key are compared as sets of rows.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{BufReader, Read};
use std::path::Path;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::DataType;
use hopmap_artifact::{ArtifactError, Cell, Folder, TableReader};
use serde::Serialize;
use similar::TextDiff;

use crate::common::{MOST_SHOWN, differing, merge, more};

/// Maximum number of differences that are listed.
const MOST_DIFFERENCES: usize = 8;
/// Maximum number of rows that are compared in tables without a key.
const MOST_ROWS: usize = 1 << 20;

/// A row that only one table has, or that has other values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RowChange {
    /// The values before, by column; `None` if the row is new.
    pub before: Option<Vec<String>>,
    /// The values after; `None` if the row is gone.
    pub after: Option<Vec<String>>,
}

/// The differences between two tables.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TableChanges {
    /// Name of the table.
    pub table: String,
    /// Number of rows before and after; zero if the table does not exist.
    pub rows: [u64; 2],
    /// Columns that both have.
    pub columns: Vec<String>,
    /// Columns that only the first table has, and that only the second has.
    pub other_columns: [Vec<String>; 2],
    /// Number of leading columns that form the key; zero if there is no key.
    pub key: usize,
    /// Number of rows that only the first table has.
    pub gone: u64,
    /// Number of rows that only the second table has.
    pub new: u64,
    /// Number of rows with the same key and other values.
    pub changed: u64,
    /// The first few rows that differ.
    pub first: Vec<RowChange>,
    /// Whether the rows were compared: not if there are too many without a key.
    pub compared: bool,
}

/// The tables that differ, except those that another comparison covers.
pub(super) fn compare(
    before: &Folder,
    after: &Folder,
    covered: &[&str],
) -> Result<Vec<TableChanges>, ArtifactError> {
    let (old, new) = (&before.description().tables, &after.description().tables);
    let mut found = Vec::new();
    for (name, old, new) in differing(old, new).filter(|(name, ..)| !covered.contains(name)) {
        let rows = [old, new].map(|table| table.map_or(0, |table| table.rows));
        let empty = TableChanges { table: name.to_owned(), rows, ..TableChanges::default() };
        found.push(match (old, new) {
            (Some(_), Some(_)) => rows_of(before, after, empty)?,
            _ => TableChanges { gone: rows[0], new: rows[1], compared: true, ..empty },
        });
    }
    Ok(found)
}

fn rows_of(before: &Folder, after: &Folder, empty: TableChanges) -> Result<TableChanges, ArtifactError> {
    let name = empty.table.clone();
    let (old, new) = (column_names(&before.stream(&name)?), column_names(&after.stream(&name)?));
    let common: Vec<String> = old.iter().filter(|column| new.contains(column)).cloned().collect();
    let only = |these: &[String], others: &[String]| {
        these.iter().filter(|column| !others.contains(column)).cloned().collect::<Vec<_>>()
    };
    let key =
        key(before, &name, &common)?.zip(key(after, &name, &common)?).map_or(0, |(old, new)| old.max(new));
    let mut found = TableChanges {
        other_columns: [only(&old, &new), only(&new, &old)],
        columns: common,
        key,
        compared: true,
        ..empty
    };
    let (mut old, mut new) =
        (rows(before, &name, &found.columns, key)?, rows(after, &name, &found.columns, key)?);
    if key > 0 {
        merge(old, new, |_, rows| found.visit(rows))?;
    } else if found.rows.iter().sum::<u64>() <= MOST_ROWS as u64 {
        let sorted = |rows: &mut dyn Iterator<Item = Result<(_, Vec<String>), ArtifactError>>| {
            let mut rows =
                rows.map(|row| row.map(|(_, text)| (text.clone(), text))).collect::<Result<Vec<_>, _>>()?;
            rows.sort();
            Ok::<_, ArtifactError>(rows.into_iter().map(Ok))
        };
        merge(sorted(&mut old)?, sorted(&mut new)?, |_, rows| found.visit(rows))?;
    } else {
        found.compared = false;
    }
    Ok(found)
}

/// Number of leading integer columns whose values are unique and sorted.
fn key(folder: &Folder, table: &str, columns: &[String]) -> Result<Option<usize>, ArtifactError> {
    let reader = folder.stream(table)?;
    let is_integer = |column: &&String| {
        reader.schema().field_with_name(column).is_ok_and(|field| {
            !field.is_nullable() && matches!(field.data_type(), DataType::UInt32 | DataType::UInt64)
        })
    };
    let leading: Vec<String> = columns.iter().take_while(is_integer).cloned().collect();
    let mut needed = 1;
    let mut last: Option<Vec<u64>> = None;
    for batch in reader {
        let numbers = numbers(&batch?, &leading);
        for row in 0..numbers.first().map_or(0, Vec::len) {
            let row: Vec<u64> = numbers.iter().map(|column| column[row]).collect();
            if let Some(last) = &last {
                match last.iter().zip(&row).position(|(last, row)| last != row) {
                    Some(place) if last[place] < row[place] => needed = needed.max(place + 1),
                    _ => return Ok(None),
                }
            }
            last = Some(row);
        }
    }
    Ok((!leading.is_empty()).then_some(needed))
}

/// Integer columns of a batch.
fn numbers(batch: &RecordBatch, columns: &[String]) -> Vec<Vec<u64>> {
    let column = |name: &String| {
        let column = batch.column_by_name(name)?;
        if let Some(column) = column.as_any().downcast_ref::<UInt32Array>() {
            return Some(column.values().iter().map(|&value| u64::from(value)).collect());
        }
        column.as_any().downcast_ref::<UInt64Array>().map(|column| column.values().to_vec())
    };
    columns.iter().filter_map(column).collect()
}

/// A row: its key, and all values as text.
type Row = (Vec<u64>, Vec<String>);

/// Iterates over the rows of a table.
fn rows(
    folder: &Folder,
    table: &str,
    names: &[String],
    key: usize,
) -> Result<impl Iterator<Item = Result<Row, ArtifactError>> + use<>, ArtifactError> {
    let names = names.to_vec();
    let of_batch = move |batch: &RecordBatch| {
        let columns: Vec<_> = names.iter().filter_map(|name| batch.column_by_name(name)).collect();
        let numbers = numbers(batch, &names[..key]);
        let text = |column: &ArrayRef, row: usize| match Cell::of(column, row) {
            Cell::Null => "none".to_owned(),
            value => value.to_string(),
        };
        let row = |row: usize| {
            let key = numbers.iter().map(|column| column[row]).collect();
            (key, columns.iter().map(|column| text(column, row)).collect())
        };
        (0..batch.num_rows()).map(row).map(Ok).collect()
    };
    let rows =
        move |batch: Result<_, _>| batch.map_or_else(|error| vec![Err(error)], |batch| of_batch(&batch));
    Ok(folder.stream(table)?.flat_map(rows))
}

fn column_names(reader: &TableReader) -> Vec<String> {
    reader.schema().fields().iter().map(|field| field.name().clone()).collect()
}

impl TableChanges {
    fn visit(&mut self, [before, after]: [Option<Vec<String>>; 2]) {
        let change = RowChange { before, after };
        match (&change.before, &change.after) {
            (before, after) if before == after => return,
            (None, _) => self.new += 1,
            (_, None) => self.gone += 1,
            _ => self.changed += 1,
        }
        if self.first.len() < MOST_SHOWN {
            self.first.push(change);
        }
    }

    pub(super) fn words(&self) -> Vec<String> {
        let Self { table, rows: [before, after], gone, new, changed, .. } = self;
        let mut lines = Vec::new();
        let [old, added] = &self.other_columns;
        for (columns, what) in [(old, "gone"), (added, "new")] {
            lines.extend(columns.iter().map(|column| format!("table {table}: column {column} is {what}")));
        }
        if !self.compared {
            lines.push(format!(
                "table {table} differs, {before} → {after} rows: too many to compare without a key"
            ));
            return lines;
        }
        lines.push(format!("table {table}: {new} rows new, {gone} gone, {changed} changed"));
        lines.extend(self.first.iter().map(|change| format!("  {}", self.row(change))));
        lines.extend(more(gone + new + changed, self.first.len()));
        lines
    }

    /// All columns of a row that is new or gone; key and differences of one that changed.
    fn row(&self, change: &RowChange) -> String {
        let all = |row: &[String]| {
            let pairs = self.columns.iter().zip(row).map(|(column, value)| format!("{column} {value}"));
            pairs.collect::<Vec<_>>().join(", ")
        };
        match (&change.before, &change.after) {
            (Some(before), Some(after)) => {
                let values = self.columns.iter().zip(before.iter().zip(after)).skip(self.key);
                let differs = values.filter(|(_, (old, new))| old != new);
                let parts: Vec<String> =
                    differs.map(|(column, (old, new))| format!("{column} {old} → {new}")).collect();
                format!("{}: {}", all(&before[..self.key]), parts.join(", "))
            }
            (Some(row), None) => format!("- {}", all(row)),
            (None, Some(row)) => format!("+ {}", all(row)),
            (None, None) => String::new(),
        }
    }
}

/// The first difference of each part (row, value or byte) between an artifact and its reproduction, as text.
#[must_use]
pub fn first_differences(before: &Path, again: &Path) -> Vec<String> {
    let mut lines = match (Folder::open(before), Folder::open(again)) {
        (Err(error), _) | (_, Err(error)) => vec![error.to_string()],
        (Ok(before), Ok(again)) => first_of_parts(&before, &again),
    };
    if lines.is_empty() {
        lines.push("artifact.json differs".to_owned());
    }
    if lines.len() > MOST_DIFFERENCES {
        let more = lines.len() - MOST_DIFFERENCES;
        lines.truncate(MOST_DIFFERENCES);
        lines.push(format!("and {more} more"));
    }
    lines
}

fn first_of_parts(before: &Folder, again: &Folder) -> Vec<String> {
    let (old, new) = (before.description(), again.description());
    if (&old.kind, old.schema) != (&new.kind, new.schema) {
        return vec![format!(
            "{} with schema {}, was {} with {}",
            new.kind, new.schema, old.kind, old.schema
        )];
    }
    let table = |(name, one, other): (&str, Option<_>, Option<_>)| match (one, other) {
        (Some(_), Some(_)) => {
            let line = first_row(before, again, name).unwrap_or_else(|error| error.to_string());
            format!("table {name}: {line}")
        }
        (Some(_), None) => format!("table {name} is gone"),
        (None, _) => format!("table {name} is new"),
    };
    let file = |(name, ..): (&str, Option<_>, Option<_>)| {
        let place = first_byte(&before.file_path(name), &again.file_path(name));
        format!("file {name}: {}", place.unwrap_or_else(|error| error.to_string()))
    };
    let mut lines: Vec<String> = differing(&old.tables, &new.tables).map(table).collect();
    lines.extend(differing(&old.files, &new.files).map(file));
    lines.extend(values(&old.metrics, &new.metrics));
    lines.extend(values(&old.attributes, &new.attributes));
    lines
}

fn values<T: PartialEq + Display>(old: &BTreeMap<String, T>, new: &BTreeMap<String, T>) -> Vec<String> {
    let text = |value: Option<&T>| value.map_or_else(|| "none".to_owned(), ToString::to_string);
    differing(old, new).map(|(name, old, new)| format!("{name} {}, was {}", text(new), text(old))).collect()
}

/// The first row that differs, with its differences. Rows are counted from 0, like ranks.
fn first_row(before: &Folder, again: &Folder, table: &str) -> Result<String, ArtifactError> {
    let (old, new) = (before.stream(table)?, again.stream(table)?);
    if old.schema() != new.schema() {
        return Ok("the columns differ".to_owned());
    }
    let columns = column_names(&old);
    let rows = rows(before, table, &columns, 0)?.zip(rows(again, table, &columns, 0)?);
    for (place, (one, other)) in rows.enumerate() {
        let values = columns.iter().zip(one?.1.into_iter().zip(other?.1));
        let differing = values.filter(|(_, (one, other))| one != other);
        let differences: Vec<String> =
            differing.map(|(name, (one, other))| format!("{name} {other}, was {one}")).collect();
        if !differences.is_empty() {
            return Ok(format!("row {place}: {}", differences.join("; ")));
        }
    }
    Ok(match (old.rows(), new.rows()) {
        (one, other) if one != other => format!("{other} rows, was {one}"),
        _ => "the same rows, encoded differently".to_owned(),
    })
}

fn first_byte(before: &Path, again: &Path) -> std::io::Result<String> {
    let open = |path: &Path| std::fs::File::open(path).map(BufReader::new);
    let (old, new) = (open(before)?, open(again)?);
    let mut count = 0_u64;
    let mut new = new.bytes();
    for old in old.bytes() {
        match new.next().transpose()? {
            Some(new) if old? == new => count += 1,
            Some(_) => return Ok(format!("differs from byte {count} on")),
            None => return Ok(format!("is truncated at byte {count}")),
        }
    }
    Ok(format!("is longer than {count} bytes"))
}

/// Maximum number of lines of a file that are compared line by line: the time is quadratic if all differ.
const MOST_LINES: usize = 5000;
/// Maximum size of a file that is read, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// A file that is new, gone or different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// Its name.
    pub file: String,
    /// BLAKE3 before; `None` if it is new.
    pub before: Option<String>,
    /// BLAKE3 after; `None` if it is gone.
    pub after: Option<String>,
    /// The unified diff of text files; `None` for binary or long files.
    pub lines: Option<String>,
}

/// The files that differ.
pub(super) fn compare_files(before: &Folder, after: &Folder) -> Result<Vec<FileChange>, ArtifactError> {
    let (old, new) = (&before.description().files, &after.description().files);
    let change = |(name, old, new): (&str, Option<&String>, Option<&String>)| {
        let texts = text(before, name)?.zip(text(after, name)?);
        let lines = texts.and_then(|(before, after)| line_diff(&before, &after));
        Ok(FileChange { file: name.to_owned(), before: old.cloned(), after: new.cloned(), lines })
    };
    differing(old, new).map(change).collect()
}

/// The text of a file; empty if the file does not exist, `None` if it is binary or too long.
fn text(folder: &Folder, name: &str) -> Result<Option<String>, ArtifactError> {
    if !folder.description().files.contains_key(name) {
        return Ok(Some(String::new()));
    }
    let path = folder.file_path(name);
    let read = || {
        let is_short = std::fs::metadata(&path)?.len() <= MOST_BYTES;
        if is_short { std::fs::read(&path).map(Some) } else { Ok(None) }
    };
    let bytes = read().map_err(|source| ArtifactError::Io { action: "read", path: path.clone(), source })?;
    Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()).filter(|text| !text.contains('\0')))
}

fn line_diff(before: &str, after: &str) -> Option<String> {
    let is_short = |text: &str| text.lines().count() <= MOST_LINES;
    (is_short(before) && is_short(after))
        .then(|| TextDiff::from_lines(before, after).unified_diff().context_radius(1).to_string())
}

impl FileChange {
    pub(super) fn words(&self) -> Vec<String> {
        let name = &self.file;
        let what = match (&self.before, &self.after) {
            (None, _) => "is new",
            (_, None) => "is gone",
            _ => "is different",
        };
        let mut lines = vec![format!("file {name} {what}")];
        match &self.lines {
            Some(text) => lines.extend(text.lines().map(|line| format!("  {line}"))),
            None => lines.push("  it is binary, or too long to compare line by line".to_owned()),
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{Edge, Metrics, Process, TaskGraph};

    #[expect(clippy::ref_option_ref, reason = "a slice gives references")]
    fn stored(edges: &[(u32, u32, u64)], hosts: &[Option<&str>]) -> (tempfile::TempDir, Folder) {
        let edge = |&(source, destination, bytes)| Edge { source, destination, messages: 1, bytes };
        let process = |host: &Option<&str>| Process { host: host.map(str::to_owned), ..Process::default() };
        let graph = TaskGraph {
            processes: hosts.iter().map(process).collect(),
            edges: edges.iter().map(edge).collect(),
            ..TaskGraph::default()
        };
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::write(place.path(), &graph).unwrap();
        (place, folder)
    }

    #[test]
    fn rows_are_matched_by_their_key() {
        let hosts = [Some("a"), None, Some("c")];
        let (_a, before) = stored(&[(0, 1, 5), (0, 2, 6), (1, 0, 7)], &hosts);
        let (_b, after) = stored(&[(0, 1, 5), (0, 2, 9), (2, 0, 1)], &[Some("a"), Some("b"), Some("c")]);
        let lines: Vec<String> =
            compare(&before, &after, &[]).unwrap().iter().flat_map(TableChanges::words).collect();
        assert_eq!(
            lines,
            [
                "table edges: 1 rows new, 1 gone, 1 changed",
                "  source 0, destination 2: bytes 6 → 9",
                "  - source 1, destination 0, messages 1, bytes 7",
                "  + source 2, destination 0, messages 1, bytes 1",
                "table processes: 0 rows new, 0 gone, 1 changed",
                "  rank 1: host none → b",
            ]
        );
        assert_eq!(compare(&before, &before, &[]).unwrap(), []);
        assert_eq!(compare(&before, &after, &["edges", "processes"]).unwrap(), []);
    }

    #[test]
    fn rows_without_a_key_are_a_set() {
        let rows = |texts: &[&str]| {
            let row = |text: &&str| Ok((vec![(*text).to_owned()], vec![(*text).to_owned()]));
            texts.iter().map(row).collect::<Vec<_>>().into_iter()
        };
        let mut found = TableChanges {
            columns: vec!["x".into()],
            table: "t".into(),
            compared: true,
            ..TableChanges::default()
        };
        merge(rows(&["a", "a", "b"]), rows(&["a", "b", "c"]), |_, rows| found.visit(rows)).unwrap();
        assert_eq!(found.words(), ["table t: 1 rows new, 1 gone, 0 changed", "  - x a", "  + x c"]);
    }

    #[test]
    fn only_lines_that_differ_are_reported() {
        let found = line_diff("a\nb\nc\nd\n", "a\nb\nx\nd\n").unwrap();
        assert_eq!(found, "@@ -2,3 +2,3 @@\n b\n-c\n+x\n d\n");
        assert_eq!(line_diff(&"x\n".repeat(MOST_LINES + 1), ""), None);
        assert_eq!(line_diff("a\n", "a\n").as_deref(), Some(""));
    }

    #[test]
    fn a_metric_that_differs_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, value: f64| {
            let place = folder.path().join(name);
            std::fs::create_dir_all(&place).unwrap();
            let metrics = Metrics { placements: Vec::new(), summary: [("F".to_owned(), value)].into() };
            Folder::write(&place, &metrics).unwrap();
            place
        };
        let lines = first_differences(&write("one", 1.5), &write("other", 2.0));
        assert!(lines.contains(&"F 2, was 1.5".to_owned()), "{lines:?}");
    }

    #[test]
    fn the_first_row_that_differs_is_found() {
        let (_a, old) = stored(&[(0, 1, 5), (0, 2, 6), (1, 0, 7)], &[Some("a"), None, Some("c")]);
        let (_b, new) = stored(&[(0, 1, 5), (0, 2, 9), (2, 0, 1)], &[Some("a"), Some("b")]);
        let first = |table: &str| first_row(&old, &new, table).unwrap();
        assert_eq!(first("edges"), "row 1: bytes 9, was 6");
        assert_eq!(first("processes"), "row 1: host b, was none");
        assert_eq!(first_row(&old, &old, "edges").unwrap(), "the same rows, encoded differently");
    }
}
