//! Line-by-line reading of files and texts.

use std::io::{self, Read};
use std::path::Path;

use hopmap_model::Context;
use memchr::memchr;

use crate::counts::shown;
use crate::error::FileError;
use crate::foreign::{Foreign, Rows};
use crate::input::{Input, utf8};
use crate::messages::{are_numbers, is_foreign, is_launch_file, without_colours};
use crate::numbers;

/// The lines of a file, one at a time, in constant memory.
pub struct Lines<'a> {
    input: Input<'a>,
    is_lossy: bool,
    /// Unless the last line may lack its terminator: whether it is left out then, or an error with this hint.
    cut: Option<(bool, &'static str)>,
    /// Whether a last line without its terminator is whole nevertheless.
    is_whole: fn(&[u8]) -> bool,
    is_cut: bool,
    /// What its lines are like, if those of other programs are skipped.
    rows: Option<Rows>,
    /// Whether there is a line that was not skipped.
    has_own: bool,
    /// What comments begin with, if they may look like lines of other programs.
    comment: Option<u8>,
    foreign: Option<Foreign>,
    text: String,
    /// Number of the last line, from one.
    number: usize,
}

/// A line of a file or text, which can create errors with its position.
#[derive(Debug)]
pub struct Line<'a, T: ?Sized = str> {
    /// The line without its terminator.
    pub text: &'a T,
    /// Line number from one.
    pub number: usize,
    path: &'a Path,
    help: &'static str,
}

impl<T: ?Sized> Clone for Line<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Line<'_, T> {}

impl<'a> Lines<'a> {
    /// Opens a file, optionally gzip-compressed; `help` describes the expected content.
    pub fn open(path: &Path, help: &'static str) -> Result<Self, FileError> {
        Ok(Self::new(Input::open(path, help)?))
    }

    /// Reads the lines of a file from another source, such as a decompressor.
    pub fn of_source(path: &Path, source: impl Read + 'a, help: &'static str) -> Self {
        Self::new(Input::of(path, source, help))
    }

    fn new(input: Input<'a>) -> Self {
        Self {
            input,
            is_lossy: false,
            cut: None,
            is_whole: |_| false,
            is_cut: false,
            rows: None,
            has_own: false,
            comment: None,
            foreign: None,
            text: String::new(),
            number: 0,
        }
    }

    /// Reports progress to the context, and stops when it requests that.
    #[must_use]
    pub fn with(self, cx: &Context<'a>) -> Self {
        Self { input: self.input.with(cx), ..self }
    }

    /// Replaces invalid UTF-8 by `�` instead of failing.
    #[must_use]
    pub fn lossy(self) -> Self {
        Self { is_lossy: true, ..self }
    }

    /// The file may be cut: a last line without a terminator is left out, or else an error with this hint.
    /// Part of a number is a number, so that the line cannot be trusted.
    #[must_use]
    pub fn may_be_cut(self, is_left_out: bool, help: &'static str) -> Self {
        Self { cut: Some((is_left_out, help)), ..self }
    }

    /// A last line without a terminator is whole if this says so of its text, as where editors removed the terminator.
    #[must_use]
    pub fn whole_if(self, is_whole: fn(&[u8]) -> bool) -> Self {
        Self { is_whole, ..self }
    }

    /// Whether a last line without a terminator was left out.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Skips lines that are those of another program (see [`is_foreign`]), banners, and colours of terminals.
    #[must_use]
    pub fn without_foreign(self) -> Self {
        self.of_rows(Rows::ANY)
    }

    /// The same for a format whose rows are known: it is an error if one is lost in such a line, or nothing else is read.
    #[must_use]
    pub fn of_rows(self, rows: Rows) -> Self {
        Self { rows: Some(rows), ..self }
    }

    /// A line that begins with this byte is a comment of the file, whatever it says.
    #[must_use]
    pub fn commented_by(self, mark: u8) -> Self {
        Self { comment: Some(mark), ..self }
    }

    /// The lines of other programs that were skipped so far.
    #[must_use]
    pub fn foreign(&self) -> Option<&Foreign> {
        self.foreign.as_ref()
    }

