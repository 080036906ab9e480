//! What an operation has to move, and which algorithm MPICH takes for it.

use hopmap_model::CollectiveOperation as Operation;

use crate::algorithm::Algorithm;
use crate::sizes::{self, Blocks, Collective, saturate};

/// Bytes of an element of a vector: a double.
pub(crate) const ELEMENT: u64 = 8;

/// What an operation has to move.
#[derive(Debug, Clone)]
pub(crate) enum Load<'a> {
    /// Nothing: a barrier.
    Nothing,
    /// A vector of so many bytes: broadcasts, reductions, scans.
    Vector(u64),
    /// A block per process, numbered from the root on: gathers, scatters, reduce-scatters.
    Blocks(Blocks),
    /// So many bytes from each to each.
    Pairs(u64),
    /// What everybody sends and receives in all, by rank of the communicator.
    Shares(&'a [u64], &'a [u64]),
}

impl Load<'_> {
    /// What so many processes recorded; the root is one of them, and zero if there is none.
    pub(crate) fn recorded<'a>(collective: &Collective<'a>, root: u32) -> Load<'a> {
        let (sent, received) = (collective.sent, collective.received);
        let block = || sizes::block(collective, root);
        let from_root = |sizes: &[u64]| {
            let (before, after) = sizes.split_at(root as usize);
            Load::Blocks(Blocks::of(after.iter().chain(before).copied()))
        };
        match collective.operation {
            Operation::GatherV => from_root(sent),
            Operation::ScatterV => from_root(received),
            Operation::AllGatherV => Load::Blocks(sizes::contributions(collective)),
            Operation::ReduceScatter => Load::Blocks(sizes::results(collective)),
            Operation::AllToAllV | Operation::AllToAllW => Load::Shares(sent, received),
            operation => Load::equal(operation, block(), sent.len() as u32),
        }
    }

    /// Blocks of the same size.
    pub(crate) fn equal(operation: Operation, bytes: u64, processes: u32) -> Load<'static> {
        match operation {
            Operation::Barrier => Load::Nothing,
            Operation::Broadcast
            | Operation::Reduce
            | Operation::AllReduce
            | Operation::Scan
            | Operation::ExclusiveScan => Load::Vector(bytes),
            Operation::AllToAll | Operation::AllToAllV | Operation::AllToAllW => Load::Pairs(bytes),
            _ => Load::Blocks(Blocks::equal(bytes, processes)),
        }
    }

    /// Whether so many processes can do an operation with an algorithm: those that reduce a vector in pieces need an element
    /// for each of them.
    pub(crate) fn suits(&self, operation: Operation, algorithm: Algorithm, processes: u32) -> bool {
        let pieces = match algorithm {
            Algorithm::ReduceScatterAllgather | Algorithm::ReduceScatterGather => {
                1 << processes.max(1).ilog2()
            }
            Algorithm::Ring => u64::from(processes),
            _ => 0,
        };
        let whole = matches!(self, Self::Vector(bytes) if *bytes < ELEMENT * pieces);
        algorithm.fits(operation, processes) && !whole
    }

    /// Bytes of a block and whether all have the same size; otherwise the mean, rounded up. The block of the root, which
    /// goes nowhere, does not count.
    pub(crate) fn block(&self, rooted: bool) -> (u64, bool) {
        match self {
            Self::Nothing => (0, true),
            Self::Vector(bytes) | Self::Pairs(bytes) => (*bytes, true),
            Self::Blocks(blocks) => {
                let first = u32::from(rooted && blocks.count() > 1);
                mean((first..blocks.count()).map(|block| blocks.one(block)))
            }
            Self::Shares(sent, received) => {
                let (bytes, even) = mean(sent.iter().copied());
                let alike = received.windows(2).all(|pair| pair[0] == pair[1]);
                (bytes.div_ceil(sent.len().max(1) as u64), even && alike)
            }
        }
    }
}

/// The mean of some sizes, rounded up, and whether all are the same.
fn mean(mut sizes: impl Iterator<Item = u64>) -> (u64, bool) {
    let first = sizes.next().unwrap_or(0);
    let start = (u128::from(first), 1, true);
    let (sum, count, even) = sizes
        .fold(start, |(sum, count, even), size| (sum + u128::from(size), count + 1, even && size == first));
    (saturate(sum.div_ceil(count)), even)
}

