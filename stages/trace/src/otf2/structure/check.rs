//! Validates files before libotf2 reads them.
//!
//! libotf2 trusts its input: a truncated file makes it read the previous chunk again forever, and a record
//! longer than its chunk makes it read foreign memory. This module validates every byte that libotf2 will
//! read, and reports the position of damage, which libotf2 does not. It does not protect against changes of
//! the files while they are read.

use std::path::Path;

use super::{
    ATTRIBUTE_LIST, END_OF_CHUNK, END_OF_FILE, EventFile, EventWalk, IgnoreAll, Stop, record, walk_chunks,
};
use crate::error::TraceError;
use crate::otf2::record::{Cursor, Flaw};
use crate::otf2::{record_schema, structure};

/// Validates an event file and counts its events. Chunks are read into a reusable buffer.
pub(in crate::otf2) fn check_events(
    path: &Path,
    chunk_size: u64,
    location: u64,
    buffer: &mut Vec<u8>,
) -> Result<EventFile, TraceError> {
    let mut walk = EventWalk::default();
    walk_chunks(path, chunk_size, Some(location), buffer, |cursor| walk.chunk(cursor))?;
    Ok(walk.file())
}

/// Validates the definitions of a location and counts them.
pub(in crate::otf2) fn check_local_definitions(
    path: &Path,
    chunk_size: u64,
    location: u64,
) -> Result<u64, TraceError> {
    let mut definitions = 0;
    let layout = record_schema::local_definition;
    structure::walk_definitions(path, chunk_size, Some(location), &mut Vec::new(), layout, |_, _, _| {
        definitions += 1;
        Ok(())
    })?;
    Ok(definitions)
}

impl EventWalk {
    fn chunk(&mut self, cursor: &mut Cursor<'_>) -> Result<Stop, Flaw> {
        let last = self.begin(cursor)?;
        let end = self.events(cursor)?;
        self.complete(last)?;
        Ok(end)
    }

    fn events(&mut self, cursor: &mut Cursor<'_>) -> Result<Stop, Flaw> {
        loop {
            if !cursor.big_endian {
                cursor.at += structure::pass(cursor.rest(), self, &mut IgnoreAll);
            }
            match self.kind(cursor)? {
                END_OF_CHUNK => return Ok(Stop::Chunk),
                END_OF_FILE => return Ok(Stop::File),
                ATTRIBUTE_LIST => {
                    cursor.record()?.attribute_list()?;
                    match self.kind(cursor)? {
                        END_OF_CHUNK | END_OF_FILE | ATTRIBUTE_LIST => {
                            cursor.at -= 1;
                            return Err(cursor.flaw("attributes without an event"));
                        }
                        kind => self.event(cursor, kind)?,
                    }
                }
                kind => self.event(cursor, kind)?,
            }
        }
    }

    pub(super) fn event(&mut self, cursor: &mut Cursor<'_>, kind: u8) -> Result<(), Flaw> {
        let known = record(cursor, record_schema::event(kind))?;
        self.unknown += u64::from(!known);
        self.count();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CHUNK: usize = 64;

    fn header_of(first: u64, last: u64) -> Vec<u8> {
        [&[3, 0x42][..], &first.to_le_bytes(), &last.to_le_bytes()].concat()
    }

    fn timestamp(time: u64) -> Vec<u8> {
        [&[5][..], &time.to_le_bytes()].concat()
    }

    /// Two chunks: an ENTER at 7, a SEND at 9 and the padding; a LEAVE with an attribute at 5 and the end.
    fn two_chunks() -> Vec<u8> {
        let send = [14, 6, 1, 3, 0, 0, 1, 8];
        let mut file = [header_of(1, 2), timestamp(7), vec![12, 1, 4], timestamp(9), send.into()].concat();
        file.resize(CHUNK, END_OF_CHUNK);
        let list = [6, 5, 1, 1, 0, 1, 200];
        file.extend([header_of(3, 3), timestamp(5), list.into(), vec![13, 255, 2, 1]].concat());
        file
    }

    fn events(bytes: &[u8]) -> Result<EventFile, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        check_events(file.path(), CHUNK as u64, 12, &mut Vec::new())
            .map_err(|error| error.to_string().replace(&file.path().display().to_string(), "FILE"))
    }

    #[test]
    fn events_are_counted_and_timed() {
        assert_eq!(events(&two_chunks()), Ok(EventFile { events: 3, unknown: 0, span: Some((5, 9)) }));
        assert_eq!(events(&[header_of(1, 0), vec![2]].concat()), Ok(EventFile::default()));
        let newer = [header_of(1, 1), vec![89, 2, 7, 7, 2]].concat();
        assert_eq!(events(&newer), Ok(EventFile { events: 1, unknown: 1, span: Some((0, 0)) }));
    }

    #[test]
    fn truncation_is_detected_at_every_length() {
        let bytes = two_chunks();
        for length in 0..bytes.len() - 1 {
            let error = events(&bytes[..length]).unwrap_err();
            let cut = if length == 0 { "the file is empty" } else { "the file is truncated" };
            assert_eq!(error, format!("`FILE` (location 12) is damaged at byte {length}: {cut}"));
        }
    }

    #[test]
    fn damage_is_reported_with_its_position() {
        let damaged = |at: usize, byte: u8| {
            let mut bytes = two_chunks();
            bytes[at] = byte;
            events(&bytes).unwrap_err().replace("`FILE` (location 12) is damaged at byte ", "")
        };
        assert_eq!(damaged(0, 4), "0: invalid start of a chunk");
        assert_eq!(damaged(1, 0), "1: invalid byte order of a chunk");
        assert_eq!(damaged(2, 5), "2: the event numbers of a chunk are not consecutive");
        assert_eq!(damaged(10, 5), "10: wrong number of events in a chunk");
        assert_eq!(damaged(27, 9), "27: invalid record type");
        assert_eq!(damaged(28, 99), "28: a number declares too many bytes");
        assert_eq!(damaged(40, 200), "41: a record exceeds its data");
        assert_eq!(damaged(40, 3), "44: a record exceeds its data");
        assert_eq!(damaged(64 + 34, 0), "98: attributes without an event");
        assert_eq!(damaged(64 + 37, 9), "101: unexpected data after the end of the file");
    }

    #[test]
    fn numbers_may_have_the_highest_byte_first() {
        let header = [&[3, 0x23][..], &1u64.to_be_bytes(), &1u64.to_be_bytes()].concat();
        let bytes = [header, vec![5], 0x0102u64.to_be_bytes().into(), vec![12, 0, 2]].concat();
        assert_eq!(events(&bytes).unwrap().span, Some((0x0102, 0x0102)));
    }

    #[test]
    fn definitions_are_counted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = [10, 4, 1, 7, b'a', 0];
        std::fs::write(file.path(), [header_of(1, 0), text.into(), text.into(), vec![99, 0, 2, 1]].concat())
            .unwrap();
        assert_eq!(check_local_definitions(file.path(), CHUNK as u64, 0).unwrap(), 3);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_hang(bytes in prop::collection::vec(any::<u8>(), 0..200), change in any::<bool>()) {
            let mut file = two_chunks();
            for (place, byte) in bytes.iter().enumerate().filter(|_| change) {
                file[place * 7 % 100] ^= byte & 1;
            }
            let _ = events(if change { &file } else { &bytes });
        }
    }
}
