//! Walks over the files of an archive, chunk by chunk, and validates every byte before it is used.
//!
//! A file consists of chunks of one size; the last may be shorter. A chunk has a header (3, the byte order,
//! number of the first and last event), records, and a mark: 0 with padding up to the next chunk, or 2 at
//! the end of the file. In event files, 5 and eight bytes precede a record whenever the time has changed.
//!
//! Common events have a fast path: it parses an event in a window of fixed size without checks for the end
//! of the chunk, which is several times faster. Everything unusual is left to the general path, which also
//! reports errors.

#[cfg(any(test, feature = "libotf2"))]
pub(super) mod check;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use hopmap_model::open_input;

use super::archive_files::missing;
use super::record::{CUT_OFF, Cursor, Flaw};
use super::record_schema::{self, Field, Layout};
use super::visitor::Message;
use crate::error::TraceError;

pub(super) const END_OF_CHUNK: u8 = 0;
pub(super) const END_OF_BUFFER: u8 = 1;
pub(super) const END_OF_FILE: u8 = 2;
pub(super) const CHUNK_HEADER: u8 = 3;
pub(super) const LITTLE_ENDIAN: u8 = 0x42;
const BIG_ENDIAN: u8 = 0x23;
pub(super) const TIMESTAMP: u8 = 5;
pub(super) const ATTRIBUTE_LIST: u8 = 6;

/// Summary of an event file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct EventFile {
    /// Number of events.
    pub(super) events: u64,
    /// Number of events of unknown types.
    pub(super) unknown: u64,
    /// Earliest and latest time of the clock of the location.
    pub(super) span: Option<(u64, u64)>,
}

/// The time of the first event of a location by its own clock, if any.
pub(super) fn first_time(path: &Path, chunk_size: u64, location: u64) -> Result<Option<u64>, TraceError> {
    let mut first = None;
    walk_chunks(path, chunk_size, Some(location), &mut Vec::new(), |cursor| {
        let mut walk = EventWalk::default();
        if walk.begin(cursor)? > 0 {
            walk.kind(cursor)?;
            first = Some(walk.time);
        }
        Ok(Stop::Early)
    })?;
    Ok(first)
}

/// Where reading stops: at the end of a chunk, at the end of the file, or earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Chunk,
    File,
    /// Reading was aborted.
    Early,
}

