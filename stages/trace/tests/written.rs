//! Reads hand-written archives, for valid cases that samples do not cover.

use crate::support::writer::Part::{Byte, Number, Word};
use crate::support::writer::{Archive, Location, kind};
use crate::support::{Listener, OTHER, read_otf2, read_with};
use hopmap_model::{Context, Events, InputPath, Inputs, Outcome, Stage, TaskGraph};
use hopmap_trace::{EventsParams, ListEvents, ProgramParams, ProgramStage, Reader};
use proptest::prelude::*;

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
fn messages_of_threads_count_for_their_process() {
    let mut archive = three_ranks();
    archive.thread(50, 2).send(10, 0, 1, 100);
    archive.thread(7, 0);
    archive.thread(1 << 40, 1).send(10, 0, 0, 3);
    archive.thread((1 << 40) + 1, 1).send(20, 0, 0, 4).send(30, 0, 2, 5);
    assert_eq!(edges(&archive), Ok(vec![(0, 1, 1, 100), (2, 0, 2, 7), (2, 2, 1, 5)]));
}

/// Once `trace/otf2` counted them, but `trace/program` did not.
#[test]
fn cancelled_sends_count_nowhere() {
    const COMPLETED: u8 = 16;
    const POSTED: u8 = 17;
    const CANCELLED: u8 = 21;
    let mut archive = three_ranks();
    archive
        .thread(50, 2)
        .isend_with(1, 0, 5000, 77)
        .request(2, CANCELLED, 77)
        .isend_with(3, 0, 10, 78)
        .request(4, COMPLETED, 78)
        // A cancelled receive with the number of a complete send.
        .request(5, POSTED, 78)
        .request(6, CANCELLED, 78)
        .isend_with(7, 1, 6000, 77)
        .request(8, CANCELLED, 77);
    archive.thread(7, 0).isend_with(1, 1, 3, 77);
    archive.thread(1 << 40, 1);
    assert_eq!(edges(&archive), Ok(vec![(0, 0, 1, 10), (1, 1, 1, 3)]));
    assert!(lines(&archive).contains(&"cancelled sends, which are not counted: 2".to_owned()));
    let folder = tempfile::tempdir().unwrap();
    archive.write(folder.path());
    let listener = Listener::default();
    let params = ProgramParams { allow_loss: 1.0, ..ProgramParams::new(Some(InputPath::new(folder.path()))) };
    let _ = ProgramStage::run(params, Inputs::new(), &Context::new(1, None, &listener));
    let said = listener.lines.into_inner().unwrap();
    assert!(said.contains(&"cancelled sends, which are not counted: 2".to_owned()), "{said:?}");
    for reader in [Reader::Native, OTHER] {
        let params = EventsParams { reader, ..EventsParams::new(InputPath::new(folder.path())) };
        let cx = Context::detached().with_scratch(folder.path());
        let Ok(Outcome::Done(outputs)) = ListEvents::run(params, Inputs::new(), &cx) else { panic!() };
        let events: &Events = outputs.get("events").unwrap().downcast_ref().unwrap();
        assert_eq!(events.rows(), 2);
    }
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
fn messages_without_a_process_are_logged() {
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
            "warning: messages to MPI_PROC_NULL, which are not counted: 2",
            "warning: messages of locations that do not belong to exactly one MPI rank, which are not counted: 1",
        ]
    );
    assert_eq!(edges(&archive), Ok(vec![(0, 1, 1, 1)]));
}

#[test]
fn impossible_sends_are_rejected() {
    let sends = |communicator, receiver, bytes| {
        let mut archive = three_ranks();
        archive.thread(50, 2).enter(1, 0).send(2, communicator, receiver, bytes);
        archive.thread(7, 0);
        archive.thread(1 << 40, 1);
        edges(&archive).unwrap_err()
    };
    assert_eq!(
        sends(0, 3, 1),
        "event 2 of location 50 in `trace/50.evt`: the receiver is rank 3 of communicator 0, which has only 3 members"
    );
    assert_eq!(
        sends(8, 0, 1),
        "event 2 of location 50 in `trace/50.evt`: communicator 8 is not a communicator of MPI processes"
    );
    assert_eq!(
        sends(0, 0, u64::MAX),
        "event 2 of location 50 in `trace/50.evt`: the length of the message is unknown"
    );
}

