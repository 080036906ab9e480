//! Files of records, optionally compressed, and the parts of a record: a keyword and fields that are
//! numbers, texts and further keywords.
//!
//! Keywords are upper-case letters and numbers lower-case hexadecimal, so a keyword ends where its number
//! starts. In the long format keywords are words, and spaces separate all parts (`OTF_Keywords.h`,
//! `OTF_RBuffer.c`).
//!
//! A `.z` file is one zlib stream. libotf never finishes it, but flushes with `Z_FULL_FLUSH` after every
//! buffer and when it closes the file (`OTF_File_write`, `OTF_File_close`). So a complete file ends with the
//! empty block of a flush, the bytes 00 00 ff ff. Streams that other programs finished properly are accepted
//! as well.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result as IoResult};
use std::path::Path;

use flate2::{Decompress, FlushDecompress, Status};
use hopmap_model::open_input;
use hopmap_text::{FileError, Lines, shown};

/// Problem of a record.
pub(super) type Fault = &'static str;

/// An error message about the record at the start of `lines`.
#[cold]
pub(super) fn in_record(lines: &[u8], what: Fault) -> String {
    format!("`{}`: {what}", shown(&String::from_utf8_lossy(this_line(lines))))
}

/// The rest of a record. Further lines may follow; reading stops at the end of the line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(line: &'a [u8]) -> Self {
        let mut fields = Self { rest: line };
        fields.skip_spaces();
        fields
    }

    /// The next byte of the line.
    #[inline]
    pub(super) fn first(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    #[inline]
    fn skip_spaces(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// Consumes a byte if it is next.
    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> bool {
        self.skip_spaces();
        let found = self.first() == Some(byte);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    /// Consumes upper-case letters, or the start of a comment. Empty if something else is next.
    #[inline]
    pub(super) fn keyword(&mut self) -> &'a [u8] {
        self.skip_spaces();
        let letter = |byte: &u8| byte.is_ascii_uppercase() || *byte == b'#';
        let length = self.rest.iter().take_while(|byte| letter(byte)).count();
        let (keyword, rest) = self.rest.split_at(length);
        self.rest = rest;
        keyword
    }

    /// Consumes a required keyword in one of its forms.
    #[inline]
    pub(super) fn expect(&mut self, forms: &[&[u8]], missing: Fault) -> Result<(), Fault> {
        let keyword = self.keyword();
        if forms.contains(&keyword) { Ok(()) } else { Err(missing) }
    }

    /// Consumes a number of up to 64 bits.
    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, Fault> {
        self.skip_spaces();
        let mut number = 0_u64;
        let mut length = 0;
        for byte in self.rest {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => break,
            };
            if number >> 60 != 0 {
                return Err("a number exceeds 64 bits");
            }
            number = number << 4 | u64::from(digit);
            length += 1;
        }
        if length == 0 {
            return Err("missing number");
        }
        self.rest = &self.rest[length..];
        Ok(number)
    }

    /// Consumes a number of up to 32 bits.
    #[inline]
    pub(super) fn short(&mut self) -> Result<u32, Fault> {
        u32::try_from(self.number()?).map_err(|_| "a number exceeds 32 bits")
    }

    /// Consumes a list of numbers, each followed by a comma; optional after the last.
    pub(super) fn list(&mut self) -> Result<Vec<u32>, Fault> {
        let mut numbers = Vec::new();
        self.skip_spaces();
        while self.first().is_some_and(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
            numbers.push(self.short()?);
            if !self.take(b',') {
                break;
            }
            self.skip_spaces();
        }
        Ok(numbers)
    }

    /// Consumes a quoted text.
    pub(super) fn text(&mut self) -> Result<String, Fault> {
        if !self.take(b'"') {
            return Err("missing text");
        }
        let line = this_line(self.rest);
        let length = line.iter().position(|byte| *byte == b'"').ok_or("unterminated text")?;
        let text = String::from_utf8_lossy(&self.rest[..length]).into_owned();
        self.rest = &self.rest[length + 1..];
        Ok(text)
    }

    /// Consumes a keyword for a name, and the name.
    pub(super) fn name(&mut self) -> Result<String, Fault> {
        self.expect(&[b"NM", b"NAME", b"N"], "missing name")?;
        self.text()
    }

    /// Whether only spaces and further lines are left.
    #[inline]
    pub(super) fn is_empty(&mut self) -> bool {
        self.skip_spaces();
        matches!(self.rest, [] | [b'\n', ..])
    }

    /// The lines after this one.
    #[inline]
    pub(super) fn lines_behind(self) -> &'a [u8] {
        match self.rest {
            [b'\n', behind @ ..] => behind,
            rest => rest[this_line(rest).len()..].strip_prefix(b"\n").unwrap_or_default(),
        }
    }

    /// Requires the end of the record.
    #[inline]
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        if self.is_empty() { Ok(()) } else { Err("unexpected data at the end") }
    }

    /// Requires the end of the record, optionally after a source location.
    #[inline]
    pub(super) fn end_or_source(&mut self) -> Result<(), Fault> {
        if !self.is_empty() {
            self.expect(&[b"X", b"SCL", b"S"], "unexpected data at the end")?;
            self.short()?;
        }
        self.end()
    }
}

/// The first of some lines, without its line end.
fn this_line(lines: &[u8]) -> &[u8] {
    let length = lines.iter().position(|byte| *byte == b'\n').unwrap_or(lines.len());
    &lines[..length]
}

const HINT: &str = "the file is damaged, incompletely copied, or not an OTF 1 file; check it with `otfprint`";