impl Stop {
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

/// Walks over all chunks of a file, reading one at a time into a reusable buffer.
pub(super) fn walk_chunks(
    path: &Path,
    chunk_size: u64,
    location: Option<u64>,
    buffer: &mut Vec<u8>,
    mut walk: impl FnMut(&mut Cursor<'_>) -> Result<Stop, Flaw>,
) -> Result<(), TraceError> {
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => missing(path, location),
        _ => TraceError::unreadable(path, source),
    };
    let damaged = |offset, what| TraceError::Damaged { path: path.to_owned(), location, offset, what };
    let file = open_input(path).map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len().min(chunk_size);
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    if buffer.len() < size {
        buffer.resize(size, 0);
    }
    let mut start = 0;
    loop {
        let chunk = read_chunk(&file, &mut buffer[..size]).map_err(unreadable)?;
        if chunk.is_empty() {
            return Err(damaged(
                start,
                if start == 0 { "the file is empty" } else { "the file is truncated" },
            ));
        }
        let complete = chunk.len() as u64 == chunk_size;
        let mut cursor = Cursor::new(chunk);
        match walk(&mut cursor) {
            Ok(Stop::Chunk) if complete => start += chunk_size,
            Ok(Stop::Chunk) => return Err(damaged(start + chunk.len() as u64, "the file is truncated")),
            Ok(Stop::File) => {
                return nothing_follows(&file, cursor)
                    .map_err(unreadable)?
                    .map_err(|flaw| damaged(start + flaw.at as u64, flaw.what));
            }
            Ok(Stop::Early) => return Ok(()),
            Err(flaw) if flaw.what == CUT_OFF && !complete => {
                return Err(damaged(start + chunk.len() as u64, "the file is truncated"));
            }
            Err(flaw) => return Err(damaged(start + flaw.at as u64, flaw.what)),
        }
    }
}

/// Walks over the definitions in a file. Reports the type, the layout, and a cursor at the body of each.
pub(super) fn walk_definitions(
    path: &Path,
    chunk_size: u64,
    location: Option<u64>,
    buffer: &mut Vec<u8>,
    layout: fn(u8) -> Layout,
    mut visit: impl FnMut(u8, Layout, Cursor<'_>) -> Result<(), Flaw>,
) -> Result<(), TraceError> {
    walk_chunks(path, chunk_size, location, buffer, |cursor| {
        header(cursor)?;
        loop {
            let kind = cursor.byte()?;
            if let Some(end) = Stop::of(kind) {
                return Ok(end);
            }
            let (body, layout) = (*cursor, layout(kind));
            record(cursor, layout)?;
            visit(kind, layout, body)?;
        }
    })
}

/// The next bytes of a file, as many as fit.
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

/// Checks that only the end-of-buffer mark or padding is left in a file.
fn nothing_follows(mut file: &File, mut cursor: Cursor<'_>) -> io::Result<Result<(), Flaw>> {
    let padding = |byte: &u8| matches!(*byte, END_OF_CHUNK | END_OF_BUFFER);
    let rest = cursor.rest();
    cursor.at += rest.iter().take_while(|byte| padding(byte)).count();
    let at_end = cursor.rest().is_empty() && file.read(&mut [0])? == 0;
    Ok(if at_end { Ok(()) } else { Err(cursor.flaw("unexpected data after the end of the file")) })
}

/// Reads the header of a chunk: number of the first and of the last event.
pub(super) fn header(cursor: &mut Cursor<'_>) -> Result<(u64, u64), Flaw> {
    if cursor.byte()? != CHUNK_HEADER {
        return Err(Flaw { at: 0, what: "invalid start of a chunk" });
    }
    cursor.big_endian = match cursor.byte()? {
        LITTLE_ENDIAN => false,
        BIG_ENDIAN => true,
        _ => return Err(Flaw { at: 1, what: "invalid byte order of a chunk" }),
    };
    Ok((cursor.word()?, cursor.word()?))
}

/// Skips a record; returns whether its kind is known.
pub(super) fn record(cursor: &mut Cursor<'_>, layout: Layout) -> Result<bool, Flaw> {
    match layout {
        Layout::Single(Field::Int32) => cursor.skip_compressed(4)?,
        Layout::Single(field) => cursor.field(field)?,
        Layout::Record(fields) => cursor.record()?.fields(fields)?,
        Layout::Unknown => cursor.record().map(drop)?,
        Layout::Impossible => {
            cursor.at -= 1;
            return Err(cursor.flaw("invalid record type"));
        }
    }
    Ok(layout != Layout::Unknown)
}

/// The state of a walk over an event file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventWalk {
    pub(super) events: u64,
    pub(super) unknown: u64,
    /// Time of the following events.
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

    /// Starts a chunk; returns the number of its last event.
    pub(super) fn begin(&self, cursor: &mut Cursor<'_>) -> Result<u64, Flaw> {
        let (first, last) = header(cursor)?;
        if first != self.events + 1 {
            return Err(Flaw { at: 2, what: "the event numbers of a chunk are not consecutive" });
        }
        Ok(last)
    }

    /// Checks that a chunk ends with its last event.
    pub(super) fn complete(&self, last: u64) -> Result<(), Flaw> {
        if last == self.events {
            return Ok(());
        }
        Err(Flaw { at: 10, what: "wrong number of events in a chunk" })
    }

    /// Type of the next record, after updating the time.
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

    /// The last counted event.
    pub(super) fn moment(&self) -> Moment {
        Moment { event: self.events, time: self.time, last: self.last }
    }
}

pub(crate) const ENTER: u8 = 12;
pub(crate) const LEAVE: u8 = 13;
pub(crate) const MPI_SEND: u8 = 14;
pub(in crate::otf2) const MPI_ISEND: u8 = 15;
pub(in crate::otf2) const MPI_ISEND_COMPLETE: u8 = 16;
pub(in crate::otf2) const MPI_IRECV_REQUEST: u8 = 17;
pub(crate) const MPI_RECV: u8 = 18;
pub(in crate::otf2) const MPI_IRECV: u8 = 19;

/// Events on the fast path take at most 9 bytes for the time, 2 for type and length, 3 numbers of 5 and 2 of
/// 9.
const WINDOW: usize = 64;
/// Rest of a window after the time.
const BODY: usize = WINDOW - 9;

/// Number and time of the current event.
#[derive(Debug, Clone, Copy)]
pub(in crate::otf2) struct Moment {
    /// Its number, counted from one.
    pub(in crate::otf2) event: u64,
    /// Its time by the clock of the location.
    pub(in crate::otf2) time: u64,
    /// The latest time of all events up to it.
    pub(in crate::otf2) last: u64,
}

/// Receives the common events. Ids are those of the location.
pub(in crate::otf2) trait Listener {
    /// Whether it wants receive events.
    const RECEIVES: bool;

