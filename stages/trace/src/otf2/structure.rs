//! Walks over the files of an archive, chunk by chunk, and looks at every byte before anything is made of it.
//!
//! A file is a row of chunks of one size; the last may be shorter. A chunk is a header (3, the order of bytes,
//! number of the first and last event), records, and a mark: 0 with padding up to the next chunk, or 2 at the end
//! of the file. In event files 5 and eight bytes stand before a record whenever the time has changed.

#[cfg(any(test, feature = "libotf2"))]
pub(super) mod check;
pub(super) mod common;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use hopmap_model::open_input;

use super::layouts::{Field, Layout};
use super::record::{CUT_OFF, Cursor, Flaw};
use crate::Otf2Error;
use common::Moment;

pub(super) const END_OF_CHUNK: u8 = 0;
pub(super) const END_OF_BUFFER: u8 = 1;
pub(super) const END_OF_FILE: u8 = 2;
pub(super) const CHUNK_HEADER: u8 = 3;
pub(super) const LITTLE_ENDIAN: u8 = 0x42;
const BIG_ENDIAN: u8 = 0x23;
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
    let file = open_input(path).map_err(unreadable)?;
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
        LITTLE_ENDIAN => false,
        BIG_ENDIAN => true,
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

    /// Type of the next record. A new time before it is noted.
    pub(super) fn kind(&mut self, cursor: &mut Cursor<'_>) -> Result<u8, Flaw> {
        let kind = cursor.byte()?;
        if kind != TIMESTAMP {
            return Ok(kind);
        }
        self.time = cursor.word()?;
        cursor.byte()
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
