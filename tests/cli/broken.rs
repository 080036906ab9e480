//! Broken pipeline files: one clear message each, with file, line, snippet and hint; all faults of a file at once.

use crate::sandbox::Sandbox;

/// The output of `check` for a pipeline file.
fn check(text: &str) -> String {
    let sandbox = Sandbox::new();
    sandbox.write("p.toml", text);
    sandbox.seen(&["check", "p.toml"])
}

const MACHINE: &str =
    "[stages.machine]\nuses = \"topology/synthetic\"\nwith = { shape = \"tree:2x2\", costs = [1, 10] }\n";

#[test]
fn several_faults_at_once() {
    insta::assert_snapshot!(check("nam = \"p\"\n[stages.program]\nuses = \"trace/otf3\"\nwith = { path = \"${params.trce}\" }\n[stages.machine]\nuses = \"topology/synthetic\"\nwith = { shap = \"tree:2\" }\n"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: unknown key `nam`
       ,-[p.toml:1:1]
     1 | nam = "p"
       : ^|^
       :  `-- did you mean `name`?
     2 | [stages.program]
       `----
      help: keys of a pipeline file: name, description, params, stages, tables, gates, batch, save_on_failure
    error[pipeline::invalid]: there is no stage kind `trace/otf3`
       ,-[p.toml:3:8]
     2 | [stages.program]
     3 | uses = "trace/otf3"
       :        ^^^^^^|^^^^^
       :              `-- did you mean `trace/otf`?
     4 | with = { path = "${params.trce}" }
       `----
    error[pipeline::invalid]: there is no parameter `trce`
       ,-[p.toml:4:17]
     3 | uses = "trace/otf3"
     4 | with = { path = "${params.trce}" }
       :                 ^^^^^^^^|^^^^^^^
       :                         `-- here
     5 | [stages.machine]
       `----
    error[pipeline::invalid]: topology/synthetic has no parameter `shap`
       ,-[p.toml:7:10]
     6 | uses = "topology/synthetic"
     7 | with = { shap = "tree:2" }
       :          ^^|^
       :            `-- did you mean `shape`?
       `----
    4 errors
    [exit code 2]
    "#);
}

#[test]
fn not_toml() {
    insta::assert_snapshot!(check("[stages.machine\nuses = 3\n"), @r"
    ------- stderr -------
    error[pipeline::invalid]: unclosed table, expected `]`
       ,-[p.toml:1:16]
     1 | [stages.machine
       :                ^
       :                `-- here
     2 | uses = 3
       `----
    [exit code 2]
    ");
}

#[test]
fn an_empty_file() {
    insta::assert_snapshot!(check(""), @r"
    ------- stderr -------
    error[pipeline::invalid]: the pipeline has no stages
       ,-[p.toml:1:1]
       `----
      help: a stage is a table [stages.NAME] with a key `uses`; `hopmap stages` lists the kinds
    [exit code 2]
    ");
}

#[test]
fn a_key_of_a_stage_that_does_not_exist() {
    insta::assert_snapshot!(check("[stages.machine]\nusess = \"topology/synthetic\"\n"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: stage `machine` does not say what it uses
       ,-[p.toml:1:9]
     1 | [stages.machine]
       :         ^^^|^^^
       :            `-- `uses` is missing
     2 | usess = "topology/synthetic"
       `----
      help: `hopmap stages` lists the kinds
    error[pipeline::invalid]: unknown key `usess`
       ,-[p.toml:2:1]
     1 | [stages.machine]
     2 | usess = "topology/synthetic"
       : ^^|^^
       :   `-- did you mean `uses`?
       `----
      help: keys of a stage: uses, with, needs, foreach, matrix, zip, exclude, save, threads, memory, launcher, retries
    2 errors
    [exit code 2]
    "#);
}

#[test]
fn a_stage_that_is_defined_twice() {
    insta::assert_snapshot!(check(&format!("{MACHINE}{MACHINE}")), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `machine` is defined twice
       ,-[p.toml:4:9]
     3 | with = { shape = "tree:2x2", costs = [1, 10] }
     4 | [stages.machine]
       :         ^^^|^^^
       :            `-- this is the second
     5 | uses = "topology/synthetic"
       `----
    [exit code 2]
    "#);
}

#[test]
fn a_value_of_the_wrong_type() {
    insta::assert_snapshot!(check("[stages.machine]\nuses = \"topology/synthetic\"\nwith = { shape = 3, costs = [1, \"ten\"] }\n"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `shape` must be text, found the number 3
       ,-[p.toml:3:18]
     2 | uses = "topology/synthetic"
     3 | with = { shape = 3, costs = [1, "ten"] }
       :                  |
       :                  `-- here
       `----
      help: shape: Shape of the network, innermost first: `tree:2x4x2` has two cores per host, four hosts per switch and two switches under a root. `fat-tree:`, `torus:`, `mesh:`, `ring:` and `dragonfly:` are networks with routes
    error[pipeline::invalid]: `costs[1]` must be a number, found the string "ten"
       ,-[p.toml:3:33]
     2 | uses = "topology/synthetic"
     3 | with = { shape = 3, costs = [1, "ten"] }
       :                                 ^^|^^
       :                                   `-- here
       `----
      help: costs: Costs between slots of a tree by the level on which they first meet, innermost first, non-decreasing (the distances of `KaHIP`)
    2 errors
    [exit code 2]
    "#);
}

#[test]
fn a_shape_that_is_none() {
    insta::assert_snapshot!(check("[stages.machine]\nuses = \"topology/synthetic\"\nwith = { shape = \"cube:2x2\", costs = [1, 10] }\n"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: shape `cube:2x2` is unknown
       ,-[p.toml:3:1]
     2 | uses = "topology/synthetic"
     3 | with = { shape = "cube:2x2", costs = [1, 10] }
       : ^^|^
       :   `-- here
       `----
      help: give `tree:2x4x2` (or `kahip:2:4:2`), `fat-tree:4x4/1x2`, `torus:4x4x4`, `mesh:8x8`, `ring:12` or `dragonfly:4x8x4`
    [exit code 2]
    "#);
}

#[test]
fn an_input_that_is_not_connected() {
    insta::assert_snapshot!(check(&format!("{MACHINE}[stages.placement]\nuses = \"map/linear\"\nneeds = {{ system = \"machine\" }}\n")), @r#"
    ------- stderr -------
    error[pipeline::invalid]: stage `placement` needs a task-graph at `task-graph`
       ,-[p.toml:4:9]
     3 | with = { shape = "tree:2x2", costs = [1, 10] }
     4 | [stages.placement]
       :         ^^^^|^^^^
       :             `-- `task-graph` is not connected
     5 | uses = "map/linear"
       `----
      help: no stage of this pipeline gives a task-graph; `hopmap stages` lists those that do
    [exit code 2]
    "#);
}

#[test]
fn an_input_of_the_wrong_kind() {
    insta::assert_snapshot!(check(&format!("{MACHINE}[stages.launch]\nuses = \"launch/rankfile\"\nneeds = {{ mapping = \"machine\" }}\n")), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `machine` gives a system-graph, but `mapping` takes a mapping
       ,-[p.toml:6:21]
     5 | uses = "launch/rankfile"
     6 | needs = { mapping = "machine" }
       :                     ^^^^|^^^^
       :                         `-- this is a system-graph
       `----
    [exit code 2]
    "#);
}

#[test]
fn a_stage_that_does_not_exist() {
    insta::assert_snapshot!(check(&format!("{MACHINE}[stages.launch]\nuses = \"launch/rankfile\"\nneeds = {{ mapping = \"machin\" }}\n")), @r#"
    ------- stderr -------
    error[pipeline::invalid]: there is no stage `machin`
       ,-[p.toml:6:21]
     5 | uses = "launch/rankfile"
     6 | needs = { mapping = "machin" }
       :                     ^^^^|^^^
       :                         `-- did you mean `machine`?
       `----
      help: stages: machine
    [exit code 2]
    "#);
}

#[test]
fn a_cycle() {
    insta::assert_snapshot!(check("[stages.a]\nuses = \"trace/import\"\nwith = { path = \"${stages.b.path}/x\", format = \"csv\" }\n[stages.b]\nuses = \"trace/import\"\nwith = { path = \"${stages.a.path}/x\", format = \"csv\" }\n"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: the stages form a dependency cycle
       ,-[p.toml:1:9]
     1 | [stages.a]
       :         |
       :         `-- part of the cycle
     2 | uses = "trace/import"
       `----
      help: a → b → a (read: needs)
    [exit code 2]
    "#);
}

#[test]
fn a_matrix_key_that_changes_nothing() {
    insta::assert_snapshot!(check("[stages.machine]\nuses = \"topology/synthetic\"\nwith = { shape = \"tree:2\", costs = [1] }\nmatrix = { shpe = [\"tree:2\", \"tree:4\"] }\n"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: matrix key `shpe` changes nothing
       ,-[p.toml:4:12]
     3 | with = { shape = "tree:2", costs = [1] }
     4 | matrix = { shpe = ["tree:2", "tree:4"] }
       :            ^^|^
       :              `-- did you mean `shape`?
       `----
      help: use it as ${matrix.shpe}
    [exit code 2]
    "#);
}

#[test]
fn a_matrix_that_is_none() {
    insta::assert_snapshot!(check("[stages.machine]\nuses = \"topology/synthetic\"\nwith = { costs = [1] }\nmatrix = { shape = 3, host_level = [], x = \"1-3\" }\n"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: a matrix key takes a list of values, not a number
       ,-[p.toml:4:20]
     3 | with = { costs = [1] }
     4 | matrix = { shape = 3, host_level = [], x = "1-3" }
       :                    |
       :                    `-- here
       `----
      help: write a list, or a range such as "1..10", "16..128 step 16", "0.1..0.5 step 0.1" or "16..1024 times 2"; both ends belong to it
    error[pipeline::invalid]: a matrix key needs at least one value
       ,-[p.toml:4:36]
     3 | with = { costs = [1] }
     4 | matrix = { shape = 3, host_level = [], x = "1-3" }
       :                                    ^|
       :                                     `-- here
       `----
    error[pipeline::invalid]: `1-3` is neither a list nor a range
       ,-[p.toml:4:44]
     3 | with = { costs = [1] }
     4 | matrix = { shape = 3, host_level = [], x = "1-3" }
       :                                            ^^|^^
       :                                              `-- here
       `----
      help: write a list, or a range such as "1..10", "16..128 step 16", "0.1..0.5 step 0.1" or "16..1024 times 2"; both ends belong to it
    3 errors
    [exit code 2]
    "#);
}

#[test]
fn a_matrix_stage_where_one_cell_is_needed() {
    insta::assert_snapshot!(check(&format!("{MACHINE}[stages.program]\nuses = \"trace/import\"\nwith = {{ path = \"x.csv\", format = \"csv\" }}\n[stages.placement]\nuses = \"map/random\"\nmatrix = {{ seed = \"1..3\" }}\nneeds = {{ task-graph = \"program\", system = \"machine\" }}\n[stages.launch]\nuses = \"launch/rankfile\"\nneeds = {{ mapping = \"placement\" }}\n")), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `placement` matches 3 cells
        ,-[p.toml:13:21]
     12 | uses = "launch/rankfile"
     13 | needs = { mapping = "placement" }
        :                     ^^^^^|^^^^^
        :                          `-- which one?
        `----
      help: choose: placement[min F], or placement[seed=1]
    [exit code 2]
    "#);
}

#[test]
fn a_selector_that_is_none() {
    insta::assert_snapshot!(check(&format!("{MACHINE}[stages.launch]\nuses = \"launch/rankfile\"\nneeds = {{ mapping = \"machine[\" }}\n")), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `machine[` lacks a closing `]`
       ,-[p.toml:6:21]
     5 | uses = "launch/rankfile"
     6 | needs = { mapping = "machine[" }
       :                     ^^^^^|^^^^
       :                          `-- here
       `----
      help: written as `stage`, `stage.port`, `stage[*]`, `stage[min METRIC]`, `stage[max METRIC]`, `stage[key=value, …]` or `stage[key=value, min METRIC]`
    [exit code 2]
    "#);
}

#[test]
fn a_reference_that_is_none() {
    insta::assert_snapshot!(check("[stages.program]\nuses = \"trace/import\"\nwith = { path = \"${trace}\", format = \"csv\" }\n"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `${trace}` is not a reference
       ,-[p.toml:3:17]
     2 | uses = "trace/import"
     3 | with = { path = "${trace}", format = "csv" }
       :                 ^^^^^|^^^^
       :                      `-- here
       `----
      help: references: ${params.NAME}, ${matrix.NAME}, ${stages.NAME.path}; $${ is a literal ${
    [exit code 2]
    "#);
}

#[test]
fn a_launcher() {
    insta::assert_snapshot!(check(&format!("{MACHINE}launcher = \"mpirun -n 4\"\n")), @r#"
    ------- stderr -------
    error[pipeline::invalid]: topology/synthetic cannot run as several processes
       ,-[p.toml:4:1]
     3 | with = { shape = "tree:2x2", costs = [1, 10] }
     4 | launcher = "mpirun -n 4"
       : ^^^^|^^^
       :     `-- this starts MPI ranks
       `----
      help: stages that can: topology/probe, map/annealing, map/genetic, map/composite, map/tabu, map/auto, schedule/genetic, schedule/auto; as one process `srun -n 1` and `sbatch -n 1` start all others
    [exit code 2]
    "#);
    let search = |launcher: &str| {
        let needs = "needs = { task-graph = \"program\", system = \"machine\" }";
        let program =
            "[stages.program]\nuses = \"trace/import\"\nwith = { path = \"ring.csv\", format = \"csv\" }\n";
        check(&format!(
            "{MACHINE}{program}[stages.placement]\nuses = \"map/tabu\"\n{needs}\nlauncher = {launcher}\n"
        ))
    };
    insta::assert_snapshot!(search("4"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `launcher` should be a command such as "mpirun -n 4"
        ,-[p.toml:10:12]
      9 | needs = { task-graph = "program", system = "machine" }
     10 | launcher = 4
        :            |
        :            `-- this is a number
        `----
    [exit code 2]
    "#);
    insta::assert_snapshot!(search("\"mpirun -n 'four\""), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `mpirun -n 'four` has a quote that is never closed
        ,-[p.toml:10:12]
      9 | needs = { task-graph = "program", system = "machine" }
     10 | launcher = "mpirun -n 'four"
        :            ^^^^^^^^|^^^^^^^^
        :                    `-- here
        `----
      help: write a command such as "mpirun -n 4", "srun -n 4" or "sbatch -n 1 --time 10"
    [exit code 2]
    "#);
    insta::assert_snapshot!(search("\"mpirun -n ${params.processes}\""), @r#"
    ------- stderr -------
    error[pipeline::invalid]: there is no parameter `processes`
        ,-[p.toml:10:12]
      9 | needs = { task-graph = "program", system = "machine" }
     10 | launcher = "mpirun -n ${params.processes}"
        :            ^^^^^^^^^^^^^^^|^^^^^^^^^^^^^^^
        :                           `-- here
        `----
    [exit code 2]
    "#);
    assert!(search("\"\"").contains("is valid"));
    let sandbox = Sandbox::new();
    sandbox.write("sbatch", "");
    sandbox.write("p.toml", format!("{MACHINE}launcher = \"./sbatch -n 1\"\n"));
    assert!(sandbox.seen(&["check", "p.toml"]).contains("is valid"));
}

#[test]
fn what_a_stage_takes_of_a_machine() {
    let text = format!(
        "[batch]\njobs = 0\npatience = \"soon\"\nqueue = 3\n{MACHINE}memory = \"4 XB\"\nretries = -1\n"
    );
    insta::assert_snapshot!(check(&text), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `jobs` should be a number of jobs, at least 1
       ,-[p.toml:2:8]
     1 | [batch]
     2 | jobs = 0
       :        |
       :        `-- this is a number
     3 | patience = "soon"
       `----
    error[pipeline::invalid]: `patience` should be a time such as "10 min"
       ,-[p.toml:3:12]
     2 | jobs = 0
     3 | patience = "soon"
       :            ^^^|^^
       :               `-- this is text
     4 | queue = 3
       `----
    error[pipeline::invalid]: unknown key `queue`
       ,-[p.toml:4:1]
     3 | patience = "soon"
     4 | queue = 3
       : ^^|^^
       :   `-- here
     5 | [stages.machine]
       `----
      help: keys of [batch]: jobs, patience
    error[pipeline::invalid]: `4 XB` is not a size; write for example 4 GB or 512 MiB
       ,-[p.toml:8:10]
     7 | with = { shape = "tree:2x2", costs = [1, 10] }
     8 | memory = "4 XB"
       :          ^^^|^^
       :             `-- here
     9 | retries = -1
       `----
    error[pipeline::invalid]: `retries` should be a number such as 2; 0 for none
       ,-[p.toml:9:11]
     8 | memory = "4 XB"
     9 | retries = -1
       :           ^|
       :            `-- this is a number
       `----
    5 errors
    [exit code 2]
    "#);
}

#[test]
fn two_cells_that_save_to_one_place() {
    insta::assert_snapshot!(check("[stages.machine]\nuses = \"topology/synthetic\"\nwith = { costs = [1] }\nmatrix = { shape = [\"tree:2\", \"tree:4\"] }\nsave = { system-graph = \"out\" }\n"), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `machine[shape=tree:2]` and `machine[shape=tree:4]` save to the same place
       ,-[p.toml:5:25]
     4 | matrix = { shape = ["tree:2", "tree:4"] }
     5 | save = { system-graph = "out" }
       :                         ^^|^^
       :                           `-- here
       `----
      help: give every cell its own path, for example with ${matrix.shape}
    [exit code 2]
    "#);
}

#[test]
fn a_parameter_of_the_command_line_that_does_not_exist() {
    let sandbox = Sandbox::with_ring();
    insta::assert_snapshot!(sandbox.seen(&["check", "ring.toml", "-p", "rank=3"]), @r"
    ------- stderr -------
    error[pipeline::invalid]: ring.toml has no parameter `rank`
       ,-[-p:1:1]
     1 | rank = 3
       : ^^|^
       :   `-- did you mean `ranks`?
       `----
      help: parameters: ranks
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["check", "ring.toml", "-p", "ranks"]), @r"
    ------- stderr -------
    error[command::mistake]: `ranks` has no value
      help: give one: --ranks VALUE, or -p ranks=VALUE
    [exit code 2]
    ");
}

#[test]
fn a_pipeline_that_does_not_exist() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.seen(&["check", "plce"]), @r"
    ------- stderr -------
    error[command::mistake]: plce does not exist
      help: did you mean `place`? `hopmap init --list` lists the bundled pipelines
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["check", "."]), @"
    ------- stderr -------
    error[command::mistake]: . is a folder, not a pipeline file
      help: name a TOML file, or one of: place, place-netloc, predict, full, schedule, route, rapidio, graph2sch, job, rgo, graphhunter, batch, table-1, table-1-taillard, figure-3, figure-3-traces, claims, checkpoint, adca, training, training-trace, topology-refresh
    [exit code 2]
    ");
    sandbox.write("binary.toml", [0xff, 0xfe, 0x00]);
    insta::assert_snapshot!(sandbox.seen(&["check", "binary.toml"]), @r"
    ------- stderr -------
    error[command::mistake]: binary.toml is not text
      help: a pipeline file is TOML in UTF-8
    [exit code 2]
    ");
}

#[test]
fn a_deleted_current_directory_is_named() {
    let sandbox = Sandbox::new();
    sandbox.write("gone/file", "");
    let hopmap = assert_cmd::cargo::cargo_bin!("hopmap");
    let script = format!("cd gone && rm -r ../gone && exec {} show x", hopmap.display());
    let output =
        std::process::Command::new("sh").args(["-c", &script]).current_dir(sandbox.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("error[command::no_directory]: the current directory cannot be determined"),
        "{said}"
    );
}
