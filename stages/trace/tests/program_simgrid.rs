//! Programs from time-independent traces of SimGrid, and back.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use hopmap_artifact::Folder;
use hopmap_model::{
    Action, Collective, CollectiveOperation, Context, Envelope, InputPath, Inputs, Outcome, Program,
    ProgramBuilder, Stage, TraceArchive,
};
use hopmap_test_support::programs;
use hopmap_trace::{ProgramFormat, ProgramParams, ProgramStage, Replay, ReplayParams, Simulator};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::support::Listener;

/// A power of two, so that multiples of 1/1024 s are exact in both directions.
const FLOPS_PER_S: f64 = (1u64 << 30) as f64;

fn import(path: &Path, format: ProgramFormat, flops_per_s: f64) -> (Result<Program, String>, Vec<String>) {
    let params = ProgramParams { format, flops_per_s, ..ProgramParams::new(Some(InputPath::new(path))) };
    ProgramStage::check(&params).unwrap();
    let listener = Listener::default();
    let result = ProgramStage::run(params, Inputs::new(), &Context::new(1, None, &listener));
    let result = result.map_err(|error| error.to_string()).map(|outcome| match outcome {
        Outcome::Done(outputs) => outputs.get("program").unwrap().downcast_ref::<Program>().unwrap().clone(),
        other => panic!("{other:?}"),
    });
    (result, listener.lines.into_inner().unwrap())
}

/// The program of a trace in one file, and the log.
fn read(actions: &str) -> (Result<Program, String>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    fs::write(&path, actions).unwrap();
    let (result, log) = import(&path, ProgramFormat::Auto, 1e9);
    let place = format!("{}/", folder.path().display());
    (result.map_err(|error| error.replace(&place, "")), log)
}

fn to(peer: u32, tag: u32) -> Envelope {
    Envelope { peer, tag, communicator: 0 }
}

fn expected(ranks: u32, fill: impl FnOnce(&mut ProgramBuilder)) -> Program {
    let mut builder = ProgramBuilder::new(ranks);
    fill(&mut builder);
    builder.finish().unwrap()
}

#[test]
fn actions_mean_what_a_replay_does() {
    let (found, log) = read(
        "0 init 1\n0 compute 1e9\n0 isend 1 7 2 6\n0 isend 1 7 3\n0 compute 5e8\n0 wait 0 1 7\n0 wait 0 1 7\n\
         0 wait 0 1 7\n0 sleep 2\n0 Ssend 1 9 1\n0 finalize\n\
         1 init 1\n1 recv 0 7 100\n1 irecv 0 7 100\n1 test 0 1 7\n1 waitall 1\n1 test 0 1 7\n1 recv 0 9 1\n1 finalize\n",
    );
    let expected = expected(2, |program| {
        program.compute(0, 1.0);
        // Datatype 6 is a byte, the default of `init 1` a double.
        let first = program.isend(0, to(1, 7), 2);
        let second = program.isend(0, to(1, 7), 24);
        program.compute(0, 0.5);
        program.wait(0, first);
        program.wait(0, second);
        program.compute(0, 2.0);
        program.send(0, to(1, 9), 8);
        program.recv(1, to(0, 7), 800);
        let request = program.irecv(1, to(0, 7), 800);
        program.test(1, request);
        program.waitall(1);
        program.recv(1, to(0, 9), 8);
    });
    assert_eq!(found.unwrap(), expected);
    let synchronous = "warning: synchronous sends, which are standard sends in the program: 1";
    assert_eq!(log[..2], ["format: simgrid", synchronous]);
}

/// Once a receive with `MPI_ANY_TAG` was refused although its source has an order.
#[test]
fn a_receive_with_any_tag_takes_the_first_message_that_no_earlier_one_takes() {
    let (found, _) = read(
        "0 init\n0 send 1 5 1 6\n0 send 1 6 2 6\n0 isend 1 7 3 6\n0 wait 0 1 7\n0 send 1 6 4 6\n\
         1 init\n1 recv 0 6 2 6\n1 irecv 0 -444 9 6\n1 wait 0 1 -444\n1 irecv 0 -1 9 6\n1 wait 0 1 7\n1 recv 0 -444 9 6\n",
    );
    let expected = expected(2, |program| {
        program.send(0, to(1, 5), 1);
        program.send(0, to(1, 6), 2);
        let request = program.isend(0, to(1, 7), 3);
        program.wait(0, request);
        program.send(0, to(1, 6), 4);
        program.recv(1, to(0, 6), 2);
        for tag in [5, 7] {
            let request = program.irecv(1, to(0, tag), 9);
            program.wait(1, request);
        }
        program.recv(1, to(0, 6), 9);
    });
    assert_eq!(found.unwrap(), expected);
}

