//! Sweeps: ranges, keys side by side, what is left out, a cell for every file, and what becomes of many cells.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::sandbox::{Sandbox, placements, ring};

fn json(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    serde_json::from_slice(&sandbox.output(arguments).stdout).unwrap()
}

/// The cells of a pipeline and their states, from the output of `plan` or `run`.
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

/// The output of `check` for a pipeline that has only this stage.
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
    insta::assert_snapshot!(cells(stage).join("\n"), @r#"
    a[seed=1,degree=2.0,n=8,bytes_name=small]
    a[seed=1,degree=2.0,n=16,bytes_name=large]
    a[seed=2,degree=2.0,n=8,bytes_name=small]
    a[seed=2,degree=2.5,n=8,bytes_name=small]
    a[seed=3,degree=2.0,n=8,bytes_name=small]
    "#);
}

#[test]
fn a_matrix_that_explodes_is_counted_and_refused() {
    insta::assert_snapshot!(check("uses = \"instance/random\"\nwith = { n = 16 }\nmatrix = { seed = \"1..1000000000\" }"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: the matrix of `a` has 1,000,000,000 cells, more than 100,000
       ,-[p.toml:1:9]
     1 | [stages.a]
       :         |
       :         `-- here
     2 | uses = "instance/random"
       `----
      help: 1,000,000,000 seed
    [exit code 2]
    "#);
    insta::assert_snapshot!(check("uses = \"instance/random\"\nmatrix = { seed = \"1..1000\", n = \"8..8007\", degree = [1, 2, 3] }"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: the matrix of `a` has 24,000,000 cells, more than 100,000
       ,-[p.toml:1:9]
     1 | [stages.a]
       :         |
       :         `-- here
     2 | uses = "instance/random"
       `----
      help: 1,000 seed × 8,000 n × 3 degree
    [exit code 2]
    "#);
    let stage = |name: &str| {
        format!(
            "[stages.{name}]\nuses = \"instance/random\"\nwith = {{ n = 8 }}\nmatrix = {{ seed = \"1..60000\" }}\n"
        )
    };
    let sandbox = Sandbox::new();
    sandbox.write("p.toml", stage("b") + &stage("c"));
    insta::assert_snapshot!(sandbox.seen(&["check", "p.toml"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: the pipeline has 120,000 cells, more than 100,000
       ,-[p.toml:5:9]
     4 | matrix = { seed = "1..60000" }
     5 | [stages.c]
       :         |
       :         `-- the most are here: 60,000
     6 | uses = "instance/random"
       `----
    [exit code 2]
    "#);
}

#[test]
fn invalid_ranges_are_refused_with_the_reason() {
    insta::assert_snapshot!(check("uses = \"instance/random\"\nmatrix = { seed = \"3..1\", n = \"0..8 times 2\", degree = \"1..x\" }"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `3..1` has no value: 3 is above 1
       ,-[p.toml:3:19]
     2 | uses = "instance/random"
     3 | matrix = { seed = "3..1", n = "0..8 times 2", degree = "1..x" }
       :                   ^^^|^^
       :                      `-- here
       `----
      help: write a list, or a range such as "1..10", "16..128 step 16", "0.1..0.5 step 0.1" or "16..1024 times 2"; both ends belong to it
    error[pipeline::invalid]: `0..8 times 2` multiplies and does not begin above zero
       ,-[p.toml:3:31]
     2 | uses = "instance/random"
     3 | matrix = { seed = "3..1", n = "0..8 times 2", degree = "1..x" }
       :                               ^^^^^^^|^^^^^^
       :                                      `-- here
       `----
      help: write a list, or a range such as "1..10", "16..128 step 16", "0.1..0.5 step 0.1" or "16..1024 times 2"; both ends belong to it
    error[pipeline::invalid]: `1..x` is neither a list nor a range
       ,-[p.toml:3:56]
     2 | uses = "instance/random"
     3 | matrix = { seed = "3..1", n = "0..8 times 2", degree = "1..x" }
       :                                                        ^^^|^^
       :                                                           `-- here
       `----
      help: write a list, or a range such as "1..10", "16..128 step 16", "0.1..0.5 step 0.1" or "16..1024 times 2"; both ends belong to it
    3 errors
    [exit code 2]
    "#);
}

#[test]
fn keys_side_by_side_have_the_same_number_of_values() {
    insta::assert_snapshot!(check("uses = \"instance/random\"\nzip = { n = [8, 16], seed = \"1..3\" }"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `n` has 2 values, `seed` has 3
       ,-[p.toml:3:22]
     2 | uses = "instance/random"
     3 | zip = { n = [8, 16], seed = "1..3" }
       :                      ^^|^
       :                        `-- not the same number
       `----
      help: values of `zip` go side by side; `matrix` has every combination
    [exit code 2]
    "#);
    insta::assert_snapshot!(check("uses = \"instance/random\"\nzip = { n = [8, 16] }\nmatrix = { n = [8] }"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: the matrix has the key `n` twice
       ,-[p.toml:3:9]
     2 | uses = "instance/random"
     3 | zip = { n = [8, 16] }
       :         |
       :         `-- here
     4 | matrix = { n = [8] }
       `----
      help: `foreach`, `matrix` and `zip` are multiplied: each has keys of its own
    [exit code 2]
    "#);
}

#[test]
fn leaving_out_nothing_or_everything_is_a_mistake() {
    let stage = |exclude: &str| {
        check(&format!(
            "uses = \"instance/${{matrix.family}}\"\nwith = {{ n = 16 }}\nmatrix = {{ family = [\"random\", \"power-law\"], seed = \"1..3\" }}\nexclude = [{exclude}]"
        ))
    };
    insta::assert_snapshot!(stage("{ family = \"ramdom\" }"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: this leaves out nothing: `family` is never ramdom
       ,-[p.toml:5:23]
     4 | matrix = { family = ["random", "power-law"], seed = "1..3" }
     5 | exclude = [{ family = "ramdom" }]
       :                       ^^^^|^^^
       :                           `-- did you mean `random`?
       `----
      help: values of `family`: power-law, random
    [exit code 2]
    "#);
    insta::assert_snapshot!(stage("{ famly = \"random\" }, { seed = \"7..\" }"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: the matrix has no key `famly`
       ,-[p.toml:5:14]
     4 | matrix = { family = ["random", "power-law"], seed = "1..3" }
     5 | exclude = [{ famly = "random" }, { seed = "7.." }]
       :              ^^|^^
       :                `-- did you mean `family`?
       `----
      help: its keys: family, seed
    error[pipeline::invalid]: this leaves out nothing: `seed` is never 7..
       ,-[p.toml:5:43]
     4 | matrix = { family = ["random", "power-law"], seed = "1..3" }
     5 | exclude = [{ famly = "random" }, { seed = "7.." }]
       :                                           ^^|^^
       :                                             `-- here
       `----
      help: values of `seed`: 1, 2, 3
    2 errors
    [exit code 2]
    "#);
    insta::assert_snapshot!(stage("{ seed = \"..3\" }"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: every combination of the matrix is left out
       ,-[p.toml:5:12]
     4 | matrix = { family = ["random", "power-law"], seed = "1..3" }
     5 | exclude = [{ seed = "..3" }]
       :            ^^^^^^^^|^^^^^^^
       :                    `-- here
       `----
    [exit code 2]
    "#);
}

const BATCH: &str = r#"
[params]
traces = "traces/**/*.csv"

[stages.program]
uses = "trace/import"
foreach = { glob = "${params.traces}", key = "trace" }
with = { path = "${matrix.trace}", format = "csv" }

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
    insta::assert_snapshot!(sandbox.seen(&["run", "batch.toml", "-j1", "--no-report"]), @r"
    batch: 9 ran in N.NN s
      launch[trace=b.csv] out/traces/b.csv
      launch[trace=deep/a.csv] out/traces/deep/a.csv
      run with     mpirun -n 8 --rankfile out/traces/b.csv PROGRAM
      run with     mpirun -n 6 --rankfile out/traces/deep/a.csv PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
    ------- stderr -------
      ran        program[trace=b.csv]  N.NN s
      ran        program[trace=deep/a.csv]  N.NN s
      ran        machine  N.NN s
      ran        placement[trace=b.csv,mapper=linear]  N.NN s
      ran        placement[trace=b.csv,mapper=random]  N.NN s
      ran        placement[trace=deep/a.csv,mapper=linear]  N.NN s
      ran        placement[trace=deep/a.csv,mapper=random]  N.NN s
      ran        launch[trace=b.csv]  N.NN s
      ran        launch[trace=deep/a.csv]  N.NN s
    ");
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
    insta::assert_snapshot!(sandbox.seen(&["check", "pipelines/batch.toml"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `traces/**/*.csv` matches nothing
       ,-[pipelines/batch.toml:7:20]
     6 | uses = "trace/import"
     7 | foreach = { glob = "${params.traces}", key = "trace" }
       :                    ^^^^^^^^^|^^^^^^^^
       :                             `-- here
     8 | with = { path = "${matrix.trace}", format = "csv" }
       `----
      help: it is relative to the folder of the pipeline file; hidden files do not count
    [exit code 2]
    "#);
    insta::assert_snapshot!(sandbox.seen(&["check", "batch.toml", "-p", "traces=other/*.csv"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `other/*.csv` matches nothing
       ,-[batch.toml:7:20]
     6 | uses = "trace/import"
     7 | foreach = { glob = "${params.traces}", key = "trace" }
       :                    ^^^^^^^^^|^^^^^^^^
       :                             `-- here
     8 | with = { path = "${matrix.trace}", format = "csv" }
       `----
      help: it is relative to the working directory; hidden files do not count
    [exit code 2]
    "#);
}

#[test]
fn foreach_errors_name_their_position() {
    let sandbox = batch();
    sandbox.edit("batch.toml", "foreach = \"program\"\nmatrix", "foreach = \"launch\"\nmatrix");
    sandbox.edit("batch.toml", "foreach = \"program\"\nneeds", "foreach = \"placement\"\nneeds");
    insta::assert_snapshot!(sandbox.seen(&["check", "batch.toml"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `foreach` forms a cycle
        ,-[batch.toml:16:11]
     15 | uses = "map/${matrix.mapper}"
     16 | foreach = "launch"
        :           ^^^^|^^^
        :               `-- part of the cycle
     17 | matrix = { mapper = ["linear", "random"] }
        `----
      help: placement → launch → placement (read: follows)
    [exit code 2]
    "#);
    sandbox.write(
        "batch.toml",
        BATCH
            .replace("foreach = \"program\"", "foreach = \"progam\"")
            .replace("${params.traces}", "traces/[b"),
    );
    insta::assert_snapshot!(sandbox.seen(&["check", "batch.toml"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `traces/[b` is not a valid pattern: invalid range pattern
       ,-[batch.toml:7:20]
     6 | uses = "trace/import"
     7 | foreach = { glob = "traces/[b", key = "trace" }
       :                    ^^^^^|^^^^^
       :                         `-- here
     8 | with = { path = "${matrix.trace}", format = "csv" }
       `----
    error[pipeline::invalid]: there is no stage `progam`
        ,-[batch.toml:16:11]
     15 | uses = "map/${matrix.mapper}"
     16 | foreach = "progam"
        :           ^^^^|^^^
        :               `-- did you mean `program`?
     17 | matrix = { mapper = ["linear", "random"] }
        `----
      help: stages: program, machine, placement, launch
    error[pipeline::invalid]: there is no stage `progam`
        ,-[batch.toml:22:11]
     21 | uses = "launch/rankfile"
     22 | foreach = "progam"
        :           ^^^^|^^^
        :               `-- did you mean `program`?
     23 | needs = { mapping = "placement[min F]" }
        `----
      help: stages: program, machine, placement, launch
    3 errors
    [exit code 2]
    "#);
    sandbox.write(
        "batch.toml",
        BATCH.replace("foreach = { glob = \"${params.traces}\", key", "foreach = { golb = \"*\", key"),
    );
    insta::assert_snapshot!(sandbox.seen(&["check", "batch.toml"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `foreach` does not say which files
       ,-[batch.toml:7:11]
     6 | uses = "trace/import"
     7 | foreach = { golb = "*", key = "trace" }
       :           ^^^^^^^^^^^^^^|^^^^^^^^^^^^^^
       :                         `-- `glob` is missing
     8 | with = { path = "${matrix.trace}", format = "csv" }
       `----
      help: for example { glob = "traces/**/*.otf2" }
    error[pipeline::invalid]: unknown key `golb`
       ,-[batch.toml:7:13]
     6 | uses = "trace/import"
     7 | foreach = { golb = "*", key = "trace" }
       :             ^^|^
       :               `-- did you mean `glob`?
     8 | with = { path = "${matrix.trace}", format = "csv" }
       `----
      help: keys of `foreach`: glob, key
    2 errors
    [exit code 2]
    "#);
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
fn many_failures_are_reported_in_few_lines() {
    let sandbox = batch();
    for number in 0..30 {
        sandbox
            .write(&format!("traces/bad-{number:02}.csv"), "source,destination,messages,bytes\n0,1,one,1\n");
    }
    insta::assert_snapshot!(sandbox.seen(&["run", "batch.toml", "-j1", "--no-report"]), @r"
    batch: 9 ran, 30 failed, 90 blocked in N.NN s
      program    32 cells: 2 ran, 30 failed
      placement  64 cells: 4 ran, 60 blocked
      launch     32 cells: 2 ran, 30 blocked
      launch[trace=b.csv] out/traces/b.csv
      launch[trace=deep/a.csv] out/traces/deep/a.csv
      run with     mpirun -n 8 --rankfile out/traces/b.csv PROGRAM
      run with     mpirun -n 6 --rankfile out/traces/deep/a.csv PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
    ------- stderr -------
      failed     program[trace=bad-00.csv]  N.NN s
      failed     program[trace=bad-01.csv]  N.NN s
      failed     program[trace=bad-02.csv]  N.NN s
      ran        machine  N.NN s
    error[text::file]: stage `program[trace=bad-00.csv]` (batch.toml:8)
      `-> DIR/traces/bad-00.csv:2: column 3 (messages): `one` is not an integer
      help: ranks, messages and bytes are non-negative integers; delete the line if it is a sum, or a message of another program
      log: .hopmap/runs/RUN/logs/program[trace=traces_bad-00.csv]-123dc524d283.log
    error[text::file]: stage `program[trace=bad-01.csv]` (batch.toml:8)
      `-> DIR/traces/bad-01.csv:2: column 3 (messages): `one` is not an integer
      help: ranks, messages and bytes are non-negative integers; delete the line if it is a sum, or a message of another program
      log: .hopmap/runs/RUN/logs/program[trace=traces_bad-01.csv]-53484718e444.log
    error[text::file]: stage `program[trace=bad-02.csv]` (batch.toml:8)
      `-> DIR/traces/bad-02.csv:2: column 3 (messages): `one` is not an integer
      help: ranks, messages and bytes are non-negative integers; delete the line if it is a sum, or a message of another program
      log: .hopmap/runs/RUN/logs/program[trace=traces_bad-02.csv]-914dd4153157.log
    … and 27 more failed; logs: .hopmap/runs/RUN/logs
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["plan", "batch.toml"]), @r#"
      program    32 cells: 2 cached, 30 would run
            30 × did not finish last time
      cached     machine
      placement  64 cells: 4 cached, 60 waits
      launch     32 cells: 2 cached, 30 waits
    batch: 30 of 129 would run, 90 depend on their results
    "#);
    insta::assert_snapshot!(sandbox.seen(&["why", "program", "batch.toml"]), @r#"
      program    32 cells: 2 cached, 30 would run
            30 × did not finish last time
    one cell: hopmap why 'program[trace=bad-00.csv]' batch.toml
    "#);
    let all = sandbox.stdout(&["plan", "batch.toml", "--all"]);
    assert_eq!(all.lines().filter(|line| line.contains("  program[trace=")).count(), 32);
}

/// What follows the placements.
const FOLLOWERS: &str = r#"[stages.table]
uses = "evaluate/accuracy"
with = { group_by = ["mapper"] }
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
    sandbox.write("sweep.toml", placements("1..5", FOLLOWERS));
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
    insta::assert_snapshot!(sandbox.seen(&["check", "sweep.toml"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `placement` matches 5 cells
        ,-[sweep.toml:26:21]
     25 | uses = "launch/rankfile"
     26 | needs = { mapping = "placement[mapper=linear]" }
        :                     ^^^^^^^^^^^^^|^^^^^^^^^^^^
        :                                  `-- which one?
        `----
      help: choose: placement[min F], or placement[mapper=linear,seed=1]
    [exit code 2]
    "#);
}

#[test]
fn keys_side_by_side_may_have_a_value_twice_but_no_row() {
    let random = "uses = \"instance/random\"\nzip = ";
    let twice = cells(&format!("{random}{{ n = [16, 16, 32], seed = [1, 2, 2] }}"));
    assert_eq!(twice, ["a[n=16,seed=1]", "a[n=16,seed=2]", "a[n=32,seed=2]"]);
    let said = check(&format!("{random}{{ n = [16, 16], seed = [1, 1] }}"));
    assert!(said.contains("]: the value 16, 1 occurs twice"), "{said}");
    let said = check("uses = \"instance/random\"\nwith = { n = 16 }\nmatrix = { seed = [1, 2, 1] }");
    assert!(said.contains("]: the value 1 occurs twice"), "{said}");
}

/// Shape and costs of machines with different depths belong together.
#[test]
fn a_value_of_a_matrix_may_be_a_list() {
    let machine = "uses = \"topology/synthetic\"\nzip = { shape = [\"tree:2x4\", \"tree:2x4x2\"], costs = [[1, 10], [1, 10, 100]] }";
    let named = cells(machine);
    assert_eq!(named, ["a[shape=tree:2x4,costs=1:10]", "a[shape=tree:2x4x2,costs=1:10:100]"]);
    let left = cells(&format!("{machine}\nexclude = [{{ costs = [[1, 10]] }}]"));
    assert_eq!(left, named[1..]);
    let sandbox = Sandbox::new();
    let chosen = "[stages.b]\nuses = \"topology/export\"\nwith = { format = \"dot\" }\nneeds = { system = \"a[costs=1:10]\" }";
    sandbox.write("p.toml", format!("[stages.a]\n{machine}\n{chosen}\n"));
    let plan = json(&sandbox, &["plan", "p.toml", "--json"]);
    assert_eq!(plan["cells"].as_array().unwrap().len(), 3, "{plan}");
    let said = check("uses = \"instance/random\"\nwith = { n = 16 }\nmatrix = { seed = [[1, [2]]] }");
    assert!(said.contains("text, a number, a truth value, or a list of these"), "{said}");
}

#[test]
fn a_sweep_that_was_killed_goes_on_with_the_cells_that_are_left() {
    let sandbox = Sandbox::with_ring();
    sandbox.write("sweep.toml", placements("1..200", FOLLOWERS));
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
