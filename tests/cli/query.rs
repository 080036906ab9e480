//! `hopmap query`, and `[tables.NAME]` of pipeline files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::sandbox::{Sandbox, project};

const SWEEP: &str = r#"name = "sweep"

[stages.program]
uses = "trace/csv"
with = { file = "ring.csv" }

[stages.the-machine]
uses = "topology/synthetic"
with = { shape = "tree:2x4", costs = [1, 10] }

[stages.placement]
uses   = "map/${matrix.mapper}"
needs  = { task-graph = "program", system = "the-machine" }
matrix = { mapper = ["linear", "random"], seed = "1..3" }
"#;

fn sweep() -> Sandbox {
    let sandbox = Sandbox::with_ring();
    sandbox.write("sweep.toml", SWEEP);
    sandbox.stdout(&["run", "sweep.toml", "--no-report"]);
    sandbox
}

#[test]
fn cells_are_rows_and_so_are_those_of_their_tables() {
    let sandbox = sweep();
    let asked = |sql: &str| sandbox.seen(&["query", sql]);
    insta::assert_snapshot!(asked("SELECT mapper, COUNT(*) AS cells, MIN(F) AS F FROM placement GROUP BY mapper"), @"");
    insta::assert_snapshot!(asked("SELECT cell, mapper, seed, state, F FROM placement WHERE seed < 3"), @"");
    insta::assert_snapshot!(
        asked("SELECT seed, host, COUNT(*) AS ranks FROM placement_ranks WHERE mapper = 'linear' GROUP BY seed, host"),
        @""
    );
    insta::assert_snapshot!(asked("SELECT shape, \"costs\" FROM \"the-machine\""), @"");
    insta::assert_snapshot!(asked("SELECT cell, stage, kind, state FROM cells WHERE seed IS NULL"), @"");
    insta::assert_snapshot!(asked("SELECT pipeline, exit, ran, cached, failed FROM runs"), @"");
}

#[test]
fn every_form() {
    let sandbox = sweep();
    let sql = "SELECT mapper, seed, F FROM placement WHERE seed = 1";
    insta::assert_snapshot!(sandbox.seen(&["query", sql, "--format", "csv"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["query", sql, "--json"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["query", sql, "sweep", "--limit", "1"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["query", sql, "--out", "out/f.parquet"]), @"");
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
    let sandbox = sweep();
    let pairs = "SELECT a.cell, b.rank, c.rank FROM placement AS a CROSS JOIN placement_ranks AS b CROSS JOIN placement_ranks AS c";
    let output = sandbox.output(&["query", pairs]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("placement[")).count(), 40);
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "40 rows are shown of more; --limit shows more, --format csv all\n"
    );
    assert_eq!(sandbox.stdout(&["query", pairs, "--format", "csv"]).lines().count(), 6 * 48 * 48 + 1);
}

#[test]
fn tables_are_listed() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "--no-report"]);
    insta::assert_snapshot!(sandbox.seen(&["query", "--tables"]), @"");
    let list: Value =
        serde_json::from_str(&sandbox.stdout(&["query", "--tables", "ring", "--json"])).unwrap();
    assert!(
        list.as_array()
            .unwrap()
            .iter()
            .any(|table| table["table"] == "placement_ranks" && table["rows"] == 8)
    );
    let shown = sandbox.stdout(&["query", "SHOW TABLES", "--format", "csv"]);
    assert!(shown.starts_with("table,rows,columns\ncells,5,"), "{shown}");
}

#[test]
fn runs_are_told_apart() {
    let sandbox = sweep();
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
    insta::assert_snapshot!(asked(&["--run", &first]), @"");
    insta::assert_snapshot!(asked(&["--run", &second]), @"");
    // The file has fewer cells than the store.
    insta::assert_snapshot!(asked(&["sweep.toml"]), @"");
    let grouped = "SELECT COUNT(DISTINCT run) AS runs, COUNT(*) AS rows FROM placement_ranks";
    insta::assert_snapshot!(sandbox.seen(&["query", grouped, "--run", "all", "--format", "csv"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT run FROM placement", "--run", &first]), @"");
    let wrong = sandbox.seen(&["query", "SELECT 1 AS a", "--run", "yesterday"]);
    assert!(
        wrong.starts_with("------- stderr -------\nerror: there is no run `yesterday`\n  help: the newest: "),
        "{wrong}"
    );
    assert!(wrong.ends_with("[exit code 2]\n"));
}

#[test]
fn artifacts_without_a_store() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["exec", "trace/csv", "--with", "file=ring.csv", "--out", "ring.graph"]);
    sandbox.stdout(&["exec", "trace/csv", "--with", "file=ring.csv", "--out", "other.graph"]);
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
    insta::assert_snapshot!(asked("SELECT COUNT(*) AS same FROM a_edges JOIN b_edges ON a_edges.source = b_edges.source AND a_edges.bytes = b_edges.bytes"), @"");
    insta::assert_snapshot!(asked("SELECT kind, bytes FROM a"), @"");
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT 1 AS one", "--artifact", "a=ring.csv"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT 1 AS one", "--artifact", "a=ring.graph", "--artifact", "a=other.graph"]), @"");
}

