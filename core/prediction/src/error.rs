//! Errors of replays.

use std::fmt;

use hopmap_collectives::{AlgorithmError, CollectiveError};
use hopmap_model::{MappingError, OperationKind, ProgramError, SystemGraphError};
use miette::Diagnostic;

use crate::network::NetworkError;

/// A program that cannot be replayed on a machine.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ReplayError {
    /// The program is inconsistent.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Program(#[from] ProgramError),
    /// The machine is inconsistent.
    #[error(transparent)]
    #[diagnostic(transparent)]
    SystemGraph(#[from] SystemGraphError),
    /// The mapping is inconsistent.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Mapping(#[from] MappingError),
    /// The machine lacks a rate or a route.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Network(#[from] NetworkError),
    /// An algorithm does not implement its collective operation.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Algorithm(#[from] AlgorithmError),
    /// A collective operation cannot be expanded.
    #[error("a collective operation cannot be replayed: {0}")]
    #[diagnostic(code(prediction::collective))]
    Collective(#[from] CollectiveError),
    /// The mapping is that of another program or machine.
    #[error("the mapping has {given} {what}, the {of} has {expected}")]
    #[diagnostic(code(prediction::other_mapping), help("use the mapping of this program on this machine"))]
    OtherMapping {
        /// `ranks` or `slots`.
        what: &'static str,
        /// Their number.
        given: usize,
        /// `program` or `machine`.
        of: &'static str,
        /// Its number of them.
        expected: usize,
    },
    /// Ranks wait for each other.
    #[error("the program ends in a deadlock: {0}")]
    #[diagnostic(
        code(prediction::deadlock),
        help(
            "a send of at least the eager limit waits for its receive; the program may depend on the limit of its MPI library"
        )
    )]
    Deadlock(Cycle),
    /// A message is never received.
    #[error("the message of {bytes} bytes from rank {source_rank} to rank {destination} is never received")]
    #[diagnostic(code(prediction::never_received))]
    NeverReceived {
        /// Rank that sends.
        source_rank: u32,
        /// Rank that should receive.
        destination: u32,
        /// Its bytes.
        bytes: u64,
    },
    /// A receive is never matched.
    #[error(
        "rank {destination} waits for a message from rank {source_rank} that is never sent (operation {index})"
    )]
    #[diagnostic(code(prediction::never_sent))]
    NeverSent {
        /// Rank that should send.
        source_rank: u32,
        /// Rank that waits.
        destination: u32,
        /// Index of its operation.
        index: usize,
    },
}

/// Ranks that wait for each other, each for the next one and the last one for the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle(pub Vec<Wait>);

/// A rank that waits for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The rank.
    pub rank: u32,
    /// Index of its operation.
    pub index: usize,
    /// The operation.
    pub kind: OperationKind,
    /// Whether it waits for a message of its own to be received, not for one from the other rank.
    pub is_send: bool,
    /// The other rank.
    pub peer: u32,
}

impl fmt::Display for Cycle {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 8;
        for (place, wait) in self.0.iter().take(MOST).enumerate() {
            let Wait { rank, index, kind, is_send, peer } = wait;
            let comma = if place == 0 { "" } else { ", " };
            let direction = if *is_send { "to send to" } else { "for" };
            write!(
                text,
                "{comma}rank {rank} waits in {} (operation {index}) {direction} rank {peer}",
                kind.name()
            )?;
        }
        match self.0.len() {
            0..=MOST => Ok(()),
            all => write!(text, ", and so on: {all} ranks in all"),
        }
    }
}
