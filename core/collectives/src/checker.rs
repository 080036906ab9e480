//! Simulates the messages of an expansion and tracks which process holds what. Independent of the expansion.

use std::collections::BTreeMap;

use hopmap_model::Edge;

use crate::algorithm::Algorithms;
use crate::expand;
use crate::sizes::{Collective, Convention};
use hopmap_model::CollectiveOperation as Operation;

/// The calls of an expansion, in order.
pub(crate) fn calls(collective: &Collective) -> Vec<Edge> {
    let mut calls = Vec::new();
    expand(collective, &Algorithms::default(), |edge| calls.push(edge)).unwrap();
    calls
}

/// An operation in which every process recorded the same sizes as arguments of the call.
pub(crate) fn uniform(operation: Operation, processes: usize, root: u32, bytes: u64) -> Vec<Edge> {
    let sizes = vec![bytes; processes];
    let convention = Convention::Arguments;
    let received = &sizes;
    calls(&Collective { operation, root: Some(root), convention, sent: &sizes, received })
}

/// Source, destination and bytes of every call, each of which must be one message.
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

/// Every message carries everything that its source holds: one bit set per process. Returns what the
/// processes hold afterwards.
pub(crate) fn spread(calls: &[Edge], mut held: Vec<u64>) -> Vec<u64> {
    for edge in calls {
        held[edge.destination as usize] |= held[edge.source as usize];
    }
    held
}

/// Block r has `unit` · 2ʳ bytes, so the size of a message determines which blocks it carries. A process
/// never sends blocks that it lacks or that the receiver holds. At the end every process holds all blocks.
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

/// The same where all messages of a pair are reported together: the processes form a ring in which each
/// receives all blocks but its own.
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

/// Blocks between all pairs move over the distances 1, 2, 4, …, or directly. Messages carry complete blocks.
/// At the end every block is at its destination.
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
        // Direct blocks have not moved yet; others have travelled exactly the smaller distances of their route.
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

/// Every process forwards its own block and those it received once; all blocks reach the root.
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

/// Which messages a process accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A message carries nothing that the receiver holds, and no contribution counts twice.
    Strict,
    /// A message may repeat what the receiver holds.
    Again,
    /// Contributions may overlap; only their arrival is checked.
    Overlap,
}

/// Contributions that each process holds of every piece, as bit sets.
pub(crate) type Held = Vec<Vec<u64>>;

/// Simulates messages round by round. With two or more pieces, piece `i` has 2ⁱ bytes, so the size of a
/// message determines its pieces; a single piece is in every message. The sender must hold a piece before
/// the round. The receiver adds it to its contributions, or replaces them if the piece contains all of them.
pub(crate) fn follow(messages: &[(u32, Edge)], mut held: Held, rule: Rule) -> Held {
    let pieces = held[0].len() as u32;
    let mut single: Vec<((u32, u64), u32, u32, u64)> =
        messages.iter().flat_map(|(round, edge)| turns(*round, edge, pieces)).collect();
    single.sort_unstable();
    for round in single.chunk_by(|one, other| one.0 == other.0) {
        let before = held.clone();
        for &(_, source, destination, carried) in round {
            for piece in (0..pieces as usize).filter(|piece| carried >> piece & 1 == 1) {
                let sent = before[source as usize][piece];
                let mine = &mut held[destination as usize][piece];
                assert_ne!(sent, 0, "{source} sends piece {piece} to {destination} without having it");
                assert!(
                    rule != Rule::Strict || *mine != sent,
                    "{destination} has piece {piece} from {source}"
                );
                assert!(
                    rule == Rule::Overlap || *mine & sent == 0 || *mine & sent == *mine,
                    "piece {piece} from {source} counts twice at {destination}"
                );
                *mine |= sent;
            }
        }
    }
    held
}

/// The single messages of an edge: round and turn, source, destination, pieces. Several messages forward all
/// pieces but one around a ring, starting with the previous piece.
fn turns(round: u32, edge: &Edge, pieces: u32) -> Vec<((u32, u64), u32, u32, u64)> {
    let one = |turn, carried| ((round, turn), edge.source, edge.destination, carried);
    let all = u64::MAX >> (64 - pieces);
    if pieces == 1 || edge.messages == 1 {
        assert_eq!(edge.messages, 1);
        return vec![one(0, if pieces == 1 { 1 } else { edge.bytes })];
    }
    let missing = all - edge.bytes;
    assert!(missing.is_power_of_two() && edge.messages == u64::from(pieces) - 1, "{edge:?}");
    let first = u64::from(missing.trailing_zeros() + pieces - 1);
    let piece = |turn: u64| (first + u64::from(pieces) - turn) % u64::from(pieces);
    (0..edge.messages).map(|turn| one(turn, 1 << piece(turn))).collect()
}
