//! Which algorithm MPICH takes.

use hopmap_model::CollectiveOperation as Operation;

use crate::Algorithm;
use crate::blocks::Blocks;
use crate::load::{ELEMENT, Load};

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
