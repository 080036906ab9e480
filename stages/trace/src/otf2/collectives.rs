//! Collective operations: the operations that a location took part in, their counts by communicator, and the
//! messages of their algorithms, combined from the records of all processes.

use std::collections::{BTreeMap, HashMap};

use hopmap_collectives::{self as collectives, Algorithms, Call, Convention, Operation};
use hopmap_model::{CollectiveCalls, CollectiveTable, Edge, to_u32};

use super::communicators::Communicators;
use super::record_schema::OTF2_UNDEFINED_UINT64;
use super::visitor::{Collective, Through};
use crate::selection::{Class, Selection};

/// Operations in which every process may send a different number of bytes to every other: `GATHERV`,
/// `SCATTERV`, `ALLGATHERV`, `ALLTOALLV`, `ALLTOALLW` and `REDUCE_SCATTER` (`OTF2_CollectiveOp`).
const IRREGULAR: [u8; 6] = [3, 5, 7, 9, 10, 13];

/// An operation of either kind, and its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Taken {
    pub(super) collective: Collective,
    /// `None` if it does not count.
    pub(super) class: Option<Class>,
}

/// The collective operations of a location.
///
/// In most operations every process knows what all others send, so equal operations are only counted. The
/// others have to be combined with the records of the other processes. They are kept one by one, in the
/// order in which they started.
#[derive(Debug, Default)]
pub(super) struct CollectiveAccumulator {
    /// Number of operations that are not counted.
    pub(super) ignored: u64,
    /// Number of operations of unknown size, which are not counted.
    pub(super) unknown: u64,
    regular: HashMap<Taken, u64>,
    /// By the event that started them, per communicator.
    irregular: BTreeMap<Through, BTreeMap<u64, Taken>>,
    /// The event that started the operation of each request.
    began: HashMap<u64, u64>,
}

impl CollectiveAccumulator {
    /// A nonblocking operation starts with an event.
    pub(super) fn posted(&mut self, request: u64, number: u64) {
        self.began.insert(request, number);
    }

    /// An operation completes and is not counted.
    pub(super) fn ignore(&mut self) {
        self.ignored += 1;
    }

    /// An operation completes.
    pub(super) fn add(
        &mut self,
        number: u64,
        collective: Collective,
        request: Option<u64>,
        class: Option<Class>,
    ) {
        let began = request.and_then(|request| self.began.remove(&request)).unwrap_or(number);
        if [collective.sent, collective.received].contains(&OTF2_UNDEFINED_UINT64) {
            self.unknown += 1;
            return;
        }
        let taken = Taken { collective, class };
        if IRREGULAR.contains(&collective.operation) {
            self.irregular.entry(collective.through).or_default().insert(began, taken);
        } else if class.is_some() {
            *self.regular.entry(taken).or_default() += 1;
        }
    }

    /// Operations that count, with their numbers, in a fixed order.
    pub(super) fn regular(&self) -> BTreeMap<Taken, u64> {
        self.regular.iter().map(|(taken, count)| (*taken, *count)).collect()
    }

    /// Operations to be combined with those of other processes, by communicator, in the order in which they
    /// started.
    pub(super) fn into_irregular(self) -> impl Iterator<Item = (Through, Vec<Taken>)> {
        self.irregular.into_iter().map(|(through, all)| (through, all.into_values().collect()))
    }
}

/// Properties of equal operations: communicator, operation, root, and bytes of a block.
type Key = (Through, Operation, Option<u32>, u64);

/// Number of equal operations, and how many of them have blocks of different lengths.
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

/// Counts of operations.
#[derive(Debug, Default)]
pub(super) struct CollectiveCounts {
    counts: BTreeMap<Key, Count>,
}

impl CollectiveCounts {
    /// Adds calls of an operation; `even` if all blocks have the same length.
    pub(super) fn add(&mut self, through: Through, (call, even): (Call, bool), calls: u64) {
        let Call { operation, root, bytes, .. } = call;
        let uneven = if even { 0 } else { calls };
        self.counts.entry((through, operation, root, bytes)).or_default().add(Count { calls, uneven });
    }

    /// Number of operations with blocks of different lengths.
    pub(super) fn uneven(&self) -> u64 {
        self.counts.values().map(|count| count.uneven).fold(0, u64::saturating_add)
    }

