//! Routes of streams and tables of switches.

use hopmap_test_support::skipped;
use serde_json::Value;

use crate::sandbox::{Sandbox, project};

/// Three switches in a triangle, a host at each; the second way to C is narrow.
const EXAMPLE: &str = r#"
hosts     = [{ name = "h1", performance = 1 }, { name = "h2", performance = 1 }, { name = "h3", performance = 1 }]
switches  = [{ name = "A", type = 2 }, { name = "B", type = 2 }, { name = "C", type = 1 }]
links     = [
    { a = "A", b = "B", bandwidth = 3 }, { a = "A", b = "C", bandwidth = 1 }, { a = "B", b = "C", bandwidth = 3 },
    { a = "A", b = "h1", bandwidth = 4 }, { a = "B", b = "h2", bandwidth = 4 }, { a = "C", b = "h3", bandwidth = 4 },
]
processes = [{ name = "P1", requires = 1 }, { name = "P2", requires = 1 }, { name = "P3", requires = 1 }]
streams   = [{ from = "P1", to = "P3", bandwidth = 3 }, { from = "P2", to = "P3", bandwidth = 1 }]
mapping   = { P1 = "h1", P2 = "h2", P3 = "h3" }
"#;

const IMPORT: [&str; 6] = ["exec", "route/import", "-p", "path=instance.toml", "--out", "instance"];

/// Inputs and output of a stage.
fn exec(sandbox: &Sandbox, kind: &str, inputs: &[&str], more: &[&str]) -> String {
    let inputs: Vec<String> = inputs.iter().map(|port| format!("{port}=instance/{port}")).collect();
    let inputs: Vec<&str> = inputs.iter().flat_map(|input| ["--in", input]).collect();
    sandbox.seen(&[&["exec", kind][..], &inputs, more].concat())
}

