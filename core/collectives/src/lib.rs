//! Expansion of MPI collective operations into point-to-point messages.
//!
//! A trace records a collective operation once per process, without its messages. [`expand`] computes the
//! messages of an [`Algorithm`], by default the one that the [`Rules`] of MPICH or Open MPI select.
//!
//! MPICH: Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH",
//! IJHPCA 19(1), 2005, with the selection rules of MPICH 5.0.1, `maint/tuning/coll/mpir/generic.json`
//! (unchanged since 4.0 except for the name of the barrier), and the algorithms of
//! `src/mpi/coll/*/*_intra_*.c` there. With P processes, `block` bytes per process (or per pair,
//! `MPI_Alltoall`) and `total` bytes in all blocks:
//!
//! | operation | when | algorithm |
//! |---|---|---|
//! | barrier | | dissemination, empty messages |
//! | broadcast | P < 8 or block ≤ 12288 | binomial tree |
//! | | P = 2ᵏ and block ≤ 524288 | scatter along a binomial tree, allgather by recursive doubling |
//! | | otherwise | scatter along a binomial tree, allgather in a ring |
//! | gather, scatter | | binomial tree |
//! | gatherv, scatterv | | direct messages to and from the root |
//! | allgather, allgatherv | P = 2ᵏ and total < 524288 | recursive doubling |
//! | | P ≠ 2ᵏ and total < 81920 | Bruck |
//! | | otherwise | ring |
//! | alltoall | P ≥ 8 and block ≤ 256 | Bruck |
//! | | otherwise | every pair (all at once up to 32768 bytes, in P − 1 rounds above: the same messages) |
//! | alltoallv, alltoallw | | every pair |
//! | allreduce | block ≤ 2048 or block < 8 · 2ᵏ, 2ᵏ ≤ P | recursive doubling |
//! | | otherwise | Rabenseifner: reduce-scatter by halving, allgather by doubling |
//! | reduce | block ≤ 2048 or block < 8 · 2ᵏ, 2ᵏ ≤ P | binomial tree |
//! | | otherwise | Rabenseifner: reduce-scatter by halving, gather along a binomial tree |
//! | reduce-scatter (with and without `_block`) | total < 524288 | recursive halving |
//! | | otherwise | every pair |
//! | scan, exclusive scan | | recursive doubling |
//!
//! Differences from MPICH:
//!
//! - Reductions are assumed to be predefined and commutative, on elements of 8 bytes: MPICH splits a vector
//!   only if every process gets an element, and a trace counts bytes, not elements. Blocks are split at
//!   bytes.
//! - `generic.json` lets the blocking allreduce split vectors from 9 bytes. The paper, MPICH 3.2, the
//!   default of `MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE` and the rule for `MPI_Iallreduce` in the same file use
//!   2048, and so does hopmap.
//! - `MPI_IN_PLACE` has no effect. Empty messages are sent only by barriers. The ring of allgatherv is not
//!   split into messages of 32768 bytes.
//! - The expansion ignores which processes share a node (`MPIR_*_intra_smp`), because that is the mapping to
//!   be found.
//! - Nonblocking operations are expanded like blocking ones. Operations on intercommunicators are not
//!   supported.
//!
//! Open MPI 4.1: the table in `rules.rs`, with the algorithms of `ompi/mca/coll/base`. A test with 2 to 16
//! ranks compares the messages and bytes of every pair with those that `pml/monitoring` counts. The
//! simplifications are those above; a vector of doubles is cut at bytes too, so its messages differ by less
//! than an element if the pieces do not divide it.
//!
//! [`Call`] is an operation with blocks of equal size; it reports its messages by round.

mod algorithm;
#[cfg(test)]
mod checker;
mod load;
mod messages;
mod network;
mod reduce;
#[cfg(test)]
mod round_tests;
mod rules;
mod sizes;
#[cfg(test)]
mod tests;
mod trees;

use hopmap_model::Edge;