    /// The next line; `None` at the end of the file.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "a line is lent until the next one, which no iterator can"
    )]
    pub fn next(&mut self) -> Result<Option<Line<'_>>, FileError> {
        match self.pass_line()? {
            Some(length) => self.line(length).map(Some),
            None => Ok(None),
        }
    }

    /// The line that was consumed last.
    #[inline]
    fn line(&mut self, length: usize) -> Result<Line<'_>, FileError> {
        let line = self.input.before(length);
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (path, number, help) = (&*self.input.path, self.number, self.input.help);
        let text = match std::str::from_utf8(line) {
            Ok(text) if self.rows.is_none() || memchr(0x1b, line).is_none() => text,
            Err(_) if !self.is_lossy => {
                let error = utf8(line).err().map(|error| FileError { line: Some(number), ..error });
                return Err(error.unwrap_or_else(|| FileError::at(number, "", help)).in_file(path));
            }
            _ => {
                let text = String::from_utf8_lossy(line);
                self.text = if self.rows.is_some() { without_colours(&text) } else { text }.into_owned();
                &self.text
            }
        };
        Ok(Line { text, number, path, help })
    }

    /// The next non-blank line; `None` at the end of the file.
    pub fn next_filled(&mut self) -> Result<Option<Line<'_>>, FileError> {
        self.skip_empty()?;
        self.next()
    }

    /// The next line, which is required.
    pub fn next_or(&mut self, problem: impl FnOnce() -> String) -> Result<Line<'_>, FileError> {
        match self.pass_line()? {
            Some(length) => self.line(length),
            None => Err(self.error_at(self.number + 1, problem())),
        }
    }

    /// The next non-blank line, which is required.
    pub fn next_filled_or(&mut self, problem: impl FnOnce() -> String) -> Result<Line<'_>, FileError> {
        self.skip_empty()?;
        self.next_or(problem)
    }

    /// The next line as bytes, without its terminator.
    #[inline]
    pub fn next_bytes(&mut self) -> Result<Option<Line<'_, [u8]>>, FileError> {
        let Some(length) = self.pass_line()? else { return Ok(None) };
        let text = self.input.before(length);
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        Ok(Some(Line { text, number: self.number, path: &self.input.path, help: self.input.help }))
    }

    /// As many complete lines as are buffered, with terminators; `None` at the end of the file. The caller
    /// reports their number by [`Lines::count`].
    pub fn block(&mut self) -> Result<Option<&[u8]>, FileError> {
        if self.find_end()? == 0 {
            return Ok(None);
        }
        let rest = self.input.rest();
        let length = rest.iter().rposition(|&byte| byte == b'\n').map_or(rest.len(), |end| end + 1);
        self.input.pass(length);
        Ok(Some(self.input.before(length)))
    }

    /// Counts the lines of a block.
    pub fn count(&mut self, lines: usize) {
        self.number += lines;
    }

    /// Number of the last line.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// An error in a line.
    #[cold]
    pub fn error_at(&self, line: usize, problem: impl Into<String>) -> FileError {
        self.input.error(line, problem)
    }

    /// An error of the entire file, such as a premature end.
    #[cold]
    pub fn error(&self, problem: impl Into<String>) -> FileError {
        FileError::new(problem, self.input.help).in_file(&self.input.path)
    }

    /// Skips blank lines.
    fn skip_empty(&mut self) -> Result<(), FileError> {
        loop {
            let length = self.find_end()?;
            if length == 0 || !self.input.rest()[..length].trim_ascii().is_empty() {
                return Ok(());
            }
            self.pass_line()?;
        }
    }

    /// Skips the next line; returns its length with its terminator, or `None` at the end of the file.
    #[inline]
    fn pass_line(&mut self) -> Result<Option<usize>, FileError> {
        let length = self.find_end()?;
        self.pass(length);
        match &self.foreign {
            Some(foreign) if length == 0 && !self.has_own => Err(foreign.only().in_file(&self.input.path)),
            _ => Ok(Some(length).filter(|length| *length > 0)),
        }
    }

    #[inline]
    fn pass(&mut self, length: usize) {
        self.has_own = self.has_own || !self.input.rest()[..length].trim_ascii().is_empty();
        self.input.pass(length);
        self.number += usize::from(length > 0);
    }

    /// Length of the next line with its terminator, zero at the end of the file. The line is then buffered.
    #[inline]
    fn find_end(&mut self) -> Result<usize, FileError> {
        loop {
            let length = match memchr(b'\n', self.input.rest()) {
                Some(end) => end + 1,
                None => self.read_line()?,
            };
            let line = &self.input.rest()[..length];
            let is_comment = self.comment.is_some() && line.first().copied() == self.comment;
            let Some(rows) = self.rows.as_ref().filter(|_| !(is_comment || are_numbers(line))) else {
                return Ok(length);
            };
            match Foreign::pass(&mut self.foreign, &mut self.input, (length, self.number), rows)? {
                0 => return Ok(length),
                lines => self.number += lines,
            }
        }
    }

    /// Reads on until a line is complete.
    #[cold]
    fn read_line(&mut self) -> Result<usize, FileError> {
        let next = self.number + 1;
        loop {
            let known = self.input.rest().len();
            let read = self.input.fill(next);
            if read != Ok(true) {
                let is_other = || {
                    self.rows.is_some_and(|rows| {
                        let rest = String::from_utf8_lossy(self.input.rest());
                        is_foreign(&rest) || (rows.is_other)(&rest)
                    })
                };
                let is_whole = || (self.is_whole)(self.input.rest().trim_ascii()) || is_other();
                let ends_within = || known > 0 && !is_whole();
                let is_cut = self.input.is_cut || (read.is_ok() && ends_within());
                let cut = |_| self.input.error(next, "the line is cut off");
                return match self.cut.filter(|_| is_cut) {
                    None => read.map(|_| known),
                    Some((false, help)) => Err(read.map_or_else(|error| error, cut).with_help(help)),
                    Some((true, _)) => {
                        self.input.pass(known);
                        self.is_cut = true;
                        Ok(0)
                    }
                };
            }
            if let Some(end) = memchr(b'\n', &self.input.rest()[known..]) {
                return Ok(known + end + 1);
            }
        }
    }
}