    /// The operations by the members of their communicators. Communicators with equal members are merged.
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
            sums.entry((to_u32(place), operation, root, bytes)).or_default().add(count);
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

/// The operation of a number (`OTF2_CollectiveOp`). Numbers above 16 create and free windows and move no
/// data.
pub(super) fn operation(number: u8) -> Option<Operation> {
    Some(match number {
        0 => Operation::Barrier,
        1 => Operation::Broadcast,
        2 => Operation::Gather,
        3 => Operation::GatherV,
        4 => Operation::Scatter,
        5 => Operation::ScatterV,
        6 => Operation::AllGather,
        7 => Operation::AllGatherV,
        8 => Operation::AllToAll,
        9 => Operation::AllToAllV,
        10 => Operation::AllToAllW,
        11 => Operation::AllReduce,
        12 => Operation::Reduce,
        13 => Operation::ReduceScatter,
        14 => Operation::Scan,
        15 => Operation::ExclusiveScan,
        16 => Operation::ReduceScatterBlock,
        _ => return None,
    })
}

/// Rank of a process whose record determines what all processes send: not the root, whose sizes differ.
fn witness(operation: Operation, root: u32, processes: u32) -> u32 {
    match operation {
        operation if operation.has_root() => (root + 1) % processes,
        Operation::ExclusiveScan => 1 % processes,
        _ => 0,
    }
}

/// Statistics of the expansion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Expanded {
    /// Operations of a communicator.
    pub(super) operations: u64,
    /// Messages of the operations.
    pub(super) messages: u64,
    /// Records of operations on communicators that are not a single group of processes.
    pub(super) elsewhere: u64,
    /// Operations that some of their processes did not record, or recorded differently.
    pub(super) incomplete: u64,
    /// Operations that are counted, or not, by the record of one process although others disagree.
    pub(super) uneven: u64,
    /// Operations that do not support the chosen algorithm.
    pub(super) unfit: u64,
}

/// Combines the records of operations.
pub(super) struct Expansion<'a> {
    pub(super) communicators: &'a Communicators,
    pub(super) convention: Convention,
    pub(super) selection: Option<&'a Selection>,
    /// Algorithms of the expansion; `None` to keep operations only.
    pub(super) algorithms: Option<Algorithms>,
}

/// Output of an expansion: counts and messages.
struct Ends<'a, M> {
    message: M,
    counts: &'a mut CollectiveCounts,
    expanded: Expanded,
}

