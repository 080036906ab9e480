//! Native reader of event files: one pass that validates every byte and reports relevant events to a
//! visitor.
//!
//! Records are interpreted as in libotf2 3.0.2 (`OTF2_EvtReader_inc.c`), including id translation and clock
//! correction. Where libotf2 skips something that a later version of the format added, this reader fails
//! instead, because only libotf2 may know it.

use std::collections::HashMap;
use std::path::Path;

use super::local_definitions::{ClockOffsets, LocalDefinitions};
use super::record::{Cursor, Flaw};
use super::record_schema;
use super::structure::{
    self, ATTRIBUTE_LIST, ENTER, EventFile, EventWalk, LEAVE, Listener, MPI_IRECV, MPI_IRECV_REQUEST,
    MPI_ISEND, MPI_ISEND_COMPLETE, MPI_RECV, MPI_SEND, Moment, Stop,
};
use super::visitor::{Access, Collective, Event, Message, Through, Visitor, region_of};
use crate::error::TraceError;

const BUFFER_FLUSH: u8 = 10;
const MPI_REQUEST_CANCELLED: u8 = 21;
const MPI_COLLECTIVE_END: u8 = 23;
const RMA_COLLECTIVE_END: u8 = 38;
const RMA_PUT: u8 = 46;
const RMA_GET: u8 = 47;
const RMA_ATOMIC: u8 = 48;
const CALLING_CONTEXT_ENTER: u8 = 66;
const CALLING_CONTEXT_LEAVE: u8 = 67;
const NON_BLOCKING_COLLECTIVE_REQUEST: u8 = 85;
const NON_BLOCKING_COLLECTIVE_COMPLETE: u8 = 86;

/// Number of cached region indices, by the lowest bits of the region id; a power of two.
const REMEMBERED: usize = 1 << 9;
/// An empty cache: each id is in a slot of other ids.
const NO_PLACES: [(u32, u32); REMEMBERED] = {
    let mut places = [(0, 0); REMEMBERED];
    places[0].0 = 1;
    places
};

/// Result of reading an event file.
#[derive(Debug)]
pub(super) enum ReadStatus {
    /// Read to the last event.
    Complete(EventFile),
    /// Read to the last event before damage.
    Cut(EventFile, Box<TraceError>),
    /// Interrupted.
    Early,
}

/// Reports the events of a location to a visitor, chunk by chunk, until `stop` is set. `contexts` has the
/// region of every calling context.
pub(super) fn read_events<V: Visitor>(
    path: &Path,
    (location, chunk_size): (u64, u64),
    definitions: (&LocalDefinitions, &HashMap<u32, u32>),
    visitor: &mut V,
    buffer: &mut Vec<u8>,
    stop: impl Fn() -> bool,
) -> Result<ReadStatus, TraceError> {
    let mut events =
        Events { walk: EventWalk::default(), context: CallbackContext::new(definitions, visitor) };
    let mut stopped = false;
    let walked = structure::walk_chunks(path, chunk_size, Some(location), buffer, |cursor| {
        stopped = stop();
        if stopped { Ok(Stop::Early) } else { events.chunk(cursor) }
    });
    let file = events.walk.file();
    let damage = match walked {
        Ok(()) => None,
        Err(damage @ TraceError::Damaged { .. }) => Some(damage),
        Err(other) => return Err(other),
    };
    let unknown =
        if definitions.0.unknown { Some("definitions") } else { (file.unknown > 0).then_some("events") };
    match unknown {
        _ if stopped => Ok(ReadStatus::Early),
        // Damage takes precedence over unknown records before it.
        _ if let Some(damage) = damage => Ok(ReadStatus::Cut(file, Box::new(damage))),
        Some(what) => Err(TraceError::Unknown { path: path.to_owned(), location, what }),
        None => Ok(ReadStatus::Complete(file)),
    }
}

/// The state of reading an event file, and the visitor.
struct Events<'a, V> {
    walk: EventWalk,
    context: CallbackContext<'a, V>,
}

/// Conversion from the clock of the location to that of the archive.
struct Times<'a> {
    /// `None` if the clocks agree.
    clock: Option<&'a ClockOffsets>,
    /// The latest corrected time that is not the time of an event.
    furthest: u64,
}

