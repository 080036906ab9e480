//! Collective operations of MPI as the messages between two processes that they are made of.
//!
//! A trace records a collective operation once per process and says nothing of the messages behind it. [`expand`]
//! names those of an [`Algorithm`], or those that MPICH would send: Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
//! Operations in MPICH", IJHPCA 19(1), 2005, with the rules of choice of MPICH 5.0.1,
//! `maint/tuning/coll/mpir/generic.json` (but for the barrier's name the same since 4.0), and the algorithms of
//! `src/mpi/coll/*/*_intra_*.c` there. With P processes, `block` bytes per process (or per pair, `MPI_Alltoall`) and
//! `total` bytes in all blocks:
//!
//! | operation | when | algorithm |
//! |---|---|---|
//! | barrier | | dissemination, empty messages |
//! | broadcast | P < 8 or block ≤ 12288 | binomial tree |
//! | | P = 2ᵏ and block ≤ 524288 | scatter along a binomial tree, allgather by recursive doubling |
//! | | otherwise | scatter along a binomial tree, allgather in a ring |
//! | gather, scatter | | binomial tree |
//! | gatherv, scatterv | | straight to and from the root |
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
//! Where this differs from MPICH:
//!
//! - Reductions are taken to be predefined and commutative, of elements of 8 bytes: MPICH halves a vector only if every
//!   process gets an element, and a trace counts bytes, not elements. Blocks are cut at bytes.
//! - `generic.json` lets the blocking allreduce halve vectors from 9 bytes. The paper, MPICH 3.2, the default of
//!   `MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE` and the same file's rule for `MPI_Iallreduce` say 2048, and so does this.
//! - `MPI_IN_PLACE` changes nothing. A message without bytes is not sent, except by a barrier. The ring of allgatherv
//!   is not cut into messages of 32768 bytes.
//! - Nothing depends on which processes share a node (`MPIR_*_intra_smp`): that is the mapping, which is sought.
//! - Nonblocking operations are expanded like blocking ones. Operations between two groups (intercommunicators) are
//!   not known here.
//!
//! Open MPI uses the same algorithms but other rules (`ompi/mca/coll/tuned/coll_tuned_decision_fixed.c`: tables over P
//! and bytes that change between releases), and some that MPICH has not. Of those, [`Algorithm`] has chains and straight
//! messages for broadcast, rings for allreduce, neighbour exchange for allgather and tree-shaped barriers; pipelines,
//! split binary trees and k-nomial trees are not here.
//!
//! [`Call`] is an operation whose blocks have the same size, and tells its messages by rounds.

mod algorithm;
#[cfg(test)]
mod checker;
mod load;
mod network;
mod reduce;
#[cfg(test)]
mod round_tests;
mod sizes;
#[cfg(test)]
mod tests;

use hopmap_model::Edge;

pub use hopmap_model::CollectiveOperation as Operation;

pub use algorithm::{Algorithm, AlgorithmError, Algorithms};
use load::Load;
use network::{Network, Order};
use sizes::Blocks;
pub use sizes::{Collective, Convention, exchanged};

/// A collective operation that cannot be expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CollectiveError {
    /// Not every process has both sizes, or there are more processes than ranks.
    #[error("{sent} processes tell what they sent and {received} what they received")]
    Processes {
        /// Sizes of what was sent.
        sent: usize,
        /// Sizes of what was received.
        received: usize,
    },
    /// The operation has a root, but none is given.
    #[error("the operation has no root")]
    NoRoot,
    /// The root is none of the processes.
    #[error("the root is rank {root} of {processes} processes")]
    Root {
        /// The root.
        root: u32,
        /// How many processes there are.
        processes: u32,
    },
    /// So many processes cannot do the operation in this way.
    #[error("{processes} processes cannot do `{operation}` of {bytes} bytes with `{algorithm}`")]
    Algorithm {
        /// The operation.
        operation: Operation,
        /// The algorithm.
        algorithm: Algorithm,
        /// How many processes there are.
        processes: u32,
        /// Bytes of a block.
        bytes: u64,
    },
}

