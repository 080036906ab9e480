//! `hopmap init`: a project of one's own.

use hopmap_test_support::skipped;
use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;
use serde_json::Value;

use crate::sandbox::{Sandbox, project, query_program};

/// Names of the pipelines that come with hopmap.
fn names(sandbox: &Sandbox) -> Vec<String> {
    let list: Value = serde_json::from_str(&sandbox.stdout(&["init", "--list", "--json"])).unwrap();
    list.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

fn sample() -> String {
    project().join("sample-traces/rows-columns-16/eztrace_log.otf2").display().to_string()
}

#[test]
fn without_a_word_the_project_places() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.seen(&["init"]), @"
    created in this folder: place.toml, hopmap.schema.json, README.md, .gitignore
    next:
      hopmap check place.toml
      hopmap run place.toml
    or, without a trace of your own:
      hopmap exec trace/generate -p pattern=stencil3d -p ranks=16 -p events=20000 --out sample
      hopmap run place.toml --trace sample/archive/files/traces.otf2
    ");
    let file = sandbox.read("place.toml");
    let head: Vec<&str> = file.lines().take(13).collect();
    assert_snapshot!(head.join("\n"), @r#"
    #:schema hopmap.schema.json
    # From a trace and a machine to a mapping and its launch file.
    #
    #   hopmap run place.toml
    #   hopmap run place.toml --trace lu/traces.otf2 --hosts 'node[01-16]' --slots 40
    #   hopmap run place.toml --trace lu/traces.otf2 --hosts 'node[01-32]' --shape tree:40x16x2 --launch slurm
    #
    # Without `shape`, all hosts are on one switch. Without `hosts`, their names are placeholders: host0, host1, …
    name = "place"
    description = "Place the ranks of a traced program on a machine"

    [params]
    trace = "traces/eztrace_log.otf2"   # recording of a run: a folder of hopmap record, a trace, profiles or a matrix
    "#);
    assert_eq!(sandbox.read(".gitignore"), "/.hopmap/\n/out/\n");
    let readme = sandbox.read("README.md");
    assert_snapshot!(readme, @r#"
    # place

    Place the ranks of a traced program on a machine.

    From a trace and a machine to a mapping and its launch file.

        hopmap run place.toml
        hopmap run place.toml --trace lu/traces.otf2 --hosts 'node[01-16]' --slots 40
        hopmap run place.toml --trace lu/traces.otf2 --hosts 'node[01-32]' --shape tree:40x16x2 --launch slurm

    Without `shape`, all hosts are on one switch. Without `hosts`, their names are placeholders: host0, host1, …

    ## Next

    ```sh
    hopmap check place.toml                      # validate the file
    hopmap plan place.toml                       # dry run: what would run, and why
    hopmap run place.toml --report report.html   # run out-of-date stages; results are stored in .hopmap
    ```

    Without a trace, generate one to try it with:

    ```sh
    hopmap exec trace/generate -p pattern=stencil3d -p ranks=16 -p events=20000 --out sample
    hopmap run place.toml --trace sample/archive/files/traces.otf2
    ```

    ## Parameters

    `hopmap run place.toml -p NAME=VALUE` sets one for a run. The defaults are in [place.toml](place.toml), and paths among them are relative to it.

    | | default | |
    |---|---|---|
    | `trace` | `"traces/eztrace_log.otf2"` | recording of a run: a folder of hopmap record, a trace, profiles or a matrix |
    | `hosts` | `""` | names of your hosts, such as node[01-16] |
    | `hosts_file` | `""` | or a host file with their names, such as $PBS_NODEFILE |
    | `slots` | `0` | slots per host, or those of each (8,4,4); 0: as in the shape or the host file |
    | `shape` | `"auto"` | such as tree:40x16x2: 40 slots per host, 16 hosts per switch, 2 switches |
    | `costs` | `[]` | cost per byte on each level, innermost first; [] is [1, 10, 100, …] |
    | `latency` | `[]` | latency of links in seconds, one for all or by level of switches |
    | `bandwidth` | `[]` | and their bandwidth in bytes per second; with both, seconds are bounded too |
    | `launch` | `"open-mpi-4"` | or open-mpi-5, mpich, intel-mpi, slurm, cray-slurm, cray-pals, flux, fujitsu, reorder |
    | `collectives` | `"expand"` | count collective operations; "ignore": only point-to-point messages |
    | `out` | `"out"` | output folder |

    `hopmap.schema.json` is the schema with which editors complete and check place.toml: VS Code with Even Better TOML, or any other with Taplo.
    `hopmap schema > hopmap.schema.json` writes that of a newer hopmap.
    "#);
}

/// What a newcomer types is what the command and the README of the project say.
#[test]
fn the_commands_that_are_named_next_work() {
    let sandbox = Sandbox::new();
    let said = sandbox.stdout(&["init"]);
    let commands: Vec<Vec<&str>> = said
        .lines()
        .filter_map(|line| line.strip_prefix("  hopmap "))
        .filter(|line| *line != "run place.toml")
        .map(|line| line.split(' ').collect())
        .collect();
    assert_eq!(commands.len(), 3, "{said}");
    for command in &commands {
        assert!(
            sandbox.read("README.md").contains(&command.join(" ")),
            "the README does not name {command:?}"
        );
        sandbox.stdout(command);
    }
    assert!(sandbox.read("out/rankfile").contains("rank 15="));
    sandbox.stdout(&["plan", "place.toml", "-p", "trace=sample/archive/files/traces.otf2"]);
}

#[test]
fn a_trace_and_a_shape_become_defaults() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path().join("runs")).unwrap();
    for archive in std::fs::read_dir(Path::new(&sample()).parent().unwrap()).unwrap() {
        let archive = archive.unwrap().path();
        let copied = Command::new("cp").arg("-r").arg(&archive).arg(sandbox.path().join("runs")).status();
        assert!(copied.unwrap().success());
    }
    let seen = sandbox.seen(&["init", "a/lu", "--trace", "runs/eztrace_log.otf2", "--shape", "tree:2x2x4"]);
    assert_snapshot!(seen, @"
    created in a/lu: place.toml, hopmap.schema.json, README.md, .gitignore
    next:
      cd a/lu
      hopmap check place.toml
      hopmap run place.toml
    ");
    let file = sandbox.read("a/lu/place.toml");
    let params: Vec<&str> =
        file.lines().filter(|line| line.starts_with("trace") || line.starts_with("shape")).collect();
    assert_snapshot!(params.join("\n"), @r#"
    trace = "../../runs/eztrace_log.otf2"   # recording of a run: a folder of hopmap record, a trace, profiles or a matrix
    shape = "tree:2x2x4"                  # innermost first: cores per host, hosts per switch, and so on
    "#);
    sandbox.stdout(&["run", "a/lu/place.toml"]);
    assert!(sandbox.read("a/lu/out/rankfile").contains("rank 15="));
    assert!(sandbox.path().join("a/lu/.hopmap").is_dir());

    sandbox.stdout(&["init", "b", "--trace", &sample()]);
    assert!(sandbox.read("b/place.toml").contains(&format!("trace = {:?}", sample())));

    // Costs follow from the shape. If they are given, one per level, or an error.
    sandbox.stdout(&["init", "d", "--shape", "tree:4x4"]);
    sandbox.stdout(&["check", "d/place.toml"]);
    assert_snapshot!(sandbox.seen(&["init", "c", "--shape", "tree:4x4", "-p", "costs=[1, 10, 100]"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: shape `tree:4x4` has 2 levels, but costs are [1.0, 10.0, 100.0]
        ,-[place.toml:31:1]
     30 | uses = "topology/synthetic"
     31 | with.shape = "${params.shape}"
        : ^^|^
        :   `-- here
     32 | with.costs = "${params.costs}"
        `----
      help: give one cost for every level of the shape, innermost first, or omit `costs` for 1, 10, 100, and so on
    [exit code 2]
    "#);
    sandbox.stdout(&["init", "c", "--shape", "tree:4x4", "-p", "costs=[1, 20]", "-p", "out=results"]);
    let file = sandbox.read("c/place.toml");
    assert!(file.contains("\ncosts = [1, 20] ") && file.contains("\nout   = \"results\" "), "{file}");
    sandbox.stdout(&["check", "c/place.toml"]);
}

/// A pipeline for every trace of a folder is refused as long as there is none: that comes before the commands.
#[test]
fn a_folder_with_a_space_is_quoted() {
    let sandbox = Sandbox::new();
    let seen = sandbox.seen(&["init", "a b"]);
    assert!(seen.contains("\n  cd 'a b'\n"), "{seen}");
}

#[test]
fn a_project_for_many_traces_names_their_folder() {
    if query_program().is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.seen(&["init", "many", "--from", "batch"]), @"
    created in many: batch.toml, hopmap.schema.json, README.md, .gitignore
    next:
      cd many
      put your traces where traces/**/*.otf2 finds them, then
      hopmap check batch.toml
      hopmap run batch.toml
    ");
    let first = "Put your traces where `traces/**/*.otf2` finds them, then:";
    assert!(sandbox.read("many/README.md").contains(first));
    sandbox.write("many/traces/run/traces.otf2", "");
    sandbox.stdout(&["check", "many/batch.toml"]);
    sandbox.write("more/runs/lu.otf2", "");
    let said = sandbox.stdout(&["init", "more", "--from", "batch", "-p", "traces=runs/*.otf2"]);
    assert!(said.contains("where runs/*.otf2 finds them"), "{said}");
}

#[test]
fn every_project_is_sound() {
    if query_program().is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    for name in names(&sandbox) {
        sandbox.stdout(&["init", &name, "--from", &name]);
        let file = format!("{name}/{name}.toml");
        // A pipeline for every trace of a folder wants one.
        sandbox.write(&format!("{name}/traces/run/traces.otf2"), "");
        sandbox.stdout(&["check", &file]);
        let first = sandbox.read(&file).lines().next().unwrap().to_owned();
        let schema = first.strip_prefix("#:schema ").unwrap();
        let schema: Value = serde_json::from_str(&sandbox.read(&format!("{name}/{schema}"))).unwrap();
        assert_eq!(schema["title"], "hopmap pipeline");
        let readme = sandbox.read(&format!("{name}/README.md"));
        assert!(!readme.contains("../"), "the README of {name} names a sample");
        assert!(
            !readme.contains(&format!("hopmap run {name} ")),
            "the README of {name} does not run its file"
        );
    }
}

#[test]
fn nothing_is_overwritten() {
    let sandbox = Sandbox::new();
    sandbox.write("README.md", "mine");
    assert_snapshot!(sandbox.seen(&["init"]), @r"
    ------- stderr -------
    error[command::mistake]: README.md exists already in this folder; nothing was written
      help: name another folder: `hopmap init DIR` creates it
    [exit code 2]
    ");
    assert_eq!(sandbox.read("README.md"), "mine");
    assert_eq!(std::fs::read_dir(sandbox.path()).unwrap().count(), 1);

    sandbox.stdout(&["init", "p"]);
    // The same again is accepted; a changed file is not. Once it said that it had created everything.
    let again = sandbox.stdout(&["init", "p"]);
    assert!(
        again.starts_with("unchanged in p: place.toml, hopmap.schema.json, README.md, .gitignore\nnext:"),
        "{again}"
    );
    std::fs::remove_file(sandbox.path().join("p/README.md")).unwrap();
    let again = sandbox.stdout(&["init", "p"]);
    let said = "created in p: README.md\nunchanged in p: place.toml, hopmap.schema.json, .gitignore\n";
    assert!(again.starts_with(said), "{again}");
    sandbox.edit("p/place.toml", "shape = \"auto\"", "shape = \"tree:4x4\"");
    std::fs::remove_file(sandbox.path().join("p/README.md")).unwrap();
    assert_snapshot!(sandbox.seen(&["init", "p"]), @r"
    ------- stderr -------
    error[command::mistake]: place.toml exists already in p; nothing was written
      help: name another folder: `hopmap init DIR` creates it
    [exit code 2]
    ");
    assert!(sandbox.read("p/place.toml").contains("tree:4x4"));
    assert!(!sandbox.path().join("p/README.md").exists());

    sandbox.write("file", "");
    assert_eq!(sandbox.output(&["init", "file"]).status.code(), Some(2));
}

#[test]
fn mistakes_make_nothing() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.seen(&["init", "x", "--from", "plce"]), @r"
    ------- stderr -------
    error[command::mistake]: there is no bundled pipeline `plce`
      help: did you mean `place`? `hopmap init --list` lists all
    [exit code 2]
    ");
    assert_snapshot!(sandbox.seen(&["init", "x", "--from", "job", "--trace", "t.otf2"]), @r"
    ------- stderr -------
    error[command::mistake]: the pipeline `job` has no parameter `trace`
      help: its parameters: program, machine, hosts, hosts_file, nodes, slots, mapper, launch, launcher, out
    [exit code 2]
    ");
    assert_snapshot!(sandbox.seen(&["init", "x", "--shape", "tree:"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: level 0 of shape `tree:` is ``, which is not a positive integer
        ,-[place.toml:31:1]
     30 | uses = "topology/synthetic"
     31 | with.shape = "${params.shape}"
        : ^^|^
        :   `-- here
     32 | with.costs = "${params.costs}"
        `----
      help: give the branches of every level, innermost first: `tree:2x4x2`
    [exit code 2]
    "#);
    assert_snapshot!(sandbox.seen(&["init", "table-1"]), @r"
    ------- stderr -------
    error[command::mistake]: `table-1` is a bundled pipeline, and the first argument is a folder
      help: `hopmap init --from table-1` starts from it; `hopmap init --from place table-1` makes a folder of that name
    [exit code 2]
    ");
    assert!(!sandbox.path().join("x").exists());
}

#[test]
fn the_list_describes_each_project() {
    let sandbox = Sandbox::new();
    let list = sandbox.stdout(&["init", "--list"]);
    assert!(list.contains("place             Place the ranks of a traced program on a machine\n"), "{list}");
    assert_eq!(list.lines().count(), names(&sandbox).len());
    assert_eq!(std::fs::read_dir(sandbox.path()).unwrap().count(), 0);
}

/// Taplo is what checks TOML in editors: it agrees with every pipeline, and with none that has a mistake.
#[test]
fn editors_check_pipelines_as_hopmap_does() {
    let python = std::env::var("HOPMAP_PYTHON").unwrap_or_default();
    let taplo = Path::new(&python).with_file_name("taplo");
    if !taplo.is_file() {
        skipped("there is no taplo beside HOPMAP_PYTHON");
        return;
    }
    let sandbox = Sandbox::new();
    for name in names(&sandbox) {
        sandbox.stdout(&["init", &name, "--from", &name]);
    }
    sandbox.write("pipelines/hopmap.schema.json", sandbox.stdout(&["schema"]));
    let mut count = 0;
    for file in std::fs::read_dir(project().join("pipelines")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap();
            sandbox.write(&format!("pipelines/{name}"), format!("#:schema hopmap.schema.json\n{text}"));
            count += 1;
        }
    }
    assert!(count >= names(&sandbox).len());
    let features = "#:schema hopmap.schema.json
[stages.p]
uses = \"trace/import\"
with = { path = \"p.csv\", format = \"csv\" }
[stages.m]
uses = \"topology/synthetic\"
with = { shape = \"tree:2x4\" }
[stages.s]
uses = \"map/${matrix.mapper}\"
needs = { task-graph = \"p\", system = \"m\" }
matrix = { mapper = [\"annealing\", \"exact\"], seed = \"1..3\" }
exclude = [{ mapper = \"exact\", seed = \"2..\" }]
[tables.best]
sql = \"SELECT 1\"
save = \"best.csv\"
[gates]
quality = \"s.F < 9\"
";
    sandbox.write("pipelines/features.toml", features);
    let lint = |folder: &str| {
        let output = Command::new(&taplo)
            .args(["lint", "--no-auto-config", "**/*.toml"])
            .current_dir(sandbox.path().join(folder))
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let (fits, said) = lint(".");
    assert!(fits, "{said}");

    let mistakes = [
        ("costs = \"${params.costs}\"", "cots = \"${params.costs}\"", "'cots' was unexpected"),
        ("\"map/auto\"", "\"map/atuo\"", "map/atuo"),
        ("needs = { mapping", "nedes = { mapping", "'nedes' was unexpected"),
    ];
    for (right, wrong, said) in mistakes {
        let text = sandbox.read("place/place.toml");
        sandbox.edit("place/place.toml", right, wrong);
        let (fits, problems) = lint("place");
        assert!(!fits && problems.contains(said), "{wrong}: {problems}");
        sandbox.write("place/place.toml", text);
    }
}
