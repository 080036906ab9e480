//! What one location sent and did, counted event by event.

use std::collections::HashMap;

use otf2_sys::OTF2_UNDEFINED_UINT64;

use super::communicators::is_nobody;
use crate::call_stack::CallStack;
use crate::numbering::Numbering;

/// What a location sent to one rank of one communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Traffic {
    /// The communicator.
    pub(super) communicator: u32,
    /// The rank in it.
    pub(super) receiver: u32,
    /// Number of messages.
    pub(super) messages: u64,
    /// Bytes in all messages.
    pub(super) bytes: u64,
    /// Number of the event that sent the first of them, counted from one.
    pub(super) first_event: u64,
}

/// An event that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadEvent {
    /// Its number, counted from one.
    pub(super) event: u64,
    /// What is wrong.
    pub(super) what: &'static str,
}

/// What one location sent and did. Nothing here panics: it is called from within libotf2.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    /// The regions it is in.
    pub(super) stack: CallStack<'a>,
    contexts: &'a HashMap<u32, u32>,
    places: Numbering<(u32, u32)>,
    /// What was sent, in the order in which the receivers came.
    pub(super) traffic: Vec<Traffic>,
    /// Messages sent to `MPI_PROC_NULL`, which nobody receives.
    pub(super) to_nobody: u64,
    /// The event at which the reading ended.
    pub(super) bad_event: Option<BadEvent>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(stack: CallStack<'a>, contexts: &'a HashMap<u32, u32>) -> Self {
        Self { stack, contexts, places: Numbering::new(), traffic: Vec::new(), to_nobody: 0, bad_event: None }
    }

    /// Region of a calling context; one that is not defined stands for a region that is not defined.
    pub(super) fn region_of(&self, context: u32) -> u32 {
        self.contexts.get(&context).copied().unwrap_or(u32::MAX)
    }

    /// Counts a message. `false` means that reading on makes no sense.
    pub(super) fn send(&mut self, event: u64, communicator: u32, receiver: u32, bytes: u64) -> bool {
        self.stack.send();
        if is_nobody(receiver) {
            self.to_nobody += 1;
            return true;
        }
        if bytes == OTF2_UNDEFINED_UINT64 {
            self.bad_event = Some(BadEvent { event, what: "it sends a message of unknown length" });
            return false;
        }
        let place = self.places.of((communicator, receiver)) as usize;
        if place == self.traffic.len() {
            self.traffic.push(Traffic { communicator, receiver, messages: 0, bytes: 0, first_event: event });
        }
        let traffic = &mut self.traffic[place];
        traffic.messages += 1;
        let (sum, overflow) = traffic.bytes.overflowing_add(bytes);
        traffic.bytes = sum;
        if overflow {
            self.bad_event = Some(BadEvent { event, what: "the bytes sent to one rank exceed 64 bits" });
        }
        !overflow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_by_communicator_and_rank() {
        let (kinds, contexts) = (HashMap::new(), HashMap::from([(7, 3)]));
        let mut tally = Tally::new(CallStack::new(&kinds), &contexts);
        assert!(tally.send(4, 0, 1, 100) && tally.send(6, 0, 1, 20) && tally.send(7, 1, 1, 3));
        assert!(tally.send(8, 0, u32::MAX, 1) && tally.send(9, 0, u32::MAX - 1, 1));
        let traffic = |communicator, messages, bytes, first_event| Traffic {
            communicator,
            receiver: 1,
            messages,
            bytes,
            first_event,
        };
        assert_eq!(tally.traffic, [traffic(0, 2, 120, 4), traffic(1, 1, 3, 7)]);
        assert_eq!((tally.to_nobody, tally.bad_event), (2, None));
        assert_eq!((tally.region_of(7), tally.region_of(8)), (3, u32::MAX));
    }

    #[test]
    fn lengths_that_cannot_be_stop_it() {
        let (kinds, contexts) = Default::default();
        let mut tally = Tally::new(CallStack::new(&kinds), &contexts);
        assert!(!tally.send(3, 0, 1, u64::MAX));
        assert_eq!(tally.bad_event.unwrap().event, 3);
        assert!(tally.send(4, 0, 1, u64::MAX - 1) && !tally.send(5, 0, 1, 2));
        assert_eq!(tally.bad_event.unwrap().event, 5);
    }
}
