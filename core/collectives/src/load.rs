//! What an operation has to move.

use hopmap_model::CollectiveOperation as Operation;

use crate::blocks::{Blocks, saturate};
use crate::{Algorithm, Call, Collective, sizes};

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
    fn block(&self, rooted: bool) -> (u64, bool) {
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

/// One number for the blocks of an operation that processes recorded: a call of it that moves as much, and whether all
/// blocks have this size. Otherwise it is their mean, rounded up.
pub(crate) fn summary(collective: &Collective<'_>, root: u32) -> (Call, bool) {
    let Collective { operation, sent, received, .. } = *collective;
    let processes = sent.len() as u32;
    let (bytes, even) = match processes {
        // Nothing tells one process from several in what it counted.
        0 | 1 => (sent.iter().chain(received).copied().max().unwrap_or(0), true),
        _ => Load::recorded(collective, root).block(operation.has_root()),
    };
    let root = operation.has_root().then_some(root);
    (Call { operation, processes, root, bytes }, even)
}
