//! Walks over the files of an archive, chunk by chunk, and checks them before libotf2 reads them.
//!
//! libotf2 trusts its input: a file that is cut off makes it read the chunk before once more, for ever, and a
//! record that is longer than its chunk makes it read memory that is not its own. Here every byte it would
//! touch is looked at first. That also gives the place of the damage, which libotf2 does not tell. It helps against
//! damage, not against somebody who changes the files while they are read.
//!
//! A file is a row of chunks of one size; the last may be shorter. A chunk is a header (3, the order of bytes,
//! number of the first and last event), records, and a mark: 0 with padding up to the next chunk, or 2 at the end
//! of the file. In event files 5 and eight bytes stand before a record whenever the time has changed.

pub(super) mod common;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::layouts::{self, Field, Layout};
use super::record::{CUT_OFF, Cursor, Flaw};
use crate::Otf2Error;
use common::{Moment, Nobody};

const END_OF_CHUNK: u8 = 0;
const END_OF_BUFFER: u8 = 1;
const END_OF_FILE: u8 = 2;
const CHUNK_HEADER: u8 = 3;
pub(super) const TIMESTAMP: u8 = 5;
pub(super) const ATTRIBUTE_LIST: u8 = 6;

/// What an event file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct EventFile {
    /// Number of events.
    pub(super) events: u64,
    /// Number of events among them that this version of the format does not know.
    pub(super) unknown: u64,
    /// Earliest and latest point in time, by the clock of the location.
    pub(super) span: Option<(u64, u64)>,
}

/// Checks an event file and counts its events. Chunks are read into a buffer that may be used again.
pub(super) fn check_events(
    path: &Path,
    chunk_size: u64,
    location: u64,
    buffer: &mut Vec<u8>,
) -> Result<EventFile, Otf2Error> {
    let mut walk = EventWalk::default();
    walk_chunks(path, chunk_size, Some(location), buffer, |cursor| walk.chunk(cursor))?;
    Ok(walk.file())
}

/// The time of the first event of a location by its own clock, if it has any event.
pub(super) fn first_time(path: &Path, chunk_size: u64, location: u64) -> Result<Option<u64>, Otf2Error> {
    let mut first = None;
    walk_chunks(path, chunk_size, Some(location), &mut Vec::new(), |cursor| {
        let mut walk = EventWalk::default();
        if walk.begin(cursor)? > 0 {
            walk.kind(cursor)?;
            first = Some(walk.time);
        }
        Ok(End::Early)
    })?;
    Ok(first)
}

/// Checks the definitions of the archive and counts them.
pub(super) fn check_global_definitions(path: &Path, chunk_size: u64) -> Result<u64, Otf2Error> {
    let mut definitions = 0;
    check(path, chunk_size, None, |cursor| {
        definition_chunk(cursor, layouts::global_definition, &mut definitions)
    })?;
    Ok(definitions)
}

/// Checks the definitions of a location and counts them.
pub(super) fn check_local_definitions(path: &Path, chunk_size: u64, location: u64) -> Result<u64, Otf2Error> {
    let mut definitions = 0;
    let walk =
        |cursor: &mut Cursor<'_>| definition_chunk(cursor, layouts::local_definition, &mut definitions);
    check(path, chunk_size, Some(location), walk)?;
    Ok(definitions)
}

/// How a chunk ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Chunk,
    File,
    /// Nobody wants to know the rest.
    Early,
}

impl End {
    /// The end that a byte in place of a type number marks, if any.
    #[inline]
    pub(super) fn of(kind: u8) -> Option<Self> {
        match kind {
            END_OF_CHUNK => Some(Self::Chunk),
            END_OF_FILE => Some(Self::File),
            _ => None,
        }
    }
}

