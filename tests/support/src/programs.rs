//! Random programs.

use std::collections::VecDeque;

use hopmap_model::{
    Collective, CollectiveOperation, Dependency, Envelope, Program, ProgramBuilder, Task, TaskDag, WorkUnit,
};
use proptest::prelude::*;

/// A program of four ranks: works, ranks, and edges from lower to higher numbers.
pub fn small_programs() -> impl Strategy<Value = TaskDag> {
    let task = (0u32..4, 0u32..20);
    let edge = (0usize..24, 0usize..24, 0u64..4);
    (prop::collection::vec(task, 1..24), prop::collection::vec(edge, 0..50)).prop_map(|(tasks, edges)| {
        let count = tasks.len();
        let edges =
            edges.into_iter().map(|(a, b, bytes)| (a % count, b % count, bytes)).filter(|(a, b, _)| a != b);
        let mut dependencies: Vec<_> = edges
            .map(|(a, b, bytes)| Dependency { source: a.min(b) as u32, destination: a.max(b) as u32, bytes })
            .collect();
        dependencies.sort_unstable();
        let task = |(rank, work)| Task { rank: Some(rank), work: f64::from(work) };
        let tasks = tasks.into_iter().map(task).collect();
        TaskDag { tasks, dependencies, unit: WorkUnit::Time, ..TaskDag::default() }
    })
}

/// A part of a random program.
#[derive(Debug, Clone)]
enum Piece {
    Message {
        ends: (u32, u32),
        tag: u32,
        bytes: u64,
        nonblocking: (bool, bool),
    },
    /// Completes, or only tests, one of the active requests.
    Wait {
        place: prop::sample::Index,
        completes: bool,
    },
    Collective {
        operation: CollectiveOperation,
        root: u32,
        bytes: u64,
    },
    Compute {
        rank: u32,
        milliseconds: u32,
    },
}

/// Programs of this number of ranks, at least two, on `MPI_COMM_WORLD`: messages of up to `most_bytes`,
/// computation in multiples of 1/1024 s, and collective operations of the given kinds, if any. They cannot
/// deadlock, with eager messages or without: pieces with both ends of a message follow each other.
pub fn programs(
    ranks: u32,
    most_bytes: u64,
    operations: &'static [CollectiveOperation],
) -> impl Strategy<Value = Program> {
    let rank = move || 0..ranks;
    let message = (rank(), 1..ranks, 0..3u32, 0..=most_bytes, any::<(bool, bool)>());
    let message = message.prop_map(move |(source, distance, tag, bytes, nonblocking)| {
        let ends = (source, (source + distance) % ranks);
        Piece::Message { ends, tag, bytes, nonblocking }
    });
    let wait = (any::<prop::sample::Index>(), 0..4).prop_map(|(place, completes)| {
        let completes = completes > 0;
        Piece::Wait { place, completes }
    });
    let compute = (rank(), 0..4096u32).prop_map(|(rank, milliseconds)| Piece::Compute { rank, milliseconds });
    let collective = (any::<prop::sample::Index>(), rank(), 0..=most_bytes);
    let collective = collective.prop_map(move |(place, root, bytes)| match operations {
        [] => Piece::Compute { rank: root, milliseconds: 1 },
        _ => Piece::Collective { operation: operations[place.index(operations.len())], root, bytes },
    });
    let piece = prop_oneof![8 => message, 3 => wait, 3 => compute, 1 => collective];
    prop::collection::vec(piece, 1..120).prop_map(move |pieces| build(ranks, &pieces))
}

fn build(ranks: u32, pieces: &[Piece]) -> Program {
    let mut builder = ProgramBuilder::new(ranks);
    // Rank, both ends and tag, and request; the oldest first.
    let mut active: VecDeque<(u32, (u32, u32), u32, u32)> = VecDeque::new();
    for piece in pieces {
        match *piece {
            Piece::Message { ends: (source, destination), tag, bytes, nonblocking } => {
                let to = |peer| Envelope { peer, tag, communicator: 0 };
                let ends = (source, destination);
                match nonblocking.0 {
                    true => {
                        let request = builder.isend(source, to(destination), bytes);
                        active.push_back((source, ends, tag, request));
                    }
                    false => builder.send(source, to(destination), bytes),
                }
                match nonblocking.1 {
                    true => {
                        let request = builder.irecv(destination, to(source), bytes);
                        active.push_back((destination, ends, tag, request));
                    }
                    false => builder.recv(destination, to(source), bytes),
                }
            }
            Piece::Wait { ref place, completes } if !active.is_empty() => {
                let (rank, ends, tag, _) = active[place.index(active.len())];
                // The oldest with the same ends and tag, because formats cannot tell them apart.
                let same =
                    |other: &(u32, (u32, u32), u32, u32)| (other.0, other.1, other.2) == (rank, ends, tag);
                let oldest = active.iter().position(same).unwrap_or_default();
                let request = active[oldest].3;
                if completes {
                    active.remove(oldest);
                    builder.wait(rank, request);
                } else {
                    builder.test(rank, request);
                }
            }
            Piece::Wait { .. } => {}
            Piece::Collective { operation, root, bytes } => {
                let root = operation.has_root().then_some(root);
                let bytes = if operation == CollectiveOperation::Barrier { 0 } else { bytes };
                for rank in 0..ranks {
                    builder.collective(rank, Collective { communicator: 0, operation, root }, bytes);
                }
            }
            Piece::Compute { rank, milliseconds } => builder.compute(rank, f64::from(milliseconds) / 1024.0),
        }
    }
    (0..ranks).for_each(|rank| builder.waitall(rank));
    builder.finish().unwrap_or_else(|error| panic!("{error}"))
}
