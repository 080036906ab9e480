//! Compressed files.
//!
//! A `.z` file is one zlib stream. libotf never finishes it: it flushes with `Z_FULL_FLUSH` after every buffer and when
//! it closes the file (`OTF_File_write`, `OTF_File_close`), so a whole file ends with the empty block of a flush, the
//! bytes 00 00 ff ff. A stream that other programs finished properly is read as well.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result as IoResult};
use std::path::Path;

use flate2::{Decompress, FlushDecompress, Status};
use hopmap_model::open_input;
use hopmap_text::{FileError, Lines};

const HINT: &str = "the file is damaged, was not copied as a whole, or was not written by OTF 1; `otfprint` shows what the OTF library makes of it";

/// Opens a file of an archive, whose last line must end; one whose name ends in `.z` is compressed.
pub(super) fn open_lines(path: &Path) -> Result<Lines<'static>, FileError> {
    let is_compressed = path.extension().is_some_and(|extension| extension == "z");
    let lines = match is_compressed {
        true => {
            let file = open_input(path).map_err(|error| FileError::unreadable(path, &error))?;
            Lines::of_source(path, Inflate::new(file), HINT)
        }
        false => Lines::open(path, HINT)?,
    };
    Ok(lines.must_end())
}

/// How a flushed stream ends.
const FLUSHED: [u8; 4] = [0, 0, 0xff, 0xff];
const BUFFER: usize = 1 << 16;

/// Reads what a compressed file holds. Damage is an error of kind `InvalidData`.
pub(super) struct Inflate {
    file: File,
    decompress: Decompress,
    input: Vec<u8>,
    /// What of `input` is still to be read.
    from: usize,
    to: usize,
    /// The last bytes of the file so far.
    tail: [u8; 4],
    at_end_of_file: bool,
    at_end_of_stream: bool,
}

impl Inflate {
    pub(super) fn new(file: File) -> Self {
        Self {
            file,
            decompress: Decompress::new(true),
            input: vec![0; BUFFER],
            from: 0,
            to: 0,
            tail: [1; 4],
            at_end_of_file: false,
            at_end_of_stream: false,
        }
    }

    fn fill(&mut self) -> IoResult<()> {
        self.from = 0;
        self.to = self.file.read(&mut self.input)?;
        self.at_end_of_file = self.to == 0;
        let last = &self.input[self.to.saturating_sub(FLUSHED.len())..self.to];
        self.tail.rotate_left(last.len());
        self.tail[FLUSHED.len() - last.len()..].copy_from_slice(last);
        Ok(())
    }
}

impl Read for Inflate {
    fn read(&mut self, output: &mut [u8]) -> IoResult<usize> {
        let damaged = |what| Error::new(ErrorKind::InvalidData, what);
        loop {
            if self.from == self.to && !self.at_end_of_file {
                self.fill()?;
            }
            if self.at_end_of_stream {
                let more = self.from < self.to;
                return if more { Err(damaged("something follows the compressed data")) } else { Ok(0) };
            }
            let (read, written) = (self.decompress.total_in(), self.decompress.total_out());
            let input = &self.input[self.from..self.to];
            let status = self.decompress.decompress(input, output, FlushDecompress::None);
            let status = status.map_err(|_| damaged("the compressed data make no sense"))?;
            let read = (self.decompress.total_in() - read) as usize;
            let written = (self.decompress.total_out() - written) as usize;
            self.from += read;
            self.at_end_of_stream = status == Status::StreamEnd;
            if written > 0 || output.is_empty() {
                return Ok(written);
            }
            if read == 0 && !self.at_end_of_stream && (self.at_end_of_file || self.from < self.to) {
                let whole = self.at_end_of_file && self.tail == FLUSHED;
                return if whole { Ok(0) } else { Err(damaged("the compressed data are cut off")) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compress, Compression, FlushCompress};

    use super::*;

    fn compressed(text: &[u8], flush: FlushCompress) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(text.len() + 1000);
        Compress::new(Compression::fast(), true).compress_vec(text, &mut bytes, flush).unwrap();
        bytes
    }

    fn read(bytes: &[u8]) -> IoResult<Vec<u8>> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut text = Vec::new();
        Inflate::new(file.reopen().unwrap()).read_to_end(&mut text).map(|_| text)
    }

    #[test]
    fn flushed_and_finished_streams_are_whole() {
        let text: Vec<u8> =
            (0..100_000_u32).flat_map(|number| format!("{number:x}\n").into_bytes()).collect();
        for flush in [FlushCompress::Full, FlushCompress::Finish] {
            let mut bytes = Vec::with_capacity(text.len());
            let mut compress = Compress::new(Compression::fast(), true);
            compress.compress_vec(&text, &mut bytes, flush).unwrap();
            assert_eq!(read(&bytes).unwrap(), text);
        }
    }

    #[test]
    fn a_stream_that_is_cut_anywhere_is_noticed() {
        let text = b"44c\n*1\nE1\n44c\n*2\nL1\n".repeat(20);
        for flush in [FlushCompress::Full, FlushCompress::Finish] {
            let bytes = compressed(&text, flush);
            for length in 0..bytes.len() {
                assert!(read(&bytes[..length]).is_err(), "{flush:?}, {length}");
            }
        }
    }

    #[test]
    fn what_is_no_stream_is_refused() {
        assert!(read(b"44c\n*1\nE1\n").is_err());
        let mut longer = compressed(b"44c\n", FlushCompress::Finish);
        longer.push(b'x');
        assert_eq!(read(&longer).unwrap_err().to_string(), "something follows the compressed data");
    }
}