/// The lines of a text in memory; `help` describes the expected content.
pub fn lines_of<'a>(text: &'a str, help: &'static str) -> impl Iterator<Item = Line<'a>> + Clone {
    let lines = text.split('\n').zip(1..);
    lines.map(move |(text, number)| {
        let text = text.strip_suffix('\r').unwrap_or(text);
        Line { text, number, path: Path::new(""), help }
    })
}

/// The lines of other programs in a file; `None` if there are none, or if it has no lines.
#[must_use]
pub fn foreign_lines(path: &Path) -> Option<Foreign> {
    if Lines::open(path, "").ok()?.next().is_ok_and(|line| line.is_some_and(|line| is_launch_file(line.text)))
    {
        return None;
    }
    let mut lines = Lines::open(path, "").ok()?.without_foreign();
    while let Ok(Some(_)) = lines.next_bytes() {}
    lines.foreign
}

/// The bytes of a source in which lines of other programs are empty, for formats that other libraries parse.
pub struct WithoutForeign<'a> {
    lines: Lines<'a>,
    foreign: &'a mut Result<Option<Foreign>, FileError>,
    ready: io::Cursor<Vec<u8>>,
}

impl<'a> WithoutForeign<'a> {
    /// `foreign` receives the lines that are skipped, or why one cannot be.
    pub fn new(
        source: impl Read + 'a,
        rows: Rows,
        foreign: &'a mut Result<Option<Foreign>, FileError>,
    ) -> Self {
        let lines = Lines::of_source(Path::new(""), source, "").of_rows(rows);
        Self { lines, foreign, ready: io::Cursor::default() }
    }
}

