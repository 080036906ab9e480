//! Follows the messages of an expansion and watches who holds what. Shares nothing with the expansion.

use std::collections::BTreeMap;

use hopmap_model::Edge;

use crate::{Collective, Convention, Operation, expand};

/// The calls of an expansion, in their order.
pub(crate) fn calls(collective: &Collective) -> Vec<Edge> {
    let mut calls = Vec::new();
    expand(collective, None, |edge| calls.push(edge)).unwrap();
    calls
}

/// An operation of which every process recorded the same sizes as arguments of the call.
pub(crate) fn uniform(operation: Operation, processes: usize, root: u32, bytes: u64) -> Vec<Edge> {
    let sizes = vec![bytes; processes];
    let convention = Convention::Arguments;
    let received = &sizes;
    calls(&Collective { operation, root: Some(root), convention, sent: &sizes, received })
}

/// Source, destination and bytes of every call; all of them are of one message.
pub(crate) fn single(calls: &[Edge]) -> Vec<(u32, u32, u64)> {
    let one = |edge: &Edge| {
        assert_eq!(edge.messages, 1, "{edge:?}");
        (edge.source, edge.destination, edge.bytes)
    };
    calls.iter().map(one).collect()
}

pub(crate) fn messages(calls: &[Edge]) -> u64 {
    calls.iter().map(|edge| edge.messages).sum()
}

pub(crate) fn bytes(calls: &[Edge]) -> u64 {
    calls.iter().map(|edge| edge.bytes).sum()
}

/// Every message carries everything that its source holds, one set of bits per process at the start. What they hold
/// after it.
pub(crate) fn spread(calls: &[Edge], mut held: Vec<u64>) -> Vec<u64> {
    for edge in calls {
        held[edge.destination as usize] |= held[edge.source as usize];
    }
    held
}

/// Every process holds a block of `unit` · 2ʳ bytes, so that the size of a message says which blocks it carries.
/// Nobody sends what it has not got, or what the other has. At the end everybody holds everything.
pub(crate) fn assert_all_gathered(calls: &[Edge], processes: u32, unit: u64) {
    let mut held: Vec<u64> = (0..processes).map(|rank| 1 << rank).collect();
    for edge in calls {
        assert_eq!((edge.messages, edge.bytes % unit), (1, 0));
        let carried = edge.bytes / unit;
        assert_eq!(held[edge.source as usize] & carried, carried, "{edge:?} from {held:?}");
        assert_eq!(held[edge.destination as usize] & carried, 0, "{edge:?} to {held:?}");
        held[edge.destination as usize] |= carried;
    }
    assert!(held.iter().all(|&held| held == (1 << processes) - 1), "{held:?}");
}

/// The same where all that goes from one process to another is told at once: the processes are a ring in which each
/// gets all blocks but its own.
pub(crate) fn assert_gathered_in_ring(calls: &[Edge], processes: u32, unit: u64) {
    let next: BTreeMap<u32, &Edge> = calls.iter().map(|edge| (edge.source, edge)).collect();
    assert_eq!((calls.len(), next.len()), (processes as usize, processes as usize));
    let mut rank = 0;
    for visited in 1..=processes {
        let edge = next[&rank];
        rank = edge.destination;
        assert_eq!(rank == 0, visited == processes);
        assert_eq!(edge.bytes, ((1 << processes) - 1 - (1 << rank)) * unit);
        assert_eq!(edge.messages, u64::from(processes - 1));
    }
}

/// Blocks from everybody to everybody move over the distances 1, 2, 4, … or straight. Messages carry whole blocks;
/// at the end every block is where it belongs.
pub(crate) fn assert_exchanged(calls: &[Edge], processes: u32, block: u64) {
    let pairs = || (0..processes).flat_map(|from| (0..processes).map(move |to| (from, to)));
    let mut place: BTreeMap<(u32, u32), u32> = pairs().map(|(from, to)| ((from, to), from)).collect();
    let straight = calls.len() as u32 == processes * (processes - 1);
    for edge in calls {
        let distance = (edge.destination + processes - edge.source) % processes;
        let leaves = |&(from, to): &(u32, u32)| match straight {
            true => (from, to) == (edge.source, edge.destination),
            false => ((to + processes - from) % processes) & distance != 0,
        };
        // Straight blocks have not moved; others have gone exactly the smaller distances of their way.
        let gone = |&(from, to): &(u32, u32)| match straight {
            true => from,
            false => (from + (((to + processes - from) % processes) & (distance - 1))) % processes,
        };
        let carried: Vec<_> = pairs().filter(leaves).filter(|pair| gone(pair) == edge.source).collect();
        assert_eq!(edge.bytes, carried.len() as u64 * block);
        for pair in carried {
            assert_eq!(place.insert(pair, edge.destination), Some(edge.source));
        }
    }
    assert!(place.iter().all(|(&(_, to), &place)| place == to));
}

/// Everybody sends on a block per process that it got from and its own, once; they meet at the root.
pub(crate) fn assert_gathered(calls: &[Edge], processes: u32, root: u32, block: u64) {
    let mut held: Vec<u64> = vec![1; processes as usize];
    for edge in calls {
        let carried = std::mem::take(&mut held[edge.source as usize]);
        assert!(carried > 0);
        assert_eq!((edge.messages, edge.bytes), (1, carried * block));
        held[edge.destination as usize] += carried;
    }
    assert_eq!(held.iter().sum::<u64>(), held[root as usize]);
}
