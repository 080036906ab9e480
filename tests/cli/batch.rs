//! Cells as jobs of a batch system: a real Slurm of emulated nodes. Runs when `HOPMAP_SYSTEM_TESTS=1`; what takes minutes, when
//! `HOPMAP_SOAK` is set too.

use hopmap_test_support::{Cluster, NODES, only_in_a_soak, system_tests};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::sandbox::Sandbox;

/// Searches that go on from their state, a stage that is one process, and one that needs them all.
const PIPELINE: &str = r#"name = "jobs"

[params]
launcher = ""
evaluations = 20000
seeds = "1..3"
retries = 2

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
matrix   = { seed = "${params.seeds}" }
launcher = "${params.launcher}"
threads  = 1

[stages.quality]
uses     = "evaluate/mapping"
needs    = { task-graph = "program", system = "machine", mapping = "placement[min F]" }
launcher = "${params.launcher}"

[batch]
jobs = 16
"#;

/// More evaluations than anybody waits for.
const ENDLESS: &str = "evaluations=1000000000000000";

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

/// A cluster and a folder that runs use it from.
struct Lab {
    cluster: Cluster,
    sandbox: Sandbox,
}

impl Lab {
    fn new() -> Self {
        Self { cluster: Cluster::start(), sandbox: sandbox() }
    }

