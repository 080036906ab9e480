//! `hopmap tune` and `hopmap trial` in jobs of a real Slurm, with Open MPI and MPICH. Its nodes are names of one machine, without
//! links between them: no gain is expected.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use hopmap_mpi_environment::AS_ROOT;
use hopmap_test_support::{Cluster, soak, system_tests};

use crate::sandbox::{Sandbox, project};

/// A job of two nodes with two slots each.
struct Job {
    cluster: Cluster,
    sandbox: Sandbox,
}

impl Job {
    fn start() -> Self {
        Self { cluster: Cluster::start(), sandbox: Sandbox::new() }
    }

    /// Compiles the communication patterns by an MPI.
    fn compile(&self, compiler: &str) {
        let source = project().join("ci/bench/patterns.c");
        let status =
            Command::new(compiler).args(["-O2", "-w", "-o"]).arg(self.path("patterns")).arg(source).status();
        assert!(status.unwrap().success());
    }

    fn path(&self, name: &str) -> String {
        self.sandbox.path().join(name).display().to_string()
    }

    /// A command of hopmap in a job.
    fn hopmap(&self, words: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command
            .args(["300", "salloc", "-Q", "--no-kill", "-N", "2", "--ntasks-per-node=2"])
            .arg(assert_cmd::cargo::cargo_bin!("hopmap"));
        command.args(words).current_dir(self.sandbox.path()).envs(AS_ROOT);
        command.env("SLURM_CONF", self.cluster.configuration());
        command.env("XDG_CACHE_HOME", self.path("cache")).env("OMPI_MCA_hwloc_base_binding_policy", "none");
        // The nodes are one machine, on which their shared memory would be one.
        command
            .env("OMPI_MCA_btl", "tcp,self")
            .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
            .env("OMPI_MCA_mpi_yield_when_idle", "1");
        command
    }

