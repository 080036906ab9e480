//! `hopmap exec`.

use crate::sandbox::{Sandbox, ring};

fn machine(sandbox: &Sandbox) -> String {
    sandbox.seen(&["exec", "topology/synthetic", "-p", "shape=tree:2x4", "-p", "costs=[1, 10]", "--out", "m"])
}

#[test]
fn a_stage_runs_alone_and_replaces_an_artifact() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(machine(&sandbox), @r#"system-graph DIGEST m"#);
    machine(&sandbox);
    sandbox.write("ring.csv", ring(8));
    sandbox.stdout(&["exec", "trace/import", "-p", "path=ring.csv", "-p", "format=csv", "--out", "g"]);
    insta::assert_snapshot!(
        sandbox.seen(&["exec", "map/linear", "--in", "task-graph=g", "--in", "system=m", "--out", "a"]), @r#"mapping DIGEST a"#
    );
}

#[test]
fn it_gives_the_same_bytes_as_a_run() {
    let sandbox = Sandbox::with_ring();
    machine(&sandbox);
    sandbox.stdout(&["run", "ring.toml"]);
    let digest = |name: &str| {
        let shown: serde_json::Value =
            serde_json::from_str(&sandbox.stdout(&["show", name, "--json"])).unwrap();
        shown["digest"].as_str().unwrap().to_owned()
    };
    assert_eq!(digest("m"), digest("machine"));
}

#[test]
fn what_is_wrong_is_said() {
    let sandbox = Sandbox::new();
    machine(&sandbox);
    insta::assert_snapshot!(sandbox.seen(&["exec", "map/anealing", "--out", "a"]), @r"
    ------- stderr -------
    error[command::mistake]: there is no stage kind `map/anealing`
      help: did you mean `map/annealing`? `hopmap stages` lists all
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["exec", "map/linear", "--in", "system=m", "--out", "a"]), @r"
    ------- stderr -------
    error[command::mistake]: map/linear needs `task-graph`
      help: add --in task-graph=ARTIFACT with a task-graph
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["exec", "map/linear", "--in", "sytem=m", "--out", "a"]), @"
    ------- stderr -------
    error[command::mistake]: map/linear has no input `sytem`
      help: did you mean `system`? inputs: task-graph, system, bound
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["exec", "map/linear", "--in", "task-graph=m", "--in", "system=m", "--out", "a"]), @r"
    ------- stderr -------
    error[command::mistake]: m is a system-graph, but `task-graph` takes a task-graph
      help: `hopmap stages map/linear` describes the inputs
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["exec", "map/linear", "--in", "task-graph=none", "--out", "a"]), @r"
    ------- stderr -------
    error[artifact::not_an_artifact]: DIR/none is not an artifact: cannot read artifact.json: No such file or directory (os error 2)
      help: an artifact is a folder with an artifact.json, as `hopmap exec --out` writes it
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["exec", "trace/import", "-p", "path=none.csv", "-p", "format=csv", "-p", "rnks=3", "--out", "a"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: trace/import has no parameter `rnks`
       ,-[-p:3:1]
     2 | format = "csv"
     3 | rnks = 3
       : ^^|^
       :   `-- did you mean `ranks`?
       `----
      help: parameters: algorithms, allow_truncated, collectives, format, path, ranks, ranks_per_host
    [exit code 2]
    "#);
    insta::assert_snapshot!(sandbox.seen(&["exec", "trace/import", "-p", "path=none.csv", "-p", "format=csv", "--out", "a"]), @r"
    ------- stderr -------
    error[text::file]: DIR/none.csv: cannot be read: No such file or directory (os error 2)
      help: check the path; in a pipeline file it is relative to that file
    [exit code 1]
    ");
    sandbox.write("full/notes.txt", "mine");
    insta::assert_snapshot!(sandbox.seen(&["exec", "topology/synthetic", "-p", "shape=tree:2", "-p", "costs=[1]", "--out", "full"]), @r"
    ------- stderr -------
    error[command::mistake]: full contains something that is not an artifact
      help: name a new folder, an empty one, or an artifact to replace
    [exit code 2]
    ");
    assert_eq!(sandbox.read("full/notes.txt"), "mine");
}

#[test]
fn a_generated_trace_is_read_back_by_every_reader() {
    let sandbox = Sandbox::new();
    let generate = ["-p", "pattern=rows", "-p", "ranks=12", "-p", "events=5000", "--out", "big"];
    sandbox.stdout(&[&["exec", "trace/generate"], &generate[..]].concat());
    let read = |reader: &str| {
        let reader = format!("reader={reader}");
        let archive = "path=big/archive/files/traces.otf2";
        sandbox.stdout(&["exec", "trace/otf2", "-p", archive, "-p", &reader, "--out", "graph"]);
        sandbox.read("graph/artifact.json")
    };
    let expected = sandbox.read("big/task-graph/artifact.json");
    let library = cfg!(feature = "libotf2").then_some("libotf2");
    for reader in ["native", "auto"].into_iter().chain(library) {
        assert_eq!(read(reader), expected, "{reader}");
    }
}

#[test]
fn a_generated_trace_is_read_in_a_pipeline() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "sample.toml",
        "[stages.sample]\nuses = \"trace/generate\"\nwith = { pattern = \"wavefront\", ranks = 6, events = 2000 }\n\
         [stages.program]\nuses = \"trace/otf2\"\nwith = { path = \"${stages.sample.archive.path}/files/traces.otf2\" }\n",
    );
    sandbox.stdout(&["run", "sample.toml"]);
    let shown = sandbox.stdout(&["show", "program", "--json"]);
    assert!(shown.contains("task-graph"), "{shown}");
}

