//! Task graphs of recordings.

use hopmap_collectives::Algorithms;
use hopmap_model::{CollectiveCalls, CollectiveOperation, TaskGraph};
use hopmap_recording::{
    Choice, Communicator, Converted, Description, Kind, Method, Operation, Pair, Process, RankFile,
    Recording, lines,
};

use crate::support::{file, kind, recorded, write};

fn expand() -> Choice {
    Choice::Expand(Algorithms::default())
}

/// A communicator of all ranks with one operation; the ranks send these bytes in all calls.
fn operation(name: &str, root: Option<u32>, calls: u64, sent: &[u64]) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    let ranks = sent.len() as u32;
    let file = |rank: u32| RankFile {
        rank,
        ranks,
        finalized: true,
        operations: vec![Operation {
            communicator: 1,
            kind: kind(name),
            root,
            bytes: sent[rank as usize],
            calls,
            size: ranks,
        }],
        communicators: vec![Communicator { number: 1, members: (0..ranks).rev().collect() }],
        ..RankFile::default()
    };
    let files: Vec<RankFile> = (0..ranks).map(file).collect();
    write(folder.path(), &Description::new(Method::Preload, ranks), &files);
    Recording::read(folder.path()).unwrap()
}

fn graph(recording: &Recording, choice: Choice) -> TaskGraph {
    let graph = recording.task_graph(choice).unwrap().graph;
    graph.check().unwrap();
    graph
}

fn pairs(graph: &TaskGraph) -> Vec<(u32, u32, u64, u64)> {
    graph.edges.iter().map(|edge| (edge.source, edge.destination, edge.messages, edge.bytes)).collect()
}

#[test]
fn messages_times_and_lengths_are_those_of_the_files() {
    let recording = Recording::read(recorded(3).path()).unwrap();
    let graph = graph(&recording, Choice::Ignore);
    assert_eq!(pairs(&graph)[..2], [(0, 1, 3, 108), (0, 2, 1, 32)]);
    let bins: Vec<_> =
        graph.sizes[..4].iter().map(|bin| (bin.at_least_bytes, bin.messages, bin.bytes)).collect();
    assert_eq!(bins, [(0, 1, 0), (8, 1, 8), (64, 1, 100), (32, 1, 32)]);
    assert_eq!((graph.duration_s, graph.processes[0].compute_s), (Some(10.0), Some(9.0)));
    assert_eq!(graph.processes[1].host.as_deref(), Some("node1"));
    assert!(graph.collectives.is_empty() && graph.collective_bytes.is_none());
    let lines = lines(&graph, None);
    assert_eq!(
        lines.last().unwrap(),
        "10 % of the time is inside MPI: no placement can gain more than that."
    );
}

#[test]
fn collectives_are_a_table_and_messages() {
    let recording = Recording::read(recorded(2).path()).unwrap();
    let kept = graph(&recording, Choice::Keep);
    assert_eq!(pairs(&kept), pairs(&graph(&recording, Choice::Ignore)));
    assert_eq!(kept.collectives.communicators, [[0, 1]]);
    let calls = |operation, root, bytes| CollectiveCalls {
        communicator: 0,
        operation,
        root,
        bytes,
        calls: 2,
        uneven: 0,
    };
    let expected = [
        calls(CollectiveOperation::Broadcast, Some(1), 1000),
        calls(CollectiveOperation::AllReduce, None, 8),
    ];
    assert_eq!(kept.collectives.calls, expected);
    let expanded = graph(&recording, expand());
    assert_eq!(expanded.collectives, kept.collectives);
    // Two allreduces of 8 bytes in both directions, and two broadcasts of 1000 bytes.
    assert_eq!((expanded.bytes() - kept.bytes(), expanded.messages() - kept.messages()), (2032, 6));
    assert_eq!(expanded.collective_bytes, Some(2032.0));
}

#[test]
fn sent_bytes_tell_the_length_of_a_block() {
    // Ranks are in reverse order in the communicator: root 0 is world rank 3.
    for (name, root, sent, bytes) in [
        ("bcast", Some(0), [0, 0, 0, 30], 10),
        ("scatter", Some(0), [0, 0, 0, 120], 10),
        ("gather", Some(0), [30, 30, 30, 0], 10),
        ("reduce", Some(0), [30, 30, 30, 30], 10),
        ("allgather", None, [30; 4], 10),
        ("allreduce", None, [30; 4], 10),
        ("alltoall", None, [120; 4], 10),
        ("reduce_scatter", None, [120; 4], 10),
        ("reduce_scatter_block", None, [120; 4], 10),
        ("scan", None, [30; 4], 10),
        ("exscan", None, [30; 4], 10),
        ("gatherv", Some(0), [30, 30, 30, 0], 10),
        ("scatterv", Some(0), [0, 0, 0, 120], 10),
        ("allgatherv", None, [30; 4], 10),
        ("alltoallv", None, [120; 4], 10),
        ("alltoallw", None, [120; 4], 10),
        ("barrier", None, [0; 4], 0),
    ] {
        let recording = operation(name, root, 3, &sent);
        let graph = graph(&recording, expand());
        let calls = &graph.collectives.calls;
        assert_eq!(
            (calls.len(), calls[0].bytes, calls[0].calls, calls[0].uneven),
            (1, bytes, 3, 0),
            "{name}"
        );
        assert_eq!(calls[0].operation.name(), name);
        assert!(graph.messages() > 0 && graph.messages().is_multiple_of(3), "{name}");
        if name == "bcast" {
            assert!(graph.edges.iter().any(|edge| edge.source == 3), "{:?}", graph.edges);
            assert_eq!(graph.bytes(), 90);
        }
    }
}