#[test]
fn what_is_wrong_is_shown_where_it_stands() {
    let sandbox = sweep();
    let asked = |sql: &str| sandbox.seen(&["query", sql]);
    insta::assert_snapshot!(asked("SELECT mapper,\n  FROM WHERE placement"), @"");
    insta::assert_snapshot!(asked("SELECT * FROM placements"), @"");
    insta::assert_snapshot!(asked("SELECT mapper, AVG(f)\nFROM placement\nGROUP BY mapper"), @"");
    insta::assert_snapshot!(asked("DELETE FROM placement"), @"");
    insta::assert_snapshot!(asked("SELECT hops(F) FROM placement"), @"");
    insta::assert_snapshot!(asked("SELECT CAST(seed AS TINYINT) FROM placement"), @"");
    insta::assert_snapshot!(asked(""), @"");
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT 1 AS a", "swep"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["query", "--tables", "sweep", "more"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["query", "-f", "missing.sql"]), @"");
}

#[test]
fn a_damaged_table_is_no_answer() {
    let sandbox = sweep();
    let artifacts = sandbox.path().join(".hopmap/artifacts");
    let mut tables: Vec<PathBuf> = std::fs::read_dir(artifacts)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("ranks.parquet"))
        .filter(|path| path.exists())
        .collect();
    tables.sort();
    let mut bytes = std::fs::read(&tables[0]).unwrap();
    bytes[6] ^= 1;
    std::fs::write(&tables[0], bytes).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT SUM(slot) FROM placement_ranks"]), @"");
    // What does not need it is answered.
    assert_eq!(
        sandbox.stdout(&["query", "SELECT COUNT(*) AS n FROM placement", "--format", "csv"]),
        "n\n6\n"
    );
}

#[test]
fn an_empty_store_has_nothing_to_ask_about() {
    let sandbox = Sandbox::with_ring();
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT * FROM cells"]), @"");
    std::fs::create_dir(sandbox.path().join(".hopmap")).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT * FROM cells"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT * FROM cells", "ring.toml"]), @"");
}

#[test]
fn of_several_pipelines_the_last_one_is_asked() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "ring.toml", "--no-report"]);
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT COUNT(*) AS cells FROM cells"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT COUNT(*) AS cells FROM cells", "sweep"]), @"");
}

const TABLES: &str = r#"
[tables.summary]
sql  = "SELECT mapper, COUNT(*) AS seeds, MIN(F) AS best FROM placement GROUP BY mapper"
save = "out/summary.csv"

[tables.hosts]
sql = """
SELECT host, COUNT(*) AS ranks
FROM placement_ranks
GROUP BY host
"""
"#;

#[test]
fn a_pipeline_asks_after_every_run() {
    let sandbox = Sandbox::with_ring();
    sandbox.write("sweep.toml", format!("{SWEEP}{TABLES}"));
    insta::assert_snapshot!(sandbox.seen(&["run", "sweep.toml"]), @"");
    insta::assert_snapshot!(sandbox.read("out/summary.csv"), @"");
    let report = sandbox.read(".hopmap/reports/sweep.html");
    assert!(report.contains("<h2>Tables</h2>") && report.contains("<h3>summary</h3>"));
    // A copy that somebody removed comes back, also where nothing has to run, and an answer has only cells of the file.
    std::fs::remove_file(sandbox.path().join("out/summary.csv")).unwrap();
    sandbox.edit("sweep.toml", "1..3", "1..2");
    insta::assert_snapshot!(sandbox.seen(&["run", "sweep.toml"]), @"");
    assert!(sandbox.path().join("out/summary.csv").exists());
    let ran: Value = serde_json::from_str(&sandbox.stdout(&["run", "sweep.toml", "--json"])).unwrap();
    assert_eq!(ran["tables"][0]["rows"][0][0], "linear");
    sandbox.stdout(&["report", "sweep.toml", "--out", "report.html"]);
    assert!(sandbox.read("report.html").contains("<h3>hosts</h3>"));
}

