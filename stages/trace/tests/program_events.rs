//! Programs from recordings with events.

use std::fs;
use std::path::Path;

use hopmap_model::{Context, InputPath, Inputs, Outcome, Program, Stage};
use hopmap_recording::{
    Call, CollectiveCall, CollectiveKind, Description, Event, EventCommunicator, Message, Method, Mode,
    OtherCall,
};
use hopmap_trace::{ProgramParams, ProgramStage};

use crate::encode::encode_events;
use crate::program::shown;
use crate::support::Listener;

/// Events of a rank: each call takes 1 ms, after some milliseconds outside MPI.
#[derive(Default)]
struct Events {
    all: Vec<Event>,
    time: f64,
}

impl Events {
    /// A call after these milliseconds outside MPI.
    fn call(&mut self, outside: u32, call: Call) -> &mut Self {
        let outside = f64::from(outside) * 1e-3;
        let enter = self.time + outside;
        self.time = enter + 1e-3;
        let leave = self.time;
        self.all.push(Event { thread: 0, enter, leave, outside, continues: false, call });
        self
    }

    /// A call of a thread, by its milliseconds from the begin of the program.
    fn of_thread(&mut self, thread: u32, [enter, leave]: [u32; 2], call: Call) -> &mut Self {
        let [enter, leave] = [enter, leave].map(|time| f64::from(time) * 1e-3);
        let before = self.all.iter().rev().find(|event| event.thread == thread);
        let outside = before.map_or(0.0, |before| enter - before.leave);
        self.all.push(Event { thread, enter, leave, outside, continues: false, call });
        self
    }

    /// Another part of the call before.
    fn part(&mut self, call: Call) -> &mut Self {
        let before = *self.all.last().unwrap();
        self.all.push(Event { outside: 0.0, continues: true, call, ..before });
        self
    }
}

fn message(peer: u32, communicator: u32, bytes: u64) -> Message {
    Message { peer, tag: 7, communicator, bytes }
}

fn communicators() -> Vec<EventCommunicator> {
    vec![EventCommunicator::new(1, vec![0, 1]), EventCommunicator::new(9, vec![1, 0])]
}

/// Writes a recording of two ranks.
fn write(folder: &Path, ranks: &[Events]) {
    let count = ranks.len() as u32;
    let description = Description { events: true, ..Description::new(Method::Preload, count) };
    fs::write(folder.join("record.json"), serde_json::to_string(&description).unwrap()).unwrap();
    for (rank, events) in (0..).zip(ranks) {
        let bytes = encode_events(rank, count, &communicators(), &events.all);
        fs::write(folder.join(format!("events-{rank}.bin")), bytes).unwrap();
    }
}

fn read(folder: &Path, ask: impl FnOnce(&mut ProgramParams)) -> (Result<Program, String>, Vec<String>) {
    let mut params = ProgramParams::new(Some(InputPath::new(folder)));
    ask(&mut params);
    let listener = Listener::default();
    let result = ProgramStage::run(params, Inputs::new(), &Context::new(1, None, &listener));
    let place = folder.display().to_string();
    let result = result.map_err(|error| error.to_string().replace(&place, "RECORDING"));
    let program = result.map(|outcome| match outcome {
        Outcome::Done(outputs) => outputs.get("program").unwrap().downcast_ref::<Program>().unwrap().clone(),
        other => panic!("{other:?}"),
    });
    (program, listener.lines.into_inner().unwrap())
}

fn collective(name: &str, root: Option<u32>, bytes: u64) -> CollectiveCall {
    CollectiveCall { communicator: 1, kind: CollectiveKind::of_name(name).unwrap(), root, bytes }
}