#[test]
fn collective_operations_have_the_block_of_each_rank_and_the_computation_of_reductions() {
    let common = |rank: u32| {
        format!(
            "{rank} barrier\n{rank} bcast 10 1 6\n{rank} reduce 10 1e9 1 6\n{rank} allreduce 10 5e8 6\n\
             {rank} gather 3 3 1 6 6\n{rank} scatter 3 4 0 6 6\n{rank} allgather 5 5 6 6\n{rank} alltoall 6 6 6 6\n"
        )
    };
    let (found, _) = read(&format!(
        "0 init\n1 init\n{}0 gatherv 1 1 2 1 6 6\n0 scatterv 4 5 4 0 6 6\n0 allgatherv 1 1 2 6 6\n\
         0 reducescatter 7 8 1e9 6\n0 alltoallv 9 2 5 9 3 3 6 6\n{}1 gatherv 2 1 2 1 6 6\n1 scatterv 4 5 5 0 6 6\n\
         1 allgatherv 2 1 2 6 6\n1 reducescatter 7 8 1e9 6\n1 alltoallv 9 1 1 9 3 3 6 6\n",
        common(0),
        common(1)
    ));
    let expected = expected(2, |program| {
        use CollectiveOperation as Operation;
        let of = |operation, root| Collective { communicator: 0, operation, root };
        for rank in 0..2 {
            let own = u64::from(rank);
            let mut call = |operation, root, bytes| program.collective(rank, of(operation, root), bytes);
            call(Operation::Barrier, None, 0);
            call(Operation::Broadcast, Some(1), 10);
            call(Operation::Reduce, Some(1), 10);
            program.compute(rank, 1.0);
            program.collective(rank, of(Operation::AllReduce, None), 10);
            program.compute(rank, 0.5);
            let mut call = |operation, root, bytes| program.collective(rank, of(operation, root), bytes);
            call(Operation::Gather, Some(1), 3);
            call(Operation::Scatter, Some(0), 4);
            call(Operation::AllGather, None, 5);
            call(Operation::AllToAll, None, 6);
            call(Operation::GatherV, Some(1), 1 + own);
            call(Operation::ScatterV, Some(0), 4 + own);
            call(Operation::AllGatherV, None, 1 + own);
            call(Operation::ReduceScatter, None, 7 + own);
            program.compute(rank, 1.0);
            let mean = if rank == 0 { 4 } else { 1 };
            program.collective(rank, of(Operation::AllToAllV, None), mean);
        }
    });
    assert_eq!(found.unwrap(), expected);
}

#[test]
fn traces_without_tags_complete_the_latest_request() {
    let (found, log) = read(
        "0 init\n0 send 1 1e3\n0 send 1 2e3\n0 finalize\n1 init\n1 irecv 0 1e3\n1 irecv 0 2e3\n1 wait\n1 finalize\n",
    );
    let expected = expected(2, |program| {
        program.send(0, to(1, 0), 1000);
        program.send(0, to(1, 0), 2000);
        let first = program.irecv(1, to(0, 0), 1000);
        let second = program.irecv(1, to(0, 0), 2000);
        program.wait(1, second);
        program.wait(1, first);
    });
    assert_eq!(found.unwrap(), expected);
    assert_eq!(log[1], "warning: receives without a `wait`, which complete at the end of their rank: 1");
}

#[test]
fn an_exchange_is_a_receive_a_send_and_a_wait() {
    let (found, _) = read("0 init\n0 sendRecv 9 1 4 1 3 6\n1 init\n1 sendRecv 1 0 9 0 3 3\n");
    let expected = expected(2, |program| {
        for (rank, sent, received) in [(0, 18, 4), (1, 2, 18)] {
            let request = program.irecv(rank, to(1 - rank, 0), received);
            program.send(rank, to(1 - rank, 0), sent);
            program.wait(rank, request);
        }
    });
    assert_eq!(found.unwrap(), expected);
}

#[test]
fn what_is_left_out_is_logged() {
    let (found, log) = read(
        "0 init\n0 send -333 1 9 1\n0 irecv -333 1 9 1\n0 wait -333 0 1\n0 Win_fence\n0 Put 0 0 11 6\n0 ibarrier\n",
    );
    assert_eq!(found.unwrap().operations.len(), 1);
    assert_eq!(
        log[1..4],
        [
            "warning: messages to or from a negative rank (MPI_PROC_NULL, or MPI_ANY_SOURCE), which are not in the program: 2",
            "warning: remote memory accesses and their synchronisation, which are not in the program: 2",
            "warning: nonblocking collective operations, which block where they start: 1",
        ]
    );
}

