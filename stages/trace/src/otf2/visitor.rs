//! What the events of a location say, and who wants to know, whoever reads them.

use std::borrow::Cow;
use std::collections::HashMap;

/// A message as the location at one end sees it. Ids are those of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    /// The other end, by its rank in the communicator.
    pub(super) peer: u32,
    /// The communicator.
    pub(super) communicator: u32,
    /// The tag.
    pub(super) tag: u32,
    /// Its length.
    pub(super) bytes: u64,
    /// The request, if the operation does not block.
    pub(super) request: Option<u64>,
}

/// What processes find each other by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Through {
    /// A communicator.
    Communicator(u32),
    /// A window of remote memory, which has a communicator.
    Window(u32),
}

/// A collective operation, complete, as one of its processes sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Collective {
    /// What it does (`OTF2_CollectiveOp`).
    pub(super) operation: u8,
    /// Whose operation it is.
    pub(super) through: Through,
    /// Rank of the root, if it has one.
    pub(super) root: u32,
    /// Bytes that the process sent.
    pub(super) sent: u64,
    /// Bytes that the process received.
    pub(super) received: u64,
}

/// An access to the memory of another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Access {
    /// The window.
    pub(super) window: u32,
    /// The other process, by its rank in the communicator of the window.
    pub(super) remote: u32,
    /// Bytes that go there, if any can.
    pub(super) put: Option<u64>,
    /// Bytes that come from there, if any can.
    pub(super) got: Option<u64>,
}

/// An event that is neither the beginning or end of a region nor a message that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A message has been received.
    Received(Message),
    /// A send that does not block is complete.
    SendCompleted(u64),
    /// A receive that does not block begins.
    ReceivePosted(u64),
    /// A send or receive that does not block will not take place.
    Cancelled(u64),
    /// A collective operation that does not block begins.
    CollectivePosted(u64),
    /// A collective operation is complete; the request if it does not block.
    Collective(Collective, Option<u64>),
    /// Remote memory is accessed.
    Access(Access),
}

/// An event that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadEvent {
    /// Its number, counted from one.
    pub(super) event: u64,
    /// What is wrong.
    pub(super) what: Cow<'static, str>,
}

/// Wants to know the events of a location, one after the other. Times are those of the common clock and are worked out
/// when asked for. Nothing here panics: it is called from within libotf2.
pub(super) trait Visitor {
    /// Whether it wants to know of messages received and requests too.
    const BOTH_ENDS: bool;

    /// Place of a region, by which it is entered and left.
    fn place(&mut self, region: u32) -> u32;

    /// A region is entered.
    fn enter(&mut self, place: u32, time: impl Fn() -> u64);

    /// A region is left.
    fn leave(&mut self, place: u32, time: impl Fn() -> u64);

    /// A message is sent by event `number`, counted from one.
    fn send(&mut self, number: u64, message: Message, time: impl Fn() -> u64);

    /// Something else happens.
    fn event(&mut self, number: u64, event: Event, time: impl Fn() -> u64);

    /// The event that cannot be, if there was one. No more messages and events are told then.
    fn bad_event(&self) -> Option<&BadEvent>;
}

/// Region of a calling context; one that is not defined stands for a region that is not defined.
pub(super) fn region_of(contexts: &HashMap<u32, u32>, context: u32) -> u32 {
    contexts.get(&context).copied().unwrap_or(u32::MAX)
}
