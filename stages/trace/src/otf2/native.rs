//! Reads event files without libotf2: one pass that checks every byte and counts what matters.
//!
//! What the records mean is what libotf2 3.0.2 takes them for (`OTF2_EvtReader_inc.c`), also where ids are translated
//! and times corrected. Where it passes over something that a later version of the format added, this reader stops
//! and says so: only libotf2 may know.

use std::path::Path;

use super::layouts;
use super::local_definitions::LocalDefinitions;
use super::record::{Cursor, Flaw};
use super::structure::{self, ATTRIBUTE_LIST, End, EventFile, EventWalk, TIMESTAMP};
use super::tally::Tally;
use crate::Otf2Error;

const BUFFER_FLUSH: u8 = 10;
const ENTER: u8 = 12;
const LEAVE: u8 = 13;
const MPI_SEND: u8 = 14;
const MPI_ISEND: u8 = 15;
const MPI_RECV: u8 = 18;
const MPI_IRECV: u8 = 19;
const CALLING_CONTEXT_ENTER: u8 = 66;
const CALLING_CONTEXT_LEAVE: u8 = 67;

/// The events on the short way are looked at through a window of so many bytes: the longest takes 9 for the time,
/// 2 for type and length, and 5 numbers of 9.
const WINDOW: usize = 64;

/// Regions with ids below this are found by their id.
const DIRECT: u32 = 1 << 12;
/// The place of a region that did not come yet.
const NO_PLACE: u32 = u32::MAX;

/// How the reading of an event file ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// With its last event.
    Complete(EventFile),
    /// It was asked to stop.
    Early,
}

/// Reads the events of a location into a tally, chunk by chunk, until `stop` says so.
pub(super) fn read_events(
    path: &Path,
    (location, chunk_size): (u64, u64),
    definitions: &LocalDefinitions,
    tally: &mut Tally<'_>,
    buffer: &mut Vec<u8>,
    stop: impl Fn() -> bool,
) -> Result<Ended, Otf2Error> {
    let mut events = Events::new(definitions, tally);
    let mut stopped = false;
    structure::walk_chunks(path, chunk_size, Some(location), buffer, |cursor| {
        stopped = stop();
        if stopped { Ok(End::Early) } else { events.chunk(cursor) }
    })?;
    let file = events.walk.file();
    let unknown =
        if definitions.unknown { Some("definitions") } else { (file.unknown > 0).then_some("events") };
    match unknown {
        _ if stopped => Ok(Ended::Early),
        Some(what) => Err(Otf2Error::Unknown { path: path.to_owned(), location, what }),
        None => Ok(Ended::Complete(file)),
    }
}

/// The way through an event file, and what is counted on it.
struct Events<'a, 'b> {
    walk: EventWalk,
    /// The latest time that a correction of the clock has been asked for.
    furthest: u64,
    definitions: &'a LocalDefinitions,
    tally: &'a mut Tally<'b>,
    /// Places of regions on the call stack, by local id.
    places: Vec<u32>,
    /// The communicator of the last message, by its local and its global id.
    communicator: (u32, u32),
}

/// A number of 32 bits in a length byte and up to four bytes at some place of a window, and the place behind it.
#[inline]
fn number32(window: &[u8; WINDOW], at: usize) -> Option<(u32, usize)> {
    let (&length, rest) = window.get(at..)?.split_first()?;
    let bytes = u32::from_le_bytes(*rest.first_chunk::<4>()?);
    let mask = *[0, 0xff, 0xffff, 0xff_ffff, u32::MAX].get(usize::from(length))?;
    Some((bytes & mask, at + 1 + usize::from(length)))
}

/// The same of 64 bits.
#[inline]
fn number64(window: &[u8; WINDOW], at: usize) -> Option<(u64, usize)> {
    let (&length, rest) = window.get(at..)?.split_first()?;
    let bytes = u64::from_le_bytes(*rest.first_chunk::<8>()?);
    let unused = 8u32.checked_sub(u32::from(length))?;
    let mask = u64::MAX.checked_shr(8 * unused).unwrap_or(0);
    Some((bytes & mask, at + 1 + usize::from(length)))
}

/// A message on the short way.
struct Message {
    receiver: u32,
    communicator: u32,
    bytes: u64,
    /// Place behind the record.
    end: usize,
}

/// A message whose length stands at some place of a window.
#[inline]
fn message(window: &[u8; WINDOW], kind: u8, at: usize) -> Option<Message> {
    let end = at + 1 + usize::from(*window.get(at)?);
    let (receiver, at) = number32(window, at + 1)?;
    let (communicator, at) = number32(window, at)?;
    let (_, at) = number32(window, at)?;
    let (bytes, mut at) = number64(window, at)?;
    if kind & 1 == 1 {
        // The request.
        (_, at) = number64(window, at)?;
    }
    (at <= end && end <= WINDOW).then_some(Message { receiver, communicator, bytes, end })
}

impl<'a, 'b> Events<'a, 'b> {
    fn new(definitions: &'a LocalDefinitions, tally: &'a mut Tally<'b>) -> Self {
        let mut events = Self {
            walk: EventWalk::default(),
            furthest: 0,
            definitions,
            tally,
            places: Vec::new(),
            communicator: (0, 0),
        };
        events.communicator.1 = events.global_communicator(0);
        events
    }

    fn global_communicator(&self, local: u32) -> u32 {
        self.definitions.communicators.as_ref().map_or(local, |map| map.global(local))
    }

    fn chunk(&mut self, cursor: &mut Cursor<'_>) -> Result<End, Flaw> {
        let last = self.walk.begin(cursor)?;
        let end = self.events(cursor)?;
        self.walk.complete(last)?;
        Ok(end)
    }

