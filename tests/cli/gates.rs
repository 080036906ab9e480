//! Gates: what the results of a pipeline have to keep.

use insta::assert_snapshot;
use serde_json::Value;

use crate::sandbox::Sandbox;

const GATES: &str = r#"
[gates]
quality = "placement.F <= 1.02 * accepted"
gain = "quality.F <= 0.5 * quality.F_linear"
"#;

/// The pipeline of the ring with gates.
fn with_gates(gates: &str) -> Sandbox {
    let sandbox = Sandbox::with_ring();
    sandbox.write("ring.toml", sandbox.read("ring.toml") + gates);
    sandbox
}

/// A sweep over mappers and seeds beside a single cell.
fn sweep(gates: &str) -> Sandbox {
    let sandbox = Sandbox::with_ring();
    let stages = r#"
[stages.program]
uses = "trace/csv"
with = { file = "ring.csv" }

[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x4", costs = [1, 10] }

[stages.linear]
uses = "map/linear"
needs = { task-graph = "program", system = "machine" }

[stages.placement]
uses   = "map/annealing"
with   = { evaluations = 20000 }
needs  = { task-graph = "program", system = "machine" }
matrix = { seed = "1..3" }

[stages.random]
uses   = "map/random"
needs  = { task-graph = "program", system = "machine" }
matrix = { seed = "1..2" }
"#;
    sandbox.write("sweep.toml", format!("{stages}\n{gates}"));
    sandbox
}

#[test]
fn a_gate_is_open_then_holds_then_breaks_and_says_by_how_much() {
    let sandbox = with_gates(GATES);
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--quiet"]), @"");
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--no-report"]), @"");
    assert_snapshot!(sandbox.seen(&["accept", "ring.toml", "--note", "first"]), @"");
    let text = sandbox.read("ring.accepted.json");
    assert_snapshot!(sandbox.seen(&["accept", "ring.toml"]), @"");
    assert_eq!(sandbox.read("ring.accepted.json"), text);
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--no-report"]), @"");
    sandbox.edit(
        "ring.toml",
        "uses  = \"map/annealing\"\nwith  = { evaluations = 20000 }",
        "uses = \"map/linear\"",
    );
    assert_snapshot!(sandbox.seen(&["plan", "ring.toml"]), @"");
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--quiet"]), @"");
    // Also where nothing has to run.
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--no-report"]), @"");
    assert_snapshot!(sandbox.seen(&["plan", "ring.toml"]), @"");
    assert_snapshot!(sandbox.seen(&["accept", "--check", "ring.toml"]), @"");
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--no-gates", "--no-report"]), @"");
    assert_snapshot!(sandbox.seen(&["accept", "ring.toml"]), @"");
    assert_snapshot!(sandbox.seen(&["accept", "--check", "ring.toml"]), @"");
}

#[test]
fn the_accepted_file_has_one_value_a_line() {
    let sandbox = with_gates(GATES);
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.stdout(&["accept", "ring.toml", "--to", "elsewhere/values.json", "--note", "why"]);
    let text = sandbox.read("elsewhere/values.json");
    let time = serde_json::from_str::<Value>(&text).unwrap()["time"].as_str().unwrap().to_owned();
    assert_snapshot!(text.replace(&time, "TIME"), @"");
    assert!(!sandbox.path().join("ring.accepted.json").exists());
    assert_snapshot!(sandbox.seen(&["plan", "ring.toml", "--accepted", "elsewhere/values.json"]), @"");
}

#[test]
fn a_gate_of_a_sweep_holds_for_each_cell() {
    let sandbox = sweep(
        r#"[gates]
each = "placement.F <= accepted"
beside = "placement.F <= 0.9 * linear.F"
best = "placement[min F].F <= min(random[*].F)"
one = "placement[seed=2].F + linear.F < 100000"
several = "median(placement[*].F) >= max(random[*].F)"
"#,
    );
    assert_snapshot!(sandbox.seen(&["run", "sweep.toml", "--quiet"]), @"");
    assert_snapshot!(sandbox.seen(&["accept", "sweep.toml"]), @"");
    assert_snapshot!(sandbox.seen(&["plan", "sweep.toml"]), @"");
    let value: Value =
        serde_json::from_slice(&sandbox.output(&["run", "sweep.toml", "--json"]).stdout).unwrap();
    assert_eq!(value["exit"], 3);
    let standing = |gate: &str| {
        let all = value["gates"].as_array().unwrap().iter().filter(|verdict| verdict["gate"] == gate);
        all.map(|verdict| verdict["standing"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(standing("each"), "holds holds holds");
    assert_eq!(standing("several"), "broken");
    let html = sandbox.read(".hopmap/reports/sweep.html");
    assert!(html.contains("<h2>Gates</h2>") && html.contains(">broken</span>"));
}

#[test]
fn a_new_cell_is_open_until_it_is_accepted() {
    let sandbox = sweep("[gates]\neach = \"placement.F <= accepted\"\n");
    sandbox.stdout(&["run", "sweep.toml"]);
    sandbox.stdout(&["accept", "sweep.toml"]);
    sandbox.edit("sweep.toml", "seed = \"1..3\"", "seed = \"2..4\"");
    assert_snapshot!(sandbox.seen(&["run", "sweep.toml", "--no-report"]), @"");
    assert_snapshot!(sandbox.seen(&["accept", "sweep.toml"]), @"");
}

#[test]
fn what_is_wrong_with_gates_is_found_before_anything_runs() {
    let sandbox = sweep(
        r#"[gates]
stage = "placment.F < 3"
cell = "placement[sed=1].F < 3"
value = "placement[seed=7].F < 3"
port = "placement.map.F < 3"
form = "placement.F =< 3"
end = "placement.F <"
left = "accepted < placement.F"
nothing = "1 < 2"
pair = "placement.F < random.F"
single = "linear.F < placement.F"
several = "placement[*].F < 3"
function = "maximum(placement[*].F) < 3"
plain = "max(placement.F) < 3"
parameter = "placement.F < ${params.most}"
number = 3
"a gate" = "placement.F < 3"
"#,
    );
    assert_snapshot!(sandbox.seen(&["check", "sweep.toml"]), @"");
}

#[test]
fn parameters_can_stand_in_gates() {
    let sandbox = sweep("[gates]\nfixed = \"linear.F <= ${params.most}\"\n\n[params]\nmost = 1e6\n");
    assert_snapshot!(sandbox.seen(&["check", "sweep.toml"]), @"");
    sandbox.stdout(&["run", "sweep.toml"]);
    assert_snapshot!(sandbox.seen(&["run", "sweep.toml", "-p", "most=5", "--quiet"]), @"");
}

#[test]
fn a_metric_that_there_is_not_is_found_after_the_run_then_before_it() {
    let sandbox = with_gates("[gates]\nquality = \"quality.FF <= 3\"\n");
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--quiet"]), @"");
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 30000");
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--quiet"]), @"");
    assert_eq!(sandbox.stdout(&["runs"]).lines().count(), 1);
    assert_snapshot!(sandbox.seen(&["plan", "ring.toml", "--no-gates"]), @"");
}

#[test]
fn what_has_not_run_or_failed_is_not_accepted() {
    let sandbox = with_gates(GATES);
    assert_snapshot!(sandbox.seen(&["accept", "ring.toml"]), @"");
    assert_snapshot!(sandbox.seen(&["accept", "--check", "ring.toml"]), @"");
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 30000");
    assert_snapshot!(sandbox.seen(&["accept", "ring.toml"]), @"");
    sandbox.write("ring.csv", "source,destination,messages,bytes\n0,1,x,1\n");
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--quiet"]), @"");
    assert_snapshot!(sandbox.seen(&["accept", "ring.toml"]), @"");
    assert!(!sandbox.path().join("ring.accepted.json").exists());
}

#[test]
fn accept_says_what_it_needs() {
    let sandbox = Sandbox::with_ring();
    assert_snapshot!(sandbox.seen(&["accept", "ring.toml"]), @"");
    assert_snapshot!(sandbox.seen(&["accept", "placement"]), @"");
    assert_snapshot!(sandbox.seen(&["accept", "placement", "--to", "x.json", "-p", "a=1"]), @"");
    let sandbox = with_gates(GATES);
    sandbox.write("ring.accepted.json", "{ \"format\": 1, \"digest\": \"\" }");
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--quiet"]), @"");
    sandbox.write("ring.accepted.json", "{");
    assert_snapshot!(sandbox.seen(&["plan", "ring.toml"]), @"");
}

#[test]
fn gates_change_no_key() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.write("ring.toml", sandbox.read("ring.toml") + "\n[gates]\ng = \"placement.F <= 1e9\"\n");
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--no-report"]), @"");
}
