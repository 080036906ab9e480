//! Tasks and their dependencies.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::writer::Part::{Byte, Number};
use crate::support::writer::{Archive, ranks, receive};
use crate::support::{Listener, OTHER, archives, read_with, sample};
use hopmap_model::{Context, InputPath, Inputs, Outcome, Stage, TaskDag, TaskGraph, TraceArchive};
use hopmap_trace::{Dag, DagParams, EventsParams, Generate, GenerateParams, ListEvents, Pattern, Reader};

/// Type numbers of events.
const ISEND_COMPLETE: u8 = 16;
const IRECV_REQUEST: u8 = 17;
const RECV: u8 = 18;
const REQUEST_CANCELLED: u8 = 21;
const IRECV: u8 = 19;
const COLLECTIVE_END: u8 = 23;
const COLLECTIVE_REQUEST: u8 = 85;
const COLLECTIVE_COMPLETE: u8 = 86;

/// Operations.
const BROADCAST: u8 = 1;
const ALL_REDUCE: u8 = 11;
const ALL_GATHER: u8 = 6;
const ALL_TO_ALL: u8 = 8;

fn run(params: DagParams, cx: &Context<'_>) -> miette::Result<TaskDag> {
    Dag::check(&params)?;
    match Dag::run(params, Inputs::new(), cx)? {
        Outcome::Done(outputs) => {
            let dag = outputs.get("task-dag").unwrap().downcast_ref::<TaskDag>().unwrap().clone();
            dag.check().unwrap();
            Ok(dag)
        }
        other => panic!("{other:?}"),
    }
}

/// The tasks of an archive; both readers must agree.
fn read(path: &Path, ask: impl Fn(&mut DagParams), listener: &Listener) -> Result<TaskDag, String> {
    let by = |reader, cx: &Context<'_>| {
        let mut params = DagParams { reader, ..DagParams::new(InputPath::new(path)) };
        ask(&mut params);
        run(params, cx).map_err(|error| error.to_string().replace(&path.display().to_string(), "ARCHIVE"))
    };
    let dag = by(Reader::Native, &Context::new(2, None, listener));
    assert_eq!(dag, by(OTHER, &Context::detached()));
    dag
}

/// Tasks of a program (rank, milliseconds) and edges.
type Shape = (Vec<(u32, u64)>, Vec<(u32, u32, u64)>);

fn shape(archive: &Archive, ask: impl Fn(&mut DagParams)) -> Result<Shape, String> {
    let folder = tempfile::tempdir().unwrap();
    archive.write(folder.path());
    let dag = read(folder.path(), ask, &Listener::default())?;
    let task = |task: &hopmap_model::Task| (task.rank.unwrap(), (task.work * 1e3).round() as u64);
    Ok((
        dag.tasks.iter().map(task).collect(),
        dag.dependencies.iter().map(|edge| (edge.source, edge.destination, edge.bytes)).collect(),
    ))
}

#[test]
fn a_message_connects_the_task_before_the_send_to_the_one_after_the_receive() {
    let mut archive = ranks(2);
    let rank = archive.thread(1, 0).enter(0, 1).enter(10, 2).send(11, 0, 1, 500).leave(12, 2);
    rank.leave(20, 1);
    let rank = archive.thread(2, 1).enter(0, 1).enter(3, 2).any(14, RECV, &receive(0, 500)).leave(15, 2);
    rank.leave(40, 1);
    let tasks = vec![(0, 10), (0, 8), (1, 3), (1, 25)];
    assert_eq!(shape(&archive, |_| ()), Ok((tasks, vec![(0, 1, 0), (0, 3, 500), (2, 3, 0)])));
}

/// Once these stages, unlike others, did not say it.
#[test]
fn an_archive_without_messages_is_said() {
    for (receiver, said) in [(0, 2), (1, 0)] {
        let mut archive = ranks(2);
        archive.thread(1, 0).enter(0, 1).send(11, 0, receiver, 500).leave(20, 1);
        archive.thread(2, 1).enter(0, 1).any(14, RECV, &receive(0, 500)).leave(40, 1);
        let (folder, listener) = (tempfile::tempdir().unwrap(), Listener::default());
        archive.write(folder.path());
        let (path, cx) = (InputPath::new(folder.path()), Context::new(1, None, &listener));
        run(DagParams { allow_loss: 1.0, ..DagParams::new(path.clone()) }, &cx).unwrap();
        ListEvents::run(EventsParams::new(path), Inputs::new(), &cx).unwrap();
        let log = listener.lines.into_inner().unwrap().join("\n");
        assert_eq!(log.matches("warning: no messages between ranks were recorded").count(), said, "{log}");
    }
}

