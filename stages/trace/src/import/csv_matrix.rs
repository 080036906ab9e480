//! A communication matrix as CSV: `source,destination,messages,bytes`.

use std::path::Path;

use hopmap_model::{Context, Edge, InputPath, Process, TaskGraph};
use hopmap_text::{FileError, Line, Lines, Rows, has_no_number, is_sentence, numbers, row_behind, shown};

use super::reader::{Reader, warn_of_foreign};
use crate::matrix::{MAX_RANKS, Matrix};

pub(super) static READER: Reader = Reader {
    recognises: |sample| sample.first_line().is_some_and(is_header),
    files: |path| Ok(vec![InputPath::named(path, "matrix.csv")]),
    read: |path, options, cx| Ok(read(path, options.ranks, cx)?),
    rows: ROWS,
    ..Reader::BINARY
};

const ROWS: Rows = Rows {
    is_row: |text| {
        let mut values = text.split(',').map(unquoted);
        let is_edge =
            values.clone().count() == COLUMNS.len() && values.all(|value| numbers::whole(value).is_ok());
        is_edge || text.split(',').all(|name| place_of(unquoted(name)).is_some())
    },
    is_other: |line| {
        let mut words = line.split([' ', '\t', ',', ';']).map(unquoted);
        (is_sentence(line) || has_no_number(line)) && words.all(|word| place_of(word).is_none())
    },
};

/// Names of the columns, in the order of [`Columns`].
const COLUMNS: [&str; 4] = ["source", "destination", "messages", "bytes"];

/// The place of each of [`COLUMNS`] in the file.
type Columns = [usize; 4];

const HINT: &str = "ranks, messages and bytes are non-negative integers; delete the line if it is a sum, or a message of another program";

const COLUMNS_HELP: &str =
    "expected exactly the columns source, destination, messages and bytes, in any order, separated by commas";

const OTHER_COLUMNS: &str =
    "files that are joined have the same columns in the same order; read others one by one";

const NO_NAMES: &str = "write the line `source,destination,messages,bytes` above; lines `source,destination,bytes` need a number of \
                        messages, too, such as 1: `awk -F, 'BEGIN {print \"source,destination,messages,bytes\"} {print $1 \",\" $2 \",1,\" $3}'`";

const NO_MESSAGES: &str =
    "the first line is `source,destination,messages,bytes`, followed by one line per pair of ranks";

/// Whether a line looks like the header of a matrix; reading validates it.
fn is_header(line: &str) -> bool {
    let columns = line.split([',', ';', '\t']).map(|column| column.trim().trim_matches('"'));
    columns.filter(|column| place_of(column).is_some()).count() >= 2
}

/// A value without blanks and quotes around it.
fn unquoted(value: &str) -> &str {
    value.trim().trim_matches('"').trim()
}

/// The place of a column in [`COLUMNS`], whatever its capitals.
fn place_of(name: &str) -> Option<usize> {
    COLUMNS.iter().position(|column| column.eq_ignore_ascii_case(name))
}

