//! The operations of a message-passing program: what every rank computes, sends and receives, in order.

mod builder;
mod check;
mod error;

pub use builder::{Interned, ProgramBuilder};
pub use error::{OperationProblem, ProgramError};

use std::time::Duration;

use crate::collectives::CollectiveOperation;
use crate::stage::Artifact;

/// The metric of programs that are approximate.
pub const APPROXIMATE: &str = "approximate";

/// What every rank of an MPI program does, in order.
///
/// Messages match by source, destination, tag and communicator, in the order in which sends and receives are
/// posted. There are no wildcards: a receive names the source and tag of the message that it received.
/// `MPI_Sendrecv` is an `irecv`, a `send` and a `wait`. `MPI_Init` and `MPI_Finalize` do not occur.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Offsets of the operations of each rank, and the end: `ranks + 1` entries.
    pub starts: Vec<usize>,
    /// The operations of all ranks, by rank.
    pub operations: Vec<Operation>,
    /// Envelopes of point-to-point operations. Builders number them by first use.
    pub envelopes: Vec<Envelope>,
    /// Collective operations without their lengths. Builders number them by first use.
    pub collectives: Vec<Collective>,
    /// World ranks of the members of each communicator, in the order of their ranks in it. Communicator 0 is
    /// `MPI_COMM_WORLD`.
    pub communicators: Vec<Vec<u32>>,
    /// Of the ranks that lack operations, the time from the first missing one to the end, summed up.
    pub left_out: Duration,
    /// Run time of the traced program, if known.
    pub recorded: Option<Duration>,
    /// Whether communication is left out, or the order of operations is not that of the traced program. Then no bound holds for it.
    pub is_approximate: bool,
}

/// Matching key of a message from the view of one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Envelope {
    /// World rank of the other end.
    pub peer: u32,
    /// MPI tag.
    pub tag: u32,
    /// Index of the communicator.
    pub communicator: u32,
}

/// A collective operation without its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Collective {
    /// Index of the communicator.
    pub communicator: u32,
    /// Kind of the operation.
    pub operation: CollectiveOperation,
    /// Rank of the root in the communicator, if the operation has one.
    pub root: Option<u32>,
}

/// An operation of a rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action {
    /// Computes, or does anything else outside of MPI.
    Compute {
        /// Seconds, finite and non-negative.
        seconds: f64,
    },
    /// `MPI_Send`
    Send {
        /// Index of the envelope.
        envelope: u32,
        /// Bytes of the message.
        bytes: u64,
    },
    /// `MPI_Isend`
    Isend {
        /// Index of the envelope.
        envelope: u32,
        /// Bytes of the message.
        bytes: u64,
        /// Its request. A send may stay active to the end, as after `MPI_Request_free`.
        request: u32,
    },
    /// `MPI_Recv`
    Recv {
        /// Index of the envelope.
        envelope: u32,
        /// Bytes of the message; the sender determines its length.
        bytes: u64,
    },
    /// `MPI_Irecv`
    Irecv {
        /// Index of the envelope.
        envelope: u32,
        /// Bytes of the message; the sender determines its length.
        bytes: u64,
        /// Its request.
        request: u32,
    },
    /// `MPI_Wait`: the request is inactive afterwards.
    Wait {
        /// An active request of this rank.
        request: u32,
    },
    /// `MPI_Waitall` for all active requests of this rank.
    Waitall,
    /// `MPI_Test` that does not complete the request: it remains active. A successful test is a
    /// [`Action::Wait`].
    Test {
        /// An active request of this rank.
        request: u32,
    },
    /// A collective operation, blocking.
    Collective {
        /// Index of the collective operation.
        collective: u32,
        /// Bytes of a block of this rank, as in [`CollectiveCalls::bytes`](crate::CollectiveCalls::bytes): the
        /// vector of a broadcast, reduction or scan (the same at all ranks, root or not); the contribution of
        /// this rank to a gather or allgather; the share that this rank receives in a scatter or
        /// reduce-scatter; the block for each rank in an alltoall, in `alltoallv` and `alltoallw` the mean
        /// block that this rank sends, rounded up; 0 for a barrier.
        bytes: u64,
    },
}

crate::named_values! {
    /// Kind of an [`Operation`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u8)]
    pub enum OperationKind {
        /// [`Action::Compute`]
        Compute = "compute",
        /// [`Action::Send`]
        Send = "send",
        /// [`Action::Isend`]
        Isend = "isend",
        /// [`Action::Recv`]
        Recv = "recv",
        /// [`Action::Irecv`]
        Irecv = "irecv",
        /// [`Action::Wait`]
        Wait = "wait",
        /// [`Action::Waitall`]
        Waitall = "waitall",
        /// [`Action::Test`]
        Test = "test",
        /// [`Action::Collective`]
        Collective = "collective",
    }
}

/// An [`Action`] in 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Bytes, or the bits of the seconds.
    value: u64,
    /// Index of the envelope or collective operation.
    target: u32,
    /// The kind in the lowest 8 bits, the request above.
    kind_and_request: u32,
}

impl Operation {
    /// The highest request. Requests are numbered per rank, and reused after their completion.
    pub const MAX_REQUEST: u32 = (1 << 24) - 2;

