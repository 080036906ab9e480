//! Buffered input for lines and words, and functions that read entire files.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::str::Utf8Error;

use flate2::bufread::MultiGzDecoder;
use hopmap_model::{Context, InputError, open_input};

use crate::error::FileError;

/// Bytes per read.
pub(crate) const BUFFER: usize = 1 << 18;

/// Maximum line length. Headers of Paraver traces with a million tasks, and rows of vertices with millions of
/// neighbours, are shorter.
pub(crate) const LONGEST: usize = 64 << 20;

/// Magic number of gzip files (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Bytes that a packed file may become for each of its own, unless they are few: traces and graphs become 10 to 25.
const MOST_GROWTH: u64 = 50;
const FEW: u64 = 64 << 20;

/// A file that is packed with gzip. One of a few kilobytes could become any number of gigabytes: that ends in an error.
pub fn unpacked(packed: impl BufRead, bytes: u64) -> impl Read {
    let left = bytes.saturating_mul(MOST_GROWTH).max(FEW);
    Unpacked { inner: MultiGzDecoder::new(packed), left }
}

/// The content of a file, which may be packed with gzip, and its size if it is not.
pub fn opened(path: &Path) -> io::Result<(Box<dyn Read>, Option<u64>)> {
    let mut file = BufReader::with_capacity(BUFFER, open_input(path)?);
    let bytes = file.get_ref().metadata().map_or(0, |metadata| metadata.len());
    Ok(match file.fill_buf()?.starts_with(&GZIP) {
        true => (Box::new(unpacked(file, bytes)), None),
        false => (Box::new(file), Some(bytes)),
    })
}

/// The first bytes of a file, which may be packed with gzip; at most `most`. A packed file may be cut.
pub fn head(path: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    let mut head = Vec::new();
    let read = opened(path).and_then(|(source, _)| source.take(most).read_to_end(&mut head));
    match read {
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            Err(FileError::unreadable(path, &error))
        }
        _ => Ok(head),
    }
}

/// Everything in a folder, sorted by name.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let entries = std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect());
    let mut entries: Vec<PathBuf> = entries.map_err(|error| FileError::unreadable(folder, &error))?;
    entries.sort_unstable();
    Ok(entries)
}

/// Steps between two questions whether to stop: some milliseconds.
const STEPS: usize = 1 << 16;

/// Fails now and then over the many steps of matching what was read, if the run is to stop.
pub fn check_stop(step: usize, cx: &Context<'_>) -> Result<(), FileError> {
    match step.is_multiple_of(STEPS) && cx.should_stop() {
        true => Err(FileError::new("stopped before the trace was matched", "")),
        false => Ok(()),
    }
}

/// What to do about a log that ends within a line or record, if its reader may use the part before.
pub const CUT: &str = "the file was not written or copied completely: copy or record it again, or use the part \
                       before its end with `allow_truncated = true`";

struct Unpacked<R> {
    inner: MultiGzDecoder<R>,
    left: u64,
}

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let left = self.left.checked_sub(read as u64);
        self.left = left.ok_or_else(|| {
            io::Error::other(format!(
                "it unpacks to more than {MOST_GROWTH} times its size; unpack it first if it is right"
            ))
        })?;
        Ok(read)
    }
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A file read sequentially, and its buffer.
pub(crate) struct Input<'a> {
    pub(crate) path: PathBuf,
    pub(crate) help: &'static str,
    cx: Context<'a>,
    source: Box<dyn Read + 'a>,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    done: u64,
    /// Total bytes; zero if unknown.
    total: u64,
    /// Whether a packed file ends within its data.
    pub(crate) is_cut: bool,
}

impl<'a> Input<'a> {
    /// Opens a file, optionally gzip-compressed: detected by its first bytes, not by its name.
    pub(crate) fn open(path: &Path, help: &'static str) -> Result<Self, FileError> {
        let (source, total) = opened(path).map_err(|error| FileError::unreadable(path, &error))?;
        Ok(Self { total: total.unwrap_or(0), ..Self::of(path, source, help) })
    }

    pub(crate) fn of(path: &Path, source: impl Read + 'a, help: &'static str) -> Self {
        Self {
            path: path.to_owned(),
            help,
            cx: Context::detached(),
            source: Box::new(source),
            buffer: Vec::new(),
            from: 0,
            to: 0,
            done: 0,
            total: 0,
            is_cut: false,
        }
    }

    pub(crate) fn with(self, cx: &Context<'a>) -> Self {
        Self { cx: *cx, ..self }
    }

    /// Buffered bytes that are not consumed yet.
    #[inline]
    pub(crate) fn rest(&self) -> &[u8] {
        &self.buffer[self.from..self.to]
    }

