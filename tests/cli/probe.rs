//! `topology/probe` between real MPI ranks and real agents.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hopmap_artifact::Folder;
use hopmap_model::{CostModel, CostName, Measurements, NodeKind, NodeState, SystemGraph};
use hopmap_test_network::{Description, Network};
use hopmap_test_support::{Cluster, only_in_a_soak, program, system_tests};

use crate::launcher::wait_until_begun;
use crate::mpi::processes_of;
use crate::sandbox::Sandbox;

/// Few messages, small and large.
const QUICK: [&str; 6] =
    ["-p", "sizes=[1, 1024, 131072]", "-p", "messages=40", "-p", "size_time_limit_s=0.05"];

/// Whether tests that need an MPI can run.
fn mpi_is_wanted() -> bool {
    system_tests() && program("mpicc.openmpi").is_some() && program("mpicc.mpich").is_some()
}

/// A probe by ranks, which share the cores. There is no hopmap-ranks, and no prober yet.
fn by_ranks(sandbox: &Sandbox, launcher: &str, more: &[&str]) -> Command {
    let probe = ["exec", "topology/probe", "--launcher", launcher, "--out", "probe"];
    let mut command = sandbox.command(&[&probe, more].concat());
    for_ranks(sandbox, &mut command);
    command
}

fn for_ranks(sandbox: &Sandbox, command: &mut Command) {
    std::fs::create_dir_all(sandbox.path().join("tmp")).unwrap();
    command
        .env("HOPMAP_RANKS", "nowhere")
        .env("TMPDIR", sandbox.path().join("tmp"))
        .env("XDG_CACHE_HOME", sandbox.path().join("cache"))
        .envs(hopmap_mpi_environment::AS_ROOT)
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .env("OMPI_MCA_hwloc_base_binding_policy", "none");
}

fn done(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn measured_in(folder: &Path) -> (Measurements, SystemGraph) {
    (Folder::read(&folder.join("measurements")).unwrap(), Folder::read(&folder.join("system")).unwrap())
}

/// Each MPI has its own prober. Results go by files, whatever the launcher does to lines.
#[test]
fn mpi_ranks_of_one_host_are_its_cores() {
    if !mpi_is_wanted() {
        return;
    }
    let sandbox = Sandbox::new();
    let launchers = ["mpirun.openmpi --oversubscribe --tag-output -n 4", "mpirun.mpich -l -n 4"];
    for (built, launcher) in (1..).zip(launchers) {
        done(&mut by_ranks(&sandbox, launcher, &QUICK));
        let (measured, system) = measured_in(&sandbox.path().join("probe"));
        assert_eq!((measured.hosts().count(), measured.endpoints.len()), (1, 4));
        assert_eq!(measured.samples.len(), 4 * 3 * 3);
        assert!(measured.latencies().values().all(|&latency| latency > 1e-8 && latency < 1.0));
        assert!(measured.bandwidths().values().any(|&bandwidth| bandwidth > 1e7));
        assert_eq!(system.slots.len(), 4);
        let cached = std::fs::read_dir(sandbox.path().join("cache/hopmap")).unwrap().count();
        assert_eq!(cached, 1 + built, "the lock and a prober of each");
    }
}

#[test]
fn a_host_without_a_compiler_takes_the_prober_from_the_cache() {
    if !mpi_is_wanted() {
        return;
    }
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path().join("bin")).unwrap();
    for (name, target) in [("mpirun", "mpirun.openmpi"), ("orted", "orted"), ("sh", "sh")] {
        std::os::unix::fs::symlink(program(target).unwrap(), sandbox.path().join("bin").join(name)).unwrap();
    }
    let probe = || {
        let mut command = by_ranks(&sandbox, "mpirun --oversubscribe -n 2", &QUICK);
        // Open MPI looks for ssh, which is not needed here.
        command.env("PATH", sandbox.path().join("bin")).env("OMPI_MCA_plm", "isolated");
        command
    };
    let output = probe().output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no mpicc of Open MPI is installed: mpicc is missing"), "{said}");
    done(&mut by_ranks(&sandbox, "mpirun.openmpi --oversubscribe -n 2", &QUICK));
    done(&mut probe());
}

