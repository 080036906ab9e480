//! Word-by-word reading of files, for formats in which line breaks matter little.

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use hopmap_model::Context;
use memchr::{memchr, memchr_iter};

use crate::counts::shown;
use crate::error::FileError;
use crate::foreign::{Foreign, Rows};
use crate::input::{BUFFER, Input};
use crate::messages::are_numbers;
use crate::numbers;

/// Default maximum word length.
const LONGEST: usize = 1 << 12;

/// Reads a file word by word. Words are separated by white space.
pub struct Words<'a> {
    input: Input<'a>,
    has_commas: bool,
    has_comments: bool,
    longest: usize,
    rows: Option<Rows>,
    foreign: Option<Foreign>,
    /// Length of the last word, which ends at the current position.
    length: usize,
    /// Line of the last word, from one.
    line: usize,
    /// Line of the current position.
    here: usize,
    /// Bytes of the file before the current line, and before the line of the last word.
    before_here: u64,
    before_line: u64,
}

impl<'a> Words<'a> {
    /// Opens a file, optionally gzip-compressed; `help` describes the expected content.
    pub fn open(path: &Path, help: &'static str) -> Result<Self, FileError> {
        Ok(Self::new(Input::open(path, help)?))
    }

    /// The words of a text in memory.
    #[must_use]
    pub fn of(text: &'a [u8], help: &'static str) -> Self {
        Self::new(Input::of(Path::new(""), text, help))
    }

    fn new(input: Input<'a>) -> Self {
        Self {
            input,
            has_commas: false,
            has_comments: false,
            longest: LONGEST,
            rows: None,
            foreign: None,
            length: 0,
            line: 1,
            here: 1,
            before_here: 0,
            before_line: 0,
        }
    }

    /// Reports progress to the context, and stops when it requests that.
    #[must_use]
    pub fn with(self, cx: &Context<'a>) -> Self {
        Self { input: self.input.with(cx), ..self }
    }

    /// Treats commas as separators too.
    #[must_use]
    pub fn parted_by_commas(self) -> Self {
        Self { has_commas: true, ..self }
    }

    /// Skips C and C++ comments; they may begin inside a word.
    #[must_use]
    pub fn with_comments(self) -> Self {
        Self { has_comments: true, ..self }
    }

    /// Skips lines of other programs where [`Words::skip_lines_with`] is at the beginning of a line. One that a row is
    /// lost in is an error.
    #[must_use]
    pub fn of_rows(self, rows: Rows) -> Self {
        Self { rows: Some(rows), ..self }
    }

    /// The lines of other programs that were skipped so far.
    #[must_use]
    pub fn foreign(&self) -> Option<&Foreign> {
        self.foreign.as_ref()
    }

    /// Rejects longer words.
    #[must_use]
    pub fn of_at_most(self, longest: usize) -> Self {
        Self { longest, ..self }
    }

    /// Advances to the next word; `false` at the end of the file.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it advances without returning an item")]
    pub fn next(&mut self) -> Result<bool, FileError> {
        self.scan(false)
    }

    /// Advances to the next word of the line; `false` at its end.
    #[inline]
    pub fn next_in_line(&mut self) -> Result<bool, FileError> {
        self.scan(true)
    }

    /// The next word, which is required.
    pub fn word(&mut self) -> Result<&str, FileError> {
        if self.next()? { self.text() } else { Err(self.error_at(self.here, "the file ends here")) }
    }

    /// The last word.
    #[inline]
    pub fn text(&self) -> Result<&str, FileError> {
        std::str::from_utf8(self.bytes())
            .map_err(|_| self.error(format!("`{}` is not valid UTF-8 text", self.shown())))
    }

    /// Whether there are no more words.
    pub fn is_at_end(&mut self) -> Result<bool, FileError> {
        self.length = 0;
        Ok(!self.skip_blanks(false)?)
    }

    /// Rejects further words.
    pub fn end(&mut self) -> Result<(), FileError> {
        match self.next()? {
            true => Err(self.error(format!("unexpected `{}` after the end", self.shown()))),
            false => Ok(()),
        }
    }

    /// The next word as an integer; `None` at the end of the file.
    #[inline]
    pub fn whole(&mut self) -> Result<Option<u64>, FileError> {
        self.next()?.then(|| self.parsed(numbers::amount)).transpose()
    }

    /// The next word of the line as an integer; `None` at its end.
    #[inline]
    pub fn whole_in_line(&mut self) -> Result<Option<u64>, FileError> {
        self.next_in_line()?.then(|| self.parsed(numbers::amount)).transpose()
    }

    /// The next word as a finite non-negative number; `None` at the end of the file.
    #[inline]
    pub fn real(&mut self) -> Result<Option<f64>, FileError> {
        self.next()?.then(|| self.parsed(numbers::real)).transpose()
    }