fn check(
    path: &Path,
    chunk_size: u64,
    location: Option<u64>,
    walk: impl FnMut(&mut Cursor<'_>) -> Result<End, Flaw>,
) -> Result<(), Otf2Error> {
    walk_chunks(path, chunk_size, location, &mut Vec::new(), walk)
}

/// Walks over all chunks of a file, which are read one by one into a buffer that may be used again.
pub(super) fn walk_chunks(
    path: &Path,
    chunk_size: u64,
    location: Option<u64>,
    buffer: &mut Vec<u8>,
    mut walk: impl FnMut(&mut Cursor<'_>) -> Result<End, Flaw>,
) -> Result<(), Otf2Error> {
    let unreadable = |source: io::Error| {
        let path = path.to_owned();
        if source.kind() == io::ErrorKind::NotFound {
            Otf2Error::Missing { path, location }
        } else {
            Otf2Error::Read { path, source }
        }
    };
    let damaged = |offset, what| Otf2Error::Damaged { path: path.to_owned(), location, offset, what };
    let file = File::open(path).map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len().min(chunk_size) as usize;
    if buffer.len() < size {
        buffer.resize(size, 0);
    }
    let mut start = 0;
    loop {
        let chunk = read_chunk(&file, &mut buffer[..size]).map_err(unreadable)?;
        if chunk.is_empty() {
            return Err(damaged(start, if start == 0 { "the file is empty" } else { "the file is cut off" }));
        }
        let complete = chunk.len() as u64 == chunk_size;
        let mut cursor = Cursor::new(chunk);
        match walk(&mut cursor) {
            Ok(End::Chunk) if complete => start += chunk_size,
            Ok(End::Chunk) => return Err(damaged(start + chunk.len() as u64, "the file is cut off")),
            Ok(End::File) => {
                return nothing_follows(&file, cursor)
                    .map_err(unreadable)?
                    .map_err(|flaw| damaged(start + flaw.at as u64, flaw.what));
            }
            Ok(End::Early) => return Ok(()),
            Err(flaw) if flaw.what == CUT_OFF && !complete => {
                return Err(damaged(start + chunk.len() as u64, "the file is cut off"));
            }
            Err(flaw) => return Err(damaged(start + flaw.at as u64, flaw.what)),
        }
    }
}

/// The next bytes of a file: as many as fit, or all that are left.
fn read_chunk<'a>(mut file: &File, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(&buffer[..filled])
}

/// Checks that only the mark of the end of a buffer or padding is left in a file.
fn nothing_follows(mut file: &File, mut cursor: Cursor<'_>) -> io::Result<Result<(), Flaw>> {
    let padding = |byte: &u8| matches!(*byte, END_OF_CHUNK | END_OF_BUFFER);
    let rest = cursor.rest();
    cursor.at += rest.iter().take_while(|byte| padding(byte)).count();
    let sound = cursor.rest().is_empty() && file.read(&mut [0])? == 0;
    Ok(if sound { Ok(()) } else { Err(cursor.flaw("the file goes on behind its end")) })
}

/// Reads the header of a chunk: number of the first and of the last event.
pub(super) fn header(cursor: &mut Cursor<'_>) -> Result<(u64, u64), Flaw> {
    if cursor.byte()? != CHUNK_HEADER {
        return Err(Flaw { at: 0, what: "a chunk does not begin like one" });
    }
    cursor.big_endian = match cursor.byte()? {
        0x42 => false,
        0x23 => true,
        _ => return Err(Flaw { at: 1, what: "a chunk does not tell its order of bytes" }),
    };
    Ok((cursor.word()?, cursor.word()?))
}

/// Passes a record of a file; tells whether it is of a known kind.
pub(super) fn record(cursor: &mut Cursor<'_>, layout: Layout) -> Result<bool, Flaw> {
    match layout {
        Layout::Single(Field::Int32) => cursor.skip_compressed(4)?,
        Layout::Single(field) => cursor.field(field)?,
        Layout::Record(fields) => cursor.record()?.fields(fields)?,
        Layout::Unknown => cursor.record().map(drop)?,
        Layout::Impossible => {
            cursor.at -= 1;
            return Err(cursor.flaw("no record begins with this byte"));
        }
    }
    Ok(layout != Layout::Unknown)
}

fn definition_chunk(
    cursor: &mut Cursor<'_>,
    layout: impl Fn(u8) -> Layout,
    definitions: &mut u64,
) -> Result<End, Flaw> {
    header(cursor)?;
    loop {
        let kind = cursor.byte()?;
        if let Some(end) = End::of(kind) {
            return Ok(end);
        }
        record(cursor, layout(kind))?;
        *definitions += 1;
    }
}

/// The way through an event file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventWalk {
    pub(super) events: u64,
    pub(super) unknown: u64,
    /// Time of the events to come.
    time: u64,
    /// Earliest and latest time of an event.
    first: u64,
    last: u64,
}

impl Default for EventWalk {
    fn default() -> Self {
        Self { events: 0, unknown: 0, time: 0, first: u64::MAX, last: 0 }
    }
}

