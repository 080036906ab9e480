//! Simulates every algorithm round by round with the blocks it moves, for up to 64 processes.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::algorithm::{Algorithm, Algorithms, Rules};
use crate::checker::{Held, Rule, assert_exchanged, follow};
use crate::load::Load;
use crate::messages::{broadcast_in_pieces, send};
use crate::network::Network;
use crate::reduce::{self, Excess};
use crate::sizes::Blocks;
use crate::{Call, CollectiveError};
use hopmap_model::{CollectiveOperation as Operation, Edge};

type Messages = Vec<(u32, Edge)>;

/// Pieces of 1, 2, 4, … bytes.
fn pieces(count: u32) -> Blocks {
    Blocks::of((0..count).map(|piece| 1 << piece))
}

fn record(
    processes: u32,
    root: u32,
    algorithm: impl FnOnce(&mut Network<&mut dyn FnMut(u32, Edge)>),
) -> Messages {
    let mut messages = Vec::new();
    let mut push: &mut dyn FnMut(u32, Edge) = &mut |round, edge| messages.push((round, edge));
    algorithm(&mut Network::new(processes, root, &mut push as &mut dyn FnMut(u32, Edge)));
    messages
}

fn sent(operation: Operation, algorithm: Algorithm, load: &Load<'_>, processes: u32, root: u32) -> Messages {
    record(processes, root, |network| send((operation, algorithm), load, root, network))
}

/// All contributions.
fn all(processes: u32) -> u64 {
    u64::MAX >> (64 - processes)
}

/// What every process holds of every piece.
fn held(processes: u32, pieces: u32, of: impl Fn(u32, u32) -> u64) -> Held {
    (0..processes).map(|rank| (0..pieces).map(|piece| of(rank, piece)).collect()).collect()
}

/// The rank of a process numbered from the root.
fn rank(process: u32, root: u32, processes: u32) -> u32 {
    (process + root) % processes
}

/// A number of processes, two or more, and one of them.
fn group() -> impl Strategy<Value = (u32, u32)> {
    (2..=64u32).prop_flat_map(|processes| (Just(processes), 0..processes))
}

fn call(operation: Operation, processes: u32, root: u32, bytes: u64) -> Call {
    Call { operation, processes, root: operation.has_root().then_some(root), bytes }
}

/// One algorithm for an operation.
fn chosen(operation: Operation, algorithm: Algorithm) -> Algorithms {
    let name = match operation {
        Operation::GatherV => Operation::Gather,
        Operation::ScatterV => Operation::Scatter,
        Operation::AllGatherV => Operation::AllGather,
        Operation::ReduceScatterBlock => Operation::ReduceScatter,
        Operation::ExclusiveScan => Operation::Scan,
        operation => operation,
    };
    serde_json::from_value(serde_json::json!({ name.name(): algorithm })).unwrap()
}