impl Expansion<'_> {
    /// Counts all operations, and reports their messages with the class of each.
    pub(super) fn expand<E>(
        &self,
        accumulators: Vec<(u32, CollectiveAccumulator)>,
        counts: &mut CollectiveCounts,
        message: impl FnMut(Class, Edge) -> Result<(), E>,
    ) -> Result<Expanded, E> {
        let mut ends = Ends { message, counts, expanded: Expanded::default() };
        let mut irregular: BTreeMap<Through, BTreeMap<u32, Vec<Taken>>> = BTreeMap::new();
        let mut regular: BTreeMap<(Through, u8), BTreeMap<u32, u64>> = BTreeMap::new();
        for (rank, accumulator) in accumulators {
            for (taken, count) in accumulator.regular() {
                let key = (taken.collective.through, taken.collective.operation);
                *regular.entry(key).or_default().entry(rank).or_default() += count;
                self.regular(rank, taken, count, &mut ends)?;
            }
            for (through, all) in accumulator.into_irregular() {
                irregular.entry(through).or_default().entry(rank).or_default().extend(all);
            }
        }
        for (through, by_rank) in irregular {
            self.irregular(through, by_rank, &mut ends)?;
        }
        // With a selection, processes may legitimately count differently.
        if self.selection.is_none() {
            ends.expanded.uneven =
                regular.iter().map(|((through, _), ranks)| self.uneven(*through, ranks)).sum();
        }
        Ok(ends.expanded)
    }

    /// How many operations were recorded by some members of a communicator, but not by others.
    fn uneven(&self, through: Through, ranks: &BTreeMap<u32, u64>) -> u64 {
        let Some(members) = self.communicators.members(through) else { return 0 };
        let counts = || members.iter().map(|rank| ranks.get(rank).copied().unwrap_or(0));
        counts().max().unwrap_or(0) - counts().min().unwrap_or(0)
    }

    /// Whether the communicator of a window is selected; for other communicators this has been checked
    /// already.
    fn counts(&self, through: Through) -> bool {
        match (through, self.selection) {
            (Through::Window(window), Some(selection)) => {
                let communicator = self.communicators.of_window(window).ok().flatten();
                communicator.is_some_and(|id| selection.counts_communicator(id))
            }
            _ => true,
        }
    }

    /// An operation in which the record of one process determines what all send.
    fn regular<E>(
        &self,
        rank: u32,
        taken: Taken,
        count: u64,
        ends: &mut Ends<'_, impl FnMut(Class, Edge) -> Result<(), E>>,
    ) -> Result<(), E> {
        let recorded = taken.collective;
        let Some(operation) = operation(recorded.operation).filter(|_| taken.class.is_some()) else {
            return Ok(());
        };
        let Some(members) = self.communicators.members(recorded.through) else {
            ends.expanded.elsewhere += count;
            return Ok(());
        };
        let witness = witness(operation, recorded.root, to_u32(members.len().max(1)));
        if members.get(witness as usize) != Some(&rank) || !self.counts(recorded.through) {
            return Ok(());
        }
        let (sent, received) = (vec![recorded.sent; members.len()], vec![recorded.received; members.len()]);
        self.messages(taken, members, (&sent, &received), count, ends)
    }

    /// Operations in which every process may send a different number of bytes. The n-th records of the
    /// processes belong together.
    fn irregular<E>(
        &self,
        through: Through,
        mut by_rank: BTreeMap<u32, Vec<Taken>>,
        ends: &mut Ends<'_, impl FnMut(Class, Edge) -> Result<(), E>>,
    ) -> Result<(), E> {
        let most = by_rank.values().map(Vec::len).max().unwrap_or(0);
        let Some(members) = self.communicators.members(through).filter(|_| self.counts(through)) else {
            ends.expanded.elsewhere += by_rank.values().map(|all| all.len() as u64).sum::<u64>();
            return Ok(());
        };
        let lists: Vec<Vec<Taken>> =
            members.iter().map(|rank| by_rank.remove(rank).unwrap_or_default()).collect();
        for place in 0..most {
            let all: Option<Vec<Taken>> = lists.iter().map(|list| list.get(place).copied()).collect();
            let Some((all, first)) = all.and_then(|all| Some((all.clone(), *all.first()?))) else {
                ends.expanded.incomplete += 1;
                continue;
            };
            let same = |taken: &Taken| {
                (taken.collective.operation, taken.collective.root)
                    == (first.collective.operation, first.collective.root)
            };
            if !all.iter().all(same) {
                ends.expanded.incomplete += 1;
                continue;
            }
            let sent: Vec<u64> = all.iter().map(|taken| taken.collective.sent).collect();
            let received: Vec<u64> = all.iter().map(|taken| taken.collective.received).collect();
            self.messages(first, members, (&sent, &received), 1, ends)?;
        }
        Ok(())
    }

    /// Counts `count` equal operations and reports their messages. `sent` and `received` are the records of
    /// their processes.
    fn messages<E>(
        &self,
        Taken { collective: recorded, class }: Taken,
        members: &[u32],
        (sent, received): (&[u64], &[u64]),
        count: u64,
        ends: &mut Ends<'_, impl FnMut(Class, Edge) -> Result<(), E>>,
    ) -> Result<(), E> {
        let (Some(operation), Some(class)) = (operation(recorded.operation), class) else { return Ok(()) };
        let (root, convention) = (Some(recorded.root), self.convention);
        let collective = &collectives::Collective { operation, root, convention, sent, received };
        let expanded = &mut ends.expanded;
        let Ok(summary) = collectives::summary(collective) else {
            expanded.incomplete += count;
            return Ok(());
        };
        expanded.operations += count;
        let call = summary.0;
        ends.counts.add(recorded.through, summary, count);
        let Some(algorithms) = self.algorithms else { return Ok(()) };
        let chosen = algorithms.of(collective.operation);
        if call.processes > 1 && chosen.is_some_and(|chosen| !call.suits(chosen)) {
            expanded.unfit += count;
        }
        let mut outcome = Ok(());
        let expanded = collectives::expand(collective, &algorithms, |edge| {
            let length = edge.bytes / edge.messages.max(1);
            let counts = self.selection.is_none_or(|selection| selection.counts_length(length));
            if outcome.is_err() || !counts {
                return;
            }
            let class = match self.selection {
                Some(selection) if selection.sizes => class.of_length(length),
                _ => class,
            };
            let messages = edge.messages.saturating_mul(count);
            expanded.messages = expanded.messages.saturating_add(messages);
            let (source, destination) = (members[edge.source as usize], members[edge.destination as usize]);
            let bytes = edge.bytes.saturating_mul(count);
            outcome = (ends.message)(class, Edge { source, destination, messages, bytes });
        });
        debug_assert!(expanded.is_ok(), "validated by summary");
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collective(operation: u8, sent: u64) -> Collective {
        Collective { operation, through: Through::Communicator(0), root: 0, sent, received: 8 }
    }

    #[test]
    fn equal_operations_are_counted_and_irregular_ones_kept_in_order() {
        let mut accumulator = CollectiveAccumulator::default();
        for number in 1..4 {
            accumulator.add(number, collective(11, 8), None, Some(Class::ALL));
        }
        accumulator.posted(70, 4);
        accumulator.add(5, collective(9, 1), None, Some(Class::ALL));
        accumulator.add(6, collective(9, 2), Some(70), None);
        accumulator.add(7, collective(1, OTF2_UNDEFINED_UINT64), None, Some(Class::ALL));
        let allreduce = Taken { collective: collective(11, 8), class: Some(Class::ALL) };
        assert_eq!(accumulator.regular(), [(allreduce, 3)].into());
        assert_eq!(accumulator.unknown, 1);
        let irregular: Vec<_> = accumulator.into_irregular().collect();
        let sent: Vec<_> = irregular[0].1.iter().map(|taken| taken.collective.sent).collect();
        assert_eq!((irregular.len(), sent), (1, vec![2, 1]));
    }
}
