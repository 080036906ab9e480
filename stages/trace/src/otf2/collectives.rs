//! The collective operations that a location took part in.

use std::collections::{BTreeMap, HashMap};

use super::constants::OTF2_UNDEFINED_UINT64;

use super::visitor::{Collective, Through};
use crate::selection::Class;

/// Operations in which every process may send another number of bytes to every other: `GATHERV`, `SCATTERV`,
/// `ALLGATHERV`, `ALLTOALLV`, `ALLTOALLW` and `REDUCE_SCATTER` (`OTF2_CollectiveOp`).
const IRREGULAR: [u8; 6] = [3, 5, 7, 9, 10, 13];

/// An operation that is of the one kind or the other, and the heading it counts under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Taken {
    pub(super) collective: Collective,
    /// Nothing if it does not count.
    pub(super) class: Option<Class>,
}

/// The collective operations that a location took part in.
///
/// In most operations each process knows what all send, so equal ones are only counted. The others have to be brought
/// together with what the other processes say, so they are kept one by one, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct CollectiveTally {
    /// How many operations did not count at all.
    pub(super) ignored: u64,
    /// How many operations of unknown size there were, which do not count.
    pub(super) unknown: u64,
    regular: HashMap<Taken, u64>,
    /// By the event with which they began, for each communicator.
    irregular: BTreeMap<Through, BTreeMap<u64, Taken>>,
    /// The event that began the operation of each request.
    began: HashMap<u64, u64>,
}

impl CollectiveTally {
    /// An operation that does not block begins with an event.
    pub(super) fn posted(&mut self, request: u64, number: u64) {
        self.began.insert(request, number);
    }

    /// An operation is complete, and does not count whatever it is.
    pub(super) fn ignore(&mut self) {
        self.ignored += 1;
    }

    /// An operation is complete.
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

    /// Operations that have to be brought together with those of others, by communicator, as they began.
    pub(super) fn into_irregular(self) -> impl Iterator<Item = (Through, Vec<Taken>)> {
        self.irregular.into_iter().map(|(through, all)| (through, all.into_values().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collective(operation: u8, sent: u64) -> Collective {
        Collective { operation, through: Through::Communicator(0), root: 0, sent, received: 8 }
    }

    #[test]
    fn equal_operations_are_counted_and_irregular_ones_kept_as_they_began() {
        let mut tally = CollectiveTally::default();
        for number in 1..4 {
            tally.add(number, collective(11, 8), None, Some(Class::ALL));
        }
        tally.posted(70, 4);
        tally.add(5, collective(9, 1), None, Some(Class::ALL));
        tally.add(6, collective(9, 2), Some(70), None);
        tally.add(7, collective(1, OTF2_UNDEFINED_UINT64), None, Some(Class::ALL));
        let allreduce = Taken { collective: collective(11, 8), class: Some(Class::ALL) };
        assert_eq!(tally.regular(), [(allreduce, 3)].into());
        assert_eq!(tally.unknown, 1);
        let irregular: Vec<_> = tally.into_irregular().collect();
        let sent: Vec<_> = irregular[0].1.iter().map(|taken| taken.collective.sent).collect();
        assert_eq!((irregular.len(), sent), (1, vec![2, 1]));
    }
}
