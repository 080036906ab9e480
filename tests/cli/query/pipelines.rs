//! `[tables.NAME]` of pipeline files, and which pipeline is asked.

use serde_json::Value;

use super::{SWEEP, sweep, with_query};

#[test]
fn of_several_pipelines_the_last_one_is_asked() {
    let Some(sandbox) = sweep() else { return };
    sandbox.stdout(&["run", "ring.toml", "--no-report"]);
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT COUNT(*) AS cells FROM cells"]), @"
    +-------+
    | cells |
    +-------+
    | 5     |
    +-------+
    ------- stderr -------
    asking ring, which ran last, of ring, sweep
    ");
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT COUNT(*) AS cells FROM cells", "sweep"]), @"
    +-------+
    | cells |
    +-------+
    | 8     |
    +-------+
    ");
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
    let Some(sandbox) = with_query() else { return };
    sandbox.write("sweep.toml", format!("{SWEEP}{TABLES}"));
    insta::assert_snapshot!(sandbox.seen(&["run", "sweep.toml", "-j", "1"]), @"
    sweep: 6 ran, 2 cached in N.NN s
      report       .hopmap/reports/sweep.html
      summary      2 rows in out/summary.csv
        mapper  seeds     best
        linear      3  80000.0
        random      3  71000.0
      hosts        4 rows
        host   ranks
        host0     12
        host1     12
        host2     12
        host3     12
    ------- stderr -------
      ran        program  N.NN s
      ran        the-machine  N.NN s
      ran        placement[mapper=linear,seed=1]  N.NN s
      ran        placement[mapper=random,seed=1]  N.NN s
      ran        placement[mapper=random,seed=2]  N.NN s
      ran        placement[mapper=random,seed=3]  N.NN s
    ");
    insta::assert_snapshot!(sandbox.read("out/summary.csv"), @"
    mapper,seeds,best
    linear,3,80000.0
    random,3,71000.0
    ");
    let report = sandbox.read(".hopmap/reports/sweep.html");
    assert!(report.contains("<h2>Tables</h2>") && report.contains("<h3>summary</h3>"));
    // A copy that somebody removed comes back, also where nothing has to run, and an answer has only cells of the file.
    std::fs::remove_file(sandbox.path().join("out/summary.csv")).unwrap();
    sandbox.edit("sweep.toml", "1..3", "1..2");
    insta::assert_snapshot!(sandbox.seen(&["run", "sweep.toml", "-j", "1"]), @"
    sweep: nothing to do, 6 of 6 up to date
      report       .hopmap/reports/sweep.html
      summary      2 rows in out/summary.csv
        mapper  seeds     best
        linear      2  80000.0
        random      2  71000.0
      hosts        4 rows
        host   ranks
        host0      8
        host1      8
        host2      8
        host3      8
    ");
    assert!(sandbox.path().join("out/summary.csv").exists());
    let ran: Value = serde_json::from_str(&sandbox.stdout(&["run", "sweep.toml", "--json"])).unwrap();
    assert_eq!(ran["tables"][0]["rows"][0][0], "linear");
    sandbox.stdout(&["report", "sweep.toml", "--out", "report.html"]);
    assert!(sandbox.read("report.html").contains("<h3>hosts</h3>"));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one mistake after the other, each with what is said of it")]
fn what_a_pipeline_asks_is_checked_when_planning() {
    let Some(sandbox) = with_query() else { return };
    let checked = |tables: &str| {
        sandbox.write("sweep.toml", format!("{SWEEP}{tables}"));
        sandbox.seen(&["check", "sweep.toml"])
    };
    insta::assert_snapshot!(checked("\n[tables.a]\nsql = \"SELECT * FORM placement\"\n"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: expected end of statement, found `FORM`
        ,-[sweep.toml:17:17]
     16 | [tables.a]
     17 | sql = "SELECT * FORM placement"
        :                 ^^|^
        :                   `-- here
        `----
    [exit code 2]
    "#);
    insta::assert_snapshot!(checked("\n[tables.a]\nsql = \"SELECT * FROM placment\"\nsave = \"a.xls\"\n"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: there is no table `placment`
        ,-[sweep.toml:17:22]
     16 | [tables.a]
     17 | sql = "SELECT * FROM placment"
        :                      ^^^^|^^^
        :                          `-- did you mean `placement`?
     18 | save = "a.xls"
        `----
      help: tables: program, the_machine, placement, cells, runs
    error[pipeline::invalid]: this file extension is unknown
        ,-[sweep.toml:18:8]
     17 | sql = "SELECT * FROM placment"
     18 | save = "a.xls"
        :        ^^^|^^^
        :           `-- here
        `----
      help: extensions: .csv, .json, .parquet, .arrow, .txt
    2 errors
    [exit code 2]
    "#);
    insta::assert_snapshot!(checked("\n[tables.a]\nsql = \"\"\"\nSELECT *\nFROM placment_ranks\"\"\"\n"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: there is no table `placment_ranks`
        ,-[sweep.toml:19:6]
     18 | SELECT *
     19 | FROM placment_ranks"""
        :      ^^^^^^^|^^^^^^
        :             `-- did you mean `placement`?
        `----
      help: tables: program, the_machine, placement, cells, runs
    [exit code 2]
    "#);
    insta::assert_snapshot!(checked("\n[tables.a]\nsave = \"a.csv\"\n\n[tables]\nb = 1\nc = { sq = \"\" }\n"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: table `a` asks nothing
        ,-[sweep.toml:16:9]
     15 | 
     16 | [tables.a]
        :         |
        :         `-- `sql` is missing
     17 | save = "a.csv"
        `----
      help: for example sql = "SELECT * FROM cells"
    error[pipeline::invalid]: an entry of `tables` should be a table with the key `sql`
        ,-[sweep.toml:20:5]
     19 | [tables]
     20 | b = 1
        :     |
        :     `-- this is a number
     21 | c = { sq = "" }
        `----
    error[pipeline::invalid]: table `c` asks nothing
        ,-[sweep.toml:21:1]
     20 | b = 1
     21 | c = { sq = "" }
        : |
        : `-- `sql` is missing
        `----
      help: for example sql = "SELECT * FROM cells"
    error[pipeline::invalid]: unknown key `sq`
        ,-[sweep.toml:21:7]
     20 | b = 1
     21 | c = { sq = "" }
        :       ^|
        :        `-- did you mean `sql`?
        `----
      help: keys of a table: sql, save
    4 errors
    [exit code 2]
    "#);
    insta::assert_snapshot!(checked("\n[tables.a]\nsql = \"SELECT * FROM placement_ranks\"\nsave = \"a.csv\"\n[tables.b]\nsql = \"SHOW TABLES\"\nsave = \"a.csv\"\n"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: tables `a` and `b` save to the same place
        ,-[sweep.toml:20:7]
     19 | [tables.b]
     20 | sql = "SHOW TABLES"
        :       ^^^^^^|^^^^^^
        :             `-- here
     21 | save = "a.csv"
        `----
      help: give each its own path
    [exit code 2]
    "#);
}

#[test]
fn a_question_that_fails_fails_after_the_run() {
    let Some(sandbox) = with_query() else { return };
    sandbox.write("sweep.toml", format!("{SWEEP}\n[tables.a]\nsql = \"SELECT maper FROM placement\"\n"));
    insta::assert_snapshot!(sandbox.seen(&["run", "sweep.toml", "-j", "1", "--no-report"]), @r#"
    sweep: 6 ran, 2 cached in N.NN s
    ------- stderr -------
      ran        program  N.NN s
      ran        the-machine  N.NN s
      ran        placement[mapper=linear,seed=1]  N.NN s
      ran        placement[mapper=random,seed=1]  N.NN s
      ran        placement[mapper=random,seed=2]  N.NN s
      ran        placement[mapper=random,seed=3]  N.NN s
    error[pipeline::invalid]: there is no column `maper`
        ,-[sweep.toml:17:15]
     16 | [tables.a]
     17 | sql = "SELECT maper FROM placement"
        :               ^^|^^
        :                 `-- did you mean `mapper`?
        `----
    [exit code 2]
    "#);
}