    /// Packs an action. A request above [`Operation::MAX_REQUEST`] becomes one that [`Program::check`]
    /// rejects.
    #[must_use]
    pub fn new(action: Action) -> Self {
        use OperationKind as Kind;
        let (kind, value, target, request) = match action {
            Action::Compute { seconds } => (Kind::Compute, seconds.to_bits(), 0, 0),
            Action::Send { envelope, bytes } => (Kind::Send, bytes, envelope, 0),
            Action::Isend { envelope, bytes, request } => (Kind::Isend, bytes, envelope, request),
            Action::Recv { envelope, bytes } => (Kind::Recv, bytes, envelope, 0),
            Action::Irecv { envelope, bytes, request } => (Kind::Irecv, bytes, envelope, request),
            Action::Wait { request } => (Kind::Wait, 0, 0, request),
            Action::Waitall => (Kind::Waitall, 0, 0, 0),
            Action::Test { request } => (Kind::Test, 0, 0, request),
            Action::Collective { collective, bytes } => (Kind::Collective, bytes, collective, 0),
        };
        let request = request.min(Self::MAX_REQUEST + 1);
        Self { value, target, kind_and_request: request << 8 | kind as u32 }
    }

    /// The action.
    #[must_use]
    pub fn action(&self) -> Action {
        let (envelope, bytes, request) = (self.target, self.value, self.kind_and_request >> 8);
        match self.kind() {
            OperationKind::Compute => Action::Compute { seconds: f64::from_bits(self.value) },
            OperationKind::Send => Action::Send { envelope, bytes },
            OperationKind::Isend => Action::Isend { envelope, bytes, request },
            OperationKind::Recv => Action::Recv { envelope, bytes },
            OperationKind::Irecv => Action::Irecv { envelope, bytes, request },
            OperationKind::Wait => Action::Wait { request },
            OperationKind::Waitall => Action::Waitall,
            OperationKind::Test => Action::Test { request },
            OperationKind::Collective => Action::Collective { collective: self.target, bytes },
        }
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> OperationKind {
        OperationKind::NAMES[(self.kind_and_request & 0xff) as usize].0
    }

    /// The same operation with another index of its envelope or collective operation.
    fn with_target(self, target: u32) -> Self {
        Self { target, ..self }
    }
}

impl From<Action> for Operation {
    fn from(action: Action) -> Self {
        Self::new(action)
    }
}

/// Totals of a [`Program`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ProgramTotals {
    /// Point-to-point messages.
    pub messages: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Collective operations, once per rank.
    pub collectives: u64,
    /// Seconds of computation of all ranks.
    pub compute_s: f64,
}

impl Program {
    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.starts.len().saturating_sub(1) as u32
    }

    /// The operations of a rank, which must exist.
    #[must_use]
    pub fn of_rank(&self, rank: u32) -> &[Operation] {
        &self.operations[self.starts[rank as usize]..self.starts[rank as usize + 1]]
    }

    /// Totals over all ranks.
    #[must_use]
    pub fn totals(&self) -> ProgramTotals {
        let mut totals = ProgramTotals::default();
        for operation in &self.operations {
            match operation.action() {
                Action::Compute { seconds } => totals.compute_s += seconds,
                Action::Send { bytes, .. } | Action::Isend { bytes, .. } => {
                    totals.messages += 1;
                    totals.bytes = totals.bytes.saturating_add(bytes);
                }
                Action::Collective { .. } => totals.collectives += 1,
                _ => {}
            }
        }
        totals
    }
}

impl Artifact for Program {
    const KIND: &'static str = "program";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_has_16_bytes() {
        assert_eq!(size_of::<Operation>(), 16);
    }

    #[test]
    fn every_action_is_unpacked_as_it_was_packed() {
        let (envelope, bytes, request) = (u32::MAX, u64::MAX, Operation::MAX_REQUEST);
        let actions = [
            Action::Compute { seconds: 0.1 },
            Action::Send { envelope, bytes },
            Action::Isend { envelope, bytes, request },
            Action::Recv { envelope, bytes },
            Action::Irecv { envelope, bytes, request },
            Action::Wait { request },
            Action::Waitall,
            Action::Test { request },
            Action::Collective { collective: 7, bytes },
        ];
        for (action, (kind, name)) in actions.into_iter().zip(OperationKind::NAMES) {
            let operation = Operation::new(action);
            assert_eq!((operation.action(), operation.kind()), (action, kind));
            assert_eq!((kind.name(), OperationKind::of_name(name)), (name, Some(kind)));
        }
        assert_eq!(OperationKind::of_name("Send"), None);
    }

    #[test]
    fn totals_count_messages_at_the_sender() {
        let mut program = ProgramBuilder::new(2);
        let to = |peer| Envelope { peer, tag: 1, communicator: 0 };
        program.compute(0, 1.5);
        program.send(0, to(1), 10);
        program.recv(1, to(0), 10);
        let barrier = Collective { communicator: 0, operation: CollectiveOperation::Barrier, root: None };
        (0..2).for_each(|rank| program.collective(rank, barrier, 0));
        let totals = program.finish().unwrap().totals();
        assert_eq!(totals, ProgramTotals { messages: 1, bytes: 10, collectives: 2, compute_s: 1.5 });
    }
}
