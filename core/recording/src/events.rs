//! `events-N.bin`: every MPI call of a rank with its times.
//!
//! Little endian. The file begins with
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `HOPEVT1\0` |
//! | u32 | version, 2 |
//! | u32, u32 | rank in `MPI_COMM_WORLD`, number of ranks |
//! | u32 | upper half of the checksum of these 48 bytes, with zeros in its place |
//! | u64, u64, u64 | at the end of `MPI_Init`: ticks, and nanoseconds of `CLOCK_MONOTONIC` and `CLOCK_REALTIME` |
//!
//! Blocks follow, of u32 kind, u32 length of the content in bytes, u32 thread, u32 number of records, u64 ticks
//! before its first record, u64 ticks and u64 nanoseconds of `CLOCK_MONOTONIC` when it was written, and u64 checksum of
//! these 40 bytes and the content: FNV-1a over u64 words instead of bytes, the last one filled with zeros. The clocks of
//! ranks are independent: only differences within a rank mean something.
//!
//! | kind | content |
//! |---|---|
//! | 0 | records |
//! | 1 | a communicator, whose number in the file is in the place of the thread: u64 [`EventCommunicator::id`], u32 first member that messages and roots count from, u32 number of those, u32 world rank of each member |
//! | 2 | nothing: the end. Dropped records stand for the ticks, and 1 for the records if `MPI_Finalize` was reached |
//!
//! A record is a byte with its kind, and numbers in LEB128. With bit 7 of the kind it belongs to the call before.
//! Otherwise, three times follow: ticks since the call before has returned, of these, in units of 16, the ticks of the
//! recorder itself, and ticks in the call. Then, by kind:
//!
//! | kind | | numbers |
//! |---|---|---|
//! | 0 | [`Call::Other`] | class |
//! | 1 | [`Call::Polls`] | calls, ticks in them |
//! | 2–5 | [`Call::Send`] by mode | communicator, peer, tag, bytes |
//! | 6 | [`Call::Recv`] | communicator, peer, tag, bytes |
//! | 7–10 | [`Call::Isend`] by mode | communicator, request, peer, tag, bytes |
//! | 11 | [`Call::Irecv`] | communicator, request |
//! | 12 | [`Call::Sendrecv`] | communicator, peer, tag and bytes of the sent and of the received message |
//! | 13 | [`Call::Collective`] | communicator, kind, root + 1 or 0, bytes |
//! | 14 | [`Call::Icollective`] | communicator, request, kind, root + 1 or 0, bytes |
//! | 15, 16 | [`Call::Wait`], [`Call::Test`] | |
//! | 17 | [`Call::Sent`] | request |
//! | 18 | [`Call::Received`] | request, communicator, peer, tag, bytes |
//! | 19, 20 | [`Call::Cancelled`], [`Call::Freed`] | request |
//! | 21 | [`Call::Finalize`] | |

mod file;
mod records;

pub(crate) use file::cut_off;
pub use file::{EventCommunicator, EventFile, event_files};
pub use records::Events;

use crate::collective::CollectiveKind;

const MAGIC: &[u8; 8] = b"HOPEVT1\0";
const HEADER: usize = 48;
const BLOCK_HEADER: usize = 48;
/// Where the checksum is in the header of the file, and of a block.
const HEADER_CHECKSUM: usize = 20;
const BLOCK_CHECKSUM: usize = 40;
/// Of nothing.
const NO_CHECKSUM: u64 = 0xcbf2_9ce4_8422_2325;
/// Bit of the kind of a record that belongs to the call before.
const SAME_CALL: u8 = 0x80;

/// Kinds of blocks.
const RECORDS: u32 = 0;
const COMMUNICATOR: u32 = 1;
const END: u32 = 2;

/// What a rank did, and when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// Number of the thread.
    pub thread: u32,
    /// Seconds from the end of `MPI_Init` to the begin of the call.
    pub enter: f64,
    /// Seconds from the end of `MPI_Init` to the end of the call.
    pub leave: f64,
    /// Seconds that the thread ran outside MPI before the call, without the recorder's own time. 0 if `continues`.
    pub outside: f64,
    /// Whether this belongs to the same call as the event before, with the times of that call.
    pub continues: bool,
    /// What it did.
    pub call: Call,
}