    /// The next word as a number of a given type, which is required.
    pub fn number<T: FromStr>(&mut self, what: impl Display) -> Result<T, FileError> {
        let word = self.word()?;
        word.parse().map_err(|_| {
            let reason = match self.text().map(str::parse::<i128>) {
                Ok(Ok(number)) if number < 0 => "is negative",
                Ok(Ok(_)) => "is too large",
                _ => "is not a valid number here",
            };
            self.error(format!("{what} is `{}`, which {reason}", self.shown()))
        })
    }

    /// Expects a sequence of words, ignoring case.
    pub fn expect(&mut self, words: &str) -> Result<(), FileError> {
        for expected in words.split(' ') {
            if !self.word()?.eq_ignore_ascii_case(expected) {
                let more = if expected == words { String::new() } else { format!(" of `{words}`") };
                return Err(self.error(format!("expected `{expected}`{more}, found `{}`", self.shown())));
            }
        }
        Ok(())
    }

    /// A quoted string, which may span lines; `None` if there is none.
    pub fn quoted(&mut self) -> Result<Option<String>, FileError> {
        self.length = 0;
        if !self.skip_blanks(false)? || self.input.rest()[0] != b'"' {
            return Ok(None);
        }
        let mut known = 1;
        let end = loop {
            if let Some(end) = memchr(b'"', &self.input.rest()[known..]) {
                break known + end;
            }
            known = self.input.rest().len();
            if known > self.longest || !self.input.fill(self.here)? {
                return Err(self.error_at(self.here, "the quoted string is not terminated"));
            }
        };
        let text = String::from_utf8_lossy(&self.input.rest()[1..end]).into_owned();
        self.line = self.here;
        match text.len() > self.longest {
            true => Err(self.too_long(&text)),
            false => {
                self.pass(end + 1);
                Ok(Some(text))
            }
        }
    }

