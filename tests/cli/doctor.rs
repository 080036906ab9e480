//! `hopmap doctor`: what is found, what is missing, and when it fails.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::sandbox::Sandbox;

/// A folder whose `bin` is all of `PATH`.
fn sandbox(programs: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("bin/readme", "");
    for (name, script) in programs {
        sandbox.write(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
        let executable = Permissions::from_mode(0o755);
        std::fs::set_permissions(sandbox.path().join("bin").join(name), executable).unwrap();
    }
    sandbox
}

/// What it prints and its exit code, without what depends on this host and on the features of the build.
fn doctor(sandbox: &Sandbox, variables: &[(&str, &str)]) -> String {
    let mut command = sandbox.command(&["doctor"]);
    command.env_remove("SLURM_JOB_ID").env_remove("SLURM_JOB_NODELIST");
    let bin = sandbox.path().join("bin");
    command.env("HOPMAP_QUERY", bin.join("hopmap-query")).env("HOPMAP_RANKS", bin.join("hopmap-ranks"));
    let output = command.env("PATH", bin).envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let text = text.replace(sandbox.path().to_str().unwrap(), "DIR");
    let mut lines: Vec<&str> = Vec::new();
    let mut is_shown = true;
    for line in text.lines() {
        if !line.starts_with(' ') {
            is_shown = !["libraries", "this host"].contains(&line);
        }
        if (is_shown && !line.contains("  hopmap  ")) || line.contains("  store  ") {
            lines.push(line);
        }
    }
    format!("{}\n[exit code {}]", lines.join("\n"), output.status.code().unwrap())
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn components_are_found_with_their_versions() {
    let query = format!("echo hopmap-query {VERSION}");
    let sandbox = sandbox(&[
        ("hopmap-query", &query),
        ("hopmap-ranks", "exit 1"),
        ("ldd", "echo '\tlibmpi.so.40 => /opt/mpi/lib/libmpi.so.40 (0x00007f00)'"),
        ("mpirun", "echo 'mpirun (Open MPI) 4.1.4'"),
        ("mpicc", "echo 'mpicc: Open MPI 4.1.4 (Language: C)'"),
        ("srun", "echo 'slurm-wlm 22.05.8'"),
        ("sinfo", "echo short; echo long"),
        ("ssh", ""),
        ("lstopo-no-graphics", ""),
    ]);
    let job = [("SLURM_JOB_ID", "7"), ("SLURM_JOB_NODELIST", "node[1-2]")];
    insta::assert_snapshot!(doctor(&sandbox, &job), @r#"
    hopmap
      found    hopmap-query     DIR/bin/hopmap-query; for SQL: `hopmap query` and [tables]
      found    hopmap-ranks     DIR/bin/hopmap-ranks, linked with /opt/mpi/lib/libmpi.so.40; for searches as MPI ranks: `launcher = "mpirun -n 8"`
    MPI
      found    mpirun           Open MPI 4.1.4, DIR/bin/mpirun; for starting ranks with a rankfile or machinefile
      found    mpicc            Open MPI 4.1.4, DIR/bin/mpicc; for building the recorder and the prober: `hopmap record`, `hopmap tune`, `topology/probe` with a `launcher`
    Slurm
      found    srun             Slurm 22.05.8, DIR/bin/srun; for starting ranks in a job
      found    sinfo            partitions: short, long; for cells as batch jobs: `launcher = "sbatch"`, and the list of idle nodes
      found    job              job 7 on node[1-2]; for choosing nodes of the job: `hopmap run job`
    tools
      found    ssh              DIR/bin/ssh; for measuring nodes without MPI: `topology/probe`, `hopmap topology refresh`
      found    lstopo           DIR/bin/lstopo-no-graphics; for importing the cores and caches of this host: `topology/hwloc` without `path`
      found    store            .hopmap is writable and supports flock
    [exit code 0]
    "#);
}

#[test]
fn missing_components_say_how_to_get_them_and_faults_are_shown() {
    let sandbox = sandbox(&[
        ("hopmap-query", "echo hopmap-query 0.0.1"),
        ("hopmap-ranks", "exit 1"),
        ("ldd", "echo '\tlibmpi.so.40 => not found'"),
        ("sinfo", "echo 'slurm_load_partitions: Unable to contact slurm controller' >&2; exit 1"),
    ]);
    let seen = doctor(&sandbox, &[]).replace(VERSION, "VERSION");
    insta::assert_snapshot!(seen, @r#"
    hopmap
      broken   hopmap-query     DIR/bin/hopmap-query is hopmap-query 0.0.1, not version VERSION; for SQL: `hopmap query` and [tables]
                                install hopmap and hopmap-query from the same sources
      broken   hopmap-ranks     DIR/bin/hopmap-ranks: libmpi.so.40 => not found; for searches as MPI ranks: `launcher = "mpirun -n 8"`
                                load the module of the MPI that hopmap-ranks was built with, or rebuild hopmap-ranks
    MPI
      missing  mpirun           no `mpirun` or `mpiexec` on PATH; for starting ranks with a rankfile or machinefile
                                install one (Debian: openmpi-bin or mpich), or load its module: `module load openmpi`
      missing  mpicc            no `mpicc` on PATH; for building the recorder and the prober: `hopmap record`, `hopmap tune`, `topology/probe` with a `launcher`
                                install it (Debian: libopenmpi-dev or libmpich-dev), or load its module; what was built before is used without it
    Slurm
      missing  srun             no `srun` on PATH; for starting ranks in a job
                                Debian: slurm-client; on a cluster, log in to a node that submits jobs
      broken   sinfo            `sinfo --noheader '--format=%R'` ended with exit status: 1; standard error: slurm_load_partitions: Unable to contact slurm controller; for cells as batch jobs: `launcher = "sbatch"`, and the list of idle nodes
                                Debian: slurm-client; on a cluster, log in to a node that submits jobs
      missing  job              for choosing nodes of the job: `hopmap run job`
                                start a job: `salloc` or `sbatch`
    tools
      missing  ssh              no `ssh` on PATH; for measuring nodes without MPI: `topology/probe`, `hopmap topology refresh`
                                Debian: openssh-client
      missing  lstopo           no `lstopo` or `lstopo-no-graphics` or `hwloc-ls` on PATH; for importing the cores and caches of this host: `topology/hwloc` without `path`
                                Debian: hwloc; on a cluster: `module load hwloc`
      found    store            .hopmap is writable and supports flock
    [exit code 0]
    "#);
}

#[test]
fn a_store_that_is_not_writable_fails() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path().join(".hopmap")).unwrap();
    std::fs::set_permissions(sandbox.path().join(".hopmap"), Permissions::from_mode(0o555)).unwrap();
    let output = sandbox.unprivileged(&["doctor", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let store = report["checks"].as_array().unwrap().last().unwrap();
    assert_eq!((&store["name"], &store["state"]), (&"store".into(), &"broken".into()));
    assert!(store["detail"].as_str().unwrap().contains("Permission denied"), "{store}");
}
