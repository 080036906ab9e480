//! Accumulates the messages and times of one location, event by event.

use super::record_schema::OTF2_UNDEFINED_UINT64;

use super::collectives::CollectiveAccumulator;
use super::communicators::is_proc_null;
use super::visitor::{Access, BadEvent, Event, Message, Through, Visitor};
use crate::call_stack::CallStack;
use crate::numbering::Numbering;
use crate::params::Collectives;
use crate::selection::{Class, Selection};

/// The request to all locations.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    /// Selection and classes, if any.
    pub(super) selection: Option<&'a Selection>,
    /// Treatment of collective operations.
    pub(super) collectives: Collectives,
}

/// Messages in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Total {
    /// Number of messages.
    pub(super) messages: u64,
    /// Bytes in all messages.
    pub(super) bytes: u64,
}

impl Total {
    /// Adds a message; `false` if the bytes overflow.
    #[inline]
    fn add(&mut self, bytes: u64) -> bool {
        self.messages += 1;
        let (sum, overflow) = self.bytes.overflowing_add(bytes);
        self.bytes = sum;
        !overflow
    }
}

/// Messages of a location to one rank of one communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Traffic {
    /// The communicator.
    pub(super) communicator: u32,
    /// Rank in the communicator.
    pub(super) receiver: u32,
    /// Their class.
    pub(super) class: Class,
    /// Number of messages and bytes.
    pub(super) total: Total,
    /// Number of the first send event, counted from one.
    pub(super) first_event: u64,
}

/// Data that a location moved to and from the memory of one rank through one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RemoteTraffic {
    /// The window.
    pub(super) window: u32,
    /// Rank in the communicator of the window.
    pub(super) remote: u32,
    /// Their class.
    pub(super) class: Class,
    /// Data written to the rank.
    pub(super) put: Total,
    /// Data read from the rank.
    pub(super) got: Total,
    /// Number of the first access, counted from one.
    pub(super) first_event: u64,
}

/// Messages and times of one location.
#[derive(Debug)]
pub(super) struct Accumulator<'a> {
    /// The open regions.
    pub(super) stack: CallStack<'a>,
    question: Question<'a>,
    places: Numbering<(u32, u32, u32)>,
    /// Sent messages, in the order in which receivers first appear.
    pub(super) traffic: Vec<Traffic>,
    remote_places: Numbering<(u32, u32, u32)>,
    /// Accesses to remote memory, in the order in which ranks first appear.
    pub(super) remote: Vec<RemoteTraffic>,
    /// The collective operations of the location.
    pub(super) collectives: CollectiveAccumulator,
    /// Messages to `MPI_PROC_NULL`.
    pub(super) to_proc_null: u64,
    /// Requests that were cancelled.
    pub(super) cancellations: u64,
    /// The event at which reading failed.
    bad_event: Option<BadEvent>,
}

const TOO_MUCH: &str = "the bytes sent to one rank exceed 64 bits";

impl<'a> Accumulator<'a> {
    pub(super) fn new(stack: CallStack<'a>, question: Question<'a>) -> Self {
        Self {
            stack,
            question,
            places: Numbering::new(),
            traffic: Vec::new(),
            remote_places: Numbering::new(),
            remote: Vec::new(),
            collectives: CollectiveAccumulator::default(),
            to_proc_null: 0,
            cancellations: 0,
            bad_event: None,
        }
    }

    /// The class of a message, if it counts.
    #[inline]
    fn class(&self, communicator: Option<u32>, bytes: u64, time: impl Fn() -> u64) -> Option<Class> {
        match self.question.selection {
            None => Some(Class::ALL),
            Some(selection) => selection.class_of_message(communicator, bytes, self.stack.inside(), time),
        }
    }

    /// Removes messages that it has; returns their number.
    pub(super) fn remove(&mut self, others: &Accumulator<'_>) -> u64 {
        let mut removed = others.to_proc_null;
        self.to_proc_null -= others.to_proc_null;
        for other in &others.traffic {
            let key = |traffic: &Traffic| (traffic.communicator, traffic.receiver, traffic.class);
            if let Some(traffic) = self.traffic.iter_mut().find(|traffic| key(traffic) == key(other)) {
                traffic.total.messages -= other.total.messages;
                traffic.total.bytes = traffic.total.bytes.wrapping_sub(other.total.bytes);
                removed += other.total.messages;
            }
        }
        self.traffic.retain(|traffic| traffic.total.messages > 0);
        removed
    }

    fn bad(&mut self, event: u64, what: &'static str) {
        self.bad_event.get_or_insert(BadEvent { event, what: what.into() });
    }

    fn access(&mut self, number: u64, access: Access, time: impl Fn() -> u64) {
        let Access { window, remote, put, got } = access;
        for (bytes, outwards) in [(put, true), (got, false)] {
            let Some(bytes) = bytes else { continue };
            if bytes == OTF2_UNDEFINED_UINT64 {
                return self.bad(number, "the number of bytes is unknown");
            }
            // The selection by communicator follows once the communicator of the window is known.
            let Some(class) = self.class(None, bytes, &time) else { continue };
            let place = self.remote_places.of((window, remote, class.number())) as usize;
            if place == self.remote.len() {
                let (put, got) = Default::default();
                self.remote.push(RemoteTraffic { window, remote, class, put, got, first_event: number });
            }
            let traffic = &mut self.remote[place];
            let total = if outwards { &mut traffic.put } else { &mut traffic.got };
            if !total.add(bytes) {
                self.bad(number, TOO_MUCH);
            }
        }
    }
}

