//! The words of a text file, plain or packed with gzip, one at a time, each with its line.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use hopmap_model::Context;

use crate::InstanceError;
use crate::source::Source;

/// What is read at once.
const BUFFER: usize = 1 << 18;

/// The longest word: no number needs more.
const LONGEST: usize = 64;

/// How much of a word is shown in messages.
const SHOWN: usize = 40;

/// Up to here floats hold every whole number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Reads a file word by word. Words are parted by white space, and by commas where they are `parted_by_commas`.
pub(crate) struct Numbers<'a> {
    path: PathBuf,
    cx: &'a Context<'a>,
    source: BufReader<Source>,
    commas: bool,
    /// What to do about a word that makes no sense.
    hint: &'static str,
    word: Vec<u8>,
    /// Line of the word that was read last, counted from one.
    line: u64,
    /// Line that comes next.
    next_line: u64,
    read: u64,
    total: u64,
}

impl<'a> Numbers<'a> {
    /// Opens a file that is no folder.
    pub(crate) fn open(path: &Path, hint: &'static str, cx: &'a Context<'a>) -> Result<Self, InstanceError> {
        let failed = |source| InstanceError::Read { path: path.to_owned(), source };
        let (source, total) = Source::open(path).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            cx,
            source: BufReader::with_capacity(BUFFER, source),
            commas: false,
            hint,
            word: Vec::with_capacity(LONGEST),
            line: 1,
            next_line: 1,
            read: 0,
            total,
        })
    }

    /// Commas part words too.
    pub(crate) fn parted_by_commas(self) -> Self {
        Self { commas: true, ..self }
    }

    /// Goes to the next word. False at the end of the file.
    pub(crate) fn next(&mut self) -> Result<bool, InstanceError> {
        self.scan(false)
    }

    /// Goes to the next word, and where `in_line` not beyond the end of the line.
    fn scan(&mut self, in_line: bool) -> Result<bool, InstanceError> {
        self.word.clear();
        loop {
            let buffer = filled(&mut self.source, &self.path)?;
            if buffer.is_empty() {
                return Ok(!self.word.is_empty());
            }
            let mut used = 0;
            let mut ended = false;
            for &byte in buffer {
                if byte.is_ascii_whitespace() || (self.commas && byte == b',') {
                    // The end of the line behind a word is passed with the next one.
                    ended = !self.word.is_empty() || (in_line && byte == b'\n');
                    if ended {
                        break;
                    }
                    self.next_line += u64::from(byte == b'\n');
                } else if self.word.len() < LONGEST {
                    self.line = self.next_line;
                    self.word.push(byte);
                } else {
                    return Err(self.fault(format!("`{}…` is longer than {LONGEST} bytes", self.shown())));
                }
                used += 1;
            }
            let at_end = used == buffer.len();
            self.source.consume(used);
            self.read += used as u64;
            if at_end {
                self.look()?;
            }
            if ended {
                return Ok(!self.word.is_empty());
            }
        }
    }

    /// Goes to the next line that does not begin with a percent sign, from the begin of a line. False at the end of the file.
    pub(crate) fn skip_comments(&mut self) -> Result<bool, InstanceError> {
        loop {
            match filled(&mut self.source, &self.path)?.first() {
                None => return Ok(false),
                Some(b'%') => self.end_line()?,
                Some(_) => return Ok(true),
            }
        }
    }

    /// Passes over what is left of a line, and its end.
    pub(crate) fn end_line(&mut self) -> Result<(), InstanceError> {
        loop {
            let buffer = filled(&mut self.source, &self.path)?;
            let end = buffer.iter().position(|&byte| byte == b'\n');
            let used = end.map_or(buffer.len(), |end| end + 1);
            self.source.consume(used);
            self.read += used as u64;
            if end.is_some() {
                self.next_line += 1;
            }
            if end.is_some() || used == 0 {
                return Ok(());
            }
            self.look()?;
        }
    }

    /// Goes to the next word of the line. False at its end.
    pub(crate) fn next_in_line(&mut self) -> Result<bool, InstanceError> {
        self.scan(true)
    }

    /// The next word of the line as a whole number; none at the end of the line.
    pub(crate) fn whole_in_line(&mut self) -> Result<Option<u64>, InstanceError> {
        match self.scan(true)? {
            true => self.parsed(whole).map(Some),
            false => Ok(None),
        }
    }

    /// The next word as a whole number.
    pub(crate) fn whole(&mut self) -> Result<Option<u64>, InstanceError> {
        self.number(whole)
    }

    /// The next word as a finite number that is not negative.
    pub(crate) fn real(&mut self) -> Result<Option<f64>, InstanceError> {
        self.number(real)
    }

    /// The next word; none at the end of the file.
    fn number<T>(&mut self, parse: fn(&str) -> Result<T, String>) -> Result<Option<T>, InstanceError> {
        match self.next()? {
            true => self.parsed(parse).map(Some),
            false => Ok(None),
        }
    }

    /// The word that was read last.
    fn parsed<T>(&self, parse: fn(&str) -> Result<T, String>) -> Result<T, InstanceError> {
        let text = std::str::from_utf8(&self.word).unwrap_or("\u{fffd}");
        parse(text).map_err(|reason| self.fault(format!("`{}` {reason}", self.shown())))
    }

    /// An error at the word that was read last.
    #[cold]
    pub(crate) fn fault(&self, what: impl Into<String>) -> InstanceError {
        self.fault_at(self.line, what)
    }

    /// An error on a line.
    #[cold]
    pub(crate) fn fault_at(&self, line: u64, what: impl Into<String>) -> InstanceError {
        InstanceError::Line { path: self.path.clone(), line, what: what.into(), hint: self.hint }
    }

    /// Line of the word that was read last.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The line that is being read.
    pub(crate) fn here(&self) -> u64 {
        self.next_line
    }

    /// The beginning of the word that was read last.
    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.word)
            .chars()
            .filter(|letter| !letter.is_control())
            .take(SHOWN)
            .collect()
    }

    /// Says how far it is, and stops if that is wanted.
    fn look(&self) -> Result<(), InstanceError> {
        self.cx.progress(self.read, self.total);
        match self.cx.should_stop() {
            true => Err(InstanceError::Stopped { path: self.path.clone(), line: self.line }),
            false => Ok(()),
        }
    }
}

