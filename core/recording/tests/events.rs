//! Events of ranks: written and read, cut off, and damaged.

use std::fs;
use std::path::Path;

use hopmap_recording::{
    Call, CollectiveCall, CollectiveKind, Description, Event, EventCommunicator, EventFile, Message, Method,
    Mode, OtherCall, Recording, RecordingError, event_files,
};
use hopmap_test_support::{Random, damage, seeds};
use proptest::prelude::*;

use crate::support::encode::{encode_events, seal_events};
use crate::support::{body, recorded};

fn communicators() -> Vec<EventCommunicator> {
    vec![EventCommunicator::new(77, (0..5).collect()), EventCommunicator::new(u64::MAX, vec![4, 2, 0])]
}

fn opened(bytes: &[u8]) -> Result<EventFile, RecordingError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events-2.bin");
    fs::write(&path, bytes).unwrap();
    EventFile::open(&path, 2, 5)
}

fn all(bytes: &[u8]) -> Vec<Event> {
    opened(bytes).unwrap().events().collect::<Result<_, _>>().unwrap()
}

fn message() -> impl Strategy<Value = Message> {
    let bytes = prop_oneof![0..300_u64, any::<u64>()];
    (0..2_u32, 0..3_usize, any::<u32>(), bytes).prop_map(|(communicator, rank, tag, bytes)| Message {
        peer: communicators()[communicator as usize].members[rank],
        tag,
        communicator,
        bytes,
    })
}

fn operation() -> impl Strategy<Value = CollectiveCall> {
    (0..2_u32, 0..22_u32, prop::option::of(0..3_u32), any::<u64>()).prop_map(
        |(communicator, kind, root, bytes)| CollectiveCall {
            communicator,
            kind: CollectiveKind::of_number(kind).unwrap(),
            root,
            bytes,
        },
    )
}

fn call() -> impl Strategy<Value = Call> {
    let mode = || prop::sample::select(&Mode::ALL[..]);
    let request = || prop_oneof![0..300_u32, 0..(1_u32 << 24)];
    prop_oneof![
        prop::sample::select(&OtherCall::ALL[..]).prop_map(Call::Other),
        any::<u64>().prop_map(|calls| Call::Polls { calls, outside: 0.0 }),
        (mode(), message()).prop_map(|(mode, message)| Call::Send { mode, message }),
        (mode(), message(), request()).prop_map(|(mode, message, request)| Call::Isend {
            mode,
            message,
            request
        }),
        message().prop_map(|message| Call::Recv { message }),
        (0..2_u32, request()).prop_map(|(communicator, request)| Call::Irecv { communicator, request }),
        (message(), message()).prop_map(|(sent, received)| Call::Sendrecv {
            received: Message { communicator: sent.communicator, peer: sent.peer, ..received },
            sent,
        }),
        operation().prop_map(Call::Collective),
        (operation(), request()).prop_map(|(operation, request)| Call::Icollective { operation, request }),
        Just(Call::Wait),
        Just(Call::Test),
        request().prop_map(|request| Call::Sent { request }),
        (request(), message()).prop_map(|(request, message)| Call::Received { request, message }),
        request().prop_map(|request| Call::Cancelled { request }),
        request().prop_map(|request| Call::Freed { request }),
        Just(Call::Finalize),
    ]
}

/// Events of three threads: the times are whole microseconds, and those of threads do not meet.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let one = (0..3_u32, 0..1000_u32, 0..1000_u32, any::<bool>(), call());
    prop::collection::vec(one, 0..200).prop_map(|all| {
        let mut events: Vec<Event> = Vec::new();
        let mut last = [0.0; 3];
        let mut now = 0.0;
        for (thread, gap, inside, continues, call) in all {
            let before = events.last().copied().filter(|event| event.thread == thread && continues);
            let microseconds = |count: u32| f64::from(count) * 1e-6;
            let event = if let Some(before) = before {
                let call = match call {
                    Call::Polls { calls, .. } => Call::Polls { calls, outside: before.leave - before.enter },
                    call => call,
                };
                Event { outside: 0.0, continues: true, call, ..before }
            } else {
                let enter = now + microseconds(gap + 1);
                let leave = enter + microseconds(inside);
                let outside = enter - last[thread as usize];
                Event { thread, enter, leave, outside, continues: false, call }
            };
            (now, last[thread as usize]) = (event.leave, event.leave);
            events.push(event);
        }
        events
    })
}

/// Equal but for less than a nanosecond.
fn is_near(one: &Event, other: &Event) -> bool {
    let seconds = |one: f64, other: f64| (one - other).abs() < 1.1e-9;
    let calls = match (one.call, other.call) {
        (Call::Polls { calls, outside }, Call::Polls { calls: others, outside: other }) => {
            calls == others && seconds(outside, other)
        }
        (one, other) => one == other,
    };
    calls
        && (one.thread, one.continues) == (other.thread, other.continues)
        && seconds(one.enter, other.enter)
        && seconds(one.leave, other.leave)
        && seconds(one.outside, other.outside)
}

fn are_near(one: &[Event], other: &[Event]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_near(one, other))
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(events in events()) {
        let bytes = encode_events(2, 5, &communicators(), &events);
        let file = opened(&bytes).unwrap();
        prop_assert_eq!(file.communicators(), &communicators()[..]);
        prop_assert_eq!(file.incomplete(), None);
        let read = all(&bytes);
        prop_assert!(are_near(&events, &read), "{events:?} {read:?}");
    }
}

