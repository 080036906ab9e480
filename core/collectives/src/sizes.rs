//! What the processes send, from the two sizes that each of them recorded.
//!
//! OTF2 says of `sizeSent` and `sizeReceived` no more than that they are sizes, and tools differ. With P processes and
//! b = count · size of the type as process r passed it to MPI (bᵣ where the counts differ, ∑ for their sum):
//!
//! | operation | Score-P: sent | received | EZTrace: sent | received | taken here |
//! |---|---|---|---|---|---|
//! | barrier | 0 | 0 | 0 | 0 | |
//! | broadcast | root P · b, others 0 | b | b | b | received, not at the root |
//! | scatter | root P · b, others 0 | b | b | b | received, not at the root |
//! | scatterv | root ∑, others 0 | bᵣ | ∑ | bᵣ | received by each, not at the root |
//! | gather | b | root P · b, others 0 | b | b | sent, not at the root |
//! | gatherv | bᵣ | root ∑, others 0 | bᵣ | ∑ | sent by each, not at the root |
//! | reduce | b | root P · b, others 0 | b | b | sent, not at the root |
//! | scan | (P − r) · b | (r + 1) · b | | | received by process 0, or by process 1 |
//! | exclusive scan | (P − 1 − r) · b | r · b | | | the same |
//! | alltoallv, alltoallw | ∑ | ∑ | ∑ | ∑ | both |
//! | allgather, alltoall, allreduce | P · b | P · b | b | b | by convention |
//! | reduce-scatter-block | P · b | P · b | | | by convention |
//! | allgatherv | P · bᵣ | ∑ | bᵣ | ∑ | by convention |
//! | reduce-scatter | ∑ | P · bᵣ | ∑ | ∑ | by convention |
//!
//! So only the last six need to know the convention. Nothing in a single record tells it: an allreduce of 4 · 8 bytes
//! by 4 processes looks in one tool like one of 32 bytes in the other. Score-P names itself as the archive's creator,
//! EZTrace 2.0 leaves the creator empty ([`Convention::of_creator`]).
//!
//! With `MPI_IN_PLACE` Score-P counts P − 1 instead of P, and the root of a gather or reduce sends nothing; EZTrace
//! counts 0 bytes sent. A total that P does not divide but P − 1 does is therefore one in place; where both divide it,
//! P is taken, and the block comes out too small by one part in P. EZTrace does not record scans, `MPI_Alltoallw`,
//! `MPI_Reduce_scatter_block` and nonblocking operations, and its reduce-scatter does not tell who gets how much: all
//! get the same.
//!
//! Sources: `src/adapters/mpi/c/scorep_mpi_coll.inc.c` of Score-P 10 (4 counts the same in `SCOREP_Mpi_Coll.c`), and a
//! program of all operations recorded with EZTrace 2.0 and Open MPI 4.1.4.

use crate::blocks::Blocks;
use crate::{Collective, Convention, Operation};

/// Bytes of the block that every process has, for operations with blocks of the same size. The largest size counts
/// where the processes contradict each other.
pub(crate) fn block(collective: &Collective, root: u32) -> u64 {
    use Operation::{Broadcast, ExclusiveScan, Gather, Reduce, Scan, Scatter};
    let Collective { sent, received, .. } = *collective;
    match collective.operation {
        Broadcast | Scatter => largest_but(received, root),
        Gather | Reduce => largest_but(sent, root),
        Scan | ExclusiveScan => received.iter().copied().take(2).find(|&bytes| bytes > 0).unwrap_or(0),
        _ => {
            let largest = sent.iter().chain(received).copied().max().unwrap_or(0);
            match collective.convention {
                Convention::Arguments => largest,
                Convention::Totals => largest.div_ceil(divisor(&[largest], sent.len() as u64, true)),
            }
        }
    }
}

/// What every process gives to an allgatherv.
pub(crate) fn contributions(collective: &Collective<'_>) -> Blocks {
    let Collective { sent, received, .. } = *collective;
    let all = received.iter().copied().max().unwrap_or(0);
    match collective.convention {
        Convention::Arguments if sent.iter().all(|&bytes| bytes == 0) => Blocks::even(all, sent.len() as u32),
        Convention::Arguments => Blocks::of(sent.iter().copied()),
        Convention::Totals => divided(sent, is_same(received)),
    }
}

/// What every process gets from a reduce-scatter.
pub(crate) fn results(collective: &Collective<'_>) -> Blocks {
    let Collective { sent, received, .. } = *collective;
    let all = sent.iter().chain(received).copied().max().unwrap_or(0);
    match collective.convention {
        Convention::Arguments => Blocks::even(all, sent.len() as u32),
        Convention::Totals => divided(received, is_same(sent)),
    }
}

/// The largest size but the root's.
fn largest_but(sizes: &[u64], root: u32) -> u64 {
    let others = (0..).zip(sizes).filter(|&(rank, _)| rank != root);
    others.map(|(_, &bytes)| bytes).max().unwrap_or(0)
}

/// All sizes are the same.
fn is_same(sizes: &[u64]) -> bool {
    sizes.windows(2).all(|pair| pair[0] == pair[1])
}

/// Blocks of which every process counted as many as there are processes, or one less.
fn divided(totals: &[u64], whole: bool) -> Blocks {
    let divisor = divisor(totals, totals.len() as u64, whole);
    Blocks::of(totals.iter().map(|total| total.div_ceil(divisor)))
}

/// How many blocks two or more processes counted: all, unless that contradicts the totals, or those of the others.
fn divisor(totals: &[u64], processes: u64, whole: bool) -> u64 {
    let divides = |divisor: u64| totals.iter().all(|total| total.is_multiple_of(divisor));
    match whole && divides(processes) || !divides(processes - 1) {
        true => processes,
        false => processes - 1,
    }
}
