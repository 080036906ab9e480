//! Errors of bounds.

use hopmap_collectives::CollectiveError;
use hopmap_model::ProgramError;
use miette::Diagnostic;

use crate::network::NetworkError;

/// A program that has no bound.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum BoundError {
    /// There are more ranks than slots.
    #[error("{ranks} ranks do not fit on {slots} slots")]
    #[diagnostic(code(prediction::bound_slots), help("choose more hosts"))]
    TooFewSlots {
        /// Number of ranks.
        ranks: usize,
        /// Number of slots.
        slots: usize,
    },
    /// Ranks wait for each other.
    #[error("rank {rank} waits for ever: ranks wait for each other in a cycle")]
    #[diagnostic(
        code(prediction::bound_deadlock),
        help("the replay of a mapping names the cycle; messages above the eager limit need their receive")
    )]
    Deadlock {
        /// One of the ranks.
        rank: u32,
    },
    /// Hosts cannot reach each other.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Network(#[from] NetworkError),
    /// The program is inconsistent.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Program(#[from] ProgramError),
    /// A collective operation has no messages.
    #[error(transparent)]
    #[diagnostic(code(prediction::bound_collective))]
    Collective(#[from] CollectiveError),
    /// Stopped.
    #[error("stopped before the bound was known")]
    #[diagnostic(code(prediction::bound_stopped))]
    Stopped,
}