/// What is read at once.
fn filled<'s>(source: &'s mut BufReader<Source>, path: &Path) -> Result<&'s [u8], InstanceError> {
    source.fill_buf().map_err(|source| InstanceError::Read { path: path.to_owned(), source })
}

/// Reads a whole number, which may be written with a fraction of zero or an exponent.
fn whole(word: &str) -> Result<u64, String> {
    if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) {
        return word.parse().map_err(|_| format!("is larger than {}", u64::MAX));
    }
    match real(word)? {
        number if number.fract() != 0.0 => Err("is not a whole number".to_owned()),
        number if number > EXACT => Err("is too large to be exact".to_owned()),
        number => Ok(number as u64),
    }
}

/// Reads a finite number that is not negative.
fn real(word: &str) -> Result<f64, String> {
    let plain = word.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    match word.parse::<f64>() {
        Ok(number) if plain && number < 0.0 => Err("is negative".to_owned()),
        // Minus zero is zero.
        Ok(number) if plain && number.is_finite() => Ok(number.abs()),
        Ok(_) if plain => Err("is too large".to_owned()),
        _ => Err("is not a number".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[u8], commas: bool) -> Vec<(u64, String)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let cx = Context::detached();
        let mut numbers = Numbers::open(file.path(), "", &cx).unwrap();
        if commas {
            numbers = numbers.parted_by_commas();
        }
        let mut words = Vec::new();
        while numbers.next().unwrap() {
            words.push((numbers.line(), String::from_utf8(numbers.word.clone()).unwrap()));
        }
        words
    }

    #[test]
    fn words_are_found_wherever_they_stand() {
        let expected = |words: &[(u64, &str)]| -> Vec<_> {
            words.iter().map(|&(line, word)| (line, word.to_owned())).collect()
        };
        assert_eq!(words(b"\r\n 12\t3\n\n\n4 ", false), expected(&[(2, "12"), (2, "3"), (5, "4")]));
        assert_eq!(words(b"1,2 ,\n3", true), expected(&[(1, "1"), (1, "2"), (2, "3")]));
        assert_eq!(words(b"1,2", false), expected(&[(1, "1,2")]));
        assert_eq!(words(b" \n ", false), []);
    }

    #[test]
    fn words_go_on_across_buffers() {
        let mut text = vec![b' '; BUFFER - 2];
        text[7] = b'\n';
        text.extend(b"12345\n6");
        assert_eq!(words(&text, false), [(2, "12345".to_owned()), (3, "6".to_owned())]);
    }

    #[test]
    fn lines_can_be_told_apart() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "%x\n 1 2\r\n% 7\n\n3 y").unwrap();
        let cx = Context::detached();
        let mut numbers = Numbers::open(file.path(), "", &cx).unwrap();
        let mut lines = Vec::new();
        while numbers.skip_comments().unwrap() {
            let mut line = vec![numbers.here()];
            while let Some(number) = numbers.whole_in_line().unwrap_or(None) {
                line.push(number);
            }
            lines.push(line);
            numbers.end_line().unwrap();
        }
        assert_eq!(lines, [vec![2, 1, 2], vec![4], vec![5, 3]]);
    }

    #[test]
    fn whole_and_real_numbers() {
        for (word, number) in [("0", 0), ("007", 7), ("3.0", 3), ("1e3", 1000), ("+2", 2), ("-0", 0)] {
            assert_eq!(whole(word), Ok(number), "{word}");
        }
        assert_eq!(whole("18446744073709551615"), Ok(u64::MAX));
        for (word, reason) in [
            ("18446744073709551616", "is larger than 18446744073709551615"),
            ("1.5", "is not a whole number"),
            ("-3", "is negative"),
            ("1e300", "is too large to be exact"),
            ("1e400", "is too large"),
            ("x", "is not a number"),
            ("NaN", "is not a number"),
            ("inf", "is not a number"),
            ("0x10", "is not a number"),
            ("", "is not a number"),
        ] {
            assert_eq!(whole(word), Err(reason.to_owned()), "{word}");
        }
        assert!(real("-0.0").is_ok_and(f64::is_sign_positive));
        assert_eq!(real("2.5e-1").map(|number| number.to_string()), Ok("0.25".to_owned()));
    }
}