#[test]
fn the_recorded_run_is_as_long_as_its_longest_process() {
    let mut archive = ranks(2);
    archive.thread(1, 0).enter(5, 1).leave(20, 1);
    // Its clock is another one.
    archive.thread(2, 1).enter(1000, 1).leave(1040, 1);
    let folder = tempfile::tempdir().unwrap();
    archive.write(folder.path());
    let dag = read(folder.path(), |_| (), &Listener::default()).unwrap();
    assert_eq!(dag.recorded_s, Some(0.04));
}

#[test]
fn nonblocking_receives_match_in_posted_order() {
    let mut archive = ranks(2);
    let rank = archive.thread(1, 0).enter(0, 1).enter(10, 2).send(10, 0, 1, 1).leave(10, 2);
    rank.enter(20, 2).send(20, 0, 1, 2).leave(20, 2).leave(30, 1);
    let got = |bytes, request| [Number(0), Number(0), Number(7), Number(bytes), Number(request)];
    // The receive posted second completes first.
    archive
        .thread(2, 1)
        .enter(0, 1)
        .request(1, IRECV_REQUEST, 50)
        .request(1, IRECV_REQUEST, 51)
        .enter(30, 2)
        .any(31, IRECV, &got(2, 51))
        .leave(32, 2)
        .enter(40, 2)
        .any(41, IRECV, &got(1, 50))
        .leave(42, 2)
        .leave(50, 1);
    let (tasks, edges) = shape(&archive, |_| ()).unwrap();
    assert_eq!(tasks, [(0, 10), (0, 10), (0, 10), (1, 30), (1, 8), (1, 8)]);
    // The first message, of one byte, goes to the last task.
    assert_eq!(edges, [(0, 1, 0), (0, 5, 1), (1, 2, 0), (1, 4, 2), (3, 4, 0), (4, 5, 0)]);
}

#[test]
fn tiny_tasks_are_merged_with_their_neighbours() {
    let mut archive = ranks(2);
    let rank = archive.thread(1, 0).enter(0, 1).enter(10, 2).send(10, 0, 1, 1).leave(10, 2);
    // One tick of computation between two sends.
    rank.enter(11, 2).send(11, 0, 1, 2).leave(11, 2).leave(30, 1);
    let rank = archive.thread(2, 1).enter(0, 1).enter(5, 2).any(12, RECV, &receive(0, 1)).leave(12, 2);
    rank.enter(13, 2).any(14, RECV, &receive(0, 2)).leave(14, 2).leave(20, 1);
    let (tasks, edges) = shape(&archive, |params| params.tiny_s = 0.002).unwrap();
    assert_eq!(tasks, [(0, 11), (0, 19), (1, 5), (1, 7)]);
    assert_eq!(edges, [(0, 1, 0), (0, 3, 1), (0, 3, 2), (2, 3, 0)]);
    assert_eq!(shape(&archive, |params| params.tiny_s = 0.0).unwrap().0.len(), 6);
}

#[test]
fn every_process_waits_at_a_join() {
    let mut archive = ranks(3);
    let end = [Byte(ALL_REDUCE), Number(0), Number(u64::from(u32::MAX)), Number(8), Number(8)];
    for rank in 0..3 {
        let at = 10 * (rank + 1);
        let location = archive.thread(rank + 1, rank).enter(0, 1).enter(at, 2);
        location.any(40, COLLECTIVE_END, &end).leave(41, 2).leave(50, 1);
    }
    let (tasks, edges) = shape(&archive, |_| ()).unwrap();
    assert_eq!(tasks, [(0, 10), (0, 9), (1, 20), (1, 9), (2, 30), (2, 9), (0, 0)]);
    let order = [(0, 1, 0), (2, 3, 0), (4, 5, 0)];
    let joined = [(0, 6, 8), (2, 6, 8), (4, 6, 8), (6, 1, 8), (6, 3, 8), (6, 5, 8)];
    let mut all = [&order[..], &joined].concat();
    all.sort_unstable();
    assert_eq!(edges, all);
}