    /// Skips lines that begin with a byte, starting at the beginning of a line. Returns `false` at the end of
    /// the file.
    pub fn skip_lines_with(&mut self, begin: u8) -> Result<bool, FileError> {
        self.length = 0;
        loop {
            match self.input.rest().first().copied() {
                Some(first) if first == begin => self.end_line()?,
                Some(_) if self.skip_foreign()? => {}
                Some(_) => return Ok(true),
                None => {
                    if !self.input.fill(self.here)? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Skips the lines of other programs that begin here, if there are any. Rows that are longer than the buffer are none.
    fn skip_foreign(&mut self) -> Result<bool, FileError> {
        let Some(rows) = &self.rows else { return Ok(false) };
        let length = loop {
            let rest = self.input.rest();
            match memchr(b'\n', rest) {
                Some(end) => break end + 1,
                None if rest.len() >= BUFFER => return Ok(false),
                None if !self.input.fill(self.here)? => break self.input.rest().len(),
                None => {}
            }
        };
        if are_numbers(&self.input.rest()[..length]) {
            return Ok(false);
        }
        let lines = Foreign::pass(&mut self.foreign, &mut self.input, (length, self.here - 1), rows)?;
        self.here += lines;
        self.before_here = self.input.passed();
        Ok(lines > 0)
    }

    /// Skips the rest of the line, including its terminator.
    pub fn end_line(&mut self) -> Result<(), FileError> {
        self.length = 0;
        loop {
            let rest = self.input.rest();
            if let Some(end) = memchr(b'\n', rest) {
                self.pass(end + 1);
                return Ok(());
            }
            self.input.pass(rest.len());
            if !self.input.fill(self.here)? {
                return Ok(());
            }
        }
    }

    /// An error at the last word.
    #[cold]
    pub fn error(&self, problem: impl Into<String>) -> FileError {
        let column = (self.input.passed() - self.length as u64).checked_sub(self.before_line);
        let column = column.filter(|_| self.length > 0).map(|bytes| bytes as usize + 1);
        FileError { column, ..self.input.error(self.line, problem) }
    }

    /// An error on a line.
    #[cold]
    pub fn error_at(&self, line: usize, problem: impl Into<String>) -> FileError {
        self.input.error(line, problem)
    }

    /// Line of the last word.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// Current line.
    #[must_use]
    pub fn here(&self) -> usize {
        self.here
    }

    /// The beginning of the last word, for messages.
    #[must_use]
    pub fn shown(&self) -> String {
        shown(&String::from_utf8_lossy(self.bytes()))
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.input.before(self.length)
    }

    #[inline]
    fn parsed<T>(&self, read: impl Fn(&str) -> Result<T, String>) -> Result<T, FileError> {
        // Invalid UTF-8 is not a number either.
        let text = std::str::from_utf8(self.bytes()).unwrap_or("\u{fffd}");
        read(text).map_err(|reason| self.error(format!("`{}` {reason}", self.shown())))
    }

    #[cold]
    fn too_long(&self, word: &str) -> FileError {
        self.error(format!("`{}` is longer than {} bytes", shown(word), self.longest))
    }

    /// Advances to the next word, within the line if `in_line`.
    #[inline]
    fn scan(&mut self, in_line: bool) -> Result<bool, FileError> {
        self.length = 0;
        if !self.skip_blanks(in_line)? {
            return Ok(false);
        }
        (self.line, self.before_line) = (self.here, self.before_here);
        let mut length = 0;
        loop {
            let rest = &self.input.rest()[length..];
            let is_end = |byte: &u8| byte.is_ascii_whitespace() || (self.has_commas && *byte == b',');
            let end = rest.iter().position(is_end);
            length += end.unwrap_or(rest.len());
            if end.is_some() || length > self.longest || !self.input.fill(self.here)? {
                break;
            }
        }
        if self.has_comments {
            let word = &self.input.rest()[..length];
            let comment = word.windows(2).position(|pair| matches!(pair, b"//" | b"/*"));
            length = comment.unwrap_or(length);
        }
        self.input.pass(length);
        self.length = length;
        match length {
            0 => Err(self.error_at(self.here, "the comment is not terminated")),
            _ if length > self.longest => Err(self.too_long(&String::from_utf8_lossy(self.bytes()))),
            _ => Ok(true),
        }
    }

    /// Skips white space and comments; `false` at the end of the file, or of the line if `in_line`.
    #[inline]
    fn skip_blanks(&mut self, in_line: bool) -> Result<bool, FileError> {
        loop {
            let rest = self.input.rest();
            let mut blanks = 0;
            for &byte in rest {
                if byte == b'\n' {
                    if in_line {
                        self.input.pass(blanks);
                        return Ok(false);
                    }
                    self.here += 1;
                    self.before_here = self.input.passed() + blanks as u64 + 1;
                } else if !(byte.is_ascii_whitespace() || (self.has_commas && byte == b',')) {
                    break;
                }
                blanks += 1;
            }
            let is_word = blanks < rest.len();
            self.input.pass(blanks);
            if is_word {
                if !(self.has_comments && self.skip_comment()?) {
                    return Ok(true);
                }
            } else if !self.input.fill(self.here)? {
                return Ok(false);
            }
        }
    }

    /// Skips a terminated comment, if one begins here.
    fn skip_comment(&mut self) -> Result<bool, FileError> {
        if self.input.rest()[0] != b'/' {
            return Ok(false);
        }
        let mut known = 0;
        loop {
            let rest = self.input.rest();
            let end = match rest.get(1) {
                Some(b'/') => memchr(b'\n', &rest[known..]).map(|end| known + end),
                Some(b'*') => {
                    let from = known.max(2);
                    rest[from..].windows(2).position(|pair| pair == b"*/").map(|end| from + end + 2)
                }
                Some(_) => return Ok(false),
                None => None,
            };
            known = rest.len().saturating_sub(1);
            if let Some(end) = end {
                self.pass(end);
                return Ok(true);
            }
            if !self.input.fill(self.here)? {
                let is_line = self.input.rest().starts_with(b"//");
                if is_line {
                    self.input.pass(self.input.rest().len());
                }
                return Ok(is_line);
            }
        }
    }

    /// Advances by some bytes and counts their line breaks.
    fn pass(&mut self, bytes: usize) {
        self.input.pass(bytes);
        let passed = self.input.before(bytes);
        if let Some(end) = passed.iter().rposition(|&byte| byte == b'\n') {
            self.here += memchr_iter(b'\n', passed).count();
            self.before_here = self.input.passed() - (bytes - end - 1) as u64;
        }
    }
}

/// Minimum similarity of a suggested name: `max` for `maximum`, but not `seed` for `seconds`.
const ALIKE: f64 = 0.82;

/// The known name most similar to a wrong one (Jaro-Winkler, ignoring case). None if none is similar enough, or
/// if two are equally similar: `open-mpi-4` and `open-mpi-5` for `openmpi`.
#[must_use]
pub fn closest<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&wrong, &name.to_lowercase());
    let alike: Vec<(&str, f64)> =
        known.iter().map(|name| (*name, likeness(name))).filter(|(_, likeness)| *likeness > ALIKE).collect();
    let &(best, most) = alike.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let is_rival = |(name, likeness): &(&str, f64)| *name != best && *likeness >= most;
    (!alike.iter().any(is_rival)).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut words: Words<'_>) -> Vec<(usize, String)> {
        let mut all = Vec::new();
        while words.next().unwrap() {
            all.push((words.line(), words.text().unwrap().to_owned()));
        }
        all
    }

    fn expected(words: &[(usize, &str)]) -> Vec<(usize, String)> {
        words.iter().map(|&(line, word)| (line, word.to_owned())).collect()
    }

    fn words(text: &str) -> Words<'_> {
        Words::of(text.as_bytes(), "help")
    }

