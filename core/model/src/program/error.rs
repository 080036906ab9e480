//! What can be wrong with a [`Program`](super::Program).

use miette::Diagnostic;

use super::{Collective, Operation};
use crate::collectives::CollectiveOperation;

/// An inconsistent program.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Diagnostic)]
pub enum ProgramError {
    /// Offsets do not start at zero, decrease, or do not end at the number of operations.
    #[error("the operations of rank {rank} do not follow those of the ranks before")]
    #[diagnostic(code(model::program_starts))]
    Starts {
        /// The rank.
        rank: u32,
    },
    /// Communicator 0 is not `MPI_COMM_WORLD`.
    #[error("communicator 0 must have all {ranks} ranks in order")]
    #[diagnostic(code(model::program_world))]
    World {
        /// Number of ranks.
        ranks: u32,
    },
    /// A communicator has no members, repeats one, or has one that does not exist.
    #[error("communicator {communicator} is empty, repeats a rank, or contains one that does not exist")]
    #[diagnostic(code(model::program_communicator))]
    Communicator {
        /// The communicator.
        communicator: usize,
    },
    /// An operation is invalid.
    #[error("operation {index} of rank {rank}: {problem}")]
    #[diagnostic(code(model::program_operation))]
    Operation {
        /// The rank.
        rank: u32,
        /// Index among the operations of the rank.
        index: usize,
        /// The problem.
        problem: OperationProblem,
    },
    /// Messages without a receive, or receives without a message.
    #[error(
        "rank {source_rank} sends {sent} messages to rank {destination} with tag {tag} in communicator {communicator}, which receives {received}"
    )]
    #[diagnostic(code(model::program_messages))]
    Messages {
        /// World rank that sends.
        source_rank: u32,
        /// World rank that receives.
        destination: u32,
        /// The tag.
        tag: u32,
        /// The communicator.
        communicator: u32,
        /// Number of sends.
        sent: u64,
        /// Number of receives.
        received: u64,
    },
    /// A rank does not call all collective operations of its communicator.
    #[error(
        "rank {rank} calls {calls} collective operations of communicator {communicator}, but rank {other} calls {expected}"
    )]
    #[diagnostic(code(model::program_collectives))]
    Collectives {
        /// The rank.
        rank: u32,
        /// The communicator.
        communicator: u32,
        /// Number of its calls.
        calls: usize,
        /// The first member of the communicator.
        other: u32,
        /// Number of calls of the first member.
        expected: usize,
    },
}

/// What is wrong with an operation.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum OperationProblem {
    /// Seconds that are no time: negative, or above 1e12.
    #[error("it computes for {0:?} seconds")]
    Seconds(f64),
    /// The index of an envelope or collective operation is too high.
    #[error("it refers to an envelope or collective operation that does not exist")]
    NoTarget,
    /// The communicator does not exist.
    #[error("communicator {0} does not exist")]
    NoCommunicator(u32),
    /// A rank is not in the communicator.
    #[error("rank {rank} is not in communicator {communicator}")]
    NotMember {
        /// The world rank.
        rank: u32,
        /// The communicator.
        communicator: u32,
    },
    /// A request above [`Operation::MAX_REQUEST`].
    #[error("a rank has at most {} requests", Operation::MAX_REQUEST + 1)]
    TooManyRequests,
    /// A request is started before its completion.
    #[error("request {0} is still active")]
    Active(u32),
    /// A request that is not active is completed or tested.
    #[error("request {0} is not active")]
    Inactive(u32),
    /// A receive is never completed.
    #[error("nothing waits for request {0} of this receive")]
    NeverCompleted(u32),
    /// A rooted operation has no root, or another operation has one.
    #[error("{operation} {}", if operation.has_root() { "needs a root" } else { "must not have a root" })]
    Root {
        /// The operation.
        operation: CollectiveOperation,
    },
    /// The root is not a member of the communicator.
    #[error("rank {root} is the root, but its communicator has {members} members")]
    NoSuchRoot {
        /// The root.
        root: u32,
        /// Number of members.
        members: usize,
    },
    /// The first member of the communicator calls another operation, or none.
    #[error("it calls {}, but rank {other} calls another collective operation at this point", collective.operation)]
    OtherCollective {
        /// The operation.
        collective: Collective,
        /// The first member of the communicator.
        other: u32,
    },
}
