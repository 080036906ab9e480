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
    | program     | program     | trace/csv          | cached |
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
    let sandbox = sweep();
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
    let sandbox = sweep();
    let pairs = "SELECT a.cell, b.rank, c.rank AS other FROM placement AS a CROSS JOIN placement_ranks AS b CROSS JOIN placement_ranks AS c";
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
#[expect(clippy::too_many_lines, reason = "a list is long")]
fn tables_are_listed() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "--no-report"]);
    insta::assert_snapshot!(sandbox.seen(&["query", "--tables"]), @"
    cells: 5 rows
      cell                         TEXT
      stage                        TEXT
      kind                         TEXT
      state                        TEXT
      seconds                      DOUBLE
      timed                        BOOLEAN
      key                          TEXT
    machine: 1 rows
      cell                         TEXT
      bandwidth                    TEXT
      bytes                        TEXT
      cores                        TEXT
      cost                         TEXT
      costs                        TEXT
      host_level                   TEXT
      host_prefix                  TEXT
      parameter_hosts              TEXT
      inside                       TEXT
      link_latency                 TEXT
      shape                        TEXT
      hosts                        DOUBLE
      links                        DOUBLE
      slots                        DOUBLE
      state                        TEXT
      seconds                      DOUBLE
      digest                       TEXT
    machine_groups: 16 rows
      cell                         TEXT
      level                        BIGINT
      slot                         BIGINT
      group                        BIGINT
      bandwidth                    TEXT
      bytes                        TEXT
      cores                        TEXT
      cost                         TEXT
      costs                        TEXT
      host_level                   TEXT
      host_prefix                  TEXT
      hosts                        TEXT
      inside                       TEXT
      link_latency                 TEXT
      shape                        TEXT
    machine_levels: 2 rows
      cell                         TEXT
      level                        BIGINT
      cost                         DOUBLE
      bandwidth                    TEXT
      bytes                        TEXT
      cores                        TEXT
      parameter_cost               TEXT
      costs                        TEXT
      host_level                   TEXT
      host_prefix                  TEXT
      hosts                        TEXT
      inside                       TEXT
      link_latency                 TEXT
      shape                        TEXT
    machine_links: 8 rows
      cell                         TEXT
      source                       BIGINT
      destination                  BIGINT
      latency_s                    DOUBLE
      bandwidth_bytes_per_s        DOUBLE
      bandwidth                    TEXT
      bytes                        TEXT
      cores                        TEXT
      cost                         TEXT
      costs                        TEXT
      host_level                   TEXT
      host_prefix                  TEXT
      hosts                        TEXT
      inside                       TEXT
      link_latency                 TEXT
      shape                        TEXT
    machine_nodes: 5 rows
      cell                         TEXT
      id                           BIGINT
      name                         TEXT
      kind                         TEXT
      bandwidth                    TEXT
      bytes                        TEXT
      cores                        TEXT
      cost                         TEXT
      costs                        TEXT
      host_level                   TEXT
      host_prefix                  TEXT
      hosts                        TEXT
      inside                       TEXT
      link_latency                 TEXT
      shape                        TEXT
    machine_slots: 8 rows
      cell                         TEXT
      slot                         BIGINT
      host                         BIGINT
      core                         BIGINT
      bandwidth                    TEXT
      bytes                        TEXT
      cores                        TEXT
      cost                         TEXT
      costs                        TEXT
      host_level                   TEXT
      host_prefix                  TEXT
      hosts                        TEXT
      inside                       TEXT
      link_latency                 TEXT
      shape                        TEXT
    placement: 1 rows
      cell                         TEXT
      accepted                     TEXT
      after_exchange               TEXT
      cooling                      TEXT
      descent                      BOOLEAN
      parameter_evaluations        BIGINT
      factor                       TEXT
      final_temperature            TEXT
      forbidden                    TEXT
      frozen                       BOOLEAN
      genetic                      BOOLEAN
      initial_temperature          TEXT
      islands                      BIGINT
      iteration                    TEXT
      iterations                   TEXT
      max_neighbours               TEXT
      neighbours                   TEXT
      neighbours_unit              TEXT
      objective                    TEXT
      patience                     TEXT
      pinned                       TEXT
      parameter_seconds            TEXT
      seed                         BIGINT
      solvers                      TEXT
      successive                   TEXT
      weight                       TEXT
      F                            DOUBLE
      T                            DOUBLE
      dilation_max                 DOUBLE
      dilation_mean                DOUBLE
      evaluations                  DOUBLE
      hop_bytes                    DOUBLE
      max_link_load_bytes          DOUBLE
      state                        TEXT
      seconds                      DOUBLE
      digest                       TEXT
    placement_convergence: 8 rows
      cell                         TEXT
      island                       BIGINT
      evaluations                  BIGINT
      cost                         DOUBLE
      accepted                     TEXT
      after_exchange               TEXT
      cooling                      TEXT
      descent                      BOOLEAN
      parameter_evaluations        BIGINT
      factor                       TEXT
      final_temperature            TEXT
      forbidden                    TEXT
      frozen                       BOOLEAN
      genetic                      BOOLEAN
      initial_temperature          TEXT
      islands                      BIGINT
      iteration                    TEXT
      iterations                   TEXT
      max_neighbours               TEXT
      neighbours                   TEXT
      neighbours_unit              TEXT
      objective                    TEXT
      patience                     TEXT
      pinned                       TEXT
      seconds                      TEXT
      seed                         BIGINT
      solvers                      TEXT
      successive                   TEXT
      weight                       TEXT
    placement_hosts: 4 rows
      cell                         TEXT
      host                         TEXT
      first_slot                   BIGINT
      slots                        BIGINT
      accepted                     TEXT
      after_exchange               TEXT
      cooling                      TEXT
      descent                      BOOLEAN
      evaluations                  BIGINT
      factor                       TEXT
      final_temperature            TEXT
      forbidden                    TEXT
      frozen                       BOOLEAN
      genetic                      BOOLEAN
      initial_temperature          TEXT
      islands                      BIGINT
      iteration                    TEXT
      iterations                   TEXT
      max_neighbours               TEXT
      neighbours                   TEXT
      neighbours_unit              TEXT
      objective                    TEXT
      patience                     TEXT
      pinned                       TEXT
      seconds                      TEXT
      seed                         BIGINT
      solvers                      TEXT
      successive                   TEXT
      weight                       TEXT
    placement_ranks: 8 rows
      cell                         TEXT
      rank                         BIGINT
      slot                         BIGINT
      host                         TEXT
      core                         BIGINT
      accepted                     TEXT
      after_exchange               TEXT
      cooling                      TEXT
      descent                      BOOLEAN
      evaluations                  BIGINT
      factor                       TEXT
      final_temperature            TEXT
      forbidden                    TEXT
      frozen                       BOOLEAN
      genetic                      BOOLEAN
      initial_temperature          TEXT
      islands                      BIGINT
      iteration                    TEXT
      iterations                   TEXT
      max_neighbours               TEXT
      neighbours                   TEXT
      neighbours_unit              TEXT
      objective                    TEXT
      patience                     TEXT
      pinned                       TEXT
      seconds                      TEXT
      seed                         BIGINT
      solvers                      TEXT
      successive                   TEXT
      weight                       TEXT
    program: 1 rows
      cell                         TEXT
      file                         TEXT
      ranks                        TEXT
      bytes                        DOUBLE
      messages                     DOUBLE
      pairs                        DOUBLE
      processes                    DOUBLE
      state                        TEXT
      seconds                      DOUBLE
      digest                       TEXT
    program_edges: 8 rows
      cell                         TEXT
      source                       BIGINT
      destination                  BIGINT
      messages                     BIGINT
      bytes                        BIGINT
      file                         TEXT
      ranks                        TEXT
    program_processes: 8 rows
      cell                         TEXT
      rank                         BIGINT
      host                         TEXT
      compute_s                    DOUBLE
      communication_s              DOUBLE
      collective_s                 DOUBLE
      file                         TEXT
      ranks                        TEXT
    quality: 1 rows
      cell                         TEXT
      samples                      BIGINT
      seed                         BIGINT
      F                            DOUBLE
      F_linear                     DOUBLE
      F_over_linear                DOUBLE
      F_over_random                DOUBLE
      F_over_round_robin           DOUBLE
      F_random                     DOUBLE
      F_round_robin                DOUBLE
      T                            DOUBLE
      T_linear                     DOUBLE
      T_over_linear                DOUBLE
      T_over_random                DOUBLE
      T_over_round_robin           DOUBLE
      T_random                     DOUBLE
      T_round_robin                DOUBLE
      dilation_max                 DOUBLE
      dilation_max_linear          DOUBLE
      dilation_max_over_linear     DOUBLE
      dilation_max_over_random     DOUBLE
      dilation_max_over_round_robin DOUBLE
      dilation_max_random          DOUBLE
      dilation_max_round_robin     DOUBLE
      dilation_mean                DOUBLE
      dilation_mean_linear         DOUBLE
      dilation_mean_over_linear    DOUBLE
      dilation_mean_over_random    DOUBLE
      dilation_mean_over_round_robin DOUBLE
      dilation_mean_random         DOUBLE
      dilation_mean_round_robin    DOUBLE
      hop_bytes                    DOUBLE
      hop_bytes_linear             DOUBLE
      hop_bytes_over_linear        DOUBLE
      hop_bytes_over_random        DOUBLE
      hop_bytes_over_round_robin   DOUBLE
      hop_bytes_random             DOUBLE
      hop_bytes_round_robin        DOUBLE
      max_link_load_bytes          DOUBLE
      max_link_load_bytes_linear   DOUBLE
      max_link_load_bytes_over_linear DOUBLE
      max_link_load_bytes_over_random DOUBLE
      max_link_load_bytes_over_round_robin DOUBLE
      max_link_load_bytes_random   DOUBLE
      max_link_load_bytes_round_robin DOUBLE
      state                        TEXT
      seconds                      DOUBLE
      digest                       TEXT
    quality_placements: 23 rows
      cell                         TEXT
      placement                    TEXT
      sample                       BIGINT
      F                            DOUBLE
      T                            DOUBLE
      dilation_max                 DOUBLE
      dilation_mean                DOUBLE
      hop_bytes                    DOUBLE
      max_link_load_bytes          DOUBLE
      samples                      BIGINT
      seed                         BIGINT
    rankfile: 1 rows
      cell                         TEXT
      open_mpi                     BIGINT
      state                        TEXT
      seconds                      DOUBLE
      digest                       TEXT
    runs: 1 rows
      run                          TEXT
      pipeline                     TEXT
      time                         TEXT
      seconds                      DOUBLE
      exit                         BIGINT
      ran                          BIGINT
      cached                       BIGINT
      failed                       BIGINT
    ");
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
    ------- stderr -------
    2 cells of the store are left out, which sweep does not have any more
    ");
    let grouped = "SELECT COUNT(DISTINCT run) AS runs, COUNT(*) AS rows FROM placement_ranks";
    insta::assert_snapshot!(sandbox.seen(&["query", grouped, "--run", "all", "--format", "csv"]), @"
    runs,rows
    2,80
    ");
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT run FROM placement", "--run", &first]), @"
    ------- stderr -------
    error: there is no column `run`
       ,-[SQL:1:8]
     1 | SELECT run FROM placement
       :        ^|^
       :         `-- here
       `----
      help: columns: cell, mapper, seed, forbidden, objective, pinned, weight, F, T, dilation_max, dilation_mean, evaluations, hop_bytes, max_link_load_bytes, state, seconds, digest
    [exit code 2]
    ");
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
    insta::assert_snapshot!(asked("SELECT COUNT(*) AS same FROM a_edges JOIN b_edges ON a_edges.source = b_edges.source AND a_edges.bytes = b_edges.bytes"), @"
    same
    8
    ");
    insta::assert_snapshot!(asked("SELECT kind, bytes FROM a"), @"
    kind,bytes
    task-graph,8000.0
    ");
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT 1 AS one", "--artifact", "a=ring.csv"]), @"
    ------- stderr -------
    error: DIR/ring.csv is not an artifact: cannot read artifact.json: Not a directory (os error 20)
      help: an artifact is a folder with an artifact.json, as `hopmap exec --out` writes it
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT 1 AS one", "--artifact", "a=ring.graph", "--artifact", "a=other.graph"]), @"
    ------- stderr -------
    error: there is already a table with the name of --artifact a
      help: give it another name
    [exit code 2]
    ");
}

#[test]
fn what_is_wrong_is_shown_where_it_stands() {
    let sandbox = sweep();
    let asked = |sql: &str| sandbox.seen(&["query", sql]);
    insta::assert_snapshot!(asked("SELECT mapper\nFROM placement WHERE GROUP"), @"
    ------- stderr -------
    error: there is no column `GROUP`
       ,-[SQL:2:22]
     1 | SELECT mapper
     2 | FROM placement WHERE GROUP
       :                      ^^|^^
       :                        `-- here
       `----
      help: columns: cell, mapper, seed, forbidden, objective, pinned, weight, F, T, dilation_max, dilation_mean, evaluations, hop_bytes, max_link_load_bytes, state, seconds, digest
    [exit code 2]
    ");
    insta::assert_snapshot!(asked("SELECT rank FROM placement_ranks AS a JOIN placement_ranks AS b ON a.rank = b.rank GROUP BY cell"), @r#"
    ------- stderr -------
    error: ambiguous reference to column "rank" (use one of: a."rank", b."rank")
       ,-[SQL:1:8]
     1 | SELECT rank FROM placement_ranks AS a JOIN placement_ranks AS b ON a.rank = b.rank GROUP BY cell
       :        ^^|^
       :          `-- here
       `----
    [exit code 2]
    "#);
    insta::assert_snapshot!(asked("SELECT * FROM placements"), @"
    ------- stderr -------
    error: there is no table `placements`
       ,-[SQL:1:15]
     1 | SELECT * FROM placements
       :               ^^^^^|^^^^
       :                    `-- did you mean `placement`?
       `----
      help: tables: cells, placement, placement_convergence, placement_hosts, placement_ranks, program, program_edges, program_processes, runs, the_machine, the_machine_groups, the_machine_levels, the_machine_links, the_machine_nodes, the_machine_slots
    [exit code 2]
    ");
    insta::assert_snapshot!(asked("SELECT mapper, AVG(f)\nFROM placement\nGROUP BY mapper"), @"
    ------- stderr -------
    error: there is no column `f`
       ,-[SQL:1:20]
     1 | SELECT mapper, AVG(f)
       :                    |
       :                    `-- did you mean `F`?
     2 | FROM placement
       `----
      help: columns: cell, mapper, seed, forbidden, objective, pinned, weight, F, T, dilation_max, dilation_mean, evaluations, hop_bytes, max_link_load_bytes, state, seconds, digest
    [exit code 2]
    ");
    insta::assert_snapshot!(asked("DELETE FROM placement"), @"
    ------- stderr -------
    error: only questions are answered: SELECT, WITH and SHOW TABLES
       ,-[SQL:1:1]
     1 | DELETE FROM placement
       : ^^^|^^
       :    `-- here
       `----
      help: artifacts are never changed; `hopmap run` makes new ones
    [exit code 2]
    ");
    insta::assert_snapshot!(asked("SELECT hops(F) FROM placement"), @"
    ------- stderr -------
    error: unsupported function 'hops'
       ,-[SQL:1:8]
     1 | SELECT hops(F) FROM placement
       :        ^^|^
       :          `-- here
       `----
    [exit code 2]
    ");
    insta::assert_snapshot!(asked(""), @"
    ------- stderr -------
    error: there is no question here
       ,-[SQL:1:1]
       `----
      help: for example SELECT * FROM cells
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT 1 AS a", "swep"]), @"
    ------- stderr -------
    error: there is no pipeline `swep`
      help: did you mean `sweep`? pipelines of .hopmap: sweep
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["query", "--tables", "sweep", "more"]), @"
    ------- stderr -------
    error: `more` is one argument too many
      help: with --tables or --file only a pipeline is named
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["query", "-f", "missing.sql"]), @"
    ------- stderr -------
    error: cannot read missing.sql: No such file or directory (os error 2)
      help: --file names a text with one question
    [exit code 2]
    ");
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
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT SUM(slot) FROM placement_ranks"]), @"
    ------- stderr -------
    error: DIR/.hopmap/artifacts/DIGEST/ranks.parquet is damaged: its bytes are not those that its artifact names
      help: everything in a store can be made again: remove the folder of the artifact and run its pipeline
    [exit code 1]
    ");
    // What does not need it is answered.
    assert_eq!(
        sandbox.stdout(&["query", "SELECT COUNT(*) AS n FROM placement", "--format", "csv"]),
        "n\n6\n"
    );
}

#[test]
fn an_empty_store_has_nothing_to_ask_about() {
    let sandbox = Sandbox::with_ring();
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT * FROM cells"]), @"
    ------- stderr -------
    error: there is no store at DIR/.hopmap
      help: `hopmap run` makes one; --store names one elsewhere
    [exit code 2]
    ");
    std::fs::create_dir(sandbox.path().join(".hopmap")).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT * FROM cells"]), @"
    ------- stderr -------
    error: nothing is stored in .hopmap yet
      help: `hopmap run` runs a pipeline
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["query", "SELECT * FROM cells", "ring.toml"]), @"
    ------- stderr -------
    error: nothing of ring is stored yet
      help: `hopmap run` runs it
    [exit code 2]
    ");
}

#[test]
fn of_several_pipelines_the_last_one_is_asked() {
    let sandbox = sweep();
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
    let sandbox = Sandbox::with_ring();
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
    let sandbox = Sandbox::with_ring();
    let checked = |tables: &str| {
        sandbox.write("sweep.toml", format!("{SWEEP}{tables}"));
        sandbox.seen(&["check", "sweep.toml"])
    };
    insta::assert_snapshot!(checked("\n[tables.a]\nsql = \"SELECT * FORM placement\"\n"), @r#"
    ------- stderr -------
    error: expected end of statement, found `FORM`
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
    error: there is no table `placment`
        ,-[sweep.toml:17:22]
     16 | [tables.a]
     17 | sql = "SELECT * FROM placment"
        :                      ^^^^|^^^
        :                          `-- did you mean `placement`?
     18 | save = "a.xls"
        `----
      help: tables: program, the_machine, placement, cells, runs
    error: the ending of this file stands for no form
        ,-[sweep.toml:18:8]
     17 | sql = "SELECT * FROM placment"
     18 | save = "a.xls"
        :        ^^^|^^^
        :           `-- here
        `----
      help: endings: .csv, .json, .parquet, .arrow, .txt
    2 errors
    [exit code 2]
    "#);
    insta::assert_snapshot!(checked("\n[tables.a]\nsql = \"\"\"\nSELECT *\nFROM placment_ranks\"\"\"\n"), @r#"
    ------- stderr -------
    error: there is no table `placment_ranks`
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
    error: table `a` asks nothing
        ,-[sweep.toml:16:9]
     15 | 
     16 | [tables.a]
        :         |
        :         `-- `sql` is missing
     17 | save = "a.csv"
        `----
      help: for example sql = "SELECT * FROM cells"
    error: an entry of `tables` should be a table with the key `sql`
        ,-[sweep.toml:20:5]
     19 | [tables]
     20 | b = 1
        :     |
        :     `-- this is a number
     21 | c = { sq = "" }
        `----
    error: table `c` asks nothing
        ,-[sweep.toml:21:1]
     20 | b = 1
     21 | c = { sq = "" }
        : |
        : `-- `sql` is missing
        `----
      help: for example sql = "SELECT * FROM cells"
    error: unknown key `sq`
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
    error: tables `a` and `b` save to the same place
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
    let sandbox = Sandbox::with_ring();
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
    error: there is no column `maper`
        ,-[sweep.toml:17:15]
     16 | [tables.a]
     17 | sql = "SELECT maper FROM placement"
        :               ^^|^^
        :                 `-- did you mean `mapper`?
        `----
      help: columns: cell, mapper, seed, forbidden, objective, pinned, weight, F, T, dilation_max, dilation_mean, evaluations, hop_bytes, max_link_load_bytes, state, seconds, digest
    [exit code 2]
    "#);
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