    #[test]
    fn words_are_found_at_any_position() {
        assert_eq!(all(words("\r\n 12\t3\n\n\n4 ")), expected(&[(2, "12"), (2, "3"), (5, "4")]));
        assert_eq!(all(words("1,2 ,\n3").parted_by_commas()), expected(&[(1, "1"), (1, "2"), (2, "3")]));
        assert_eq!(all(words("1,2")), expected(&[(1, "1,2")]));
        assert_eq!(all(words(" \n ")), []);
    }

    #[test]
    fn words_and_comments_continue_across_buffers() {
        for shift in 0..9 {
            let mut text = " ".repeat(BUFFER - 7 - shift);
            text.replace_range(7..8, "\n");
            text += "/*\n*/12345//6\n7";
            assert_eq!(all(words(&text).with_comments()), expected(&[(3, "12345"), (4, "7")]), "{shift}");
        }
    }

    #[test]
    fn comments_are_not_words() {
        let text = "a/* x\n*/b// c\n /**/ // d\n12 / \"e\n\" f //";
        let mut read = words(text).with_comments();
        assert_eq!((read.word().unwrap().to_owned(), read.word().unwrap()), ("a".to_owned(), "b"));
        assert_eq!((read.number::<u8>("x").unwrap(), read.line()), (12, 4));
        assert_eq!((read.quoted().unwrap(), read.word().unwrap()), (None, "/"));
        assert_eq!(read.quoted().unwrap().as_deref(), Some("e\n"));
        assert_eq!(read.word().unwrap(), "f");
        assert_eq!((read.line(), read.is_at_end().unwrap()), (5, true));
        let error = |text: &str| words(text).with_comments().word().unwrap_err().to_string();
        assert_eq!(error("\n/* "), "line 2: the comment is not terminated");
        assert_eq!(error("/*/"), "line 1: the comment is not terminated");
        assert_eq!(error("// "), "line 1: the file ends here");
        assert!(words("a \"b").quoted().unwrap().is_none());
        assert!(words("\"b").quoted().is_err());
    }

    #[test]
    fn lines_can_be_distinguished() {
        let mut read = words("%x\n 1 2\r\n% 7\n\n3 y");
        let mut lines = Vec::new();
        while read.skip_lines_with(b'%').unwrap() {
            let mut line = vec![read.here() as u64];
            while let Some(number) = read.whole_in_line().unwrap_or(None) {
                line.push(number);
            }
            lines.push(line);
            read.end_line().unwrap();
        }
        assert_eq!(lines, [vec![2, 1, 2], vec![4], vec![5, 3]]);
    }

    #[test]
    fn errors_have_their_position() {
        let mut read = words("1\n 2 x 999 -1 0123456789").of_at_most(9);
        assert_eq!((read.whole(), read.real()), (Ok(Some(1)), Ok(Some(2.0))));
        assert_eq!(read.whole().unwrap_err().to_string(), "line 2, column 4: `x` is not a number");
        let error = |words: &mut Words<'_>| words.number::<u8>("it").unwrap_err().problem;
        assert_eq!(error(&mut read), "it is `999`, which is too large");
        assert_eq!(error(&mut read), "it is `-1`, which is negative");
        assert_eq!(error(&mut read), "`0123456789` is longer than 9 bytes");
        assert!(words("a").end().is_err() && words(" ").end().is_ok());
        assert!(words("A_b c").expect("a_B C").is_ok());
        let wrong = words("a b").expect("a c").unwrap_err();
        assert_eq!(wrong.to_string(), "line 1, column 3: expected `c` of `a c`, found `b`");
    }

    #[test]
    fn similar_names_are_found() {
        let known = ["annealing", "greedy", "Tabu"];
        assert_eq!(closest("anealing", &known), Some("annealing"));
        assert_eq!(closest("tabu", &known), Some("Tabu"));
        assert_eq!(closest("xyz", &known), None);
    }

    #[test]
    fn misleading_names_are_not_suggested() {
        assert_eq!(closest("openmpi", &["open-mpi-4", "open-mpi-5", "mpich"]), None);
        assert_eq!(closest("seconds", &["seed", "hosts"]), None);
        assert_eq!(closest("greedy", &["grid"]), None);
        assert_eq!(closest("maximum", &["min", "max"]), Some("max"));
        assert_eq!(closest("shap", &["shape", "shape"]), Some("shape"));
    }

    #[test]
    fn texts_are_shown_short_and_escaped() {
        assert_eq!(shown("a\"b\u{1b}[1m\n"), "a\"b\\u{1b}[1m\\n");
        assert_eq!(shown(&"é".repeat(40)), "é".repeat(40));
        assert_eq!(shown(&"é".repeat(41)), "é".repeat(40) + "…");
    }
}
