//! The pipeline `job`: a stored program on the nodes of a job.

use hopmap_test_support::{Cluster, system_tests};
use std::process::{Command, Output};

use crate::markdown::blocks;
use crate::sandbox::Sandbox;

/// A program of eight ranks and a machine of four hosts, `n1` to `n4`, stored.
fn stored() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.stdout(&["exec", "instance/stencil", "-p", "shape=4x2", "--out", "program"]);
    let machine = ["-p", "shape=tree:4x2x2", "-p", "costs=[1, 10, 100]"];
    let hosts = ["-p", "hosts=[\"n1\", \"n2\", \"n3\", \"n4\"]", "--out", "machine"];
    sandbox.stdout(&[&["exec", "topology/synthetic"], &machine[..], &hosts[..]].concat());
    sandbox
}

/// Runs the pipeline in a job with these nodes.
fn run(sandbox: &Sandbox, nodes: Option<&str>, program: &str) -> Output {
    let program = format!("program={program}");
    let mut command = sandbox.command(&["run", "job", "-p", &program, "-p", "machine=machine"]);
    command.args(["-p", "launch=slurm", "--deadline", "60s"]);
    command.env_remove("SLURM_JOB_NODELIST").env_remove("SLURM_TASKS_PER_NODE");
    if let Some((nodes, tasks)) = nodes.map(|nodes| nodes.split_once(' ').unwrap_or((nodes, ""))) {
        command.env("SLURM_JOB_NODELIST", nodes).env("SLURM_TASKS_PER_NODE", tasks);
    }
    command.output().unwrap()
}