#[test]
fn sums_beyond_64_bits_are_rejected() {
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
    // The same through calling contexts.
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
    // Runs at half speed, and is 4000 ticks ahead.
    archive.thread(50, 2).clock_is_off(5000, -4000).clock_is_off(6000, -3000).enter(5000, 1).leave(5500, 1);
    archive.thread(7, 0).enter(1500, 1).leave(2500, 1);
    archive.thread(1 << 40, 1);
    let graph = read(&archive, &Listener::default()).unwrap();
    assert_eq!(graph.processes[0].compute_s, Some(1.0));
    assert_eq!(graph.duration_s, Some(1.5));
}

#[test]
fn times_are_unknown_without_a_clock() {
    let mut archive = Archive::default();
    archive.process(0).group(4, 0, 0, &[1]);
    archive.thread(1, 0).enter(1, 1).leave(9, 1);
    let graph = read(&archive, &Listener::default()).unwrap();
    assert_eq!((graph.ranks(), graph.duration_s, graph.processes[0].compute_s), (1, None, None));
    assert_eq!(
        lines(&archive)[0],
        "warning: the trace does not define its clock resolution, so times are unknown"
    );
}

#[test]
fn programs_without_mpi_have_processes_but_no_messages() {
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
        "event 1 of location 10 in `trace/10.evt`: it sends, but the archive does not define MPI ranks"
    );
}

#[test]
fn conflicting_definitions_are_rejected() {
    let mut archive = three_ranks();
    archive.communicator(0, 2);
    for (id, process) in [(50, 2), (7, 0), (1 << 40, 1)] {
        archive.thread(id, process);
    }
    assert_eq!(
        edges(&archive).unwrap_err(),
        "inconsistent definitions in `trace.def`: conflicting definitions of communicator 0"
    );
    assert_eq!(
        edges(&Archive::default()).unwrap_err(),
        "inconsistent definitions in `trace.def`: the archive does not define processes"
    );
    let mut archive = three_ranks();
    archive.group(5, 3, 0, &[0, 9]).communicator(7, 3);
    for (id, process) in [(50, 2), (7, 0), (1 << 40, 1)] {
        archive.thread(id, process);
    }
    assert_eq!(
        edges(&archive).unwrap_err(),
        "inconsistent definitions in `trace.def`: communicator 7 has process 9 as a member, but there are 3 processes"
    );
}

#[test]
fn definitions_of_early_versions_are_read_like_libotf2() {
    let mut archive = three_ranks();
    let none = || Number(0);
    for old_type in 0..40 {
        let id = Number(1000 + u64::from(old_type));
        archive.define(kind::REGION, &[id, none(), none(), Byte(old_type), none(), none(), none()]);
    }
    for old_type in 0..8 {
        let mut parts = vec![Number(500 + u64::from(old_type)), none(), Byte(old_type), Number(3)];
        parts.extend([50, 7, 1 << 40].map(Number));
        archive.define(kind::GROUP, &parts);
    }
    for (id, process) in [(50, 2), (7, 0), (1 << 40, 1)] {
        archive.thread(id, process).enter(0, 1022).leave(1000, 1022);
    }
    let folder = tempfile::tempdir().unwrap();
    archive.write(folder.path());
    let graph = read_otf2(folder.path(), &Context::detached()).unwrap();
    // Type 22 is an MPI barrier.
    assert!(graph.processes.iter().all(|process| process.compute_s == Some(0.0)), "{:?}", graph.processes);
}

