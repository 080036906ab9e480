//! `launch/check` and `hopmap where` with real launchers: what launch files say happens, and a launcher that ignores them is stopped.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use hopmap_mpi_environment::AS_ROOT;
use hopmap_test_network::{Description, Network};
use hopmap_test_support::{Cluster, system_tests};

use crate::sandbox::{Sandbox, ranks_program};

/// A mapping of ranks in random order to hosts, and its launch file.
fn pipeline(hosts: &str, launch: &str, mapper: &str, check: &str) -> String {
    format!(
        r#"
[stages.program]
uses = "instance/stencil"
with = {{ shape = "3x2", bytes = 8 }}
[stages.machine]
uses = "topology/synthetic"
with = {{ shape = "tree:2x3", hosts = "{hosts}" }}
[stages.placement]
uses = "{mapper}"
needs = {{ task-graph = "program", system = "machine" }}
[stages.file]
uses = "launch/file"
needs = {{ mapping = "placement" }}
with = {{ {launch} }}
[stages.check]
uses = "launch/check"
needs = {{ mapping = "placement", launch = "file" }}
with = {{ {check} }}
save = {{ places = "places.csv" }}
"#
    )
}

const RANDOM: &str = "map/random";

/// A rank of MPI that says what `hopmap where` says of it.
const RANK: &str = r#"#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    int rank;
    MPI_Init(0, 0);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank %d on %s, cores 0 of 1\n", rank, getenv("SLURMD_NODENAME"));
    MPI_Finalize();
}
"#;

/// Makes Open MPI 4 start ranks as if there were no rank file.
const NO_RANK_FILES: &str =
    "env = { OMPI_MCA_rmaps = \"^rank_file\", OMPI_MCA_rmaps_base_oversubscribe = \"1\" }";

