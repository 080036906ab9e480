//! Block sizes of an operation from the two sizes that every process recorded.
//!
//! OTF2 does not define `sizeSent` and `sizeReceived` further, and tools differ. With P processes and b =
//! count · type size as process r passed it to MPI (bᵣ where the counts differ, ∑ for their sum):
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
//! So only the last six rows depend on the convention. A single record cannot determine it: an allreduce of
//! 4 · 8 bytes by 4 processes in one tool looks like one of 32 bytes in the other. Score-P names itself as
//! the creator of the archive, and EZTrace 2.0 leaves the creator empty ([`Convention::of_creator`]).
//!
//! With `MPI_IN_PLACE` Score-P counts P − 1 instead of P, and the root of a gather or reduce sends nothing;
//! EZTrace counts 0 bytes sent. A total that is divisible by P − 1 but not by P is therefore an in-place
//! operation. If both divide it, hopmap assumes P, and the block is too small by one part in P. EZTrace does
//! not record scans, `MPI_Alltoallw`, `MPI_Reduce_scatter_block` and nonblocking operations, nor the counts
//! per process of a reduce-scatter: all get the same.
//!
//! Sources: `src/adapters/mpi/c/scorep_mpi_coll.inc.c` of Score-P 10 (`SCOREP_Mpi_Coll.c` of Score-P 4
//! counts the same), and a program of all operations recorded with EZTrace 2.0 and Open MPI 4.1.4.

use std::ops::Range;

use hopmap_model::CollectiveOperation as Operation;

/// Meaning of the two sizes of a record. OTF2 leaves it open ("Size of the sent message").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Convention {
    /// All that the process gives to and gets from all processes, itself included, by the definition of the
    /// operation, such as P · block for an allreduce: Score-P.
    Totals,
    /// The arguments of the call, count · type size, or the sum of the counts: EZTrace.
    Arguments,
}

impl Convention {
    /// The convention of the creator of an archive, such as `Score-P 7.1`; EZTrace leaves it empty.
    #[must_use]
    pub fn of_creator(creator: &str) -> Self {
        match creator.starts_with("Score-P") {
            true => Self::Totals,
            false => Self::Arguments,
        }
    }
}

/// A collective operation as its processes recorded it.
#[derive(Debug, Clone, Copy)]
pub struct Collective<'a> {
    /// The operation.
    pub operation: Operation,
    /// The root's rank in the communicator. Ignored for operations without a root.
    pub root: Option<u32>,
    /// Meaning of the sizes.
    pub convention: Convention,
    /// Bytes sent, by rank of the communicator.
    pub sent: &'a [u64],
    /// Bytes received, by rank of the communicator.
    pub received: &'a [u64],
}

/// Bytes of the block of every process, for operations with blocks of equal size. If the processes disagree,
/// the largest size counts.
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

/// Block of every process in an allgatherv.
pub(crate) fn contributions(collective: &Collective<'_>) -> Blocks {
    let Collective { sent, received, .. } = *collective;
    let all = received.iter().copied().max().unwrap_or(0);
    match collective.convention {
        Convention::Arguments if sent.iter().all(|&bytes| bytes == 0) => Blocks::even(all, sent.len() as u32),
        Convention::Arguments => Blocks::of(sent.iter().copied()),
        Convention::Totals => divided(sent, is_same(received)),
    }
}

/// Block of every process in a reduce-scatter.
pub(crate) fn results(collective: &Collective<'_>) -> Blocks {
    let Collective { sent, received, .. } = *collective;
    let all = sent.iter().chain(received).copied().max().unwrap_or(0);
    match collective.convention {
        Convention::Arguments => Blocks::even(all, sent.len() as u32),
        Convention::Totals => divided(received, is_same(sent)),
    }
}

/// The largest size except that of the root.
fn largest_but(sizes: &[u64], root: u32) -> u64 {
    let others = (0..).zip(sizes).filter(|&(rank, _)| rank != root);
    others.map(|(_, &bytes)| bytes).max().unwrap_or(0)
}