    fn run(&self, launcher: &str, more: &[&str]) -> Command {
        let launcher = format!("launcher={launcher}");
        let arguments = ["run", "p.toml", "--json", "--no-report", "-p", &launcher];
        let mut command = self.sandbox.command(&[&arguments, more].concat());
        command.env("SLURM_CONF", self.cluster.configuration()).env_remove("HOPMAP_RANKS");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A command of Slurm; what it prints.
    fn slurm(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(program);
        let output =
            command.args(arguments).env("SLURM_CONF", self.cluster.configuration()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Number, state and node of every job.
    fn jobs(&self) -> Vec<(String, String, String)> {
        let listed = self.slurm("squeue", &["-h", "-t", "all", "-o", "%i %T %N"]);
        let job = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            (words.next().unwrap(), words.next().unwrap(), words.next().unwrap_or_default())
        };
        listed.lines().map(job).collect()
    }

    /// Waits until this many jobs have a state; fails if the run ends before.
    fn wait_for(&self, count: usize, state: &str, run: &mut Child) {
        let deadline = Instant::now() + Duration::from_mins(2);
        while self.jobs().iter().filter(|(_, found, _)| found == state).count() < count {
            assert!(run.try_wait().unwrap().is_none(), "the run has ended");
            assert!(Instant::now() < deadline, "no {count} jobs are {state}: {:?}", self.jobs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn folder(&self) -> &Path {
        self.cluster.configuration().parent().unwrap()
    }

    /// Ends the daemon that wrote a pid file.
    fn kill(&self, signal: &str, pid_file: &str) {
        let pid = std::fs::read_to_string(self.folder().join(pid_file)).unwrap();
        hopmap_test_support::signal(pid.trim(), signal);
        while Path::new("/proc").join(pid.trim()).exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn start_controller(&self) {
        let path = format!("{}:/usr/sbin", std::env::var("PATH").unwrap());
        let configuration = self.cluster.configuration();
        let mut command = Command::new("slurmctld");
        command.arg("-f").arg(configuration).env("PATH", path).stdin(Stdio::null()).stdout(Stdio::null());
        assert!(command.status().unwrap().success());
    }
}

fn report(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"))
}

/// Name, state and digest of every cell.
fn cells(output: &Output) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let cell = |cell: &Value| {
        let outputs = cell["outputs"].as_object().unwrap();
        let digests: Vec<String> = outputs.values().map(|output| text(&output["digest"])).collect();
        (text(&cell["cell"]), text(&cell["state"]), digests.concat())
    };
    report(output)["cells"].as_array().unwrap().iter().map(cell).collect()
}

fn digests(output: &Output) -> Vec<(String, String)> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    cells(output).into_iter().map(|(cell, _, digest)| (cell, digest)).collect()
}

/// The log of a cell.
fn logged(lab: &Lab, output: &Output, cell: &str) -> String {
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cell = report["cells"].as_array().unwrap().iter().find(|found| found["cell"] == cell).unwrap();
    std::fs::read_to_string(lab.sandbox.path().join(cell["log"].as_str().unwrap())).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_sweep_through_sbatch_gives_the_same_digests() {
    if !system_tests() {
        return;
    }
    let lab = Lab::new();
    let seeds = ["-p", "seeds=1..50"];
    let alone = digests(&lab.run("", &[&seeds[..], &["--store", "alone"]].concat()).output().unwrap());
    let output = lab.run("sbatch -N 1 -n 1 --time 10", &seeds).output().unwrap();
    assert_eq!(digests(&output), alone);
    assert_eq!(lab.jobs().len(), 51);
    let left = std::fs::read_dir(lab.sandbox.path().join(".hopmap/jobs")).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn a_node_that_fails_a_controller_that_restarts_and_a_run_that_is_killed_change_no_result() {
    if !system_tests() {
        return;
    }
    let lab = Lab::new();
    let seeds = ["-p", "seeds=1..8"];
    let alone = digests(&lab.run("", &[&seeds[..], &["--store", "alone"]].concat()).output().unwrap());
    // No job ends before everything has gone wrong.
    lab.sandbox.write("hold", "");
    let held = "while test -e hold; do sleep 0.1; done; exec \"$0\" \"$@\"";
    let launcher = &format!("sbatch -N 1 -n 1 sh -c '{held}'");
    let mut run = lab.run(launcher, &seeds).spawn().unwrap();
    lab.wait_for(3, "RUNNING", &mut run);
    // A node goes down with what runs there.
    let (_, _, node) = lab.jobs().into_iter().find(|(_, state, _)| state == "RUNNING").unwrap();
    assert!(NODES.contains(&node.as_str()));
    lab.kill("KILL", &format!("{node}.pid"));
    lab.slurm("scontrol", &["update", &format!("nodename={node}"), "state=down", "reason=test"]);
    lab.wait_for(1, "NODE_FAIL", &mut run);
    // The controller is away for a while.
    lab.kill("TERM", "slurmctld.pid");
    std::thread::sleep(Duration::from_secs(2));
    lab.start_controller();
    // The run is killed; its jobs go on.
    run.kill().unwrap();
    run.wait().unwrap();
    let known = lab.jobs().len();
    std::fs::remove_file(lab.sandbox.path().join("hold")).unwrap();
    let output = lab.run(launcher, &seeds).output().unwrap();
    assert_eq!(digests(&output), alone, "{}", said(&output));
    // Nothing was submitted twice but what the node had.
    assert!(known <= 8 + 4, "{:?}", lab.jobs());
    assert!(lab.jobs().len() <= 9 + 4, "{:?}", lab.jobs());
}

#[test]
fn a_process_in_the_foreground_that_loses_its_node_is_started_on_another() {
    if !system_tests() {
        return;
    }
    let lab = Lab::new();
    // Only the stage that is one process has the launcher.
    lab.sandbox.edit("p.toml", "launcher = \"${params.launcher}\"\nthreads", "threads");
    let one = ["-p", "seeds=1..1"];
    let alone = digests(&lab.run("", &[&one[..], &["--store", "alone"]].concat()).output().unwrap());
    let first_waits = "test -e begun || { touch begun; sleep 300; }; exec \"$0\" \"$@\"";
    let launcher = format!("srun -n 1 sh -c '{first_waits}'");
    let mut run = lab.run(&launcher, &one).spawn().unwrap();
    lab.wait_for(1, "RUNNING", &mut run);
    while !lab.sandbox.path().join("begun").exists() {
        assert!(run.try_wait().unwrap().is_none(), "the run has ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    let (_, _, node) = lab.jobs().remove(0);
    lab.kill("KILL", &format!("{node}.pid"));
    lab.slurm("scontrol", &["update", &format!("nodename={node}"), "state=down", "reason=test"]);
    let output = run.wait_with_output().unwrap();
    assert_eq!(digests(&output), alone);
    let log = logged(&lab, &output, "quality");
    assert!(log.contains("was lost: its node failed; retry 1 of 2"), "{log}");
    let jobs = lab.jobs();
    assert_eq!(jobs.len(), 2, "{jobs:?}");
    assert!(jobs.iter().any(|(_, state, other)| state == "COMPLETED" && *other != node), "{jobs:?}");
}

#[test]
fn jobs_that_end_without_a_result_say_why() {
    if !system_tests() {
        return;
    }
    let lab = Lab::new();
    let one = ["-p", "seeds=1..1", "-p", ENDLESS, "--quiet"];
    let complaint = |output: Output| {
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let text = said(&output).replace(lab.sandbox.path().to_str().unwrap(), "HERE");
        let runs: Vec<&str> = text.split('/').filter(|part| part.starts_with("20")).collect();
        runs.iter().fold(text.clone(), |text, run| text.replace(run, "RUN"))
    };
    // Somebody cancels it.
    let mut run = lab.run("sbatch -n 1", &one).spawn().unwrap();
    lab.wait_for(1, "RUNNING", &mut run);
    lab.slurm("scancel", &["1"]);
    let cancelled = complaint(run.wait_with_output().unwrap());
    assert!(cancelled.contains("job 1 of `sbatch -n 1` on n1 was cancelled"), "{cancelled}");
    assert!(cancelled.contains("placement[seed=1].1.log"), "{cancelled}");
    // It asks for what there is not.
    let nowhere = lab.run("sbatch -n 1 -p nowhere", &one).output().unwrap();
    insta::assert_snapshot!(complaint(nowhere), @r"
    error[engine::refused]: stage `placement` (p.toml:19)
      `-> sbatch: error: invalid partition specified: nowhere; sbatch: error: Batch job submission failed: Invalid partition name specified
      help: `launcher` has the options of sbatch; `sinfo` shows the partitions and their limits
    ");
    // It asks for a cluster that would not be looked at.
    let elsewhere = lab.run("sbatch -n 1 -M other", &one).output().unwrap();
    insta::assert_snapshot!(complaint(elsewhere), @r"
    error[engine::refused]: stage `placement` (p.toml:19)
      `-> `-M` names another cluster, and hopmap asks after its jobs in the one it is in
      help: run hopmap where that cluster is the default one
    ");
    // What runs in it fails.
    let failed = lab.run("sbatch -n 1 sh -c 'echo no licence; exit 3'", &one).output().unwrap();
    insta::assert_snapshot!(complaint(failed), @r"
    error[engine::job_failure]: stage `placement` (p.toml:19)
      `-> job 2 of `sbatch -n 1 sh -c 'echo no licence; exit 3'` on n1 ended without a result: exit status 3
            no licence
          log: HERE/.hopmap/runs/RUN/jobs/placement[seed=1].1.log
      help: its script is next to its log and can be submitted by hand
    ");
    // The stage itself fails, and is not tried again.
    lab.sandbox.edit("p.toml", "tree:2x4x4", "tree:2x2x2");
    insta::assert_snapshot!(complaint(lab.run("sbatch -n 1", &one).output().unwrap()), @r"
    error[objective::invalid]: stage `placement` (p.toml:19)
      |-> job 3 of `sbatch -n 1` on n1
      `-> 32 ranks do not fit on 8 slots
      help: every rank needs one slot: use a machine with at least 32 slots, or a smaller program
    ");
    assert_eq!(lab.jobs().len(), 3);
}

/// A search with a budget in seconds beside one without, both for as long as anybody waits.
fn with_and_without_a_budget(lab: &Lab) {
    let stages = PIPELINE.split("[stages.placement]").next().unwrap();
    let search = |name: &str, budget: &str| {
        let needs = "needs = { task-graph = \"program\", system = \"machine\" }";
        format!(
            "[stages.{name}]\nuses = \"map/annealing\"\nwith = {{ {budget} }}\n{needs}\n\
             launcher = \"${{params.launcher}}\"\nthreads = 1\nretries = 3\n\n"
        )
    };
    let endless = search("endless", &ENDLESS.replace('=', " = "));
    lab.sandbox.write("p.toml", format!("{stages}{}{endless}", search("timed", "time_limit_s = 600")));
}

/// Waits until `count` jobs have begun an attempt at a search that has saved its state.
fn wait_for_searches(lab: &Lab, count: usize, attempt: u32, run: &mut Child) {
    lab.wait_for(count, "RUNNING", run);
    let states = || std::fs::read_dir(lab.sandbox.path().join(".hopmap/states")).map_or(0, Iterator::count);
    let work = lab.sandbox.path().join(".hopmap/jobs");
    let begun = || {
        let jobs = std::fs::read_dir(&work).into_iter().flatten().flatten();
        jobs.filter(|job| job.path().join(format!("{attempt}/begun")).exists()).count()
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    while begun() < count || states() < count {
        assert!(Instant::now() < deadline, "{} have begun, {} have saved", begun(), states());
        assert!(run.try_wait().unwrap().is_none(), "the run has ended");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn searches_with_and_without_a_budget_end_as_their_jobs_do() {
    if !system_tests() {
        return;
    }
    let lab = Lab::new();
    with_and_without_a_budget(&lab);
    let start = |launcher: &str| lab.run(launcher, &[]).spawn().unwrap();
    let running = || lab.jobs().into_iter().filter(|(_, state, _)| state == "RUNNING");

    // Somebody cancels both, and that is their end.
    let mut run = start("sbatch -n 1");
    wait_for_searches(&lab, 2, 1, &mut run);
    lab.slurm("scancel", &["1", "2"]);
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    for cell in ["timed", "endless"] {
        let log = logged(&lab, &output, cell);
        assert!(log.contains("was cancelled"), "{log}");
        assert!(log.contains("the state of the search is saved"), "{log}");
    }

    // Their memory does not suffice. Only cgroups, which are not ours here, let Slurm itself say so.
    let squeue = lab.sandbox.path().join("bin/squeue");
    lab.sandbox.write("bin/squeue", "#!/bin/sh\n/usr/bin/squeue \"$@\" | sed s/FAILED/OUT_OF_MEMORY/\n");
    std::fs::set_permissions(&squeue, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", squeue.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = lab.run("sbatch -n 1 sh -c 'kill -KILL $$'", &[]).env("PATH", path).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    for cell in ["timed", "endless"] {
        let log = logged(&lab, &output, cell);
        assert!(log.contains("ran out of memory"), "{log}");
        assert!(log.contains("--mem in `launcher`"), "{log}");
    }

    // Their nodes are set down while nothing of theirs is broken, and what is more urgent takes their place.
    let mut run = start("sbatch -n 1");
    wait_for_searches(&lab, 2, 1, &mut run);
    for (_, _, node) in running() {
        lab.slurm("scontrol", &["update", &format!("nodename={node}"), "state=down", "reason=test"]);
    }
    lab.wait_for(2, "NODE_FAIL", &mut run);
    wait_for_searches(&lab, 2, 2, &mut run);
    for (_, _, node) in running() {
        lab.slurm(
            "sbatch",
            &["-p", "urgent", "-w", &node, "--exclusive", "-o", "/dev/null", "--wrap", "sleep 1"],
        );
    }
    lab.wait_for(2, "PREEMPTED", &mut run);
    wait_for_searches(&lab, 2, 3, &mut run);
    // Slurm warns them that their time is nearly over, as `--signal=B:TERM@30` does: one has its result, the other goes on.
    for (job, ..) in running() {
        lab.slurm("scancel", &["--batch", "--signal=TERM", &job]);
    }
    while std::fs::read_dir(lab.sandbox.path().join(".hopmap/jobs")).unwrap().count() > 1 {
        assert!(run.try_wait().unwrap().is_none(), "the run has ended");
        std::thread::sleep(Duration::from_millis(50));
    }
    wait_for_searches(&lab, 1, 4, &mut run);
    hopmap_test_support::signal(run.id(), "INT");
    let output = run.wait_with_output().unwrap();
    for cell in ["timed", "endless"] {
        let log = logged(&lab, &output, cell);
        assert!(log.contains("was lost: its node failed; retry 1 of 3"), "{log}");
        assert!(log.contains("was preempted; retry 2 of 3"), "{log}");
        assert!(log.contains("resumes an interrupted search after epoch"), "{log}");
    }
    let log = logged(&lab, &output, "timed");
    assert!(log.contains("its job reached the time limit: this is the best so far"), "{log}");
    let log = logged(&lab, &output, "endless");
    assert!(log.contains("reached its time limit; retry 3 of 3"), "{log}");
    let states: Vec<String> = cells(&output).into_iter().map(|(_, state, _)| state).collect();
    assert_eq!(states.iter().filter(|state| *state == "partial").count(), 2, "{states:?}");
}

#[test]
fn an_interrupt_brings_the_best_of_jobs_that_run_and_cancels_those_that_wait() {
    if !system_tests() {
        return;
    }
    let lab = Lab::new();
    // All cores of a node each: four run, two wait.
    let launcher = "sbatch -n 1 --exclusive";
    let mut run = lab.run(launcher, &["-p", "seeds=1..6", "-p", ENDLESS]).spawn().unwrap();
    lab.wait_for(4, "RUNNING", &mut run);
    lab.wait_for(2, "PENDING", &mut run);
    let work = lab.sandbox.path().join(".hopmap/jobs");
    let begun = || {
        let tasks = std::fs::read_dir(&work).into_iter().flatten().flatten();
        tasks.filter(|task| task.path().join("1/begun").exists()).count()
    };
    while begun() < 4 {
        std::thread::sleep(Duration::from_millis(50));
    }
    hopmap_test_support::signal(run.id(), "INT");
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    let states: Vec<String> = cells(&output).into_iter().map(|(_, state, _)| state).collect();
    assert_eq!(states.iter().filter(|state| *state == "partial").count(), 4, "{states:?}");
    let open =
        lab.jobs().into_iter().filter(|(_, state, _)| ["RUNNING", "PENDING"].contains(&state.as_str()));
    assert_eq!(open.count(), 0);
}

#[test]
fn a_job_that_runs_out_of_time_goes_on_in_the_next() {
    if !system_tests() || !only_in_a_soak() {
        return;
    }
    let lab = Lab::new();
    // One that hears nothing is ended by Slurm; its time is a minute and as long again until Slurm looks.
    let deaf = lab
        .run("sbatch -n 1 --time 1 sh -c 'sleep 1000'", &["-p", "seeds=1..1", "--quiet"])
        .output()
        .unwrap();
    assert_eq!(deaf.status.code(), Some(1));
    assert!(said(&deaf).contains("reached its time limit of 1m"), "{}", said(&deaf));
    // A search delivers what it has before its time is over, and goes on with that in another job.
    lab.sandbox.edit("p.toml", "threads  = 1\n", "threads  = 1\nretries  = 9\n");
    lab.sandbox.edit("p.toml", "map/tabu", "map/annealing");
    let long = ["-p", "seeds=1..1", "-p", "evaluations=200000000"];
    let output = lab.run("sbatch -n 1 --time 1", &long).output().unwrap();
    let retries = logged(&lab, &output, "placement[seed=1]");
    assert!(retries.contains("retry 1 of 9"), "{retries}{}", said(&output));
    let alone = lab.run("", &[&long[..], &["--store", "alone"]].concat()).output().unwrap();
    assert_eq!(digests(&output), digests(&alone));
}