#[test]
fn the_working_directory_is_named_where_it_is_in_the_way() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "mine");
    let machine = ["-p", "shape=tree:2", "-p", "costs=[1]", "--out", "."];
    insta::assert_snapshot!(sandbox.seen(&[&["exec", "topology/synthetic"], &machine[..]].concat()), @r"
    ------- stderr -------
    error[command::mistake]: . contains something that is not an artifact
      help: name a new folder, an empty one, or an artifact to replace
    [exit code 2]
    ");
}

#[test]
fn text_in_quotes_is_what_they_hold_as_in_a_pipeline_file() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "p.toml",
        "[params]\nshape = \"tree:1x1\"\n[stages.machine]\nuses = \"topology/synthetic\"\n\
         with = { shape = \"${params.shape}\", costs = [1, 10] }\n",
    );
    let digest = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["digest"].to_string();
    let plain = machine(&sandbox);
    let plain_digest = digest(&sandbox.stdout(&["show", "m", "--json"]));
    for shape in ["shape=tree:2x4", "shape=\"tree:2x4\"", "shape='tree:2x4'"] {
        let given = ["exec", "topology/synthetic", "-p", shape, "-p", "costs=[1, 10]", "--out", "m"];
        assert_eq!(sandbox.seen(&given), plain, "{shape}");
        assert_eq!(digest(&sandbox.stdout(&["show", "m", "--json"])), plain_digest, "{shape}");
        sandbox.stdout(&["run", "p.toml", "-p", shape, "--no-report"]);
        assert_eq!(digest(&sandbox.stdout(&["show", "machine", "--json"])), plain_digest, "-p {shape}");
    }
    // Where text is wanted, what is something else in TOML is text all the same.
    sandbox.stdout(&["exec", "instance/stencil", "-p", "shape=2x2", "-p", "bytes=7", "--out", "g"]);
    let host = ["-p", "host_prefix=7", "-p", "shape=tree:2x4", "-p", "costs=[1, 10]", "--out", "n"];
    sandbox.stdout(&[&["exec", "topology/synthetic"], &host[..]].concat());
}
