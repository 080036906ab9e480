//! The collective operations of a program, summed by communicator.

use std::collections::BTreeMap;

use hopmap_collectives::{Call, Operation};
use hopmap_model::{CollectiveCalls, CollectiveTable};

use super::communicators::Communicators;
use super::visitor::Through;

/// What of operations is the same: whose they are, what they do, the root, and the bytes of a block.
type Key = (Through, Operation, Option<u32>, u64);

/// How many equal operations there are, and how many of them have blocks of different lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Count {
    calls: u64,
    uneven: u64,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.uneven = self.uneven.saturating_add(other.uneven);
    }
}

/// Operations that were met so far.
#[derive(Debug, Default)]
pub(super) struct Kept {
    counts: BTreeMap<Key, Count>,
}

impl Kept {
    /// Adds so many calls of an operation; `even` if all blocks have the same length.
    pub(super) fn add(&mut self, through: Through, (call, even): (Call, bool), calls: u64) {
        let Call { operation, root, bytes, .. } = call;
        let uneven = if even { 0 } else { calls };
        self.counts.entry((through, operation, root, bytes)).or_default().add(Count { calls, uneven });
    }

    /// How many operations have blocks of different lengths.
    pub(super) fn uneven(&self) -> u64 {
        self.counts.values().map(|count| count.uneven).fold(0, u64::saturating_add)
    }

    /// The operations by the members of their communicators. Communicators with the same members are one.
    pub(super) fn into_table(self, communicators: &Communicators) -> CollectiveTable {
        let members = |through: &Through| communicators.members(*through).unwrap_or_default().to_vec();
        let mut by_through: BTreeMap<Through, Vec<u32>> = BTreeMap::new();
        for (through, ..) in self.counts.keys() {
            by_through.entry(*through).or_insert_with(|| members(through));
        }
        let mut lists: Vec<Vec<u32>> = by_through.values().cloned().collect();
        lists.sort_unstable();
        lists.dedup();
        let mut sums: BTreeMap<(u32, Operation, Option<u32>, u64), Count> = BTreeMap::new();
        for ((through, operation, root, bytes), count) in self.counts {
            let place = lists.binary_search(&by_through[&through]).unwrap_or_else(|place| place);
            sums.entry((place as u32, operation, root, bytes)).or_default().add(count);
        }
        let calls = |((communicator, operation, root, bytes), count): (_, Count)| CollectiveCalls {
            communicator,
            operation,
            root,
            bytes,
            calls: count.calls,
            uneven: count.uneven,
        };
        CollectiveTable { communicators: lists, calls: sums.into_iter().map(calls).collect() }
    }
}