impl EventWalk {
    pub(super) fn file(&self) -> EventFile {
        let span = (self.events > 0).then_some((self.first, self.last));
        EventFile { events: self.events, unknown: self.unknown, span }
    }

    fn chunk(&mut self, cursor: &mut Cursor<'_>) -> Result<End, Flaw> {
        let last = self.begin(cursor)?;
        let end = self.events(cursor)?;
        self.complete(last)?;
        Ok(end)
    }

    /// Begins a chunk; gives the number of its last event.
    pub(super) fn begin(&self, cursor: &mut Cursor<'_>) -> Result<u64, Flaw> {
        let (first, last) = header(cursor)?;
        if first != self.events + 1 {
            return Err(Flaw { at: 2, what: "the events of a chunk do not follow those before" });
        }
        Ok(last)
    }

    /// Checks that a chunk ended with the event it should.
    pub(super) fn complete(&self, last: u64) -> Result<(), Flaw> {
        if last == self.events {
            return Ok(());
        }
        Err(Flaw { at: 10, what: "a chunk holds more or fewer events than it says" })
    }

    fn events(&mut self, cursor: &mut Cursor<'_>) -> Result<End, Flaw> {
        loop {
            if !cursor.big_endian {
                cursor.at += common::pass(cursor.rest(), self, &mut Nobody);
            }
            match self.kind(cursor)? {
                END_OF_CHUNK => return Ok(End::Chunk),
                END_OF_FILE => return Ok(End::File),
                ATTRIBUTE_LIST => {
                    cursor.record()?.attribute_list()?;
                    match self.kind(cursor)? {
                        END_OF_CHUNK | END_OF_FILE | ATTRIBUTE_LIST => {
                            cursor.at -= 1;
                            return Err(cursor.flaw("attributes stand before no event"));
                        }
                        kind => self.event(cursor, kind)?,
                    }
                }
                kind => self.event(cursor, kind)?,
            }
        }
    }

    /// Type of the next record. A new time before it is noted.
    pub(super) fn kind(&mut self, cursor: &mut Cursor<'_>) -> Result<u8, Flaw> {
        let kind = cursor.byte()?;
        if kind != TIMESTAMP {
            return Ok(kind);
        }
        self.time = cursor.word()?;
        cursor.byte()
    }

    fn event(&mut self, cursor: &mut Cursor<'_>, kind: u8) -> Result<(), Flaw> {
        let known = record(cursor, layouts::event(kind))?;
        self.unknown += u64::from(!known);
        self.count();
        Ok(())
    }

    #[inline]
    pub(super) fn count(&mut self) {
        self.events += 1;
        self.first = self.first.min(self.time);
        self.last = self.last.max(self.time);
    }

    /// The event counted last.
    pub(super) fn moment(&self) -> Moment {
        Moment { event: self.events, time: self.time, last: self.last }
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
    fn every_cut_is_noticed() {
        let bytes = two_chunks();
        for length in 0..bytes.len() - 1 {
            let error = events(&bytes[..length]).unwrap_err();
            let cut = if length == 0 { "the file is empty" } else { "the file is cut off" };
            assert_eq!(error, format!("`FILE` (location 12) is damaged at byte {length}: {cut}"));
        }
    }

    #[test]
    fn damage_is_named_with_its_place() {
        let damaged = |at: usize, byte: u8| {
            let mut bytes = two_chunks();
            bytes[at] = byte;
            events(&bytes).unwrap_err().replace("`FILE` (location 12) is damaged at byte ", "")
        };
        assert_eq!(damaged(0, 4), "0: a chunk does not begin like one");
        assert_eq!(damaged(1, 0), "1: a chunk does not tell its order of bytes");
        assert_eq!(damaged(2, 5), "2: the events of a chunk do not follow those before");
        assert_eq!(damaged(10, 5), "10: a chunk holds more or fewer events than it says");
        assert_eq!(damaged(27, 9), "27: no record begins with this byte");
        assert_eq!(damaged(28, 99), "28: a number claims more bytes than it can have");
        assert_eq!(damaged(40, 200), "41: a record goes on past the end of its data");
        assert_eq!(damaged(40, 3), "44: a record goes on past the end of its data");
        assert_eq!(damaged(64 + 34, 0), "98: attributes stand before no event");
        assert_eq!(damaged(64 + 37, 9), "101: the file goes on behind its end");
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
        assert_eq!(check_global_definitions(file.path(), CHUNK as u64).unwrap(), 3);
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
