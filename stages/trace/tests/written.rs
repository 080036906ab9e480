//! Reads archives written by hand: whatever the format allows and no sample holds.
#![cfg(feature = "libotf2")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests may")]

mod support;
#[path = "support/writer.rs"]
mod writer;

use hopmap_model::{Context, TaskGraph};
use support::{Listener, read_otf2};
use writer::Part::Number;
use writer::{Archive, kind};

fn read(archive: &Archive, listener: &Listener) -> Result<TaskGraph, String> {
    let folder = tempfile::tempdir().unwrap();
    archive.write(folder.path());
    let graph = read_otf2(folder.path(), &Context::new(2, None, listener));
    graph.map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
}

fn edges(archive: &Archive) -> Result<Vec<(u32, u32, u64, u64)>, String> {
    let graph = read(archive, &Listener::default())?;
    Ok(graph.edges.iter().map(|edge| (edge.source, edge.destination, edge.messages, edge.bytes)).collect())
}

fn lines(archive: &Archive) -> Vec<String> {
    let listener = Listener::default();
    read(archive, &listener).unwrap();
    listener.lines.into_inner().unwrap()
}

/// Three ranks: locations 50, 7 and 1 << 40, of processes 2, 0 and 1. Communicator 0 is all of them.
fn three_ranks() -> Archive {
    let mut archive = Archive::default();
    archive.string("");
    archive.clock(1000).process(0).process(1).process(2);
    archive.group(4, 0, 0, &[50, 7, 1 << 40]).group(5, 1, 0, &[0, 1, 2]).communicator(0, 1);
    archive
}

#[test]
fn threads_send_for_their_process() {
    let mut archive = three_ranks();
    archive.thread(50, 2).send(10, 0, 1, 100);
    archive.thread(7, 0);
    archive.thread(1 << 40, 1).send(10, 0, 0, 3);
    archive.thread((1 << 40) + 1, 1).send(20, 0, 0, 4).send(30, 0, 2, 5);
    assert_eq!(edges(&archive), Ok(vec![(0, 1, 1, 100), (2, 0, 2, 7), (2, 2, 1, 5)]));
}

#[test]
fn ids_of_communicators_are_translated_by_location() {
    let mut archive = three_ranks();
    archive.group(5, 9, 0, &[2, 1]).communicator(4, 9);
    archive.thread(50, 2).send(10, 0, 1, 1);
    archive.thread(7, 0).communicators_are(&[4, 0]).send(10, 0, 0, 2).send(11, 1, 0, 3);
    archive.thread(1 << 40, 1);
    assert_eq!(edges(&archive), Ok(vec![(0, 1, 1, 1), (1, 0, 1, 3), (1, 2, 1, 2)]));
}

#[test]
fn all_kinds_of_communicators_are_resolved_in_any_order() {
    const GLOBAL: u64 = 1;
    let mut archive = three_ranks();
    // Communicators before their groups.
    archive.communicator(1, 20).communicator(2, 21);
    archive.define(kind::INTER_COMM, &[Number(3), Number(0), Number(22), Number(23), Number(0), Number(0)]);
    archive.group(6, 20, 0, &[]).group(5, 21, GLOBAL, &[0, 2]).group(5, 22, 0, &[0, 1]).group(5, 23, 0, &[2]);
    archive.thread(50, 2).send(1, 1, 0, 1).send(2, 2, 2, 2).send(3, 3, 0, 4);
    archive.thread(7, 0);
    archive.thread(1 << 40, 1).send(1, 3, 1, 8).send(2, 1, 0, 16);
    assert_eq!(edges(&archive), Ok(vec![(0, 0, 1, 1), (0, 2, 2, 6), (2, 1, 1, 8), (2, 2, 1, 16)]));
}

#[test]
fn what_no_process_receives_or_sends_is_told() {
    let mut archive = three_ranks();
    archive.process(3);
    archive
        .thread(50, 2)
        .send(1, 0, u32::MAX.into(), 1)
        .send(2, 0, u64::from(u32::MAX) - 1, 1)
        .send(3, 0, 1, 1);
    archive.thread(7, 0);
    archive.thread(1 << 40, 1);
    archive.thread(99, 3).send(1, 0, 0, 1);
    assert_eq!(
        lines(&archive),
        [
            "3 processes, 4 locations, 4 events, 2 messages",
            "warning: messages to MPI_PROC_NULL, which do not count: 2",
            "warning: messages sent by locations that belong to no MPI rank, or to several, which do not count: 1",
        ]
    );
    assert_eq!(edges(&archive), Ok(vec![(0, 1, 1, 1)]));
}