#[test]
fn every_process_waits_for_the_root_of_a_nonblocking_broadcast() {
    let mut archive = ranks(2);
    let end = |request| [Byte(BROADCAST), Number(0), Number(1), Number(0), Number(100), Number(request)];
    for rank in 0..2 {
        let location = archive.thread(rank + 1, rank).enter(0, 1);
        location.enter(5, 2).any(5, COLLECTIVE_REQUEST, &[Number(9)]).leave(5, 2);
        location.enter(20, 2).any(21, COLLECTIVE_COMPLETE, &end(9)).leave(21, 2).leave(30, 1);
    }
    let (tasks, edges) = shape(&archive, |_| ()).unwrap();
    assert_eq!(tasks, [(0, 20), (0, 9), (1, 5), (1, 24)]);
    // The root, rank 1, continues at once; the message leaves at the start of the operation.
    assert_eq!(edges, [(0, 1, 0), (2, 1, 100), (2, 3, 0)]);
}

#[test]
fn long_messages_use_rendezvous() {
    let mut archive = ranks(2);
    let rank = archive.thread(1, 0).enter(0, 1).enter(10, 2).send(11, 0, 1, 500).leave(12, 2);
    rank.leave(20, 1);
    let rank = archive.thread(2, 1).enter(0, 1).enter(30, 2).any(31, RECV, &receive(0, 500)).leave(32, 2);
    rank.leave(40, 1);
    let edges = |bytes| shape(&archive, |params| params.rendezvous_bytes = Some(bytes)).unwrap().1;
    assert_eq!(edges(501), [(0, 1, 0), (0, 3, 500), (2, 3, 0)]);
    assert_eq!(edges(500), [(0, 1, 0), (0, 3, 500), (2, 1, 0), (2, 3, 0)]);
}

#[test]
fn a_program_that_would_deadlock_is_rejected() {
    let mut archive = ranks(2);
    for rank in 0..2 {
        let other = 1 - rank;
        let location = archive.thread(rank + 1, rank).enter(0, 1).enter(10, 2);
        location.send(11, 0, other, 500).leave(12, 2);
        location.enter(20, 2).any(21, RECV, &receive(other, 500)).leave(22, 2).leave(30, 1);
    }
    assert_eq!(shape(&archive, |_| ()).unwrap().0.len(), 6);
    let hangs = shape(&archive, |params| params.rendezvous_bytes = Some(1)).unwrap_err();
    assert_eq!(
        hangs,
        "the program in `ARCHIVE` deadlocks if messages of at least 1 bytes use rendezvous: an operation of rank 0 depends on itself"
    );
}

#[test]
fn a_nonblocking_send_waits_at_its_completion() {
    let mut archive = ranks(2);
    let isend = [Number(1), Number(0), Number(7), Number(500), Number(3)];
    let rank = archive.thread(1, 0).enter(0, 1).enter(10, 2).any(10, 15, &isend).leave(10, 2);
    rank.enter(20, 2).request(33, ISEND_COMPLETE, 3).leave(34, 2).leave(40, 1);
    let rank = archive.thread(2, 1).enter(0, 1).enter(30, 2).any(31, RECV, &receive(0, 500)).leave(32, 2);
    rank.leave(40, 1);
    let (tasks, edges) = shape(&archive, |params| params.rendezvous_bytes = Some(1)).unwrap();
    assert_eq!(tasks, [(0, 10), (0, 10), (0, 6), (1, 30), (1, 8)]);
    assert_eq!(edges, [(0, 1, 0), (0, 4, 500), (1, 2, 0), (3, 2, 0), (3, 4, 0)]);
}