#[test]
fn unknown_events_are_left_to_libotf2() {
    let mut archive = three_ranks();
    archive.thread(50, 2).send(1, 0, 1, 5).any(2, 99, &[Number(7)]);
    archive.thread(7, 0);
    archive.thread(1 << 40, 1);
    let folder = tempfile::tempdir().unwrap();
    archive.write(folder.path());
    let listener = Listener::default();
    let read = |reader| read_with(folder.path(), reader, &Context::new(1, None, &listener));
    let message = |error: miette::Report| error.to_string().replace(folder.path().to_str().unwrap(), "");
    let refused =
        "`/trace/50.evt` (location 50) contains events of a kind that the native reader does not support";
    assert_eq!(message(read(Reader::Native).unwrap_err()), refused);
    if cfg!(feature = "libotf2") {
        assert_eq!(read(Reader::Auto).unwrap(), read(Reader::Libotf2).unwrap());
        assert!(listener.lines.lock().unwrap()[0].ends_with("does not support: reading with libotf2"));
    } else {
        let error = read(Reader::Auto).unwrap_err();
        assert_eq!(
            error.help().unwrap().to_string(),
            "libotf2 may support them: install libotf2 (Debian: libopen-trace-format2-dev) and build with `make install \
             FEATURES=full`"
        );
        assert_eq!(message(error), refused);
    }
}

#[test]
fn later_damage_takes_precedence_over_an_invalid_event() {
    let mut archive = three_ranks();
    archive.thread(50, 2).send(1, 8, 0, u64::MAX).any(2, 9, &[]);
    archive.thread(7, 0);
    archive.thread(1 << 40, 1);
    assert!(edges(&archive).unwrap_err().ends_with("invalid record type"));
}

/// One event: its kind, the time since the previous one, and three numbers.
type Event = (u8, i64, [u64; 3]);

fn write(location: &mut Location, events: &[Event]) {
    let mut time = 1000u64;
    for &(kind, step, [one, two, three]) in events {
        time = time.saturating_add_signed(step);
        match kind {
            0..=2 => location.enter(time, one),
            3..=5 => location.leave(time, one),
            6 => location.send(time, two % 3, one % 3, three),
            7 => location.isend(time, two % 3, one % 3, three),
            8 => location.calling_context(time, true, one),
            9 => location.calling_context(time, false, one),
            10 => location.enter_with_attribute(one),
            // A flush with a later end, a receive, a metric, and the test of a request.
            11 => location.any(time, 10, &[Word(time + 3 * two)]),
            12 => location.any(time, 18, &[Number(one), Number(two), Number(3), Number(three)]),
            13 => location.any(time, 31, &[Number(one), Byte(1), Byte(2), Number(three)]),
            _ => location.any(time, 23, &[Byte(1), Number(one), Number(two), Number(three), Number(0)]),
        };
    }
}

/// Mostly small numbers, some of every length.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..6u64, 1 => 4090..4100u64, 1 => 0..=u64::from(u32::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn both_readers_give_the_same_of_any_archive(
        events in prop::collection::vec((0..15u8, -30..100i64, [number(), number(), number()]), 0..80),
        dense in any::<bool>(),
        ids in prop::collection::vec(0..6u64, 0..6),
        clock in prop::collection::vec((1..2000u64, -500..500i64), 0..4),
    ) {
        let mut archive = three_ranks();
        for (id, name) in [(1, "main"), (2, "MPI_Send"), (3, "MPI_Wait"), (5, "MPI_Sendrecv"), (4093, "MPI_Recv")] {
            archive.region(id, name);
        }
        archive.define(kind::CALLING_CONTEXT, &[Number(2), Number(3), Number(0), Number(0)]);
        archive.group(5, 9, 0, &[2, 1, 0]).communicator(1, 9).group(5, 10, 1, &[0, 1, 2]).communicator(2, 10);
        let location = archive.thread(50, 2);
        for kind in [3, 6, 10] {
            let most = if kind == 6 { 3 } else { 6 };
            if ids.is_empty() {
                continue;
            }
            let ids: Vec<u64> = ids.iter().map(|id| id % most).collect();
            let pairs: Vec<_> = ids.iter().zip(0..).map(|(global, local)| (2 * local, *global)).collect();
            if dense { location.map_ids(kind, &ids) } else { location.map_some_ids(kind, &pairs) };
        }
        let mut time = 0;
        for (step, offset) in clock {
            time += step;
            location.clock_is_off(time, offset);
        }
        write(location, &events);
        archive.thread(7, 0).enter(1, 1);
        archive.thread(1 << 40, 1);
        // `edges` compares both readers; its result is irrelevant here.
        let _ = edges(&archive);
    }
}
