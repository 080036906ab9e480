//! Files of text, line by line: nothing is kept of a line that was read.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use hopmap_model::open_input;

use super::ImportError;
use super::reader::{malformed, read_error};

/// Bytes of the longest line.
const LONGEST: u64 = 64 << 20;

/// The lines of a file.
pub(super) struct Lines {
    reader: BufReader<File>,
    path: PathBuf,
    number: usize,
    line: Vec<u8>,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self, ImportError> {
        let file = open_input(path).map_err(|source| read_error(path, source))?;
        let reader = BufReader::with_capacity(256 << 10, file);
        Ok(Self { reader, path: path.to_owned(), number: 0, line: Vec::new() })
    }

    /// The next line with its number, counted from one, and without its end.
    pub(super) fn next(&mut self) -> Result<Option<(usize, &str)>, ImportError> {
        self.line.clear();
        let mut reader = (&mut self.reader).take(LONGEST);
        let read = reader.read_until(b'\n', &mut self.line);
        if read.map_err(|source| read_error(&self.path, source))? == 0 {
            return Ok(None);
        }
        self.number += 1;
        match self.line.strip_suffix(b"\n") {
            None if self.line.len() as u64 == LONGEST => {
                let help = "is it a file of text?";
                Err(malformed(&self.path, self.number, "the line is longer than 64 MiB", help))
            }
            stripped => {
                let line = stripped.unwrap_or(&self.line);
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                match std::str::from_utf8(line) {
                    Ok(line) => Ok(Some((self.number, line))),
                    Err(_) => Err(malformed(
                        &self.path,
                        self.number,
                        "this is no text in UTF-8",
                        "is the file damaged or compressed?",
                    )),
                }
            }
        }
    }

    /// The line that [`Lines::next`] gave last.
    pub(super) fn number(&self) -> usize {
        self.number
    }
}
