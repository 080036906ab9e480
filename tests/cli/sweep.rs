//! Sweeps: ranges, keys side by side, what is left out, a cell for every file, and what becomes of many cells.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::sandbox::{Sandbox, ring};

fn json(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    serde_json::from_slice(&sandbox.output(arguments).stdout).unwrap()
}

/// The cells of a pipeline and their states, as `plan` or `run` tells them.
fn states(report: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    report["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| (text(&cell["cell"]), text(&cell["state"])))
        .collect()
}

/// Names of the cells of a pipeline that has only this stage.
fn cells(stage: &str) -> Vec<String> {
    let sandbox = Sandbox::new();
    sandbox.write("p.toml", format!("[stages.a]\n{stage}\n"));
    let plan = json(&sandbox, &["plan", "p.toml", "--json"]);
    let cells = plan["cells"].as_array().unwrap_or_else(|| panic!("{plan}"));
    cells.iter().map(|cell| cell["cell"].as_str().unwrap().to_owned()).collect()
}

/// What `check` says of a pipeline that has only this stage.
fn check(stage: &str) -> String {
    let sandbox = Sandbox::new();
    sandbox.write("p.toml", format!("[stages.a]\n{stage}\n"));
    sandbox.seen(&["check", "p.toml"])
}

#[test]
fn ranges_and_keys_side_by_side_make_cells() {
    let stage = r#"uses = "instance/random"
matrix = { seed = "1..3", degree = "2..2.5 step 0.5" }
zip = { n = "8..16 times 2", bytes_name = ["small", "large"] }
save = { task-graph = "out/${matrix.bytes_name}-${matrix.seed}-${matrix.degree}" }
exclude = [{ n = 16, seed = "2.." }, { seed = [1, 3], degree = 2.5 }]"#;
    insta::assert_snapshot!(cells(stage).join("\n"), @"");
}

#[test]
fn a_matrix_that_explodes_is_counted_and_refused() {
    insta::assert_snapshot!(check("uses = \"instance/random\"\nwith = { n = 8 }\nmatrix = { seed = \"1..1000000000\" }"), @"");
    insta::assert_snapshot!(check("uses = \"instance/random\"\nmatrix = { seed = \"1..1000\", n = \"8..8007\", degree = [1, 2, 3] }"), @"");
    let stage = |name: &str| {
        format!(
            "[stages.{name}]\nuses = \"instance/random\"\nwith = {{ n = 8 }}\nmatrix = {{ seed = \"1..60000\" }}\n"
        )
    };
    let sandbox = Sandbox::new();
    sandbox.write("p.toml", stage("b") + &stage("c"));
    insta::assert_snapshot!(sandbox.seen(&["check", "p.toml"]), @"");
}

#[test]
fn ranges_that_make_no_sense_say_why() {
    insta::assert_snapshot!(check("uses = \"instance/random\"\nmatrix = { seed = \"3..1\", n = \"0..8 times 2\", degree = \"1..x\" }"), @"");
}

#[test]
fn keys_side_by_side_have_the_same_number_of_values() {
    insta::assert_snapshot!(check("uses = \"instance/random\"\nzip = { n = [8, 16], seed = \"1..3\" }"), @"");
    insta::assert_snapshot!(check("uses = \"instance/random\"\nzip = { n = [8, 16] }\nmatrix = { n = [8] }"), @"");
}

#[test]
fn leaving_out_nothing_or_everything_is_a_mistake() {
    let stage = |exclude: &str| {
        check(&format!(
            "uses = \"map/${{matrix.mapper}}\"\nmatrix = {{ mapper = [\"linear\", \"exact\"], seed = \"1..3\" }}\nexclude = [{exclude}]"
        ))
    };
    insta::assert_snapshot!(stage("{ mapper = \"exat\" }"), @"");
    insta::assert_snapshot!(stage("{ maper = \"exact\" }, { seed = \"7..\" }"), @"");
    insta::assert_snapshot!(stage("{ seed = \"..3\" }"), @"");
}

const BATCH: &str = r#"
[params]
traces = "traces/**/*.csv"

[stages.program]
uses = "trace/csv"
foreach = { glob = "${params.traces}", key = "trace" }
with = { file = "${matrix.trace}" }

[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x4", costs = [1, 10] }

[stages.placement]
uses = "map/${matrix.mapper}"
foreach = "program"
matrix = { mapper = ["linear", "random"] }
needs = { task-graph = "program", system = "machine" }

[stages.launch]
uses = "launch/rankfile"
foreach = "program"
needs = { mapping = "placement[min F]" }
save = { rankfile = "out/${matrix.trace}" }
"#;

fn batch() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("traces/b.csv", ring(8));
    sandbox.write("traces/deep/a.csv", ring(6));
    sandbox.write("traces/.hidden.csv", "nonsense");
    sandbox.write("batch.toml", BATCH);
    sandbox
}

#[test]
fn a_new_file_adds_its_cells_and_nothing_else_runs() {
    let sandbox = batch();
    insta::assert_snapshot!(sandbox.seen(&["run", "batch.toml", "-j1", "--no-report"]), @"");
    sandbox.write("traces/c.csv", ring(4));
    let after = states(&json(&sandbox, &["run", "batch.toml", "--json"]));
    let ran: Vec<&String> = after.iter().filter(|(_, state)| *state == "ran").map(|(cell, _)| cell).collect();
    assert_eq!(
        ran,
        [
            "launch[trace=traces/c.csv]",
            "placement[trace=traces/c.csv,mapper=linear]",
            "placement[trace=traces/c.csv,mapper=random]",
            "program[trace=traces/c.csv]"
        ]
    );
    assert!(sandbox.path().join("out/traces/c.csv").is_file());
    std::fs::remove_file(sandbox.path().join("traces/c.csv")).unwrap();
    assert!(sandbox.stdout(&["run", "batch.toml"]).contains("nothing to do"));
}

#[test]
fn a_pattern_of_the_command_line_is_relative_to_the_working_directory() {
    let sandbox = batch();
    sandbox.write("pipelines/batch.toml", BATCH);
    let plan = json(&sandbox, &["plan", "pipelines/batch.toml", "-p", "traces=traces/*.csv", "--json"]);
    assert_eq!(states(&plan)["program[trace=traces/b.csv]"], "would-run");
    sandbox.stdout(&["run", "pipelines/batch.toml", "-p", "traces=traces/*.csv"]);
    insta::assert_snapshot!(sandbox.seen(&["check", "pipelines/batch.toml"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["check", "batch.toml", "-p", "traces=other/*.csv"]), @"");
}

#[test]
fn foreach_that_goes_wrong_says_where() {
    let sandbox = batch();
    sandbox.edit("batch.toml", "foreach = \"program\"\nmatrix", "foreach = \"launch\"\nmatrix");
    sandbox.edit("batch.toml", "foreach = \"program\"\nneeds", "foreach = \"placement\"\nneeds");
    insta::assert_snapshot!(sandbox.seen(&["check", "batch.toml"]), @"");
    sandbox.write(
        "batch.toml",
        BATCH
            .replace("foreach = \"program\"", "foreach = \"progam\"")
            .replace("${params.traces}", "traces/[b"),
    );
    insta::assert_snapshot!(sandbox.seen(&["check", "batch.toml"]), @"");
    sandbox.write(
        "batch.toml",
        BATCH.replace("foreach = { glob = \"${params.traces}\", key", "foreach = { golb = \"*\", key"),
    );
    insta::assert_snapshot!(sandbox.seen(&["check", "batch.toml"]), @"");
}

#[test]
fn one_failing_cell_fails_alone() {
    let sandbox = batch();
    sandbox.write("traces/bad.csv", "source,destination,messages,bytes\n0,1,one,1\n");
    let report = json(&sandbox, &["run", "batch.toml", "--json"]);
    assert_eq!(report["exit"], 1);
    for (cell, state) in states(&report) {
        let expected = match cell.contains("bad.csv") {
            true if cell.starts_with("program") => "failed",
            true => "blocked",
            false => "ran",
        };
        assert_eq!(state, expected, "{cell}");
    }
    sandbox.write("traces/bad.csv", ring(3));
    let report = json(&sandbox, &["run", "batch.toml", "--json"]);
    assert_eq!(report["exit"], 0);
    assert!(states(&report).iter().all(|(cell, state)| (state == "ran") == cell.contains("bad.csv")));
}

#[test]
fn many_failures_are_told_in_few_lines() {
    let sandbox = batch();
    for number in 0..30 {
        sandbox
            .write(&format!("traces/bad-{number:02}.csv"), "source,destination,messages,bytes\n0,1,one,1\n");
    }
    insta::assert_snapshot!(sandbox.seen(&["run", "batch.toml", "-j1", "--no-report"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["plan", "batch.toml"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["why", "program", "batch.toml"]), @"");
    let all = sandbox.stdout(&["plan", "batch.toml", "--all"]);
    assert_eq!(all.lines().filter(|line| line.contains("program[trace=")).count(), 32);
}

const SWEEP: &str = r#"
[stages.program]
uses = "trace/csv"
with = { file = "ring.csv" }

[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x4", costs = [1, 10] }

[stages.placement]
uses = "map/${matrix.mapper}"
needs = { task-graph = "program", system = "machine" }
matrix = { mapper = ["linear", "random"], seed = "1..5" }

[stages.table]
uses = "evaluate/accuracy"
with = { by = ["mapper"] }
needs = { mappings = "placement[mapper=random]" }

[stages.best-random]
uses = "launch/rankfile"
needs = { mapping = "placement[mapper=random, min F]" }

[stages.first]
uses = "launch/rankfile"
needs = { mapping = "placement[mapper=linear, min F]" }
"#;

#[test]
fn selectors_choose_among_cells_with_a_value() {
    let sandbox = Sandbox::with_ring();
    sandbox.write("sweep.toml", SWEEP);
    let graph = json(&sandbox, &["graph", "sweep.toml", "--json"]);
    let edges = graph["edges"].as_array().unwrap();
    let into = |cell: &str| edges.iter().filter(|edge| edge["to"] == cell).count();
    assert_eq!((into("table"), into("best-random"), into("first")), (5, 5, 5));
    let report = json(&sandbox, &["run", "sweep.toml", "--json"]);
    let cells = report["cells"].as_array().unwrap();
    let cell = |name: &str| cells.iter().find(|cell| cell["cell"] == name).unwrap();
    let random = cells.iter().filter(|cell| cell["matrix"]["mapper"] == "random");
    let metric = |cell: &Value| cell["outputs"]["mapping"]["metrics"]["F"].as_f64().unwrap();
    let best = random.min_by(|a, b| metric(a).total_cmp(&metric(b))).unwrap();
    let launched = |name: &str| {
        let file = cell(name)["outputs"]["rankfile"]["path"].as_str().unwrap();
        std::fs::read_to_string(format!("{file}/files/rankfile")).unwrap()
    };
    assert!(launched("best-random").contains(best["outputs"]["mapping"]["digest"].as_str().unwrap()));
    sandbox.edit("sweep.toml", "placement[mapper=linear, min F]", "placement[mapper=linear]");
    insta::assert_snapshot!(sandbox.seen(&["check", "sweep.toml"]), @"");
}

#[test]
fn a_sweep_that_was_killed_goes_on_with_the_cells_that_are_left() {
    let sandbox = Sandbox::with_ring();
    sandbox.write(
        "sweep.toml",
        SWEEP.replace(
            "[\"linear\", \"random\"], seed = \"1..5\"",
            "[\"linear\", \"random\"], seed = \"1..200\"",
        ),
    );
    let mut run = sandbox.command(&["run", "sweep.toml", "--quiet", "-j1"]).spawn().unwrap();
    let results = || {
        let log = std::fs::read_to_string(sandbox.path().join(".hopmap/state.log")).unwrap_or_default();
        log.lines().filter(|line| line.starts_with("{\"result\"")).count()
    };
    while results() < 40 {
        assert!(run.try_wait().unwrap().is_none(), "the sweep ended before it was killed");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    let before = results();
    let done = states(&json(&sandbox, &["plan", "sweep.toml", "--json"]));
    let cached: Vec<&String> =
        done.iter().filter(|(_, state)| *state == "cached").map(|(cell, _)| cell).collect();
    // Cells of `linear` are alike and share one result.
    assert!(cached.len() >= 40 && cached.len() < done.len(), "{} of {}", cached.len(), done.len());
    let after = states(&json(&sandbox, &["run", "sweep.toml", "--json"]));
    for (cell, state) in &after {
        assert!(state == "cached" || (state == "ran" && !cached.contains(&cell)), "{cell} {state}");
    }
    let ran = after.values().filter(|state| *state == "ran").count();
    assert_eq!(results(), before + ran);
    assert!(sandbox.stdout(&["run", "sweep.toml"]).contains("nothing to do"));
}