pub use hopmap_model::CollectiveOperation as Operation;

pub use algorithm::{Algorithm, AlgorithmError, Algorithms, Rules};
use load::Load;
use messages::send;
use network::Network;
use sizes::Blocks;
pub use sizes::{Collective, Convention, exchanged};

/// A collective operation that cannot be expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CollectiveError {
    /// The numbers of sizes differ, or there are more processes than ranks.
    #[error("{sent} processes recorded sent bytes, but {received} recorded received bytes")]
    Processes {
        /// Sizes of what was sent.
        sent: usize,
        /// Sizes of what was received.
        received: usize,
    },
    /// The operation needs a root, but none is given.
    #[error("the root of the operation is missing")]
    NoRoot,
    /// The root is not one of the processes.
    #[error("the root is rank {root}, but there are only {processes} processes")]
    Root {
        /// The root.
        root: u32,
        /// Number of processes.
        processes: u32,
    },
    /// The algorithm does not support this number of processes or bytes.
    #[error("`{algorithm}` does not support `{operation}` of {bytes} bytes on {processes} processes")]
    Algorithm {
        /// The operation.
        operation: Operation,
        /// The algorithm.
        algorithm: Algorithm,
        /// Number of processes.
        processes: u32,
        /// Bytes of a block.
        bytes: u64,
    },
}

/// Calls `transfer` with the messages of one collective operation. Ranks are those of the communicator, and
/// consecutive messages between the same ranks are combined. A pair may occur more than once; a rank never
/// sends to itself. Without an algorithm, or if it does not support this number of processes or bytes, the
/// rules of an MPI library apply. The same operation always gives the same calls, so callers can expand many
/// instances with the same root and sizes once and multiply. Time is proportional to the number of calls,
/// memory to the number of processes. Byte counts saturate at `u64::MAX`.
pub fn expand(
    collective: &Collective<'_>,
    algorithms: &Algorithms,
    mut transfer: impl FnMut(Edge),
) -> Result<(), CollectiveError> {
    let operation = collective.operation;
    let (processes, root) = ends(collective)?;
    if processes > 1 {
        let load = Load::recorded(collective, root);
        let chosen = algorithms.of(operation).filter(|chosen| load.suits(operation, *chosen, processes));
        let algorithm = chosen.unwrap_or_else(|| algorithms.rules.algorithm(operation, &load, processes));
        let mut network = Network::new(processes, root, |_, edge| transfer(edge));
        send((operation, algorithm), &load, root, &mut network);
    }
    Ok(())
}

/// The call with blocks of equal size that moves as much as a recorded operation, and whether its blocks
/// really have equal size. If not, the size is their mean, rounded up.
pub fn summary(collective: &Collective<'_>) -> Result<(Call, bool), CollectiveError> {
    let Collective { operation, sent, received, .. } = *collective;
    let (processes, root) = ends(collective)?;
    let (bytes, even) = match processes {
        // With at most one process the conventions are indistinguishable.
        0 | 1 => (sent.iter().chain(received).copied().max().unwrap_or(0), true),
        _ => Load::recorded(collective, root).block(operation.has_root()),
    };
    let root = operation.has_root().then_some(root);
    Ok((Call { operation, processes, root, bytes }, even))
}

/// Bytes of the block of every process, as in [`Action::Collective`](hopmap_model::Action::Collective): its
/// own contribution or share if blocks may differ, its mean block in an alltoallv or alltoallw, and else
/// [`Call::bytes`] for all.
pub fn blocks(collective: &Collective<'_>) -> Result<Vec<u64>, CollectiveError> {
    let Collective { operation, sent, received, .. } = *collective;
    let (Call { processes, bytes, .. }, _) = summary(collective)?;
    let of = |blocks: &Blocks| (0..processes).map(|process| blocks.one(process)).collect();
    Ok(match operation {
        _ if processes <= 1 => vec![bytes; sent.len()],
        Operation::GatherV => sent.to_vec(),
        Operation::ScatterV => received.to_vec(),
        Operation::AllGatherV => of(&sizes::contributions(collective)),
        Operation::ReduceScatter => of(&sizes::results(collective)),
        Operation::AllToAllV | Operation::AllToAllW => {
            sent.iter().map(|sent| sent.div_ceil(u64::from(processes))).collect()
        }
        _ => vec![bytes; sent.len()],
    })
}

