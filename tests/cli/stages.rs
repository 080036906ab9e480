//! `hopmap stages`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::sandbox::{Sandbox, project};

#[test]
fn all_stages_and_one() {
    let sandbox = Sandbox::new();
    let lines = sandbox.seen(&["stages"]);
    // Features that a build lacks follow the summary.
    let lines: Vec<&str> = lines.lines().map(|line| line.split(" (without ").next().unwrap()).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    trace/otf2            Build the communication matrix of a program from an OTF2 trace
    trace/events          List every message of an OTF2 trace in a table
    trace/dag             Build the task DAG of a program from an OTF2 trace
    trace/program         List what every rank of a program computes, sends and receives, in order
    trace/replay          Export a program or task DAG as a trace for SimGrid or LogGOPSim
    trace/otf             Build the communication matrix of a program from an OTF 1 trace
    trace/import          Import the communication matrix of a recording, or of a file of another tool
    trace/export          Export a communication matrix as a text file
    trace/summary         Summarise a program: totals, imbalance, heaviest pairs, phases
    trace/generate        Generate an OTF2 trace of a program with known messages
    topology/synthetic    Generate a machine topology: tree, fat tree, torus, mesh, ring or dragonfly
    topology/probe        Measure a machine by messages between MPI ranks or agents
    topology/levels       Infer the levels of a machine from measurements between its slots
    topology/import       Import a machine topology from a file or folder; the format is detected
    topology/hwloc        Import the cores and caches of hosts from hwloc; by default of this machine
    topology/export       Write a machine topology as a text file for other tools
    select/nodes          Choose nearby free hosts for a job
    select/hosts          Restrict a machine topology to given hosts, optionally with new costs
    stored/task-graph     Read a task graph from a folder
    stored/system-graph   Read a system graph from a folder
    stored/mapping        Read a mapping from a folder
    stored/measurements   Read measurements from a folder
    instance/qaplib       Read a QAPLIB problem as a program and a machine
    instance/taillard-e   Generate a quadratic assignment problem like Taillard's taiXXeYY
    instance/stencil      Generate a stencil program: ranks of a grid send to their neighbours
    instance/graph        Read a METIS graph as a program
    instance/geometric    Generate a program from a random geometric graph
    instance/random       Generate a program from a uniform random graph
    instance/power-law    Generate a program from a power-law random graph
    instance/parallel     Generate a training step: tensor, context, expert, data and pipeline parallelism
    map/linear            Map rank i to slot i (block mapping, the default of most launchers)
    map/round-robin       Map ranks to hosts in turn (cyclic mapping)
    map/random            Map ranks to randomly drawn slots
    map/annealing         Search by parallel simulated annealing; islands share the best mapping
    map/genetic           Search by a parallel genetic algorithm; islands exchange their best mappings
    map/composite         Anneal a population of mappings, then evolve it by a genetic algorithm
    map/tabu              Search by robust tabu search over exchanges of ranks
    map/exact             Prove the optimum of a small problem by branch and bound, or give a lower bound
    map/external          Run an external solver that reads two matrices and writes a permutation
    map/hierarchical      Partition ranks recursively along the machine tree, up to millions of ranks
    map/import            Import a mapping from KaHIP, VieM, SharedMap, Scotch or an MPI launcher
    map/auto              Choose and run a search by size, density and time limit (algorithm portfolio)
    route/import          Read processes, streams and a network of hosts and switches from JSON or TOML
    route/demands         Derive streams and their bandwidth from the traffic of a traced program, and add ports to the links
    route/build           Design the cheapest machine for a program from an inventory of nodes, switches and boards
    route/fabric          Compute balanced forwarding tables of a whole fabric, without a list of streams
    route/tables          Compute optimal routes and switch tables for a given mapping
    route/map             Optimise mapping, routes and switch tables together
    route/failures        Test whether a program survives the failure of any single link, switch or host
    route/check           Verify switch tables entry by entry: routes, loads and deadlocks
    route/model           Write the integer program of routing, or of mapping and routing, for glpsol, cbc, scip or HiGHS
    route/export          Export switch tables for RapidIO, Linux or InfiniBand, or draw the routes
    schedule/import       Read a task graph in the format of PARUS, Graphviz, the STG set or WfCommons
    schedule/list         Schedule with a list heuristic, such as HEFT
    schedule/genetic      Schedule with the genetic algorithm of PARUS
    schedule/exact        Find the proven optimum of a small problem, or a lower bound
    schedule/auto         Find the best schedule within a budget, with its optimality gap
    schedule/check        Verify a schedule or .sch file by recomputing it
    schedule/export       Export a schedule as .sch, Gantt chart, Perfetto, Pajé or WfFormat
    schedule/replay       Replay the tasks of a traced program under a mapping
    evaluate/mapping      Compare a mapping with linear, round-robin and random baselines
    evaluate/accuracy     Tabulate best, mean and median of many mappings against known values
    evaluate/collectives  Compare collective algorithms under a mapping and the linear baseline
    evaluate/correlation  Correlate metrics and predictions of mappings with their run times
    evaluate/groups       Count the groups of ranks that cross each level of switches
    predict/bound         Bound the run time that any placement can reach, and what it can gain at most
    predict/time          Predict the run time of a program under a mapping, by replay on shared links
    run/best              Return the best mapping of a trial, or the first one if none is faster
    run/trial             Run a program under several mappings, and measure how long it takes
    launch/file           Write the launch file of any launcher: Open MPI, MPICH, Slurm, Flux, and others
    launch/machinefile    Write a machine file for MPICH or Intel MPI: the host of every rank
    launch/rankfile       Write a rank file for Open MPI: host and core of every rank
    launch/hostfile       Write a host file for Open MPI's sequential mapper: the host of every rank
    launch/slurm          Write a host file for srun -m arbitrary: the host of every rank
    launch/cray           Write MPICH_RANK_ORDER for HPE Cray MPICH: the ranks in slot order
    launch/torch          Write the order of hosts for torchrun: node ranks, a host file for srun, or a table for pods
    launch/check          Start a launch file's ranks, and compare their hosts and cores with the mapping
    checkpoint/delta      Compute the size of a checkpoint series with the delta rules first, incremental and ADCA
    checkpoint/store      Store a checkpoint series with deduplication and delta compression
    checkpoint/generate   Generate a checkpoint series with known changes
    ");
    insta::assert_snapshot!(sandbox.seen(&["stages", "evaluate/mapping"]), @r#"
    evaluate/mapping: Compare a mapping with linear, round-robin and random baselines

    inputs
      task-graph       task-graph
      system           system-graph
      mapping          mapping

    outputs
      metrics          metrics

    parameters
      samples          default 20
          Number of random mappings
      seed             default 1
          Random seed
    "#);
}

#[test]
fn a_kind_that_there_is_not_brings_a_suggestion() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.seen(&["stages", "map/anealing"]), @r"
    ------- stderr -------
    error[command::mistake]: there is no stage kind `map/anealing`
      help: did you mean `map/annealing`? `hopmap stages` lists all
    [exit code 2]
    ");
}

