//! `launch/check` and `hopmap where` with real launchers: what launch files say happens, and a launcher that ignores them is stopped.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use hopmap_mpi_environment::AS_ROOT;
use hopmap_test_network::{Description, Network};
use hopmap_test_support::{Cluster, system_tests};

use crate::sandbox::Sandbox;

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

    let hydra = format!("mpiexec.hydra -launcher rsh -launcher-exec {}", lab.agent);
    // A later `-launcher ssh` of the command would win.
    let hydra = script(&lab.sandbox, "hydra", &format!("shift 2\nexec {hydra} \"$@\""));
    passes(&mut lab.check("launch = \"mpich\"", RANDOM, &launcher(&hydra)));
    passes(&mut lab.check("launch = \"mpich\", bind = true", "map/linear", &launcher(&hydra)));

    let drops = format!(
        "for word; do shift; case $word in --rankfile) drop=1;; *) [ \"$drop\" ] && drop= || set -- \"$@\" \"$word\";; esac; done\n\
         exec {} --host h0:2,h1:2,h2:2 \"$@\"",
        lab.mpirun()
    );
    let drops = script(&lab.sandbox, "drops", &drops);
    let output = lab.check("launch = \"open-mpi-4\"", "map/linear", &launcher(&drops)).output().unwrap();
    let message = message(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("not on `h2`: line 2 of rankfile was not obeyed: `rank 0=h2 slot=0`"),
        "{message}"
    );
}

#[test]
fn slurm_obeys_inside_and_outside_of_a_job_and_other_distributions_are_found() {
    if !system_tests() {
        return;
    }
    let cluster = Cluster::start();
    let sandbox = Sandbox::new();
    let run = |launch: &str, check: &str| {
        sandbox.write("p.toml", pipeline("n[3,1,2]", launch, RANDOM, check));
        let mut command = sandbox.command(&["run", "p.toml", "--no-report"]);
        command.env("SLURM_CONF", cluster.configuration()).envs(AS_ROOT);
        command
    };
    passes(&mut run("launch = \"slurm\"", ""));
    // `salloc` would read the host file as well.
    let job = "file=$SLURM_HOSTFILE\nunset SLURM_HOSTFILE\nexec salloc -Q -N 4 -n 16 env SLURM_HOSTFILE=\"$file\" srun \"$@\"";
    let job = script(&sandbox, "job", job);
    passes(&mut run("launch = \"slurm\"", &format!("launcher = \"{job}\"")));
    // Nodes of the cluster are names of one machine: their cores are not those of the mapping.
    passes(&mut run("launch = \"open-mpi-4\"", "launcher = \"salloc -Q -N 4 -n 16 mpirun\""));
    let blocks = script(&sandbox, "blocks", "shift 2\nunset SLURM_HOSTFILE\nexec srun -N 3 -m block \"$@\"");
    let output = run("launch = \"slurm\"", &format!("launcher = \"{blocks}\"")).output().unwrap();
    let message = message(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("of slurm-hostfile was not obeyed: `n"), "{message}");
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
    if !system_tests() || !cfg!(feature = "mpi") {
        return;
    }
    let program = assert_cmd::cargo::cargo_bin!("hopmap").with_file_name("hopmap-ranks");
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "-n", "2"]).arg(program).arg("--where").envs(AS_ROOT);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut ranks: Vec<&str> = text.lines().filter_map(|line| line.split(" on ").next()).collect();
    ranks.sort_unstable();
    assert_eq!(ranks, ["rank 0", "rank 1"], "{text}");
}