/// Up to so many bytes a broadcast follows a binomial tree: `MPIR_CVAR_BCAST_SHORT_MSG_SIZE`.
const SHORT_BROADCAST: u64 = 12_288;
/// Up to so many bytes a broadcast ends in recursive doubling: `MPIR_CVAR_BCAST_LONG_MSG_SIZE`.
const MEDIUM_BROADCAST: u64 = 524_288;
/// Fewer processes than these broadcast along a binomial tree: `MPIR_CVAR_BCAST_MIN_PROCS`.
const FEW_BROADCAST: u32 = 8;
/// Up to so many bytes a vector is reduced whole: `MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE`,
/// `MPIR_CVAR_REDUCE_SHORT_MSG_SIZE`.
const SHORT_REDUCTION: u64 = 2_048;
/// From so many bytes every pair exchanges its part of a reduce-scatter:
/// `MPIR_CVAR_REDUCE_SCATTER_COMMUTATIVE_LONG_MSG_SIZE`.
const LONG_REDUCE_SCATTER: u128 = 524_288;
/// Below so many bytes in all, 2ᵏ processes double what they have: `MPIR_CVAR_ALLGATHER_LONG_MSG_SIZE`.
const LONG_ALLGATHER: u128 = 524_288;
/// Below so many bytes in all, other numbers of processes do: `MPIR_CVAR_ALLGATHER_SHORT_MSG_SIZE`.
const SHORT_ALLGATHER: u128 = 81_920;
/// Up to so many bytes per pair, blocks travel together: `MPIR_CVAR_ALLTOALL_SHORT_MSG_SIZE`.
const SHORT_ALLTOALL: u64 = 256;
/// Up to so many bytes per pair, all blocks are sent at once: `MPIR_CVAR_ALLTOALL_MEDIUM_MSG_SIZE`.
const MEDIUM_ALLTOALL: u64 = 32_768;
/// Fewer processes than these send every block straight to its destination.
const FEW_ALLTOALL: u32 = 8;

/// The algorithm that MPICH takes for what is to be moved between two or more processes.
pub(crate) fn algorithm(operation: Operation, load: &Load<'_>, processes: u32) -> Algorithm {
    match (load, operation) {
        (Load::Nothing, _) => Algorithm::Dissemination,
        (Load::Vector(bytes), Operation::Broadcast) => broadcast(*bytes, processes),
        (Load::Vector(bytes), Operation::AllReduce) => match is_short_reduction(*bytes, processes) {
            true => Algorithm::RecursiveDoubling,
            false => Algorithm::ReduceScatterAllgather,
        },
        (Load::Vector(bytes), Operation::Reduce) => match is_short_reduction(*bytes, processes) {
            true => Algorithm::Binomial,
            false => Algorithm::ReduceScatterGather,
        },
        (Load::Vector(_), _) => Algorithm::RecursiveDoubling,
        (Load::Blocks(_), Operation::Gather | Operation::Scatter) => Algorithm::Binomial,
        (Load::Blocks(blocks), Operation::AllGather | Operation::AllGatherV) => all_gather(blocks, processes),
        (Load::Blocks(blocks), Operation::ReduceScatter | Operation::ReduceScatterBlock) => {
            match blocks.total() < LONG_REDUCE_SCATTER {
                true => Algorithm::RecursiveHalving,
                false => Algorithm::Pairwise,
            }
        }
        (Load::Pairs(bytes), Operation::AllToAll) => all_to_all(*bytes, processes),
        (Load::Blocks(_) | Load::Pairs(_) | Load::Shares(..), _) => Algorithm::Linear,
    }
}

fn broadcast(bytes: u64, processes: u32) -> Algorithm {
    if processes < FEW_BROADCAST || bytes <= SHORT_BROADCAST {
        Algorithm::Binomial
    } else if processes.is_power_of_two() && bytes <= MEDIUM_BROADCAST {
        Algorithm::ScatterDoubling
    } else {
        Algorithm::ScatterRing
    }
}

/// Whether a vector is reduced whole, not in pieces.
fn is_short_reduction(bytes: u64, processes: u32) -> bool {
    bytes <= SHORT_REDUCTION || bytes < ELEMENT << processes.max(1).ilog2()
}

fn all_gather(blocks: &Blocks, processes: u32) -> Algorithm {
    match processes.is_power_of_two() {
        true if blocks.total() < LONG_ALLGATHER => Algorithm::RecursiveDoubling,
        false if blocks.total() < SHORT_ALLGATHER => Algorithm::Bruck,
        _ => Algorithm::Ring,
    }
}

fn all_to_all(block: u64, processes: u32) -> Algorithm {
    if processes >= FEW_ALLTOALL && block <= SHORT_ALLTOALL {
        Algorithm::Bruck
    } else if block <= MEDIUM_ALLTOALL {
        Algorithm::Linear
    } else {
        Algorithm::Pairwise
    }
}