    /// Whether it wants an event that [`numbers`] could skip.
    fn asks_for(kind: u8) -> bool;

    /// A region is entered or left.
    fn region(&mut self, enter: bool, region: u32, moment: Moment);

    /// A message is sent.
    fn send(&mut self, message: Message, moment: Moment);

    /// A message is received.
    fn receive(&mut self, message: Message, moment: Moment);

    /// A send request completes, or a receive request is posted: the kind of the event and the request.
    fn request(&mut self, kind: u8, request: u64, moment: Moment);
}

/// Ignores all events: for the validation before libotf2 reads.
#[cfg(any(test, feature = "libotf2"))]
struct IgnoreAll;

#[cfg(any(test, feature = "libotf2"))]
impl Listener for IgnoreAll {
    const RECEIVES: bool = false;

    fn asks_for(_: u8) -> bool {
        false
    }

    fn region(&mut self, _: bool, _: u32, _: Moment) {}

    fn send(&mut self, _: Message, _: Moment) {}

    fn receive(&mut self, _: Message, _: Moment) {}

    fn request(&mut self, _: u8, _: u64, _: Moment) {}
}

/// Passes and reports events up to the first unusual one or near the end. Returns the number of bytes.
// Not inlined, to leave all registers to the loop.
#[inline(never)]
pub(in crate::otf2) fn pass<L: Listener>(bytes: &[u8], walk: &mut EventWalk, listener: &mut L) -> usize {
    // The first event, and times that decrease, are left to the general path.
    if walk.events == 0 || walk.time < walk.last {
        return 0;
    }
    let (mut events, mut last) = (walk.events, walk.time);
    let mut rest = bytes;
    while let Some((time, behind)) = event(rest, (events, last), listener) {
        events += 1;
        (last, rest) = (time, behind);
    }
    (walk.events, walk.time, walk.last) = (events, last, last);
    bytes.len() - rest.len()
}

/// Passes and reports an event. Returns its time and the rest, or `None` without any effect if it is
/// unusual. `events` precede it, the last of them at time `last`.
#[expect(clippy::inline_always, reason = "it is the loop over all events")]
#[inline(always)]
fn event<'a, L: Listener>(
    bytes: &'a [u8],
    (events, last): (u64, u64),
    listener: &mut L,
) -> Option<(u64, &'a [u8])> {
    let window = bytes.first_chunk::<WINDOW>()?;
    match window.first_chunk::<9>()? {
        [TIMESTAMP, word @ ..] => {
            let time = u64::from_le_bytes(*word);
            if time < last { None } else { event_at::<9, L>(bytes, (events, time), listener) }
        }
        _ => event_at_once(bytes, (events, last), listener),
    }
}