impl Read for WithoutForeign<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ready.position() == self.ready.get_ref().len() as u64 {
            let before = self.lines.number;
            let mut ready = std::mem::take(&mut self.ready).into_inner();
            ready.clear();
            match self.lines.pass_line() {
                Ok(Some(length)) => {
                    ready.resize(self.lines.number - before - 1, b'\n');
                    ready.extend_from_slice(self.lines.input.before(length));
                }
                Ok(None) => {}
                Err(_) if self.lines.input.is_cut => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) => {
                    let problem = error.problem.clone();
                    *self.foreign = Err(error);
                    return Err(io::Error::other(problem));
                }
            }
            self.ready = io::Cursor::new(ready);
            *self.foreign = Ok(self.lines.foreign.clone());
        }
        self.ready.read(buffer)
    }
}

impl<'a, T: ?Sized> Line<'a, T> {
    /// The same line with another text, such as without a comment.
    #[must_use]
    pub fn map<U: ?Sized>(self, text: impl FnOnce(&'a T) -> &'a U) -> Line<'a, U> {
        Line { text: text(self.text), number: self.number, path: self.path, help: self.help }
    }

    /// An error in this line.
    #[cold]
    pub fn error(&self, problem: impl Into<String>) -> FileError {
        FileError::at(self.number, problem, self.help).in_file(self.path)
    }
}

