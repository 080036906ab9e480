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

/// How processes take what they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Nothing is sent that the other has, and no contribution counts twice.
    Strict,
    /// What the other has may come again.
    Again,
    /// Contributions may overlap: only whether they came matters.
    Overlap,
}

/// Whose contributions each process holds of every piece, as bits.
pub(crate) type Held = Vec<Vec<u64>>;

/// Follows messages round by round. Piece `i` of two or more has 2ⁱ bytes, so that the size of a message says which pieces
/// it carries; a single piece is in every message. What is sent in a round was there before it, and what comes is either
/// added to what a process holds, or has all of it and takes its place.
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

/// The single messages of an edge: round and turn, source, destination, pieces. Several messages pass on all pieces around
/// a ring but one, beginning with the piece before that one.
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