/// Calls `transfer` with the messages of one collective operation: ranks of the communicator, messages from one rank
/// to another that follow each other taken together. A pair may come more than once, a rank never sends to itself.
/// Without an algorithm, or with one that is not for so many processes or so few bytes, MPICH's rules decide.
/// The same operation gives the same calls; an operation of which a trace has many instances with the same root and
/// sizes is expanded once and multiplied. Takes time in proportion to the calls and memory to the processes. Bytes
/// beyond 64 bits stay at `u64::MAX`.
pub fn expand(
    collective: &Collective<'_>,
    algorithm: Option<Algorithm>,
    mut transfer: impl FnMut(Edge),
) -> Result<(), CollectiveError> {
    let operation = collective.operation;
    let (processes, root) = ends(collective)?;
    if processes > 1 {
        let load = Load::recorded(collective, root);
        let algorithm = algorithm.filter(|algorithm| load.suits(operation, *algorithm, processes));
        let algorithm = algorithm.unwrap_or_else(|| load::algorithm(operation, &load, processes));
        let mut network = Network::new(processes, root, |_, edge| transfer(edge));
        send((operation, algorithm), &load, root, &mut network);
    }
    Ok(())
}

/// A call of an operation as processes recorded it that moves as much, and whether all blocks have its size. If not,
/// its size is their mean, rounded up.
pub fn summary(collective: &Collective<'_>) -> Result<(Call, bool), CollectiveError> {
    let Collective { operation, sent, received, .. } = *collective;
    let (processes, root) = ends(collective)?;
    let (bytes, even) = match processes {
        // Nothing tells one process from several in what it counted.
        0 | 1 => (sent.iter().chain(received).copied().max().unwrap_or(0), true),
        _ => Load::recorded(collective, root).block(operation.has_root()),
    };
    let root = operation.has_root().then_some(root);
    Ok((Call { operation, processes, root, bytes }, even))
}

/// The number of processes and the root of a recorded operation; zero if it has none.
fn ends(collective: &Collective<'_>) -> Result<(u32, u32), CollectiveError> {
    let Collective { operation, sent, received, root, .. } = *collective;
    match u32::try_from(sent.len()) {
        Ok(processes) if sent.len() == received.len() => {
            Ok((processes, check_root(operation, root, processes)?))
        }
        _ => Err(CollectiveError::Processes { sent: sent.len(), received: received.len() }),
    }
}

/// The root, if the operation has one; otherwise zero.
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
    /// Which one.
    pub operation: Operation,
    /// How many processes there are.
    pub processes: u32,
    /// The root, if the operation has one.
    pub root: Option<u32>,
    /// Bytes of a block, as in [`hopmap_model::CollectiveCalls::bytes`].
    pub bytes: u64,
}

impl Call {
    /// The algorithm that MPICH would take.
    #[must_use]
    pub fn usual(&self) -> Algorithm {
        let Self { operation, processes, bytes, .. } = *self;
        load::algorithm(operation, &Load::equal(operation, bytes, processes), processes)
    }

    /// Whether the processes can use an algorithm. Some are for 2ᵏ or an even number of processes; those that reduce a vector
    /// in pieces need an element of 8 bytes for each, as in MPICH and Open MPI.
    #[must_use]
    pub fn suits(&self, algorithm: Algorithm) -> bool {
        let Self { operation, processes, bytes, .. } = *self;
        Load::equal(operation, bytes, processes).suits(operation, algorithm, processes)
    }

    /// Bound of how many times [`messages`](Self::messages) calls `transfer`.
    #[must_use]
    pub fn most_messages(&self, algorithm: Algorithm) -> u64 {
        let processes = u64::from(self.processes);
        let pairs = match algorithm {
            Algorithm::Pairwise | Algorithm::NeighbourExchange => true,
            Algorithm::Linear => !self.operation.has_root(),
            _ => false,
        };
        match pairs {
            true => processes * processes,
            false => processes * (2 * u64::from(u32::BITS) + 3),
        }
    }