/// The host of every rank in a file for Slurm.
fn placed(sandbox: &Sandbox, file: &str) -> Vec<String> {
    sandbox.read(file).lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// The hosts of all ranks, in the order of their names.
fn hosts(sandbox: &Sandbox) -> Vec<String> {
    let mut hosts = placed(sandbox, "out/job/rankfile");
    hosts.sort();
    hosts
}

#[test]
fn a_program_is_placed_on_the_nodes_of_the_job() {
    let sandbox = stored();
    let output = run(&sandbox, Some("n[2-3]"), "program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(hosts(&sandbox), [["n2"; 4], ["n3"; 4]].concat());
    // Another allocation is seen, though no file and no parameter changed.
    assert!(run(&sandbox, Some("n1,n4"), "program").status.success());
    assert_eq!(hosts(&sandbox), [["n1"; 4], ["n4"; 4]].concat());
    let run = ["run", "job", "-p", "program=program", "-p", "machine=machine", "-p"];
    // Hosts by name, and fewer ranks on each than the machine has slots.
    sandbox.stdout(&[&run[..], &["hosts=n[1-4]", "-p", "slots=2", "-p", "launch=slurm"]].concat());
    assert_eq!(hosts(&sandbox), [["n1"; 2], ["n2"; 2], ["n3"; 2], ["n4"; 2]].concat());
    // The nodes of a PBS job, where ranks are for Open MPI.
    sandbox.write("nodes", "n4\n".repeat(4) + &"n2\n".repeat(4));
    sandbox.stdout(&[&run[..], &["hosts_file=nodes"]].concat());
    let rankfile = sandbox.read("out/job/rankfile");
    assert_eq!((rankfile.matches("=n2 slot=").count(), rankfile.matches("=n4 slot=").count()), (4, 4));
}

/// Four ranks went to every node, whatever the job was given there, and srun refused the file.
#[test]
fn every_node_of_a_job_gets_the_ranks_that_slurm_allows_there() {
    let sandbox = stored();
    for (job, expected) in [
        ("n[1-4] 2(x4)", [["n1"; 2], ["n2"; 2], ["n3"; 2], ["n4"; 2]].concat()),
        ("n[1-3] 4,1,3", [vec!["n1"; 4], vec!["n2"], vec!["n3"; 3]].concat()),
        // More than the machine has.
        ("n[1-2] 16(x2)", [["n1"; 4], ["n2"; 4]].concat()),
    ] {
        let output = run(&sandbox, Some(job), "program");
        assert!(output.status.success(), "{job}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(hosts(&sandbox), expected, "{job}");
    }
    let output = run(&sandbox, Some("n[1-3] 2(x3)"), "program");
    let seen = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(seen.contains("8 ranks do not fit on 6 slots"), "{seen}");
}

/// Only `SLURM_TASKS_PER_NODE` and host files had a number for each host, and `slots` was one for all.
#[test]
fn every_source_of_hosts_gives_each_its_slots() {
    let sandbox = stored();
    sandbox.write("nodefile", "n1\n".repeat(4) + "n2\nn3\nn3\nn3\n");
    sandbox.write("pe", "n1 4 all.q@n1 UNDEFINED\nn2 1 all.q@n2 UNDEFINED\nn3 3 all.q@n3 UNDEFINED\n");
    let file = |name: &str| sandbox.path().join(name).display().to_string();
    let (nodefile, pe) = (file("nodefile"), file("pe"));
    let slurm = ("SLURM_JOB_NODELIST", "n[1-3]");
    for (variables, parameters) in [
        (vec![("LSB_MCPU_HOSTS", "n1 4 n2 1 n3 3 ")], &[][..]),
        (vec![("PBS_NODEFILE", nodefile.as_str())], &[]),
        (vec![("PE_HOSTFILE", pe.as_str())], &[]),
        (vec![slurm, ("SLURM_JOB_CPUS_PER_NODE", "4,1,3")], &[]),
        // Never more than the job has.
        (vec![slurm, ("SLURM_TASKS_PER_NODE", "4,1,3")], &["slots=4"]),
        (vec![], &["hosts=n[1-3]", "slots=4,1,3"]),
        (vec![], &["hosts=n1 4 n2 1 n3 3"]),
        (vec![], &["hosts_file=pe"]),
    ] {
        let mut command = sandbox.command(&["run", "job", "-p", "program=program", "-p", "machine=machine"]);
        command.args(["-p", "launch=slurm"]).args(parameters.iter().flat_map(|parameter| ["-p", parameter]));
        let output = command.envs(variables.clone()).output().unwrap();
        assert!(output.status.success(), "{variables:?}: {}", String::from_utf8_lossy(&output.stderr));
        let expected = [vec!["n1"; 4], vec!["n2"], vec!["n3"; 3]].concat();
        assert_eq!(hosts(&sandbox), expected, "{variables:?} {parameters:?}");
    }
}

#[test]
fn jobs_that_contradict_what_is_stored_are_refused() {
    let sandbox = stored();
    let message = |nodes, program| {
        let output = run(&sandbox, nodes, program);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(message(None, "program").contains("SLURM_JOB_NODELIST"));
    assert!(message(Some("n[2-"), "program").contains("n[2-"));
    assert!(message(Some("n[2-5]"), "program").contains("n5"));
    assert!(message(Some("n2"), "program").contains("8 ranks do not fit on 4 slots"));
    let missing = message(Some("n[2-3]"), "nowhere");
    assert!(missing.contains("nowhere: cannot be read"), "{missing}");
    let swapped = message(Some("n[2-3]"), "machine");
    assert!(swapped.contains("task-graph"), "{swapped}");
    assert!(!sandbox.path().join("out").exists());
}

#[test]
fn a_job_script_places_its_program_before_it_starts() {
    if !system_tests() {
        return;
    }
    let cluster = Cluster::start();
    let sandbox = stored();
    let hopmap = assert_cmd::cargo::cargo_bin!("hopmap").display().to_string();
    sandbox.write(
        "job.sh",
        format!(
            "#!/bin/bash\n#SBATCH --nodes=2 --ntasks=8\n\
             '{hopmap}' run job -p program=program -p machine=machine -p launch=slurm --store own --deadline 60s || exit\n\
             SLURM_HOSTFILE=out/job/rankfile srun -m arbitrary --mpi=none sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME' > ran\n\
             echo $SLURM_JOB_NODELIST > nodes\n"
        ),
    );
    let sbatch = Command::new("timeout")
        .args(["120", "sbatch", "--wait", "--exclude=n1", "job.sh"])
        .current_dir(sandbox.path())
        .env("SLURM_CONF", cluster.configuration())
        .output()
        .unwrap();
    assert!(sbatch.status.success(), "{}", String::from_utf8_lossy(&sbatch.stderr));
    assert_eq!(sandbox.read("nodes"), "n[2-3]\n");
    let mut ran: Vec<String> = sandbox.read("ran").lines().map(str::to_owned).collect();
    ran.sort();
    let placed: Vec<String> = placed(&sandbox, "out/job/rankfile")
        .iter()
        .enumerate()
        .map(|(rank, host)| format!("{rank} {host}"))
        .collect();
    assert_eq!(ran, placed);
}

/// The job scripts of the page for the launchers that Debian has, word for word, in a job of eight ranks.
#[test]
fn the_job_scripts_of_the_page_start_every_rank_on_its_host() {
    const PROGRAM: &str = "#!/bin/sh\n\
        echo ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$SLURM_PROCID}} ${LAB_HOST:-$SLURMD_NODENAME} >> ran\n";
    // Stands in for ssh.
    const AGENT: &str = "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\n\
        export LAB_HOST=$1\nshift\nexec sh -c \"$*\"\n";
    if !system_tests() {
        return;
    }
    let cluster = Cluster::start();
    let sandbox = Sandbox::new();
    sandbox.stdout(&["exec", "instance/stencil", "-p", "shape=4x2", "--out", "program"]);
    let machine = ["-p", "shape=tree:2x2x2", "-p", "hosts=n[1-4]", "--out", "machine"];
    sandbox.stdout(&[&["exec", "topology/synthetic"], &machine[..]].concat());
    for (name, text) in [("app", PROGRAM), ("agent", AGENT), ("tmp/none", "")] {
        sandbox.write(name, text);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(sandbox.path().join(name), mode).unwrap();
    }
    let hopmap = assert_cmd::cargo::cargo_bin!("hopmap").parent().unwrap().display();
    let path = format!("{hopmap}:{}", std::env::var("PATH").unwrap());
    let page = std::fs::read_to_string(crate::sandbox::project().join("docs/howto/launch.md")).unwrap();
    for launch in ["slurm", "open-mpi-4", "mpich"] {
        let is_it = |line: &String| line.contains(&format!("--launch {launch} \\"));
        let script = blocks(&page).into_iter().find(|block| block.lines.iter().any(is_it)).unwrap();
        sandbox.write("job.sh", script.lines.join("\n") + "\n");
        sandbox.write("ran", "");
        let sbatch = Command::new("timeout")
            .args(["60", "sbatch", "--wait", "--output=log", "--nodes=4", "--ntasks-per-node=2", "job.sh"])
            .current_dir(sandbox.path())
            .env("SLURM_CONF", cluster.configuration())
            .env("PATH", &path)
            .env("TMPDIR", sandbox.path().join("tmp"))
            .env("HYDRA_LAUNCHER_EXEC", sandbox.path().join("agent"))
            .envs(hopmap_mpi_environment::AS_ROOT)
            .output()
            .unwrap();
        let said = sandbox.read("log");
        assert!(sbatch.status.success(), "{launch}: {}{said}", String::from_utf8_lossy(&sbatch.stderr));
        let mut ran: Vec<String> = sandbox.read("ran").lines().map(str::to_owned).collect();
        ran.sort();
        let lines = placed(&sandbox, "out/job/rankfile");
        // Lines of rank files are `rank 0=n1 slot=0`.
        let host = |line: &String| line.rsplit('=').nth(1).unwrap_or(line).replace(" slot", "");
        let placed = lines.iter().enumerate().map(|(rank, line)| format!("{rank} {}", host(line)));
        assert_eq!(ran, placed.collect::<Vec<_>>(), "{launch}: {said}");
    }
}

/// The machine of the pipeline `rgo` has hosts that the job did not get.
#[test]
fn a_job_script_places_its_program_by_the_method_rgo() {
    if !system_tests() {
        return;
    }
    let cluster = Cluster::start();
    let sandbox = Sandbox::new();
    let hopmap = assert_cmd::cargo::cargo_bin!("hopmap").display().to_string();
    let project = crate::sandbox::project();
    let (rgo, traces) = (project.join("pipelines/rgo.toml"), project.join("sample-traces"));
    sandbox.write(
        "job.sh",
        format!(
            "#!/bin/bash\n#SBATCH --nodes=4 --ntasks=16\n\
             '{hopmap}' run '{}' -p from=slurm-nodelist -p free= -p machine=tree:4x8 -p 'costs=[1, 10]' -p prefix=n \\\n\
             -p 'trace={}/rows-columns-16/eztrace_log.otf2' -p slots=16 -p seconds=1.0 -p \"out=$PWD/out/job\" --store own || exit\n\
             SLURM_HOSTFILE=out/job/hosts srun -m arbitrary --mpi=none sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME' > ran\n",
            rgo.display(),
            traces.display()
        ),
    );
    let sbatch = Command::new("timeout")
        .args(["120", "sbatch", "--wait", "--output=log", "job.sh"])
        .current_dir(sandbox.path())
        .env("SLURM_CONF", cluster.configuration())
        .output()
        .unwrap();
    let said = sandbox.read("log");
    assert!(sbatch.status.success(), "{}{said}", String::from_utf8_lossy(&sbatch.stderr));
    assert!(!said.contains("warning: annealing accepted no child"), "{said}");
    let (placed, mut ran) = (placed(&sandbox, "out/job/hosts"), vec![String::new(); 16]);
    for line in sandbox.read("ran").lines() {
        let (rank, host) = line.split_once(' ').unwrap();
        ran[rank.parse::<usize>().unwrap()] = host.to_owned();
    }
    assert_eq!(ran, placed);
    let mut hosts = ran;
    hosts.sort();
    assert_eq!(hosts, [["n1"; 4], ["n2"; 4], ["n3"; 4], ["n4"; 4]].concat());
}

/// The job measures its own nodes, one of which is lost after the job got it, and starts its program on the others.
#[test]
fn a_job_that_loses_a_node_starts_on_the_others() {
    if !system_tests() {
        return;
    }
    let cluster = Cluster::start();
    let sandbox = Sandbox::new();
    sandbox.stdout(&["exec", "instance/stencil", "-p", "shape=3x2", "--out", "program"]);
    let hopmap = assert_cmd::cargo::cargo_bin!("hopmap").display().to_string();
    let agent = format!(
        "timeout 60 srun -w {{host}} -N 1 -n 1 --overlap '{hopmap}' agent --bind 127.0.0.1 --name {{host}}"
    );
    sandbox.write(
        "job.sh",
        format!(
            "#!/bin/bash\n#SBATCH --nodes=4 --ntasks-per-node=2 --no-kill\n\
             pkill -9 -f \"slurmd -f $SLURM_CONF -N n4\" && sleep 1\n\
             '{hopmap}' exec topology/probe -p \"start={agent}\" -p start_timeout_s=15 -p bandwidth=none \\\n\
             -p messages=20 -p size_time_limit_s=0.01 --out probe || exit 10\n\
             '{hopmap}' run job -p program=program -p machine=probe/system -p launch=slurm --store own --deadline 60s || exit 11\n\
             mpirun -n 6 --map-by seq --oversubscribe --bind-to none --hostfile out/job/rankfile \\\n\
             sh -c 'echo $OMPI_COMM_WORLD_RANK $SLURMD_NODENAME' > ran || exit 12\n"
        ),
    );
    let sbatch = Command::new("timeout")
        .args(["150", "sbatch", "--wait", "--output=log", "job.sh"])
        .current_dir(sandbox.path())
        .env("SLURM_CONF", cluster.configuration())
        .envs(hopmap_mpi_environment::AS_ROOT)
        .output()
        .unwrap();
    let said = sandbox.read("log");
    assert!(sbatch.status.success(), "{}{said}", String::from_utf8_lossy(&sbatch.stderr));
    assert!(said.contains("n4 is down"), "{said}");
    let mut ran: Vec<String> = sandbox.read("ran").lines().map(str::to_owned).collect();
    ran.sort();
    let placed: Vec<String> = placed(&sandbox, "out/job/rankfile")
        .iter()
        .enumerate()
        .map(|(rank, host)| format!("{rank} {host}"))
        .collect();
    assert_eq!(ran, placed);
    assert!(placed.iter().all(|rank| !rank.ends_with("n4")), "{placed:?}");
}
