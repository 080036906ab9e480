//! The pipeline `graphhunter`: from measured hosts and a trace to a machinefile, in a job.

use std::process::{Command, Output};

use hopmap_test_network::{Description, Network};
use hopmap_test_support::{Cluster, system_tests};
use serde_json::Value;

use crate::sandbox::{Sandbox, project};

/// Arguments that run the pipeline as it is shipped, with results in the sandbox.
fn arguments(sandbox: &Sandbox, more: &[&str]) -> Vec<String> {
    let file = project().join("pipelines/graphhunter.toml").display().to_string();
    let out = format!("out={}", sandbox.path().join("out").display());
    let same = ["run", &file, "--store", "store", "--json", "--no-report", "-p", &out];
    let more = more.iter().flat_map(|&parameter| ["-p", parameter]);
    same.into_iter().chain(more).map(str::to_owned).collect()
}

/// Runs the pipeline with the binary on the path, as the agents are started.
fn run(sandbox: &Sandbox, more: &[&str]) -> Output {
    let folder = assert_cmd::cargo::cargo_bin!("hopmap").parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let arguments = arguments(sandbox, more);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    sandbox.command(&arguments).env("PATH", path).env_remove("SLURM_JOB_NODELIST").output().unwrap()
}

/// The metrics of the placement from the output of `--json`; its log has the weight that they give.
fn metrics(printed: &[u8]) -> Value {
    let report: Value = serde_json::from_slice(printed).unwrap();
    let cells = report["cells"].as_array().unwrap();
    let placement = cells.iter().find(|cell| cell["stage"] == "placement").unwrap();
    let metrics = &placement["outputs"]["mapping"]["metrics"];
    let log = std::fs::read_to_string(placement["log"].as_str().unwrap()).unwrap();
    let latency = metrics["latency_s"].as_f64().unwrap();
    assert!(log.contains(&format!("L·N + D/S with L = {latency:.3e} s")), "{log}");
    metrics.clone()
}

fn done(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    metrics(&output.stdout)
}

/// The host of every rank, by the machinefile.
fn placed(sandbox: &Sandbox) -> Vec<String> {
    let text = sandbox.read("out/machinefile");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split(':').next().unwrap().to_owned()).collect()
}

#[test]
fn the_chain_runs_from_what_is_shipped_with_each_algorithm() {
    for mapper in ["annealing", "genetic", "composite"] {
        let sandbox = Sandbox::new();
        let output = run(&sandbox, &[&format!("mapper={mapper}"), "sizes=[1, 65536]"]);
        let metrics = done(&output);
        let (latency, bandwidth) =
            (metrics["latency_s"].as_f64().unwrap(), metrics["bandwidth_bytes_per_s"].as_f64().unwrap());
        assert!(latency > 1e-7 && latency < 1.0 && bandwidth > 1e5, "{latency} {bandwidth}");
        let mut hosts = placed(&sandbox);
        hosts.sort();
        assert_eq!(hosts, ["here1", "here2", "here3", "here4"]);
    }
}