/// Makes a script in place of a launcher, and returns its path.
fn script(sandbox: &Sandbox, name: &str, text: &str) -> String {
    sandbox.write(name, format!("#!/bin/sh\n{text}\n"));
    let path = sandbox.path().join(name);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn message(output: &Output) -> String {
    // Lines of a message are wrapped.
    let text = String::from_utf8_lossy(&output.stderr).replace("│", " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn passes(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", message(&output));
}

/// The check stops the pipeline with a message.
fn fails(command: &mut Command, expected: &str) {
    let output = command.output().unwrap();
    let message = message(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains(expected), "{message}");
}

/// Commands of hopmap on the second host of a network, which is not the first one of any mapping.
struct Lab {
    sandbox: Sandbox,
    network: Network,
    agent: String,
}

impl Lab {
    fn new() -> Self {
        let network = Network::start(&Description::tree(&[3], &[200e-6])).unwrap();
        let sandbox = Sandbox::new();
        let program = assert_cmd::cargo::cargo_bin!("hopmap").with_file_name("hopmap-test-network");
        let agent = script(&sandbox, "agent", &format!("exec '{}' on \"$@\"", program.display()));
        Self { sandbox, network, agent }
    }

    fn check(&self, launch: &str, mapper: &str, check: &str) -> Command {
        self.sandbox.write("p.toml", pipeline("h[2,0,1]", launch, mapper, check));
        let hopmap = assert_cmd::cargo::cargo_bin!("hopmap");
        let mut command = self.network.command(1, hopmap);
        command.args(["run", "p.toml", "--no-report"]).current_dir(self.sandbox.path()).envs(AS_ROOT);
        command
    }

    fn mpirun(&self) -> String {
        format!("mpirun --mca plm_rsh_agent {} --mca oob_tcp_if_include 10.77.0.0/24", self.agent)
    }
}

#[test]
fn open_mpi_and_hydra_obey_on_every_host_and_a_launcher_that_drops_the_file_is_stopped() {
    if !system_tests() {
        return;
    }
    let lab = Lab::new();
    let launcher = |launcher: &str| format!("launcher = \"{launcher}\"");
    passes(&mut lab.check("launch = \"open-mpi-4\"", RANDOM, &launcher(&lab.mpirun())));
    let places = lab.sandbox.read("places.csv");
    assert_eq!(places.lines().count(), 7, "{places}");

    let hydra = |name: &str, options: &str| {
        // Hydra takes `-launcher` once: this one replaces that of the command.
        let start = format!("exec mpiexec.hydra -launcher rsh -launcher-exec {}", lab.agent);
        launcher(&script(&lab.sandbox, name, &format!("shift 2\n{start} {options} \"$@\"")))
    };
    let obeys = hydra("hydra", "");
    passes(&mut lab.check("launch = \"mpich\"", RANDOM, &obeys));
    passes(&mut lab.check("launch = \"mpich\", bind = true", "map/linear", &obeys));

    let drops = format!(
        "for word; do shift; case $word in --rankfile) drop=1;; *) [ \"$drop\" ] && drop= || set -- \"$@\" \"$word\";; esac; done\n\
         exec {} --host h0:2,h1:2,h2:2 \"$@\"",
        lab.mpirun()
    );
    let drops = script(&lab.sandbox, "drops", &drops);
    let first = "not on `h2`: line 2 of rankfile was not obeyed: `rank 0=h2 slot=0`";
    fails(&mut lab.check("launch = \"open-mpi-4\"", "map/linear", &launcher(&drops)), first);
    let variable = format!("{}, {NO_RANK_FILES}", launcher(&lab.mpirun()));
    fails(&mut lab.check("launch = \"open-mpi-4\"", "map/linear", &variable), first);
    let second = "rank 1 runs on `h0`, not on `h2`: line 3 of machinefile was not obeyed: `h2`";
    fails(&mut lab.check("launch = \"mpich\"", "map/linear", &hydra("ppn", "-ppn 1")), second);
}

/// A pipeline on the emulated cluster, whose nodes are names of one machine: all have its cores.
struct Jobs {
    cluster: Cluster,
    sandbox: Sandbox,
}

impl Jobs {
    fn start() -> Self {
        Self { cluster: Cluster::start(), sandbox: Sandbox::new() }
    }

    fn check(&self, hosts: &str, launch: &str, check: &str) -> Command {
        self.sandbox.write("p.toml", pipeline(hosts, launch, RANDOM, check));
        let mut command = self.sandbox.command(&["run", "p.toml", "--no-report"]);
        command.env("SLURM_CONF", self.cluster.configuration()).envs(AS_ROOT);
        command
    }
}

const HOSTS: &str = "n[3,1,2]";
const SLURM: &str = "launch = \"slurm\"";
const OPEN_MPI: &str = "launch = \"open-mpi-4\"";
const IN_A_JOB: &str = "launcher = \"salloc -Q -N 4 -n 16 mpirun\"";

#[test]
fn launchers_of_slurm_jobs_obey_and_nodes_are_known_by_their_names() {
    if !system_tests() {
        return;
    }
    let jobs = Jobs::start();
    passes(&mut jobs.check(HOSTS, SLURM, ""));
    // `salloc` would read the host file as well.
    let job = "file=$SLURM_HOSTFILE\nunset SLURM_HOSTFILE\nexec salloc -Q -N 4 -n 16 env SLURM_HOSTFILE=\"$file\" srun \"$@\"";
    let job = script(&jobs.sandbox, "job", job);
    passes(&mut jobs.check(HOSTS, SLURM, &format!("launcher = \"{job}\"")));
    passes(&mut jobs.check(HOSTS, OPEN_MPI, IN_A_JOB));
    passes(&mut jobs.check("n[3,1,2].cluster", OPEN_MPI, IN_A_JOB));
    let mpich = "launcher = \"srun --mpi=pmi2\"";
    passes(&mut jobs.check(HOSTS, SLURM, mpich));
    jobs.sandbox.write("rank.c", RANK);
    let rank = jobs.sandbox.path().join("rank");
    let compiler = Command::new("mpicc.mpich").arg("-o").arg(&rank).arg(rank.with_extension("c")).status();
    assert!(compiler.unwrap().success());
    passes(&mut jobs.check(HOSTS, SLURM, &format!("{mpich}, program = \"{}\"", rank.display())));
}

#[test]
fn launchers_of_slurm_jobs_that_ignore_the_file_are_stopped() {
    if !system_tests() {
        return;
    }
    let jobs = Jobs::start();
    let blocks =
        script(&jobs.sandbox, "blocks", "shift 2\nunset SLURM_HOSTFILE\nexec srun -N 3 -m block \"$@\"");
    let disobeyed = "of slurm-hostfile was not obeyed: `n";
    fails(&mut jobs.check(HOSTS, SLURM, &format!("launcher = \"{blocks}\"")), disobeyed);
    jobs.sandbox.write("other", "n1\nn1\nn2\nn2\nn3\nn3\n");
    let other = jobs.sandbox.path().join("other");
    fails(
        &mut jobs.check(HOSTS, SLURM, &format!("env = {{ SLURM_HOSTFILE = \"{}\" }}", other.display())),
        disobeyed,
    );
    fails(
        &mut jobs.check(HOSTS, OPEN_MPI, &format!("{IN_A_JOB}, {NO_RANK_FILES}")),
        "of rankfile was not obeyed: `rank ",
    );
    fails(&mut jobs.check("n[3,1,2].cluster", SLURM, ""), "Invalid node name specified");
    // Without a task plugin Slurm binds no rank, and says so only on standard error.
    fails(&mut jobs.check(HOSTS, SLURM, "cores = true"), "runs on cores ");
}

#[test]
fn where_prints_the_rank_the_host_and_the_cores_of_a_process() {
    let sandbox = Sandbox::new();
    let output =
        sandbox.command(&["where"]).env("SLURMD_NODENAME", "n7").env("PMI_RANK", "3").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("rank 3 on n7, cores "), "{text}");
    assert!(sandbox.stdout(&["where"]).starts_with("no rank on "));
    let json: serde_json::Value = serde_json::from_str(&sandbox.stdout(&["where", "--json"])).unwrap();
    assert!(json["rank"].is_null() && json["cores_of_host"].as_u64() > Some(0), "{json}");
}

#[test]
fn the_rank_of_mpi_is_that_of_the_library() {
    if !system_tests() {
        return;
    }
    let Some(program) = ranks_program() else { return };
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "-n", "2"]).arg(program).arg("--where").envs(AS_ROOT);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut ranks: Vec<&str> = text.lines().filter_map(|line| line.split(" on ").next()).collect();
    ranks.sort_unstable();
    assert_eq!(ranks, ["rank 0", "rank 1"], "{text}");
}