#[test]
fn what_a_pipeline_asks_is_checked_when_planning() {
    let sandbox = Sandbox::with_ring();
    let checked = |tables: &str| {
        sandbox.write("sweep.toml", format!("{SWEEP}{tables}"));
        sandbox.seen(&["check", "sweep.toml"])
    };
    insta::assert_snapshot!(checked("\n[tables.a]\nsql = \"SELECT * FORM placement\"\n"), @"");
    insta::assert_snapshot!(checked("\n[tables.a]\nsql = \"SELECT * FROM placment\"\nsave = \"a.xls\"\n"), @"");
    insta::assert_snapshot!(checked("\n[tables.a]\nsql = \"\"\"\nSELECT *\nFROM placment_ranks\"\"\"\n"), @"");
    insta::assert_snapshot!(checked("\n[tables.a]\nsave = \"a.csv\"\n\n[tables]\nb = 1\nc = { sq = \"\" }\n"), @"");
    insta::assert_snapshot!(checked("\n[tables.a]\nsql = \"SELECT * FROM placement_ranks\"\nsave = \"a.csv\"\n[tables.b]\nsql = \"SHOW TABLES\"\nsave = \"a.csv\"\n"), @"");
}

#[test]
fn a_question_that_fails_fails_after_the_run() {
    let sandbox = Sandbox::with_ring();
    sandbox.write("sweep.toml", format!("{SWEEP}\n[tables.a]\nsql = \"SELECT maper FROM placement\"\n"));
    insta::assert_snapshot!(sandbox.seen(&["run", "sweep.toml", "--no-report"]), @"");
}

#[test]
fn threads_change_no_answer() {
    let sandbox = sweep();
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

/// Rows and the sum of one column, as `hopmap query` and two other programs read them.
#[test]
fn every_artifact_opens_in_pyarrow_and_duckdb() {
    if std::env::var_os("HOPMAP_SYSTEM_TESTS").is_none_or(|value| value != "1") {
        eprintln!("skipped: HOPMAP_SYSTEM_TESTS is not 1");
        return;
    }
    let python = std::env::var("HOPMAP_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let sandbox = sweep();
    let samples: [(&str, &[&str]); 5] = [
        ("place", &["out=out"]),
        ("schedule", &["out=out"]),
        ("route", &["out=out"]),
        ("graph2sch", &["schedule=out/schedule.sch", "gantt=out/schedule.html"]),
        ("claims", &["out=out", "evaluations=20_000", "instances=1..1", "seeds=1..1"]),
    ];
    for (name, params) in samples {
        let pipeline = project().join(format!("pipelines/{name}.toml")).display().to_string();
        let params = params.iter().flat_map(|param| ["-p", param]);
        let run: Vec<&str> =
            ["run", &pipeline, "--no-report", "--store", ".hopmap"].into_iter().chain(params).collect();
        sandbox.stdout(&run);
    }
    let mut expected: BTreeMap<String, Value> = BTreeMap::new();
    for entry in std::fs::read_dir(sandbox.path().join(".hopmap/artifacts")).unwrap() {
        expected.extend(tables_of(&sandbox, &entry.unwrap().path()));
    }
    assert!(expected.len() > 30, "{} tables", expected.len());
    let script = project().join("tests/cli/query/read.py");
    let mut reader = Command::new(python)
        .arg(script)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    serde_json::to_writer(reader.stdin.take().unwrap(), &expected).unwrap();
    let output = reader.wait_with_output().unwrap();
    assert!(output.status.success(), "HOPMAP_PYTHON should name a Python with pyarrow and duckdb");
    let differences = String::from_utf8(output.stdout).unwrap();
    assert_eq!(differences, format!("{} tables are the same\n", expected.len()));
}

/// For every table of an artifact the path of its file, with a column, the number of rows and the sum of the column.
fn tables_of(sandbox: &Sandbox, folder: &Path) -> Vec<(String, Value)> {
    let artifact = format!("a={}", folder.display());
    let list: Value =
        serde_json::from_str(&sandbox.stdout(&["query", "--tables", "--artifact", &artifact, "--json"]))
            .unwrap();
    let tables = list.as_array().unwrap().iter().filter(|table| table["table"] != "a");
    let read = |table: &Value| {
        let name = table["table"].as_str().unwrap();
        let columns = table["columns"].as_array().unwrap();
        let number =
            columns.iter().rev().find(|column| column["type"] != "TEXT" && column["type"] != "BOOLEAN");
        let column = number.map(|column| column["name"].as_str().unwrap());
        let sum = column.map_or("0.0".to_owned(), |column| format!("SUM(CAST(\"{column}\" AS DOUBLE))"));
        let sql = format!("SELECT COUNT(*) AS rows, {sum} AS sum FROM {name}");
        let answer: Value =
            serde_json::from_str(&sandbox.stdout(&["query", &sql, "--artifact", &artifact, "--json"]))
                .unwrap();
        let file = folder.join(format!("{}.parquet", &name[2..])).display().to_string();
        (file, serde_json::json!({ "column": column, "rows": answer["rows"], "sum": answer["sum"] }))
    };
    tables.map(read).collect()
}
