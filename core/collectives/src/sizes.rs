//! What the processes send, from the two sizes that each of them recorded, in blocks of bytes.
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

use std::ops::Range;

use hopmap_model::CollectiveOperation as Operation;

/// What the two sizes of a record count. OTF2 leaves it open ("Size of the sent message").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Convention {
    /// All that the process gives to and gets from the others and itself by the definition of the operation, such as
    /// P · block for an allreduce: Score-P.
    Totals,
    /// The arguments of the call, count · size of the type, or the sum of the counts: EZTrace.
    Arguments,
}

impl Convention {
    /// The convention of the tool that an archive names as its creator, such as `Score-P 7.1`; EZTrace names none.
    #[must_use]
    pub fn of_creator(creator: &str) -> Self {
        match creator.starts_with("Score-P") {
            true => Self::Totals,
            false => Self::Arguments,
        }
    }
}

/// One collective operation as its processes recorded it.
#[derive(Debug, Clone, Copy)]
pub struct Collective<'a> {
    /// Which one.
    pub operation: Operation,
    /// The root's rank in the communicator. Ignored for operations without a root.
    pub root: Option<u32>,
    /// What the sizes count.
    pub convention: Convention,
    /// Bytes sent as every rank of the communicator recorded them.
    pub sent: &'a [u64],
    /// Bytes received as every rank of the communicator recorded them.
    pub received: &'a [u64],
}

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

/// The sizes of the blocks of a buffer, one per process and in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// Where the blocks begin, and the end of the last one. 2³² sizes of 64 bits add up to less than 128.
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

    /// So many blocks of the same size.
    pub(crate) fn equal(size: u64, count: u32) -> Self {
        Self::of((0..count).map(|_| size))
    }

    /// A buffer in one or more blocks that differ by one byte at most, the larger ones first.
    pub(crate) fn even(bytes: u64, count: u32) -> Self {
        let (size, larger) = (bytes / u64::from(count), bytes % u64::from(count));
        Self::of((0..count).map(|block| size + u64::from(u64::from(block) < larger)))
    }

    /// A buffer in one or more blocks of the same size, rounded up, so that the last ones may be short or empty.
    pub(crate) fn rounded_up(bytes: u64, count: u32) -> Self {
        let size = bytes.div_ceil(u64::from(count));
        let start = |block: u32| u64::from(block).saturating_mul(size).min(bytes);
        Self::of((0..count).map(|block| start(block + 1) - start(block)))
    }

    /// How many blocks there are.
    pub(crate) fn count(&self) -> u32 {
        (self.starts.len() - 1) as u32
    }

    /// How many blocks are not empty.
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

    /// Bytes of so many blocks from one on, around.
    pub(crate) fn around(&self, first: u32, count: u32) -> u64 {
        let room = self.count() - first;
        match count <= room {
            true => self.several(first..first + count),
            false => self.several(first..self.count()).saturating_add(self.several(0..count - room)),
        }
    }

    /// The part of so many bytes that the blocks before `end` have in all blocks, rounded down; all for the last end.
    pub(crate) fn portion(&self, bytes: u64, end: u32) -> u64 {
        if end == self.count() {
            return bytes;
        }
        // Sums of more than 64 bits lose their last bits, so that the product fits into 128.
        let excess = (u128::BITS - self.total().leading_zeros()).saturating_sub(u64::BITS);
        let (part, whole) = (self.starts[end as usize] >> excess, self.total() >> excess);
        saturate(u128::from(bytes) * part / whole.max(1))
    }

    /// Bytes of all blocks but one.
    pub(crate) fn all_but(&self, block: u32) -> u64 {
        saturate(self.total() - u128::from(self.one(block)))
    }
}

/// As many bytes as 64 bits can tell.
pub(crate) fn saturate(bytes: u128) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// What every process gives to the others and gets from them by the definition of an operation, whatever messages it is
/// made of: bytes by rank of the communicator. Of operations with a root it is what goes to or comes from the root.
#[must_use]
pub fn exchanged(collective: &Collective<'_>) -> (Vec<u64>, Vec<u64>) {
    use Operation::{AllGather, AllGatherV, AllToAll, AllToAllV, AllToAllW, Barrier};
    use Operation::{GatherV, ReduceScatter, ReduceScatterBlock, ScatterV};
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
    fn sizes_beyond_64_bits_stay_at_the_largest() {
        let blocks = Blocks::equal(1 << 63, 4);
        assert_eq!(blocks.several(0..2), u64::MAX);
        assert_eq!(blocks.all_but(0), u64::MAX);
        assert_eq!(blocks.total(), 1 << 65);
        assert_eq!(sizes(&Blocks::rounded_up(u64::MAX, 3)), [u64::MAX / 3; 3]);
    }
}