#[test]
fn a_machine_without_latencies_ends_in_one_error() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "p.toml",
        "[stages.program]\nuses = \"instance/stencil\"\nwith = { shape = \"2x2\" }\n\
         [stages.machine]\nuses = \"topology/synthetic\"\nwith = { shape = \"tree:2x2\" }\n\
         [stages.placement]\nuses = \"map/annealing\"\nwith = { weight = \"time\" }\n\
         needs = { task-graph = \"program\", system = \"machine\" }\n",
    );
    let said = String::from_utf8(sandbox.output(&["run", "p.toml"]).stderr).unwrap();
    let error = said.lines().skip_while(|line| !line.starts_with("error")).take(3);
    insta::assert_snapshot!(error.collect::<Vec<_>>().join("\n"), @r"
    error[model::unknown_speed]: stage `placement` (p.toml:9)
      `-> weight `time` needs the latency between hosts, which the machine topology does not contain
      help: give `weight = { time = { latency_s = 1e-6, bandwidth_bytes_per_s = 1e10 } }`, or use a machine topology with link latencies and bandwidths, which topology/probe measures between at least two hosts
    ");
    let given = "weight = { time = { latency_s = 1e-6, bandwidth_bytes_per_s = 1e9 } }";
    sandbox.edit("p.toml", "weight = \"time\"", given);
    sandbox.stdout(&["run", "p.toml"]);
}

/// Seconds one way inside a rack and between the two racks of the network, and bytes per second.
const LATENCIES: [f64; 2] = [200e-6, 1000e-6];
const RATE: f64 = 20e6;

/// Ranks in order would have every neighbour in the ring in the other rack.
#[test]
fn the_chain_places_ranks_by_the_latencies_of_a_network() {
    if !system_tests() {
        return;
    }
    let network = Network::start(&Description::tree(&[2, 2], &LATENCIES).with_rate(RATE))
        .unwrap_or_else(|error| panic!("{error}: {error:?}"));
    let hopmap = assert_cmd::cargo::cargo_bin!("hopmap");
    let start = format!(
        "start='{}' on {{host}} '{}' agent --bind 10.77.0.0/24",
        hopmap.with_file_name("hopmap-test-network").display(),
        hopmap.display()
    );
    let mut tries = 0;
    loop {
        tries += 1;
        let sandbox = Sandbox::new();
        let arguments = arguments(&sandbox, &["hosts=h0,h2,h1,h3", &start, "sizes=[1, 65536]"]);
        let output = network.command(0, hopmap).current_dir(sandbox.path()).args(arguments).output().unwrap();
        let metrics = done(&output);
        // What else runs here can only make messages slower. Most pairs are in different racks.
        let ratio = |name: &str, wanted: f64| metrics[name].as_f64().unwrap() / wanted;
        let (latency, bandwidth) = (ratio("latency_s", LATENCIES[1]), ratio("bandwidth_bytes_per_s", RATE));
        if !((0.85..1.15).contains(&latency) && (0.7..1.3).contains(&bandwidth)) && tries < 5 {
            eprintln!("try {tries}: {latency} of the latency, {bandwidth} of the bandwidth");
            continue;
        }
        assert!((0.85..1.15).contains(&latency), "{latency}");
        assert!((0.7..1.3).contains(&bandwidth), "{bandwidth}");
        let hosts = placed(&sandbox);
        let rack = |rank: usize| hosts[rank % 4] == "h0" || hosts[rank % 4] == "h1";
        let crossings = (0..4).filter(|&rank| rack(rank) != rack(rank + 1)).count();
        assert_eq!(crossings, 2, "{hosts:?}");
        return;
    }
}

/// What the job measured is where its program starts.
#[test]
fn a_job_measures_its_nodes_and_starts_its_program_with_the_mapping() {
    if !system_tests() {
        return;
    }
    let cluster = Cluster::start();
    let sandbox = Sandbox::new();
    let hopmap = assert_cmd::cargo::cargo_bin!("hopmap").display().to_string();
    let agent = format!(
        "start=timeout 60 srun -w {{host}} -N 1 -n 1 -c 4 --overlap '{hopmap}' agent --bind 127.0.0.1 --name {{host}}"
    );
    let arguments = arguments(&sandbox, &["hosts=", &agent, "sizes=[1, 65536]"]);
    let command = shlex::try_join(arguments.iter().map(String::as_str)).unwrap();
    sandbox.write(
        "job.sh",
        format!(
            "#!/bin/bash\n#SBATCH --nodes=4 --ntasks=16\n'{hopmap}' {command} > said || exit\n\
             SLURM_HOSTFILE=out/hosts srun -n 4 -m arbitrary --mpi=none sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME' > ran\n"
        ),
    );
    let sbatch = Command::new("timeout")
        .args(["150", "sbatch", "--wait", "--output=log", "job.sh"])
        .current_dir(sandbox.path())
        .env("SLURM_CONF", cluster.configuration())
        .output()
        .unwrap();
    let log = sandbox.read("log");
    assert!(sbatch.status.success(), "{}{log}", String::from_utf8_lossy(&sbatch.stderr));
    assert!(metrics(sandbox.read("said").as_bytes())["latency_s"].as_f64().unwrap() < 1.0);
    let mut ran: Vec<String> = sandbox.read("ran").lines().map(str::to_owned).collect();
    ran.sort();
    let placed = placed(&sandbox);
    let wanted: Vec<String> =
        placed.iter().enumerate().map(|(rank, host)| format!("{rank} {host}")).collect();
    assert_eq!(ran, wanted);
    let hosts: std::collections::BTreeSet<&str> = placed.iter().map(String::as_str).collect();
    assert_eq!(hosts, ["n1", "n2", "n3", "n4"].into());
}
