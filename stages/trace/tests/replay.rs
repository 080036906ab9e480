//! Replay files for simulators.

use std::fmt::Write;
use std::fs;
use std::process::Command;
use std::sync::Arc;

use hopmap_artifact::Folder;
use hopmap_model::{
    Context, Dependency, Inputs, Outcome, Stage, Task, TaskDag, TraceArchive, Value, WorkUnit,
};
use hopmap_trace::{Replay, ReplayParams, Simulator};

use crate::support::Listener;

/// Rank 0 computes 1 s and sends to rank 1, which then computes 2 s and replies; rank 2 waits for a join at
/// rank 0.
fn program() -> TaskDag {
    let task = |rank, work| Task { rank: Some(rank), work };
    let edge = |source, destination, bytes| Dependency { source, destination, bytes };
    TaskDag {
        tasks: vec![task(0, 1.0), task(0, 0.5), task(1, 0.25), task(1, 2.0), task(2, 0.125), task(0, 0.0)],
        dependencies: vec![
            edge(0, 1, 0),
            edge(0, 3, 100),
            edge(0, 3, 200),
            edge(0, 5, 8),
            edge(2, 3, 0),
            edge(3, 1, 50),
            edge(5, 4, 8),
        ],
        ..TaskDag::default()
    }
}

fn replay(dag: TaskDag, to: Simulator) -> Result<TraceArchive, String> {
    replay_with(dag, to, &Context::detached())
}

fn replay_with(dag: TaskDag, to: Simulator, cx: &Context<'_>) -> Result<TraceArchive, String> {
    let params = ReplayParams { format: to, flops_per_s: 1e9 };
    Replay::check(&params).unwrap();
    let mut inputs = Inputs::new();
    inputs.connect("task-dag", Arc::new(dag), String::new(), String::new());
    match Replay::run(params, inputs, cx).map_err(|error| error.to_string())? {
        Outcome::Done(outputs) => {
            let archive: &Value = outputs.get("archive").unwrap();
            Ok(archive.downcast_ref::<TraceArchive>().unwrap().clone())
        }
        other => panic!("{other:?}"),
    }
}

fn file(archive: &TraceArchive, name: &str) -> String {
    fs::read_to_string(archive.file(name).unwrap()).unwrap()
}

#[test]
fn simgrid_files_have_the_actions_of_every_rank() {
    let archive = replay(program(), Simulator::Simgrid).unwrap();
    assert_eq!(file(&archive, "ti.txt"), "rank-0.ti\nrank-1.ti\nrank-2.ti\n");
    let rank = |rank: u32| file(&archive, &format!("rank-{rank}.ti")).replace(&format!("\n{rank} "), "; ");
    assert_eq!(
        rank(0),
        "0 init; compute 1000000000; isend 1 0 100 6; isend 1 1 200 6; isend 2 0 8 6; recv 1 0 50 6; compute 500000000; finalize\n"
    );
    assert_eq!(
        rank(1),
        "1 init; compute 250000000; recv 0 0 100 6; recv 0 1 200 6; compute 2000000000; isend 0 0 50 6; finalize\n"
    );
    assert_eq!(rank(2), "2 init; recv 0 0 8 6; compute 125000000; finalize\n");
}

#[test]
fn goal_files_have_the_dependencies() {
    let archive = replay(program(), Simulator::Goal).unwrap();
    let text = file(&archive, "program.goal");
    let rank_1 = text.split("rank ").nth(2).unwrap();
    assert_eq!(text.lines().next(), Some("num_ranks 3"));
    let expected = "1 {\nl1: calc 250000000\nl2: calc 2000000000\nl2 requires l1\nl3: recv 100b from 0 tag 0\n\
                    l2 requires l3\nl4: recv 200b from 0 tag 1\nl2 requires l4\nl5: send 50b to 0 tag 0\n\
                    l5 requires l2\n}\n";
    assert_eq!(rank_1, expected);
}

#[test]
fn a_program_without_messages_gives_a_warning() {
    let log = |dag: TaskDag| {
        let listener = Listener::default();
        replay_with(dag, Simulator::Goal, &Context::new(1, None, &listener)).unwrap();
        listener.lines.into_inner().unwrap()
    };
    let mut silent = program();
    // Only the order of the tasks of rank 0 remains.
    silent.dependencies.truncate(1);
    let warning = "warning: no task depends on a task of another rank, so the program does not send messages";
    assert_eq!(log(silent), [warning]);
    assert_eq!(log(program()), [""; 0]);
}

#[test]
fn tasks_without_rank_and_cycles_are_rejected() {
    let mut dag = program();
    dag.tasks[2].rank = None;
    assert_eq!(
        replay(dag, Simulator::Goal).unwrap_err(),
        "task 2 does not belong to a rank, so it cannot be replayed"
    );
    let mut dag = program();
    dag.dependencies = vec![
        Dependency { source: 0, destination: 1, bytes: 0 },
        Dependency { source: 1, destination: 0, bytes: 0 },
    ];
    assert!(replay(dag, Simulator::Goal).unwrap_err().ends_with("depends on itself"));
    let params = ReplayParams { format: Simulator::Goal, flops_per_s: f64::NAN };
    assert_eq!(Replay::check(&params).unwrap_err().to_string(), "`flops_per_s` is NaN");
}

#[test]
fn weights_without_a_unit_are_rejected() {
    let dag = TaskDag { unit: WorkUnit::Time, ..program() };
    for simulator in [Simulator::Goal, Simulator::Simgrid] {
        let error = replay(dag.clone(), simulator).unwrap_err();
        assert!(error.starts_with("the tasks have abstract weights"), "{error}");
    }
}

/// Runs `SimGrid`: the predicted time is the critical path, 1 s + 2 s + 0.5 s, plus a little for messages.
#[test]
fn simgrid_replays_the_program() {
    if !hopmap_test_support::system_tests() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let archive = replay(program(), Simulator::Simgrid).unwrap();
    let written = Folder::write(folder.path(), &archive).unwrap();
    let files = written.file_path("ti.txt").parent().unwrap().to_owned();
    let platform = r#"<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-2" speed="1Gf" bw="1GBps" lat="1us"/></platform>
"#;
    fs::write(folder.path().join("platform.xml"), platform).unwrap();
    let mut hosts = String::new();
    (0..3).for_each(|host| writeln!(hosts, "n{host}").unwrap());
    fs::write(folder.path().join("hosts"), hosts).unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let output = Command::new("smpirun")
        .args(["-np", "3", "-platform", &path("platform.xml"), "-hostfile", &path("hosts")])
        .args(["--cfg=smpi/host-speed:1Gf", "--cfg=smpi/display-timing:1", "-replay", "ti.txt"])
        .current_dir(files)
        .output()
        .expect("smpirun of libsimgrid-dev");
    let output = String::from_utf8_lossy(&output.stderr).into_owned();
    let time = output.split("Simulated time: ").nth(1).and_then(|rest| rest.split(' ').next());
    let time: f64 = time.unwrap_or_else(|| panic!("{output}")).parse().unwrap();
    assert!((3.5..3.5001).contains(&time), "{time} s\n{output}");
}