    /// Number of consumed bytes.
    #[inline]
    pub(crate) fn passed(&self) -> u64 {
        self.done - (self.to - self.from) as u64
    }

    #[inline]
    pub(crate) fn pass(&mut self, bytes: usize) {
        self.from += bytes;
    }

    /// Bytes consumed since the last [`Input::fill`].
    #[inline]
    pub(crate) fn before(&self, bytes: usize) -> &[u8] {
        &self.buffer[self.from - bytes..self.from]
    }

    /// Reads on and keeps the bytes that are not consumed. Returns `false` at the end of the file. `line` is
    /// the position of errors.
    #[cold]
    pub(crate) fn fill(&mut self, line: usize) -> Result<bool, FileError> {
        self.look(line)?;
        let kept = self.to - self.from;
        if kept >= LONGEST {
            return Err(self.error(line, format!("the line is longer than {} MiB", LONGEST >> 20)));
        }
        self.buffer.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, kept);
        if kept * 2 > self.buffer.len() || self.buffer.is_empty() {
            self.buffer.resize((2 * kept).max(BUFFER), 0);
        }
        let read = loop {
            match self.source.read(&mut self.buffer[kept..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.is_cut = read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
        let read =
            read.map_err(|error| FileError { line: None, ..FileError::unreadable(&self.path, &error) })?;
        self.to += read;
        let is_first = self.done == 0;
        self.done += read as u64;
        if is_first {
            refuse_utf16(self.rest()).map_err(|error| error.in_file(&self.path))?;
        }
        if is_first && self.rest().starts_with(BYTE_ORDER_MARK) {
            self.from = BYTE_ORDER_MARK.len();
        }
        Ok(read > 0)
    }

    #[cold]
    pub(crate) fn error(&self, line: usize, problem: impl Into<String>) -> FileError {
        FileError::at(line, problem, self.help).in_file(&self.path)
    }

    /// Reports progress, and stops if requested.
    fn look(&self, line: usize) -> Result<(), FileError> {
        self.cx.progress(self.done, self.total);
        match self.cx.should_stop() {
            true => Err(FileError { help: None, ..self.error(line, "reading was cancelled here") }),
            false => Ok(()),
        }
    }
}

/// Reads a file of at most `most` bytes, which may be packed with gzip.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    let read = opened(path).and_then(|(file, _)| file.take(most.saturating_add(1)).read_to_end(&mut bytes));
    read.map_err(|error| FileError::unreadable(path, &error))?;
    if bytes.len() as u64 > most {
        return Err(FileError::unreadable(path, &InputError::TooLarge(most).into()));
    }
    refuse_utf16(&bytes).map_err(|error| error.in_file(path))?;
    Ok(bytes)
}

/// Refuses text that begins with the byte order mark of UTF-16: no format that hopmap reads begins with these bytes.
fn refuse_utf16(bytes: &[u8]) -> Result<(), FileError> {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => encoded(bytes).map_or(Ok(()), Err),
        _ => Ok(()),
    }
}

/// Reads a text file of at most `most` bytes.
pub fn read_text(path: &Path, most: u64) -> Result<String, FileError> {
    let mut bytes = read(path, most)?;
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    String::from_utf8(bytes).map_err(|error| not_text(error.as_bytes(), &error.utf8_error()).in_file(path))
}

/// Converts bytes to text, without a byte order mark.
pub fn utf8(bytes: &[u8]) -> Result<&str, FileError> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| not_text(bytes, &error))
}

#[cold]
fn not_text(bytes: &[u8], error: &Utf8Error) -> FileError {
    let line = bytes[..error.valid_up_to()].split(|&byte| byte == b'\n').count();
    encoded(bytes).unwrap_or_else(|| FileError::at(line, NOT_TEXT.0, NOT_TEXT.1))
}

/// Problem and hint for bytes that are not UTF-8.
const NOT_TEXT: (&str, &str) =
    ("not valid UTF-8 text", "check whether the file is damaged, compressed, or in another encoding");