#[test]
fn an_exchange_posts_its_receive_before_it_sends() {
    let mut archive = ranks(2);
    archive.region(3, "MPI_Sendrecv");
    for rank in 0..2 {
        let other = 1 - rank;
        let location = archive.thread(rank + 1, rank).enter(0, 1).enter(10, 3);
        location.send(11, 0, other, 500).any(12, RECV, &receive(other, 500)).leave(13, 3).leave(30, 1);
    }
    let (tasks, edges) = shape(&archive, |params| params.rendezvous_bytes = Some(1)).unwrap();
    assert_eq!(tasks, [(0, 10), (0, 17), (1, 10), (1, 17)]);
    let expected = [(0, 1, 0), (0, 3, 0), (0, 3, 500), (2, 1, 0), (2, 1, 500), (2, 3, 0)];
    assert_eq!(edges, expected);
}

#[test]
fn cancelled_requests_are_not_matched() {
    let mut archive = ranks(2);
    let isend = |bytes, request| [Number(1), Number(0), Number(7), Number(bytes), Number(request)];
    let rank = archive.thread(1, 0).enter(0, 1).enter(10, 2).any(10, 15, &isend(7, 3));
    rank.request(10, REQUEST_CANCELLED, 3).any(10, 15, &isend(100, 4)).leave(10, 2).leave(20, 1);
    let rank = archive.thread(2, 1).enter(0, 1).request(1, IRECV_REQUEST, 8);
    rank.request(2, REQUEST_CANCELLED, 8).enter(30, 2).any(31, RECV, &receive(0, 100)).leave(31, 2);
    rank.leave(40, 1);
    let (_, edges) = shape(&archive, |_| ()).unwrap();
    assert_eq!(edges, [(0, 1, 0), (0, 3, 100), (2, 3, 0)]);
}

#[test]
fn joins_carry_the_bytes_of_each_process() {
    // Score-P counts the bytes to and from all processes, itself included; EZTrace the arguments of the
    // call.
    let bytes = |creator: Option<&str>, operation: u8, sizes: u64| {
        let mut archive = ranks(4);
        if let Some(creator) = creator {
            archive.creator(creator);
        }
        let none = u64::from(u32::MAX);
        let end = [Byte(operation), Number(0), Number(none), Number(sizes), Number(sizes)];
        for rank in 0..4 {
            let location = archive.thread(rank + 1, rank).enter(0, 1).enter(10, 2);
            location.any(40, COLLECTIVE_END, &end).leave(41, 2).leave(50, 1);
        }
        let (_, edges) = shape(&archive, |_| ()).unwrap();
        let of = |join: fn(&(u32, u32, u64)) -> bool| {
            edges.iter().filter(|edge| join(edge)).map(|edge| edge.2).collect::<Vec<_>>()
        };
        (of(|edge| edge.1 == 8), of(|edge| edge.0 == 8))
    };
    assert_eq!(bytes(None, ALL_REDUCE, 8), (vec![8; 4], vec![8; 4]));
    assert_eq!(bytes(Some("Score-P 8.0"), ALL_REDUCE, 32), (vec![8; 4], vec![8; 4]));
    assert_eq!(bytes(None, ALL_TO_ALL, 8), (vec![24; 4], vec![24; 4]));
    assert_eq!(bytes(Some("Score-P 8.0"), ALL_TO_ALL, 32), (vec![24; 4], vec![24; 4]));
    assert_eq!(bytes(None, ALL_GATHER, 8), (vec![8; 4], vec![24; 4]));
}

#[test]
fn unmatched_operations_are_logged() {
    let mut archive = ranks(2);
    archive.thread(1, 0).enter(0, 1).send(1, 0, 1, 5).leave(9, 1);
    archive.thread(2, 1).enter(0, 1).any(2, RECV, &receive(1, 5)).leave(9, 1);
    let folder = tempfile::tempdir().unwrap();
    archive.write(folder.path());
    let listener = Listener::default();
    let lost = read(folder.path(), |_| (), &Listener::default()).unwrap_err();
    assert_eq!(lost, "`ARCHIVE` lacks the receive events of 1 messages (5 of 5 bytes)");
    let dag = read(folder.path(), |params| params.allow_loss = 1.0, &listener).unwrap();
    assert!(dag.dependencies.is_empty());
    let lines = listener.lines.into_inner().unwrap();
    let of = |what: &str| lines.iter().filter(|line| line.contains(what)).count();
    assert_eq!((of("without a receive event"), of("without a send event")), (1, 1));
}

