//! The messages of group operations between members, as NCCL sends them.

use std::collections::BTreeMap;

use hopmap_collectives::{Algorithm, Call, Operation};

use super::params::GroupAlgorithm;
use crate::error::TrainingError;

/// Who of a group sends to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    /// A collective operation. All-to-alls are direct, in rounds of exchanges; all others are rings or trees.
    Collective(Operation, GroupAlgorithm),
    /// Every stage of a pipeline sends to the next one, and that sends as much back.
    Pipeline {
        /// Whether the last stage also sends to the first one, as between the chunks of an interleaved pipeline.
        is_cyclic: bool,
    },
}

/// An operation of every group of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupOperation {
    pub(super) pattern: Pattern,
    /// Bytes of one call: the whole vector, what a member hands to an all-to-all, or what goes to the next stage.
    pub(super) bytes: u64,
    /// Calls in a step.
    pub(super) calls: u64,
}

impl GroupOperation {
    /// A collective operation, once in a step.
    pub(super) fn once(operation: Operation, algorithm: GroupAlgorithm, bytes: u64) -> Self {
        Self { pattern: Pattern::Collective(operation, algorithm), bytes, calls: 1 }
    }
}

/// Messages and bytes of pairs of members.
type Sums = BTreeMap<(u32, u32), (u64, u64)>;

/// Messages between two members in one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

impl Pattern {
    /// Largest number of members that a member sends to.
    pub(super) fn neighbours(self, members: u64) -> u64 {
        match self {
            Self::Collective(Operation::AllToAll, _) => members.saturating_sub(1),
            Self::Collective(_, GroupAlgorithm::Ring) => 1,
            Self::Collective(_, GroupAlgorithm::Tree) => 6,
            Self::Pipeline { .. } => 2,
        }
    }

    /// The transfers of one call, by round. The bytes are those of the whole vector, or what a member hands to an
    /// all-to-all with its own share, or to the next stage. Rings and trees are one round: their chunks are
    /// pipelined.
    pub(super) fn rounds(self, members: u32, bytes: u64) -> Result<Vec<Vec<Transfer>>, TrainingError> {
        match self {
            Self::Pipeline { is_cyclic } => Ok(vec![pipeline(members, bytes, is_cyclic)]),
            Self::Collective(operation, algorithm) => {
                let algorithm = match (operation, algorithm) {
                    (Operation::AllToAll, _) => Algorithm::Pairwise,
                    (Operation::AllReduce, GroupAlgorithm::Tree) => Algorithm::DoubleBinaryTree,
                    _ => Algorithm::Ring,
                };
                let block = if operation == Operation::AllReduce {
                    bytes
                } else {
                    bytes.div_ceil(u64::from(members))
                };
                let call = Call { operation, processes: members, root: None, bytes: block };
                let mut rounds: BTreeMap<u32, Sums> = BTreeMap::new();
                let is_pipelined = algorithm == Algorithm::DoubleBinaryTree;
                let expanded = call.messages(algorithm, |round, edge| {
                    let round = if is_pipelined { 0 } else { round };
                    let sum = rounds.entry(round).or_default().entry(edge.pair()).or_default();
                    *sum = (sum.0.saturating_add(edge.messages), sum.1.saturating_add(edge.bytes));
                });
                expanded.map_err(|error| {
                    TrainingError::new(error.to_string(), "give every member of a group 8 bytes or more")
                })?;
                let transfer = |((source, destination), (messages, bytes))| Transfer {
                    source,
                    destination,
                    messages,
                    bytes,
                };
                Ok(rounds.into_values().map(|round| round.into_iter().map(transfer).collect()).collect())
            }
        }
    }
}

fn pipeline(members: u32, bytes: u64, is_cyclic: bool) -> Vec<Transfer> {
    let last = if is_cyclic && members > 2 { members } else { members.saturating_sub(1) };
    let both = |stage: u32| {
        let next = (stage + 1) % members;
        [(stage, next), (next, stage)]
    };
    let transfer = |(source, destination)| Transfer { source, destination, messages: 1, bytes };
    (0..last).flat_map(both).map(transfer).collect()
}
