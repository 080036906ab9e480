//! Operations of ranks, from OTF2 archives and task DAGs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::support::writer::Part::{Byte, Number};
use crate::support::writer::{Archive, ranks, receive};
use crate::support::{Copy, Listener, OTHER, archives, graph, read_with, sample};
use hopmap_model::{
    Action, CollectiveOperation, Context, Dependency, InputPath, Inputs, Outcome, Program, Stage, Task,
    TaskDag, TraceArchive,
};
use hopmap_test_support::Impatient;
use hopmap_trace::{
    Collectives, Generate, GenerateParams, Otf2, Otf2Params, Pattern, ProgramParams, ProgramStage, Reader,
};

/// Type numbers of events.
const ISEND_COMPLETE: u8 = 16;
const IRECV_REQUEST: u8 = 17;
const RECV: u8 = 18;
const IRECV: u8 = 19;
const COLLECTIVE_END: u8 = 23;
const COLLECTIVE_REQUEST: u8 = 85;
const COLLECTIVE_COMPLETE: u8 = 86;

/// Operations.
const BARRIER: u8 = 0;
const BROADCAST: u8 = 1;
const GATHERV: u8 = 3;
const ALL_REDUCE: u8 = 11;

fn run(params: ProgramParams, inputs: Inputs, cx: &Context<'_>) -> miette::Result<Program> {
    ProgramStage::check(&params)?;
    match ProgramStage::run(params, inputs, cx)? {
        Outcome::Done(outputs) => {
            let program = outputs.get("program").unwrap().downcast_ref::<Program>().unwrap().clone();
            program.check().unwrap();
            Ok(program)
        }
        other => panic!("{other:?}"),
    }
}

/// The program of an archive and the log; both readers must agree.
fn read(path: &Path, ask: impl Fn(&mut ProgramParams)) -> (Result<Program, String>, Vec<String>) {
    let by = |reader, cx: &Context<'_>| {
        let mut params = ProgramParams { reader, ..ProgramParams::new(Some(InputPath::new(path))) };
        ask(&mut params);
        let result = run(params, Inputs::new(), cx);
        result.map_err(|error| error.to_string().replace(&path.display().to_string(), "ARCHIVE"))
    };
    let listener = Listener::default();
    let program = by(Reader::Native, &Context::new(2, None, &listener));
    if OTHER != Reader::Native {
        let mut params = ProgramParams::new(None);
        ask(&mut params);
        if !params.allow_truncated {
            assert_eq!(program, by(OTHER, &Context::detached()));
        }
    }
    (program, listener.lines.into_inner().unwrap())
}

/// The operations of each rank as text: names, peer, bytes, request and milliseconds.
pub(crate) fn shown(program: &Program) -> Vec<String> {
    let show = |action: Action| {
        let of = |envelope: u32| {
            let envelope = program.envelopes[envelope as usize];
            match envelope.communicator {
                0 => envelope.peer.to_string(),
                communicator => format!("{} in {communicator}", envelope.peer),
            }
        };
        match action {
            Action::Compute { seconds } => format!("compute {}", (seconds * 1e3).round()),
            Action::Send { envelope, bytes } => format!("send {} {bytes}", of(envelope)),
            Action::Isend { envelope, bytes, request } => {
                format!("isend {} {bytes} #{request}", of(envelope))
            }
            Action::Recv { envelope, bytes } => format!("recv {} {bytes}", of(envelope)),
            Action::Irecv { envelope, bytes, request } => {
                format!("irecv {} {bytes} #{request}", of(envelope))
            }
            Action::Wait { request } => format!("wait #{request}"),
            Action::Waitall => "waitall".to_owned(),
            Action::Test { request } => format!("test #{request}"),
            Action::Collective { collective, bytes } => {
                let collective = program.collectives[collective as usize];
                let root = collective.root.map(|root| format!(" from {root}")).unwrap_or_default();
                format!("{} {bytes}{root} in {}", collective.operation, collective.communicator)
            }
        }
    };
    let of_rank = |rank| {
        let operations = program.of_rank(rank).iter();
        operations.map(|operation| show(operation.action())).collect::<Vec<_>>().join(", ")
    };
    (0..program.ranks()).map(of_rank).collect()
}