impl Visitor for Accumulator<'_> {
    const BOTH_ENDS: bool = false;

    #[expect(clippy::inline_always, reason = "it is a part of the loop over all events")]
    #[inline(always)]
    fn place(&mut self, region: u32) -> u32 {
        self.stack.place(region)
    }

    #[expect(clippy::inline_always, reason = "it is a part of the loop over all events")]
    #[inline(always)]
    fn enter(&mut self, place: u32, time: impl Fn() -> u64) {
        self.stack.enter_at(place, time);
    }

    #[expect(clippy::inline_always, reason = "it is a part of the loop over all events")]
    #[inline(always)]
    fn leave(&mut self, place: u32, time: impl Fn() -> u64) {
        self.stack.leave_at(place, time);
    }

    #[expect(clippy::inline_always, reason = "it is a part of the loop over all events")]
    #[inline(always)]
    fn send(&mut self, number: u64, message: Message, time: impl Fn() -> u64) {
        let Message { peer: receiver, communicator, bytes, .. } = message;
        self.stack.send();
        if is_proc_null(receiver) {
            self.to_proc_null += 1;
            return;
        }
        if bytes == OTF2_UNDEFINED_UINT64 {
            return self.bad(number, "the length of the message is unknown");
        }
        let Some(class) = self.class(Some(communicator), bytes, time) else { return };
        let place = self.places.of((communicator, receiver, class.number())) as usize;
        if place == self.traffic.len() {
            let total = Total::default();
            self.traffic.push(Traffic { communicator, receiver, class, total, first_event: number });
        }
        if !self.traffic[place].total.add(bytes) {
            self.bad(number, TOO_MUCH);
        }
    }

    fn event(&mut self, number: u64, event: Event, time: impl Fn() -> u64) {
        match event {
            Event::Access(access) => self.access(number, access, time),
            Event::CollectivePosted(request) => self.collectives.posted(request, number),
            Event::Collective(collective, request) => {
                if self.question.collectives == Collectives::Ignore {
                    self.collectives.ignore();
                    return;
                }
                let communicator = match collective.through {
                    Through::Communicator(id) => Some(id),
                    Through::Window(_) => None,
                };
                let class = match self.question.selection {
                    None => Some(Class::ALL),
                    Some(selection) => {
                        let through = communicator.is_none_or(|id| selection.counts_communicator(id));
                        through.then(|| selection.class(self.stack.inside(), time)).flatten()
                    }
                };
                self.collectives.add(number, collective, request, class);
            }
            Event::Cancelled(_) => self.cancellations += 1,
            Event::Received(_) | Event::SendCompleted(_) | Event::ReceivePosted(_) => {}
        }
    }

    #[inline]
    fn bad_event(&self) -> Option<&BadEvent> {
        self.bad_event.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const EVERYTHING: Question<'_> = Question { selection: None, collectives: Collectives::Ignore };

    fn message(communicator: u32, peer: u32, bytes: u64) -> Message {
        Message { peer, communicator, tag: 0, bytes, request: None }
    }

    #[test]
    fn messages_are_counted_by_communicator_and_rank() {
        let kinds = HashMap::new();
        let mut accumulator = Accumulator::new(CallStack::new(&kinds, None), EVERYTHING);
        let sends =
            [(4, 0, 1, 100), (6, 0, 1, 20), (7, 1, 1, 3), (8, 0, u32::MAX, 1), (9, 0, u32::MAX - 1, 1)];
        for (number, communicator, peer, bytes) in sends {
            accumulator.send(number, message(communicator, peer, bytes), || 0);
        }
        let traffic = |communicator, messages, bytes, first_event| Traffic {
            communicator,
            receiver: 1,
            class: Class::ALL,
            total: Total { messages, bytes },
            first_event,
        };
        assert_eq!(accumulator.traffic, [traffic(0, 2, 120, 4), traffic(1, 1, 3, 7)]);
        assert_eq!((accumulator.to_proc_null, accumulator.bad_event()), (2, None));
    }

    #[test]
    fn accesses_are_counted_by_window_and_direction() {
        let kinds = HashMap::new();
        let mut accumulator = Accumulator::new(CallStack::new(&kinds, None), EVERYTHING);
        for (number, put, got) in [(1, Some(8), None), (2, None, Some(5)), (3, Some(1), Some(2))] {
            accumulator.event(number, Event::Access(Access { window: 3, remote: 1, put, got }), || 0);
        }
        let total = |messages, bytes| Total { messages, bytes };
        let [traffic] = accumulator.remote.as_slice() else { panic!("one rank of one window") };
        assert_eq!((traffic.put, traffic.got, traffic.first_event), (total(2, 9), total(2, 7), 1));
    }

    #[test]
    fn invalid_lengths_are_noted() {
        let kinds = HashMap::new();
        let bad = |lengths: &[u64]| {
            let mut accumulator = Accumulator::new(CallStack::new(&kinds, None), EVERYTHING);
            for (bytes, number) in lengths.iter().zip(3..) {
                accumulator.send(number, message(0, 1, *bytes), || 0);
            }
            accumulator.bad_event().map(|bad| bad.event)
        };
        assert_eq!(bad(&[u64::MAX]), Some(3));
        assert_eq!(bad(&[u64::MAX - 1, 2]), Some(4));
        assert_eq!(bad(&[u64::MAX - 2, 2]), None);
    }
}