/// The same for an event at the time of the previous one.
#[inline(never)]
fn event_at_once<'a, L: Listener>(
    bytes: &'a [u8],
    (events, time): (u64, u64),
    listener: &mut L,
) -> Option<(u64, &'a [u8])> {
    event_at::<0, L>(bytes, (events, time), listener)
}

/// The same for an event at a given time that starts `START` bytes into the window.
#[expect(clippy::inline_always, reason = "it is the loop over all events")]
#[inline(always)]
fn event_at<'a, const START: usize, L: Listener>(
    bytes: &'a [u8],
    (events, time): (u64, u64),
    listener: &mut L,
) -> Option<(u64, &'a [u8])> {
    let moment = Moment { event: events + 1, time, last: time };
    let body = bytes.get(START..)?.first_chunk::<BODY>()?;
    let [kind, _, number, ..] = *body;
    // The most frequent events. Compares both bytes at once.
    if u16::from_le_bytes(*body.first_chunk()?) & 0xfffe == u16::from_le_bytes([ENTER, 1]) {
        let behind = bytes.get(START + 3..)?;
        listener.region(kind == ENTER, number.into(), moment);
        return Some((time, behind));
    }
    let behind = |used: usize| bytes.get(START + used..);
    match kind {
        ENTER | LEAVE => {
            let (region, used) = number32(body, 1)?;
            let behind = behind(used)?;
            listener.region(kind == ENTER, region, moment);
            Some((time, behind))
        }
        MPI_SEND | MPI_ISEND => {
            let (message, used) = message(body, kind)?;
            let behind = behind(used)?;
            listener.send(message, moment);
            Some((time, behind))
        }
        MPI_RECV | MPI_IRECV => {
            let (message, used) = message(body, kind)?;
            let behind = behind(used)?;
            if L::RECEIVES {
                listener.receive(message, moment);
            }
            Some((time, behind))
        }
        MPI_ISEND_COMPLETE | MPI_IRECV_REQUEST => {
            let (request, used) = number64(body, 1)?;
            let behind = behind(used)?;
            listener.request(kind, request, moment);
            Some((time, behind))
        }
        kind if L::asks_for(kind) => None,
        _ => Some((time, numbers(behind(0)?)?)),
    }
}

/// A number of 32 bits with a length byte at an offset, and the offset after it.
#[inline]
fn number32(body: &[u8; BODY], at: usize) -> Option<(u32, usize)> {
    let (&length, rest) = body.get(at..)?.split_first()?;
    let bytes = u32::from_le_bytes(*rest.first_chunk::<4>()?);
    let mask = *[0, 0xff, 0xffff, 0xff_ffff, u32::MAX].get(usize::from(length))?;
    Some((bytes & mask, at + 1 + usize::from(length)))
}

/// The same for 64 bits.
#[inline]
fn number64(body: &[u8; BODY], at: usize) -> Option<(u64, usize)> {
    const MASKS: [u64; 9] =
        [0, 0xff, 0xffff, 0xff_ffff, 0xffff_ffff, u64::MAX >> 24, u64::MAX >> 16, u64::MAX >> 8, u64::MAX];
    let (&length, rest) = body.get(at..)?.split_first()?;
    let bytes = u64::from_le_bytes(*rest.first_chunk::<8>()?);
    let mask = *MASKS.get(usize::from(length))?;
    Some((bytes & mask, at + 1 + usize::from(length)))
}

/// A message after its type, and the offset after it.
#[inline]
fn message(body: &[u8; BODY], kind: u8) -> Option<(Message, usize)> {
    let end = 2 + usize::from(body[1]);
    let (peer, at) = number32(body, 2)?;
    let (communicator, at) = number32(body, at)?;
    let (tag, at) = number32(body, at)?;
    let (bytes, mut at) = number64(body, at)?;
    let mut request = None;
    if kind & 1 == 1 {
        let (number, behind) = number64(body, at)?;
        (request, at) = (Some(number), behind);
    }
    (at <= end && end <= BODY).then_some((Message { peer, communicator, tag, bytes, request }, end))
}

