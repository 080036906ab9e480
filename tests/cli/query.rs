//! `hopmap query`, and `[tables.NAME]` of pipeline files.

mod pipelines;
mod program;
mod readers;
mod refused;
mod tables;

use serde_json::Value;

use crate::sandbox::{Sandbox, query_program};

const SWEEP: &str = r#"name = "sweep"

[stages.program]
uses = "trace/import"
with = { path = "ring.csv", format = "csv" }

[stages.the-machine]
uses = "topology/synthetic"
with = { shape = "tree:2x4", costs = [1, 10] }

[stages.placement]
uses   = "map/${matrix.mapper}"
needs  = { task-graph = "program", system = "the-machine" }
matrix = { mapper = ["linear", "random"], seed = "1..3" }
"#;

/// A folder for tests that need `hopmap-query`; none where it was not built.
fn with_query() -> Option<Sandbox> {
    query_program().map(|_| Sandbox::with_ring())
}

fn sweep() -> Option<Sandbox> {
    let sandbox = with_query()?;
    sandbox.write("sweep.toml", SWEEP);
    sandbox.stdout(&["run", "sweep.toml", "--no-report"]);
    Some(sandbox)
}

#[test]
fn cells_are_rows_and_so_are_those_of_their_tables() {
    let Some(sandbox) = sweep() else { return };
    let asked = |sql: &str| sandbox.seen(&["query", sql]);
    insta::assert_snapshot!(asked("SELECT mapper, COUNT(*) AS cells, MIN(F) AS F FROM placement GROUP BY mapper"), @"
    +--------+-------+---------+
    | mapper | cells | F       |
    +--------+-------+---------+
    | linear | 3     | 80000.0 |
    | random | 3     | 71000.0 |
    +--------+-------+---------+
    ");
    insta::assert_snapshot!(asked("SELECT cell, mapper, seed, state, F FROM placement WHERE seed < 3"), @"
    +---------------------------------+--------+------+--------+---------+
    | cell                            | mapper | seed | state  | F       |
    +---------------------------------+--------+------+--------+---------+
    | placement[mapper=linear,seed=1] | linear | 1    | cached | 80000.0 |
    | placement[mapper=linear,seed=2] | linear | 2    | cached | 80000.0 |
    | placement[mapper=random,seed=1] | random | 1    | cached | 80000.0 |
    | placement[mapper=random,seed=2] | random | 2    | cached | 71000.0 |
    +---------------------------------+--------+------+--------+---------+
    ");
    insta::assert_snapshot!(
        asked("SELECT seed, host, COUNT(*) AS ranks FROM placement_ranks WHERE mapper = 'linear' GROUP BY seed, host"),
        @"
    +------+-------+-------+
    | seed | host  | ranks |
    +------+-------+-------+
    | 1    | host0 | 2     |
    | 1    | host1 | 2     |
    | 1    | host2 | 2     |
    | 1    | host3 | 2     |
    | 2    | host0 | 2     |
    | 2    | host1 | 2     |
    | 2    | host2 | 2     |
    | 2    | host3 | 2     |
    | 3    | host0 | 2     |
    | 3    | host1 | 2     |
    | 3    | host2 | 2     |
    | 3    | host3 | 2     |
    +------+-------+-------+
    "
    );
    insta::assert_snapshot!(asked("SELECT shape, \"costs\" FROM \"the-machine\""), @"
    +----------+------------+
    | shape    | costs      |
    +----------+------------+
    | tree:2x4 | [1.0,10.0] |
    +----------+------------+
    ");
    insta::assert_snapshot!(asked("SELECT cell, stage, kind, state FROM cells WHERE seed IS NULL"), @"
    +-------------+-------------+--------------------+--------+
    | cell        | stage       | kind               | state  |
    +-------------+-------------+--------------------+--------+
    | program     | program     | trace/import       | cached |
    | the-machine | the-machine | topology/synthetic | cached |
    +-------------+-------------+--------------------+--------+
    ");
    insta::assert_snapshot!(asked("SELECT pipeline, exit, ran, cached, failed FROM runs"), @"
    +----------+------+-----+--------+--------+
    | pipeline | exit | ran | cached | failed |
    +----------+------+-----+--------+--------+
    | sweep    | 0    | 6   | 2      | 0      |
    +----------+------+-----+--------+--------+
    ");
}

#[test]
fn every_form() {
    let Some(sandbox) = sweep() else { return };
    let sql = "SELECT mapper, seed, F FROM placement WHERE seed = 1";
    insta::assert_snapshot!(sandbox.seen(&["query", sql, "--format", "csv"]), @"
    mapper,seed,F
    linear,1,80000.0
    random,1,80000.0
    ");
    insta::assert_snapshot!(sandbox.seen(&["query", sql, "--json"]), @r#"
    {"mapper":"linear","seed":1,"F":80000.0}
    {"mapper":"random","seed":1,"F":80000.0}
    "#);
    insta::assert_snapshot!(sandbox.seen(&["query", sql, "sweep", "--limit", "1"]), @"
    +--------+------+---------+
    | mapper | seed | F       |
    +--------+------+---------+
    | linear | 1    | 80000.0 |
    +--------+------+---------+
    ");
    insta::assert_snapshot!(sandbox.seen(&["query", sql, "--out", "out/f.parquet"]), @"
    ------- stderr -------
    2 rows in out/f.parquet
    ");
    sandbox.stdout(&["query", sql, "--out", "out/f.arrow"]);
    let bytes = |name: &str| std::fs::read(sandbox.path().join(name)).unwrap();
    assert!(bytes("out/f.parquet").starts_with(b"PAR1"));
    assert!(bytes("out/f.arrow").starts_with(b"ARROW1"));
    sandbox.stdout(&["query", sql, "--format", "parquet", "--out", "out/again"]);
    assert!(bytes("out/again") == bytes("out/f.parquet"));
    sandbox.write("f.sql", format!("-- the best\n{sql}\n"));
    assert_eq!(sandbox.stdout(&["query", "-f", "f.sql", "sweep.toml"]), sandbox.stdout(&["query", sql]));
}

#[test]
fn forty_rows_are_enough_for_a_terminal() {
    let Some(sandbox) = sweep() else { return };
    let pairs = "SELECT a.cell, b.rank, c.rank AS other FROM placement AS a CROSS JOIN placement_ranks AS b CROSS JOIN placement_ranks AS c";
    let output = sandbox.output(&["query", pairs]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("placement[")).count(), 40);
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "the first 40 rows; --limit shows more, --format csv all\n"
    );
    assert_eq!(sandbox.stdout(&["query", pairs, "--format", "csv"]).lines().count(), 6 * 48 * 48 + 1);
}

#[test]
fn runs_are_distinguished() {
    let Some(sandbox) = sweep() else { return };
    sandbox.edit("sweep.toml", "1..3", "1..2");
    sandbox.edit("ring.csv", "0,3,10,1000", "0,3,10,5000");
    sandbox.stdout(&["run", "sweep.toml", "--no-report"]);
    let asked = |more: &[&str]| {
        sandbox.seen(
            &[
                &[
                    "query",
                    "SELECT COUNT(*) AS cells, SUM(bytes) AS bytes FROM program_edges CROSS JOIN placement",
                    "--format",
                    "csv",
                ],
                more,
            ]
            .concat(),
        )
    };
    let runs: Value = serde_json::from_str(&sandbox.stdout(&["runs", "--json"])).unwrap();
    let [first, second] = [0, 1].map(|run| runs[run]["run"].as_str().unwrap().to_owned());
    insta::assert_snapshot!(asked(&["--run", &first]), @"
    cells,bytes
    48,48000
    ");
    insta::assert_snapshot!(asked(&["--run", &second]), @"
    cells,bytes
    32,48000
    ");
    // The file has fewer cells than the store.
    insta::assert_snapshot!(asked(&["sweep.toml"]), @"
    cells,bytes
    32,48000
    ");
    let grouped = "SELECT COUNT(DISTINCT run) AS runs, COUNT(*) AS rows FROM placement_ranks";
    insta::assert_snapshot!(sandbox.seen(&["query", grouped, "--run", "all", "--format", "csv"]), @"
    runs,rows
    2,80
    ");
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT run FROM placement", "--run", &first]), @r"
    ------- stderr -------
    error[query::sql]: there is no column `run`
       ,-[SQL:1:8]
     1 | SELECT run FROM placement
       :        ^|^
       :         `-- here
       `----
      help: columns: cell, mapper, seed, blocks, borders, devices_per_rank, forbidden, ignore_performance, objective, pinned, weight, F, T, dilation_max, dilation_mean, evaluations, hop_bytes, max_link_load_bytes, state, seconds, digest
    [exit code 2]
    ");
    let wrong = sandbox.seen(&["query", "SELECT 1 AS a", "--run", "yesterday"]);
    assert!(wrong.contains(": there is no run `yesterday`\n  help: the newest: "), "{wrong}");
    assert!(wrong.ends_with("[exit code 2]\n"));
}

#[test]
fn artifacts_without_a_store() {
    let Some(sandbox) = with_query() else { return };
    sandbox.stdout(&[
        "exec",
        "trace/import",
        "-p",
        "path=ring.csv",
        "-p",
        "format=csv",
        "--out",
        "ring.graph",
    ]);
    sandbox.stdout(&[
        "exec",
        "trace/import",
        "-p",
        "path=ring.csv",
        "-p",
        "format=csv",
        "--out",
        "other.graph",
    ]);
    let asked = |sql: &str| {
        sandbox.seen(&[
            "query",
            sql,
            "--artifact",
            "a=ring.graph",
            "--artifact",
            "b=other.graph",
            "--format",
            "csv",
        ])
    };
    insta::assert_snapshot!(asked("SELECT COUNT(*) AS same FROM a_edges JOIN b_edges ON a_edges.source = b_edges.source AND a_edges.bytes = b_edges.bytes"), @"
    same
    8
    ");
    insta::assert_snapshot!(asked("SELECT kind, bytes FROM a"), @"
    kind,bytes
    task-graph,8000.0
    ");
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT 1 AS one", "--artifact", "a=ring.csv"]), @r"
    ------- stderr -------
    error[artifact::not_an_artifact]: DIR/ring.csv is not an artifact: cannot read artifact.json: Not a directory (os error 20)
      help: an artifact is a folder with an artifact.json, as `hopmap exec --out` writes it
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT 1 AS one", "--artifact", "a=ring.graph", "--artifact", "a=other.graph"]), @"
    ------- stderr -------
    error[command::mistake]: there is already a table with the name of --artifact a
      help: give it another name
    [exit code 2]
    ");
}

#[test]
fn threads_change_no_answer() {
    let Some(sandbox) = sweep() else { return };
    let questions = [
        "SELECT host, SUM(slot * 0.1) AS s, COUNT(*) AS n FROM placement_ranks GROUP BY host",
        "SELECT a.rank, b.host, SUM(a.slot * 0.1) AS s FROM placement_ranks AS a JOIN placement_ranks AS b ON a.slot = b.rank GROUP BY a.rank, b.host",
        "SELECT a.cell, b.host, a.slot FROM placement_ranks AS a JOIN placement_ranks AS b ON a.slot = b.rank",
        "SELECT host FROM placement_ranks UNION SELECT cell FROM placement",
        "SELECT DISTINCT host, seed FROM placement_ranks",
        "SELECT cell, rank, host FROM placement_ranks ORDER BY host DESC LIMIT 11",
        "SELECT rank, AVG(slot) OVER (PARTITION BY host) AS mean FROM placement_ranks",
    ];
    for sql in questions {
        let answers = ["1", "2", "7"].map(|threads| {
            let mut command = sandbox.command(&["query", sql, "--format", "csv"]);
            command.env("POLARS_MAX_THREADS", threads).env("RAYON_NUM_THREADS", threads);
            let output = command.output().unwrap();
            assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        });
        assert!(answers[0].lines().count() > 2, "{sql}");
        assert_eq!(answers[0], answers[1], "{sql}");
        assert_eq!(answers[0], answers[2], "{sql}");
    }
}

#[test]
fn a_column_names_the_run_in_queries_of_all_runs() {
    let Some(sandbox) = sweep() else { return };
    let question = "SELECT COUNT(DISTINCT run) AS runs, COUNT(*) AS cells FROM placement";
    let asked = |runs: &[&str]| sandbox.seen(&[&["query", question, "--format", "csv"], runs].concat());
    insta::assert_snapshot!(asked(&["--run", "all"]), @"
    runs,cells
    1,6
    ");
    insta::assert_snapshot!(asked(&["sweep", "--run", "all"]), @"
    runs,cells
    1,6
    ");
    sandbox.edit("ring.csv", "0,3,10,1000", "0,3,10,5000");
    sandbox.stdout(&["run", "sweep.toml", "--no-report"]);
    insta::assert_snapshot!(asked(&["--run", "previous", "--run", "latest"]), @"
    runs,cells
    2,12
    ");
}

#[test]
fn runs_are_named_as_for_diff() {
    let Some(sandbox) = sweep() else { return };
    sandbox.edit("sweep.toml", "1..3", "1..2");
    sandbox.edit("ring.csv", "0,3,10,1000", "0,3,10,5000");
    sandbox.stdout(&["run", "sweep.toml", "--no-report"]);
    for (name, cells) in [("latest", 4), ("previous", 6), ("-1", 6)] {
        let question = ["query", "SELECT COUNT(*) AS cells FROM placement", "--run", name, "--format", "csv"];
        assert_eq!(sandbox.stdout(&question), format!("cells\n{cells}\n"), "{name}");
    }
    let earlier = sandbox.output(&["query", "SELECT 1 AS one", "--run", "-2"]);
    assert_eq!(earlier.status.code(), Some(2));
}

#[test]
fn cells_that_the_pipeline_no_longer_has_do_not_count() {
    let Some(sandbox) = sweep() else { return };
    // Edited, but not run since.
    sandbox.edit("sweep.toml", "1..3", "1..2");
    let count = ["query", "SELECT COUNT(*) AS cells FROM placement", "--format", "csv"];
    insta::assert_snapshot!(sandbox.seen(&count), @"
    cells
    4
    ------- stderr -------
    left out, as sweep no longer has these cells: placement[mapper=linear,seed=3], placement[mapper=random,seed=3]
    ");
    sandbox.stdout(&["run", "sweep.toml", "--no-report"]);
    assert_eq!(sandbox.seen(&count), "cells\n4\n");
}

/// The list of runs lacks a run with nothing to do, so queries read the cells of the run before it.
#[test]
fn a_run_with_nothing_to_do_is_the_last_one_as_well() {
    let Some(sandbox) = with_query() else { return };
    sandbox.write(
        "sweep.toml",
        format!("params = {{ seeds = \"1..3\" }}\n{}", SWEEP.replace("1..3", "${params.seeds}")),
    );
    for seeds in ["1..3", "4..4", "1..3"] {
        sandbox.stdout(&["run", "sweep.toml", "--no-report", "-p", &format!("seeds={seeds}")]);
    }
    let cells = ["query", "SELECT COUNT(*) AS cells FROM placement", "--format", "csv"];
    assert_eq!(sandbox.seen(&cells), "cells\n6\n");
    let named = [&cells[..], &["sweep.toml"]].concat();
    assert_eq!(
        sandbox.seen(&named),
        "cells\n6\n------- stderr -------\nwith the parameters of the last run: -p seeds=1..3\n"
    );
}

#[test]
fn a_metric_keeps_its_name_when_a_parameter_of_that_name_is_swept() {
    let Some(sandbox) = with_query() else { return };
    let asked = "SELECT MAX(evaluations) AS metric, MAX(parameter_evaluations) AS parameter FROM placement";
    let asked = || {
        sandbox.stdout(&["run", "ring.toml", "--no-report"]);
        sandbox.stdout(&["query", asked, "--format", "csv"])
    };
    let alone = asked();
    sandbox.edit(
        "ring.toml",
        "[stages.placement]\n",
        "[stages.placement]\nmatrix = { evaluations = [20000] }\n",
    );
    assert_eq!(asked(), alone);
    let matrix = ["query", "SELECT matrix_evaluations AS e FROM placement", "--format", "csv"];
    assert_eq!(sandbox.stdout(&matrix), "e\n20000\n");
}

#[test]
fn a_stage_without_results_is_an_empty_table() {
    let Some(sandbox) = with_query() else { return };
    sandbox.edit("ring.csv", "0,3,10,1000", "0,3,10");
    assert_eq!(sandbox.output(&["run", "ring.toml", "--no-report"]).status.code(), Some(1));
    let asked = |sql: &str| sandbox.stdout(&["query", sql, "--format", "csv"]);
    assert_eq!(asked("SELECT cell, seconds FROM placement"), "cell,seconds\n");
    assert_eq!(asked("SELECT host, COUNT(*) AS ranks FROM placement_ranks GROUP BY host"), "host,ranks\n");
    assert_eq!(asked("SELECT COUNT(*) AS n FROM machine"), "n\n1\n");
}

#[test]
fn the_table_of_all_cells_has_those_that_have_not_run() {
    let Some(sandbox) = sweep() else { return };
    sandbox.edit("sweep.toml", "1..3", "1..4");
    let states = "SELECT state, COUNT(*) AS n FROM cells WHERE stage = 'placement' GROUP BY state ORDER BY n";
    assert_eq!(sandbox.stdout(&["query", states, "--format", "csv"]), "state,n\nnot-started,2\ncached,6\n");
    let results = ["query", "SELECT COUNT(*) AS n FROM placement", "--format", "csv"];
    assert_eq!(sandbox.stdout(&results), "n\n6\n");
}