/// Rank 0 sends in all ways, rank 1 receives; both call collective operations. The root is world rank 1.
fn ranks() -> [Events; 2] {
    let mut first = Events::default();
    first
        .call(10, Call::Other(OtherCall::Local))
        .call(5, Call::Send { mode: Mode::Standard, message: message(1, 0, 100) })
        .call(0, Call::Isend { mode: Mode::Standard, message: message(1, 1, 200), request: 3 })
        .call(2, Call::Polls { calls: 5, outside: 0.0 })
        .call(0, Call::Wait)
        .part(Call::Sent { request: 3 })
        .call(1, Call::Sendrecv { sent: message(1, 0, 300), received: message(1, 0, 400) })
        .call(0, Call::Collective(collective("bcast", Some(0), 0)))
        .call(0, Call::Icollective { operation: collective("alltoall", None, 64), request: 0 })
        .call(4, Call::Test)
        .part(Call::Sent { request: 0 })
        .call(6, Call::Finalize);
    let mut second = Events::default();
    second
        .call(0, Call::Irecv { communicator: 1, request: 0 })
        .call(1, Call::Recv { message: message(0, 0, 100) })
        .call(0, Call::Other(OtherCall::OneSided))
        .call(2, Call::Wait)
        .part(Call::Received { request: 0, message: message(0, 1, 200) })
        .call(0, Call::Sendrecv { sent: message(0, 0, 400), received: message(0, 0, 300) })
        .call(0, Call::Collective(collective("bcast", Some(0), 32)))
        .call(0, Call::Collective(collective("alltoall", None, 64)))
        .call(3, Call::Finalize);
    [first, second]
}

#[test]
fn events_become_operations() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &ranks());
    let (found, log) = read(folder.path(), |_| ());
    let expected = [
        "compute 15, send 1 100, isend 1 in 1 200 #0, compute 2, wait #0, compute 1, irecv 1 400 #0, send 1 300, \
         wait #0, bcast 32 from 0 in 1, compute 4, alltoall 32 in 1, compute 6",
        "irecv 0 in 1 200 #0, compute 1, recv 0 100, compute 2, wait #0, irecv 0 300 #0, send 0 400, wait #0, \
         bcast 32 from 0 in 1, alltoall 32 in 1, compute 3",
    ];
    let found = found.unwrap();
    assert_eq!(shown(&found), expected);
    assert_eq!(found.communicators, [vec![0, 1], vec![1, 0]]);
    for warning in [
        "warning: calls of one-sided communication, which are not in the program: 1 (0.001000 s in them)",
        "warning: nonblocking collective operations, which block where they complete, or earlier if ranks would wait for each other: 1",
    ] {
        assert!(log.iter().any(|line| line == warning), "{log:?}");
    }
}

#[test]
fn a_recording_that_ends_early_says_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let ranks = ranks();
    write(folder.path(), &ranks);
    // Without the block of the end, and with half of the records.
    let short = Events { all: ranks[1].all[..3].to_vec(), time: 0.0 };
    let bytes = encode_events(1, 2, &communicators(), &short.all);
    fs::write(folder.path().join("events-1.bin"), &bytes[..bytes.len() - 10]).unwrap();
    let (found, _) = read(folder.path(), |_| ());
    assert_eq!(found.unwrap_err(), "`RECORDING/events-1.bin` is truncated");
    let (found, log) = read(folder.path(), |params| params.allow_truncated = true);
    let left_out = found.as_ref().unwrap().left_out;
    assert!(!left_out.is_zero());
    let expected = ["compute 15, send 1 100, compute 13", "compute 1, recv 0 100"];
    assert_eq!(shown(&found.unwrap()), expected);
    for warning in [
        "warning: the events of rank 1 are incomplete: the file is truncated",
        "warning: messages without a receive event, which are not in the program: 2",
        "warning: messages without a send event, which are not in the program: 0",
        "warning: collective operations that some ranks did not record, which are not in the program: 2",
    ] {
        let is_there = log.iter().any(|line| line == warning);
        assert_eq!(is_there, !warning.ends_with(": 0"), "{log:?}");
    }
    let touched =
        "warning: operations of 2 ranks are left out; from the first of each rank to its end, that touches";
    assert!(log.iter().any(|line| line.starts_with(touched)), "{log:?}");
}

#[test]
fn missing_and_damaged_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &ranks());
    let file = folder.path().join("events-1.bin");
    let bytes = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!(read(folder.path(), |_| ()).0.unwrap_err(), "`RECORDING` has no events of rank 1 of 2");
    fs::remove_file(folder.path().join("events-0.bin")).unwrap();
    assert_eq!(read(folder.path(), |_| ()).0.unwrap_err(), "`RECORDING` has no events of calls");
    write(folder.path(), &ranks());
    let seeds = if hopmap_test_support::soak() { 5000 } else { 200 };
    for seed in 0..seeds {
        let mut damaged = bytes.clone();
        let mut random = hopmap_test_support::Random(seed);
        hopmap_test_support::damage(&mut damaged, &mut random, &[0, 1, 2, 5, 13, 64, 127, 128, 255]);
        fs::write(&file, damaged).unwrap();
        for allow_truncated in [false, true] {
            if let Ok(program) = read(folder.path(), |params| params.allow_truncated = allow_truncated).0 {
                program.check().unwrap();
            }
        }
    }
}