#[test]
fn actions_that_do_not_determine_a_program_are_rejected() {
    for (actions, what) in [
        ("0 init\n0 waitany 2\n", "trace:2: `waitany` does not say which requests complete"),
        ("0 init\n0 Start 0 1 8 6\n", "trace:2: `Start` does not say who sends the message to a receiver"),
        ("0 init\n0 send 0 -444 8 6\n", "trace:2: a message is sent with a negative tag"),
        ("0 init\n0 compute -1\n", "trace:2:11: the number of operations `-1` is negative"),
        ("0 init\n0 compute\n", "trace:2: the number of operations is missing"),
        ("0 init\n0 bcast 8 1 6\n", "trace:2:11: the root `1` is not below 1"),
        ("0 init\n0 alltoallw 8 8\n", "trace:2: the sizes of `alltoallw` are not in the trace"),
        ("0 init\n2 init\n", "trace: rank 1 of 3 has no action, not even `init`"),
        (
            "0 init\n0 send 1 2 8 6\n1 init\n1 recv -333 2 8 6\n",
            "the actions in `trace` are inconsistent: rank 0 sends 1 messages to rank 1 with tag 2 in communicator 0, which receives 0",
        ),
        (
            "0 init\n0 send 1 2 8 6\n",
            "the actions in `trace` are inconsistent: operation 0 of rank 0: rank 1 is not in communicator 0",
        ),
        (
            "0 init\n0 barrier\n1 init\n",
            "the actions in `trace` are inconsistent: rank 1 calls 0 collective operations of communicator 0, but rank 0 calls 1",
        ),
    ] {
        assert_eq!(read(actions).0.unwrap_err(), what);
    }
}

fn export(program: Program, folder: &Path) -> Result<(), String> {
    export_logged(program, folder, &Context::detached())
}

/// Writes the trace of a program into a folder.
fn export_logged(program: Program, folder: &Path, cx: &Context<'_>) -> Result<(), String> {
    let params = ReplayParams { format: Simulator::Simgrid, flops_per_s: FLOPS_PER_S };
    let mut inputs = Inputs::new();
    inputs.connect("program", Arc::new(program), String::new(), String::new());
    let outcome = Replay::run(params, inputs, cx).map_err(|error| error.to_string())?;
    let Outcome::Done(outputs) = outcome else { panic!("writing has no other outcome") };
    let archive: &TraceArchive = outputs.get("archive").unwrap().downcast_ref().unwrap();
    let written = Folder::write(folder, archive).unwrap();
    assert!(written.file_path("ti.txt").is_file());
    Ok(())
}

/// Collective operations that a trace distinguishes.
const OPERATIONS: &[CollectiveOperation] = {
    use CollectiveOperation as Operation;
    &[
        Operation::Barrier,
        Operation::Broadcast,
        Operation::Gather,
        Operation::GatherV,
        Operation::Scatter,
        Operation::ScatterV,
        Operation::AllGather,
        Operation::AllGatherV,
        Operation::AllToAll,
        Operation::AllToAllV,
        Operation::AllReduce,
        Operation::Reduce,
        Operation::ReduceScatter,
        Operation::Scan,
        Operation::ExclusiveScan,
    ]
};

fn there_and_back(program: &Program) -> Program {
    let folder = tempfile::tempdir().unwrap();
    export(program.clone(), folder.path()).unwrap();
    import(&folder.path().join("files/ti.txt"), ProgramFormat::SimgridTagged, FLOPS_PER_S).0.unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if hopmap_test_support::soak() { 2000 } else { 64 }))]

    #[test]
    fn what_is_written_is_read_back(program in programs(5, 1 << 40, OPERATIONS)) {
        prop_assert_eq!(&there_and_back(&program), &program);
    }
}