/// The error of bytes that are text in another encoding.
#[must_use]
pub fn encoded(bytes: &[u8]) -> Option<FileError> {
    let convert = |encoding: &str| format!("convert it: `iconv -f {encoding} -t UTF-8 FILE > NEW`");
    let zeros = |from: usize| bytes.iter().skip(from).step_by(2).filter(|byte| **byte == 0).count();
    // Every other byte of Latin letters in UTF-16 is zero.
    let has_zeros =
        |from: usize| bytes.len() > 7 && 8 * zeros(from) > 3 * bytes.len() && zeros(1 - from) == 0;
    let wide = match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        _ if has_zeros(1) => Some("UTF-16LE"),
        _ if has_zeros(0) => Some("UTF-16BE"),
        _ => None,
    };
    if let Some(encoding) = wide {
        return Some(FileError::at(1, "it is text in UTF-16, not in UTF-8", convert(encoding)));
    }
    let error = std::str::from_utf8(bytes).err().filter(|error| error.error_len().is_some())?;
    let is_letter = |byte: u8| byte >= b' ' && byte != 0x7f || byte.is_ascii_whitespace();
    let line = bytes[..error.valid_up_to()].split(|&byte| byte == b'\n').count();
    let latin =
        if bytes.iter().any(|byte| (0x80..0xa0).contains(byte)) { "WINDOWS-1252" } else { "ISO-8859-1" };
    let help = format!("if it is text in {latin}, {}", convert(latin));
    bytes.iter().all(|byte| is_letter(*byte)).then(|| FileError::at(line, NOT_TEXT.0, help))
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::read::GzEncoder;

    use super::*;

    #[test]
    fn packed_files_are_read_as_unpacked_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut packed = Vec::new();
        GzEncoder::new(&b"a\nb\n"[..], Compression::fast()).read_to_end(&mut packed).unwrap();
        std::fs::write(&path, &packed).unwrap();
        assert_eq!(read_text(&path, 4).unwrap(), "a\nb\n");
        assert!(read_text(&path, 3).unwrap_err().to_string().ends_with("it is larger than 3 bytes"));
        assert_eq!(head(&path, 1).unwrap(), b"a");
        let mut lines = crate::lines::Lines::open(&path, "").unwrap();
        assert_eq!(lines.next().unwrap().map(|line| line.text.to_owned()), Some("a".to_owned()));
        // A packed file that is cut off is an error, and not the end of its text.
        std::fs::write(&path, &packed[..packed.len() - 9]).unwrap();
        assert!(read_text(&path, 4).is_err());
    }

    #[test]
    fn another_encoding_is_named_with_the_command_that_converts_it() {
        let wide =
            |order: fn(u16) -> [u8; 2]| "a,b\nc,d\n".encode_utf16().flat_map(order).collect::<Vec<u8>>();
        for (bytes, command) in [
            ([&[0xff, 0xfe], &*wide(u16::to_le_bytes)].concat(), "1: `iconv -f UTF-16 -t"),
            (wide(u16::to_le_bytes), "1: `iconv -f UTF-16LE -t"),
            (wide(u16::to_be_bytes), "1: `iconv -f UTF-16BE -t"),
            (b"a,b\nn\xfc,c\n".to_vec(), "2: `iconv -f ISO-8859-1 -t"),
            (b"a,b\n\x93c\x94,d\n".to_vec(), "2: `iconv -f WINDOWS-1252 -t"),
        ] {
            let error = encoded(&bytes).unwrap();
            let command_of = error.help_text().split_once('`').unwrap().1;
            assert!(format!("{}: `{command_of}", error.line.unwrap()).starts_with(command), "{error:?}");
        }
        for bytes in [
            &b"a,b\n"[..],
            "ü\n".as_bytes(),
            b"\xff\0\x01\0\xff\0\xff\xff\0\xff",
            b"\x89PNG\r\n\x1a\n\x80\0",
            b"a\xc3",
        ] {
            assert_eq!(encoded(bytes), None, "{bytes:?}");
        }
    }

    /// Readers of words and of bytes took the first one for a wrong number, or an unknown format.
    #[test]
    fn each_way_to_read_refuses_utf16() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let wide: Vec<u8> = "\u{feff}3 2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        std::fs::write(file.path(), wide).unwrap();
        let path = file.path();
        let words = crate::Words::open(path, "").and_then(|mut words| words.skip_lines_with(b'%'));
        let lines = crate::Lines::open(path, "").and_then(|mut lines| lines.next().map(|_| ()));
        let errors = [read(path, 99).err(), read_text(path, 99).err(), words.err(), lines.err()];
        for error in errors {
            let error = error.unwrap();
            assert!(error.problem.contains("UTF-16") && error.path == path, "{error}");
        }
    }

    #[test]
    fn a_packed_file_does_not_become_any_number_of_bytes() {
        for (bytes, is_read) in [(FEW, true), (FEW + 1, false)] {
            let mut packed = Vec::new();
            GzEncoder::new(io::repeat(b'x').take(bytes), Compression::fast())
                .read_to_end(&mut packed)
                .unwrap();
            let copied = io::copy(&mut unpacked(packed.as_slice(), packed.len() as u64), &mut io::sink());
            assert_eq!(copied.is_ok(), is_read, "{copied:?}");
        }
    }
}