/// The operations of two ranks with these events.
fn operations(ranks: &[Events; 2]) -> Result<Vec<String>, String> {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), ranks);
    Ok(shown(&read(folder.path(), |_| ()).0?))
}

fn standard(message: Message) -> Call {
    Call::Send { mode: Mode::Standard, message }
}

/// Rank 0 sends after its wait, rank 1 waits after it has received.
#[test]
fn a_nonblocking_collective_blocks_where_all_ranks_have_started_it() {
    let allreduce = || Call::Icollective { operation: collective("allreduce", None, 8), request: 0 };
    let mut first = Events::default();
    first.call(1, allreduce()).call(2, Call::Wait).part(Call::Sent { request: 0 });
    first.call(3, standard(message(1, 0, 9))).call(0, Call::Finalize);
    let mut second = Events::default();
    second.call(4, allreduce()).call(5, Call::Recv { message: message(0, 0, 9) });
    second.call(6, Call::Wait).part(Call::Sent { request: 0 }).call(0, Call::Finalize);
    let expected = [
        "compute 3, allreduce 8 in 1, compute 3, send 1 9",
        "compute 9, allreduce 8 in 1, recv 0 9, compute 6",
    ];
    assert_eq!(operations(&[first, second]).unwrap(), expected);
}

/// Rank 0 waits at once, rank 1 after a send that waits for rank 0 to receive it after its wait; and the collective operation
/// that it has started before has to block before, too.
#[test]
fn nonblocking_collectives_of_a_communicator_keep_their_order() {
    let barrier = |request| Call::Icollective { operation: collective("barrier", None, 0), request };
    let bcast =
        |request, bytes| Call::Icollective { operation: collective("bcast", Some(0), bytes), request };
    let mut first = Events::default();
    first.call(1, barrier(0)).call(0, bcast(1, 0)).call(0, Call::Wait).part(Call::Sent { request: 1 });
    first.call(0, Call::Recv { message: message(1, 0, 9) });
    first.call(0, Call::Wait).part(Call::Sent { request: 0 }).call(0, Call::Finalize);
    let mut second = Events::default();
    second.call(1, barrier(0)).call(0, bcast(1, 7)).call(2, standard(message(0, 0, 9)));
    second
        .call(3, Call::Wait)
        .part(Call::Sent { request: 1 })
        .part(Call::Sent { request: 0 })
        .call(0, Call::Finalize);
    let expected = [
        "compute 1, barrier 0 in 1, bcast 7 from 0 in 1, recv 1 9",
        "compute 3, barrier 0 in 1, bcast 7 from 0 in 1, send 0 9, compute 3",
    ];
    assert_eq!(operations(&[first, second]).unwrap(), expected);
}

#[test]
fn threads_that_take_turns_are_one_sequence() {
    let receive = || Call::Recv { message: message(1, 0, 9) };
    let mut first = Events::default();
    first.of_thread(0, [0, 1], Call::Other(OtherCall::Local)).of_thread(1, [3, 4], receive());
    // A thread that asks in vain meanwhile changes nothing.
    first.of_thread(2, [4, 30], Call::Polls { calls: 7, outside: 0.0 });
    first.of_thread(0, [9, 10], receive()).of_thread(1, [16, 17], receive()).of_thread(
        1,
        [20, 21],
        receive(),
    );
    first.of_thread(0, [29, 29], Call::Finalize);
    let mut second = Events::default();
    for _ in 0..4 {
        second.call(1, standard(message(0, 0, 9)));
    }
    second.call(0, Call::Finalize);
    let expected = [
        "compute 3, recv 1 9, compute 5, recv 1 9, compute 6, recv 1 9, compute 3, recv 1 9, compute 8",
        "compute 1, send 0 9, compute 1, send 0 9, compute 1, send 0 9, compute 1, send 0 9",
    ];
    assert_eq!(operations(&[first, second]).unwrap(), expected);
}

/// Calls that overlap were in the order of their begins, in which ranks waited for each other.
#[test]
fn calls_of_threads_at_the_same_time_begin_and_complete_as_they_did() {
    let receive = |bytes| Call::Recv { message: message(1, 0, bytes) };
    let mut first = Events::default();
    first.of_thread(0, [1, 9], receive(1)).of_thread(3, [5, 6], receive(2)).of_thread(
        0,
        [9, 9],
        Call::Finalize,
    );
    let mut second = Events::default();
    second.call(1, standard(message(0, 0, 2))).call(1, standard(message(0, 0, 1))).call(0, Call::Finalize);
    let expected =
        ["irecv 1 2 #0, irecv 1 1 #1, wait #1, wait #0", "compute 1, isend 0 2 #0, compute 1, isend 0 1 #1"];
    assert_eq!(operations(&[first, second]).unwrap(), expected);
}