proptest! {
    #[test]
    fn broadcasts_reach_everybody((processes, root) in group()) {
        let unsplit = held(processes, 1, |rank, _| u64::from(rank == root));
        let whole = |algorithm: &&Algorithm| {
            use Algorithm::{ScatterDoubling, ScatterRing, SplitBinary};
            !matches!(algorithm, ScatterRing | ScatterDoubling | SplitBinary)
        };
        for &algorithm in Algorithm::of(Operation::Broadcast).iter().filter(whole) {
            let messages = sent(Operation::Broadcast, algorithm, &Load::Vector(1), processes, root);
            let after = follow(&messages, unsplit.clone(), Rule::Strict);
            prop_assert!(after.iter().all(|held| held[0] == 1), "{}", algorithm);
        }
        let cut = held(processes, processes, |rank, _| u64::from(rank == root));
        for algorithm in [Algorithm::ScatterRing, Algorithm::ScatterDoubling] {
            let messages = record(processes, root, |network| {
                broadcast_in_pieces(algorithm, &pieces(processes), network);
            });
            // Processes that forward pieces receive them again.
            let after = follow(&messages, cut.clone(), Rule::Again);
            prop_assert!(after.iter().flatten().all(|&held| held == 1), "{}", algorithm);
        }
        // The halves of three bytes have two bytes and one, as two pieces do.
        let halves = sent(Operation::Broadcast, Algorithm::SplitBinary, &Load::Vector(3), processes, root);
        let after = follow(&halves, held(processes, 2, |rank, _| u64::from(rank == root)), Rule::Strict);
        prop_assert!(after.iter().flatten().all(|&held| held == 1));
    }

    #[test]
    fn gathers_and_scatters_bring_every_block_to_its_end((processes, root) in group()) {
        let blocks = Load::Blocks(pieces(processes));
        for &algorithm in Algorithm::of(Operation::Gather) {
            let own = held(processes, processes, |rank, piece| {
                u64::from(rank == self::rank(piece, root, processes))
            });
            let gather = sent(Operation::Gather, algorithm, &blocks, processes, root);
            let after = follow(&gather, own, Rule::Strict);
            prop_assert!(after[root as usize].iter().all(|&held| held == 1), "{}", algorithm);
        }
        for algorithm in [Algorithm::Binomial, Algorithm::Linear] {
            let together = held(processes, processes, |rank, _| u64::from(rank == root));
            let scatter = sent(Operation::Scatter, algorithm, &blocks, processes, root);
            let after = follow(&scatter, together, Rule::Strict);
            for piece in 0..processes {
                prop_assert_eq!(after[rank(piece, root, processes) as usize][piece as usize], 1);
            }
        }
    }

    #[test]
    fn allgathers_bring_every_block_to_every_process(processes in 2..=64u32) {
        let own = held(processes, processes, |rank, piece| u64::from(rank == piece));
        for &algorithm in Algorithm::of(Operation::AllGather) {
            // The parts of a long broadcast, if it is scattered, are not the blocks.
            let scattered = algorithm == Algorithm::NonOverlapping && (20..32).contains(&processes);
            if algorithm.fits(Operation::AllGather, processes) && !scattered {
                let blocks = Load::Blocks(pieces(processes));
                let messages = sent(Operation::AllGather, algorithm, &blocks, processes, 0);
                // A broadcast of all blocks brings every process its own.
                let rule = if algorithm == Algorithm::NonOverlapping { Rule::Again } else { Rule::Strict };
                let after = follow(&messages, own.clone(), rule);
                prop_assert!(after.iter().flatten().all(|&held| held == 1), "{}", algorithm);
            }
        }
    }

    #[test]
    fn reductions_count_everybody_once((processes, root) in group()) {
        let own = |pieces| held(processes, pieces, |rank, _| 1 << rank);
        let power = 1 << processes.ilog2();
        let whole = |algorithm: &&Algorithm| {
            !matches!(algorithm, Algorithm::ReduceScatterGather | Algorithm::Rabenseifner)
        };
        for &algorithm in Algorithm::of(Operation::Reduce).iter().filter(whole) {
            let messages = sent(Operation::Reduce, algorithm, &Load::Vector(1), processes, root);
            prop_assert_eq!(follow(&messages, own(1), Rule::Strict)[root as usize][0], all(processes));
        }
        for excess in [Excess::Whole, Excess::Halves] {
            let messages = record(processes, root, |network| {
                network.unrotated(|network| reduce::reduce_in_pieces(&pieces(power), (root, excess), network));
            });
            let after = follow(&messages, own(power), Rule::Strict);
            prop_assert!(after[root as usize].iter().all(|&held| held == all(processes)));
        }
        let cut = |excess| {
            record(processes, 0, |network| reduce::all_reduce_in_pieces(&pieces(power), excess, network))
        };
        let rings = record(processes, 0, |network| reduce::all_reduce_in_rings(&pieces(processes), network));
        let unsplit = |algorithm| (sent(Operation::AllReduce, algorithm, &Load::Vector(1), processes, 0), 1);
        let [doubling, linear, parts] =
            [Algorithm::RecursiveDoubling, Algorithm::Linear, Algorithm::NonOverlapping].map(unsplit);
        let [whole, halves] = [Excess::Whole, Excess::Halves].map(|excess| (cut(excess), power));
        for (messages, pieces) in [doubling, linear, parts, whole, halves, (rings, processes)] {
            let after = follow(&messages, own(pieces), Rule::Strict);
            prop_assert!(after.iter().flatten().all(|&held| held == all(processes)));
        }
    }

    #[test]
    fn reduce_scatters_bring_every_process_its_block((processes, _) in group()) {
        let own = |pieces| held(processes, pieces, |rank, _| 1 << rank);
        for &algorithm in Algorithm::of(Operation::ReduceScatter) {
            let blocks = Load::Blocks(pieces(processes));
            let messages = sent(Operation::ReduceScatter, algorithm, &blocks, processes, 0);
            // Processes without a partner get what another one received, which is not all that it has.
            let forwards = algorithm == Algorithm::RecursiveDoubling && !processes.is_power_of_two();
            let rule = if forwards { Rule::Overlap } else { Rule::Strict };
            let after = follow(&messages, own(processes), rule);
            prop_assert!((0..processes as usize).all(|rank| after[rank][rank] == all(processes)), "{}", algorithm);
        }
        if processes.is_power_of_two() {
            let blocks = Load::Blocks(pieces(processes));
            let messages = sent(Operation::ReduceScatterBlock, Algorithm::Butterfly, &blocks, processes, 0);
            let after = follow(&messages, own(processes), Rule::Strict);
            prop_assert!((0..processes as usize).all(|rank| after[rank][rank] == all(processes)));
        }
    }

    #[test]
    fn barriers_end_when_all_have_come_and_scans_have_all_before((processes, _) in group()) {
        let own = held(processes, 1, |rank, _| 1 << rank);
        for &algorithm in Algorithm::of(Operation::Barrier) {
            let messages = sent(Operation::Barrier, algorithm, &Load::Nothing, processes, 0);
            let after = follow(&messages, own.clone(), Rule::Overlap);
            prop_assert!(after.iter().all(|held| held[0] == all(processes)), "{}", algorithm);
        }
        for &algorithm in Algorithm::of(Operation::Scan) {
            let messages = sent(Operation::Scan, algorithm, &Load::Vector(1), processes, 0);
            let after = follow(&messages, own.clone(), Rule::Strict);
            for (rank, held) in (0..processes).zip(after) {
                prop_assert_eq!(held[0] & all(rank + 1), all(rank + 1), "{}", algorithm);
            }
        }
    }

    #[test]
    fn alltoalls_bring_every_block_to_its_destination(processes in 2..=40u32, block in 1..9u64) {
        for &algorithm in Algorithm::of(Operation::AllToAll) {
            let mut messages = Vec::new();
            call(Operation::AllToAll, processes, 0, block).messages(algorithm, |_, edge| messages.push(edge)).unwrap();
            assert_exchanged(&messages, processes, block);
        }
    }

    /// The busiest process determines the cost of a round, so no process may do more in it than the
    /// algorithm requires.
    #[test]
    fn every_process_sends_and_receives_one_message_per_round((processes, root) in group(), bytes in 1..5000u64) {
        for operation in Operation::ALL {
            let straight = |algorithm: &&Algorithm| {
                let crowded =
                    matches!(algorithm, Algorithm::Linear | Algorithm::NonOverlapping | Algorithm::DoubleBinaryTree);
                !crowded
                    && call(operation, processes, root, bytes).suits(**algorithm)
            };
            for algorithm in Algorithm::of(operation).iter().filter(straight) {
                let mut busy: BTreeMap<(u32, bool, u32), u32> = BTreeMap::new();
                call(operation, processes, root, bytes).messages(*algorithm, |round, edge| {
                    *busy.entry((round, true, edge.source)).or_default() += 1;
                    *busy.entry((round, false, edge.destination)).or_default() += 1;
                }).unwrap();
                prop_assert!(busy.values().all(|&count| count == 1), "{} {}", operation, algorithm);
            }
        }
    }

    #[test]
    fn a_call_sends_what_a_recorded_operation_does(
        (processes, root) in group(), bytes in 1..100_000u64, operation in prop::sample::select(Operation::ALL.to_vec()),
    ) {
        let call = call(operation, processes, root, bytes);
        let sizes = vec![bytes; processes as usize];
        // In an alltoallv every process gets a share of what is sent to all.
        prop_assume!(!matches!(operation, Operation::AllToAllV | Operation::AllToAllW | Operation::ReduceScatter));
        let recorded = crate::sizes::Collective {
            operation, root: Some(root), convention: crate::sizes::Convention::Arguments, sent: &sizes, received: &sizes,
        };
        if operation != Operation::Barrier && operation != Operation::AllGatherV {
            prop_assert_eq!(crate::summary(&recorded), Ok((call, true)));
        }
        let expanded = |algorithms: &Algorithms| {
            let mut edges = Vec::new();
            crate::expand(&recorded, algorithms, |edge| edges.push(edge)).unwrap();
            edges
        };
        for rules in [Rules::Mpich, Rules::OpenMpi, Rules::Nccl] {
            let mut edges = Vec::new();
            call.messages(call.usual(rules), |_, edge| edges.push(edge)).unwrap();
            prop_assert_eq!(edges, expanded(&Algorithms { rules, ..Algorithms::default() }), "{:?}", rules);
        }
        for &algorithm in Algorithm::of(operation).iter().filter(|algorithm| call.suits(**algorithm)) {
            let mut edges = Vec::new();
            call.messages(algorithm, |_, edge| edges.push(edge)).unwrap();
            prop_assert_eq!(edges, expanded(&chosen(operation, algorithm)), "{}", algorithm);
        }
    }
}