    fn tune(&self, out: &str, launch: &[&str], program: &[&str]) -> Output {
        let machine = ["--shape", "tree:2x2", "--latency", "5e-6", "--bandwidth", "1e9"];
        let trial =
            ["--force", "--objectives", "F", "--best", "1", "--precision", "50%", "--deadline", "40s"];
        let words = [&["tune", "--out", out], launch, &machine, &trial, &["--"], program].concat();
        self.hopmap(&words).output().unwrap()
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_job_tunes_a_program_and_its_launcher_is_checked() {
    if !system_tests() {
        return;
    }
    let job = Job::start();
    for (launch, launcher, compiler) in
        [("open-mpi-4", "mpirun.openmpi", "mpicc.openmpi"), ("slurm", "srun --mpi=pmi2", "mpicc.mpich")]
    {
        job.compile(compiler);
        let launch = ["--launch", launch, "--launcher", launcher, "--time-after", "time "];
        let seen =
            text(&job.tune(launch[1], &launch, &["./patterns", "stencil", "1000", "2", "1000", "shuffled"]));
        assert!(seen.contains(" pair"), "{seen}");
        let places = job.sandbox.read(&format!("{}/default.hosts", launch[1]));
        assert_eq!(places.lines().skip(1).map(str::to_owned).collect::<Vec<_>>().len(), 4, "{places}");
        assert!(seen.contains("ran        check"), "{seen}");
    }
}

/// A placement under which the program fails is given up; what was measured stays, and the launch file is that of the default placement.
#[test]
fn a_program_that_fails_under_a_placement_keeps_the_default_one() {
    if !system_tests() {
        return;
    }
    let job = Job::start();
    job.compile("mpicc.mpich");
    // Rank 1 starts on the first node only; its partner is on the other one.
    let picky =
        "#!/bin/sh\n[ $SLURM_PROCID = 1 ] && [ $SLURMD_NODENAME != n1 ] && exit 7\nexec ./patterns \"$@\"\n";
    job.sandbox.write("picky", picky);
    std::fs::set_permissions(job.path("picky"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let launch = [
        "--launch",
        "slurm",
        "--launcher",
        "srun --mpi=pmi2 --kill-on-bad-exit",
        "--time-after",
        "time ",
        "--mpicc",
        "mpicc.mpich",
    ];
    let seen = text(&job.tune("out", &launch, &["./picky", "stencil", "1000", "2", "1000", "shuffled"]));
    assert!(seen.contains("task 1: Exited with exit code 7"), "{seen}");
    assert!(seen.contains("default: median ") && seen.contains("ran        check"), "{seen}");
    assert!(job.sandbox.read("out/rankfile").lines().skip(1).eq(["n1", "n1", "n2", "n2"]), "{seen}");
}

/// With `HOPMAP_SOAK=1`, because Slurm takes a minute to notice.
#[test]
fn a_node_that_dies_ends_the_trial_and_keeps_what_was_measured() {
    if !system_tests() || !soak() {
        return;
    }
    let job = Job::start();
    job.compile("mpicc.mpich");
    let machine = [
        "--shape",
        "tree:2x2",
        "--latency",
        "5e-6",
        "--bandwidth",
        "1e9",
        "--force",
        "--objectives",
        "F",
        "--best",
        "1",
    ];
    let launch = [
        "tune",
        "--launch",
        "slurm",
        "--launcher",
        "srun --mpi=pmi2",
        "--time-after",
        "time ",
        "--precision",
        "0.001%",
    ];
    let program = ["--", "./patterns", "stencil", "1000", "20", "20000", "shuffled"];
    let mut command = job.hopmap(&[&launch[..], &machine, &program].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_secs(20));
    let slurmd = format!("slurmd -f {} -N n2", job.cluster.configuration().display());
    assert!(Command::new("pkill").args(["-9", "-f", &slurmd]).status().unwrap().success());
    let seen = text(&child.wait_with_output().unwrap());
    assert!(seen.contains("pairs"), "{seen}");
}

/// Said that the folder of the other tasks was used, or recorded the first one alone.
#[test]
fn a_step_without_pmi_is_no_recording() {
    if !system_tests() {
        return;
    }
    let job = Job::start();
    let hopmap = assert_cmd::cargo::cargo_bin!("hopmap");
    let mut command = Command::new("timeout");
    command
        .args(["60", "srun", "-N2", "-n4", "--mpi=none"])
        .arg(hopmap)
        .args(["record", "-o", "out", "true"]);
    command.current_dir(job.sandbox.path()).env("SLURM_CONF", job.cluster.configuration());
    let output = command.output().unwrap();
    let seen = text(&output);
    assert!(!output.status.success() && seen.contains("srun has started 4 tasks without PMI"), "{seen}");
    assert!(!job.sandbox.path().join("out").exists(), "{seen}");
}

/// Jobs of starts that waited for a node stayed in the queue, and took the node when it returned.
#[test]
fn a_refresh_with_a_node_down_leaves_no_job_in_the_queue() {
    if !system_tests() {
        return;
    }
    let job = Job::start();
    let slurm = |program: &str, arguments: &[&str]| {
        let output = Command::new(program)
            .args(arguments)
            .env("SLURM_CONF", job.cluster.configuration())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    slurm("scontrol", &["update", "nodename=n3", "state=down", "reason=test"]);
    let hopmap = assert_cmd::cargo::cargo_bin!("hopmap");
    let start = format!("start=srun -Q -N1 -n1 -w {{host}} '{}' agent", hopmap.display());
    let refresh = ["topology", "refresh", "-p", "hosts=n[1-3]", "-p", &start, "-p", "inside=false"];
    let mut command = Command::new("timeout");
    command.arg("120").arg(hopmap).args(refresh).args(["-p", "bandwidth=none", "--publish", "machine"]);
    command.current_dir(job.sandbox.path()).env("SLURM_CONF", job.cluster.configuration());
    let seen = text(&command.output().unwrap());
    assert!(seen.contains("3 hosts, 1 down"), "{seen}");
    assert_eq!(slurm("squeue", &["--noheader"]), "", "{seen}");
}

/// With `HOPMAP_SOAK=1`, because no job is shorter than a minute. It ended as a success.
#[test]
fn a_job_that_ends_stops_the_trial_early() {
    if !system_tests() || !soak() {
        return;
    }
    let job = Job::start();
    job.compile("mpicc.mpich");
    let machine = ["--shape", "tree:2x2", "--latency", "5e-6", "--bandwidth", "1e9"];
    let trial =
        ["--force", "--objectives", "F", "--best", "1", "--precision", "0.001%", "--time-after", "time "];
    let launch = ["tune", "--launch", "slurm", "--launcher", "srun --mpi=pmi2"];
    let program = ["--", "./patterns", "stencil", "1000", "20", "20000", "shuffled"];
    let mut command = job.hopmap(&[&launch[..], &machine, &trial, &program].concat());
    command.env("SALLOC_TIMELIMIT", "1");
    let output = command.output().unwrap();
    let seen = text(&output);
    assert!(seen.contains("stopped early, because the job ends"), "{seen}");
    assert!(seen.contains(" pairs") && !seen.contains("failed in"), "{seen}");
    assert_eq!(output.status.code(), Some(130), "{seen}");
}