/// Thread 0 receives what rank 1 sends after it has received what thread 3 sends meanwhile.
#[test]
fn a_thread_that_waits_holds_up_no_other_one() {
    let mut first = Events::default();
    first.of_thread(0, [1, 9], Call::Recv { message: message(1, 0, 1) });
    first.of_thread(3, [5, 6], standard(message(1, 0, 1 << 30))).of_thread(0, [9, 9], Call::Finalize);
    let mut second = Events::default();
    second.call(1, Call::Recv { message: message(0, 0, 1 << 30) }).call(1, standard(message(0, 0, 1)));
    second.call(0, Call::Finalize);
    let expected = [
        "irecv 1 1 #0, isend 1 1073741824 #1, wait #0",
        "compute 1, irecv 0 1073741824 #0, wait #0, compute 1, isend 0 1 #0",
    ];
    assert_eq!(operations(&[first, second]).unwrap(), expected);
}

/// The barrier of threads 0 goes on while threads 3 exchange messages.
#[test]
fn a_collective_operation_of_a_thread_holds_up_no_other_one() {
    let barrier = || Call::Collective(collective("barrier", None, 0));
    let mut first = Events::default();
    first.of_thread(0, [1, 20], barrier()).of_thread(3, [2, 9], Call::Recv { message: message(1, 0, 1) });
    first.of_thread(3, [10, 11], standard(message(1, 0, 1))).of_thread(0, [20, 20], Call::Finalize);
    let mut second = Events::default();
    second.of_thread(3, [1, 2], standard(message(0, 0, 1))).of_thread(
        3,
        [3, 15],
        Call::Recv { message: message(0, 0, 1) },
    );
    second.of_thread(0, [14, 16], barrier()).of_thread(0, [20, 20], Call::Finalize);
    let expected = [
        "irecv 1 1 #0, wait #0, isend 1 1 #0, barrier 0 in 1",
        "compute 1, isend 0 1 #0, compute 1, irecv 0 1 #1, wait #1, barrier 0 in 1, compute 4",
    ];
    assert_eq!(operations(&[first, second]).unwrap(), expected);
}

/// The root of a broadcast goes on before the others have started it: as a barrier, ranks waited for each other.
#[test]
fn a_broadcast_of_a_thread_is_no_barrier() {
    let broadcast = || Call::Collective(collective("bcast", Some(0), 8));
    let mut first = Events::default();
    first.of_thread(0, [1, 2], broadcast()).of_thread(0, [3, 4], standard(message(1, 0, 1)));
    first.of_thread(0, [20, 20], Call::Finalize);
    let mut second = Events::default();
    second.of_thread(3, [1, 5], Call::Recv { message: message(0, 0, 1) }).of_thread(0, [4, 7], broadcast());
    second.of_thread(0, [20, 20], Call::Finalize);
    let expected = [
        "compute 1, isend 1 1 #0, bcast 8 from 0 in 1, compute 16",
        "compute 1, irecv 0 1 #0, wait #0, bcast 8 from 0 in 1, compute 13",
    ];
    assert_eq!(operations(&[first, second]).unwrap(), expected);
}

/// A thread waited for the request of another one, because MPI gives those that complete at once one handle: the broadcast was lost.
#[test]
fn a_request_that_completes_in_a_call_that_began_before_is_kept() {
    let begin = |request| Call::Icollective { operation: collective("bcast", Some(0), 8), request };
    let mut first = Events::default();
    first.of_thread(3, [1, 9], Call::Sent { request: 0 }).of_thread(0, [2, 3], begin(0));
    first.of_thread(0, [20, 20], Call::Finalize);
    let mut second = Events::default();
    second.of_thread(0, [1, 2], begin(0)).of_thread(0, [3, 4], Call::Sent { request: 0 });
    second.of_thread(0, [20, 20], Call::Finalize);
    let expected =
        ["compute 1, bcast 8 from 0 in 1, compute 11", "compute 1, bcast 8 from 0 in 1, compute 16"];
    assert_eq!(operations(&[first, second]).unwrap(), expected);
}