/// A call of MPI, or a part of one. Ranks are world ranks, and those that a message really had: wildcards are
/// resolved. Requests are small numbers of the rank, which are used again after [`Call::Sent`],
/// [`Call::Received`], [`Call::Cancelled`] and [`Call::Freed`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Call {
    /// A call that has only times.
    Other(OtherCall),
    /// Calls one after the other that asked in vain, such as `MPI_Test`. `outside` seconds were not in MPI.
    Polls {
        /// Number of calls.
        calls: u64,
        /// Seconds between them, from `enter` to `leave`.
        outside: f64,
    },
    /// A blocking send.
    Send {
        /// Its mode.
        mode: Mode,
        /// What was sent.
        message: Message,
    },
    /// A nonblocking send, or the start of a persistent one.
    Isend {
        /// Its mode.
        mode: Mode,
        /// What is sent.
        message: Message,
        /// Its request.
        request: u32,
    },
    /// A blocking receive.
    Recv {
        /// What was received.
        message: Message,
    },
    /// A nonblocking receive, or the start of a persistent one. [`Call::Received`] says what came.
    Irecv {
        /// Number of the communicator.
        communicator: u32,
        /// Its request.
        request: u32,
    },
    /// `MPI_Sendrecv`, `MPI_Sendrecv_replace`.
    Sendrecv {
        /// What was sent.
        sent: Message,
        /// What was received.
        received: Message,
    },
    /// A blocking collective operation.
    Collective(CollectiveCall),
    /// A nonblocking collective operation, or the start of a persistent one.
    Icollective {
        /// The operation.
        operation: CollectiveCall,
        /// Its request.
        request: u32,
    },
    /// `MPI_Wait`, `MPI_Waitall`, `MPI_Waitany`, `MPI_Waitsome`. What has completed follows.
    Wait,
    /// `MPI_Test` and its relatives, where something has completed, which follows.
    Test,
    /// A send or a collective operation has completed.
    Sent {
        /// Its request.
        request: u32,
    },
    /// A receive has completed.
    Received {
        /// Its request.
        request: u32,
        /// What was received.
        message: Message,
    },
    /// A request has completed without a message, because it was cancelled.
    Cancelled {
        /// The request.
        request: u32,
    },
    /// An active request was freed: it is not waited for.
    Freed {
        /// The request.
        request: u32,
    },
    /// The begin of `MPI_Finalize`, with the time before it.
    Finalize,
}

/// Calls that have only times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OtherCall {
    /// Procedures that send nothing, messages to `MPI_PROC_NULL`, and calls with an error.
    Local,
    /// One-sided communication.
    OneSided,
    /// Partitioned communication.
    Partitioned,
    /// A probe that has found a message.
    Probe,
    /// Creation or release of a communicator.
    Communicator,
}

impl OtherCall {
    /// All, in order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Local, Self::OneSided, Self::Partitioned, Self::Probe, Self::Communicator];
}

/// Mode of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// `MPI_Send`
    Standard,
    /// `MPI_Bsend`
    Buffered,
    /// `MPI_Ssend`
    Synchronous,
    /// `MPI_Rsend`
    Ready,
}

impl Mode {
    /// All, in order of their numbers.
    pub const ALL: [Self; 4] = [Self::Standard, Self::Buffered, Self::Synchronous, Self::Ready];
}

/// A message, sent or received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Message {
    /// World rank of the other end.
    pub peer: u32,
    /// Its tag.
    pub tag: u32,
    /// Index in [`EventFile::communicators`].
    pub communicator: u32,
    /// Its length.
    pub bytes: u64,
}

/// A call of a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CollectiveCall {
    /// Index in [`EventFile::communicators`].
    pub communicator: u32,
    /// The operation.
    pub kind: CollectiveKind,
    /// Rank of the root in the communicator, if the operation has one.
    pub root: Option<u32>,
    /// Bytes that this rank sends, as in the file of a rank.
    pub bytes: u64,
}

/// Goes on with a checksum over more bytes.
fn checksum(before: u64, bytes: &[u8]) -> u64 {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    bytes.chunks(8).fold(before, |checksum, bytes| (checksum ^ word(bytes)).wrapping_mul(0x100_0000_01b3))
}