impl Times<'_> {
    #[inline]
    fn of(&self, moment: Moment) -> u64 {
        let corrected =
            |clock: &ClockOffsets| clock.correct_after(moment.time, self.furthest.max(moment.last));
        self.clock.map_or(moment.time, corrected)
    }
}

/// Reports the events of a location to a visitor, with the ids and times of the archive.
struct CallbackContext<'a, V> {
    times: Times<'a>,
    definitions: &'a LocalDefinitions,
    contexts: &'a HashMap<u32, u32>,
    visitor: &'a mut V,
    /// Local ids and indices of regions, by the lowest bits of the id.
    places: [(u32, u32); REMEMBERED],
    /// The communicator of the last message: local and global id.
    communicator: (u32, u32),
}

impl<V: Visitor> Events<'_, V> {
    fn chunk(&mut self, cursor: &mut Cursor<'_>) -> Result<Stop, Flaw> {
        let last = self.walk.begin(cursor)?;
        let end = self.events(cursor)?;
        self.walk.complete(last)?;
        Ok(end)
    }

    fn events(&mut self, cursor: &mut Cursor<'_>) -> Result<Stop, Flaw> {
        loop {
            if !cursor.big_endian {
                cursor.at += structure::pass(cursor.rest(), &mut self.walk, &mut self.context);
            }
            if let Some(end) = self.next(cursor)? {
                return Ok(end);
            }
        }
    }

    /// Passes the next event, unless the chunk ends.
    fn next(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<Stop>, Flaw> {
        let mut kind = self.walk.kind(cursor)?;
        if let Some(end) = Stop::of(kind) {
            return Ok(Some(end));
        }
        if kind == ATTRIBUTE_LIST {
            cursor.record()?.attribute_list()?;
            kind = self.walk.kind(cursor)?;
            if kind == ATTRIBUTE_LIST || Stop::of(kind).is_some() {
                cursor.at -= 1;
                return Err(cursor.flaw("attributes without an event"));
            }
        }
        self.event(cursor, kind)?;
        Ok(None)
    }

    /// Passes and counts an event of any kind.
    fn event(&mut self, cursor: &mut Cursor<'_>, kind: u8) -> Result<(), Flaw> {
        let body = *cursor;
        let known = structure::record(cursor, record_schema::event(kind))?;
        self.walk.unknown += u64::from(!known);
        self.walk.count();
        self.context.event(kind, body, self.walk.moment())
    }
}

impl<V: Visitor> Listener for CallbackContext<'_, V> {
    const RECEIVES: bool = V::BOTH_ENDS;

    #[inline]
    fn asks_for(kind: u8) -> bool {
        matches!(
            kind,
            CALLING_CONTEXT_ENTER
                | CALLING_CONTEXT_LEAVE
                | RMA_PUT
                | RMA_GET
                | MPI_REQUEST_CANCELLED
                | NON_BLOCKING_COLLECTIVE_REQUEST
        )
    }

    #[expect(clippy::inline_always, reason = "it is a part of the loop over all events")]
    #[inline(always)]
    fn region(&mut self, enter: bool, region: u32, moment: Moment) {
        let place = match self.places[region as usize % REMEMBERED] {
            (known, place) if known == region => place,
            _ => self.find_place(region),
        };
        self.enter_or_leave(enter, place, moment);
    }

    #[expect(clippy::inline_always, reason = "it is a part of the loop over all events")]
    #[inline(always)]
    fn send(&mut self, message: Message, moment: Moment) {
        let communicator = self.translate(message.communicator);
        // Later damage takes precedence over an invalid event, so the walk continues.
        if self.visitor.bad_event().is_none() {
            let times = &self.times;
            let time = move || times.of(moment);
            self.visitor.send(moment.event, Message { communicator, ..message }, time);
        }
    }

    #[inline]
    fn receive(&mut self, message: Message, moment: Moment) {
        if V::BOTH_ENDS {
            let communicator = self.translate(message.communicator);
            self.notify(Event::Received(Message { communicator, ..message }), moment);
        }
    }

    #[inline]
    fn request(&mut self, kind: u8, request: u64, moment: Moment) {
        if V::BOTH_ENDS {
            let complete = kind == MPI_ISEND_COMPLETE;
            let event = if complete { Event::SendCompleted } else { Event::ReceivePosted };
            self.notify(event(request), moment);
        }
    }
}

