//! `hopmap run`.

use std::time::Duration;

use crate::sandbox::{Sandbox, query_program, ring};

#[test]
fn a_first_run_runs_everything_and_a_second_nothing() {
    let sandbox = Sandbox::with_ring();
    insta::assert_snapshot!(sandbox.seen(&["run", "ring.toml", "-j1"]), @r#"
    ring: 5 ran in N.NN s
      result       F 0.550 × linear, 0.550 × round-robin (`--map-by node`)
      quality      F 0.550 × linear, F 0.620 × random, T 0.550 × linear, max_link_load_bytes 0.500 × linear
      rankfile     out/rankfile
      run with     mpirun -n 8 --rankfile out/rankfile PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
      report       .hopmap/reports/ring.html
    ------- stderr -------
      ran        program  N.NN s
      ran        machine  N.NN s
      placement: 8 solvers on every island, 50000 iterations, an exchange after every 1000
      placement: warning: the search ended before its first exchange (`exchange_interval`)
      ran        placement  N.NN s
      ran        quality  N.NN s
      ran        rankfile  N.NN s
    "#);
    insta::assert_snapshot!(sandbox.seen(&["run", "ring.toml"]), @r#"
    ring: nothing to do, 5 of 5 up to date
      result       F 0.550 × linear, 0.550 × round-robin (`--map-by node`)
      quality      F 0.550 × linear, F 0.620 × random, T 0.550 × linear, max_link_load_bytes 0.500 × linear
      rankfile     out/rankfile
      run with     mpirun -n 8 --rankfile out/rankfile PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
      report       .hopmap/reports/ring.html
    "#);
    assert!(sandbox.read("out/rankfile").contains("rank 0="));
}

#[test]
fn only_what_depends_on_a_change_runs_again() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 20001");
    insta::assert_snapshot!(sandbox.seen(&["run", "ring.toml", "-j1"]), @r#"
    ring: 3 ran, 2 cached in N.NN s
      result       F 0.550 × linear, 0.550 × round-robin (`--map-by node`)
      quality      F 0.550 × linear, F 0.620 × random, T 0.550 × linear, max_link_load_bytes 0.500 × linear
      rankfile     out/rankfile
      run with     mpirun -n 8 --rankfile out/rankfile PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
      report       .hopmap/reports/ring.html
    ------- stderr -------
      placement: 8 solvers on every island, 50000 iterations, an exchange after every 1000
      placement: warning: the search ended before its first exchange (`exchange_interval`)
      ran        placement  N.NN s
      ran        quality  N.NN s
      ran        rankfile  N.NN s
    "#);
}

#[test]
fn comments_order_and_names_of_folders_change_nothing() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.edit("ring.toml", "[1, 10]", "[ 1.0, 10.0 ]");
    sandbox.edit("ring.toml", "[stages.machine]", "# a comment\n[stages.machine]");
    sandbox.write("elsewhere/ring.csv", ring(8));
    let again = sandbox.seen(&["run", "ring.toml", "-p", "ranks=elsewhere/ring.csv"]);
    insta::assert_snapshot!(again, @r#"
    ring: nothing to do, 5 of 5 up to date
      result       F 0.550 × linear, 0.550 × round-robin (`--map-by node`)
      quality      F 0.550 × linear, F 0.620 × random, T 0.550 × linear, max_link_load_bytes 0.500 × linear
      rankfile     out/rankfile
      run with     mpirun -n 8 --rankfile out/rankfile PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
      report       .hopmap/reports/ring.html
    "#);
}

#[test]
fn a_missing_copy_is_restored_and_not_made_again() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml"]);
    std::fs::remove_file(sandbox.path().join("out/rankfile")).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["plan", "ring.toml"]), @r#"
      cached     program
      cached     machine
      cached     placement
      cached     quality
      cached     rankfile
      restores   out/rankfile
    ring: nothing to do
    "#);
    insta::assert_snapshot!(sandbox.seen(&["run", "ring.toml"]), @r#"
    ring: nothing to do, 5 of 5 up to date
      result       F 0.550 × linear, 0.550 × round-robin (`--map-by node`)
      quality      F 0.550 × linear, F 0.620 × random, T 0.550 × linear, max_link_load_bytes 0.500 × linear
      rankfile     out/rankfile  (restored)
      run with     mpirun -n 8 --rankfile out/rankfile PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
      report       .hopmap/reports/ring.html
    "#);
}

#[test]
fn a_damaged_artifact_is_made_again() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml"]);
    let machine = sandbox.stdout(&["show", "machine", "--json"]);
    let machine: serde_json::Value = serde_json::from_str(&machine).unwrap();
    let table = std::path::Path::new(machine["path"].as_str().unwrap()).join("slots.parquet");
    std::fs::write(&table, "no Parquet").unwrap();
    insta::assert_snapshot!(sandbox.seen(&["run", "ring.toml"]), @r#"
    ring: 1 ran, 4 cached in N.NN s
      result       F 0.550 × linear, 0.550 × round-robin (`--map-by node`)
      quality      F 0.550 × linear, F 0.620 × random, T 0.550 × linear, max_link_load_bytes 0.500 × linear
      rankfile     out/rankfile
      run with     mpirun -n 8 --rankfile out/rankfile PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
      report       .hopmap/reports/ring.html
    ------- stderr -------
      ran        machine  N.NN s
    "#);
    assert!(std::fs::metadata(&table).unwrap().len() > 100);
}

#[test]
fn a_failed_stage_stops_only_what_needs_it() {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "tree:2x4", "tree:2x2");
    insta::assert_snapshot!(sandbox.seen(&["run", "ring.toml", "-j1"]), @r"
    ring: 2 ran, 1 failed, 2 blocked in N.NN s
      report       .hopmap/reports/ring.html
    ------- stderr -------
      ran        program  N.NN s
      ran        machine  N.NN s
      failed     placement  N.NN s
      blocked    quality
      blocked    rankfile
    error[objective::invalid]: stage `placement` (ring.toml:16)
      `-> 8 ranks do not fit on 4 slots
      help: every rank needs one slot: use a machine with at least 8 slots, or a smaller program
      log: .hopmap/runs/RUN/logs/placement.log
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["plan", "ring.toml"]), @r#"
      cached     program
      cached     machine
      would run  placement                did not finish last time
      waits      quality                  for placement
      waits      rankfile                 for placement
    ring: 1 of 5 would run, 2 depend on their results
    "#);
}

#[test]
fn a_missing_input_file_is_named() {
    let sandbox = Sandbox::with_ring();
    insta::assert_snapshot!(sandbox.seen(&["run", "ring.toml", "-p", "ranks=none.csv", "-j1"]), @r"
    ring: 1 ran, 1 failed, 3 blocked in N.NN s
      report       .hopmap/reports/ring.html
    ------- stderr -------
      failed     program  N.NN s
      ran        machine  N.NN s
      blocked    placement
      blocked    quality
      blocked    rankfile
    error[engine::unreadable]: stage `program` (ring.toml:8)
      |-> cannot read DIR/none.csv
      `-> No such file or directory (os error 2)
      help: paths in a pipeline file are relative to that file, values of -p to the working directory
    [exit code 1]
    ");
}

#[test]
fn with_fail_fast_nothing_more_begins() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "p.toml",
        "[stages.a]\nuses = \"trace/import\"\nwith = { path = \"none.csv\", format = \"csv\" }\n\
         [stages.b]\nuses = \"topology/synthetic\"\nwith = { shape = \"tree:2\", costs = [1] }\n",
    );
    insta::assert_snapshot!(sandbox.seen(&["run", "p.toml", "-j1", "--fail-fast"]), @r"
    p: 1 failed, 1 not started in N.NN s
      report       .hopmap/reports/p.html
    ------- stderr -------
      failed     a  N.NN s
    error[engine::unreadable]: stage `a` (p.toml:3)
      |-> cannot read DIR/none.csv
      `-> No such file or directory (os error 2)
      help: paths in a pipeline file are relative to that file, values of -p to the working directory
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["run", "p.toml", "-j1"]), @r"
    p: 1 ran, 1 failed in N.NN s
      report       .hopmap/reports/p.html
    ------- stderr -------
      failed     a  N.NN s
      ran        b  N.NN s
    error[engine::unreadable]: stage `a` (p.toml:3)
      |-> cannot read DIR/none.csv
      `-> No such file or directory (os error 2)
      help: paths in a pipeline file are relative to that file, values of -p to the working directory
    [exit code 1]
    ");
}