impl<'a> Line<'a> {
    /// The words between white space.
    #[inline]
    pub fn words(self) -> impl Iterator<Item = &'a str> {
        self.text.split_ascii_whitespace()
    }

    /// An error at a word, which must be a part of this line.
    #[cold]
    pub fn error_at(&self, word: &str, problem: impl Into<String>) -> FileError {
        let offset = word.as_ptr().addr().checked_sub(self.text.as_ptr().addr());
        let column = offset.filter(|offset| *offset <= self.text.len()).map(|offset| offset + 1);
        FileError { column, ..self.error(problem) }
    }

    /// A required non-negative integer.
    #[inline]
    pub fn whole(&self, word: Option<&str>, name: &str) -> Result<u64, FileError> {
        self.number(word, name, numbers::whole)
    }

    /// An integer that some tools write as `1e6` or `1000.0`.
    #[inline]
    pub fn amount(&self, word: Option<&str>, name: &str) -> Result<u64, FileError> {
        self.number(word, name, numbers::amount)
    }

    /// A finite non-negative number.
    #[inline]
    pub fn real(&self, word: Option<&str>, name: &str) -> Result<f64, FileError> {
        self.number(word, name, numbers::real)
    }

    /// An integer below a bound, such as a rank.
    #[inline]
    pub fn below(&self, word: Option<&str>, name: &str, bound: u32) -> Result<u32, FileError> {
        let number = self.whole(word, name)?;
        let fits = u32::try_from(number).ok().filter(|number| *number < bound);
        fits.ok_or_else(|| {
            self.error_at(word.unwrap_or_default(), format!("the {name} `{number}` is not below {bound}"))
        })
    }

    #[inline]
    fn number<N>(
        &self,
        word: Option<&str>,
        name: &str,
        read: impl Fn(&str) -> Result<N, String>,
    ) -> Result<N, FileError> {
        let word = word.ok_or_else(|| self.error(format!("the {name} is missing")))?;
        read(word).map_err(|reason| self.error_at(word, format!("the {name} `{}` {reason}", shown(word))))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::input::{BUFFER, LONGEST};

    fn lines(text: &[u8]) -> Lines<'_> {
        Lines::of_source(Path::new("file"), text, "help")
    }

    fn all(mut lines: Lines<'_>) -> Result<Vec<(usize, String)>, String> {
        let mut all = Vec::new();
        while let Some(line) = lines.next().map_err(|error| error.to_string())? {
            all.push((line.number, line.text.to_owned()));
        }
        Ok(all)
    }

    #[test]
    fn lines_end_in_any_way() {
        let read = |text: &str| all(lines(text.as_bytes())).unwrap();
        let expected = |lines: &[(usize, &str)]| -> Vec<(usize, String)> {
            lines.iter().map(|&(number, text)| (number, text.to_owned())).collect()
        };
        assert_eq!(read("\u{feff}a\r\n\nb\nc"), expected(&[(1, "a"), (2, ""), (3, "b"), (4, "c")]));
        let texts: Vec<_> = lines_of("a\r\nb", "").map(|line| (line.number, line.text.to_owned())).collect();
        assert_eq!(texts, expected(&[(1, "a"), (2, "b")]));
    }

    #[test]
    fn invalid_utf8_is_an_error_or_replaced() {
        assert_eq!(all(lines(b"a\n\xff")).unwrap_err(), "file:2: not valid UTF-8 text");
        assert_eq!(all(lines(b"a\xff").lossy()).unwrap(), [(1, "a\u{fffd}".to_owned())]);
    }

    #[test]
    fn lines_of_any_length_are_read() {
        for length in [0, 1, BUFFER - 2, BUFFER - 1, BUFFER, BUFFER + 1, 3 * BUFFER] {
            let text = [b"a\n\n", &*vec![b'x'; length], b"\nb\n"].concat();
            let lengths: Vec<usize> =
                all(lines(&text).may_be_cut(false, "")).unwrap().iter().map(|line| line.1.len()).collect();
            assert_eq!(lengths, [1, 0, length, 1]);
            let (mut whole, mut read) = (Vec::new(), lines(&text));
            while let Some(block) = read.block().unwrap() {
                assert!(block.ends_with(b"\n"));
                whole.extend_from_slice(block);
            }
            assert!(whole == text);
        }
        assert_eq!(all(lines(b"a\nb").may_be_cut(false, "")).unwrap_err(), "file:2: the line is cut off");
        assert_eq!(all(lines(b"")).unwrap(), []);
        let mut cut = lines(b"a\nb").may_be_cut(true, "");
        assert_eq!(cut.next().unwrap().map(|line| line.number), Some(1));
        assert!(cut.next().unwrap().is_none() && cut.is_cut() && cut.next().unwrap().is_none());
        let mut cut = lines(b"a\nb").may_be_cut(false, "cut");
        assert!(cut.next().unwrap().is_some());
        assert_eq!(cut.next().unwrap_err().help.as_deref(), Some("cut"));
        let whole = |text: &'static [u8]| lines(text).may_be_cut(false, "").whole_if(|line| line == b"end");
        assert_eq!(all(whole(b"a\n end\r")).unwrap().len(), 2);
        assert_eq!(all(whole(b"a\nen")).unwrap_err(), "file:2: the line is cut off");
        let mut filled = lines(b"\n \n a\n\n");
        assert_eq!(filled.next_filled().unwrap().map(|line| (line.number, line.text)), Some((3, " a")));
        assert!(filled.next_filled().unwrap().is_none());
    }

    #[test]
    fn endless_lines_are_rejected() {
        let endless = b"a\n".chain(std::io::repeat(b'x').take(2 * LONGEST as u64));
        let mut lines = Lines::of_source(Path::new("file"), endless, "help");
        assert!(lines.next().unwrap().is_some());
        assert_eq!(lines.next().unwrap_err().to_string(), "file:2: the line is longer than 64 MiB");
    }

    #[test]
    fn errors_have_their_position() {
        let mut lines = lines(b"x\n1 a -2 9");
        lines.next().unwrap();
        let line = lines.next().unwrap().unwrap();
        let mut words = line.text.split(' ').map(Some);
        assert_eq!(line.whole(words.next().unwrap(), "rank"), Ok(1));
        let error = line.amount(words.next().unwrap(), "size").unwrap_err();
        let expected = FileError {
            path: PathBuf::from("file"),
            column: Some(3),
            ..FileError::at(2, "the size `a` is not a number", "help")
        };
        assert_eq!(error, expected);
        let error = line.real(words.next().unwrap(), "time").unwrap_err();
        assert_eq!(error.to_string(), "file:2:5: the time `-2` is negative");
        let error = line.below(words.next().unwrap(), "rank", 9).unwrap_err();
        assert_eq!(error.to_string(), "file:2:8: the rank `9` is not below 9");
        assert_eq!(line.whole(None, "tag").unwrap_err().to_string(), "file:2: the tag is missing");
    }
}