impl<'a, V: Visitor> CallbackContext<'a, V> {
    fn new(
        (definitions, contexts): (&'a LocalDefinitions, &'a HashMap<u32, u32>),
        visitor: &'a mut V,
    ) -> Self {
        let mut context = Self {
            times: Times { clock: definitions.clock.corrects().then_some(&definitions.clock), furthest: 0 },
            definitions,
            contexts,
            visitor,
            places: NO_PLACES,
            communicator: (0, 0),
        };
        context.communicator.1 = context.global_communicator(0);
        context
    }

    /// Reports an event that has already been validated.
    fn event(&mut self, kind: u8, mut body: Cursor<'_>, moment: Moment) -> Result<(), Flaw> {
        match kind {
            ENTER | LEAVE => self.region(kind == ENTER, body.compressed_32()?, moment),
            MPI_SEND | MPI_ISEND => self.send(read_message(body, kind)?, moment),
            CALLING_CONTEXT_ENTER | CALLING_CONTEXT_LEAVE => {
                let context = body.record()?.compressed_32()?;
                self.calling_context(kind == CALLING_CONTEXT_ENTER, context, moment);
            }
            // libotf2 corrects the end time of the flush, and never goes back to measurements before it.
            BUFFER_FLUSH => self.times.furthest = self.times.furthest.max(body.record()?.word()?),
            MPI_RECV | MPI_IRECV if V::BOTH_ENDS => self.receive(read_message(body, kind)?, moment),
            MPI_ISEND_COMPLETE | MPI_IRECV_REQUEST => self.request(kind, body.compressed(8)?, moment),
            MPI_REQUEST_CANCELLED => self.notify(Event::Cancelled(body.compressed(8)?), moment),
            NON_BLOCKING_COLLECTIVE_REQUEST => {
                self.notify(Event::CollectivePosted(body.record()?.compressed(8)?), moment);
            }
            MPI_COLLECTIVE_END | NON_BLOCKING_COLLECTIVE_COMPLETE | RMA_COLLECTIVE_END => {
                self.collective(kind, body.record()?, moment)?;
            }
            RMA_PUT | RMA_GET | RMA_ATOMIC => self.access(kind, body.record()?, moment)?,
            _ => {}
        }
        Ok(())
    }

    #[expect(clippy::inline_always, reason = "it is a part of the loop over all events")]
    #[inline(always)]
    fn enter_or_leave(&mut self, enter: bool, place: u32, moment: Moment) {
        let times = &self.times;
        let time = move || times.of(moment);
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
        self.places[region as usize % REMEMBERED] = (region, place);
        place
    }

    fn calling_context(&mut self, enter: bool, context: u32, moment: Moment) {
        let global = self.definitions.calling_contexts.as_ref().map_or(context, |map| map.global(context));
        let place = self.visitor.place(region_of(self.contexts, global));
        self.enter_or_leave(enter, place, moment);
    }

    fn global_communicator(&self, local: u32) -> u32 {
        self.definitions.communicators.as_ref().map_or(local, |map| map.global(local))
    }

    /// Global id of the communicator of a message.
    #[inline]
    fn translate(&mut self, communicator: u32) -> u32 {
        if communicator != self.communicator.0 {
            self.communicator = (communicator, self.global_communicator(communicator));
        }
        self.communicator.1
    }

    fn notify(&mut self, event: Event, moment: Moment) {
        if self.visitor.bad_event().is_none() {
            let times = &self.times;
            let time = move || times.of(moment);
            self.visitor.event(moment.event, event, time);
        }
    }

    fn window(&self, local: u32) -> u32 {
        self.definitions.windows.as_ref().map_or(local, |map| map.global(local))
    }

    fn collective(&mut self, kind: u8, mut record: Cursor<'_>, moment: Moment) -> Result<(), Flaw> {
        let operation = record.byte()?;
        let through = match kind {
            RMA_COLLECTIVE_END => {
                // Synchronisation level.
                record.compressed(4)?;
                Through::Window(self.window(record.compressed_32()?))
            }
            _ => Through::Communicator(self.global_communicator(record.compressed_32()?)),
        };
        let root = record.compressed_32()?;
        let (sent, received) = (record.compressed(8)?, record.compressed(8)?);
        let request = match kind {
            NON_BLOCKING_COLLECTIVE_COMPLETE => Some(record.compressed(8)?),
            _ => None,
        };
        self.notify(
            Event::Collective(Collective { operation, through, root, sent, received }, request),
            moment,
        );
        Ok(())
    }