/// Whether all sizes are equal.
fn is_same(sizes: &[u64]) -> bool {
    sizes.windows(2).all(|pair| pair[0] == pair[1])
}

/// Blocks from totals that count every block, or every block but one.
fn divided(totals: &[u64], all: bool) -> Blocks {
    let divisor = divisor(totals, totals.len() as u64, all);
    Blocks::of(totals.iter().map(|total| total.div_ceil(divisor)))
}

/// How many blocks two or more processes counted: all, unless that contradicts the totals, or all but one.
fn divisor(totals: &[u64], processes: u64, all: bool) -> u64 {
    let divides = |divisor: u64| totals.iter().all(|total| total.is_multiple_of(divisor));
    match all && divides(processes) || !divides(processes - 1) {
        true => processes,
        false => processes - 1,
    }
}

/// The sizes of the blocks of a buffer, one per process, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// Start of every block, and the end of the last one. The sum of 2³² sizes of 64 bits fits into 128
    /// bits.
    starts: Vec<u128>,
}

impl Blocks {
    /// Blocks of the given sizes.
    pub(crate) fn of(sizes: impl Iterator<Item = u64>) -> Self {
        let mut end = 0;
        let ends = sizes.map(|size| {
            end += u128::from(size);
            end
        });
        Self { starts: std::iter::once(0).chain(ends).collect() }
    }

    /// This many blocks of equal size.
    pub(crate) fn equal(size: u64, count: u32) -> Self {
        Self::of((0..count).map(|_| size))
    }

    /// Splits a buffer into blocks that differ by at most one byte, larger ones first.
    pub(crate) fn even(bytes: u64, count: u32) -> Self {
        let (size, larger) = (bytes / u64::from(count), bytes % u64::from(count));
        Self::of((0..count).map(|block| size + u64::from(u64::from(block) < larger)))
    }

    /// Halves a buffer again and again into 2ᵏ blocks; the first of two halves is rounded down.
    pub(crate) fn halved(bytes: u64, count: u32) -> Self {
        let halve = |bytes: u64, upper: bool| if upper { bytes - bytes / 2 } else { bytes / 2 };
        let levels = || (0..count.ilog2()).rev();
        Self::of(
            (0..count).map(|block| levels().fold(bytes, |bytes, bit| halve(bytes, block >> bit & 1 == 1))),
        )
    }

    /// Splits a buffer into blocks of equal size, rounded up, so the last ones may be short or empty.
    pub(crate) fn rounded_up(bytes: u64, count: u32) -> Self {
        let size = bytes.div_ceil(u64::from(count));
        let start = |block: u32| u64::from(block).saturating_mul(size).min(bytes);
        Self::of((0..count).map(|block| start(block + 1) - start(block)))
    }

    /// Number of blocks.
    pub(crate) fn count(&self) -> u32 {
        (self.starts.len() - 1) as u32
    }

    /// Number of blocks that are not empty.
    pub(crate) fn filled(&self) -> u64 {
        self.starts.windows(2).filter(|ends| ends[0] < ends[1]).count() as u64
    }

    /// Bytes of all blocks.
    pub(crate) fn total(&self) -> u128 {
        self.starts[self.starts.len() - 1]
    }

    /// Bytes of one block.
    pub(crate) fn one(&self, block: u32) -> u64 {
        self.several(block..block + 1)
    }

    /// Bytes of a range of blocks.
    pub(crate) fn several(&self, blocks: Range<u32>) -> u64 {
        saturate(self.starts[blocks.end as usize] - self.starts[blocks.start as usize])
    }

    /// Bytes of `count` blocks starting at one, cyclically.
    pub(crate) fn around(&self, first: u32, count: u32) -> u64 {
        let room = self.count() - first;
        match count <= room {
            true => self.several(first..first + count),
            false => self.several(first..self.count()).saturating_add(self.several(0..count - room)),
        }
    }

