//! A communication matrix as CSV: `source,destination,messages,bytes`.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use csv::{ErrorKind, Position, ReaderBuilder, StringRecord, Trim};
use hopmap_model::{Edge, InputPath, Process, TaskGraph};
use hopmap_text::{FileError, numbers, opened, shown};

use super::reader::Reader;
use crate::TraceError;
use crate::matrix::{MAX_RANKS, Matrix};

pub(super) static READER: Reader = Reader {
    recognises: |sample| sample.first_line().is_some_and(is_header),
    files: |path| Ok(vec![InputPath::named(path, "matrix.csv")]),
    read: |path, options, _| Ok(read(path, options.ranks)?),
};

/// Names of the columns, in the order of [`Columns`].
const COLUMNS: [&str; 4] = ["source", "destination", "messages", "bytes"];

/// Maximum line length.
const LONGEST: u64 = 1 << 24;

const COLUMNS_HELP: &str =
    "expected exactly the columns source, destination, messages and bytes, in any order, separated by commas";

/// Size of the read buffer.
const BUFFER: usize = 1 << 16;

type CsvReader = csv::Reader<ShortLines>;

/// Whether a line looks like the header of a matrix; reading validates it.
fn is_header(line: &str) -> bool {
    let columns = line.split([',', ';', '\t']).map(|column| column.trim().trim_matches('"'));
    columns.filter(|column| place_of(column).is_some()).count() >= 2
}

/// The place of a column in [`COLUMNS`], whatever its capitals.
fn place_of(name: &str) -> Option<usize> {
    COLUMNS.iter().position(|column| column.eq_ignore_ascii_case(name))
}

/// Reads a matrix. The number of ranks is `ranks`, or the highest rank in the file plus one.
fn read(path: &Path, ranks: Option<u32>) -> Result<TaskGraph, TraceError> {
    let mut reader = open(path)?;
    let columns = Columns::find(path, &mut reader)?;
    let mut matrix = Matrix::default();
    let mut highest = None;
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| malformed(path, error))? {
        let row = Row { path, columns: &columns, record: &record };
        let edge = row.edge(ranks.unwrap_or(MAX_RANKS))?;
        highest = highest.max(Some(edge.source.max(edge.destination)));
        matrix.add(edge).map_err(|overflow| row.wrong(overflow.to_string(), ""))?;
    }
    let ranks = ranks.or(highest.map(|rank| rank + 1)).ok_or_else(|| empty(path))?;
    Ok(TaskGraph {
        processes: vec![Process::default(); ranks as usize],
        edges: matrix.into_edges(),
        ..TaskGraph::default()
    })
}

fn open(path: &Path) -> Result<CsvReader, FileError> {
    let (file, _) = opened(path).map_err(|error| FileError::unreadable(path, &error))?;
    Ok(ReaderBuilder::new()
        .buffer_capacity(BUFFER)
        .comment(Some(b'#'))
        .trim(Trim::All)
        .from_reader(ShortLines { file, length: 0 }))
}

/// An error of the CSV reader with its line.
fn malformed(path: &Path, error: csv::Error) -> FileError {
    let line = line_at(path, error.position());
    let error = match error.into_kind() {
        ErrorKind::Io(error) => return FileError::unreadable(path, &error),
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            FileError::at(line, format!("{len} values, but the header has {expected_len}"), "")
        }
        _ => FileError::at(line, "invalid UTF-8", ""),
    };
    error.in_file(path)
}

fn empty(path: &Path) -> FileError {
    let help =
        "the first line is `source,destination,messages,bytes`, followed by one line per pair of ranks";
    FileError::new("the file does not contain messages", help).in_file(path)
}

/// Line of a record, for messages. The reader reports the end of the previous record, so blank lines and
/// comments have to be skipped.
fn line_at(path: &Path, position: Option<&Position>) -> usize {
    let start = position.map_or(0, Position::byte);
    let mut start = usize::try_from(start).unwrap_or(usize::MAX);
    let Ok((file, _)) = opened(path) else { return 1 };
    let mut file = BufReader::new(file);
    let (mut line, mut text) = (1, Vec::new());
    while (&mut file).take(LONGEST).read_until(b'\n', &mut text).is_ok_and(|length| length > 0) {
        let rest = &text[start.min(text.len())..];
        if !rest.trim_ascii().is_empty() && !rest.starts_with(b"#") {
            break;
        }
        line += 1;
        start = start.saturating_sub(text.len());
        text.clear();
    }
    line
}

/// Rejects overlong lines, which the CSV reader would buffer completely.
struct ShortLines {
    file: Box<dyn Read>,
    /// Bytes since the start of the line.
    length: u64,
}

