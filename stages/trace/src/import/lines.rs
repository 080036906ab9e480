//! The lines of a text file, one at a time.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use hopmap_model::{Context, open_input};

use crate::ImportError;
use crate::matrix::Overflow;

/// The longest line: the header of a Paraver trace of a million tasks is shorter.
const LONGEST: u64 = 1 << 24;

/// What is read at once.
const BUFFER: usize = 1 << 18;

/// So many lines are read before somebody may stop the reading.
const BETWEEN_LOOKS: u64 = 1 << 12;

/// How much of a value is shown in messages.
const SHOWN: usize = 40;

/// Reads a file line by line. What is not UTF-8 becomes `�`.
pub(super) struct Lines<'a> {
    path: PathBuf,
    /// What to do about a line that makes no sense.
    hint: &'static str,
    cx: &'a Context<'a>,
    source: BufReader<File>,
    /// What ends a line.
    end: u8,
    buffer: Vec<u8>,
    text: String,
    /// The line that was read last, counted from one.
    line: u64,
    pieces: u64,
    done: u64,
    total: u64,
}

impl<'a> Lines<'a> {
    /// Opens a file.
    pub(super) fn open(path: &Path, hint: &'static str, cx: &'a Context<'a>) -> Result<Self, ImportError> {
        let file = open(path)?;
        let total = file.metadata().map_or(0, |metadata| metadata.len());
        Ok(Self {
            path: path.to_owned(),
            hint,
            cx,
            source: BufReader::with_capacity(BUFFER, file),
            end: b'\n',
            buffer: Vec::new(),
            text: String::new(),
            line: 0,
            pieces: 0,
            done: 0,
            total,
        })
    }

    /// Reads pieces that end with another byte in place of lines; their place is the line on which they end.
    pub(super) fn ending_with(self, end: u8) -> Self {
        Self { end, line: 1, ..self }
    }

    /// Reads the next line. False at the end of the file.
    pub(super) fn next(&mut self) -> Result<bool, ImportError> {
        self.look()?;
        self.buffer.clear();
        let mut source = (&mut self.source).take(LONGEST);
        let length = source
            .read_until(self.end, &mut self.buffer)
            .map_err(|source| ImportError::Read { path: self.path.clone(), source })?;
        self.pieces += 1;
        self.done += length as u64;
        self.line += match self.end {
            b'\n' => 1,
            _ => self.buffer.split(|byte| *byte == b'\n').skip(1).count() as u64,
        };
        if length as u64 == LONGEST {
            return Err(self.fault(format!("it is longer than {LONGEST} bytes")));
        }
        let end: &[u8] = if self.end == b'\n' { b"\r\n" } else { &[] };
        while self.buffer.last().is_some_and(|last| end.contains(last)) {
            self.buffer.pop();
        }
        self.text.clear();
        self.text.push_str(&String::from_utf8_lossy(&self.buffer));
        Ok(length > 0)
    }