#[test]
fn an_instance_becomes_tables_that_pass_the_check() {
    let sandbox = Sandbox::new();
    sandbox.write("instance.toml", EXAMPLE);
    insta::assert_snapshot!(sandbox.seen(&IMPORT), @r"
    task-graph DIGEST instance/task-graph
    system-graph DIGEST instance/system
    mapping DIGEST instance/mapping
    ");
    let program = exec(&sandbox, "route/model", &["task-graph", "system", "mapping"], &["--out", "model"]);
    insta::assert_snapshot!(program, @r"
    text-file DIGEST model
    ------- stderr -------
    40 variables, 81 constraints
    ");
    assert!(sandbox.read("model/files/route.lp").starts_with("Minimize\n objective: + 1000 Rmax"));
    if !cfg!(feature = "highs") {
        skipped("built without the feature highs");
        return;
    }
    let solved = exec(&sandbox, "route/tables", &["task-graph", "system", "mapping"], &["--out", "solved"]);
    insta::assert_snapshot!(solved, @r"
    mapping DIGEST solved/mapping
    routes DIGEST solved/routes
    tables DIGEST solved/tables
    ------- stderr -------
    objective 4085, proven optimal
    ");
    let entries = sandbox.stdout(&["show", "solved/tables", "--table", "entries", "--format", "csv"]);
    insta::assert_snapshot!(entries, @r"
    switch,input_port,destination,output_port
    3,0,2,1
    3,2,2,0
    4,0,2,1
    4,2,2,0
    5,,2,2
    ");
    let tables = ["--in", "tables=solved/tables", "--out", "checked"];
    let checked = exec(&sandbox, "route/check", &["task-graph", "system", "mapping"], &tables);
    insta::assert_snapshot!(checked, @r"routes DIGEST checked");
    let shown: Value = serde_json::from_str(&sandbox.stdout(&["show", "checked", "--json"])).unwrap();
    assert_eq!(shown["artifact"]["metrics"]["objective"], 4085.0);
    let export = ["--in", "tables=solved/tables", "-p", "format=fmd", "--out", "fmd"];
    exec(&sandbox, "route/export", &["system"], &export);
    assert!(sandbox.read("fmd/files/fmd.conf").contains("ROUTING_TABLE dev08 2\n"));
    let picture = ["--in", "tables=solved/tables", "--in", "routes=solved/routes", "-p", "format=svg"];
    exec(
        &sandbox,
        "route/export",
        &["system", "task-graph", "mapping"],
        &[&picture[..], &["--out", "svg"]].concat(),
    );
    assert!(sandbox.read("svg/files/routes.svg").contains("B → C: 3 B/s of 3 B/s (100 %)"));
    // Where the mapping is free the ways are shorter.
    let free = EXAMPLE.lines().filter(|line| !line.starts_with("mapping"));
    sandbox.write("instance.toml", free.collect::<Vec<_>>().join("\n"));
    sandbox.stdout(&IMPORT);
    exec(&sandbox, "route/map", &["task-graph", "system"], &["--out", "mapped"]);
    let shown: Value = serde_json::from_str(&sandbox.stdout(&["show", "mapped/routes", "--json"])).unwrap();
    assert_eq!(shown["artifact"]["metrics"]["objective"], 3063.0);
}

#[test]
fn no_answer_is_an_answer() {
    let sandbox = Sandbox::new();
    sandbox.write("instance.toml", EXAMPLE.replace("type = 2", "type = 1"));
    sandbox.stdout(&IMPORT);
    if !cfg!(feature = "highs") {
        skipped("built without the feature highs");
        return;
    }
    let tables = exec(&sandbox, "route/tables", &["task-graph", "system", "mapping"], &["--out", "solved"]);
    insta::assert_snapshot!(tables, @r"
    diagnosis DIGEST solved/diagnosis
    ------- stderr -------
    no mapping, routes and tables satisfy all constraints
    link B → C needs 4 B/s, but has 3 B/s: add 1 B/s
    or: make switch A type 2
    and: make switch B type 2
    error[command::infeasible]: the problem is infeasible: no solution exists
      help: the output of the stage explains why
    [exit code 1]
    ");
}

/// Problem 1 of the paper knows no performance.
#[test]
fn a_given_mapping_may_overload_hosts_where_performance_is_ignored() {
    let sandbox = Sandbox::new();
    sandbox.write("instance.toml", EXAMPLE.replace(r#"P2 = "h2""#, r#"P2 = "h3""#));
    sandbox.stdout(&IMPORT);
    let inputs = ["task-graph", "system", "mapping"];
    let tables = |more: &[&str]| {
        exec(
            &sandbox,
            "route/tables",
            &inputs,
            &[&["-p", "method=search"][..], more, &["--out", "solved"]].concat(),
        )
    };
    let refused = tables(&[]);
    assert!(refused.contains("no solution exists") && refused.contains("[exit code 1]"), "{refused}");
    let ignoring = ["-p", "ignore_performance=true"];
    let solved = tables(&ignoring);
    // P1 sends by way of A, B and C, and nothing leaves h3.
    assert!(solved.contains("objective 4043, proven optimal"), "{solved}");
    let check =
        [&["--in", "tables=solved/tables", "-p", "aggregate_flows=true", "--out", "checked"][..], &ignoring]
            .concat();
    exec(&sandbox, "route/check", &inputs, &check);
    let shown: Value = serde_json::from_str(&sandbox.stdout(&["show", "checked", "--json"])).unwrap();
    assert_eq!(shown["artifact"]["metrics"]["objective"], 4043.0);
    // Where hosts are looked for, all would go to one.
    let mapped = exec(&sandbox, "route/map", &inputs[..2], &[&["--out", "mapped"][..], &ignoring].concat());
    assert!(mapped.contains("`ignore_performance` requires a given mapping"), "{mapped}");
}

#[test]
fn an_instance_is_changed_by_parameters() {
    let sandbox = Sandbox::new();
    sandbox.write("instance.toml", EXAMPLE);
    let import = |with: &str| sandbox.seen(&[&IMPORT[..], &["-p", with]].concat());
    for (with, said) in [
        ("switch_types={ D = 1 }", "`switch_types` names `D`, which is not a switch"),
        ("switch_types={ A = 3 }", "switch `A` is of type 3"),
        ("performance=-1", "host `h1` has a performance of -1"),
        ("links=[{ a = \"A\", b = \"B\", bandwidth = 1 }]", "the link between `A` and `B` is defined twice"),
    ] {
        let refused = import(with);
        assert!(refused.contains(said) && refused.contains("[exit code 1]"), "{with}: {refused}");
    }
    // No answer is a result like another, if it may be.
    import("switch_types={ A = 1 }");
    let allowed = ["-p", "method=search", "-p", "allow_infeasible=true", "--out", "solved"];
    let solved = exec(&sandbox, "route/tables", &["task-graph", "system", "mapping"], &allowed);
    assert!(!solved.contains("exit code"), "{solved}");
    let shown: Value =
        serde_json::from_str(&sandbox.stdout(&["show", "solved/diagnosis", "--json"])).unwrap();
    assert_eq!(shown["artifact"]["metrics"]["infeasible"], 1.0);
}

/// Every sentence of the paper about the results of its examples is a gate of the pipeline.
#[test]
fn the_examples_of_the_paper_have_the_published_results() {
    let sandbox = Sandbox::new();
    // As in the root of a clone.
    let samples = project().join("sample-networks");
    std::os::unix::fs::symlink(samples, sandbox.path().join("sample-networks")).unwrap();
    let run = sandbox.stdout(&["run", "rapidio", "--no-report", "--json"]);
    let ran: Value = serde_json::from_str(&run).unwrap();
    let cells = ran["cells"].as_array().unwrap();
    let cell =
        |id: &str| cells.iter().find(|cell| cell["cell"] == id).unwrap_or_else(|| panic!("{id}: {ran}"));
    for performance in [10, 20, 30, 40, 50, 60] {
        let solved = cell(&format!("problem-2-of-2[performance={performance}]"));
        assert_eq!(solved["outputs"]["routes"]["metrics"]["proven"], 1.0, "{performance}");
    }
}

#[test]
fn contradictory_instances_are_refused() {
    let sandbox = Sandbox::new();
    let refused = |from: &str, to: &str| {
        sandbox.write("instance.toml", EXAMPLE.replacen(from, to, 1));
        sandbox.seen(&IMPORT)
    };
    insta::assert_snapshot!(refused(r#"b = "C""#, r#"b = "D""#), @r"
    ------- stderr -------
    error[text::file]: DIR/instance.toml: the link between `A` and `D` names `D`, which is not a host or switch
      help: names must match their declaration
    [exit code 1]
    ");
    insta::assert_snapshot!(refused("bandwidth = 3", "bandwidth = -3"), @r"
    ------- stderr -------
    error[text::file]: DIR/instance.toml: the link between `A` and `B` has a bandwidth of -3
      help: it is above 0; omit links without bandwidth
    [exit code 1]
    ");
    insta::assert_snapshot!(refused("requires", "needs"), @r"
    ------- stderr -------
    error[text::file]: DIR/instance.toml:8: unknown field `needs`, expected one of `name`, `requires`, `capabilities`, `devices`
      help: an instance has `hosts`, `switches`, `links`, `processes` and `streams`, as JSON or TOML
    [exit code 1]
    ");
}