    /// Calls `transfer` with the messages of an algorithm, as [`expand`] does, and the round of each. Messages of one
    /// round do not need each other; a process sends its messages of one round one after the other, and gets them so.
    /// Rounds come in any order, and numbers may be left out. P − 1 rounds around a ring are one, with as many messages
    /// per pair.
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

/// Sends the messages of an operation of two or more processes with an algorithm that is one for it and them.
pub(crate) fn send(
    (operation, algorithm): (Operation, Algorithm),
    load: &Load<'_>,
    root: u32,
    network: &mut Network<impl FnMut(u32, Edge)>,
) {
    match (load, algorithm) {
        (Load::Nothing, Algorithm::Tree) => network::tree(network),
        (Load::Nothing, _) => network::disseminate(network),
        (Load::Vector(bytes), _) => match operation {
            Operation::Broadcast => broadcast(algorithm, *bytes, network),
            Operation::Reduce => reduce(algorithm, *bytes, root, network),
            Operation::AllReduce => all_reduce(algorithm, *bytes, network),
            _ if algorithm == Algorithm::Chain => network::chain(*bytes, network),
            _ => reduce::scan(*bytes, network),
        },
        (Load::Blocks(blocks), _) => match operation {
            Operation::AllGather | Operation::AllGatherV => all_gather(algorithm, blocks, network),
            Operation::ReduceScatter | Operation::ReduceScatterBlock => match algorithm {
                Algorithm::RecursiveHalving => reduce::reduce_scatter_by_halving(blocks, network),
                _ => network::to_each(blocks, order(algorithm), network),
            },
            Operation::Gather | Operation::GatherV => match algorithm {
                Algorithm::Linear => network::to_root(blocks, network),
                _ => network::gather(blocks, network),
            },
            _ if algorithm == Algorithm::Linear => network::from_root(blocks, network),
            _ => network::scatter(blocks, network),
        },
        (Load::Pairs(bytes), Algorithm::Bruck) => network::bruck_all_to_all(*bytes, network),
        (Load::Pairs(bytes), _) => {
            network::to_each(&Blocks::equal(*bytes, network.processes()), order(algorithm), network);
        }
        (Load::Shares(sent, received), _) => network::shares(sent, received, order(algorithm), network),
    }
}

/// When the messages between all pairs are sent.
fn order(algorithm: Algorithm) -> Order {
    if algorithm == Algorithm::Linear { Order::AtOnce } else { Order::InRounds }
}

fn broadcast(algorithm: Algorithm, bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    let whole = |network: &Network<_>| Blocks::equal(bytes, network.processes());
    match algorithm {
        Algorithm::Linear => network::from_root(&whole(network), network),
        Algorithm::Chain => network::chain(bytes, network),
        Algorithm::ScatterRing | Algorithm::ScatterDoubling => {
            broadcast_in_pieces(algorithm, &Blocks::rounded_up(bytes, network.processes()), network);
        }
        _ => network::broadcast(bytes, network),
    }
}

/// A scatter, then an allgather.
pub(crate) fn broadcast_in_pieces(
    algorithm: Algorithm,
    pieces: &Blocks,
    network: &mut Network<impl FnMut(u32, Edge)>,
) {
    network::scatter(pieces, network);
    network.next_part();
    match algorithm {
        Algorithm::ScatterDoubling => network::recursive_doubling(pieces, network),
        _ => network::ring(pieces, network),
    }
}

fn reduce(algorithm: Algorithm, bytes: u64, root: u32, network: &mut Network<impl FnMut(u32, Edge)>) {
    let processes = network.processes();
    match algorithm {
        Algorithm::ReduceScatterGather => {
            let pieces = Blocks::even(bytes, 1 << processes.ilog2());
            reduce::reduce_in_pieces(&pieces, root, &mut network.unrotated());
        }
        Algorithm::Linear => network::to_root(&Blocks::equal(bytes, processes), network),
        _ => network::reduce(bytes, network),
    }
}

fn all_reduce(algorithm: Algorithm, bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    let processes = network.processes();
    match algorithm {
        Algorithm::ReduceScatterAllgather => {
            reduce::all_reduce_in_pieces(&Blocks::even(bytes, 1 << processes.ilog2()), network);
        }
        Algorithm::Ring => reduce::all_reduce_in_rings(&Blocks::even(bytes, processes), network),
        _ => reduce::all_reduce_whole(bytes, network),
    }
}

fn all_gather(algorithm: Algorithm, blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    match algorithm {
        Algorithm::RecursiveDoubling => network::recursive_doubling(blocks, network),
        Algorithm::Bruck => network::bruck(blocks, network),
        Algorithm::NeighbourExchange => network::neighbour_exchange(blocks, network),
        _ => network::ring(blocks, network),
    }
}