#[test]
fn impossible_sends_are_refused() {
    let sends = |communicator, receiver, bytes| {
        let mut archive = three_ranks();
        archive.thread(50, 2).enter(1, 0).send(2, communicator, receiver, bytes);
        archive.thread(7, 0);
        archive.thread(1 << 40, 1);
        edges(&archive).unwrap_err()
    };
    assert_eq!(
        sends(0, 3, 1),
        "event 2 of location 50 in `trace/50.evt`: it sends to rank 3 of communicator 0, which has 3 members"
    );
    assert_eq!(
        sends(8, 0, 1),
        "event 2 of location 50 in `trace/50.evt`: it sends through communicator 8, which is not a communicator of MPI processes"
    );
    assert_eq!(
        sends(0, 0, u64::MAX),
        "event 2 of location 50 in `trace/50.evt`: it sends a message of unknown length"
    );
}

#[test]
fn sums_beyond_64_bits_are_refused() {
    let mut archive = three_ranks();
    archive.thread(50, 2).send(1, 0, 0, u64::MAX - 1);
    archive.thread(7, 0).send(1, 0, 0, u64::MAX - 1);
    archive.thread(1 << 40, 1);
    assert_eq!(
        edges(&archive).unwrap_err(),
        "the messages or bytes of all pairs in `trace.otf2` exceed 64 bits"
    );
}

#[test]
fn time_in_communication_is_not_computing() {
    const MAIN: u64 = 3;
    const SEND: u64 = 900_000;
    let mut archive = three_ranks();
    archive.region(MAIN, "main").region(SEND, "MPI_Send");
    archive.define(kind::CALLING_CONTEXT, &[Number(5), Number(SEND), Number(0), Number(0)]);
    // 1000 ticks from first to last, 250 of them in MPI_Send.
    archive.thread(50, 2).enter(500, MAIN).enter(700, SEND).leave(950, SEND).leave(1500, MAIN);
    // The same told through calling contexts.
    archive.thread(7, 0).calling_context(600, true, 5).calling_context(850, false, 5).leave(1600, MAIN);
    archive.thread(1 << 40, 1);
    let graph = read(&archive, &Listener::default()).unwrap();
    let compute: Vec<_> = graph.processes.iter().map(|process| process.compute_s).collect();
    assert_eq!(compute, [Some(0.75), Some(0.75), None]);
    assert_eq!(graph.duration_s, Some(1.1));
}

#[test]
fn clocks_are_corrected() {
    let mut archive = three_ranks();
    // Runs half as fast as it should, and is 4000 ahead.
    archive.thread(50, 2).clock_is_off(5000, -4000).clock_is_off(6000, -3000).enter(5000, 1).leave(5500, 1);
    archive.thread(7, 0).enter(1500, 1).leave(2500, 1);
    archive.thread(1 << 40, 1);
    let graph = read(&archive, &Listener::default()).unwrap();
    assert_eq!(graph.processes[0].compute_s, Some(1.0));
    assert_eq!(graph.duration_s, Some(1.5));
}

#[test]
fn without_a_clock_there_are_no_times() {
    let mut archive = Archive::default();
    archive.process(0).group(4, 0, 0, &[1]);
    archive.thread(1, 0).enter(1, 1).leave(9, 1);
    let graph = read(&archive, &Listener::default()).unwrap();
    assert_eq!((graph.ranks(), graph.duration_s, graph.processes[0].compute_s), (1, None, None));
    assert_eq!(
        lines(&archive)[1],
        "warning: the trace does not say how long a tick of its clock is, so there are no times"
    );
}

#[test]
fn programs_without_mpi_have_processes_and_no_messages() {
    let mut archive = Archive::default();
    archive.clock(10).process(4).process(2);
    archive.thread(1, 4).enter(0, 1).leave(20, 1);
    archive.thread(9, 2).enter(0, 1).leave(10, 1);
    let graph = read(&archive, &Listener::default()).unwrap();
    assert_eq!(
        graph.processes.iter().map(|process| process.compute_s).collect::<Vec<_>>(),
        [Some(1.0), Some(2.0)]
    );
    assert!(graph.edges.is_empty());
    archive.thread(10, 2).send(1, 0, 0, 1);
    assert_eq!(
        edges(&archive).unwrap_err(),
        "event 1 of location 10 in `trace/10.evt`: it sends, but the archive defines no MPI ranks"
    );
}

#[test]
fn contradicting_definitions_are_refused() {
    let mut archive = three_ranks();
    archive.communicator(0, 2);
    for (id, process) in [(50, 2), (7, 0), (1 << 40, 1)] {
        archive.thread(id, process);
    }
    assert_eq!(
        edges(&archive).unwrap_err(),
        "the definitions in `trace.def` make no sense: communicator 0 is defined in two ways"
    );
    assert_eq!(
        edges(&Archive::default()).unwrap_err(),
        "the definitions in `trace.def` make no sense: there is no process"
    );
    let mut archive = three_ranks();
    archive.group(5, 3, 0, &[0, 9]).communicator(7, 3);
    for (id, process) in [(50, 2), (7, 0), (1 << 40, 1)] {
        archive.thread(id, process);
    }
    assert_eq!(
        edges(&archive).unwrap_err(),
        "the definitions in `trace.def` make no sense: communicator 7 has process 9 as a member, but there are 3 processes"
    );
}
