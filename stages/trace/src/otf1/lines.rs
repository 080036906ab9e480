//! The lines of a file, compressed or not.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use hopmap_model::open_input;

use super::fields::{Fault, this_line};
use super::inflate::Inflate;
use crate::OtfError;

/// What is read at once.
const BUFFER: usize = 1 << 18;

/// The longest line: one that lists the members of a group of a million processes is shorter.
const LONGEST: usize = 1 << 24;

/// How much of a line is shown in messages.
const SHOWN: usize = 40;

/// Reads a file line by line.
pub(super) struct Lines {
    path: PathBuf,
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// What of `buffer` is still to be read.
    from: usize,
    to: usize,
    /// Where in `buffer` the line begins that was read last.
    start: usize,
    /// The line that was read last, counted from one.
    line: u64,
}

impl Lines {
    /// Opens a file; one whose name ends in `.z` is compressed.
    pub(super) fn open(path: &Path) -> Result<Self, OtfError> {
        let failed = |source| OtfError::Read { path: path.to_owned(), source };
        let file = open_input(path).map_err(failed)?;
        let compressed = path.extension().is_some_and(|extension| extension == "z");
        let source: Box<dyn Read + Send> =
            if compressed { Box::new(Inflate::new(file)) } else { Box::new(file) };
        Ok(Self { path: path.to_owned(), source, buffer: vec![0; BUFFER], from: 0, to: 0, start: 0, line: 0 })
    }

    /// The next line without its end, or nothing at the end of the file.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, OtfError> {
        let length = self.buffer[self.from..self.to].iter().position(|byte| *byte == b'\n');
        let length = match length {
            Some(length) => Some(length),
            None => self.fill()?,
        };
        let Some(length) = length else { return Ok(None) };
        self.line += 1;
        self.start = self.from;
        self.from += length + 1;
        Ok(Some(&self.buffer[self.start..self.start + length]))
    }

    /// As many whole lines as there are in memory, with their ends, or nothing at the end of the file. A file is read
    /// either in this way or line by line.
    pub(super) fn block(&mut self) -> Result<Option<&[u8]>, OtfError> {
        if self.fill()?.is_none() {
            return Ok(None);
        }
        let last = self.buffer[self.from..self.to].iter().rposition(|byte| *byte == b'\n');
        self.start = self.from;
        self.from += last.map_or(0, |last| last + 1);
        Ok(Some(&self.buffer[self.start..self.from]))
    }

    /// Tells how many lines the last block had, for messages.
    pub(super) fn passed(&mut self, lines: u64) {
        self.line += lines;
    }

    /// An error in the line that was read last, of which it shows the beginning.
    #[cold]
    pub(super) fn fault(&self, what: Fault) -> OtfError {
        self.fault_at(0, self.line, what)
    }

    /// An error in the line that begins at a byte of the last block.
    #[cold]
    pub(super) fn fault_at(&self, offset: usize, number: u64, what: Fault) -> OtfError {
        let line = this_line(self.buffer.get(self.start + offset..self.to).unwrap_or_default());
        let shown: String = line.iter().take(SHOWN).map(|byte| visible(*byte)).collect();
        let more = if line.len() > SHOWN { "…" } else { "" };
        OtfError::Record { path: self.path.clone(), line: number, what: format!("`{shown}{more}`: {what}") }
    }

    /// Reads on until there is a whole line, and gives its length.
    #[cold]
    fn fill(&mut self) -> Result<Option<usize>, OtfError> {
        self.buffer.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        loop {
            if self.to == self.buffer.len() {
                if self.to >= LONGEST {
                    return Err(OtfError::Damaged {
                        path: self.path.clone(),
                        what: format!("line {} is longer than {LONGEST} bytes", self.line + 1),
                    });
                }
                self.buffer.resize(2 * self.to, 0);
            }
            let read =
                self.source.read(&mut self.buffer[self.to..]).map_err(|error| self.unreadable(error))?;
            if read == 0 {
                let whole = self.to == 0;
                let what = || format!("line {} is cut off", self.line + 1);
                return if whole {
                    Ok(None)
                } else {
                    Err(OtfError::Damaged { path: self.path.clone(), what: what() })
                };
            }
            let end = self.buffer[self.to..self.to + read].iter().position(|byte| *byte == b'\n');
            let length = end.map(|end| self.to + end);
            self.to += read;
            if length.is_some() {
                return Ok(length);
            }
        }
    }

    fn unreadable(&self, error: std::io::Error) -> OtfError {
        let path = self.path.clone();
        if error.kind() == ErrorKind::InvalidData {
            OtfError::Damaged { path, what: format!("{error} (behind line {})", self.line) }
        } else {
            OtfError::Read { path, source: error }
        }
    }
}

/// A byte as it is if it can be seen, else escaped.
fn visible(byte: u8) -> String {
    match byte {
        b' '..=b'~' => char::from(byte).to_string(),
        _ => byte.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        let mut lines = Lines::open(file.path()).unwrap();
        let mut all = Vec::new();
        while let Some(line) = lines.next().map_err(|error| error.to_string())? {
            all.push(line.to_vec());
        }
        Ok(all)
    }

    #[test]
    fn lines_of_any_length_are_read_and_the_last_must_end() {
        for length in [0, 1, BUFFER - 2, BUFFER - 1, BUFFER, BUFFER + 1, 3 * BUFFER] {
            let mut text = b"a\n\n".to_vec();
            text.extend(vec![b'x'; length]);
            text.extend(b"\nb\n");
            let read = lines(&text).unwrap();
            assert_eq!(read.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0, length, 1]);
        }
        assert_eq!(lines(b"").unwrap().len(), 0);
        assert!(lines(b"a\nb").unwrap_err().ends_with("line 2 is cut off"));
    }

    #[test]
    fn endless_lines_are_refused() {
        let mut text = vec![b'x'; LONGEST + 1];
        text[0] = b'\n';
        assert!(lines(&text).unwrap_err().ends_with("line 2 is longer than 16777216 bytes"));
    }
}
