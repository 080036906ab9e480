//! How tables are separated: by semicolons or tabs if the line of the names has them, else by commas. Excel writes what
//! its language separates numbers with, and a first line `sep=;` that says so. `#` begins a comment.

use std::borrow::Cow;

use csv::{ReaderBuilder, StringRecord, Trim};
use hopmap_text::{shown, without_foreign};

use super::Result;
use super::format::malformed;
use super::table_lines::{self, Table, TableLine};

/// Whether Excel reads the line as the separator of the file.
fn is_separator_line(line: &str) -> bool {
    line.trim_matches('"').get(..4).is_some_and(|start| start.eq_ignore_ascii_case("sep="))
}

/// The line of the names and its separator.
fn header(text: &str) -> Option<(&str, char)> {
    let mut lines = text.lines().enumerate();
    let is_row = |(number, line): &(usize, &str)| {
        !(line.trim().is_empty() || line.starts_with('#') || *number == 0 && is_separator_line(line))
    };
    let (_, line) = lines.find(is_row)?;
    Some((line, [';', '\t'].into_iter().find(|&separator| line.contains(separator)).unwrap_or(',')))
}

/// The names of the columns.
pub(super) fn names(text: &str) -> Option<Vec<&str>> {
    let (line, separator) = header(text)?;
    Some(cells_of(line, separator))
}

/// The text with a first line `sep=;` as a comment, so that the others keep their numbers.
fn without_separator_line(text: &str) -> Cow<'_, str> {
    match is_separator_line(text) {
        true => Cow::Owned(format!("#{}", &text[1..])),
        false => Cow::Borrowed(text),
    }
}

/// A table: the names of its columns, and its rows with their lines.
pub(super) type Csv = (StringRecord, Vec<(usize, StringRecord)>);

/// The table of a text. Its rows may have any number of cells.
pub(super) fn read(text: &str, help: &str) -> Result<Csv> {
    let text = without_separator_line(text);
    let mut rows = ReaderBuilder::new();
    let separator = header(&text).map_or(b',', |(_, separator)| separator as u8);
    rows.delimiter(separator).comment(Some(b'#')).trim(Trim::All).flexible(true).has_headers(false);
    let mut all = Vec::new();
    for record in rows.from_reader(text.as_bytes()).into_records() {
        let record = record.map_err(|error| {
            let line = error.position().and_then(|position| usize::try_from(position.line()).ok());
            malformed(line, format!("not a CSV file: {error}"), help)
        })?;
        if record.iter().any(|cell| !cell.is_empty()) {
            all.push((line(&text, &record), record));
        }
    }
    let header = if all.is_empty() { StringRecord::new() } else { all.remove(0).1 };
    Ok((header, all))
}

/// The line of a record. The position that it has is before empty lines and comments.
fn line(text: &str, record: &StringRecord) -> usize {
    let Some(position) = record.position() else { return 0 };
    let [begin, line] =
        [position.byte(), position.line()].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
    let is_passed = |line: &&str| line.is_empty() || line.starts_with('#');
    line + text.get(begin..).map_or(0, |rest| rest.lines().take_while(is_passed).count())
}

/// The lines of a table that are no rows; an error for one that may be. `host` is the column of hosts, if every row is one,
/// `of_names` tells the columns of names, and `is_header` tells names of columns. In `text`, messages are not left out yet.
pub(super) fn others(
    text: &str,
    host: fn(&[&str]) -> Option<usize>,
    of_names: fn(&[&str]) -> Vec<usize>,
    is_header: fn(&[&str]) -> bool,
) -> Result<Vec<usize>> {
    let own = without_foreign(text);
    let Ok((names, rows)) = read(&own, "") else { return Ok(Vec::new()) };
    let separator = header(&own).map_or(',', |(_, separator)| separator);
    let lines: Vec<&str> = text.lines().collect();
    let is_message = |(_, (line, own)): &(usize, (&str, &str))| own.is_empty() && !line.trim().is_empty();
    let messages = (1..).zip(lines.iter().copied().zip(own.lines())).filter(is_message);
    let messages = messages.map(|(number, (text, _))| TableLine {
        number,
        text,
        cells: cells_of(text, separator),
        is_row: false,
        is_message: true,
    });
    let rows = rows.iter().map(|(number, row)| TableLine {
        number: *number,
        text: lines.get(number.wrapping_sub(1)).copied().unwrap_or_default(),
        cells: row.iter().collect(),
        is_row: row.len() == names.len(),
        is_message: false,
    });
    let mut lines: Vec<TableLine<'_>> = messages.chain(rows).collect();
    lines.sort_by_key(|line| line.number);
    let header: Vec<&str> = names.iter().collect();
    let cells = |text| Some(cells_of(text, separator)).filter(|cells| cells.len() == names.len());
    let (host, names) = (host(&header), of_names(&header));
    let table = Table { host, names, header, lines, cells: &cells, is_aligned: false, is_header };
    Ok(table_lines::others(&table)?)
}