#[test]
fn quiet_prints_nothing_and_json_prints_everything() {
    let sandbox = Sandbox::with_ring();
    assert_eq!(sandbox.seen(&["run", "ring.toml", "--quiet"]), "");
    let report: serde_json::Value =
        serde_json::from_str(&sandbox.stdout(&["run", "ring.toml", "--json"])).unwrap();
    assert_eq!(report["exit"], 0);
    assert_eq!(report["cells"].as_array().unwrap().len(), 5);
    assert!(report["cells"].as_array().unwrap().iter().all(|cell| cell["state"] == "cached"));
}

#[test]
fn a_second_run_at_the_same_time_is_refused() {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "evaluations = 20000", "time_limit_s = 5.0");
    let mut first = sandbox.command(&["run", "ring.toml", "--quiet"]).spawn().unwrap();
    let lock = sandbox.path().join(".hopmap/lock");
    while std::fs::read_to_string(&lock).unwrap_or_default().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let second = sandbox.output(&["run", "ring.toml"]);
    let said = String::from_utf8(second.stderr).unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(second.status.code(), Some(75), "{said}");
    assert!(
        said.contains(&format!("process {} on", first.id())) && said.contains("hopmap run ring"),
        "{said}"
    );
    sandbox.edit("ring.toml", "time_limit_s = 5.0", "evaluations = 20");
    assert!(sandbox.output(&["run", "ring.toml"]).status.success(), "a lock must not outlive its process");
}