/// Sends one after the other, in several blocks.
fn sends(count: u32) -> Vec<Event> {
    let send = |at: u32| Event {
        thread: 0,
        enter: 2e-6 * f64::from(at + 1),
        leave: 2e-6 * f64::from(at + 1) + 1e-6,
        outside: if at == 0 { 2e-6 } else { 1e-6 },
        continues: false,
        call: Call::Send {
            mode: Mode::Standard,
            message: Message { peer: at % 5, tag: at, communicator: 0, bytes: u64::from(at) },
        },
    };
    (0..count).map(send).collect()
}

#[test]
fn a_file_that_is_cut_off_gives_the_blocks_before() {
    let events = sends(20_000);
    let bytes = encode_events(2, 5, &communicators(), &events);
    let mut lengths = Vec::new();
    for length in (0..bytes.len()).step_by(997).chain([bytes.len() - 1, bytes.len() - 48]) {
        let file = opened(&bytes[..length]).unwrap();
        assert!(file.truncated && file.incomplete().as_deref() == Some("the file is truncated"));
        let read = all(&bytes[..length]);
        assert!(are_near(&events[..read.len()], &read), "{length}");
        lengths.push(read.len());
    }
    lengths.dedup();
    assert!(lengths.len() > 3 && lengths[0] == 0 && lengths.ends_with(&[20_000]), "{lengths:?}");
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    let whole = encode_events(2, 5, &communicators(), &sends(3));
    // Header, communicators of 5 and of 3 ranks, header of the records.
    let records = 48 + (48 + 16 + 20) + (48 + 16 + 12) + 48;
    let with = |offset: usize, bytes: &[u8]| {
        let mut damaged = whole.clone();
        damaged[offset..offset + bytes.len()].copy_from_slice(bytes);
        seal_events(&mut damaged);
        let error = match opened(&damaged) {
            Ok(file) => file.events().find_map(Result::err).unwrap(),
            Err(error) => error,
        };
        error.to_string().rsplit('/').next().unwrap().to_owned()
    };
    assert_eq!(with(0, b"X"), "events-2.bin: not the events of a rank");
    assert_eq!(with(8, &[3]), "events-2.bin` has version 3 of the format, but this hopmap reads version 2");
    assert!(with(12, &[1]).ends_with("it is of rank 1 of 5, not of rank 2 of 5"));
    assert!(with(48, &[9]).ends_with("damaged at byte 48: unknown kind 9 of block"));
    assert!(
        with(48 + 48 + 16, &[5]).ends_with("a member of a communicator is rank 5, but there are 5 ranks")
    );
    assert!(with(48 + 48 + 12, &[6]).ends_with("the members of a communicator do not fit"));
    let message = with(records, &[99]);
    assert!(message.ends_with(&format!("damaged at byte {records}: unknown kind 99 of record")), "{message}");
    assert!(with(48 + 48 + 16 + 20 + 8, &[0]).ends_with("communicator 0 is there again"));
    let longer = [&whole[..], b"x"].concat();
    assert!(opened(&longer).unwrap_err().to_string().ends_with("more bytes than the file should have"));
}

#[test]
fn no_changed_bit_goes_unnoticed() {
    let whole = encode_events(2, 5, &communicators(), &sends(20));
    for bit in 0..8 * whole.len() {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let found = opened(&damaged).and_then(|file| {
            file.events().collect::<Result<Vec<_>, _>>()?;
            Ok(file.truncated)
        });
        assert!(found.unwrap_or(true), "bit {bit}");
    }
}

#[test]
fn damaged_events_are_read_or_refused() {
    let whole = encode_events(2, 5, &communicators(), &sends(50));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events-2.bin");
    for seed in seeds(3000, 100_000) {
        let mut random = Random(seed);
        let mut bytes = whole.clone();
        damage(&mut bytes, &mut random, &[0, 1, 2, 3, 11, 18, 21, 40, 127, 128, 255]);
        // Otherwise the checksums hide the rest from the damage.
        if seed % 4 > 0 {
            seal_events(&mut bytes);
        }
        fs::write(&path, bytes).unwrap();
        body::events(&path);
    }
}

#[test]
fn files_of_events_are_found_by_rank() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["events-10.bin", "events-9.bin", "events-09.bin", "rank-1.bin"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let files = event_files(folder.path()).unwrap();
    assert_eq!(files.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), [9, 10]);
    assert!(event_files(Path::new("no/folder")).is_err());
}

#[test]
fn a_recording_that_ends_says_which_files_of_events_are_cut_off() {
    let folder = recorded(7);
    let description = Description { events: true, ..Description::new(Method::Preload, 7) };
    let finish = || Recording::finish(folder.path(), description.clone()).unwrap().unwrap().incomplete;
    let write = |rank: u32, missing: usize| {
        let bytes = encode_events(rank, 7, &communicators(), &sends(3));
        fs::write(folder.path().join(format!("events-{rank}.bin")), &bytes[..bytes.len() - missing]).unwrap();
    };
    (0..7).for_each(|rank| write(rank, 0));
    assert_eq!(finish(), None);
    write(2, 1);
    assert_eq!(finish().unwrap(), "`events-2.bin` is cut off");
    // Without the last block, and without anything.
    write(3, 48);
    fs::write(folder.path().join("events-5.bin"), b"").unwrap();
    assert_eq!(finish().unwrap(), "`events-2.bin`, `events-3.bin`, `events-5.bin` are cut off");
    (0..7).for_each(|rank| write(rank, 60));
    let all = "`events-0.bin`, `events-1.bin`, `events-2.bin`, `events-3.bin` and 3 other files of events are cut off";
    assert_eq!(finish().unwrap(), all);
}
