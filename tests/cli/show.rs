//! `hopmap show`.

use crate::sandbox::Sandbox;

#[test]
fn an_artifact_and_its_tables() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml"]);
    insta::assert_snapshot!(sandbox.seen(&["show", "program"]), @r#"
    task-graph  .hopmap/artifacts/DIGEST
    digest  DIGEST
      bytes                        8000
      messages                     80
      pairs                        8
      processes                    8
    table edges: 8 rows (source, destination, messages, bytes)
    table processes: 8 rows (rank, host, compute_s, communication_s, collective_s)
    "#);
    insta::assert_snapshot!(sandbox.seen(&["show", "program", "--table", "edges", "--limit", "2"]), @r#"
    +--------+-------------+----------+-------+
    | source | destination | messages | bytes |
    +--------+-------------+----------+-------+
    | 0      | 3           | 10       | 1000  |
    | 1      | 4           | 10       | 1000  |
    +--------+-------------+----------+-------+
    ------- stderr -------
    2 of 8 rows; --limit 8 shows all
    "#);
    insta::assert_snapshot!(sandbox.seen(&["show", "program", "--table", "edges", "--format", "csv"]), @r#"
    source,destination,messages,bytes
    0,3,10,1000
    1,4,10,1000
    2,5,10,1000
    3,6,10,1000
    4,7,10,1000
    5,0,10,1000
    6,1,10,1000
    7,2,10,1000
    "#);
    insta::assert_snapshot!(sandbox.seen(&["show", "machine", "--table", "levels", "--format", "json"]), @r#"
    {"level":0,"cost":1.0}
    {"level":1,"cost":10.0}
    "#);
}

#[test]
fn what_cannot_be_shown_is_said() {
    let sandbox = Sandbox::with_ring();
    insta::assert_snapshot!(sandbox.seen(&["show", "program"]), @r"
    ------- stderr -------
    error[command::mistake]: there is no artifact, digest or stage `program`
      help: stages of .hopmap: none yet
    [exit code 2]
    ");
    sandbox.stdout(&["run", "ring.toml"]);
    insta::assert_snapshot!(sandbox.seen(&["show", "program", "--table", "edge"]), @r"
    ------- stderr -------
    error[artifact::no_table]: DIR/.hopmap/artifacts/DIGEST does not contain a table `edge`
      help: its tables: edges, processes
    [exit code 2]
    ");
    sandbox.write("odd/artifact.json", "{");
    insta::assert_snapshot!(sandbox.seen(&["show", "odd"]), @r"
    ------- stderr -------
    error[artifact::not_an_artifact]: DIR/odd is not an artifact: artifact.json is malformed: EOF while parsing an object at line 1 column 1
      help: an artifact is a folder with an artifact.json, as `hopmap exec --out` writes it
    [exit code 2]
    ");
    sandbox.write("plain.txt", "no artifact");
    insta::assert_snapshot!(sandbox.seen(&["show", "plain.txt"]), @r"
    ------- stderr -------
    error[artifact::not_an_artifact]: DIR/plain.txt is not an artifact: cannot read artifact.json: Not a directory (os error 20)
      help: an artifact is a folder with an artifact.json, as `hopmap exec --out` writes it
    [exit code 2]
    ");
}

#[test]
fn a_damaged_table_is_not_printed() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["exec", "trace/import", "-p", "path=ring.csv", "-p", "format=csv", "--out", "ring"]);
    sandbox.damage("ring/edges.parquet");
    insta::assert_snapshot!(sandbox.seen(&["show", "ring", "--table", "edges", "--limit", "1"]), @r"
    ------- stderr -------
    error[artifact::damaged]: DIR/ring/edges.parquet is damaged: its hash differs from the one in artifact.json
      help: remove the artifact and recompute it
    [exit code 1]
    ");
    // Of what is whole nothing is held back.
    sandbox.stdout(&["show", "ring", "--table", "processes"]);
    std::fs::remove_file(sandbox.path().join("ring/edges.parquet")).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["show", "ring", "--table", "edges"]), @r"
    ------- stderr -------
    error[artifact::io]: cannot read DIR/ring/edges.parquet
      `-> No such file or directory (os error 2)
    [exit code 1]
    ");
}

/// A sweep of placements, as many as the seeds say.
fn sweep(sandbox: &Sandbox, name: &str, seeds: &str) {
    let text = crate::lock::SWEEP.replace("\"linear\", ", "").replace("1..3", seeds);
    // Two pipelines have no copy in common.
    let text = text.replace("\"best\" }", &format!("\"best-of-{name}\" }}"));
    sandbox.write(name, text);
    sandbox.stdout(&["run", name, "--no-report"]);
}

#[test]
fn a_stage_of_a_sweep_has_cells_one_of_which_is_shown() {
    let sandbox = Sandbox::with_ring();
    sweep(&sandbox, "first.toml", "21..23");
    sweep(&sandbox, "second.toml", "1..12");
    // The pipeline that ran last counts.
    for name in ["placement", "placement[*]", "placement[mapper=random]", "second:placement.mapping"] {
        let table = sandbox.stdout(&["show", name]);
        assert!(table.contains("\n| seed | F ") && table.contains("\n| 12   |"), "{name}: {table}");
        assert_eq!(table.lines().filter(|line| line.starts_with("| ")).count(), 13, "{name}: {table}");
    }
    let csv = sandbox.stdout(&["show", "placement", "--format", "csv"]);
    let (head, rows) = csv.split_once('\n').unwrap();
    assert!(head.starts_with("cell,mapper,seed,") && head.ends_with(",state,seconds,digest"), "{head}");
    assert_eq!(rows.lines().count(), 12);
    assert!(rows.starts_with("\"placement[mapper=random,seed=1]\",random,1,"), "{rows}");
    let json = sandbox.stdout(&["show", "placement", "--json", "--limit", "1"]);
    let row: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&row["seed"], &row["state"]), (&1.into(), &"cached".into()));
    let best = sandbox.output(&["show", "placement[min F]"]);
    assert!(String::from_utf8_lossy(&best.stderr).starts_with("`placement[min F]` is placement[seed="));
    assert!(String::from_utf8_lossy(&best.stdout).starts_with("mapping "));
    insta::assert_snapshot!(sandbox.seen(&["show", "placement[min G]", "--format", "csv"]), @r"
    ------- stderr -------
    error[command::mistake]: `placement` has no metric `G`
      help: its metrics: F, T, dilation_max, dilation_mean, evaluations, hop_bytes, max_link_load_bytes
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["show", "placement[seed=13]"]), @r"
    ------- stderr -------
    error[command::mistake]: `placement` has no cell `placement[seed=13]`
      help: its cells: placement[seed=1], placement[seed=2], placement[seed=3], …
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["show", "placing"]), @r"
    ------- stderr -------
    error[command::mistake]: there is no artifact, digest or stage `placing`
      help: stages of .hopmap: best, machine, placement, program
    [exit code 2]
    ");
    let whole = sandbox.stdout(&["show", "placement[mapper=random,seed=10]"]);
    assert!(whole.starts_with("mapping "), "{whole}");
    for name in [
        "placement[seed=10]",
        "placement[seed=10, mapper=random]",
        "placement[seed=10].mapping",
        "placement.mapping[seed=10]",
    ] {
        assert_eq!(sandbox.stdout(&["show", name]), whole, "{name}");
    }
}

#[test]
fn candidates_of_an_ambiguous_name_can_be_typed() {
    let sandbox = Sandbox::with_ring();
    let one = crate::sandbox::placements("1..2", "");
    sandbox.write("one.toml", format!("name = \"one\"\n{one}"));
    let two = one.replace("[1, 10]", "[1, 20]");
    sandbox.write("two.toml", format!("name = \"two\"\n{two}"));
    sandbox.stdout(&["run", "one.toml", "--no-report"]);
    sandbox.stdout(&["run", "two.toml", "--no-report"]);
    insta::assert_snapshot!(sandbox.seen(&["show", "machine"]), @r"
    ------- stderr -------
    error[command::mistake]: `machine` matches 2 artifacts
      help: name one: one:machine, two:machine
    [exit code 2]
    ");
    for name in
        ["one:machine", "two:machine", "two.toml:machine", "one:placement[mapper=random,seed=2].mapping"]
    {
        let shown = sandbox.seen(&["show", name]);
        assert!(!shown.contains("error"), "{name}: {shown}");
    }
    let different = sandbox.seen(&["diff", "one:machine", "two:machine"]);
    assert!(different.starts_with("system-graph "), "{different}");
    let unknown = sandbox.seen(&["show", "one:machine.slots"]);
    assert!(
        unknown.contains("`machine` has no output `slots`\n  help: its outputs: system-graph"),
        "{unknown}"
    );
}

#[test]
fn a_part_of_a_path_names_a_cell() {
    let sandbox = Sandbox::with_ring();
    for program in ["a", "b"] {
        sandbox.write(&format!("programs/{program}/ring.csv"), sandbox.read("ring.csv"));
    }
    sandbox.edit("programs/b/ring.csv", "0,3,10", "0,3,20");
    sandbox.write(
        "paths.toml",
        r#"
[stages.program]
uses = "trace/import"
with = { format = "csv" }
matrix = { path = ["programs/a/ring.csv", "programs/b/ring.csv"] }
"#,
    );
    let planned = sandbox.stdout(&["plan", "paths.toml"]);
    assert!(planned.contains(" program[path=a] ") && planned.contains(" program[path=b] "), "{planned}");
    sandbox.stdout(&["run", "paths.toml", "--no-report"]);
    let long = sandbox.stdout(&["show", "program[path=programs/b/ring.csv]"]);
    assert_eq!(sandbox.stdout(&["show", "program[path=b]"]), long);
    assert!(sandbox.stdout(&["why", "program[path=b]", "paths.toml"]).starts_with("program[path=b] "));
    let listed = sandbox.seen(&["show", "program"]);
    assert!(listed.contains("\n| a    |") && listed.contains("\n| b    |"), "{listed}");
}

#[test]
fn a_named_store_that_does_not_exist() {
    let sandbox = Sandbox::with_ring();
    let seen = sandbox.seen(&["show", "placement", "--store", "nothere"]);
    assert!(
        seen.contains("error[engine::missing]: there is no store at ") && seen.contains("nothere"),
        "{seen}"
    );
    assert!(seen.ends_with("[exit code 2]\n"), "{seen}");
}

/// Of two pipelines the table of one was shown, without a word.
#[test]
fn a_stage_of_two_pipelines_says_whose_it_is() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "--no-report"]);
    let ring = sandbox.read("ring.toml").replace("name = \"ring\"", "name = \"sweep\"");
    let (begin, _) = ring.split_once("needs = { task-graph").unwrap();
    let needs = "needs = { task-graph = \"program\", system = \"machine\" }\nmatrix = { seed = \"1..2\" }\n";
    let sweep = format!("{begin}{needs}");
    sandbox.write("sweep.toml", sweep);
    sandbox.stdout(&["run", "sweep.toml", "--no-report"]);
    let note = |name: &str| String::from_utf8(sandbox.output(&["show", name]).stderr).unwrap();
    insta::assert_snapshot!(note("placement"), @"`placement` is that of `sweep` of sweep.toml; PIPELINE:placement is that of another one: `ring` of ring.toml");
    assert_eq!(note("ring:placement"), "");
}