    /// Reads the next line in which something stands. False at the end of the file.
    pub(super) fn next_filled(&mut self) -> Result<bool, ImportError> {
        while self.next()? {
            if !self.text.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The line that was read last, without its end.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// An error in the line that was read last.
    #[cold]
    pub(super) fn fault(&self, what: impl Into<String>) -> ImportError {
        ImportError::Line { path: self.path.clone(), line: self.line, what: what.into(), hint: self.hint }
    }

    /// The file ends too early.
    #[cold]
    pub(super) fn cut_off(&self, what: impl Into<String>) -> ImportError {
        ImportError::File { path: self.path.clone(), what: what.into(), hint: self.hint }
    }

    /// Sums do not fit.
    #[cold]
    pub(super) fn overflow(&self, _: Overflow) -> ImportError {
        ImportError::Overflow { path: self.path.clone() }
    }

    /// A whole number that has to stand here.
    pub(super) fn whole(&self, value: Option<&str>, name: &str) -> Result<u64, ImportError> {
        let value = value.ok_or_else(|| self.fault(format!("the {name} is missing")))?;
        whole(value).map_err(|reason| self.fault(format!("the {name} `{}` {reason}", shown(value))))
    }

    /// A number of bytes or elements, which some tools write as `1e6` or `1000.0`.
    pub(super) fn amount(&self, value: Option<&str>, name: &str) -> Result<u64, ImportError> {
        let value = value.ok_or_else(|| self.fault(format!("the {name} is missing")))?;
        amount(value).map_err(|reason| self.fault(format!("the {name} `{}` {reason}", shown(value))))
    }

    /// A rank, which must be below a bound.
    pub(super) fn rank(&self, value: Option<&str>, name: &str, bound: u32) -> Result<u32, ImportError> {
        let rank = self.whole(value, name)?;
        let fits = u32::try_from(rank).ok().filter(|rank| *rank < bound);
        fits.ok_or_else(|| self.fault(format!("the {name} `{rank}` is not below {bound}")))
    }

    /// Says how far it is, and stops if that is wanted.
    fn look(&self) -> Result<(), ImportError> {
        if self.pieces.is_multiple_of(BETWEEN_LOOKS) {
            self.cx.progress(self.done, self.total);
            if self.cx.should_stop() {
                return Err(ImportError::Stopped { done: self.done, total: self.total });
            }
        }
        Ok(())
    }
}

/// Opens a file that is no folder.
pub(super) fn open(path: &Path) -> Result<File, ImportError> {
    open_input(path).map_err(|source| ImportError::Read { path: path.to_owned(), source })
}

/// The beginning of a value, for messages.
pub(super) fn shown(value: &str) -> String {
    value.chars().take(SHOWN).collect()
}

/// Reads a whole number, or says why it is none.
pub(super) fn whole(value: &str) -> Result<u64, String> {
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    value.parse().ok().filter(|_| digits).ok_or_else(|| {
        if digits {
            format!("is larger than {}", u64::MAX)
        } else if value.starts_with('-') {
            "is negative".to_owned()
        } else {
            "is not a whole number".to_owned()
        }
    })
}

/// Reads a number that is whole, but may be written with a fraction or an exponent.
pub(super) fn amount(value: &str) -> Result<u64, String> {
    let refused = match whole(value) {
        Ok(number) => return Ok(number),
        Err(reason) => reason,
    };
    let plain = value.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    match value.parse::<f64>() {
        Ok(number) if plain && number < 0.0 => Err("is negative".to_owned()),
        // From 2⁵³ on floats leave whole numbers out.
        Ok(number) if plain && number.fract() == 0.0 && number <= 9_007_199_254_740_992.0 => {
            Ok(number as u64)
        }
        _ => Err(refused),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines(text: &[u8], end: u8) -> Vec<(u64, String)> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        let cx = Context::detached();
        let mut lines = Lines::open(file.path(), "", &cx).unwrap();
        if end != b'\n' {
            lines = lines.ending_with(end);
        }
        let mut all = Vec::new();
        while lines.next().unwrap() {
            all.push((lines.line, lines.text().to_owned()));
        }
        all
    }

    #[test]
    fn lines_end_in_any_way_and_need_not_be_text() {
        let read = lines(b"a\r\n\nb \xff\nc", b'\n');
        let expected = [(1, "a"), (2, ""), (3, "b \u{fffd}"), (4, "c")].map(|(n, line)| (n, line.to_owned()));
        assert_eq!(read, expected);
        let read = lines(b"<a\nb>x\n<c>", b'>');
        assert_eq!(read, [(2, "<a\nb>".to_owned()), (3, "x\n<c>".to_owned())]);
    }

    #[test]
    fn endless_lines_are_refused() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"a\n").unwrap();
        file.write_all(&vec![b'x'; LONGEST as usize]).unwrap();
        let cx = Context::detached();
        let mut lines = Lines::open(file.path(), "", &cx).unwrap();
        assert!(lines.next().unwrap());
        assert!(lines.next().unwrap_err().to_string().ends_with("line 2: it is longer than 16777216 bytes"));
    }

    #[test]
    fn amounts_are_whole_however_they_are_written() {
        for (text, number) in [("7", 7), ("1e3", 1000), ("12.0", 12), ("+2.5E+1", 25), ("-0.0", 0)] {
            assert_eq!(amount(text), Ok(number), "{text}");
        }
        for text in ["", "x", "1.5", "inf", "nan", "1e300", "9007199254740994.0", "0x10"] {
            assert_eq!(amount(text), Err("is not a whole number".to_owned()), "{text}");
        }
        assert_eq!(amount("-1e3"), Err("is negative".to_owned()));
        assert_eq!(whole("18446744073709551616"), Err("is larger than 18446744073709551615".to_owned()));
    }
}
