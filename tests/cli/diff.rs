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
uses = "trace/csv"
with = { file = "ring.csv" }

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
    insta::assert_snapshot!(sandbox.seen(&["diff", "previous", "latest"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["diff", "latest", "latest", "--exit-code"]), @"");
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
    insta::assert_snapshot!(stage("program", &[]), @"");
    insta::assert_snapshot!(stage("machine", &[]), @"");
    insta::assert_snapshot!(stage("placement", &["--deep"]), @"");
    insta::assert_snapshot!(stage("rankfile", &[]), @"");
    insta::assert_snapshot!(stage("quality", &["--threshold", "50%"]), @"");
    insta::assert_snapshot!(stage("nothing", &[]), @"");
}

#[test]
fn two_cells_of_a_sweep_and_two_sweeps() {
    let sandbox = Sandbox::new();
    sandbox.write("ring.csv", ring(8));
    sandbox.write("sweep.toml", SWEEP);
    sandbox.stdout(&["run", "sweep.toml", "-j1"]);
    insta::assert_snapshot!(sandbox.seen(&["diff", "placement[seed=1]", "placement[seed=2]"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["diff", "placement[seed=1]", "placement[seed=1]"]), @"");
    sandbox.edit("sweep.toml", "1..3", "2..4");
    sandbox.edit("sweep.toml", "[1, 10]", "[1, 30]");
    sandbox.stdout(&["run", "sweep.toml", "-j1"]);
    insta::assert_snapshot!(sandbox.seen(&["diff", "placement", "--run", "-1", "--run", "latest"]), @"");
}

#[test]
fn folders_are_compared_without_a_store() {
    let sandbox = Sandbox::new();
    sandbox.write("ring.csv", ring(8));
    sandbox.write("wider.csv", ring(10));
    for name in ["ring", "wider"] {
        let file = format!("file={name}.csv");
        sandbox.stdout(&["exec", "trace/csv", "--with", &file, "--out", name]);
    }
    sandbox.stdout(&["exec", "topology/synthetic", "--with", "shape=tree:2x4", "--out", "machine"]);
    insta::assert_snapshot!(sandbox.seen(&["diff", "ring", "wider"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["diff", "ring", "machine"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["diff", "ring", "nowhere"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["diff", "ring", "latest"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["diff", "ring"]), @"");
}

#[test]
fn a_name_that_is_a_run_and_a_folder_is_refused() {
    let sandbox = two_runs();
    sandbox.stdout(&["exec", "trace/csv", "--with", "file=ring.csv", "--out", "latest"]);
    insta::assert_snapshot!(sandbox.seen(&["diff", "previous", "latest"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["diff", "./latest", "program"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["diff", "previous", "program"]), @"");
}
