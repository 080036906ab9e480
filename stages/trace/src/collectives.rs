//! Collective operations of MPI as the messages between two processes that they are made of.
//!
//! A trace records a collective operation once per process and says nothing of the messages behind it. [`expand`]
//! names those that MPICH would send: Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
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
//! and bytes that change between releases), and some that MPICH has not: pipelines, chains, split binary trees and
//! k-nomial trees for broadcast and reduce, rings for allreduce, neighbour exchange for allgather, linear and
//! tree-shaped barriers.

mod all_gather;
mod all_to_all;
mod barrier;
mod blocks;
#[cfg(test)]
mod checker;
mod network;
mod reduce;
mod sizes;
#[cfg(test)]
mod tests;
mod tree;

use hopmap_model::Edge;

use blocks::Blocks;
use network::Network;

/// Up to so many bytes a broadcast follows a binomial tree: `MPIR_CVAR_BCAST_SHORT_MSG_SIZE`.
const SHORT_BROADCAST: u64 = 12_288;
/// Up to so many bytes a broadcast ends in recursive doubling: `MPIR_CVAR_BCAST_LONG_MSG_SIZE`.
const MEDIUM_BROADCAST: u64 = 524_288;
/// Fewer processes than these broadcast along a binomial tree: `MPIR_CVAR_BCAST_MIN_PROCS`.
const FEW_PROCESSES: u32 = 8;
/// Up to so many bytes a vector is reduced whole: `MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE`,
/// `MPIR_CVAR_REDUCE_SHORT_MSG_SIZE`.
const SHORT_REDUCTION: u64 = 2_048;
/// Bytes of an element of a vector: a double.
const ELEMENT: u64 = 8;
/// From so many bytes every pair exchanges its part of a reduce-scatter:
/// `MPIR_CVAR_REDUCE_SCATTER_COMMUTATIVE_LONG_MSG_SIZE`.
const LONG_REDUCE_SCATTER: u128 = 524_288;

/// A collective operation of MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// `MPI_Barrier`
    Barrier,
    /// `MPI_Bcast`
    Broadcast,
    /// `MPI_Gather`
    Gather,
    /// `MPI_Gatherv`
    GatherV,
    /// `MPI_Scatter`
    Scatter,
    /// `MPI_Scatterv`
    ScatterV,
    /// `MPI_Allgather`
    AllGather,
    /// `MPI_Allgatherv`
    AllGatherV,
    /// `MPI_Alltoall`
    AllToAll,
    /// `MPI_Alltoallv`
    AllToAllV,
    /// `MPI_Alltoallw`
    AllToAllW,
    /// `MPI_Allreduce`
    AllReduce,
    /// `MPI_Reduce`
    Reduce,
    /// `MPI_Reduce_scatter`
    ReduceScatter,
    /// `MPI_Reduce_scatter_block`
    ReduceScatterBlock,
    /// `MPI_Scan`
    Scan,
    /// `MPI_Exscan`
    ExclusiveScan,
}

impl Operation {
    /// One process is the origin or the end of all data.
    pub(crate) fn has_root(self) -> bool {
        use Operation::{Broadcast, Gather, GatherV, Reduce, Scatter, ScatterV};
        matches!(self, Broadcast | Gather | GatherV | Scatter | ScatterV | Reduce)
    }
}

/// What the two sizes of a record count. OTF2 leaves it open ("Size of the sent message"); see [`sizes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Convention {
    /// All that the process gives to and gets from the others and itself by the definition of the operation, such as
    /// P · block for an allreduce: Score-P.
    Totals,
    /// The arguments of the call, count · size of the type, or the sum of the counts: EZTrace.
    Arguments,
}

impl Convention {
    /// The convention of the tool that an archive names as its creator, such as `Score-P 7.1`; EZTrace names none.
    pub(crate) fn of_creator(creator: &str) -> Self {
        match creator.starts_with("Score-P") {
            true => Self::Totals,
            false => Self::Arguments,
        }
    }
}

/// One collective operation as its processes recorded it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Collective<'a> {
    /// Which one.
    pub(crate) operation: Operation,
    /// The root's rank in the communicator. Ignored for operations without a root.
    pub(crate) root: Option<u32>,
    /// What the sizes count.
    pub(crate) convention: Convention,
    /// Bytes sent as every rank of the communicator recorded them.
    pub(crate) sent: &'a [u64],
    /// Bytes received as every rank of the communicator recorded them.
    pub(crate) received: &'a [u64],
}

/// A collective operation that cannot be expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CollectiveError {
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
}

/// Calls `transfer` with the messages of one collective operation: ranks of the communicator, messages from one rank
/// to another that follow each other taken together. A pair may come more than once, a rank never sends to itself.
/// The same operation gives the same calls; an operation of which a trace has many instances with the same root and
/// sizes is expanded once and multiplied. Takes time in proportion to the calls and memory to the processes. Bytes
/// beyond 64 bits stay at `u64::MAX`.
pub(crate) fn expand(collective: &Collective, transfer: impl FnMut(Edge)) -> Result<(), CollectiveError> {
    let Collective { operation, sent, received, .. } = *collective;
    let processes = match u32::try_from(sent.len()) {
        Ok(processes) if sent.len() == received.len() => processes,
        _ => return Err(CollectiveError::Processes { sent: sent.len(), received: received.len() }),
    };
    let root = match collective.root {
        _ if !operation.has_root() => 0,
        None => return Err(CollectiveError::NoRoot),
        Some(root) if root >= processes => return Err(CollectiveError::Root { root, processes }),
        Some(root) => root,
    };
    if processes > 1 {
        send(collective, root, &mut Network::new(processes, root, transfer));
    }
    Ok(())
}

