//! The JSON documents of a file, without the text of other programs before, between and behind them. That may begin in the line in
//! which a document ends: many files end in their last brace. A stray brace or a second value remains an error.

use std::io::{self, BufRead, Read};

use hopmap_text::{FileError, Foreign, Rows, row_behind};
use serde::de::IgnoredAny;

/// The documents of a source; other text becomes empty lines, so that the others keep their numbers.
pub(crate) struct Documents<'a, R> {
    source: R,
    foreign: &'a mut Result<Option<Foreign>, FileError>,
    /// Braces and brackets that are open, and whether a string is, of which the next character is escaped.
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    lines: usize,
    ready: io::Cursor<Vec<u8>>,
}

impl<'a, R: BufRead> Documents<'a, R> {
    /// `foreign` receives the lines that are left out, or why one cannot be.
    pub(crate) fn new(source: R, foreign: &'a mut Result<Option<Foreign>, FileError>) -> Self {
        let ready = io::Cursor::default();
        Self { source, foreign, depth: 0, in_string: false, is_escaped: false, lines: 0, ready }
    }

    /// Whether a byte ends a document.
    fn ends_at(&mut self, byte: u8) -> bool {
        match byte {
            _ if std::mem::take(&mut self.is_escaped) => {}
            b'\\' => self.is_escaped = self.in_string,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => return false,
        }
        self.depth == 0
    }
}

impl<R: BufRead> Read for Documents<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ready.position() == self.ready.get_ref().len() as u64 {
            let mut line = Vec::new();
            self.source.read_until(b'\n', &mut line)?;
            self.lines += 1;
            let mut own = 0;
            while own < line.len() {
                if self.depth == 0 && !self.in_string && is_foreign(&line[own..]) {
                    let first = String::from_utf8_lossy(line[own..].trim_ascii()).into_owned();
                    if let Some((prefix, document)) = row_behind(&first, is_document) {
                        let error = prefix.error(self.lines, document);
                        let problem = error.problem.clone();
                        *self.foreign = Err(error);
                        return Err(io::Error::other(problem));
                    }
                    let first = Foreign { count: 0, line: self.lines, first, file: None };
                    if let Ok(foreign) = self.foreign.as_mut() {
                        foreign.get_or_insert(first).count += 1;
                    }
                    line.truncate(own);
                    line.push(b'\n');
                    break;
                }
                let end = line[own..].iter().position(|byte| self.ends_at(*byte));
                own = end.map_or(line.len(), |end| own + end + 1);
            }
            self.ready = io::Cursor::new(line);
        }
        self.ready.read(buffer)
    }
}

/// The lines of documents. A message may have JSON in it, but seldom a whole line of it.
pub(crate) const ROWS: Rows = Rows::like(|text| {
    let is_key = |rest: &str| rest.contains("\":") && rest.ends_with([',', '{', '[', '}', ']', '"']);
    is_document(text)
        || text.starts_with('"') && is_key(&text[1..])
        || ["{", "}", "},", "]", "],"].contains(&text)
});

/// Whether a text is an object, or a list of objects.
fn is_document(text: &str) -> bool {
    let begins = text.strip_prefix(['{', '[']).is_some_and(|rest| rest.trim_start().starts_with(['"', '{']));
    begins && serde_json::from_str::<IgnoredAny>(text.trim_end_matches(',')).is_ok()
}

/// Whether text between documents is no part of one, whole or damaged.
fn is_foreign(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    match text.split_first() {
        Some((b'{', rest)) => !matches!(rest.trim_ascii_start().first(), None | Some(b'"' | b'}')),
        None | Some((b'}' | b']' | b',' | b':' | b'"', _)) => false,
        Some((b'[', _)) => serde_json::from_slice::<IgnoredAny>(text).is_err_and(|error| !error.is_eof()),
        Some(_) => serde_json::from_slice::<IgnoredAny>(text).is_err(),
    }
}