/// The cells of a line, without quotes.
fn cells_of(line: &str, separator: char) -> Vec<&str> {
    line.split(separator).map(|cell| cell.trim().trim_matches('"')).collect()
}

/// Refuses a row that has only a name, by which it may be no row, as others have digits in theirs.
pub(super) fn refuse_words<'r>(rows: impl Iterator<Item = (usize, &'r str, bool)>, help: &str) -> Result<()> {
    let (alone, others): (Vec<_>, Vec<_>) = rows.partition(|(_, name, is_alone)| {
        *is_alone && !name.is_empty() && !name.contains(|c: char| c.is_ascii_digit())
    });
    let is_named = |(_, name, _): &(usize, &str, bool)| name.contains(|c: char| c.is_ascii_digit());
    match alone.first() {
        Some((line, name, _)) if !others.is_empty() && others.iter().all(is_named) => {
            Err(malformed(*line, format!("`{}` is alone, and may be no host", shown(name)), help))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::import::{Format, ImportParams, hops, read, recognise};

    #[test]
    fn tables_are_read_with_the_separators_of_excel() {
        let labels = "host,leaf,spine\ng1,L1,S\n\"g2\",L1,S\ng3,L2,S\n";
        let cables = "device_a,device_b\ng1,L1\ng2,L1\nL1,S\ng3,L2\nL2,S\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine");
        let import = || read(&path, &ImportParams::default());
        for (format, text) in [(Format::LabelList, labels), (Format::GraphCsv, cables)] {
            for (separator, before) in
                [(",", "SEP=,\n# two\n"), (";", "sep=;\r\n"), (";", ""), ("\t", "\u{feff}\"sep=\t\"\n")]
            {
                let own = format!("{before}{}", text.replace(',', separator));
                std::fs::write(&path, &own).unwrap();
                assert_eq!(recognise(&path).unwrap(), format, "{own}");
                let system = import().unwrap().system;
                assert_eq!(["g2", "g3"].map(|host| hops(&system, "g1", host)), [Some(2), Some(4)], "{own}");
                std::fs::write(&path, own.clone() + &["x"; 7].join(separator)).unwrap();
                let error = import().unwrap_err().to_string();
                assert!(error.contains(&format!("machine:{}: ", own.lines().count() + 1)), "{error}");
            }
        }
    }

    /// Such lines had become hosts and switches.
    #[test]
    fn lines_that_are_no_rows_are_skipped_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine");
        let import = |text: String| {
            std::fs::write(&path, text).unwrap();
            read(&path, &ImportParams::default())
        };
        let labels = "host,leaf,spine\nn1,l1,s1\nn2,l1,s1\n%n3,l2,s1\n";
        let cables = "source,destination,state\nn1,l1,up\nn2,l1,up\n%n3,l1,up\n";
        let aligned = "HOST   LEAF   SPINE\nn1     l1     s1\nn2     l1     s1\n%n3     l2     s1\n";
        for (text, separator) in [(labels, ","), (cables, ","), (aligned, "    ")] {
            let plain = import(text.replace('%', "")).unwrap();
            let header = text.lines().next().unwrap();
            let rows = [
                "---|---|---",
                "===|==|=",
                "-|-|-",
                "***|***|***",
                "exit",
                "(4 rows)",
                "total|4|2",
                "Sum|3|",
            ];
            let rows = rows.map(|row| row.replace('|', separator));
            let padded = rows
                .iter()
                .filter(|row| separator == "," && !row.contains(','))
                .map(|row| row.clone() + ",,");
            for row in rows
                .iter()
                .cloned()
                .chain([header.to_owned(), header.to_ascii_uppercase()])
                .chain(padded.collect::<Vec<_>>())
            {
                if separator != "," && row.ends_with(|c: char| c == ' ' || c.is_ascii_digit()) {
                    continue;
                }
                let other = import(text.replace('%', &format!("{row}\n{row}\n"))).unwrap();
                assert_eq!(other.system, plain.system, "{row}");
                let said = "lines of other programs, skipped: 2, the first in line 4: `";
                assert!(other.notes.iter().any(|note| note.starts_with(said)), "{row}: {:?}", other.notes);
            }
        }
        for (text, problem) in [
            (labels.replace('%', "done,,\n"), "machine:4: `done` is alone, and may be no host"),
            (cables.replace('%', "[n9] n9,l1,up\n"), "machine:4: the row `n9,l1,up` is behind `[n9] `"),
            (cables.replace('%', "n9,,\n"), "machine:4: `n9` is alone"),
            (cables.replace('%', "done,,\n"), "machine:4: `done` is alone"),
        ] {
            let error = import(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
