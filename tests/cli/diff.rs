//! `hopmap diff`.

use serde_json::Value as Json;

use crate::sandbox::{Sandbox, ring};

/// A ring that was placed, and placed again with more bytes between two ranks and another machine.
fn two_runs() -> Sandbox {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "map/annealing", "map/linear");
    sandbox.edit("ring.toml", "with  = { evaluations = 20000 }\n", "");
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.edit("ring.csv", "0,3,10,1000", "0,3,10,5000");
    sandbox.edit("ring.toml", "[1, 10]", "[1, 20]");
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox
}

const SWEEP: &str = r#"
[stages.program]
uses = "trace/import"
with = { path = "ring.csv", format = "csv" }

[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x4", costs = [1, 10] }

[stages.placement]
uses   = "map/random"
needs  = { task-graph = "program", system = "machine" }
matrix = { seed = "1..3" }
"#;

#[test]
fn two_runs_and_where_their_differences_begin() {
    let sandbox = two_runs();
    insta::assert_snapshot!(sandbox.seen(&["diff", "previous", "latest"]), @"
    ring RUN → RUN
    cause: machine: costs: [1.0,10.0] → [1.0,20.0]
    cause: program: file matrix.csv: DIGEST → DIGEST
    machine              1 changed
    placement            1 changed
    program              1 changed
    quality              1 changed
    rankfile             1 changed
    placement
        T                            10000 → 60000  (+500.0 %)
        F                            80000 → 240000  (+200.0 %)
        max_link_load_bytes          2000 → 6000  (+200.0 %)
        hop_bytes                    16000 → 24000  (+50.0 %)
    quality
        T                            10000 → 60000  (+500.0 %)
        T_linear                     10000 → 60000  (+500.0 %)
        T_random                     10000 → 60000  (+500.0 %)
        T_round_robin                10000 → 60000  (+500.0 %)
        F_random                     71000 → 221000  (+211.3 %)
        F                            80000 → 240000  (+200.0 %)
        F_linear                     80000 → 240000  (+200.0 %)
        F_round_robin                80000 → 240000  (+200.0 %)
        max_link_load_bytes          2000 → 6000  (+200.0 %)
        max_link_load_bytes_linear   2000 → 6000  (+200.0 %)
        max_link_load_bytes_random   2000 → 6000  (+200.0 %)
        max_link_load_bytes_round_robin 2000 → 6000  (+200.0 %)
        hop_bytes_random             14000 → 22000  (+57.1 %)
        hop_bytes                    16000 → 24000  (+50.0 %)
        hop_bytes_linear             16000 → 24000  (+50.0 %)
        hop_bytes_round_robin        16000 → 24000  (+50.0 %)
        hop_bytes_over_random        1.1428571428571428 → 1.0909090909090908  (-4.5 %)
        F_over_random                1.1267605633802817 → 1.085972850678733  (-3.6 %)
    program
        bytes                        8000 → 12000  (+50.0 %)
    machine
    rankfile
    ");
    insta::assert_snapshot!(sandbox.seen(&["diff", "latest", "latest", "--exit-code"]), @"
    ring RUN → RUN
    machine              1 the same
    placement            1 the same
    program              1 the same
    quality              1 the same
    rankfile             1 the same
    no result is different
    ");
    assert_eq!(sandbox.output(&["diff", "-1", "latest", "--exit-code"]).status.code(), Some(3));
    let json: Json = serde_json::from_str(&sandbox.stdout(&["diff", "-1", "latest", "--json"])).unwrap();
    assert_eq!((&json["version"], &json["runs"]["pipelines"][0]), (&1.into(), &"ring".into()));
}

#[test]
fn a_stage_of_two_runs() {
    let sandbox = two_runs();
    let stage = |name, more: &[&str]| {
        let arguments = [&["diff", name, "--run", "previous", "--run", "latest"], more].concat();
        sandbox.seen(&arguments)
    };
    insta::assert_snapshot!(stage("program", &[]), @"
    task-graph DIGEST → DIGEST
      file matrix.csv: DIGEST → DIGEST
    metrics:
      bytes                        8000 → 12000  (+50.0 %)
    edges: 0 new, 0 gone, 1 changed
    total bytes: 8000 → 12000
    total messages: 80 → 80
    largest changes:
      0 → 3: 1000 bytes in 10 messages → 5000 bytes in 10 messages
    ");
    insta::assert_snapshot!(stage("machine", &[]), @"
    system-graph DIGEST → DIGEST
      costs: [1.0,10.0] → [1.0,20.0]
    level costs are 1, 20, were 1, 10
    ");
    insta::assert_snapshot!(stage("placement", &["--deep"]), @"
    mapping DIGEST → DIGEST
      another program and another machine: the metrics are not of the same problem
      input system: DIGEST → DIGEST
        because costs: [1.0,10.0] → [1.0,20.0]
      input task-graph: DIGEST → DIGEST
        because file matrix.csv: DIGEST → DIGEST
    metrics:
      T                            10000 → 60000  (+500.0 %)
      F                            80000 → 240000  (+200.0 %)
      max_link_load_bytes          2000 → 6000  (+200.0 %)
      hop_bytes                    16000 → 24000  (+50.0 %)
    no rank moved
    F by level of the machine: 80000 → 240000  (+200.0 %)
      level 1                  80000 → 240000  (+160000), pairs 8 → 8
    ");
    insta::assert_snapshot!(stage("rankfile", &[]), @"
    launch-file DIGEST → DIGEST
      input mapping: DIGEST → DIGEST
        because input system: DIGEST → DIGEST
        because input task-graph: DIGEST → DIGEST
    file rankfile is different
      @@ -1,2 +1,2 @@
      -# hopmap mapping DIGEST
      +# hopmap mapping DIGEST
       rank 0=host0 slot=0
    ");
    insta::assert_snapshot!(stage("quality", &["--threshold", "50%"]), @"
    metrics DIGEST → DIGEST
      another program and another machine: the metrics are not of the same problem
      input mapping: DIGEST → DIGEST
        because input system: DIGEST → DIGEST
        because input task-graph: DIGEST → DIGEST
      input system: DIGEST → DIGEST
        because costs: [1.0,10.0] → [1.0,20.0]
      input task-graph: DIGEST → DIGEST
        because file matrix.csv: DIGEST → DIGEST
    metrics:
      T                            10000 → 60000  (+500.0 %)
      T_linear                     10000 → 60000  (+500.0 %)
      T_random                     10000 → 60000  (+500.0 %)
      T_round_robin                10000 → 60000  (+500.0 %)
      F_random                     71000 → 221000  (+211.3 %)
      F                            80000 → 240000  (+200.0 %)
      F_linear                     80000 → 240000  (+200.0 %)
      F_round_robin                80000 → 240000  (+200.0 %)
      max_link_load_bytes          2000 → 6000  (+200.0 %)
      max_link_load_bytes_linear   2000 → 6000  (+200.0 %)
      max_link_load_bytes_random   2000 → 6000  (+200.0 %)
      max_link_load_bytes_round_robin 2000 → 6000  (+200.0 %)
      hop_bytes_random             14000 → 22000  (+57.1 %)
      hop_bytes                    16000 → 24000  (+50.0 %)
      hop_bytes_linear             16000 → 24000  (+50.0 %)
      hop_bytes_round_robin        16000 → 24000  (+50.0 %)
      2 more changed by less than the threshold
    table placements: 23 rows new, 23 gone, 0 changed
      + placement linear, sample 0, F 240000.0, T 60000.0, dilation_max 2.0, dilation_mean 2.0, hop_bytes 24000.0, max_link_load_bytes 6000.0
      - placement linear, sample 0, F 80000.0, T 10000.0, dilation_max 2.0, dilation_mean 2.0, hop_bytes 16000.0, max_link_load_bytes 2000.0
      + placement mapping, sample 0, F 240000.0, T 60000.0, dilation_max 2.0, dilation_mean 2.0, hop_bytes 24000.0, max_link_load_bytes 6000.0
      - placement mapping, sample 0, F 80000.0, T 10000.0, dilation_max 2.0, dilation_mean 2.0, hop_bytes 16000.0, max_link_load_bytes 2000.0
      + placement random, sample 0, F 107000.0, T 20000.0, dilation_max 2.0, dilation_mean 1.25, hop_bytes 10000.0, max_link_load_bytes 2000.0
      - placement random, sample 0, F 53000.0, T 10000.0, dilation_max 2.0, dilation_mean 1.25, hop_bytes 10000.0, max_link_load_bytes 2000.0
      + placement random, sample 1, F 202000.0, T 60000.0, dilation_max 2.0, dilation_mean 1.5, hop_bytes 20000.0, max_link_load_bytes 6000.0
      - placement random, sample 1, F 62000.0, T 10000.0, dilation_max 2.0, dilation_mean 1.5, hop_bytes 12000.0, max_link_load_bytes 2000.0
      + placement random, sample 10, F 240000.0, T 60000.0, dilation_max 2.0, dilation_mean 2.0, hop_bytes 24000.0, max_link_load_bytes 6000.0
      - placement random, sample 10, F 80000.0, T 10000.0, dilation_max 2.0, dilation_mean 2.0, hop_bytes 16000.0, max_link_load_bytes 2000.0
      … and 36 more
    ");
    insta::assert_snapshot!(stage("nothing", &[]), @r"
    ------- stderr -------
    error[command::mistake]: the run RUN has no stage or cell `nothing`
      help: its stages: machine, placement, program, quality, rankfile
    [exit code 2]
    ");
}

#[test]
fn two_cells_of_a_sweep_and_two_sweeps() {
    let sandbox = Sandbox::new();
    sandbox.write("ring.csv", ring(8));
    sandbox.write("sweep.toml", SWEEP);
    sandbox.stdout(&["run", "sweep.toml", "-j1"]);
    insta::assert_snapshot!(sandbox.seen(&["diff", "placement[seed=1]", "placement[seed=2]"]), @"
    mapping DIGEST → DIGEST
      seed: 1 → 2
    metrics:
      dilation_mean                2 → N.NN  (-12.5 %)
      hop_bytes                    16000 → 14000  (-12.5 %)
      F                            80000 → 71000  (-11.2 %)
    6 of 8 ranks moved: 6 level 1
      rank 1: host1 → host2 (slot 2 → 4)
      rank 3: host3 → host1 (slot 6 → 2)
      rank 4: host2 → host0 (slot 4 → 0)
      rank 5: host3 → host0 (slot 7 → 1)
      rank 6: host0 → host3 (slot 0 → 7)
      rank 7: host0 → host3 (slot 1 → 6)
    F by level of the machine: 80000 → 71000  (-11.2 %)
      level 0 (within a host)  0 → 1000  (+1000), pairs 0 → 1
      level 1                  80000 → 70000  (-10000), pairs 8 → 7
    ");
    insta::assert_snapshot!(sandbox.seen(&["diff", "placement[seed=1]", "placement[seed=1]"]), @"the same mapping: DIGEST");
    sandbox.edit("sweep.toml", "1..3", "2..4");
    sandbox.edit("sweep.toml", "[1, 10]", "[1, 30]");
    sandbox.stdout(&["run", "sweep.toml", "-j1"]);
    insta::assert_snapshot!(sandbox.seen(&["diff", "placement", "--run", "-1", "--run", "latest"]), @"
    sweep RUN → RUN
    cause: machine: costs: [1.0,10.0] → [1.0,30.0]
    placement            1 new, 1 gone, 2 changed
        median of F                  +197.2 %
        median of T                  +200.0 %
    placement[seed=4] is new
    placement[seed=1] is gone
    placement[seed=2]
        T                            10000 → 30000  (+200.0 %)
        F                            71000 → 211000  (+197.2 %)
    placement[seed=3]
        T                            10000 → 30000  (+200.0 %)
        F                            71000 → 211000  (+197.2 %)
    ");
}

#[test]
fn folders_are_compared_without_a_store() {
    let sandbox = Sandbox::new();
    sandbox.write("ring.csv", ring(8));
    sandbox.write("wider.csv", ring(10));
    for name in ["ring", "wider"] {
        let path = format!("path={name}.csv");
        sandbox.stdout(&["exec", "trace/import", "-p", &path, "-p", "format=csv", "--out", name]);
    }
    sandbox.stdout(&[
        "exec",
        "topology/synthetic",
        "-p",
        "shape=tree:2x4",
        "-p",
        "costs=[1, 10]",
        "--out",
        "machine",
    ]);
    insta::assert_snapshot!(sandbox.seen(&["diff", "ring", "wider"]), @"
    task-graph DIGEST → DIGEST
      the origin of at least one of them is unknown
    metrics:
      bytes                        8000 → 10000  (+25.0 %)
      messages                     80 → 100  (+25.0 %)
      pairs                        8 → 10  (+25.0 %)
      processes                    8 → 10  (+25.0 %)
    ranks 8 to 9 are new
    edges: 5 new, 3 gone, 0 changed
    total bytes: 8000 → 10000
    total messages: 80 → 100
    largest changes:
      5 → 0: 1000 bytes in 10 messages → none
      5 → 8: none → 1000 bytes in 10 messages
      6 → 1: 1000 bytes in 10 messages → none
      6 → 9: none → 1000 bytes in 10 messages
      7 → 0: none → 1000 bytes in 10 messages
      7 → 2: 1000 bytes in 10 messages → none
      8 → 1: none → 1000 bytes in 10 messages
      9 → 2: none → 1000 bytes in 10 messages
    table processes: 2 rows new, 0 gone, 0 changed
      + rank 8, host none, compute_s none, communication_s none, collective_s none
      + rank 9, host none, compute_s none, communication_s none, collective_s none
    ");
    insta::assert_snapshot!(sandbox.seen(&["diff", "ring", "machine"]), @r"
    ------- stderr -------
    error[command::mistake]: cannot compare artifacts of the kinds task-graph and system-graph
      help: compare two artifacts of the same kind; `hopmap show` prints the kind
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["diff", "ring", "nowhere"]), @r"
    ------- stderr -------
    error[command::mistake]: there is no artifact, digest or stage `nowhere`
      help: stages of .hopmap: none yet
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["diff", "ring", "latest"]), @r"
    ------- stderr -------
    error[command::mistake]: there is no run `latest`: 0 are known
      help: `hopmap runs` lists them
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["diff", "ring"]), @"
    ------- stderr -------
    error[command::arguments]: the following required arguments were not provided:
      <B>

    Usage: hopmap diff <A> <B>

    For more information, try '--help'.
    [exit code 2]
    ");
}

#[test]
fn a_name_that_is_a_run_and_a_folder_is_refused() {
    let sandbox = two_runs();
    sandbox.stdout(&["exec", "trace/import", "-p", "path=ring.csv", "-p", "format=csv", "--out", "latest"]);
    insta::assert_snapshot!(sandbox.seen(&["diff", "previous", "latest"]), @r"
    ------- stderr -------
    error[command::mistake]: `latest` is a run and also a folder
      help: name the run by its start time (`hopmap runs`), the folder as ./NAME, the stage as PIPELINE:NAME
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["diff", "./latest", "program"]), @"the same task-graph: DIGEST");
    insta::assert_snapshot!(sandbox.seen(&["diff", "previous", "program"]), @r"
    ------- stderr -------
    error[command::mistake]: `previous` is a run, but `program` is an artifact
      help: compare two runs, or two artifacts; `hopmap runs` lists the runs
    [exit code 2]
    ");
}

#[test]
fn damaged_artifacts_are_neither_the_same_nor_different() {
    let sandbox = Sandbox::new();
    sandbox.write("ring.csv", ring(8));
    sandbox.write("wider.csv", ring(10));
    for (out, path) in [("ring", "path=ring.csv"), ("copy", "path=ring.csv"), ("wider", "path=wider.csv")] {
        sandbox.stdout(&["exec", "trace/import", "-p", path, "-p", "format=csv", "--out", out]);
    }
    sandbox.damage("copy/edges.parquet");
    insta::assert_snapshot!(sandbox.seen(&["diff", "ring", "copy"]), @r"
    ------- stderr -------
    error[artifact::damaged]: DIR/copy/edges.parquet is damaged: its hash differs from the one in artifact.json
      help: remove the artifact and recompute it
    [exit code 1]
    ");
    let fails = |before: &str, after: &str| {
        assert_eq!(sandbox.output(&["diff", before, after]).status.code(), Some(1), "{before} and {after}");
    };
    fails("copy", "ring");
    fails("copy", "copy");
    fails("copy", "wider");
    fails("wider", "copy");
    sandbox.write("copy/edges.parquet", "PAR1");
    fails("ring", "copy");
    std::fs::remove_file(sandbox.path().join("copy/edges.parquet")).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["diff", "copy", "ring"]), @r"
    ------- stderr -------
    error[artifact::io]: cannot read DIR/copy/edges.parquet
      `-> No such file or directory (os error 2)
    [exit code 1]
    ");
}

#[test]
fn a_difference_is_said_even_when_quiet() {
    let sandbox = two_runs();
    let quiet =
        |arguments: &[&str]| sandbox.seen(&[&["diff"], arguments, &["--exit-code", "--quiet"]].concat());
    insta::assert_snapshot!(quiet(&["previous", "latest"]), @"
    ------- stderr -------
    previous and latest are different
    [exit code 3]
    ");
    insta::assert_snapshot!(quiet(&["machine", "--run", "previous", "--run", "latest"]), @"
    ------- stderr -------
    machine is different in previous and latest
    [exit code 3]
    ");
    assert_eq!(quiet(&["latest", "latest"]), "");
}

#[test]
fn cells_are_named_by_keys_in_any_order() {
    let sandbox = Sandbox::with_ring();
    sandbox.write("sweep.toml", crate::lock::SWEEP);
    sandbox.stdout(&["run", "sweep.toml", "--no-report"]);
    let whole =
        sandbox.stdout(&["diff", "placement[mapper=random,seed=1]", "placement[mapper=random,seed=2]"]);
    let names = ["placement[seed=1, mapper=random]", "placement[seed=2, mapper=random]"];
    assert_eq!(sandbox.stdout(&["diff", names[0], names[1]]), whole);
    insta::assert_snapshot!(sandbox.seen(&["diff", "placement[seed=1]", "placement[seed=2]"]), @r"
    ------- stderr -------
    error[command::mistake]: `placement[seed=1]` matches 2 cells
      help: name one: placement[mapper=linear,seed=1], placement[mapper=random,seed=1]
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["diff", names[0], "--run", "latest", "--run", "latest"]), @"the same mapping: DIGEST");
    insta::assert_snapshot!(
        sandbox.seen(&["diff", "placement[seed=1]", "--run", "latest", "--run", "latest"]),
        @r"
    ------- stderr -------
    error[command::mistake]: `placement[seed=1]` matches 2 cells
      help: name one: placement[mapper=linear,seed=1], placement[mapper=random,seed=1]
    [exit code 2]
    "
    );
}

/// The metrics of mappings of two machines were compared without a word, because their stages are of two kinds.
#[test]
fn mappings_of_other_inputs_are_said_to_be_of_another_problem() {
    let sandbox = Sandbox::with_ring();
    let file = |mapper: &str, costs: &str| {
        format!(
            "[stages.program]\nuses = \"trace/import\"\nwith = {{ path = \"ring.csv\", format = \"csv\" }}\n\
             [stages.machine]\nuses = \"topology/synthetic\"\nwith = {{ shape = \"tree:2x4\", costs = {costs} }}\n\
             [stages.{mapper}]\nuses = \"map/{mapper}\"\nneeds = {{ task-graph = \"program\", system = \"machine\" }}\n"
        )
    };
    for (mapper, costs) in [("linear", "[1, 10]"), ("random", "[1, 20]"), ("round-robin", "[1, 10]")] {
        sandbox.write(&format!("{mapper}.toml"), file(mapper, costs));
        sandbox.stdout(&["run", &format!("{mapper}.toml"), "--no-report"]);
    }
    let other = sandbox.stdout(&["diff", "linear", "random"]);
    assert!(
        other.contains(
            "\n  another machine: the metrics are not of the same problem\n  uses: map/linear → map/random\n"
        ),
        "{other}"
    );
    let same = sandbox.stdout(&["diff", "linear", "round-robin"]);
    assert!(!same.contains("another"), "{same}");
}