fn read_written(
    archive: &Archive,
    ask: impl Fn(&mut ProgramParams),
) -> (Result<Vec<String>, String>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    archive.write(folder.path());
    let (program, log) = read(folder.path(), ask);
    (program.map(|program| shown(&program)), log)
}

fn operations(archive: &Archive) -> Vec<String> {
    read_written(archive, |_| ()).0.unwrap()
}

#[test]
fn computation_is_the_time_between_calls() {
    let mut archive = ranks(2);
    let rank = archive.thread(1, 0).enter(0, 1).enter(10, 2).send(11, 0, 1, 500).leave(12, 2);
    rank.leave(20, 1);
    let rank = archive.thread(2, 1).enter(0, 1).enter(3, 2).any(14, RECV, &receive(0, 500)).leave(15, 2);
    rank.leave(40, 1);
    let expected = ["compute 10, send 1 500, compute 8", "compute 3, recv 0 500, compute 25"];
    assert_eq!(operations(&archive), expected);
}

#[test]
fn nonblocking_messages_are_posted_and_waited_for() {
    let mut archive = ranks(2);
    let isend = |bytes, request| [Number(1), Number(0), Number(7), Number(bytes), Number(request)];
    let rank = archive.thread(1, 0).enter(0, 1).enter(10, 2).any(10, 15, &isend(1, 3)).leave(10, 2);
    // Nothing completes the second one.
    rank.enter(20, 2).any(20, 15, &isend(2, 4)).leave(20, 2);
    rank.enter(30, 2).request(31, ISEND_COMPLETE, 3).leave(32, 2).leave(40, 1);
    let got = |bytes, request| [Number(0), Number(0), Number(7), Number(bytes), Number(request)];
    // The receive posted second completes first.
    let rank = archive.thread(2, 1).enter(0, 1).request(1, IRECV_REQUEST, 50).request(2, IRECV_REQUEST, 51);
    rank.enter(30, 2).any(31, IRECV, &got(2, 51)).leave(32, 2);
    rank.enter(40, 2).any(41, IRECV, &got(1, 50)).leave(42, 2).leave(50, 1);
    let expected = [
        "compute 10, isend 1 1 #0, compute 10, isend 1 2 #1, compute 10, wait #0, compute 8",
        "compute 1, irecv 0 1 #0, compute 1, irecv 0 2 #1, compute 28, wait #1, compute 8, wait #0, compute 8",
    ];
    assert_eq!(operations(&archive), expected);
}

#[test]
fn an_exchange_posts_its_receive_sends_and_waits() {
    let mut archive = ranks(2);
    archive.region(3, "MPI_Sendrecv");
    for rank in 0..2 {
        let other = 1 - rank;
        let location = archive.thread(rank + 1, rank).enter(0, 1).enter(10, 3);
        location.send(11, 0, other, 500).any(12, RECV, &receive(other, 500)).leave(13, 3).leave(30, 1);
    }
    let of = |other: u32| format!("compute 10, irecv {other} 500 #0, send {other} 500, wait #0, compute 17");
    assert_eq!(operations(&archive), [of(1), of(0)]);
}