/// Programs that no launcher of their MPI connects are alone.
#[test]
fn ranks_that_do_not_find_each_other_are_refused() {
    if !mpi_is_wanted() {
        return;
    }
    let sandbox = Sandbox::new();
    let mut command = by_ranks(&sandbox, "mpirun.openmpi --oversubscribe -n 2", &QUICK);
    let output = command.args(["-p", "mpicc=mpicc.mpich"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no mpicc of Open MPI is installed: mpicc.mpich is of MPICH"), "{said}");
    sandbox.write("twice", "#!/bin/sh\n\"$@\" &\nfirst=$!\n\"$@\"\nsecond=$?\nwait $first && exit $second\n");
    let output = by_ranks(&sandbox, "sh twice", &QUICK).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    // The second, if both write at the same time.
    let reasons = [
        "the launcher started one rank, or ranks that do not find each other",
        "the ranks sent invalid measurements",
    ];
    assert!(reasons.iter().any(|reason| said.contains(reason)), "{said}");
}

/// A pipeline that measures for long.
const PATIENT_PROBE: &str = r#"name = "probe"

[stages.machine]
uses     = "topology/probe"
with     = { sizes = [1, 67108864], parallel = 1, size_time_limit_s = 1.0 }
launcher = "LAUNCHER"
"#;

/// A run of that pipeline, once it has begun.
fn begun(sandbox: &Sandbox, launcher: &str) -> Child {
    sandbox.write("p.toml", PATIENT_PROBE.replace("LAUNCHER", launcher));
    let mut command = sandbox.command(&["run", "p.toml", "--json", "--no-report"]);
    for_ranks(sandbox, &mut command);
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until_begun(sandbox, &mut run);
    run
}

#[test]
fn an_interrupt_brings_what_was_measured() {
    if !mpi_is_wanted() {
        return;
    }
    for launcher in ["mpirun.openmpi --oversubscribe -n 4", "mpirun.mpich -n 4"] {
        let sandbox = Sandbox::new();
        let run = begun(&sandbox, launcher);
        // Hosts and three steps of small messages: what follows takes a second for each of six pairs.
        let work = std::fs::read_dir(sandbox.path().join(".hopmap/work")).unwrap().next().unwrap().unwrap();
        let results = work.path().join("1/results");
        while std::fs::read_to_string(&results).unwrap().matches("end ").count() < 4 {
            std::thread::sleep(Duration::from_millis(20));
        }
        hopmap_test_support::signal(run.id(), "INT");
        let output = run.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(130), "{said}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["cells"][0]["state"], "partial", "{said}");
    }
}

#[test]
fn ranks_end_with_the_engine_and_a_rank_that_dies_ends_the_run() {
    if !mpi_is_wanted() {
        return;
    }
    for launcher in ["mpirun.openmpi --oversubscribe -n 4", "mpirun.mpich -n 4"] {
        let sandbox = Sandbox::new();
        let folder = sandbox.path().join(".hopmap/work");
        let run = begun(&sandbox, launcher);
        let is_rank = |line: &str| line.split('\0').next().unwrap().ends_with("/prober");
        let (rank, _) = processes_of(&folder).into_iter().find(|(_, line)| is_rank(line)).unwrap();
        hopmap_test_support::signal(rank, "KILL");
        let output = run.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("ended without a result"), "{said}");
        let mut run = begun(&sandbox, launcher);
        run.kill().unwrap();
        run.wait().unwrap();
        while !processes_of(&folder).is_empty() {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn mpi_ranks_on_the_nodes_of_a_slurm_cluster_are_distinguished() {
    if !mpi_is_wanted() {
        return;
    }
    let cluster = Cluster::start();
    let sandbox = Sandbox::new();
    let launcher = "timeout 120 salloc -Q -N 3 -n 3 mpirun -n 3";
    done(by_ranks(&sandbox, launcher, &QUICK).env("SLURM_CONF", cluster.configuration()));
    let check = |folder: &Path| {
        let (measured, system) = measured_in(folder);
        let hosts: Vec<(&str, u32, u32)> = measured.hosts().collect();
        assert_eq!(hosts, [("n1", 0, 1), ("n2", 1, 1), ("n3", 2, 1)]);
        assert_eq!(measured.latencies().len(), 3);
        assert_eq!(system.hosts().count(), 3);
    };
    check(&sandbox.path().join("probe"));
    let launcher = "timeout 120 srun -N 3 -n 3 --mpi=pmi2";
    let mut command = by_ranks(&sandbox, launcher, &[&QUICK[..], &["-p", "mpicc=mpicc.mpich"]].concat());
    done(command.env("SLURM_CONF", cluster.configuration()));
    check(&sandbox.path().join("probe"));
    // In a job that is queued, the stage directs the ranks from the first node.
    let launcher = "sbatch -N 3 -n 3 --time 5 mpirun -n 3";
    let probe = PATIENT_PROBE.replace("LAUNCHER", launcher).replace("67108864", "1024");
    sandbox.write(
        "p.toml",
        format!("{probe}save = {{ measurements = \"out/measurements\", system = \"out/system\" }}\n"),
    );
    let mut command = sandbox.command(&["run", "p.toml", "--no-report"]);
    for_ranks(&sandbox, &mut command);
    done(command.env("SLURM_CONF", cluster.configuration()));
    check(&sandbox.path().join("out"));
}

/// A probe by agents of this machine.
fn by_agents(sandbox: &Sandbox, hosts: &str, start: &str, more: &[&str]) -> Command {
    let (hosts, start) = (format!("hosts={hosts}"), format!("start={start}"));
    let probe = ["exec", "topology/probe", "-p", &hosts, "-p", &start, "--out", "probe"];
    sandbox.command(&[&probe, more].concat())
}

/// The command that starts an agent here in the name of a host.
fn agent() -> String {
    let hopmap = assert_cmd::cargo::cargo_bin!("hopmap");
    format!("'{}' agent --bind 127.0.0.1 --name {{host}}", hopmap.display())
}

#[test]
fn agents_measure_each_other_and_their_cores() {
    let sandbox = Sandbox::new();
    done(&mut by_agents(&sandbox, "n[1-5]", &agent(), &QUICK));
    let (measured, system) = measured_in(&sandbox.path().join("probe"));
    let names: Vec<&str> = measured.hosts().map(|(name, ..)| name).collect();
    assert_eq!(names, ["n1", "n2", "n3", "n4", "n5"]);
    let cores = measured.endpoints.len() / 5;
    assert_eq!(measured.latencies().len(), 10 + 5 * cores * (cores - 1) / 2);
    assert_eq!((measured.coverage() * 100.0) as u32, 100);
    assert_eq!(system.slots.len(), measured.endpoints.len());
}

#[test]
fn agents_of_one_srun_are_distinguished_by_their_nodes() {
    if !system_tests() {
        return;
    }
    let cluster = Cluster::start();
    let sandbox = Sandbox::new();
    let hopmap = assert_cmd::cargo::cargo_bin!("hopmap");
    let start =
        format!("timeout 100 srun -N 4 --ntasks-per-node=1 '{}' agent --bind 127.0.0.1", hopmap.display());
    let mut probe =
        by_agents(&sandbox, "n[1-4]", &start, &[&QUICK[..], &["-p", "measure_intra_node=false"]].concat());
    done(probe.env("SLURM_CONF", cluster.configuration()));
    let (measured, _) = measured_in(&sandbox.path().join("probe"));
    let names: Vec<&str> = measured.hosts().map(|(name, ..)| name).collect();
    assert_eq!(names, ["n1", "n2", "n3", "n4"]);
    assert_eq!(measured.latencies().len(), 6);
    assert_eq!((measured.coverage() * 100.0) as u32, 100);
}

#[test]
fn hosts_that_do_not_answer_are_down() {
    let sandbox = Sandbox::new();
    let start =
        format!("sh -c 'case {{host}} in n2) echo no route to host >&2; exit 255;; esac; exec {}'", {
            agent().replace('\'', "")
        });
    let output =
        by_agents(&sandbox, "n[1-3]", &start, &[&QUICK[..], &["-p", "measure_intra_node=false"]].concat())
            .output()
            .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("n2 is down: no route to host"), "{said}");
    let (measured, system) = measured_in(&sandbox.path().join("probe"));
    let states: Vec<NodeState> = measured.endpoints.iter().map(|endpoint| endpoint.state).collect();
    assert_eq!(states, [NodeState::Up, NodeState::Down, NodeState::Up]);
    assert_eq!(system.hosts().count(), 2);
    assert!(system.nodes.iter().any(|node| node.name == "n2" && node.state == NodeState::Down));
}

#[test]
fn bad_commands_and_lists_end_in_one_message() {
    let sandbox = Sandbox::new();
    let said = |hosts: &str, start: &str, more: &[&str]| {
        let output =
            by_agents(&sandbox, hosts, start, more).env_remove("SLURM_JOB_NODELIST").output().unwrap();
        let code = output.status.code();
        format!("{code:?}\n{}", String::from_utf8_lossy(&output.stderr))
    };
    let inside = ["-p", "measure_intra_node=false"];
    insta::assert_snapshot!(said("", &agent(), &[]), @r#"
    Some(1)
    error[topology::invalid]: no hosts are given, and SLURM_JOB_NODELIST is not set
      help: give `hosts`, run inside a Slurm job, or give the stage a `launcher` such as "mpirun -n 8"
    "#);
    insta::assert_snapshot!(said("n[1-", "ssh {host} hopmap agent", &[]), @r#"
    Some(2)
    error[pipeline::invalid]: `hosts` is not a host list: host list, column 2: unclosed bracket
       ,-[-p:1:1]
     1 | ,-> hosts = "n[1-"
     2 | |-> start = "ssh {host} hopmap agent"
       : `---- here
       `----
      help: give names with ranges in brackets: node[001-128,200],login1
    "#);
    insta::assert_snapshot!(said("a,b,a", "ssh {host} hopmap agent", &[]), @r#"
    Some(2)
    error[pipeline::invalid]: host `a` is listed twice
       ,-[-p:1:1]
     1 | ,-> hosts = "a,b,a"
     2 | |-> start = "ssh {host} hopmap agent"
       : `---- here
       `----
      help: list every host once; processes on one host are distinguished automatically
    "#);
    insta::assert_snapshot!(said("a,b", "/no/such/agent {host}", &[]), @r"
    Some(1)
    a,b are down: cannot run `/no/such/agent`: No such file or directory (os error 2)
    error[topology::invalid]: none of the 2 hosts answered; a: cannot run `/no/such/agent`: No such file or directory (os error 2)
      help: `start` must run `hopmap agent` on a host and forward its standard input; try it by hand, for example `ssh a hopmap agent --version`
    ");
    insta::assert_snapshot!(said("a,b", "echo {host}", &[]), @r"
    Some(1)
    a,b are down: the command ended (exit status: 0) before its agent was ready
    error[topology::invalid]: none of the 2 hosts answered; a: the command ended (exit status: 0) before its agent was ready
      help: `start` must run `hopmap agent` on a host and forward its standard input; try it by hand, for example `ssh a hopmap agent --version`
    ");
    insta::assert_snapshot!(said("a", &agent(), &inside), @r"
    Some(1)
    error[topology::invalid]: `a` has no partner: a measurement needs two hosts or cores
      help: give at least two hosts, or start at least two processes
    ");
    insta::assert_snapshot!(said("a,b", "ssh {host} hopmap agent", &["-p", "sizes=[0]"]), @r#"
    Some(2)
    error[pipeline::invalid]: `sizes` = [0] is out of range
       ,-[-p:3:9]
     2 | start = "ssh {host} hopmap agent"
     3 | sizes = [0]
       :         ^|^
       :          `-- here
       `----
      help: allowed: sizes from 1 byte to 64 MiB (67108864); default [1,64,1024,8192,65536,262144,1048576,4194304]
    "#);
}

/// Seconds one way inside a switch, inside a rack, and between the two racks of the network.
const LEVELS: [f64; 3] = [200e-6, 500e-6, 1000e-6];

/// Eight hosts: two racks of two switches of two.
fn racks() -> Network {
    Network::start(&Description::tree(&[2, 2, 2], &LEVELS))
        .unwrap_or_else(|error| panic!("{error}: {error:?}"))
}

/// A host's level in common with another one.
fn meeting(a: u32, b: u32) -> usize {
    (0..3).find(|level| a >> (level + 1) == b >> (level + 1)).unwrap()
}

/// The measured latencies are those of the network, within 15 %.
fn assert_latencies(measured: &Measurements) -> Result<(), String> {
    for ((a, b), found) in measured.latencies() {
        let injected = LEVELS[meeting(a, b)];
        if (found / injected - 1.0).abs() > 0.15 {
            return Err(format!("h{a} and h{b}: {:.0} µs, not {:.0}", found * 1e6, injected * 1e6));
        }
    }
    assert_eq!(measured.latencies().len(), 28);
    Ok(())
}

/// The machine found is the tree of the network.
fn assert_tree(system: &SystemGraph) {
    let CostModel::Levels(levels) = &system.cost else { panic!("no levels") };
    assert_eq!(levels.costs.len(), 3);
    for a in 0..8 {
        for b in (0..8).filter(|&b| b != a) {
            assert_eq!(levels.meeting_level(a, b), meeting(a, b), "h{a} and h{b}");
        }
    }
}

/// Probes until all latencies are right, a few times at most: what else runs here can only make messages slower.
fn assert_network_is_found(folder: &Path, mut probe: impl FnMut() -> Command) {
    let mut tries = 0;
    loop {
        tries += 1;
        done(&mut probe());
        let (measured, system) = measured_in(folder);
        match assert_latencies(&measured) {
            Ok(()) => return assert_tree(&system),
            Err(problem) if tries == 5 => panic!("{problem}"),
            Err(problem) => eprintln!("try {tries}: {problem}"),
        }
    }
}

/// Many small messages and no large ones, as switches in user space have few of these.
const PATIENT: [&str; 10] = [
    "-p",
    "sizes=[1]",
    "-p",
    "messages=200",
    "-p",
    "tolerance=0.0",
    "-p",
    "size_time_limit_s=1.0",
    "-p",
    "measure_intra_node=false",
];

#[test]
fn agents_find_the_latencies_and_the_levels_of_a_network() {
    if !system_tests() {
        return;
    }
    let (sandbox, network) = (Sandbox::new(), racks());
    let hopmap = assert_cmd::cargo::cargo_bin!("hopmap");
    let network_program = hopmap.with_file_name("hopmap-test-network");
    let start = format!(
        "start='{}' on {{host}} '{}' agent --bind 10.77.0.0/24",
        network_program.display(),
        hopmap.display()
    );
    assert_network_is_found(&sandbox.path().join("probe"), || {
        let mut command = network.command(0, hopmap);
        command.current_dir(sandbox.path()).args(["exec", "topology/probe", "--out", "probe"]);
        command.args(["-p", "hosts=h[0-7]", "-p", &start]).args(PATIENT);
        command
    });
}

#[test]
fn mpi_ranks_find_the_latencies_and_the_levels_of_a_network() {
    if !mpi_is_wanted() {
        return;
    }
    let (sandbox, network) = (Sandbox::new(), racks());
    let mpirun = network.mpirun(&[0, 1, 2, 3, 4, 5, 6, 7]);
    let words = std::iter::once(mpirun.get_program()).chain(mpirun.get_args());
    let words: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
    let launcher = shlex::try_join(words).unwrap();
    assert_network_is_found(&sandbox.path().join("probe"), || {
        let mut command = by_ranks(&sandbox, &launcher, &PATIENT);
        command.envs(mpirun.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    });
}

/// Two switches of two hosts: a pair fills the link of its host, and both together the wider link of their switch.
#[test]
fn mpi_ranks_find_the_rates_of_shared_links_and_the_costs_of_calls() {
    if !mpi_is_wanted() || !only_in_a_soak() {
        return;
    }
    let (rates, latency_s) = ([6.25e6, 9.375e6], 200e-6);
    let network = Network::start(&Description::tree_links(&[2, 2], &rates, &[latency_s])).unwrap();
    let sandbox = Sandbox::new();
    let mpirun = network.mpirun(&[0, 1, 2, 3]);
    let words = std::iter::once(mpirun.get_program()).chain(mpirun.get_args());
    let words: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
    let launcher = shlex::try_join(words).unwrap();
    let options = [
        "calibrate=true",
        "sizes=[1, 1024, 8192, 262144]",
        "parallel=1",
        "messages=200",
        "size_time_limit_s=0.1",
    ];
    let options: Vec<&str> = options.iter().flat_map(|option| ["-p", option]).collect();
    // Each takes half a minute, and needs a quiet machine.
    let (mut tries, most_tries) = (0, 5);
    loop {
        tries += 1;
        let mut command = by_ranks(&sandbox, &launcher, &options);
        command.envs(mpirun.get_envs().filter_map(|(name, value)| Some((name, value?))));
        done(&mut command);
        let (measured, system) = measured_in(&sandbox.path().join("probe"));
        match check_calibration(&measured, &system, rates, latency_s) {
            Ok(()) => break,
            Err(problem) if tries == most_tries => panic!("{problem}"),
            Err(problem) => eprintln!("try {tries}: {problem}"),
        }
    }
    let export =
        ["exec", "topology/export", "--in", "system=probe/system", "-p", "format=smpi", "--out", "options"];
    done(&mut sandbox.command(&export));
}

/// Rates within 10 %, latencies within 40 %, since a message also takes some of the time of two processors; the
/// eager limit of Open MPI over TCP, less its header.
fn check_calibration(
    measured: &Measurements,
    system: &SystemGraph,
    rates: [f64; 2],
    latency_s: f64,
) -> Result<(), String> {
    let is_host = |node: u32| system.nodes[node as usize].kind == NodeKind::Host;
    if system.links.len() != 12 {
        return Err(format!("{} links, not 12", system.links.len()));
    }
    for link in &system.links {
        let rate = rates[usize::from(!is_host(link.source) && !is_host(link.destination))];
        let (found, latency) = (link.bandwidth_bytes_per_s.unwrap(), link.latency_s.unwrap());
        if (found / rate - 1.0).abs() > 0.1 {
            return Err(format!("{found:.0} B/s, not {rate:.0}"));
        }
        if (latency / latency_s - 1.0).abs() > 0.4 {
            return Err(format!("{:.0} µs, not {:.0}", latency * 1e6, latency_s * 1e6));
        }
    }
    let eager_limit = measured.eager_limit.ok_or("no eager limit")?;
    if !(65_000..=65_536).contains(&eager_limit) {
        return Err(format!("an eager limit of {eager_limit} B"));
    }
    for cost in [CostName::Send, CostName::Isend, CostName::Recv] {
        let seconds = system.calibration.iter().find(|row| row.cost == cost).ok_or("no overhead")?.value;
        if !(1e-7..1e-3).contains(&seconds) {
            return Err(format!("an overhead of {seconds} s"));
        }
    }
    Ok(())
}

#[test]
fn a_host_that_is_cut_off_in_the_middle_is_down() {
    if !system_tests() {
        return;
    }
    let (sandbox, network) = (Sandbox::new(), racks());
    let hopmap = assert_cmd::cargo::cargo_bin!("hopmap");
    let program = hopmap.with_file_name("hopmap-test-network");
    let start =
        format!("start='{}' on {{host}} '{}' agent --bind 10.77.0.0/24", program.display(), hopmap.display());
    let mut command = network.command(0, hopmap);
    command.current_dir(sandbox.path()).args(["exec", "topology/probe", "--out", "probe"]);
    let mut probe = command.args(["-p", "hosts=h[0-7]", "-p", &start]).args(PATIENT).spawn().unwrap();
    // Far into the rounds, each of which exchanges thousands of messages.
    while network.counters().unwrap().delivered < 4000 {
        assert!(probe.try_wait().unwrap().is_none(), "nothing was cut");
        std::thread::sleep(Duration::from_millis(20));
    }
    network.cut(5).unwrap();
    assert!(probe.wait().unwrap().success());
    let (_, system) = measured_in(&sandbox.path().join("probe"));
    let down =
        |name: &str| system.nodes.iter().any(|node| node.name == name && node.state == NodeState::Down);
    assert!(down("h5") && !down("h4"));
}

/// A refresh from inside the network, as cron would do it; its output as JSON.
fn refresh(network: &Network, sandbox: &Sandbox) -> serde_json::Value {
    let hopmap = assert_cmd::cargo::cargo_bin!("hopmap");
    let output = network
        .command(0, hopmap)
        .current_dir(sandbox.path())
        .args(["topology", "refresh", "probe.toml", "--publish", "published", "--json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn drift_of_one_pair_is_reported_on_that_pair_and_on_no_other() {
    if !system_tests() {
        return;
    }
    let (sandbox, network) = (Sandbox::new(), racks());
    let hopmap = assert_cmd::cargo::cargo_bin!("hopmap");
    let pipeline = format!(
        "[stages.machine]\nuses = \"topology/probe\"\n[stages.machine.with]\nhosts = \"h[0-7]\"\n\
         start = \"'{}' on {{host}} '{}' agent --bind 10.77.0.0/24\"\n\
         sizes = [1]\nmessages = 150\ntolerance = 0.0\nsize_time_limit_s = 1.0\nmeasure_intra_node = false\n",
        hopmap.with_file_name("hopmap-test-network").display(),
        hopmap.display()
    );
    sandbox.write("probe.toml", pipeline);
    let first = refresh(&network, &sandbox);
    assert_eq!(first["outcome"], "first", "{first}");
    // What else runs here may have made a pair slow in the first one: the machine counts once it stays the same.
    let mut outcomes = (0..5).map(|_| refresh(&network, &sandbox)["outcome"].clone());
    assert!(outcomes.any(|outcome| outcome == "unchanged"));
    for (from, to) in [(4, 5), (5, 4)] {
        network.set_latency(from, to, LEVELS[0] + 100e-6).unwrap();
    }
    let drifted = refresh(&network, &sandbox);
    assert_eq!(drifted["outcome"], "published", "{drifted}");
    let changes: Vec<&str> =
        drifted["changes"].as_array().unwrap().iter().filter_map(|change| change["text"].as_str()).collect();
    let latencies: Vec<&&str> = changes.iter().filter(|text| text.contains('–')).collect();
    assert_eq!(latencies.len(), 1, "{changes:?}");
    assert!(latencies[0].contains("h4 – h5"), "{changes:?}");
    // A host that is cut off is down, and keeps what is known of it.
    network.cut(6).unwrap();
    let down = refresh(&network, &sandbox);
    let said = down.to_string();
    assert!(said.contains("h6"), "{said}");
    let (measured, system) = measured_in(&sandbox.path().join("published/current"));
    let is_down =
        |name: &str| system.nodes.iter().any(|node| node.name == name && node.state == NodeState::Down);
    assert!(is_down("h6") && !is_down("h5"));
    assert_eq!(system.slots.len(), 8);
    assert_eq!(measured.latencies().len(), 28);
}