    fn events(&mut self, cursor: &mut Cursor<'_>) -> Result<End, Flaw> {
        loop {
            if !cursor.big_endian {
                cursor.at += self.short_way(cursor.rest());
            }
            let mut kind = self.walk.kind(cursor)?;
            if let Some(end) = End::of(kind) {
                return Ok(end);
            }
            if kind == ATTRIBUTE_LIST {
                cursor.record()?.attribute_list()?;
                kind = self.walk.kind(cursor)?;
                if kind == ATTRIBUTE_LIST || End::of(kind).is_some() {
                    cursor.at -= 1;
                    return Err(cursor.flaw("attributes stand before no event"));
                }
            }
            self.event(cursor, kind)?;
        }
    }

    /// Passes the events that most of a trace consists of, until there is another one, anything is unusual or the
    /// end is near. Tells how many bytes it passed.
    fn short_way(&mut self, bytes: &[u8]) -> usize {
        // A copy stays in registers.
        let mut walk = self.walk;
        let mut at = 0;
        while let Some(window) = bytes.get(at..).and_then(|rest| rest.first_chunk::<WINDOW>()) {
            let (time, start) = match window.first_chunk::<9>() {
                Some(&[TIMESTAMP, ref word @ ..]) => (u64::from_le_bytes(*word), 9),
                _ => (walk.time, 0),
            };
            match window[start] {
                kind @ (ENTER | LEAVE) => {
                    let Some((region, end)) = number32(window, start + 1) else { break };
                    at += end;
                    walk.time = time;
                    walk.count();
                    self.enter_or_leave(kind == ENTER, region, &walk);
                }
                kind @ (MPI_SEND | MPI_ISEND) => {
                    let Some(message) = message(window, kind, start + 1) else { break };
                    at += message.end;
                    walk.time = time;
                    walk.count();
                    self.send(walk.events, message.communicator, message.receiver, message.bytes);
                }
                kind @ (MPI_RECV | MPI_IRECV) => {
                    let Some(message) = message(window, kind, start + 1) else { break };
                    at += message.end;
                    walk.time = time;
                    walk.count();
                }
                CALLING_CONTEXT_ENTER | CALLING_CONTEXT_LEAVE => break,
                _ => {
                    let rest = bytes.get(at..).unwrap_or_default();
                    let Some((_, behind)) = structure::numbers(rest, false) else { break };
                    at += rest.len() - behind.len();
                    walk.time = time;
                    walk.count();
                }
            }
        }
        self.walk = walk;
        at
    }

    /// Passes and counts any event.
    fn event(&mut self, cursor: &mut Cursor<'_>, kind: u8) -> Result<(), Flaw> {
        let mut body = *cursor;
        let known = structure::record(cursor, layouts::event(kind))?;
        self.walk.unknown += u64::from(!known);
        self.walk.count();
        let walk = self.walk;
        match kind {
            ENTER | LEAVE => {
                let region = body.compressed(4)? as u32;
                self.enter_or_leave(kind == ENTER, region, &walk);
            }
            MPI_SEND | MPI_ISEND => {
                let mut record = body.record()?;
                let (receiver, communicator) = (record.compressed(4)? as u32, record.compressed(4)? as u32);
                record.compressed(4)?;
                self.send(walk.events, communicator, receiver, record.compressed(8)?);
            }
            CALLING_CONTEXT_ENTER | CALLING_CONTEXT_LEAVE => {
                let context = body.record()?.compressed(4)? as u32;
                self.calling_context(kind == CALLING_CONTEXT_ENTER, context);
            }
            // libotf2 corrects the time at which the flush ended, and never goes back to the measurements before it.
            BUFFER_FLUSH => self.furthest = self.furthest.max(body.record()?.word()?),
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn enter_or_leave(&mut self, enter: bool, region: u32, walk: &EventWalk) {
        let place = match self.places.get(region as usize) {
            Some(&place) if place != NO_PLACE => place,
            _ => self.find_place(region),
        };
        self.enter_or_leave_at(enter, place, walk);
    }

    #[inline]
    fn enter_or_leave_at(&mut self, enter: bool, place: u32, walk: &EventWalk) {
        let (clock, furthest) = (&self.definitions.clock, self.furthest);
        let time = || clock.correct_after(walk.time, furthest.max(walk.last));
        if enter {
            self.tally.stack.enter_at(place, time);
        } else {
            self.tally.stack.leave_at(place, time);
        }
    }

    #[cold]
    fn find_place(&mut self, region: u32) -> u32 {
        let global = self.definitions.regions.as_ref().map_or(region, |map| map.global(region));
        let place = self.tally.stack.place(global);
        if region < DIRECT {
            let length = self.places.len().max(region as usize + 1);
            self.places.resize(length, NO_PLACE);
            self.places[region as usize] = place;
        }
        place
    }

    fn calling_context(&mut self, enter: bool, context: u32) {
        let global = self.definitions.calling_contexts.as_ref().map_or(context, |map| map.global(context));
        let place = self.tally.stack.place(self.tally.region_of(global));
        let walk = self.walk;
        self.enter_or_leave_at(enter, place, &walk);
    }

    #[inline]
    fn send(&mut self, event: u64, communicator: u32, receiver: u32, bytes: u64) {
        if communicator != self.communicator.0 {
            self.communicator = (communicator, self.global_communicator(communicator));
        }
        // Damage that follows says more than what is wrong with an event, so the walk goes on.
        if self.tally.bad_event.is_none() {
            self.tally.send(event, self.communicator.1, receiver, bytes);
        }
    }
}
