//! The data that an operation moves, and the algorithm that MPICH chooses for it.

use hopmap_model::CollectiveOperation as Operation;

use crate::algorithm::Algorithm;
use crate::sizes::{self, Blocks, Collective, saturate};

/// Bytes of a vector element: a double.
pub(crate) const ELEMENT: u64 = 8;

/// Data that an operation moves.
#[derive(Debug, Clone)]
pub(crate) enum Load<'a> {
    /// Nothing: a barrier.
    Nothing,
    /// A vector of this many bytes: broadcasts, reductions, scans.
    Vector(u64),
    /// A block per process, numbered from the root: gathers, scatters, reduce-scatters.
    Blocks(Blocks),
    /// This many bytes between every pair.
    Pairs(u64),
    /// Total bytes that every rank of the communicator sends and receives.
    Shares(&'a [u64], &'a [u64]),
}

impl Load<'_> {
    /// Data of a recorded operation; the root is one of the processes, or zero for operations without a
    /// root.
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

    /// Whether this many processes can do an operation with an algorithm. Algorithms that reduce a vector in
    /// pieces need an element per piece.
    pub(crate) fn suits(&self, operation: Operation, algorithm: Algorithm, processes: u32) -> bool {
        let pieces = match algorithm {
            Algorithm::ReduceScatterAllgather | Algorithm::ReduceScatterGather | Algorithm::Rabenseifner => {
                1 << processes.max(1).ilog2()
            }
            Algorithm::Ring => u64::from(processes),
            _ => 0,
        };
        let indivisible = matches!(self, Self::Vector(bytes) if *bytes < ELEMENT * pieces);
        algorithm.fits(operation, processes) && !indivisible
    }

    /// Bytes of a block, and whether all blocks have this size; otherwise the mean, rounded up. Ignores the
    /// block of the root, which is not sent.
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

/// The mean of sizes, rounded up, and whether all are equal.
fn mean(mut sizes: impl Iterator<Item = u64>) -> (u64, bool) {
    let first = sizes.next().unwrap_or(0);
    let start = (u128::from(first), 1, true);
    let (sum, count, even) = sizes
        .fold(start, |(sum, count, even), size| (sum + u128::from(size), count + 1, even && size == first));
    (saturate(sum.div_ceil(count)), even)
}

/// Broadcasts of at most this many bytes use a binomial tree: `MPIR_CVAR_BCAST_SHORT_MSG_SIZE`.
const SHORT_BROADCAST: u64 = 12_288;
/// Broadcasts of at most this many bytes use recursive doubling: `MPIR_CVAR_BCAST_LONG_MSG_SIZE`.
const MEDIUM_BROADCAST: u64 = 524_288;
/// Fewer processes than this broadcast along a binomial tree: `MPIR_CVAR_BCAST_MIN_PROCS`.
const FEW_BROADCAST: u32 = 8;
/// Vectors of at most this many bytes are reduced without splitting: `MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE`,
/// `MPIR_CVAR_REDUCE_SHORT_MSG_SIZE`.
const SHORT_REDUCTION: u64 = 2_048;
/// From this many bytes every pair exchanges its part of a reduce-scatter:
/// `MPIR_CVAR_REDUCE_SCATTER_COMMUTATIVE_LONG_MSG_SIZE`.
const LONG_REDUCE_SCATTER: u128 = 524_288;
/// Below this total, 2ᵏ processes use recursive doubling: `MPIR_CVAR_ALLGATHER_LONG_MSG_SIZE`.
const LONG_ALLGATHER: u128 = 524_288;
/// Below this total, other numbers of processes use Bruck: `MPIR_CVAR_ALLGATHER_SHORT_MSG_SIZE`.
const SHORT_ALLGATHER: u128 = 81_920;
/// Up to this many bytes per pair, blocks share messages (Bruck): `MPIR_CVAR_ALLTOALL_SHORT_MSG_SIZE`.
const SHORT_ALLTOALL: u64 = 256;
/// Up to this many bytes per pair, all blocks are sent at once: `MPIR_CVAR_ALLTOALL_MEDIUM_MSG_SIZE`.
const MEDIUM_ALLTOALL: u64 = 32_768;
/// Fewer processes than this send every block directly to its destination.
const FEW_ALLTOALL: u32 = 8;

/// The algorithm that MPICH chooses for two or more processes.
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

/// Whether a vector is reduced without splitting.
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
