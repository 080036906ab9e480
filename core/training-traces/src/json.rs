//! JSON files, optionally packed, read without holding them in memory.

use std::io::{self, BufRead, BufReader, Read};
use std::marker::PhantomData;
use std::path::Path;

use hopmap_model::{Context, open_input};
use hopmap_text::{FileError, Foreign, WithoutForeign, counted, unpacked};
use serde::de::{DeserializeOwned, DeserializeSeed, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::documents::{Documents, ROWS};
use crate::error::UNKNOWN;
use crate::lenient::Lenient;

/// Bytes per read.
const BUFFER: usize = 1 << 18;

/// A file that reports progress while it is read, and ends with an error if the user stops.
struct Observed<'a, R> {
    inner: R,
    cx: Context<'a>,
    done: u64,
    total: u64,
}

impl<R: Read> Read for Observed<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cx.should_stop() {
            return Err(io::Error::other("reading was cancelled"));
        }
        self.cx.progress(self.done, self.total);
        let read = self.inner.read(buffer)?;
        self.done += read as u64;
        Ok(read)
    }
}

/// A file, unpacked if it is packed with gzip.
pub(crate) fn open<'a>(path: &Path, cx: &Context<'a>) -> Result<Box<dyn BufRead + 'a>, FileError> {
    let failed = |error| FileError::unreadable(path, &error);
    let file = open_input(path).map_err(failed)?;
    let total = file.metadata().map_or(0, |metadata| metadata.len());
    let observed = Observed { inner: file, cx: *cx, done: 0, total };
    let mut packed = BufReader::with_capacity(BUFFER, observed);
    Ok(match packed.fill_buf().map_err(failed)?.starts_with(&[0x1f, 0x8b]) {
        true => Box::new(BufReader::with_capacity(BUFFER, unpacked(packed, total))),
        false => Box::new(packed),
    })
}

/// The files that are no JSON, but were read like it.
#[derive(Debug, Default)]
pub(crate) struct Repaired {
    files: usize,
    /// What is wrong with the first one.
    first: Option<FileError>,
    /// Lines of other programs in them.
    foreign: Option<Foreign>,
}

impl Repaired {
    /// Says so once.
    pub(crate) fn log(&self, cx: &Context<'_>) {
        if let Some(foreign) = &self.foreign {
            cx.log(format_args!("warning: {foreign}"));
        }
        if let Some(first) = &self.first {
            cx.log(format_args!(
                "warning: invalid JSON in {}; numbers such as `inf` count as missing, and damaged characters of texts as `?`: {first}",
                counted(self.files, "file")
            ));
        }
    }
}

/// Lines of other programs, or why one of them cannot be left out.
type Others = Result<Option<Foreign>, FileError>;

/// A file from its begin, without lines of other programs, in documents and outside of them, or made valid if requested.
fn source<'f, 'c: 'f>(
    path: &Path,
    cx: &Context<'c>,
    is_lenient: bool,
    foreign: Option<&'f mut [Others; 2]>,
) -> Result<Box<dyn BufRead + 'f>, FileError> {
    let source: Box<dyn BufRead + 'f> = match (open(path, cx)?, foreign) {
        (source, None) => source,
        (source, Some([inside, outside])) => {
            let lines = BufReader::with_capacity(BUFFER, WithoutForeign::new(source, ROWS, inside));
            Box::new(BufReader::with_capacity(BUFFER, Documents::new(lines, outside)))
        }
    };
    Ok(match is_lenient {
        true => Box::new(BufReader::with_capacity(BUFFER, Lenient::new(source))),
        false => source,
    })
}

/// What is read from a file, and again leniently if it is not valid JSON, as tools write it, and without the text of other
/// programs, which no part of valid JSON looks like.
fn parsed<T>(
    path: &Path,
    cx: &Context<'_>,
    repaired: &mut Repaired,
    parse: impl Fn(Box<dyn BufRead + '_>) -> T,
    error: impl Fn(&T) -> Option<&serde_json::Error>,
) -> Result<T, FileError> {
    // Files that end early are known as such.
    let wrong = |read: &T| error(read).is_some_and(|error| error.is_syntax() || error.is_data());
    let mut read = parse(source(path, cx, false, None)?);
    for skips in [false, true] {
        let mut foreign = [None, None];
        if skips {
            let mut others = [Ok(None), Ok(None)];
            let without = parse(source(path, cx, false, Some(&mut others))?);
            for (lines, others) in foreign.iter_mut().zip(others) {
                *lines = others.map_err(|error| error.in_file(path))?;
            }
            if foreign == [None, None] {
                break;
            }
            read = without;
        }
        if let Some(strict) = error(&read).filter(|error| error.is_syntax() && !cx.should_stop()) {
            let strict = damaged(path, strict);
            read = parse(source(path, cx, true, skips.then_some(&mut [Ok(None), Ok(None)]))?);
            if !wrong(&read) {
                repaired.files += 1;
                repaired.first.get_or_insert(strict);
            }
        }
        if !wrong(&read) || cx.should_stop() {
            foreign.sort_by_key(|lines| lines.as_ref().map(|lines| lines.line));
            foreign.iter().for_each(|lines| Foreign::add(&mut repaired.foreign, lines.as_ref(), path));
            break;
        }
    }
    Ok(read)
}

/// Reads a document from its begin to its end.
pub(crate) fn read<'de, T>(
    path: &Path,
    cx: &Context<'_>,
    seed: impl DeserializeSeed<'de, Value = T> + Copy,
    repaired: &mut Repaired,
) -> Result<T, FileError> {
    let document = |source: Box<dyn BufRead + '_>| {
        let mut source = serde_json::Deserializer::from_reader(source);
        seed.deserialize(&mut source).and_then(|value| source.end().map(|()| value))
    };
    parsed(path, cx, repaired, document, |read| read.as_ref().err())?.map_err(|error| damaged(path, &error))
}