    fn access(&mut self, kind: u8, mut record: Cursor<'_>, moment: Moment) -> Result<(), Flaw> {
        let (window, remote) = (record.compressed_32()?, record.compressed_32()?);
        let (put, got) = match kind {
            RMA_PUT => (Some(record.compressed(8)?), None),
            RMA_GET => (None, Some(record.compressed(8)?)),
            _ => {
                record.byte()?;
                (Some(record.compressed(8)?), Some(record.compressed(8)?))
            }
        };
        self.notify(Event::Access(Access { window: self.window(window), remote, put, got }), moment);
        Ok(())
    }
}

/// Reads a message that has already been validated.
fn read_message(mut body: Cursor<'_>, kind: u8) -> Result<Message, Flaw> {
    let mut record = body.record()?;
    let (peer, communicator) = (record.compressed_32()?, record.compressed_32()?);
    let (tag, bytes) = (record.compressed_32()?, record.compressed(8)?);
    let request = if kind & 1 == 1 { Some(record.compressed(8)?) } else { None };
    Ok(Message { peer, communicator, tag, bytes, request })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::structure::some_events;
    use super::*;
    use crate::otf2::visitor::BadEvent;

    /// Records the calls of a visitor.
    #[derive(Default)]
    struct Recorder<const BOTH_ENDS: bool>(Vec<String>);

    impl<const BOTH_ENDS: bool> Visitor for Recorder<BOTH_ENDS> {
        const BOTH_ENDS: bool = BOTH_ENDS;

        fn place(&mut self, region: u32) -> u32 {
            region.wrapping_add(1)
        }

        fn enter(&mut self, place: u32, time: impl Fn() -> u64) {
            self.0.push(format!("enter {place} at {}", time()));
        }

        fn leave(&mut self, place: u32, time: impl Fn() -> u64) {
            self.0.push(format!("leave {place} at {}", time()));
        }

        fn send(&mut self, number: u64, message: Message, time: impl Fn() -> u64) {
            self.0.push(format!("{number}: {message:?} at {}", time()));
        }

        fn event(&mut self, number: u64, event: Event, time: impl Fn() -> u64) {
            self.0.push(format!("{number}: {event:?} at {}", time()));
        }

        fn bad_event(&self) -> Option<&BadEvent> {
            None
        }
    }

    /// Calls of a visitor for some events, and how far reading gets, with and without the fast path.
    fn recorded_calls<const BOTH_ENDS: bool>(
        bytes: &[u8],
        corrected: bool,
    ) -> [(Vec<String>, Result<usize, Flaw>); 2] {
        let contexts = HashMap::from([(1, 9)]);
        let mut definitions = LocalDefinitions::default();
        for (time, offset) in [(50, 1000), (53, 2000), (56, -3000)].into_iter().filter(|_| corrected) {
            definitions.clock.add(time, offset);
        }
        [true, false].map(|fast| {
            let mut visitor = Recorder::<BOTH_ENDS>::default();
            let context = CallbackContext::new((&definitions, &contexts), &mut visitor);
            let mut events = Events { walk: EventWalk::default(), context };
            let mut cursor = Cursor::new(bytes);
            let end = match fast {
                true => events.events(&mut cursor).map(|_| cursor.at),
                false => events.slowly(&mut cursor).map(|()| cursor.at),
            };
            (visitor.0, end)
        })
    }

    impl<V: Visitor> Events<'_, V> {
        fn slowly(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Flaw> {
            while self.next(cursor)?.is_none() {}
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn the_fast_path_reports_the_same_events_as_the_general_path(bytes in some_events(), corrected in any::<bool>()) {
            let [fast, slow] = recorded_calls::<true>(&bytes, corrected);
            prop_assert_eq!(fast, slow);
            let [fast, slow] = recorded_calls::<false>(&bytes, corrected);
            prop_assert_eq!(fast, slow);
        }
    }
}