#[test]
fn collective_operations_have_the_block_of_each_rank() {
    let mut archive = ranks(3);
    archive.group(5, 2, 0, &[2, 0]).named_communicator(4, "part", 2);
    let end = |operation, communicator, root, sent, received| {
        [Byte(operation), Number(communicator), Number(root), Number(sent), Number(received)]
    };
    for rank in 0..3 {
        let location = archive.thread(rank + 1, rank).enter(0, 1).enter(10, 2);
        let sent = if rank == 1 { 64 } else { 0 };
        location.any(11, COLLECTIVE_END, &end(BROADCAST, 0, 1, sent, 64 - sent));
        if rank != 1 {
            let root = if rank == 2 { 30 } else { 0 };
            location.any(12, COLLECTIVE_END, &end(GATHERV, 4, 0, 10 * (rank + 1), root));
        }
        location.leave(20, 2).leave(20, 1);
    }
    let expected = [
        "compute 10, bcast 64 from 1 in 0, gatherv 10 from 0 in 1",
        "compute 10, bcast 64 from 1 in 0",
        "compute 10, bcast 64 from 1 in 0, gatherv 30 from 0 in 1",
    ];
    assert_eq!(operations(&archive), expected);
}

#[test]
fn nonblocking_collective_operations_keep_the_order_in_which_they_start() {
    let mut archive = ranks(2);
    let none = u64::from(u32::MAX);
    let end = |operation, root, bytes, request| {
        [Byte(operation), Number(0), Number(root), Number(bytes), Number(bytes), Number(request)]
    };
    for rank in 0..2 {
        let location = archive.thread(rank + 1, rank).enter(0, 1).enter(0, 2);
        location.any(1, COLLECTIVE_REQUEST, &[Number(9)]).any(2, COLLECTIVE_REQUEST, &[Number(8)]);
        location.leave(2, 2);
        // Rank 1 completes the second one first.
        let first = end(BROADCAST, 0, 100, 9);
        let second = end(BARRIER, none, 0, 8);
        let all = if rank == 0 { [first, second] } else { [second, first] };
        for (place, parts) in [5, 10].into_iter().zip(all) {
            location.enter(place, 2).any(place, COLLECTIVE_COMPLETE, &parts).leave(place, 2);
        }
        location.leave(20, 1);
    }
    let (found, log) = read_written(&archive, |_| ());
    let expected = [
        "compute 3, bcast 100 from 0 in 0, compute 5, barrier 0 in 0, compute 10",
        "compute 3, bcast 100 from 0 in 0, barrier 0 in 0, compute 15",
    ];
    assert_eq!(found.unwrap(), expected);
    let warning = "warning: nonblocking collective operations, which block where they complete, or earlier if ranks would wait for each other: 4";
    assert!(log.iter().any(|line| line == warning), "{log:?}");
}

/// Rank 0 starts a nonblocking barrier before an operation of another communicator, rank 1 after it. If the
/// barrier of rank 0 blocked before the operation, they would wait for each other.
#[test]
fn nonblocking_collective_operations_stay_behind_those_of_other_communicators() {
    let mut archive = ranks(2);
    archive.named_communicator(1, "duplicate", 1);
    let none = u64::from(u32::MAX);
    let reduced = [Byte(ALL_REDUCE), Number(1), Number(none), Number(8), Number(8)];
    let passed = [Byte(BARRIER), Number(0), Number(none), Number(0), Number(0), Number(9)];
    for rank in 0..2 {
        let location = archive.thread(rank + 1, rank).enter(0, 1).enter(0, 2);
        if rank == 0 {
            location.any(1, COLLECTIVE_REQUEST, &[Number(9)]).any(2, COLLECTIVE_END, &reduced);
        } else {
            location.any(2, COLLECTIVE_END, &reduced).any(3, COLLECTIVE_REQUEST, &[Number(9)]);
        }
        location.any(5, COLLECTIVE_COMPLETE, &passed).leave(6, 2).leave(6, 1);
    }
    assert_eq!(operations(&archive), ["allreduce 8 in 1, barrier 0 in 0"; 2]);
}

