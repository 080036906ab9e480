//! How tables are separated: by semicolons or tabs if the line of the names has them, else by commas. Excel writes what
//! its language separates numbers with, and a first line `sep=;` that says so. `#` begins a comment.

use std::borrow::Cow;

use csv::{ReaderBuilder, StringRecord, Trim};

use super::Result;
use super::format::malformed;

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
    Some(line.split(separator).map(|name| name.trim().trim_matches('"')).collect())
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

/// The lines that are no rows by their shape: they have another number of cells than the header, and not several of which the first is one word.
pub(super) fn others(text: &str) -> Vec<usize> {
    let Ok((header, rows)) = read(text, "") else { return Vec::new() };
    let is_word = |cell: &str| cell.split_whitespace().count() == 1;
    let is_row = |row: &StringRecord| row.len() == header.len() || row.len() > 1 && is_word(&row[0]);
    rows.iter().filter(|(_, row)| !is_row(row)).map(|(line, _)| *line).collect()
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
}