/// Opens a file of an archive; the last line must end with a newline. The extension `.z` means compressed.
pub(super) fn open_lines(path: &Path) -> Result<Lines<'static>, FileError> {
    let is_compressed = path.extension().is_some_and(|extension| extension == "z");
    let lines = match is_compressed {
        true => {
            let file = open_input(path).map_err(|error| FileError::unreadable(path, &error))?;
            Lines::of_source(path, Inflate::new(file), HINT)
        }
        false => Lines::open(path, HINT)?,
    };
    Ok(lines.may_be_cut(false, HINT))
}

/// Last bytes of a flushed stream.
const FLUSHED: [u8; 4] = [0, 0, 0xff, 0xff];
const BUFFER: usize = 1 << 16;

/// Decompresses a file. Damage is an error of kind `InvalidData`.
pub(super) struct Inflate {
    file: File,
    decompress: Decompress,
    input: Vec<u8>,
    /// Start of the unread part of `input`.
    from: usize,
    to: usize,
    /// The last four bytes of the file so far.
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
                return if more {
                    Err(damaged("unexpected data after the compressed stream"))
                } else {
                    Ok(0)
                };
            }
            let (read, written) = (self.decompress.total_in(), self.decompress.total_out());
            let input = &self.input[self.from..self.to];
            let status = self.decompress.decompress(input, output, FlushDecompress::None);
            let status = status.map_err(|_| damaged("invalid compressed data"))?;
            // No more than the lengths of the two slices.
            let passed = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
            let read = passed(self.decompress.total_in() - read);
            let written = passed(self.decompress.total_out() - written);
            self.from += read;
            self.at_end_of_stream = status == Status::StreamEnd;
            if written > 0 || output.is_empty() {
                return Ok(written);
            }
            if read == 0 && !self.at_end_of_stream && (self.at_end_of_file || self.from < self.to) {
                let complete = self.at_end_of_file && self.tail == FLUSHED;
                return if complete { Ok(0) } else { Err(damaged("the compressed data are truncated")) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compress, Compression, FlushCompress};
    use std::io::Write;

    #[test]
    fn short_and_long_formats_have_the_same_fields() {
        for line in
            ["S2L400T7C3b9aca01X5", "SEND 2 LEN 400 TAG 7 COMM 3b9aca01 SCL 5", " S 2 L 400T7 C3b9aca01S5 "]
        {
            let mut fields = Fields::new(line.as_bytes());
            assert!([&b"S"[..], b"SEND"].contains(&fields.keyword()));
            assert_eq!(fields.short(), Ok(2));
            fields.expect(&[b"L", b"LEN"], "").unwrap();
            assert_eq!(fields.number(), Ok(0x400));
            fields.expect(&[b"T", b"TAG"], "").unwrap();
            assert_eq!(fields.short(), Ok(7));
            fields.expect(&[b"C", b"COMM"], "").unwrap();
            assert_eq!(fields.short(), Ok(0x3b9a_ca01));
            fields.end_or_source().unwrap();
        }
    }

    #[test]
    fn reading_stops_at_the_end_of_a_line() {
        let fields = Fields::new(b"E1 \nE2\n");
        let (mut entry, mut text) = (fields, Fields::new(b"\"a\nb\"\n"));
        assert_eq!((entry.keyword(), entry.short(), entry.is_empty()), (&b"E"[..], Ok(1), true));
        assert_eq!((fields.lines_behind(), entry.lines_behind()), (&b"E2\n"[..], &b"E2\n"[..]));
        assert_eq!(text.text(), Err("unterminated text"));
        assert_eq!(Fields::new(b"E1").lines_behind(), b"");
    }

    #[test]
    fn numbers_are_bounded() {
        let number = |text: &'static str| Fields::new(text.as_bytes()).number();
        assert_eq!(number("ffffffffffffffff"), Ok(u64::MAX));
        assert_eq!(number("0000000000000000000001"), Ok(1));
        assert_eq!(number("10000000000000000"), Err("a number exceeds 64 bits"));
        assert_eq!(number("F"), Err("missing number"));
        assert_eq!(Fields::new(b"100000000").short(), Err("a number exceeds 32 bits"));
    }

    #[test]
    fn lists_and_texts() {
        let mut fields = Fields::new(b"1,a,ff,NM\"a \xff\"");
        assert_eq!(fields.list().unwrap(), [1, 10, 255]);
        assert_eq!(fields.name().unwrap(), "a \u{fffd}");
        assert!(fields.is_empty());
        assert_eq!(Fields::new(b"NM\"x").name(), Err("unterminated text"));
        assert_eq!(Fields::new(b"NMx").name(), Err("missing text"));
        assert!(Fields::new(b"M").list().unwrap().is_empty());
    }

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
    fn flushed_and_finished_streams_are_complete() {
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
    fn truncation_is_detected_at_every_length() {
        let text = b"44c\n*1\nE1\n44c\n*2\nL1\n".repeat(20);
        for flush in [FlushCompress::Full, FlushCompress::Finish] {
            let bytes = compressed(&text, flush);
            for length in 0..bytes.len() {
                assert!(read(&bytes[..length]).is_err(), "{flush:?}, {length}");
            }
        }
    }

    #[test]
    fn invalid_streams_are_rejected() {
        assert!(read(b"44c\n*1\nE1\n").is_err());
        let mut longer = compressed(b"44c\n", FlushCompress::Finish);
        longer.push(b'x');
        assert_eq!(read(&longer).unwrap_err().to_string(), "unexpected data after the compressed stream");
    }
}