/// The number of processes and the root of a recorded operation; zero for operations without a root.
fn ends(collective: &Collective<'_>) -> Result<(u32, u32), CollectiveError> {
    let Collective { operation, sent, received, root, .. } = *collective;
    match u32::try_from(sent.len()) {
        Ok(processes) if sent.len() == received.len() => {
            Ok((processes, check_root(operation, root, processes)?))
        }
        _ => Err(CollectiveError::Processes { sent: sent.len(), received: received.len() }),
    }
}

/// The root; zero for operations without a root.
fn check_root(operation: Operation, root: Option<u32>, processes: u32) -> Result<u32, CollectiveError> {
    match root {
        _ if !operation.has_root() => Ok(0),
        None => Err(CollectiveError::NoRoot),
        Some(root) if root >= processes => Err(CollectiveError::Root { root, processes }),
        Some(root) => Ok(root),
    }
}

/// A collective operation whose blocks have the same size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The operation.
    pub operation: Operation,
    /// Number of processes.
    pub processes: u32,
    /// The root, if the operation has one.
    pub root: Option<u32>,
    /// Bytes of a block, as in [`hopmap_model::CollectiveCalls::bytes`].
    pub bytes: u64,
}

impl Call {
    /// The algorithm that an MPI library would select; of a single process, any.
    #[must_use]
    pub fn usual(&self, rules: Rules) -> Algorithm {
        let Self { operation, processes, bytes, .. } = *self;
        rules.algorithm(operation, &Load::equal(operation, bytes, processes), processes.max(1))
    }

    /// Whether the processes can use an algorithm. Some need 2ᵏ or an even number of processes; those that
    /// reduce a vector in pieces need an element of 8 bytes per piece, as in MPICH and Open MPI.
    #[must_use]
    pub fn suits(&self, algorithm: Algorithm) -> bool {
        let Self { operation, processes, bytes, .. } = *self;
        Load::equal(operation, bytes, processes).suits(operation, algorithm, processes)
    }

    /// Upper bound on the number of calls of `transfer` by [`messages`](Self::messages).
    #[must_use]
    pub fn most_messages(&self, algorithm: Algorithm) -> u64 {
        let processes = u64::from(self.processes);
        let pairs = match algorithm {
            Algorithm::Pairwise | Algorithm::NeighbourExchange => true,
            Algorithm::Linear => {
                matches!(self.operation, Operation::AllToAll | Operation::AllToAllV | Operation::AllToAllW)
            }
            _ => false,
        };
        match pairs {
            true => processes * processes,
            false => processes * (2 * u64::from(u32::BITS) + 5),
        }
    }

    /// Calls `transfer` with the messages of an algorithm, as [`expand`] does, and the round of each.
    /// Messages of one round do not depend on each other; a process sends and receives its messages of one
    /// round one after the other. Rounds come in any order, with gaps. The P − 1 rounds of a ring count as
    /// one round, with P − 1 messages per pair.
    pub fn messages(
        &self,
        algorithm: Algorithm,
        transfer: impl FnMut(u32, Edge),
    ) -> Result<(), CollectiveError> {
        let Self { operation, processes, root, bytes } = *self;
        let root = check_root(operation, root, processes)?;
        if !self.suits(algorithm) {
            return Err(CollectiveError::Algorithm { operation, algorithm, processes, bytes });
        }
        if processes > 1 {
            let load = Load::equal(operation, bytes, processes);
            send((operation, algorithm), &load, root, &mut Network::new(processes, root, transfer));
        }
        Ok(())
    }
}