#[test]
fn messages_of_other_communicators_get_other_tags() {
    let program = expected(2, |program| {
        let duplicate = program.communicator(vec![0, 1]);
        for (communicator, tag) in [(0, 5), (duplicate, 5), (0, u32::MAX), (duplicate, 6)] {
            program.send(0, Envelope { peer: 1, tag, communicator }, u64::from(tag));
        }
        for (communicator, tag) in [(duplicate, 6), (0, 5), (duplicate, 5), (0, u32::MAX)] {
            program.recv(1, Envelope { peer: 0, tag, communicator }, u64::from(tag));
        }
    });
    let read = there_and_back(&program);
    let bytes = |program: &Program, rank| {
        let operations = program.of_rank(rank).iter();
        operations
            .map(|operation| match operation.action() {
                Action::Send { bytes, .. } | Action::Recv { bytes, .. } => bytes,
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (0..2).map(|rank| bytes(&read, rank)).collect::<Vec<_>>(),
        [bytes(&program, 0), bytes(&program, 1)]
    );
    let tags: Vec<u32> = read.envelopes.iter().map(|envelope| envelope.tag).collect();
    assert_eq!(tags, [0, 2, 1, 3, 3, 0, 2, 1]);
}

#[test]
fn a_wait_for_a_later_message_is_logged() {
    let program = expected(1, |program| {
        let first = program.irecv(0, to(0, 1), 1);
        let second = program.irecv(0, to(0, 1), 2);
        program.isend(0, to(0, 1), 1);
        program.isend(0, to(0, 1), 2);
        program.wait(0, second);
        program.wait(0, first);
    });
    let folder = tempfile::tempdir().unwrap();
    let listener = Listener::default();
    export_logged(program, folder.path(), &Context::new(1, None, &listener)).unwrap();
    let lines = listener.lines.into_inner().unwrap();
    let warning = "warning: waits for a message before an earlier one with the same ends and tag, which complete the earlier one in the replay: 1";
    assert_eq!(lines, [warning]);
}

#[test]
fn collective_operations_of_other_communicators_cannot_be_replayed() {
    let program = expected(2, |program| {
        let communicator = program.communicator(vec![1]);
        let operation = CollectiveOperation::Barrier;
        program.collective(1, Collective { communicator, operation, root: None }, 0);
    });
    let folder = tempfile::tempdir().unwrap();
    let error = export(program, folder.path()).unwrap_err();
    let expected =
        "the program calls barrier on communicator 1, but a replay of SimGrid has only MPI_COMM_WORLD";
    assert_eq!(error, expected);
}

#[test]
fn one_input_is_needed() {
    let params = ReplayParams { format: Simulator::Simgrid, flops_per_s: 1e9 };
    let error = Replay::run(params, Inputs::new(), &Context::detached()).unwrap_err();
    assert_eq!(error.to_string(), "exactly one of `task-dag` and `program` is needed");
}

const PLATFORM: &str = "<?xml version='1.0'?>\n\
    <!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n\
    <platform version=\"4.1\"><cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-4\" speed=\"1Gf\" bw=\"1GBps\" \
    lat=\"1us\"/></platform>\n";

/// Replays a trace with SMPI. Gives the simulated seconds.
fn simulated(folder: &Path, ranks: u32) -> f64 {
    fs::write(folder.join("platform.xml"), PLATFORM).unwrap();
    let hosts: Vec<String> = (0..ranks).map(|host| format!("n{host}")).collect();
    fs::write(folder.join("hosts"), hosts.join("\n")).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    let output = Command::new("smpirun")
        .args(["-np", &ranks.to_string(), "-platform", &path("platform.xml"), "-hostfile", &path("hosts")])
        .args(["--cfg=smpi/host-speed:1Gf", "--cfg=smpi/display-timing:1", "-replay", "ti.txt"])
        .current_dir(folder.join("files"))
        .output()
        .expect("smpirun of libsimgrid-dev");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let time = text.split("Simulated time: ").nth(1).and_then(|rest| rest.split(' ').next());
    time.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

/// SMPI replays random programs to their end, in at least the time of the rank that computes longest.
#[test]
fn simgrid_replays_random_programs() {
    if !hopmap_test_support::system_tests() {
        return;
    }
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let cases = if hopmap_test_support::soak() { 200 } else { 10 };
    for _ in 0..cases {
        let tree = programs(4, 1 << 20, OPERATIONS).new_tree(&mut runner).unwrap();
        let program = tree.current();
        let computed = (0..4).map(|rank| {
            let operations = program.of_rank(rank).iter();
            operations
                .map(|operation| match operation.action() {
                    Action::Compute { seconds } => seconds,
                    _ => 0.0,
                })
                .sum::<f64>()
        });
        let longest = computed.fold(0.0, f64::max);
        let folder = tempfile::tempdir().unwrap();
        export(program.clone(), folder.path()).unwrap();
        // The trace counts 2^30 operations per second, the hosts execute 10^9.
        let seconds = simulated(folder.path(), 4) * 1e9 / FLOPS_PER_S;
        assert!(seconds >= longest * (1.0 - 1e-6), "{seconds} s, but a rank computes {longest} s");
    }
}