#[test]
fn what_is_not_built_in_is_refused_before_anything_runs() {
    if cfg!(feature = "libotf2") {
        return;
    }
    let sandbox = Sandbox::new();
    let read = ["-p", "path=none.otf2", "-p", "reader=libotf2", "--out", "graph"];
    let seen = sandbox.seen(&[&["exec", "trace/otf2"][..], &read].concat());
    assert!(
        seen.contains("`reader = \"libotf2\"` reads archives with libotf2, which this build does not have"),
        "{seen}"
    );
    assert!(seen.contains("build with `make install FEATURES=full`"), "{seen}");
    assert!(seen.contains("[exit code 2]"), "{seen}");
    let line =
        |text: String| text.lines().find(|line| line.starts_with("trace/otf2 ")).unwrap_or("").to_owned();
    assert!(line(sandbox.stdout(&["stages"])).ends_with(" (without libotf2)"));
    assert!(sandbox.stdout(&["stages", "trace/otf2"]).contains("this build does not have libotf2: install"));
    let listed: serde_json::Value =
        serde_json::from_str(&sandbox.stdout(&["stages", "trace/otf2", "--json"])).unwrap();
    assert_eq!(listed["missing"][0]["library"], "libotf2");
}

#[test]
fn help_has_an_example_for_every_command() {
    let sandbox = Sandbox::new();
    for command in [
        "run",
        "plan",
        "why",
        "check",
        "graph",
        "exec",
        "show",
        "report",
        "runs",
        "gc",
        "agent",
        "where",
        "stages",
        "schema",
        "init",
        "completions",
        "man",
        "doctor",
    ] {
        let help = sandbox.stdout(&[command, "--help"]);
        assert!(help.contains("Example"), "{command} --help has no example");
        assert!(help.contains(&format!("  hopmap {command}")), "the example of {command} does not show it");
    }
}

#[test]
fn words_are_listed_and_those_that_lists_hold() {
    let sandbox = Sandbox::new();
    let delta = sandbox.stdout(&["stages", "checkpoint/delta"]);
    assert!(
        delta.contains("\n        incremental  Every checkpoint is a delta against the previous one\n"),
        "{delta}"
    );
    let (export, import) = ("topology/export", "topology/import");
    for (kind, word) in [(export, "slurm-conf"), (export, "graph-csv"), (import, "ibnetdiscover")] {
        assert!(sandbox.stdout(&["stages", kind]).contains(&format!("\n        {word} ")), "{kind}");
    }
    let failures = sandbox.stdout(&["stages", "route/failures"]);
    assert!(
        ["link", "switch", "host"].iter().all(|word| failures.contains(&format!("\n        {word}"))),
        "{failures}"
    );
}

/// `ci/gallery.py` and `ci/reproduce.py` keep the revisions of the stages that made their pages.
#[test]
fn the_gallery_was_made_with_the_stages_of_today() {
    let stages: Value = serde_json::from_str(&Sandbox::new().stdout(&["stages", "--json"])).unwrap();
    let of_today = |kind: &str| {
        let stage = stages.as_array().unwrap().iter().find(|stage| stage["kind"] == kind);
        stage.map(|stage| stage["revision"].to_string())
    };
    let kept = std::fs::read_to_string(project().join("docs/gallery/revisions.csv")).unwrap();
    let rows: Vec<Vec<&str>> = kept.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let stale: BTreeSet<&str> =
        rows.iter().filter(|row| of_today(row[1]).as_deref() != Some(row[2])).map(|row| row[0]).collect();
    assert!(stale.is_empty(), "out of date: {stale:?}; `make gallery` or `make reproduce` makes them again");
    let pictures = std::fs::read_dir(project().join("docs/gallery")).unwrap();
    let names: BTreeSet<String> = pictures
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let made: BTreeSet<String> =
        rows.iter().map(|row| row[0].to_owned()).filter(|name| name != "reproduction").collect();
    assert_eq!(names, made, "entries and their revisions");
}