/// Reads a matrix. The number of ranks is `ranks`, or the highest rank in the file plus one.
fn read(path: &Path, ranks: Option<u32>, cx: &Context<'_>) -> Result<TaskGraph, FileError> {
    let mut lines = Lines::open(path, HINT)?.with(cx).lossy().of_rows(ROWS).commented_by(b'#');
    let (mut columns, mut matrix, mut highest) = (None, Matrix::default(), None);
    let mut repeated: Option<(usize, usize)> = None;
    while let Some(line) = lines.next_filled()? {
        if line.text.starts_with('#') {
            continue;
        }
        let values = line.text.split(',').take(COLUMNS.len() + 1);
        let values: Vec<&str> = values.map(unquoted).collect();
        let Some(columns) = &columns else {
            let help =
                if values.iter().all(|value| numbers::real(value).is_ok()) { NO_NAMES } else { COLUMNS_HELP };
            columns =
                Some(self::columns(&values).map_err(|problem| FileError::new(problem, help).in_file(path))?);
            continue;
        };
        // Files that were joined have one each.
        if place_of(values[0]).is_some() {
            if self::columns(&values).as_ref() != Ok(columns) {
                return Err(line
                    .error("the line has other columns than the first one")
                    .with_help(OTHER_COLUMNS));
            }
            repeated = repeated.map_or(Some((1, line.number)), |(count, first)| Some((count + 1, first)));
            continue;
        }
        let edge = edge(line, &values, columns, ranks.unwrap_or(MAX_RANKS)).map_err(|error| {
            let behind = row_behind(line.text, ROWS.is_row);
            behind.map_or(error, |(prefix, row)| prefix.error(line.number, row).in_file(path))
        })?;
        highest = highest.max(Some(edge.source.max(edge.destination)));
        matrix.add(edge).map_err(|overflow| line.error(overflow.to_string()))?;
    }
    warn_of_foreign(lines.foreign(), cx);
    if let Some((count, first)) = repeated {
        cx.log(format_args!(
            "warning: names of the columns between the lines, as in files that were joined, skipped: {count}, the first in line {first}"
        ));
    }
    let ranks = ranks.filter(|_| columns.is_some()).or(highest.map(|rank| rank + 1));
    let ranks =
        ranks.ok_or_else(|| lines.error("the file does not contain messages").with_help(NO_MESSAGES))?;
    Ok(TaskGraph {
        processes: vec![Process::default(); ranks as usize],
        edges: matrix.into_edges(),
        ..TaskGraph::default()
    })
}

fn columns(header: &[&str]) -> Result<Columns, String> {
    let mut places = [None; 4];
    for (place, name) in header.iter().enumerate() {
        let column = place_of(name).ok_or_else(|| format!("column {} is `{}`", place + 1, shown(name)))?;
        if places[column].replace(place).is_some() {
            return Err(format!("column `{name}` is duplicated"));
        }
    }
    match places.iter().position(Option::is_none) {
        Some(missing) => Err(format!("column `{}` is missing", COLUMNS[missing])),
        None => Ok(places.map(Option::unwrap_or_default)),
    }
}