#[test]
fn what_has_no_counterpart_is_left_out_with_the_time_that_it_touches() {
    let mut archive = ranks(2);
    archive.thread(1, 0).enter(0, 1).send(1, 0, 1, 5).leave(9, 1);
    archive.thread(2, 1).enter(0, 1).any(2, RECV, &receive(1, 5)).leave(9, 1);
    let lost = read_written(&archive, |_| ()).0.unwrap_err();
    assert_eq!(lost, "`ARCHIVE` lacks the receive events of 1 messages (5 of 5 bytes)");
    let (found, log) = read_written(&archive, |params| params.allow_loss = 1.0);
    assert_eq!(found.unwrap(), ["compute 9", "compute 9"]);
    for warning in [
        "warning: messages without a receive event, which are not in the program (EZTrace omits many nonblocking receives): 1",
        "warning: messages without a send event, which are not in the program: 1",
        "warning: operations of 2 ranks are left out; from the first of each rank to its end, that touches 0.015000 s together",
    ] {
        assert!(log.iter().any(|line| line == warning), "{log:?}");
    }
}

#[test]
fn no_time_passes_while_a_clock_runs_backwards() {
    let mut archive = ranks(2);
    let rank = archive.thread(1, 0).enter(0, 1).send(10, 0, 1, 5).send(6, 0, 1, 6).leave(9, 1);
    rank.enter(9, 1).leave(9, 1);
    let rank = archive.thread(2, 1).enter(0, 1).any(12, RECV, &receive(0, 5)).any(13, RECV, &receive(0, 6));
    rank.leave(20, 1);
    let (found, log) = read_written(&archive, |_| ());
    assert_eq!(
        found.unwrap(),
        ["compute 10, send 1 5, send 1 6, compute 4", "compute 12, recv 0 5, compute 1, recv 0 6, compute 7"]
    );
    let warning =
        "warning: clocks run backwards at 1 operations, by 0.004000 s together; no time passes there";
    assert!(log.iter().any(|line| line == warning), "{log:?}");
}

#[test]
fn a_stop_is_noticed_after_the_events_were_read() {
    let path = sample("rows-columns-16");
    let stopped = |patience: u64| {
        let params = ProgramParams { allow_loss: 1.0, ..ProgramParams::new(Some(InputPath::new(&path))) };
        let impatient = Impatient::new(patience);
        let result = run(params, Inputs::new(), &Context::new(1, None, &impatient));
        result.map_err(|error| error.to_string()).err()
    };
    let all: Vec<String> = (0..).map_while(stopped).collect();
    assert!(all.iter().all(|error| error.starts_with("stopped ")), "{all:?}");
    let after = all.iter().filter(|error| *error == "stopped before the trace was matched").count();
    // Each rank is matched twice and written once.
    assert!(after >= 48, "{after} of {}", all.len());
}

#[test]
fn messages_of_duplicates_of_a_communicator_are_kept_apart() {
    let mut archive = ranks(2);
    archive.named_communicator(1, "duplicate", 1);
    let receive = |communicator: u64, bytes| [Number(0), Number(communicator), Number(7), Number(bytes)];
    archive.thread(1, 0).enter(0, 1).send(0, 0, 1, 1).send(0, 1, 1, 2).leave(0, 1);
    let rank = archive.thread(2, 1).enter(0, 1).any(0, RECV, &receive(1, 2)).any(0, RECV, &receive(0, 1));
    rank.leave(0, 1);
    assert_eq!(operations(&archive), ["send 1 1, send 1 in 1 2", "recv 0 in 1 2, recv 0 1"]);
}

#[test]
fn a_truncated_archive_gives_the_operations_before_the_damage() {
    let copy = Copy::of(&sample("rows-columns-16"));
    let (complete, _) = read(copy.path(), |params| params.allow_loss = 1.0);
    let file = copy.files().into_iter().rfind(|file| file.extension().is_some_and(|ending| ending == "evt"));
    let file = file.unwrap();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let refused = read(copy.path(), |_| ()).0.unwrap_err();
    assert!(refused.contains("is damaged at byte"), "{refused}");
    let (cut, log) = read(copy.path(), |params| params.allow_truncated = true);
    let (cut, complete) = (cut.unwrap().totals(), complete.unwrap().totals());
    assert!(0 < cut.messages && cut.messages < complete.messages);
    assert!(
        log.iter().any(|line| line.contains("ranks are left out; from the first of each rank")),
        "{log:?}"
    );
}

