//! The anchor file, which says how the other files of an archive are written.

use std::io::Read;
use std::path::Path;

use hopmap_model::open_input;

use super::constants::{OTF2_CHUNK_SIZE_MAX, OTF2_CHUNK_SIZE_MIN};

use super::record::{Cursor, Flaw};
use crate::Otf2Error;

/// More than any anchor file holds; it is read as a whole.
const MOST_BYTES: u64 = 64 << 20;

/// More properties than anybody attaches to an archive; libotf2 compares each with all others.
const MOST_PROPERTIES: u32 = 4096;

/// Latest version of the trace format that libotf2 3.0 reads as well.
const LATEST_TRACE_FORMAT: u8 = 2;

/// First byte of every file of an archive.
const HEADER: u8 = 3;
/// Mark of the end of a file.
const END_OF_FILE: u8 = 2;

/// What an anchor file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Anchor {
    /// Size of the chunks of event files.
    pub(super) event_chunk: u64,
    /// Size of the chunks of definition files.
    pub(super) definition_chunk: u64,
    /// Number of definitions of the archive.
    pub(super) definitions: u64,
    /// The program that recorded it, as it calls itself.
    pub(super) creator: String,
}

/// Why an anchor file is refused.
enum Refusal {
    Not(&'static str),
    Unsupported(&'static str),
    Flawed(Flaw),
}

impl From<Flaw> for Refusal {
    fn from(flaw: Flaw) -> Self {
        Self::Flawed(flaw)
    }
}

impl Anchor {
    /// Reads an anchor file from its first to its last byte: libotf2 goes on with what it has when one is damaged.
    pub(super) fn read(path: &Path) -> Result<Self, Otf2Error> {
        let mut bytes = Vec::new();
        let file = open_input(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
        file.map_err(|source| Otf2Error::Read { path: path.to_owned(), source })?;
        let path = path.to_owned();
        parse(&bytes).map_err(|refusal| match refusal {
            Refusal::Not(_) if is_otf1(&bytes) => Otf2Error::Otf1 { path },
            Refusal::Not(reason) => Otf2Error::NotAnAnchor { path, reason },
            Refusal::Unsupported(what) => Otf2Error::Unsupported { path, what },
            Refusal::Flawed(flaw) => {
                Otf2Error::Damaged { path, location: None, offset: flaw.at as u64, what: flaw.what }
            }
        })
    }
}

fn parse(bytes: &[u8]) -> Result<Anchor, Refusal> {
    let mut cursor = start(bytes)?;
    let format = cursor.byte()?;
    if format == 0 {
        cursor.at -= 1;
        return Err(cursor.flaw("the version of the anchor file is zero").into());
    }
    if cursor.byte()? > LATEST_TRACE_FORMAT {
        return Err(Refusal::Unsupported("is of a later version of the format"));
    }
    // Version of the library.
    cursor.take(3)?;
    let event_chunk = chunk_size(&mut cursor)?;
    let definition_chunk = chunk_size(&mut cursor)?;
    match cursor.byte()? {
        1 => {}
        2 => return Err(Refusal::Unsupported("keeps its events in SIONlib files")),
        _ => return Err(Flaw { at: cursor.at - 1, what: "unknown kind of files" }.into()),
    }
    match cursor.byte()? {
        1 => {}
        2 => return Err(Refusal::Unsupported("is compressed with zlib")),
        _ => return Err(Flaw { at: cursor.at - 1, what: "unknown compression" }.into()),
    }
    // Number of locations; those that are defined count.
    cursor.word()?;
    let definitions = cursor.word()?;
    let mut texts = cursor;
    end(cursor, format)?;
    // Machine, creator, description.
    texts.text()?;
    let creator = String::from_utf8_lossy(texts.text()?).into_owned();
    Ok(Anchor { event_chunk, definition_chunk, definitions, creator })
}

/// Checks what every anchor file begins with, and finds the order of bytes.
fn start(bytes: &[u8]) -> Result<Cursor<'_>, Refusal> {
    let mut cursor = Cursor::new(bytes);
    match bytes {
        [] => return Err(Refusal::Not("it is empty")),
        [HEADER, 0x42, ..] => {}
        [HEADER, 0x23, ..] => cursor.big_endian = true,
        _ => return Err(Refusal::Not("it does not begin like one")),
    }
    cursor.at = 2;
    match cursor.text() {
        Ok(b"OTF2") => Ok(cursor),
        _ if b"OTF2".starts_with(&bytes[2..]) => {
            Err(Flaw { at: bytes.len(), what: "the file is cut off" }.into())
        }
        _ => Err(Refusal::Not("it does not begin like one")),
    }
}

fn chunk_size(cursor: &mut Cursor<'_>) -> Result<u64, Flaw> {
    let start = cursor.at;
    let size = cursor.word()?;
    let sound = (OTF2_CHUNK_SIZE_MIN..=OTF2_CHUNK_SIZE_MAX).contains(&size);
    if sound { Ok(size) } else { Err(Flaw { at: start, what: "no chunk has this size" }) }
}

/// Checks what follows the numbers: texts, then what later versions of the format added.
fn end(mut cursor: Cursor<'_>, format: u8) -> Result<(), Flaw> {
    // Machine, creator, description.
    for _ in 0..3 {
        cursor.text()?;
    }
    if format >= 2 {
        let properties = cursor.half_word()?;
        if properties > MOST_PROPERTIES {
            cursor.at -= 4;
            return Err(cursor.flaw("the anchor file claims too many properties"));
        }
        for _ in 0..properties {
            cursor.text()?;
            cursor.text()?;
        }
        // The identifier.
        cursor.word()?;
    }
    if format >= 3 {
        // Number of snapshots and of thumbnails.
        cursor.word()?;
    }
    if format == 3 && cursor.byte()? != END_OF_FILE {
        cursor.at -= 1;
        return Err(cursor.flaw("the end of the file is not marked"));
    }
    Ok(())
}

/// An OTF 1 control file lists its streams: `1:1`, `2:a,b`, in hexadecimal.
fn is_otf1(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut parts = line.splitn(2, |byte| *byte == b':');
    let hexadecimal = |part: Option<&[u8]>, also: &[u8]| {
        part.is_some_and(|part| {
            !part.is_empty() && part.iter().all(|byte| byte.is_ascii_hexdigit() || also.contains(byte))
        })
    };
    hexadecimal(parts.next(), b"") && hexadecimal(parts.next(), b",\r")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample-traces/rows-columns-16/eztrace_log.otf2");

    fn refused(bytes: &[u8]) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let error = Anchor::read(file.path()).unwrap_err().to_string();
        error.replace(&file.path().display().to_string(), "FILE")
    }

    #[test]
    fn a_sample_is_read() {
        let anchor = Anchor::read(Path::new(SAMPLE)).unwrap();
        assert_eq!(
            anchor,
            Anchor {
                event_chunk: 16 << 20,
                definition_chunk: 16 << 20,
                definitions: 696,
                creator: String::new()
            }
        );
    }

    #[test]
    fn every_cut_is_noticed() {
        let bytes = std::fs::read(SAMPLE).unwrap();
        // The last byte marks the end of a buffer and says nothing.
        for length in 0..bytes.len() - 2 {
            let error = refused(&bytes[..length]);
            assert!(error.contains("damaged") || error.contains("not the anchor file"), "{length}: {error}");
        }
    }

    #[test]
    fn other_files_are_named() {
        assert_eq!(refused(b"1:1\n2:2\n"), "`FILE` is an OTF 1 archive");
        assert!(refused(b"").ends_with("it is empty"));
        assert!(refused(b"\x7fELF").ends_with("it does not begin like one"));
        assert!(refused(b"\x03BOTF1\0").ends_with("it does not begin like one"));
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let mut bytes = std::fs::read(SAMPLE).unwrap();
        bytes[8] = 3;
        assert_eq!(refused(&bytes), "`FILE` is of a later version of the format, which is not supported");
        bytes[8] = 2;
        bytes[29] = 2;
        assert_eq!(refused(&bytes), "`FILE` is compressed with zlib, which is not supported");
        bytes[28] = 2;
        assert_eq!(refused(&bytes), "`FILE` keeps its events in SIONlib files, which is not supported");
        bytes[28] = 9;
        assert_eq!(refused(&bytes), "`FILE` is damaged at byte 28: unknown kind of files");
    }

    #[test]
    fn a_chunk_size_of_nonsense_is_refused() {
        let mut bytes = std::fs::read(SAMPLE).unwrap();
        bytes[12..20].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(refused(&bytes), "`FILE` is damaged at byte 12: no chunk has this size");
    }
}