#[test]
fn blocks_of_different_lengths_are_uneven() {
    let graph = graph(&operation("gatherv", Some(0), 2, &[10, 20, 60, 0]), expand());
    assert_eq!((graph.collectives.calls[0].uneven, graph.collectives.calls[0].bytes), (2, 15));
    assert_eq!(pairs(&graph), [(0, 3, 2, 10), (1, 3, 2, 20), (2, 3, 2, 60)]);
}

#[test]
fn operations_without_a_graph_are_counted() {
    let converted = |recording: &Recording| recording.task_graph(expand()).unwrap();
    let Converted { graph, neighbourhood, .. } =
        converted(&operation("neighbor_alltoall", None, 5, &[10, 10]));
    assert_eq!((graph.edges.len(), neighbourhood), (0, 5));
    assert_eq!(converted(&operation("bcast", Some(2), 5, &[10, 10])).without_root, 5);
    assert_eq!(converted(&operation("bcast", None, 5, &[10, 10])).without_root, 5);
    // Constants of MPI for the root of an intercommunicator, as an early recorder wrote them.
    for root in [-1i32, -2, -3, -4].map(i32::cast_unsigned) {
        let recording = operation("bcast", Some(root), 5, &[10, 10]);
        assert_eq!(converted(&recording).without_root, 5);
        assert!(
            recording.task_graph(Choice::Keep).is_ok_and(|converted| converted.graph.collectives.is_empty())
        );
    }
}

/// A duplicate of a communicator is another one to the rank, but not to the program's messages.
#[test]
fn communicators_of_equal_members_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let files = [0, 1].map(|rank| {
        let mut file = file(rank, 2);
        file.communicators.push(Communicator { number: 5, ..file.communicators[0].clone() });
        let more = file.operations.clone();
        file.operations.extend(more.into_iter().map(|one| Operation { communicator: 5, ..one }));
        file
    });
    write(folder.path(), &Description::new(Method::Preload, 2), &files);
    let recording = Recording::read(folder.path()).unwrap();
    assert_eq!((recording.communicators.len(), recording.calls.len()), (1, 8));
    let table = graph(&recording, Choice::Keep).collectives;
    assert_eq!(table.communicators, [[0, 1]]);
    assert_eq!(table.calls.iter().map(|calls| calls.calls).collect::<Vec<_>>(), [4, 4]);
}

#[test]
fn messages_of_neighbourhood_collectives_count_with_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair { partner: 0, kind: Kind::Collective, log2_bytes: 4, messages: 1, bytes: 8 };
    let file = RankFile { rank: 0, ranks: 1, finalized: true, pairs: vec![pair], ..RankFile::default() };
    write(folder.path(), &Description::new(Method::Preload, 1), &[file]);
    let recording = Recording::read(folder.path()).unwrap();
    assert_eq!(pairs(&graph(&recording, expand())), [(0, 0, 1, 8)]);
    assert!(graph(&recording, Choice::Keep).edges.is_empty());
}

#[test]
fn sums_beyond_64_bits_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair { partner: 0, kind: Kind::Put, log2_bytes: 64, messages: 1, bytes: u64::MAX };
    let files = [0, 1].map(|rank| RankFile {
        rank,
        ranks: 2,
        finalized: true,
        pairs: vec![pair],
        ..RankFile::default()
    });
    write(folder.path(), &Description::new(Method::Preload, 2), &files);
    let error = Recording::read(folder.path()).unwrap().task_graph(Choice::Ignore).unwrap_err();
    assert_eq!(error.to_string(), "the messages or bytes of all pairs exceed 64 bits");
}

#[test]
fn collectives_that_become_too_many_messages_are_refused() {
    let mut recording = operation("alltoall", None, 1, &[1 << 40; 2]);
    let ranks = 1 << 15;
    recording.communicators = vec![(0..ranks).collect()];
    recording.processes.resize(ranks as usize, Process::default());
    let error = recording.task_graph(expand()).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("would become more than 268435456 messages"), "{error}");
    assert!(recording.task_graph(Choice::Keep).is_ok());
}
