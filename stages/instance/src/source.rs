//! Files that may be packed.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Result};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use hopmap_model::open_input;

/// How a gzip file begins (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads a file, or what is packed in it: that is seen by its first bytes, not by its name.
pub(crate) enum Source {
    Plain(BufReader<File>),
    Gzip(Box<MultiGzDecoder<BufReader<File>>>),
}

impl Source {
    /// Opens a file that is no folder. Also gives its length; zero where that is not known.
    pub(crate) fn open(path: &Path) -> Result<(Self, u64)> {
        let file = open_input(path)?;
        let length = file.metadata()?.len();
        let mut file = BufReader::new(file);
        Ok(match file.fill_buf()?.starts_with(&GZIP) {
            true => (Self::Gzip(Box::new(MultiGzDecoder::new(file))), 0),
            false => (Self::Plain(file), length),
        })
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match self {
            Self::Plain(file) => file.read(buffer),
            Self::Gzip(packed) => packed.read(buffer),
        }
    }
}