#[test]
fn a_deadline_delivers_the_best_so_far() {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 1000000000000");
    let seen = sandbox.seen(&["run", "ring.toml", "--deadline", "1s", "-j1"]);
    insta::assert_snapshot!(seen, @r#"
    ring: 4 ran, 1 partial in N.NN s
      result       F 0.550 × linear, 0.550 × round-robin (`--map-by node`)
      quality      F 0.550 × linear, F 0.620 × random, T 0.550 × linear, max_link_load_bytes 0.500 × linear
      rankfile     out/rankfile
      run with     mpirun -n 8 --rankfile out/rankfile PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
      report       .hopmap/reports/ring.html
    ------- stderr -------
      ran        program  N.NN s
      ran        machine  N.NN s
      placement: 8 solvers on every island, 50000 iterations, an exchange after every 1000
      partial    placement  N.NN s
      ran        quality  N.NN s
      ran        rankfile  N.NN s
    "#);
    assert!(sandbox.stdout(&["plan", "ring.toml"]).contains("would run  placement"));
}

/// Seconds that every cell of a stage ran, and whether each was stopped.
fn placements(sandbox: &Sandbox, arguments: &[&str]) -> Vec<(f64, bool)> {
    let run = [&["run", "ring.toml", "--json", "--quiet"], arguments].concat();
    let report: serde_json::Value = serde_json::from_str(&sandbox.stdout(&run)).unwrap();
    let cells = report["cells"].as_array().unwrap().iter().filter(|cell| cell["stage"] == "placement");
    cells.map(|cell| (cell["seconds"].as_f64().unwrap(), cell["state"] == "partial")).collect()
}

#[test]
fn what_was_stopped_early_is_shown_and_gone_on_with() {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 1000000000000");
    assert!(placements(&sandbox, &["--deadline", "1s"])[0].1);
    let seen = sandbox.seen(&["show", "placement"]);
    assert!(seen.starts_with("mapping  .hopmap/artifacts/"), "{seen}");
    assert!(seen.contains("`placement` was stopped early: this is its best result so far"), "{seen}");
    let plan = sandbox.seen(&["plan", "ring.toml"]);
    assert!(plan.contains("\n  would run  placement                goes on after epoch "), "{plan}");
    assert!(plan.ends_with("ring: 1 of 5 would run, 2 depend on their results\n"), "{plan}");
    let why = sandbox.seen(&["why", "placement", "ring.toml"]);
    assert!(why.contains("\n  goes on after epoch ") && why.contains(" and N.NN s\n"), "{why}");
    sandbox.stdout(&["gc"]);
    let artifact = sandbox.artifact("placement");
    assert!(artifact.join("artifact.json").is_file());
    let digits = &artifact.file_name().unwrap().to_str().unwrap()[..12];
    assert_eq!(sandbox.artifact(digits), artifact);
    let said = sandbox.seen(&["run", "ring.toml", "--deadline", "1s"]);
    assert!(said.contains("placement: resumes an interrupted search after epoch"), "{said}");
    // What belongs to another key is over when the cell has a result.
    sandbox.edit("ring.toml", "evaluations = 1000000000000", "evaluations = 20000");
    sandbox.stdout(&["run", "ring.toml"]);
    let seen = sandbox.seen(&["show", "placement"]);
    assert!(!seen.contains("stopped early"), "{seen}");
}

#[test]
fn what_was_stopped_early_does_not_hide_what_another_pipeline_has() {
    let sandbox = Sandbox::with_ring();
    sandbox.write("other.toml", sandbox.read("ring.toml").replace("out/rankfile", "out/other"));
    sandbox.stdout(&["run", "other.toml"]);
    sandbox.edit("ring.csv", "3,6", "3,7");
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 1000000000000");
    assert!(placements(&sandbox, &["--deadline", "1s"])[0].1);
    let seen = sandbox.seen(&["show", "placement"]);
    assert!(seen.contains("`placement` matches 2 artifacts"), "{seen}");
    assert!(seen.contains("other.toml:placement") && seen.contains(" ring.toml:placement"), "{seen}");
}

#[test]
fn a_search_has_all_the_time_that_what_follows_it_does_not_need() {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 1000000000000");
    for _ in 0..2 {
        // The second time it is known what follows takes.
        let ran = placements(&sandbox, &["--deadline", "2s"]);
        assert!(matches!(ran[..], [(_, true)]), "{ran:?}");
        assert!(sandbox.path().join("out/rankfile").exists(), "what follows had no time");
    }
}

#[test]
fn searches_that_wait_for_the_same_core_all_get_a_part_of_the_time() {
    let sandbox = Sandbox::with_ring();
    let text = sandbox.read("ring.toml");
    sandbox.write("ring.toml", text.split("[stages.quality]").next().unwrap());
    sandbox.edit(
        "ring.toml",
        "with  = { evaluations = 20000 }",
        "with  = { evaluations = 1000000000000, seed = \"${matrix.seed}\" }\nmatrix = { seed = \"1..4\" }",
    );
    let ran = placements(&sandbox, &["--deadline", "3s", "-j1"]);
    assert_eq!(ran.len(), 4);
    assert!(ran.iter().all(|&(_, stopped)| stopped), "{ran:?}");
    let seconds = || ran.iter().map(|&(seconds, _)| seconds);
    let (least, most) = (seconds().fold(f64::INFINITY, f64::min), seconds().fold(0.0, f64::max));
    assert!(most <= 4.0 * least, "{ran:?}");
}

#[test]
fn a_deadline_beyond_the_end_of_the_clock_is_none() {
    let sandbox = Sandbox::with_ring();
    let report = sandbox.stdout(&["run", "ring.toml", "--quiet", "--json", "--deadline", "300000000000y"]);
    assert!(report.contains("\"ran\""), "{report}");
}

#[test]
fn an_interrupted_run_keeps_what_is_done() {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 1000000000000");
    let run = sandbox.command(&["run", "ring.toml", "-j1", "--quiet"]).spawn().unwrap();
    while !sandbox.path().join(".hopmap/state.log").exists()
        || sandbox.read(".hopmap/state.log").lines().count() < 4
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    hopmap_test_support::signal(run.id(), "INT");
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let plan = sandbox.stdout(&["plan", "ring.toml"]);
    assert!(plan.contains("cached     program") && plan.contains("would run  placement"), "{plan}");
}

#[test]
fn a_program_without_messages_is_warned_of_and_a_good_placement_is_not() {
    let warning = "warning: F is 0 for quality: no messages between ranks on different hosts";
    let sandbox = Sandbox::with_ring();
    // As a program of collective operations alone.
    sandbox.write("ring.csv", "source,destination,messages,bytes\n0,0,1,8\n7,7,1,8\n");
    let seen = sandbox.seen(&["run", "ring.toml"]);
    assert!(seen.contains(warning) && !seen.contains("collectives"), "{seen}");
    // Pairs on hosts whose cores cost nothing: F is 0 as well, and other placements are worse.
    sandbox.edit("ring.toml", "costs = [1, 10]", "costs = [0, 10]");
    sandbox.write("ring.csv", "source,destination,messages,bytes\n0,4,1,8\n1,5,1,8\n2,6,1,8\n3,7,1,8\n");
    let seen = sandbox.seen(&["run", "ring.toml"]);
    assert!(seen.contains("F 0") && !seen.contains("F is 0"), "{seen}");
}

#[test]
fn an_embedded_pipeline_runs_anywhere() {
    let sandbox = Sandbox::new();
    let trace = crate::sandbox::project().join("sample-traces/rows-columns-16/eztrace_log.otf2");
    let trace = format!("trace={}", trace.display());
    sandbox.stdout(&["run", "place", "-p", &trace]);
    assert!(sandbox.read("out/rankfile").contains("rank 15="));
    assert!(sandbox.path().join(".hopmap").is_dir());
}

#[test]
fn hosts_and_launcher_of_a_cluster_are_parameters() {
    let sandbox = Sandbox::new();
    let trace = crate::sandbox::project().join("sample-traces/rows-columns-16/eztrace_log.otf2");
    let trace = format!("trace={}", trace.display());
    let run = |with: &[&str]| {
        let with: Vec<&str> = with.iter().flat_map(|with| ["-p", with]).collect();
        sandbox.seen(&[&["run", "place", "--no-report", "-p", &trace], &with[..]].concat())
    };
    let placeholders =
        "  hosts        placeholders (host0, host1, …) of an assumed machine: name yours with --hosts NAMES";
    assert!(run(&[]).contains(placeholders));
    let seen = run(&["hosts=node[01-08]", "slots=2", "launch=slurm"]);
    let command = "  run with     SLURM_HOSTFILE=out/rankfile srun -m arbitrary -n 16 PROGRAM";
    assert!(seen.contains(command) && !seen.contains("placeholders"), "{seen}");
    sandbox.write("my-hosts", "n1 slots=8\nn2 slots=8\n");
    let seen = run(&["hosts_file=my-hosts", "launch=open-mpi-5"]);
    assert!(seen.contains("--map-by rankfile:file=out/rankfile PROGRAM"), "{seen}");
    assert_eq!(sandbox.read("out/rankfile").matches("=n2 slot=").count(), 8);
    let seen = run(&["hosts=node[01-12]", "shape=tree:2x4x2"]);
    assert!(
        seen.contains("error[pipeline::invalid]: shape `tree:2x4x2` has 8 hosts, but 12 are named"),
        "{seen}"
    );
    let seen = run(&["hosts=node[01-12]"]);
    assert!(seen.contains("error[pipeline::invalid]: the named hosts have no number of slots"), "{seen}");
}

#[test]
fn an_embedded_pipeline_runs_on_the_samples_in_the_root_of_a_clone() {
    let sandbox = Sandbox::new();
    let samples = crate::sandbox::project().join("sample-traces");
    std::os::unix::fs::symlink(samples, sandbox.path().join("sample-traces")).unwrap();
    sandbox.stdout(&["run", "rgo", "--no-report", "-p", "seconds=0.1"]);
    assert_eq!(sandbox.read("out/rgo/rankfile").lines().filter(|line| line.starts_with("rank ")).count(), 16);
}

/// In an empty folder, whoever's cache it is; what somebody else wrote into it is not read.
#[test]
fn an_embedded_pipeline_brings_its_samples() {
    let sandbox = Sandbox::new();
    let run = || {
        let mut command = sandbox.command(&["run", "graph2sch", "--no-report"]);
        let output = command.env("XDG_CACHE_HOME", sandbox.path().join("cache")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run();
    let graph =
        format!("cache/hopmap/samples/{}/sample-schedules/cholesky-5/graph.grf", env!("CARGO_PKG_VERSION"));
    let own = sandbox.read(&graph);
    sandbox.write(&graph, "foreign");
    run();
    assert_eq!(sandbox.read(&graph), own);
}

#[test]
fn an_embedded_pipeline_without_its_samples_asks_for_files_of_ones_own() {
    let sandbox = Sandbox::new();
    let parameters = [("job", "program"), ("figure-3-traces", "data"), ("checkpoint", "series")];
    for (name, parameter) in parameters {
        if name == "figure-3-traces" && query_program().is_none() {
            continue;
        }
        let seen = sandbox.seen(&["run", name, "--no-report"]);
        assert!(seen.contains(&format!("help: give your own with `--{parameter} PATH`")), "{name}: {seen}");
        assert!(!seen.contains("pipeline file"), "{name}: {seen}");
    }
    insta::assert_snapshot!(sandbox.seen(&["run", "checkpoint", "--no-report", "--quiet"]), @r"
    ------- stderr -------
    error[engine::not_here]: stage `at-positions` (checkpoint:18)
      |-> cannot read DIR/checkpoints
      `-> No such file or directory (os error 2)
      help: give your own with `--series PATH`: checkpoint comes with hopmap, and its defaults are not here
    error[engine::not_here]: stage `at-addresses` (checkpoint:22)
      |-> cannot read DIR/checkpoints
      `-> No such file or directory (os error 2)
      help: give your own with `--series PATH`: checkpoint comes with hopmap, and its defaults are not here
    error[engine::not_here]: stage `stored` (checkpoint:26)
      |-> cannot read DIR/checkpoints
      `-> No such file or directory (os error 2)
      help: give your own with `--series PATH`: checkpoint comes with hopmap, and its defaults are not here
    [exit code 1]
    ");
    if query_program().is_none() {
        return;
    }
    insta::assert_snapshot!(sandbox.seen(&["run", "batch"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `../sample-traces/**/*.otf2` matches nothing
        ,-[batch:19:20]
     18 | uses    = "trace/otf2"
     19 | foreach = { glob = "${params.traces}", key = "trace" }
        :                    ^^^^^^^^^|^^^^^^^^
        :                             `-- here
     20 | with    = { path = "${matrix.trace}" }
        `----
      help: give your own with `--traces PATTERN`: batch comes with hopmap, and its defaults are not here
    [exit code 2]
    "#);
    // Who gave a file knows which.
    let seen = sandbox.seen(&["run", "graph2sch", "-p", "graph=none.grf", "--no-report"]);
    assert!(seen.contains("none.grf") && !seen.contains("give your own"), "{seen}");
}
