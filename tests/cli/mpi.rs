//! Stages as real MPI ranks, started by Open MPI and inside a real Slurm of emulated nodes. Runs when `HOPMAP_SYSTEM_TESTS=1` and
//! `hopmap-ranks` is built.

use hopmap_test_support::{Cluster, NODES, system_tests};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::launcher::wait_until_begun;
use crate::sandbox::{Sandbox, ranks_program};

/// Three islands on a program without symmetries.
const PIPELINE: &str = r#"name = "ranks"

[params]
launcher = ""
evaluations = 20000

[stages.program]
uses = "trace/import"
with = { path = "program.csv", format = "csv" }

[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x4x4", costs = [1, 10, 100] }

[stages.placement]
uses     = "map/tabu"
with     = { evaluations = "${params.evaluations}", islands = 3 }
needs    = { task-graph = "program", system = "machine" }
launcher = "${params.launcher}"
"#;

/// More evaluations than anybody waits for.
const ENDLESS: &str = "evaluations=1000000000000000";

/// Whether these tests can run.
fn wanted() -> bool {
    system_tests() && ranks_program().is_some()
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let pair = |rank: usize| {
        let (near, far) = ((rank + 3) % 32, (rank * 7 + 5) % 32);
        format!("{rank},{near},10,{}\n{rank},{far},3,{}\n", 1000 + 37 * rank, 700 + 91 * (rank % 5))
    };
    let pairs: String = (0..32).map(pair).collect();
    sandbox.write("program.csv", format!("source,destination,messages,bytes\n{pairs}"));
    sandbox.write("p.toml", PIPELINE);
    sandbox
}

/// A folder for the session of one Open MPI: two that go on at the same time, or one after the other, take it from each other.
fn session_folder(sandbox: &Sandbox) -> PathBuf {
    static SESSIONS: AtomicU32 = AtomicU32::new(0);
    let folder = sandbox.path().join(format!("tmp{}", SESSIONS.fetch_add(1, Ordering::Relaxed)));
    std::fs::create_dir(&folder).unwrap();
    folder
}

/// A run of the pipeline whose placement has a launcher.
fn run(sandbox: &Sandbox, launcher: &str, more: &[&str]) -> Command {
    let launcher = format!("launcher={launcher}");
    let arguments = ["run", "p.toml", "--json", "--no-report", "-p", &launcher];
    let mut command = sandbox.command(&[&arguments, more].concat());
    command
        .env_remove("HOPMAP_RANKS")
        .env("TMPDIR", session_folder(sandbox))
        .envs(hopmap_mpi_environment::AS_ROOT)
        // More processes than cores must not wait for each other busily.
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .env("OMPI_MCA_hwloc_base_binding_policy", "none")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn placement(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let cells = report["cells"].as_array().unwrap().iter();
    cells.clone().find(|cell| cell["cell"] == "placement").unwrap().clone()
}

fn digest(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let cell = placement(output);
    assert_eq!(cell["state"], "ran");
    cell["outputs"]["mapping"]["digest"].as_str().unwrap().to_owned()
}

#[test]
fn any_number_of_mpi_ranks_gives_the_same_digest() {
    if !wanted() {
        return;
    }
    let sandbox = sandbox();
    let digest =
        |launcher: &str, store: &str| digest(&run(&sandbox, launcher, &["--store", store]).output().unwrap());
    let alone = digest("", "alone");
    for ranks in 1..=4 {
        let launcher = format!("mpirun --oversubscribe -n {ranks}");
        assert_eq!(digest(&launcher, &format!("ranks-{ranks}")), alone, "{launcher}");
    }
}

/// A graph whose tasks may run anywhere, which no island solves at once.
const SCHEDULES: &str = r#"name = "schedules"

[params]
launcher = ""
bred = ""

[stages.graph]
uses = "schedule/import"
with = { path = "graph.dot" }

[stages.schedule]
uses     = "schedule/auto"
with     = { processors = 3, speeds = [1.0, 0.5, 2.0], evaluations = 20000, islands = 3 }
needs    = { task-dag = "graph" }
launcher = "${params.launcher}"

[stages.bred]
uses     = "schedule/genetic"
with     = { processors = 3, evaluations = 5000, islands = 3 }
needs    = { task-dag = "graph" }
launcher = "${params.bred}"
"#;

#[test]
fn any_number_of_mpi_ranks_gives_the_same_schedules() {
    if !wanted() {
        return;
    }
    let sandbox = sandbox();
    let tasks =
        (0..40).map(|task| format!("t{task} [Weight={}];", 1 + task * 7 % 11)).collect::<Vec<_>>().join("\n");
    let edges = (2..40)
        .map(|to| format!("t{} -> t{to} [Weight={}];", to * 2 / 3, 1 + to * 5 % 13))
        .collect::<Vec<_>>()
        .join("\n");
    sandbox.write("graph.dot", format!("digraph g {{ {tasks} {edges} }}"));
    sandbox.write("p.toml", SCHEDULES);
    let digests = |launcher: &str, store: &str| {
        // Both stages run at the same time, so that each needs a folder of its own.
        let own = format!("mpirun --mca orte_tmpdir_base {}", session_folder(&sandbox).display());
        let bred = format!("bred={}", launcher.replace("mpirun", &own));
        let output = run(&sandbox, launcher, &["--store", store, "-p", &bred]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
        let digest = |stage: &str| {
            let mut cells = report["cells"].as_array().unwrap().iter();
            let cell = cells.find(|cell| cell["cell"] == stage).unwrap();
            assert_eq!(cell["state"], "ran", "{said}");
            cell["outputs"]["schedule"]["digest"].as_str().unwrap().to_owned()
        };
        ["schedule", "bred"].map(digest)
    };
    let alone = digests("", "alone");
    for ranks in [1, 2, 3] {
        let launcher = format!("mpirun --oversubscribe -n {ranks}");
        assert_eq!(digests(&launcher, &format!("ranks-{ranks}")), alone, "{launcher}");
    }
}

#[test]
fn ranks_on_the_nodes_of_a_slurm_cluster_give_the_same_digest() {
    if !wanted() {
        return;
    }
    let cluster = Cluster::start();
    let sandbox = sandbox();
    // Says where every rank runs, then becomes it.
    let ranks = ranks_program().unwrap();
    let script = format!("#!/bin/sh\necho $SLURMD_NODENAME >> nodes\nexec {} $1\n", ranks.display());
    sandbox.write("ranks", script);
    executable(&sandbox.path().join("ranks"));
    let slurm = |command: &mut Command| {
        command.env("SLURM_CONF", cluster.configuration()).env("HOPMAP_RANKS", sandbox.path().join("ranks"));
        digest(&command.output().unwrap())
    };
    let alone = digest(&run(&sandbox, "", &["--store", "alone"]).output().unwrap());
    let ranks = run(&sandbox, "timeout 120 salloc -Q -N 4 -n 4 mpirun -n 4", &["--store", "allocated"]);
    assert_eq!(slurm(&mut { ranks }), alone);
    let seen = || {
        let mut nodes: Vec<String> = sandbox.read("nodes").lines().map(str::to_owned).collect();
        nodes.sort();
        nodes
    };
    assert_eq!(seen(), NODES);
    // The same in a job that is submitted and not waited for by Slurm's own commands.
    std::fs::remove_file(sandbox.path().join("nodes")).unwrap();
    let ranks = run(&sandbox, "sbatch -N 4 -n 4 --time 5 mpirun -n 4", &["--store", "submitted"]);
    assert_eq!(slurm(&mut { ranks }), alone);
    assert_eq!(seen(), NODES);
    // Debian's Open MPI cannot be started by `srun` itself, but on a node that `srun` gives, where it knows no Slurm.
    let launcher = "timeout 120 srun -n 1 mpirun --mca plm isolated --mca ras ^slurm --oversubscribe -n 2";
    let ranks = run(&sandbox, launcher, &["--store", "srun"]);
    assert_eq!(slurm(&mut { ranks }), alone);
    // The message of Open MPI about `srun` alone is passed on, with a hint.
    let mut alone = run(&sandbox, "timeout 120 srun -n 2 --mpi=none", &["--store", "refused"]);
    let output = alone.env("SLURM_CONF", cluster.configuration()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("`salloc -n 4 mpirun`"), "{said}");
}

fn executable(path: &Path) {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn ranks_that_do_not_find_each_other_are_refused() {
    if !wanted() {
        return;
    }
    let sandbox = sandbox();
    // Two processes that no launcher of Open MPI connects: each takes itself for the first of one.
    sandbox.write("twice", "#!/bin/sh\n\"$@\" &\nfirst=$!\n\"$@\"\nsecond=$?\nwait $first && exit $second\n");
    let output = run(&sandbox, "sh twice", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains(
            "the launcher started independent programs instead of one MPI job: several processes have rank 0"
        ),
        "{said}"
    );
    assert!(said.contains("hopmap-ranks was built with another MPI"), "{said}");
}

#[test]
fn what_a_stage_fails_with_is_said_once() {
    if !wanted() {
        return;
    }
    let sandbox = sandbox();
    sandbox.edit("p.toml", "tree:2x4x4", "tree:2x2x2");
    let output = run(&sandbox, "mpirun --oversubscribe -n 3", &["--quiet"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    let alone = String::from_utf8(run(&sandbox, "", &["--quiet"]).output().unwrap().stderr).unwrap();
    let [reason, hint] = [alone.lines().nth(1).unwrap(), alone.lines().nth(2).unwrap()];
    for line in [reason, hint] {
        assert_eq!(said.matches(line.trim()).count(), 1, "{said}");
    }
    assert!(said.contains("of `mpirun --oversubscribe -n 3 "), "{said}");
}

#[test]
fn a_rank_that_is_killed_ends_the_run_and_the_next_one_goes_on() {
    if !wanted() {
        return;
    }
    let sandbox = sandbox();
    let evaluations = ["-p", "evaluations=200000000"];
    // The kernel kills rank 1 with SIGKILL after a second of work, however busy the machine is.
    let ranks = ranks_program().unwrap();
    let script =
        format!("#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK != 1 ] || ulimit -t 1\nexec {} $1\n", ranks.display());
    sandbox.write("ranks", script);
    executable(&sandbox.path().join("ranks"));
    let mut killed = run(&sandbox, "mpirun --oversubscribe -n 2", &evaluations);
    let output = killed.env("HOPMAP_RANKS", sandbox.path().join("ranks")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(placement(&output)["state"], "failed");
    assert!(said.contains("`mpirun --oversubscribe -n 2 "), "{said}");
    assert!(said.contains("ended without a result"), "{said}");
    assert!(said.contains("signal 9"), "{said}");
    let after = digest(&run(&sandbox, "mpirun --oversubscribe -n 2", &evaluations).output().unwrap());
    let undisturbed = [&evaluations[..], &["--store", "undisturbed"]].concat();
    assert_eq!(after, digest(&run(&sandbox, "", &undisturbed).output().unwrap()));
}

#[test]
fn an_interrupt_brings_the_best_that_all_ranks_have() {
    if !wanted() {
        return;
    }
    let sandbox = sandbox();
    let mut run = run(&sandbox, "mpirun --oversubscribe -n 2", &["-p", ENDLESS]).spawn().unwrap();
    wait_until_begun(&sandbox, &mut run);
    hopmap_test_support::signal(run.id(), "INT");
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(placement(&output)["state"], "partial");
}

#[test]
fn ranks_end_with_the_engine_that_is_killed() {
    if !wanted() {
        return;
    }
    let sandbox = sandbox();
    let mut run = run(&sandbox, "mpirun --oversubscribe -n 2", &["-p", ENDLESS]).spawn().unwrap();
    wait_until_begun(&sandbox, &mut run);
    let folder = sandbox.path().join(".hopmap/work");
    assert!(!processes_of(&folder).is_empty());
    run.kill().unwrap();
    run.wait().unwrap();
    // Endless ranks would keep this test from ending.
    while !processes_of(&folder).is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// Processes that were given a path in this folder, with their command lines.
pub(crate) fn processes_of(folder: &Path) -> Vec<(u32, String)> {
    let folder = folder.to_str().unwrap();
    let process = |entry: std::fs::DirEntry| {
        let command = std::fs::read_to_string(entry.path().join("cmdline")).ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, command))
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten().filter_map(process);
    processes.filter(|(_, command)| command.contains(folder)).collect()
}