/// Messages and bytes by pair.
type Pairs = BTreeMap<(u32, u32), (u64, u64)>;

fn pairs(program: &Program) -> Pairs {
    let mut pairs = Pairs::new();
    for rank in 0..program.ranks() {
        for operation in program.of_rank(rank) {
            if let Action::Send { envelope, bytes } | Action::Isend { envelope, bytes, .. } =
                operation.action()
            {
                let peer = program.envelopes[envelope as usize].peer;
                let pair = pairs.entry((rank, peer)).or_default();
                *pair = (pair.0 + 1, pair.1 + bytes);
            }
        }
    }
    pairs
}

/// Compares the program of an archive with its task graph, which is read without matching any messages, and
/// gives the number of messages that EZTrace lost.
fn assert_agrees_with_the_task_graph(path: &Path) -> u64 {
    let (program, log) = read(path, |params| params.allow_loss = 1.0);
    let program = program.unwrap();
    let graph_of = read_with(path, Reader::Native, &Context::detached()).unwrap();
    let messages = graph_of.edges.iter().map(|edge| (edge.pair(), (edge.messages, edge.bytes)));
    let messages: Pairs = messages.collect();
    let found = pairs(&program);
    let lost = log.iter().find_map(|line| line.strip_prefix("warning: messages without a receive event"));
    let lost: u64 = lost.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap());
    assert_eq!(program.totals().messages + lost, graph_of.messages(), "{}", path.display());
    match lost {
        0 => assert_eq!(found, messages, "{}", path.display()),
        _ => {
            for (pair, (count, bytes)) in found {
                assert!(count <= messages[&pair].0 && bytes <= messages[&pair].1, "{}", path.display());
            }
        }
    }
    for (rank, process) in (0..).zip(&graph_of.processes) {
        let operations = program.of_rank(rank).iter();
        let computed: f64 = operations
            .map(|operation| match operation.action() {
                Action::Compute { seconds } => seconds,
                _ => 0.0,
            })
            .sum();
        let expected = process.compute_s.unwrap();
        assert!((computed - expected).abs() <= 1e-9 * expected, "{computed} s of {expected} s, rank {rank}");
    }
    assert_agrees_with_the_collectives(path, &program);
    lost
}

/// Members of the communicator, operation and root.
type Call = (Vec<u32>, CollectiveOperation, Option<u32>);

fn assert_agrees_with_the_collectives(path: &Path, program: &Program) {
    let params = Otf2Params { collectives: Collectives::Keep, ..Otf2Params::new(InputPath::new(path)) };
    let table = graph::<Otf2>(params, &Context::detached()).unwrap().collectives;
    let mut expected: BTreeMap<Call, u64> = BTreeMap::new();
    for calls in &table.calls {
        let members = table.communicators[calls.communicator as usize].clone();
        let ranks = members.len() as u64;
        *expected.entry((members, calls.operation, calls.root)).or_default() += calls.calls * ranks;
    }
    let mut found: BTreeMap<Call, u64> = BTreeMap::new();
    for operation in &program.operations {
        if let Action::Collective { collective, .. } = operation.action() {
            let collective = program.collectives[collective as usize];
            let members = program.communicators[collective.communicator as usize].clone();
            *found.entry((members, collective.operation, collective.root)).or_default() += 1;
        }
    }
    assert_eq!(found, expected, "{}", path.display());
}

#[test]
fn the_samples_have_the_messages_of_their_task_graphs() {
    // EZTrace omitted receives.
    assert!(assert_agrees_with_the_task_graph(&sample("rows-columns-16")) > 0);
    assert_agrees_with_the_task_graph(&sample("lammps-melt-16"));
}

#[test]
fn real_archives_have_the_messages_of_their_task_graphs() {
    for path in archives() {
        assert_agrees_with_the_task_graph(&path);
    }
}