/// As EZTrace records NPB BT and SP: sends on a duplicate of `MPI_COMM_WORLD`, receives on `MPI_COMM_WORLD`
/// itself.
#[test]
fn receives_with_another_communicator_are_matched() {
    let mut archive = ranks(3);
    // Communicator 1 is a duplicate, 2 has the first two ranks in reverse.
    archive.group(5, 2, 0, &[1, 0]).named_communicator(1, "duplicate", 1).named_communicator(2, "part", 2);
    let receive =
        |from: u64, communicator: u64, bytes| [Number(from), Number(communicator), Number(7), Number(bytes)];
    let rank = archive.thread(1, 0).enter(0, 1).enter(10, 2);
    // The third uses communicator 0, like its receive; the fourth lacks a receive on a communicator with its
    // members.
    rank.send(10, 1, 1, 100)
        .send(11, 1, 1, 101)
        .send(12, 0, 2, 102)
        .send(13, 2, 0, 103)
        .leave(20, 2)
        .leave(30, 1);
    let rank = archive.thread(2, 1).enter(0, 1).enter(10, 2);
    rank.any(14, RECV, &receive(0, 0, 100)).any(15, RECV, &receive(0, 0, 101)).any(
        16,
        RECV,
        &receive(0, 0, 103),
    );
    rank.leave(20, 2).leave(30, 1);
    let rank = archive.thread(3, 2).enter(0, 1).enter(10, 2).any(14, RECV, &receive(0, 0, 102)).leave(20, 2);
    rank.leave(30, 1);
    let folder = tempfile::tempdir().unwrap();
    archive.write(folder.path());
    let listener = Listener::default();
    let dag = read(folder.path(), |_| (), &listener).unwrap();
    let bytes: Vec<u64> = dag.dependencies.iter().map(|edge| edge.bytes).filter(|bytes| *bytes > 0).collect();
    assert_eq!(bytes.iter().sum::<u64>(), 100 + 101 + 102 + 103);
    let lines = listener.lines.into_inner().unwrap();
    let matched = "have different communicators, matched by ranks, tag and order: 3";
    assert!(lines.iter().any(|line| line.contains(matched)), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("without a")), "{lines:?}");
}

/// As EZTrace records a Fortran program on a communicator with other rank numbers: a receive has
/// `MPI_COMM_WORLD` and the rank of its source in the real communicator.
#[test]
fn receives_with_the_source_rank_of_another_communicator_are_matched() {
    // All ranks in reverse order, and all but rank 1.
    for (members, tagged) in [(&[2_u64, 1, 0][..], "reversed"), (&[2, 0], "part")] {
        let mut archive = ranks(3);
        archive.group(5, 2, 0, members).named_communicator(1, tagged, 2);
        let local = |rank: u64| members.iter().position(|&member| member == rank).unwrap() as u64;
        // Every rank sends 10 · source + destination bytes to every other.
        for rank in 0..3 {
            let others = members.iter().copied().filter(|&other| other != rank && members.contains(&rank));
            let events = archive.thread(rank + 1, rank).enter(0, 1).enter(10, 2);
            let others: Vec<u64> = others.collect();
            others.iter().for_each(|&other| {
                events.send(10, 1, local(other), 10 * rank + other);
            });
            others.iter().for_each(|&other| {
                let receive = [Number(local(other)), Number(0), Number(7), Number(10 * other + rank)];
                events.any(15, RECV, &receive);
            });
            events.leave(20, 2).leave(30, 1);
        }
        let folder = tempfile::tempdir().unwrap();
        archive.write(folder.path());
        let listener = Listener::default();
        let dag = read(folder.path(), |_| (), &listener).unwrap();
        let messages = members.len() * (members.len() - 1);
        let rank = |task: u32| u64::from(dag.tasks[task as usize].rank.unwrap());
        let edges: Vec<_> = dag.dependencies.iter().filter(|edge| edge.bytes > 0).collect();
        assert_eq!(edges.len(), messages, "{tagged}");
        for edge in edges {
            assert_eq!(edge.bytes, 10 * rank(edge.source) + rank(edge.destination), "{tagged}");
        }
        let lines = listener.lines.into_inner().unwrap();
        let matched = format!("matched by ranks, tag and order: {messages}");
        assert!(lines.iter().any(|line| line.ends_with(&matched)), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("different lengths")), "{lines:?}");
    }
}