#[test]
fn an_invalid_call_is_rejected() {
    let report = |call: Call, algorithm| call.messages(algorithm, |_, _| ());
    let seven = call(Operation::AllGather, 7, 0, 8);
    let algorithm = Algorithm::NeighbourExchange;
    let error = report(seven, algorithm).unwrap_err();
    assert_eq!(
        error,
        CollectiveError::Algorithm { operation: Operation::AllGather, algorithm, processes: 7, bytes: 8 }
    );
    assert_eq!(
        error.to_string(),
        "`neighbour-exchange` does not support `allgather` of 8 bytes on 7 processes"
    );
    let rootless = Call { root: None, ..call(Operation::Reduce, 7, 0, 8) };
    assert_eq!(report(rootless, Algorithm::Binomial), Err(CollectiveError::NoRoot));
    assert_eq!(report(call(Operation::Reduce, 1, 0, 8), Algorithm::Binomial), Ok(()));
}

#[test]
fn vectors_of_fewer_elements_than_pieces_are_not_split() {
    let suits = |bytes, algorithm| call(Operation::AllReduce, 12, 0, bytes).suits(algorithm);
    assert!(suits(96, Algorithm::Ring) && !suits(95, Algorithm::Ring));
    assert!(suits(64, Algorithm::ReduceScatterAllgather) && !suits(63, Algorithm::ReduceScatterAllgather));
    assert!(suits(1, Algorithm::RecursiveDoubling));
    assert!(call(Operation::AllGather, 12, 0, 1).suits(Algorithm::Ring));
    let ring = |bytes| {
        let sizes = [bytes; 4];
        let recorded = crate::sizes::Collective {
            operation: Operation::AllReduce,
            root: None,
            convention: crate::sizes::Convention::Arguments,
            sent: &sizes,
            received: &sizes,
        };
        let mut messages = 0;
        crate::expand(&recorded, &chosen(Operation::AllReduce, Algorithm::Ring), |edge| {
            messages += edge.messages;
        })
        .unwrap();
        messages
    };
    assert_eq!((ring(32), ring(31)), (24, 8));
}

#[test]
fn a_ring_of_four_reduces_by_hand() {
    let mut messages = Vec::new();
    call(Operation::AllReduce, 4, 0, 40).messages(Algorithm::Ring, |_, edge| messages.push(edge)).unwrap();
    let edge = |source, destination| Edge { source, destination, messages: 3, bytes: 30 };
    let ring = [edge(0, 1), edge(1, 2), edge(2, 3), edge(3, 0)];
    assert_eq!(messages, [ring, ring].concat());
}
