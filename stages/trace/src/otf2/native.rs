//! Reads event files without libotf2: one pass that checks every byte and tells a visitor what matters.
//!
//! What the records mean is what libotf2 3.0.2 takes them for (`OTF2_EvtReader_inc.c`), also where ids are translated
//! and times corrected. Where it passes over something that a later version of the format added, this reader stops
//! and says so: only libotf2 may know.

use std::collections::HashMap;
use std::path::Path;

use super::layouts;
use super::local_definitions::LocalDefinitions;
use super::record::{Cursor, Flaw};
use super::structure::{self, ATTRIBUTE_LIST, End, EventFile, EventWalk, TIMESTAMP};
use super::visitor::{Access, Collective, Event, Message, Through, Visitor, region_of};
use crate::Otf2Error;

const BUFFER_FLUSH: u8 = 10;
const ENTER: u8 = 12;
const LEAVE: u8 = 13;
const MPI_SEND: u8 = 14;
const MPI_ISEND: u8 = 15;
const MPI_ISEND_COMPLETE: u8 = 16;
const MPI_IRECV_REQUEST: u8 = 17;
const MPI_RECV: u8 = 18;
const MPI_IRECV: u8 = 19;
const MPI_COLLECTIVE_END: u8 = 23;
const RMA_COLLECTIVE_END: u8 = 38;
const RMA_PUT: u8 = 46;
const RMA_GET: u8 = 47;
const RMA_ATOMIC: u8 = 48;
const CALLING_CONTEXT_ENTER: u8 = 66;
const CALLING_CONTEXT_LEAVE: u8 = 67;
const NON_BLOCKING_COLLECTIVE_REQUEST: u8 = 85;
const NON_BLOCKING_COLLECTIVE_COMPLETE: u8 = 86;

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

/// Tells a visitor the events of a location, chunk by chunk, until `stop` says so. `contexts` has the region of every
/// calling context.
pub(super) fn read_events<V: Visitor>(
    path: &Path,
    (location, chunk_size): (u64, u64),
    definitions: (&LocalDefinitions, &HashMap<u32, u32>),
    visitor: &mut V,
    buffer: &mut Vec<u8>,
    stop: impl Fn() -> bool,
) -> Result<Ended, Otf2Error> {
    let mut events = Events::new(definitions, visitor);
    let mut stopped = false;
    structure::walk_chunks(path, chunk_size, Some(location), buffer, |cursor| {
        stopped = stop();
        if stopped { Ok(End::Early) } else { events.chunk(cursor) }
    })?;
    let file = events.walk.file();
    let unknown =
        if definitions.0.unknown { Some("definitions") } else { (file.unknown > 0).then_some("events") };
    match unknown {
        _ if stopped => Ok(Ended::Early),
        Some(what) => Err(Otf2Error::Unknown { path: path.to_owned(), location, what }),
        None => Ok(Ended::Complete(file)),
    }
}

/// The way through an event file, and who is told of it.
struct Events<'a, V> {
    walk: EventWalk,
    /// The latest time that a correction of the clock has been asked for.
    furthest: u64,
    definitions: &'a LocalDefinitions,
    contexts: &'a HashMap<u32, u32>,
    visitor: &'a mut V,
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

/// A message whose length stands at some place of a window, and the place behind it.
#[inline]
fn message(window: &[u8; WINDOW], kind: u8, at: usize) -> Option<(Message, usize)> {
    let end = at + 1 + usize::from(*window.get(at)?);
    let (peer, at) = number32(window, at + 1)?;
    let (communicator, at) = number32(window, at)?;
    let (tag, at) = number32(window, at)?;
    let (bytes, mut at) = number64(window, at)?;
    let mut request = None;
    if kind & 1 == 1 {
        let (number, behind) = number64(window, at)?;
        (request, at) = (Some(number), behind);
    }
    (at <= end && end <= WINDOW).then_some((Message { peer, communicator, tag, bytes, request }, end))
}

/// Whether an event matters that consists of numbers only, but is not on the short way.
#[inline]
fn is_rare<V: Visitor>(kind: u8) -> bool {
    match kind {
        MPI_ISEND_COMPLETE | MPI_IRECV_REQUEST => V::BOTH_ENDS,
        CALLING_CONTEXT_ENTER
        | CALLING_CONTEXT_LEAVE
        | RMA_PUT
        | RMA_GET
        | NON_BLOCKING_COLLECTIVE_REQUEST => true,
        _ => false,
    }
}

