//! How tables are separated: by semicolons or tabs if the line of the names has them, else by commas. Excel writes what
//! its language separates numbers with, and a first line `sep=;` that says so. `#` begins a comment.

use std::borrow::Cow;

use csv::{ReaderBuilder, Trim};

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
pub(super) fn without_separator_line(text: &str) -> Cow<'_, str> {
    match is_separator_line(text) {
        true => Cow::Owned(format!("#{}", &text[1..])),
        false => Cow::Borrowed(text),
    }
}

/// A reader of the table.
pub(super) fn reader(text: &str) -> ReaderBuilder {
    let mut reader = ReaderBuilder::new();
    let separator = header(text).map_or(b',', |(_, separator)| separator as u8);
    reader.delimiter(separator).comment(Some(b'#')).trim(Trim::All);
    reader
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