/// The traffic of a line, between ranks below `ranks`.
fn edge(line: Line<'_>, values: &[&str], columns: &Columns, ranks: u32) -> Result<Edge, FileError> {
    if values.len() != COLUMNS.len() {
        let found = line.text.split(',').count();
        return Err(line.error(format!("{found} values, but the header has {}", COLUMNS.len())));
    }
    let refuse = |column: usize, reason: &str| {
        let value = shown(values[columns[column]]);
        line.error(format!("column {} ({}): `{value}` {reason}", columns[column] + 1, COLUMNS[column]))
    };
    let number = |column: usize| match values[columns[column]] {
        "" => Err(refuse(column, "is empty")),
        text => numbers::whole(text).map_err(|reason| refuse(column, &reason)),
    };
    let rank = |column: usize| {
        let rank = u32::try_from(number(column)?).ok().filter(|rank| *rank < ranks);
        rank.ok_or_else(|| refuse(column, &format!("is not a rank below {ranks}")))
    };
    Ok(Edge { source: rank(0)?, destination: rank(1)?, messages: number(2)?, bytes: number(3)? })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write;

    use proptest::prelude::*;
    use tempfile::NamedTempFile;

    use super::*;

    fn file(text: impl AsRef<[u8]>) -> NamedTempFile {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_ref()).unwrap();
        file
    }

    fn graph(text: &str) -> TaskGraph {
        read(file(text).path(), None, &Context::detached()).unwrap()
    }

    /// The error message without the path.
    fn refused(text: impl AsRef<[u8]>, ranks: Option<u32>) -> String {
        let file = file(text);
        let error = read(file.path(), ranks, &Context::detached()).unwrap_err().to_string();
        error.replace(&file.path().display().to_string(), "FILE")
    }

    #[test]
    fn repeated_pairs_are_added_up_and_columns_have_any_order() {
        let graph = graph(
            "# made by hand\nbytes, messages,source ,destination\n8,1,0,2\n#\n\n4,1,0,2\n5,2,1,0\n0,0,1,1\n",
        );
        let pairs: Vec<_> =
            graph.edges.iter().map(|e| (e.source, e.destination, e.messages, e.bytes)).collect();
        assert_eq!(pairs, [(0, 2, 2, 12), (1, 0, 2, 5)]);
        assert_eq!(graph.ranks(), 3);
        graph.check().unwrap();
    }

    #[test]
    fn windows_line_ends_a_byte_order_mark_capitals_and_quotes_are_read() {
        let graph = graph("\u{feff}Source,DESTINATION,messages,Bytes\r\n\"0\",\"1\",2,3\r\n");
        assert_eq!(graph.edges, [Edge { source: 0, destination: 1, messages: 2, bytes: 3 }]);
    }

    #[test]
    fn the_number_of_ranks_can_be_given() {
        let header = "source,destination,messages,bytes\n";
        assert_eq!(read(file(header).path(), Some(7), &Context::detached()).unwrap().ranks(), 7);
        let error = refused(format!("{header}0,3,1,1\n"), Some(3));
        assert_eq!(error, "FILE:2: column 2 (destination): `3` is not a rank below 3");
    }

    #[test]
    fn files_without_content_are_rejected() {
        for text in ["", "\n\n", "# nothing\n", "source,destination,messages,bytes\n"] {
            assert_eq!(refused(text, None), "FILE: the file does not contain messages", "{text:?}");
        }
    }

    #[test]
    fn wrong_headers_are_rejected() {
        let header = |text| refused(text, None);
        assert_eq!(header("source,destination,bytes\n0,1,1\n"), "FILE: column `messages` is missing");
        assert_eq!(header("source,destination,messages,bytes,tag\n0,1,1,1,1\n"), "FILE: column 5 is `tag`");
        assert_eq!(header("source,source,messages,bytes\n0,1,1,1\n"), "FILE: column `source` is duplicated");
        assert_eq!(
            header("source;destination;messages;bytes\n0;1;1;1\n"),
            "FILE: column 1 is `source;destination;messages;bytes`"
        );
    }

    #[test]
    fn wrong_values_are_rejected_with_line_and_column() {
        let row =
            |row: &str| refused(format!("source,destination,messages,bytes\n0,1,1,1\n# no\n\n{row}"), None);
        for (text, error) in [
            ("0,1,-1,1", "5: column 3 (messages): `-1` is negative"),
            ("0,1,1,x\n", "5: column 4 (bytes): `x` is not an integer"),
            ("0,1,1,1.5\n0,0,0,0", "5: column 4 (bytes): `1.5` is not an integer"),
            ("0,1,+1,1", "5: column 3 (messages): `+1` is not an integer"),
            ("0,,1,1", "5: column 2 (destination): `` is empty"),
            (
                "0,1,1,18446744073709551616\r\n",
                "5: column 4 (bytes): `18446744073709551616` is larger than 18446744073709551615",
            ),
            ("4294967295,0,1,1", "5: column 1 (source): `4294967295` is not a rank below 16777216"),
            ("99999999999,0,1,1", "5: column 1 (source): `99999999999` is not a rank below 16777216"),
        ] {
            assert_eq!(row(text), format!("FILE:{error}"));
        }
        assert_eq!(
            row("0,1,18446744073709551615,1"),
            "FILE:5: the messages or bytes of all pairs exceed 64 bits"
        );
        assert_eq!(row("0,1,1\n"), "FILE:5: 3 values, but the header has 4");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(rows in prop::collection::vec((0..9u32, 0..9u32, 0..99u64, 0..1u64 << 50), 1..60)) {
            let lines: Vec<_> = rows.iter().map(|(s, d, m, b)| format!("{d},{b},{s},{m}\n")).collect();
            let graph = graph(&format!("destination,bytes,source,messages\n{}", lines.concat()));
            let mut expected = BTreeMap::new();
            for &(source, destination, messages, bytes) in &rows {
                let sums = expected.entry((source, destination)).or_insert((0, 0));
                *sums = (sums.0 + messages, sums.1 + bytes);
            }
            expected.retain(|_, sums| *sums != (0, 0));
            let read: BTreeMap<_, _> = graph.edges.iter().map(|e| (e.pair(), (e.messages, e.bytes))).collect();
            prop_assert_eq!(read, expected);
            let highest = rows.iter().map(|row| row.0.max(row.1)).max().unwrap();
            prop_assert_eq!(graph.ranks(), highest as usize + 1);
            prop_assert!(graph.check().is_ok());
        }
    }
}