    /// Share of `bytes` that belongs to the blocks before `end`, rounded down; all bytes for the last end.
    pub(crate) fn portion(&self, bytes: u64, end: u32) -> u64 {
        if end == self.count() {
            return bytes;
        }
        // Drop the low bits of sums above 64 bits, so that the product fits into 128 bits.
        let excess = (u128::BITS - self.total().leading_zeros()).saturating_sub(u64::BITS);
        let (part, total) = (self.starts[end as usize] >> excess, self.total() >> excess);
        saturate(u128::from(bytes) * part / total.max(1))
    }

    /// Bytes of all blocks but one.
    pub(crate) fn all_but(&self, block: u32) -> u64 {
        saturate(self.total() - u128::from(self.one(block)))
    }
}

/// Bytes as 64 bits, saturated.
pub(crate) fn saturate(bytes: u128) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// What every process gives to and gets from the others by the definition of an operation, independent of
/// the algorithm: bytes by rank of the communicator. For operations with a root, only the bytes to and from
/// the root.
#[must_use]
pub fn exchanged(collective: &Collective<'_>) -> (Vec<u64>, Vec<u64>) {
    use Operation::{
        AllGather, AllGatherV, AllToAll, AllToAllV, AllToAllW, Barrier, GatherV, ReduceScatter,
        ReduceScatterBlock, ScatterV,
    };
    let Collective { operation, sent, received, root, .. } = *collective;
    let others = sent.len().saturating_sub(1) as u64;
    let block = block(collective, root.unwrap_or(0));
    let all = |bytes: u64| vec![bytes; sent.len()];
    let each = |bytes: &dyn Fn(u32) -> u64| (0..sent.len() as u32).map(bytes).collect::<Vec<u64>>();
    match operation {
        Barrier => (all(0), all(0)),
        GatherV | ScatterV | AllToAllV | AllToAllW => (sent.to_vec(), received.to_vec()),
        AllGather => (all(block), all(block.saturating_mul(others))),
        AllToAll => (all(block.saturating_mul(others)), all(block.saturating_mul(others))),
        ReduceScatterBlock => (all(block.saturating_mul(others)), all(block)),
        AllGatherV => {
            let blocks = contributions(collective);
            (each(&|rank| blocks.one(rank)), each(&|rank| blocks.all_but(rank)))
        }
        ReduceScatter => {
            let blocks = results(collective);
            (each(&|rank| blocks.all_but(rank)), each(&|rank| blocks.one(rank)))
        }
        _ => (all(block), all(block)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(blocks: &Blocks) -> Vec<u64> {
        (0..blocks.count()).map(|block| blocks.one(block)).collect()
    }

    #[test]
    fn a_buffer_is_cut_evenly_or_rounded_up() {
        assert_eq!(sizes(&Blocks::even(10, 4)), [3, 3, 2, 2]);
        assert_eq!(sizes(&Blocks::halved(11, 4)), [2, 3, 3, 3]);
        assert_eq!(sizes(&Blocks::rounded_up(10, 4)), [3, 3, 3, 1]);
        assert_eq!(sizes(&Blocks::rounded_up(9, 8)), [2, 2, 2, 2, 1, 0, 0, 0]);
        assert_eq!(sizes(&Blocks::even(1, 3)), [1, 0, 0]);
        assert_eq!(sizes(&Blocks::equal(7, 2)), [7, 7]);
    }

    #[test]
    fn ranges_of_blocks_go_around() {
        let blocks = Blocks::of([1, 2, 4, 8].into_iter());
        assert_eq!(blocks.several(1..3), 6);
        assert_eq!(blocks.around(3, 2), 9);
        assert_eq!(blocks.around(2, 4), 15);
        assert_eq!(blocks.all_but(2), 11);
        assert_eq!(Blocks::of([0, 5, 0].into_iter()).filled(), 1);
    }

    #[test]
    fn sizes_saturate_at_64_bits() {
        let blocks = Blocks::equal(1 << 63, 4);
        assert_eq!(blocks.several(0..2), u64::MAX);
        assert_eq!(blocks.all_but(0), u64::MAX);
        assert_eq!(blocks.total(), 1 << 65);
        assert_eq!(sizes(&Blocks::rounded_up(u64::MAX, 3)), [u64::MAX / 3; 3]);
    }
}
