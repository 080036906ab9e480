//! Questions without an answer.

use std::path::PathBuf;

use super::{sweep, with_query};

#[test]
fn what_is_wrong_is_shown_where_it_stands() {
    let Some(sandbox) = sweep() else { return };
    let asked = |sql: &str| sandbox.seen(&["query", sql]);
    insta::assert_snapshot!(asked("SELECT mapper\nFROM placement WHERE GROUP"), @r"
    ------- stderr -------
    error[query::sql]: there is no column `GROUP`
       ,-[SQL:2:22]
     1 | SELECT mapper
     2 | FROM placement WHERE GROUP
       :                      ^^|^^
       :                        `-- here
       `----
      help: columns: cell, mapper, seed, blocks, borders, devices_per_rank, forbidden, ignore_performance, objective, pinned, weight, F, T, dilation_max, dilation_mean, evaluations, hop_bytes, max_link_load_bytes, state, seconds, digest
    [exit code 2]
    ");
    insta::assert_snapshot!(asked("SELECT rank FROM placement_ranks AS a JOIN placement_ranks AS b ON a.rank = b.rank GROUP BY cell"), @r#"
    ------- stderr -------
    error[query::sql]: ambiguous reference to column "rank" (use one of: a."rank", b."rank")
       ,-[SQL:1:8]
     1 | SELECT rank FROM placement_ranks AS a JOIN placement_ranks AS b ON a.rank = b.rank GROUP BY cell
       :        ^^|^
       :          `-- here
       `----
    [exit code 2]
    "#);
    insta::assert_snapshot!(asked("SELECT * FROM placements"), @r"
    ------- stderr -------
    error[query::sql]: there is no table `placements`
       ,-[SQL:1:15]
     1 | SELECT * FROM placements
       :               ^^^^^|^^^^
       :                    `-- did you mean `placement`?
       `----
    [exit code 2]
    ");
    insta::assert_snapshot!(asked("SELECT mapper, AVG(f)\nFROM placement\nGROUP BY mapper"), @r"
    ------- stderr -------
    error[query::sql]: there is no column `f`
       ,-[SQL:1:20]
     1 | SELECT mapper, AVG(f)
       :                    |
       :                    `-- did you mean `F`?
     2 | FROM placement
       `----
    [exit code 2]
    ");
    insta::assert_snapshot!(asked("DELETE FROM placement"), @r"
    ------- stderr -------
    error[query::sql]: only SELECT, WITH and SHOW TABLES are supported
       ,-[SQL:1:1]
     1 | DELETE FROM placement
       : ^^^|^^
       :    `-- here
       `----
      help: artifacts are never changed; `hopmap run` makes new ones
    [exit code 2]
    ");
    insta::assert_snapshot!(asked("SELECT hops(F) FROM placement"), @r"
    ------- stderr -------
    error[query::sql]: unsupported function 'hops'
       ,-[SQL:1:8]
     1 | SELECT hops(F) FROM placement
       :        ^^|^
       :          `-- here
       `----
    [exit code 2]
    ");
    insta::assert_snapshot!(asked(""), @r"
    ------- stderr -------
    error[query::sql]: the query is empty
       ,-[SQL:1:1]
       `----
      help: for example SELECT * FROM cells
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT 1 AS a", "swep"]), @r"
    ------- stderr -------
    error[command::mistake]: there is no pipeline `swep`
      help: did you mean `sweep`? pipelines of .hopmap: sweep
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["query", "--tables", "sweep", "more"]), @r"
    ------- stderr -------
    error[command::mistake]: `more` is not expected
      help: with --tables or --file the only argument is a pipeline
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["query", "-f", "missing.sql"]), @r"
    ------- stderr -------
    error[command::mistake]: cannot read missing.sql: No such file or directory (os error 2)
      help: --file names a text with one question
    [exit code 2]
    ");
}

#[test]
fn a_damaged_table_is_an_error() {
    let Some(sandbox) = sweep() else { return };
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
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT SUM(slot) FROM placement_ranks"]), @r"
    ------- stderr -------
    error[query::damaged]: DIR/.hopmap/artifacts/DIGEST/ranks.parquet is damaged: its hash differs from the one in artifact.json
      help: everything in a store can be recomputed: remove the folder of the artifact and run its pipeline
    [exit code 1]
    ");
    // What does not need it is answered.
    assert_eq!(
        sandbox.stdout(&["query", "SELECT COUNT(*) AS n FROM placement", "--format", "csv"]),
        "n\n6\n"
    );
}

#[test]
fn an_empty_store_has_nothing_to_ask_about_without_a_pipeline() {
    let Some(sandbox) = with_query() else { return };
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT * FROM cells"]), @r"
    ------- stderr -------
    error[engine::missing]: there is no store at DIR/.hopmap
      help: `hopmap run` creates one; --store names another
    [exit code 2]
    ");
    std::fs::create_dir(sandbox.path().join(".hopmap")).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT * FROM cells"]), @r"
    ------- stderr -------
    error[command::mistake]: nothing is stored in .hopmap yet
      help: `hopmap run` runs a pipeline
    [exit code 2]
    ");
}

/// Once a script that queried a pipeline before its first run failed.
#[test]
fn a_pipeline_without_results_has_empty_tables() {
    let Some(sandbox) = with_query() else { return };
    let asked = |sql: &str| sandbox.stdout(&["query", sql, "ring.toml", "--format", "csv"]);
    for has_store in [false, true] {
        if has_store {
            std::fs::create_dir(sandbox.path().join(".hopmap")).unwrap();
        }
        assert_eq!(asked("SELECT cell, F FROM placement"), "cell,F\n");
        assert_eq!(asked("SELECT DISTINCT state FROM cells"), "state\nnot-started\n");
        assert_eq!(asked("SELECT run, exit FROM runs"), "run,exit\n");
        assert_eq!(sandbox.path().join(".hopmap").exists(), has_store);
    }
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT 1", "ring.toml", "--store", "absent"]), @"
    ------- stderr -------
    error[engine::missing]: there is no store at DIR/absent
      help: `hopmap run` creates one; --store names another
    [exit code 2]
    ");
}

#[test]
fn an_unknown_file_extension_is_refused() {
    let Some(sandbox) = sweep() else { return };
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT 1 AS one", "--out", "one.foo"]), @r"
    ------- stderr -------
    error[command::mistake]: unknown file extension of one.foo
      help: extensions: .csv, .json, .parquet, .arrow, .txt; or choose one with --format
    [exit code 2]
    ");
    assert!(!sandbox.path().join("one.foo").exists());
    sandbox.stdout(&["query", "SELECT 1 AS one", "--out", "one.foo", "--format", "csv"]);
    assert_eq!(sandbox.read("one.foo"), "one\n1\n");
}