#[test]
fn a_generated_program_has_the_messages_of_its_pattern() {
    for pattern in Pattern::ALL {
        let params = GenerateParams { pattern, ranks: 8, events: 5_000, seed: 3 };
        let Outcome::Done(outputs) = Generate::run(params, Inputs::new(), &Context::detached()).unwrap()
        else {
            panic!("it is never interrupted")
        };
        let archive: &TraceArchive = outputs.get("archive").unwrap().downcast_ref().unwrap();
        assert_eq!(assert_agrees_with_the_task_graph(archive.file("traces.otf2").unwrap()), 0);
    }
}

fn of_dag(dag: TaskDag, path: Option<&str>) -> Result<Program, String> {
    let mut inputs = Inputs::new();
    inputs.connect("task-dag", Arc::new(dag), String::new(), String::new());
    let params = ProgramParams::new(path.map(InputPath::new));
    run(params, inputs, &Context::detached()).map_err(|error| error.to_string())
}

#[test]
fn a_task_dag_becomes_a_program_of_eager_messages() {
    let task = |rank, work| Task { rank: Some(rank), work };
    let edge = |source, destination, bytes| Dependency { source, destination, bytes };
    let dag = TaskDag {
        tasks: vec![task(0, 1.0), task(0, 0.5), task(1, 2.0)],
        dependencies: vec![edge(0, 1, 0), edge(0, 2, 100), edge(0, 2, 200), edge(2, 1, 50)],
        ..TaskDag::default()
    };
    let program = of_dag(dag.clone(), None).unwrap();
    assert_eq!(
        shown(&program),
        [
            "compute 1000, isend 1 100 #0, isend 1 200 #1, recv 1 50, compute 500",
            "recv 0 100, recv 0 200, compute 2000, isend 0 50 #0"
        ]
    );
    assert_eq!(of_dag(dag, Some("x")).unwrap_err(), "both `path` and `task-dag` are given");
    let nothing = run(ProgramParams::new(None), Inputs::new(), &Context::detached()).unwrap_err();
    assert_eq!(nothing.to_string(), "no program is given");
}

#[test]
fn formats_without_the_order_of_messages_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("matrix.csv");
    std::fs::write(&path, "source,destination,messages,bytes\n0,1,2,3\n").unwrap();
    let params = ProgramParams::new(Some(InputPath::new(&path)));
    let error = run(params, Inputs::new(), &Context::detached()).unwrap_err().to_string();
    assert!(error.ends_with("has the format `csv`, which lacks the order of messages"), "{error}");
}

#[test]
fn invalid_parameters_are_rejected() {
    let of = |ask: fn(&mut ProgramParams)| {
        let mut params = ProgramParams::new(None);
        ask(&mut params);
        ProgramStage::check(&params).unwrap_err().to_string()
    };
    assert_eq!(of(|params| params.flops_per_s = 0.0), "`flops_per_s` is 0");
    assert_eq!(of(|params| params.allow_loss = 2.0), "`allow_loss` is 2");
}

/// Rank 0 receives in two threads: one after the other, or the second one while the first one waits.
#[test]
fn calls_of_threads_are_one_sequence_if_they_are_one_after_the_other() {
    let written = |begin: u64| {
        let mut archive = ranks(2);
        let first = archive.thread(1, 0).enter(0, 1);
        first.enter(1, 2).any(8, RECV, &receive(1, 500)).leave(10, 2).leave(30, 1);
        let second = archive.thread(5, 0).enter(begin, 2);
        second.any(20, RECV, &receive(1, 500)).leave(22, 2);
        let sender = archive.thread(2, 1).enter(0, 1).enter(1, 2);
        sender.send(2, 0, 0, 500).send(3, 0, 0, 500).leave(4, 2).leave(30, 1);
        read_written(&archive, |_| ()).0
    };
    assert!(written(11).unwrap()[0].contains("recv 1 500"));
    let refused =
        "`ARCHIVE` has calls of several threads of rank 0 at the same time: their order cannot be known";
    assert_eq!(written(9).unwrap_err(), refused);
}