/// What every process gives to the others and gets from them by the definition of an operation, whatever messages it is
/// made of: bytes by rank of the communicator. Of operations with a root it is what goes to or comes from the root.
pub(crate) fn exchanged(collective: &Collective) -> (Vec<u64>, Vec<u64>) {
    use Operation::{
        AllGather, AllGatherV, AllToAll, AllToAllV, AllToAllW, Barrier, GatherV, ReduceScatter,
        ReduceScatterBlock, ScatterV,
    };
    let Collective { operation, sent, received, root, .. } = *collective;
    let others = sent.len().saturating_sub(1) as u64;
    let block = sizes::block(collective, root.unwrap_or(0));
    let all = |bytes: u64| vec![bytes; sent.len()];
    let each = |bytes: &dyn Fn(u32) -> u64| (0..sent.len() as u32).map(bytes).collect::<Vec<u64>>();
    match operation {
        Barrier => (all(0), all(0)),
        GatherV | ScatterV | AllToAllV | AllToAllW => (sent.to_vec(), received.to_vec()),
        AllGather => (all(block), all(block.saturating_mul(others))),
        AllToAll => (all(block.saturating_mul(others)), all(block.saturating_mul(others))),
        ReduceScatterBlock => (all(block.saturating_mul(others)), all(block)),
        AllGatherV => {
            let blocks = sizes::contributions(collective);
            (each(&|rank| blocks.one(rank)), each(&|rank| blocks.all_but(rank)))
        }
        ReduceScatter => {
            let blocks = sizes::results(collective);
            (each(&|rank| blocks.all_but(rank)), each(&|rank| blocks.one(rank)))
        }
        _ => (all(block), all(block)),
    }
}

/// Sends the messages of an operation of two or more processes.
fn send(collective: &Collective, root: u32, network: &mut Network<impl FnMut(Edge)>) {
    let (sent, received) = (collective.sent, collective.received);
    let block = || sizes::block(collective, root);
    match collective.operation {
        Operation::Barrier => barrier::disseminate(network),
        Operation::Broadcast => broadcast(block(), network),
        Operation::Gather => tree::gather(&Blocks::equal(block(), network.processes()), network),
        Operation::Scatter => tree::scatter(&Blocks::equal(block(), network.processes()), network),
        Operation::GatherV => tree::to_root(sent, network),
        Operation::ScatterV => tree::from_root(received, network),
        Operation::AllGather => all_gather::all_gather(&Blocks::equal(block(), network.processes()), network),
        Operation::AllGatherV => all_gather::all_gather(&sizes::contributions(collective), network),
        Operation::AllToAll => all_to_all::all_to_all(block(), network),
        Operation::AllToAllV | Operation::AllToAllW => all_to_all::shares(sent, received, network),
        Operation::AllReduce => all_reduce(block(), network),
        Operation::Reduce => reduce(block(), root, network),
        Operation::ReduceScatter => reduce_scatter(&sizes::results(collective), network),
        Operation::ReduceScatterBlock => {
            reduce_scatter(&Blocks::equal(block(), network.processes()), network);
        }
        Operation::Scan | Operation::ExclusiveScan => reduce::scan(block(), network),
    }
}

/// `MPI_Bcast`.
fn broadcast(bytes: u64, network: &mut Network<impl FnMut(Edge)>) {
    let processes = network.processes();
    if processes < FEW_PROCESSES || bytes <= SHORT_BROADCAST {
        return tree::broadcast(bytes, network);
    }
    let pieces = Blocks::rounded_up(bytes, processes);
    tree::scatter(&pieces, network);
    if processes.is_power_of_two() && bytes <= MEDIUM_BROADCAST {
        all_gather::recursive_doubling(&pieces, network);
    } else {
        all_gather::ring(&pieces, network);
    }
}

/// Whether a vector is reduced whole, not in pieces.
fn is_short_reduction(bytes: u64, processes: u32) -> bool {
    bytes <= SHORT_REDUCTION || bytes < ELEMENT << processes.ilog2()
}

/// `MPI_Allreduce`.
fn all_reduce(bytes: u64, network: &mut Network<impl FnMut(Edge)>) {
    if is_short_reduction(bytes, network.processes()) {
        reduce::all_reduce_whole(bytes, network);
    } else {
        reduce::all_reduce_in_pieces(bytes, network);
    }
}

/// `MPI_Reduce`.
fn reduce(bytes: u64, root: u32, network: &mut Network<impl FnMut(Edge)>) {
    if is_short_reduction(bytes, network.processes()) {
        tree::reduce(bytes, network);
    } else {
        reduce::reduce_in_pieces(bytes, root, &mut network.unrotated());
    }
}

/// `MPI_Reduce_scatter` and `MPI_Reduce_scatter_block`.
fn reduce_scatter(blocks: &Blocks, network: &mut Network<impl FnMut(Edge)>) {
    if blocks.total() < LONG_REDUCE_SCATTER {
        reduce::reduce_scatter_by_halving(blocks, network);
    } else {
        all_to_all::to_each(blocks, network);
    }
}
