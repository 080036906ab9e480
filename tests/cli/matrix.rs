//! Matrices: cells, pairing, choices.

use crate::sandbox::{Sandbox, placements};

/// What follows the placements.
const FOLLOWERS: &str = r#"[stages.best]
uses  = "launch/rankfile"
needs = { mapping = "placement[min F]" }
save  = { rankfile = "best" }

[stages.each]
uses   = "launch/rankfile"
needs  = { mapping = "placement" }
matrix = { mapper = ["linear", "random"], seed = "2..3" }
save   = { rankfile = "out/${matrix.mapper}-${matrix.seed}" }

[stages.mine]
uses  = "launch/rankfile"
needs = { mapping = "placement[mapper=random, seed=2]" }

[stages.best-of]
uses   = "launch/rankfile"
needs  = { mapping = "placement[max F]" }
matrix = { mapper = ["linear", "random"] }
"#;

fn sweep() -> Sandbox {
    let sandbox = Sandbox::with_ring();
    sandbox.write("sweep.toml", placements("1..3", FOLLOWERS));
    sandbox
}

#[test]
fn every_combination_is_a_cell_and_equal_ones_run_once() {
    let sandbox = sweep();
    insta::assert_snapshot!(sandbox.seen(&["run", "sweep.toml", "-j1"]), @r"
    sweep: 10 ran, 6 cached in N.NN s
      best         best
      each[mapper=linear,seed=2] out/linear-2
      each[mapper=linear,seed=3] out/linear-3  (restored)
      each[mapper=random,seed=2] out/random-2  (restored)
      each[mapper=random,seed=3] out/random-3
      run with     mpirun -n 8 --rankfile best PROGRAM
      run with     mpirun -n 8 --rankfile out/linear-2 PROGRAM
      run with     mpirun -n 8 --rankfile out/linear-3 PROGRAM
      run with     mpirun -n 8 --rankfile out/random-2 PROGRAM
      run with     mpirun -n 8 --rankfile out/random-3 PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
      report       .hopmap/reports/sweep.html
    ------- stderr -------
      ran        program  N.NN s
      ran        machine  N.NN s
      ran        placement[mapper=linear,seed=1]  N.NN s
      ran        placement[mapper=random,seed=1]  N.NN s
      ran        placement[mapper=random,seed=2]  N.NN s
      ran        placement[mapper=random,seed=3]  N.NN s
      ran        best  N.NN s
      ran        each[mapper=linear,seed=2]  N.NN s
      ran        each[mapper=random,seed=3]  N.NN s
      ran        best-of[mapper=random]  N.NN s
    ");
    insta::assert_snapshot!(sandbox.seen(&["plan", "sweep.toml"]), @r#"
      cached     program
      cached     machine
      cached     placement[mapper=linear,seed=1]
      cached     placement[mapper=linear,seed=2]
      cached     placement[mapper=linear,seed=3]
      cached     placement[mapper=random,seed=1]
      cached     placement[mapper=random,seed=2]
      cached     placement[mapper=random,seed=3]
      cached     best
      cached     each[mapper=linear,seed=2]
      cached     each[mapper=linear,seed=3]
      cached     each[mapper=random,seed=2]
      cached     each[mapper=random,seed=3]
      cached     mine
      cached     best-of[mapper=linear]
      cached     best-of[mapper=random]
    sweep: nothing to do
    "#);
}

#[test]
fn a_new_value_adds_only_its_cells() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "sweep.toml"]);
    sandbox.edit("sweep.toml", "seed = \"1..3\"", "seed = \"1..4\"");
    insta::assert_snapshot!(sandbox.seen(&["run", "sweep.toml", "-j1"]), @r"
    sweep: 1 ran, 17 cached in N.NN s
      best         best
      each[mapper=linear,seed=2] out/linear-2
      each[mapper=linear,seed=3] out/linear-3
      each[mapper=random,seed=2] out/random-2
      each[mapper=random,seed=3] out/random-3
      run with     mpirun -n 8 --rankfile best PROGRAM
      run with     mpirun -n 8 --rankfile out/linear-2 PROGRAM
      run with     mpirun -n 8 --rankfile out/linear-3 PROGRAM
      run with     mpirun -n 8 --rankfile out/random-2 PROGRAM
      run with     mpirun -n 8 --rankfile out/random-3 PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
      report       .hopmap/reports/sweep.html
    ------- stderr -------
      ran        placement[mapper=random,seed=4]  N.NN s
    ");
}

#[test]
fn the_chosen_cell_has_the_smallest_metric() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "sweep.toml"]);
    let report: serde_json::Value =
        serde_json::from_str(&sandbox.stdout(&["run", "sweep.toml", "--json"])).unwrap();
    let cells = report["cells"].as_array().unwrap();
    let placements = cells.iter().filter(|cell| cell["stage"] == "placement");
    let smallest = placements
        .min_by(|a, b| {
            let metric =
                |cell: &serde_json::Value| cell["outputs"]["mapping"]["metrics"]["F"].as_f64().unwrap();
            metric(a).total_cmp(&metric(b))
        })
        .unwrap();
    let digest = smallest["outputs"]["mapping"]["digest"].as_str().unwrap();
    assert!(sandbox.read("best").contains(digest));
}

#[test]
fn a_metric_that_does_not_exist_is_named() {
    let sandbox = sweep();
    sandbox.edit("sweep.toml", "[min F]", "[min G]");
    insta::assert_snapshot!(sandbox.seen(&["run", "sweep.toml", "-j1", "--quiet"]), @r#"
    ------- stderr -------
    error[engine::no_metric]: stage `best` (sweep.toml:15)
      `-> `placement[mapper=linear,seed=1]` has no metric `G`
      help: its metrics: F, T, dilation_max, dilation_mean, evaluations, hop_bytes, max_link_load_bytes
    [exit code 1]
    "#);
}

#[test]
fn a_metric_that_no_result_has_is_refused_before_anything_runs() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "sweep.toml"]);
    sandbox.edit("sweep.toml", "[min F]", "[min G]");
    sandbox.edit("ring.csv", "1000", "2000");
    insta::assert_snapshot!(sandbox.seen(&["plan", "sweep.toml"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `placement` has no metric `G`
        ,-[sweep.toml:17:21]
     16 | uses  = "launch/rankfile"
     17 | needs = { mapping = "placement[min G]" }
        :                     ^^^^^^^^^|^^^^^^^^
        :                              `-- here
     18 | save  = { rankfile = "best" }
        `----
      help: its metrics: F, T, dilation_max, dilation_mean, evaluations, hop_bytes, max_link_load_bytes
    [exit code 2]
    "#);
    assert_eq!(sandbox.output(&["run", "sweep.toml"]).status.code(), Some(2));
}