/// The rest after an event that consists of compressed numbers only.
fn numbers(bytes: &[u8]) -> Option<&[u8]> {
    let (&kind, mut rest) = bytes.split_first()?;
    let numbers = record_schema::NUMBERS[usize::from(kind)].as_ref()?;
    let mut behind = None;
    if numbers.length {
        let (&length, record) = rest.split_first().filter(|(length, _)| **length != u8::MAX)?;
        let (record, after) = record.split_at_checked(usize::from(length))?;
        (rest, behind) = (record, Some(after));
    }
    for &most in numbers.most() {
        let (&length, digits) = rest.split_first()?;
        let length = if length == u8::MAX { 0 } else { length };
        if length > most {
            return None;
        }
        rest = digits.get(usize::from(length)..)?;
    }
    Some(behind.unwrap_or(rest))
}

/// Bytes of valid and invalid events.
#[cfg(test)]
pub(in crate::otf2) fn some_events() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    use proptest::prelude::*;

    let number = |most: usize| {
        let digits = prop::collection::vec(any::<u8>(), 0..=most);
        digits.prop_map(|digits| [&[digits.len() as u8][..], &digits].concat())
    };
    let with_length = |attributes: Vec<u8>| [&[attributes.len() as u8][..], &attributes].concat();
    let single = (prop::sample::select(vec![ENTER, LEAVE, MPI_ISEND_COMPLETE, MPI_IRECV_REQUEST]), number(4));
    let numbers = (number(4), number(4), number(4), number(8), number(8));
    let message = (MPI_SEND..=MPI_IRECV, numbers, any::<bool>());
    let event = prop_oneof![
        4 => single.prop_map(|(kind, number)| [vec![kind], number].concat()),
        4 => message.prop_map(move |(kind, (a, b, c, d, e), valid)| {
            let request = if valid || kind & 1 == 1 { e } else { Vec::new() };
            [vec![kind], with_length([a, b, c, d, request].concat())].concat()
        }),
        1 => (10u8..92, prop::collection::vec(prop_oneof![0u8..9, any::<u8>()], 0..40))
            .prop_map(|(kind, bytes)| [vec![kind], bytes].concat()),
    ];
    let time = prop_oneof![
        3 => (50u64..60).prop_map(|time| [&[TIMESTAMP][..], &time.to_le_bytes()].concat()),
        1 => Just(Vec::new())
    ];
    let events = prop::collection::vec((time, event).prop_map(|(time, event)| [time, event].concat()), 0..8);
    // Padding, to keep away from the end.
    events.prop_map(|events| [events.concat(), vec![0; WINDOW]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_fast_path_reports_the_same_events_as_the_general_path(bytes in some_events(), time in 48u64..58, later in 0u64..2) {
            let walk = EventWalk { events: 1, unknown: 0, time, first: time, last: time + later };
            let (mut fast, mut slow) = (walk, walk);
            let passed = pass(&bytes, &mut fast, &mut IgnoreAll);
            let mut cursor = Cursor::new(&bytes);
            while cursor.at < passed {
                let kind = slow.kind(&mut cursor);
                prop_assert_eq!(kind.and_then(|kind| slow.event(&mut cursor, kind)), Ok(()));
            }
            prop_assert_eq!((cursor.at, slow), (passed, fast));
        }
    }

    #[test]
    fn common_events_take_the_fast_path() {
        let mut walk = EventWalk { events: 1, unknown: 0, time: 5, first: 5, last: 5 };
        let enter = [&[TIMESTAMP][..], &7u64.to_le_bytes(), &[ENTER, 1, 3]].concat();
        let send = [14, 6, 1, 3, 0, 0, 1, 8];
        let bytes = [&enter[..], &send, &[0; WINDOW]].concat();
        assert_eq!(pass(&bytes, &mut walk, &mut IgnoreAll), enter.len() + send.len());
        assert_eq!(walk, EventWalk { events: 3, unknown: 0, time: 7, first: 5, last: 7 });
    }
}
