//! Events of a location, and the trait of their visitors, independent of the reader.

use std::borrow::Cow;
use std::collections::HashMap;

/// A message from the view of one end. Ids are those of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    /// Rank of the peer in the communicator.
    pub(super) peer: u32,
    /// The communicator.
    pub(super) communicator: u32,
    /// The tag.
    pub(super) tag: u32,
    /// Its length.
    pub(super) bytes: u64,
    /// The request of a nonblocking operation.
    pub(super) request: Option<u64>,
}

/// The context that connects processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Through {
    /// A communicator.
    Communicator(u32),
    /// A window of remote memory, which has a communicator.
    Window(u32),
}

/// A complete collective operation from the view of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Collective {
    /// The operation (`OTF2_CollectiveOp`).
    pub(super) operation: u8,
    /// Its communicator or window.
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
    /// Rank of the peer in the communicator of the window.
    pub(super) remote: u32,
    /// Bytes written, if it can write.
    pub(super) put: Option<u64>,
    /// Bytes read, if it can read.
    pub(super) got: Option<u64>,
}

/// An event other than entering or leaving a region or sending a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A message has been received.
    Received(Message),
    /// A nonblocking send completes.
    SendCompleted(u64),
    /// A nonblocking receive is posted.
    ReceivePosted(u64),
    /// A nonblocking send or receive is cancelled.
    Cancelled(u64),
    /// A nonblocking collective operation starts.
    CollectivePosted(u64),
    /// A collective operation completes; with the request if nonblocking.
    Collective(Collective, Option<u64>),
    /// Remote memory is accessed.
    Access(Access),
}

/// An invalid event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadEvent {
    /// Its number, counted from one.
    pub(super) event: u64,
    /// The problem.
    pub(super) what: Cow<'static, str>,
}

/// Receives the events of a location in order. Times are those of the common clock and computed on demand.
/// Methods must not panic, because libotf2 calls them.
pub(super) trait Visitor {
    /// Whether it also wants receive events and requests.
    const BOTH_ENDS: bool;

    /// Index of a region, to enter and leave it.
    fn place(&mut self, region: u32) -> u32;

    /// A region is entered.
    fn enter(&mut self, place: u32, time: impl Fn() -> u64);

    /// A region is left.
    fn leave(&mut self, place: u32, time: impl Fn() -> u64);

    /// A message is sent by event `number`, counted from one.
    fn send(&mut self, number: u64, message: Message, time: impl Fn() -> u64);

    /// Another event.
    fn event(&mut self, number: u64, event: Event, time: impl Fn() -> u64);

    /// The first invalid event, if any. After it, no messages and events are reported.
    fn bad_event(&self) -> Option<&BadEvent>;
}

/// Region of a calling context; an undefined context gives an undefined region.
pub(super) fn region_of(contexts: &HashMap<u32, u32>, context: u32) -> u32 {
    contexts.get(&context).copied().unwrap_or(u32::MAX)
}