/// Reads the documents of a file, one after the other, up to the first error.
pub(crate) fn read_all<T: DeserializeOwned>(
    path: &Path,
    cx: &Context<'_>,
    repaired: &mut Repaired,
) -> Result<(Vec<T>, Option<serde_json::Error>), FileError> {
    let documents = |source: Box<dyn BufRead + '_>| {
        let mut error = None;
        let all = serde_json::Deserializer::from_reader(source).into_iter();
        (all.map_while(|value| value.map_err(|found| error = Some(found)).ok()).collect(), error)
    };
    parsed(path, cx, repaired, documents, |(_, error)| error.as_ref())
}

/// Whether a file ends within a value, or the data of a packed one does.
pub(crate) fn is_cut(error: &serde_json::Error) -> bool {
    error.is_eof() || error.io_error_kind() == Some(io::ErrorKind::UnexpectedEof)
}

/// An error with the position in the document.
#[cold]
pub(crate) fn damaged(path: &Path, error: &serde_json::Error) -> FileError {
    let text = error.to_string();
    let problem = text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem);
    let (line, column) = (Some(error.line()), Some(error.column()).filter(|column| *column > 0));
    FileError { line, column, ..FileError::new(problem, UNKNOWN) }.in_file(path)
}

/// Calls a function for every element of an array, one after the other.
pub(crate) struct Each<T, F>(F, PhantomData<T>);

impl<T, F> Each<T, F> {
    pub(crate) fn new(with: F) -> Self {
        Self(with, PhantomData)
    }
}

impl<'de, T: DeserializeOwned, F: FnMut(T) -> Result<(), String>> DeserializeSeed<'de> for Each<T, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_seq(self)
    }
}

impl<'de, T: DeserializeOwned, F: FnMut(T) -> Result<(), String>> Visitor<'de> for Each<T, F> {
    type Value = ();

    fn expecting(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        text.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element()? {
            (self.0)(element).map_err(serde::de::Error::custom)?;
        }
        Ok(())
    }
}

/// The text of a value: a number may be text, and text a number.
pub(crate) fn text<'de, D: Deserializer<'de>>(source: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(source)? {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    })
}

/// A number, or its text; not a number if it is something else.
pub(crate) fn real<'de, D: Deserializer<'de>>(source: D) -> Result<f64, D::Error> {
    let number = match Value::deserialize(source)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    Ok(number.unwrap_or(f64::NAN))
}

/// A number of ranks, or its text.
pub(crate) fn whole<'de, D: Deserializer<'de>>(source: D) -> Result<Option<u32>, D::Error> {
    let number = |text: String| {
        text.trim().parse().map_err(|_| serde::de::Error::custom(format!("`{text}` is not a rank")))
    };
    text(source)?.map(number).transpose()
}

/// Ranks as a list, or as the text of a list, as PyTorch writes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Ranks(#[serde(deserialize_with = "text")] Option<String>);

impl Ranks {
    /// The ranks; the error says what is wrong with them.
    pub(crate) fn list(&self) -> Result<Vec<u32>, String> {
        let text = self.0.as_deref().unwrap_or_default().trim();
        let text = text.trim_start_matches('[').trim_end_matches(']');
        if text.contains("...") {
            return Err(
                "a list of ranks is abbreviated with `...`, and no `pg_config` has all of them".into()
            );
        }
        let numbers = text.split(',').map(|number| number.trim().trim_matches('"').trim());
        let numbers = numbers.filter(|number| !number.is_empty());
        numbers.map(|number| number.parse().map_err(|_| format!("`{number}` is not a rank"))).collect()
    }
}