impl<'a, V: Visitor> Events<'a, V> {
    fn new(
        (definitions, contexts): (&'a LocalDefinitions, &'a HashMap<u32, u32>),
        visitor: &'a mut V,
    ) -> Self {
        let mut events = Self {
            walk: EventWalk::default(),
            furthest: 0,
            definitions,
            contexts,
            visitor,
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
                    let Some((message, end)) = message(window, kind, start + 1) else { break };
                    at += end;
                    walk.time = time;
                    walk.count();
                    self.send(message, &walk);
                }
                kind @ (MPI_RECV | MPI_IRECV) => {
                    let Some((message, end)) = message(window, kind, start + 1) else { break };
                    at += end;
                    walk.time = time;
                    walk.count();
                    if V::BOTH_ENDS {
                        self.receive(message, &walk);
                    }
                }
                kind if is_rare::<V>(kind) => break,
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
            MPI_SEND | MPI_ISEND => self.send(read_message(body, kind)?, &walk),
            CALLING_CONTEXT_ENTER | CALLING_CONTEXT_LEAVE => {
                let context = body.record()?.compressed(4)? as u32;
                self.calling_context(kind == CALLING_CONTEXT_ENTER, context);
            }
            // libotf2 corrects the time at which the flush ended, and never goes back to the measurements before it.
            BUFFER_FLUSH => self.furthest = self.furthest.max(body.record()?.word()?),
            MPI_RECV | MPI_IRECV if V::BOTH_ENDS => self.receive(read_message(body, kind)?, &walk),
            MPI_ISEND_COMPLETE if V::BOTH_ENDS => self.tell(Event::SendCompleted(body.compressed(8)?), &walk),
            MPI_IRECV_REQUEST if V::BOTH_ENDS => self.tell(Event::ReceivePosted(body.compressed(8)?), &walk),
            NON_BLOCKING_COLLECTIVE_REQUEST => {
                self.tell(Event::CollectivePosted(body.record()?.compressed(8)?), &walk);
            }
            MPI_COLLECTIVE_END | NON_BLOCKING_COLLECTIVE_COMPLETE | RMA_COLLECTIVE_END => {
                self.collective(kind, body.record()?, &walk)?;
            }
            RMA_PUT | RMA_GET | RMA_ATOMIC => self.access(kind, body.record()?, &walk)?,
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
            self.visitor.enter(place, time);
        } else {
            self.visitor.leave(place, time);
        }
    }

    #[cold]
    fn find_place(&mut self, region: u32) -> u32 {
        let global = self.definitions.regions.as_ref().map_or(region, |map| map.global(region));
        let place = self.visitor.place(global);
        if region < DIRECT {
            let length = self.places.len().max(region as usize + 1);
            self.places.resize(length, NO_PLACE);
            self.places[region as usize] = place;
        }
        place
    }

    fn calling_context(&mut self, enter: bool, context: u32) {
        let global = self.definitions.calling_contexts.as_ref().map_or(context, |map| map.global(context));
        let place = self.visitor.place(region_of(self.contexts, global));
        let walk = self.walk;
        self.enter_or_leave_at(enter, place, &walk);
    }

    /// Communicator of a message, by its id in the archive.
    #[inline]
    fn translate(&mut self, communicator: u32) -> u32 {
        if communicator != self.communicator.0 {
            self.communicator = (communicator, self.global_communicator(communicator));
        }
        self.communicator.1
    }

    #[inline]
    fn send(&mut self, message: Message, walk: &EventWalk) {
        let communicator = self.translate(message.communicator);
        // Damage that follows says more than what is wrong with an event, so the walk goes on.
        if self.visitor.bad_event().is_none() {
            let (clock, furthest) = (&self.definitions.clock, self.furthest);
            let time = || clock.correct_after(walk.time, furthest.max(walk.last));
            self.visitor.send(walk.events, Message { communicator, ..message }, time);
        }
    }

    fn receive(&mut self, message: Message, walk: &EventWalk) {
        let communicator = self.translate(message.communicator);
        self.tell(Event::Received(Message { communicator, ..message }), walk);
    }

    fn tell(&mut self, event: Event, walk: &EventWalk) {
        if self.visitor.bad_event().is_none() {
            let (clock, furthest) = (&self.definitions.clock, self.furthest);
            let time = || clock.correct_after(walk.time, furthest.max(walk.last));
            self.visitor.event(walk.events, event, time);
        }
    }

    fn window(&self, local: u32) -> u32 {
        self.definitions.windows.as_ref().map_or(local, |map| map.global(local))
    }

    fn collective(&mut self, kind: u8, mut record: Cursor<'_>, walk: &EventWalk) -> Result<(), Flaw> {
        let operation = record.byte()?;
        let through = match kind {
            RMA_COLLECTIVE_END => {
                // What it synchronises.
                record.compressed(4)?;
                Through::Window(self.window(record.compressed(4)? as u32))
            }
            _ => Through::Communicator(self.global_communicator(record.compressed(4)? as u32)),
        };
        let root = record.compressed(4)? as u32;
        let (sent, received) = (record.compressed(8)?, record.compressed(8)?);
        let request = match kind {
            NON_BLOCKING_COLLECTIVE_COMPLETE => Some(record.compressed(8)?),
            _ => None,
        };
        self.tell(Event::Collective(Collective { operation, through, root, sent, received }, request), walk);
        Ok(())
    }

    fn access(&mut self, kind: u8, mut record: Cursor<'_>, walk: &EventWalk) -> Result<(), Flaw> {
        let (window, remote) = (record.compressed(4)? as u32, record.compressed(4)? as u32);
        let (put, got) = match kind {
            RMA_PUT => (Some(record.compressed(8)?), None),
            RMA_GET => (None, Some(record.compressed(8)?)),
            _ => {
                record.byte()?;
                (Some(record.compressed(8)?), Some(record.compressed(8)?))
            }
        };
        self.tell(Event::Access(Access { window: self.window(window), remote, put, got }), walk);
        Ok(())
    }
}

/// Reads a message whose structure was checked before.
fn read_message(mut body: Cursor<'_>, kind: u8) -> Result<Message, Flaw> {
    let mut record = body.record()?;
    let (peer, communicator) = (record.compressed(4)? as u32, record.compressed(4)? as u32);
    let (tag, bytes) = (record.compressed(4)? as u32, record.compressed(8)?);
    let request = if kind & 1 == 1 { Some(record.compressed(8)?) } else { None };
    Ok(Message { peer, communicator, tag, bytes, request })
}