impl Read for ShortLines {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read(buffer)?;
        let last = buffer[..count].iter().rposition(|&byte| byte == b'\n');
        self.length = last.map_or(self.length + count as u64, |end| (count - end - 1) as u64);
        match self.length < LONGEST {
            true => Ok(count),
            false => Err(std::io::Error::other("a line is longer than 16 MiB")),
        }
    }
}

/// Index of each of [`COLUMNS`] in the file.
struct Columns([usize; 4]);

impl Columns {
    fn find(path: &Path, reader: &mut CsvReader) -> Result<Self, FileError> {
        let header = reader.headers().map_err(|error| malformed(path, error))?;
        if header.iter().all(str::is_empty) {
            return Err(empty(path));
        }
        let refuse = |what: String| FileError::new(what, COLUMNS_HELP).in_file(path);
        let mut places = [None; 4];
        for (place, name) in header.iter().enumerate() {
            let Some(column) = place_of(name) else {
                return Err(refuse(format!("column {} is `{name}`", place + 1)));
            };
            if places[column].replace(place).is_some() {
                return Err(refuse(format!("column `{name}` is duplicated")));
            }
        }
        match places.iter().position(Option::is_none) {
            Some(missing) => Err(refuse(format!("column `{}` is missing", COLUMNS[missing]))),
            None => Ok(Self(places.map(Option::unwrap_or_default))),
        }
    }
}

/// A line of the file.
struct Row<'a> {
    path: &'a Path,
    columns: &'a Columns,
    record: &'a StringRecord,
}

impl Row<'_> {
    /// The traffic of the line, between ranks below `ranks`.
    fn edge(&self, ranks: u32) -> Result<Edge, FileError> {
        Ok(Edge {
            source: self.rank(0, ranks)?,
            destination: self.rank(1, ranks)?,
            messages: self.number(2)?,
            bytes: self.number(3)?,
        })
    }

    fn rank(&self, column: usize, ranks: u32) -> Result<u32, FileError> {
        let rank = self.number(column)?;
        let fits = u32::try_from(rank).ok().filter(|rank| *rank < ranks);
        fits.ok_or_else(|| self.refuse(column, &format!("is not a rank below {ranks}")))
    }

    fn number(&self, column: usize) -> Result<u64, FileError> {
        let text = self.text(column);
        match text {
            "" => Err(self.refuse(column, "is empty")),
            text => numbers::whole(text).map_err(|reason| self.refuse(column, &reason)),
        }
    }

    fn line(&self) -> usize {
        line_at(self.path, self.record.position())
    }

    fn text(&self, column: usize) -> &str {
        self.record.get(self.columns.0[column]).unwrap_or_default()
    }

    fn refuse(&self, column: usize, reason: &str) -> FileError {
        let place = format!("column {} ({})", self.columns.0[column] + 1, COLUMNS[column]);
        let problem = format!("{place}: `{}` {reason}", shown(self.text(column)));
        self.wrong(problem, "ranks, messages and bytes are non-negative integers")
    }

    fn wrong(&self, problem: String, help: &str) -> FileError {
        FileError::at(self.line(), problem, help).in_file(self.path)
    }
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
        read(file(text).path(), None).unwrap()
    }

    /// The error message without the path.
    fn refused(text: impl AsRef<[u8]>, ranks: Option<u32>) -> String {
        let file = file(text);
        let error = read(file.path(), ranks).unwrap_err().to_string();
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
        assert_eq!(read(file(header).path(), Some(7)).unwrap().ranks(), 7);
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

    #[test]
    fn invalid_utf8_is_rejected() {
        assert!(
            refused(b"source,destination,messages,bytes\n0,1,1,\xff\n", None).contains(":2: invalid UTF-8")
        );
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().to_owned(), folder.path().join("none")];
        assert!(
            paths.iter().all(|path| read(path, None).unwrap_err().to_string().contains(": cannot be read: "))
        );
    }

    #[test]
    fn a_line_without_an_end_is_not_kept_in_memory() {
        let file = file("source,destination,messages,bytes\n");
        // A sparse file of 100 GiB.
        file.as_file().set_len(100 << 30).unwrap();
        let error = read(file.path(), None).unwrap_err();
        assert!(error.to_string().ends_with(": cannot be read: a line is longer than 16 MiB"));
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

        #[test]
        fn it_never_panics(text in "(source|destination|messages|bytes|[0-9]{1,22}|[,\n\r\"#; -]){0,40}") {
            if let Ok(graph) = read(file(&text).path(), None) {
                prop_assert!(graph.check().is_ok());
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut text = b"source,destination,messages,bytes\n".to_vec();
            text.extend(bytes);
            let _ = read(file(text).path(), None);
        }
    }
}