/// Two communicators with the same members keep their messages apart if every receive is recorded.
#[test]
fn duplicates_of_a_communicator_are_distinguished() {
    let mut archive = ranks(2);
    archive.named_communicator(1, "duplicate", 1);
    let receive = |communicator: u64, bytes| [Number(0), Number(communicator), Number(7), Number(bytes)];
    let rank = archive.thread(1, 0).enter(0, 1).enter(10, 2).send(10, 0, 1, 1).leave(10, 2);
    rank.enter(20, 2).send(20, 1, 1, 2).leave(20, 2).leave(30, 1);
    let rank = archive.thread(2, 1).enter(0, 1).enter(30, 2).any(31, RECV, &receive(1, 2)).leave(32, 2);
    rank.enter(40, 2).any(41, RECV, &receive(0, 1)).leave(42, 2).leave(50, 1);
    let (_, edges) = shape(&archive, |_| ()).unwrap();
    assert_eq!(edges, [(0, 1, 0), (0, 5, 1), (1, 2, 0), (1, 4, 2), (3, 4, 0), (4, 5, 0)]);
}

/// Checks that tasks cover all computation.
fn assert_whole(path: &Path) -> TaskDag {
    let listener = Listener::default();
    // EZTrace omitted receives in some of them.
    let dag = read(path, |params| params.allow_loss = 1.0, &listener).unwrap();
    let graph = read_with(path, Reader::Native, &Context::detached()).unwrap();
    let computed: f64 = graph.processes.iter().filter_map(|process| process.compute_s).sum();
    assert!((dag.work() - computed).abs() <= 1e-9 * computed, "{} of {computed}", dag.work());
    let rank = |task: u32| dag.tasks[task as usize].rank;
    let order = |edge: &&hopmap_model::Dependency| {
        edge.bytes == 0 && edge.source + 1 == edge.destination && rank(edge.source) == rank(edge.destination)
    };
    let ordered = dag.dependencies.iter().filter(order).count();
    let lines = listener.lines.into_inner().unwrap();
    eprintln!(
        "{}: {} tasks, {} edges, {ordered} of program order, work {computed} s, critical {:?} s, duration {:?} s; {lines:?}",
        path.file_name().unwrap().display(),
        dag.tasks.len(),
        dag.dependencies.len(),
        dag.critical_work(),
        graph.duration_s
    );
    assert!(ordered + graph.ranks() <= dag.tasks.len());
    dag
}

#[test]
#[cfg_attr(not(feature = "libotf2"), ignore = "libotf2 generates it")]
fn every_message_of_a_generated_program_is_an_edge() {
    for pattern in [Pattern::Wavefront, Pattern::Rows, Pattern::Random] {
        let params = GenerateParams { pattern, ranks: 12, events: 20_000, seed: 3 };
        let Outcome::Done(outputs) = Generate::run(params, Inputs::new(), &Context::detached()).unwrap()
        else {
            panic!("it is never interrupted")
        };
        let archive: &TraceArchive = outputs.get("archive").unwrap().downcast_ref().unwrap();
        let graph: &TaskGraph = outputs.get("task-graph").unwrap().downcast_ref().unwrap();
        let dag = read(archive.file("traces.otf2").unwrap(), |_| (), &Listener::default()).unwrap();
        let rank = |task: u32| dag.tasks[task as usize].rank.unwrap();
        let mut sums: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
        for edge in dag.dependencies.iter().filter(|edge| rank(edge.source) != rank(edge.destination)) {
            let sum = sums.entry((rank(edge.source), rank(edge.destination))).or_default();
            *sum = (sum.0 + 1, sum.1 + edge.bytes);
        }
        let edges: Vec<_> =
            graph.edges.iter().map(|edge| (edge.pair(), (edge.messages, edge.bytes))).collect();
        assert_eq!(sums.into_iter().collect::<Vec<_>>(), edges);
    }
}

#[test]
fn the_samples_become_tasks() {
    let dag = assert_whole(&sample("rows-columns-16"));
    assert_eq!(dag.ranks(), 16);
    assert_whole(&sample("lammps-melt-16"));
}

#[test]
fn real_archives_become_tasks() {
    for path in archives() {
        assert_whole(&path);
    }
}
