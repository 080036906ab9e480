//! `hopmap show --provenance`: where an artifact or a saved file comes from.

use insta::assert_snapshot;
use serde_json::Value;

use crate::sandbox::Sandbox;

fn ran() -> Sandbox {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox
}

fn provenance(sandbox: &Sandbox, what: &str) -> String {
    sandbox.seen(&["show", "--provenance", what])
}

#[test]
fn a_launch_file_leads_back_to_the_input_files() {
    let sandbox = ran();
    assert_snapshot!(provenance(&sandbox, "out/rankfile"), @r#"
    launch-file DIGEST rankfile
      launch/rankfile revision 1, hopmap VERSION, run RUN of ring
      mapping: mapping DIGEST placement
        map/annealing revision 7, hopmap VERSION, run RUN of ring
        evaluations = 20000
        system: system-graph DIGEST machine
          topology/synthetic revision 2, hopmap VERSION, run RUN of ring
          costs = [1.0,10.0]
          shape = "tree:2x4"
        task-graph: task-graph DIGEST program
          trace/import revision 7, hopmap VERSION, run RUN of ring
          format = "csv"
          file matrix.csv DIGEST
    "#);
    assert_eq!(provenance(&sandbox, "out/rankfile"), provenance(&sandbox, "rankfile"));
    // An input of several stages is listed once.
    assert_snapshot!(provenance(&sandbox, "quality"), @r#"
    metrics DIGEST quality
      evaluate/mapping revision 4, hopmap VERSION, run RUN of ring
      mapping: mapping DIGEST placement
        map/annealing revision 7, hopmap VERSION, run RUN of ring
        evaluations = 20000
        system: system-graph DIGEST machine
          topology/synthetic revision 2, hopmap VERSION, run RUN of ring
          costs = [1.0,10.0]
          shape = "tree:2x4"
        task-graph: task-graph DIGEST program
          trace/import revision 7, hopmap VERSION, run RUN of ring
          format = "csv"
          file matrix.csv DIGEST
      system: system-graph DIGEST machine (above)
      task-graph: task-graph DIGEST program (above)
    "#);
}

#[test]
fn a_changed_launch_file_is_known_by_its_comment() {
    let sandbox = ran();
    sandbox.write("mine", sandbox.read("out/rankfile") + "\n");
    assert_snapshot!(provenance(&sandbox, "mine"), @r#"
    mapping DIGEST placement
      map/annealing revision 7, hopmap VERSION, run RUN of ring
      evaluations = 20000
      system: system-graph DIGEST machine
        topology/synthetic revision 2, hopmap VERSION, run RUN of ring
        costs = [1.0,10.0]
        shape = "tree:2x4"
      task-graph: task-graph DIGEST program
        trace/import revision 7, hopmap VERSION, run RUN of ring
        format = "csv"
        file matrix.csv DIGEST
    ------- stderr -------
    mine was edited, but names its origin
    "#);
    sandbox.write("strange", "n01\nn02\n");
    assert_snapshot!(provenance(&sandbox, "strange"), @r"
    ------- stderr -------
    error[command::mistake]: the origin of strange is unknown
      help: it is not a file of an artifact in this store and has no comment `hopmap KIND DIGEST`
    [exit code 2]
    ");
    let digest = "0".repeat(64);
    sandbox.write("other", format!("# hopmap mapping {digest}\nn01\n"));
    assert_snapshot!(provenance(&sandbox, "other"), @r"
    ------- stderr -------
    error[command::mistake]: other was made from mapping 0000000000000000000000000000000000000000000000000000000000000000, which is not in this store
      help: --store names the store of the run that made it
    [exit code 2]
    ");
}

#[test]
fn any_saved_file_is_known_by_its_bytes() {
    let sandbox = Sandbox::with_ring();
    let save = "\n[stages.matrix]\nuses = \"trace/export\"\nwith = { format = \"csv\" }\nneeds = { task-graph = \"program\" }\nsave = { file = \"matrix.csv\" }\n";
    sandbox.write("ring.toml", sandbox.read("ring.toml") + save);
    sandbox.stdout(&["run", "ring.toml"]);
    assert_snapshot!(provenance(&sandbox, "matrix.csv"), @r#"
    text-file DIGEST matrix
      trace/export revision 2, hopmap VERSION, run RUN of ring
      format = "csv"
      task-graph: task-graph DIGEST program
        trace/import revision 7, hopmap VERSION, run RUN of ring
        format = "csv"
        file matrix.csv DIGEST
    "#);
}

#[test]
fn an_artifact_outside_a_store_is_followed_as_far_as_it_goes() {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "save  = { rankfile = \"out/rankfile\" }", "save  = { rankfile = \"out/rankfile\" }\n\n[stages.copy]\nuses = \"map/linear\"\nneeds = { task-graph = \"program\", system = \"machine\" }\nsave = { mapping = \"linear.mapping\" }");
    sandbox.stdout(&["run", "ring.toml"]);
    std::fs::remove_dir_all(sandbox.path().join(".hopmap")).unwrap();
    assert_snapshot!(provenance(&sandbox, "linear.mapping"), @r"
    mapping DIGEST copy
      map/linear revision 3, hopmap VERSION, run unknown
      system: artifact DIGEST
        the chain ends here: there is no store to look it up in
      task-graph: artifact DIGEST
        the chain ends here: there is no store to look it up in
    ");
    sandbox.stdout(&[
        "exec",
        "topology/synthetic",
        "-p",
        "shape=tree:2x4",
        "-p",
        "costs=[1, 10]",
        "--out",
        "machine",
    ]);
    assert_snapshot!(provenance(&sandbox, "machine"), @r"
    system-graph DIGEST
      the chain ends here: its folder has no provenance.json
    ");
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.edit("linear.mapping/provenance.json", "\"cell\": \"copy\"", "\"cell\": \"other\"");
    std::fs::remove_dir_all(sandbox.path().join("machine")).unwrap();
    let said = provenance(&sandbox, "linear.mapping");
    assert!(said.contains("other\n") && said.contains("trace/import"), "{said}");
    sandbox.edit("linear.mapping/provenance.json", "\"revision\": ", "\"revision\": 1");
    std::fs::remove_dir_all(sandbox.path().join(".hopmap")).unwrap();
    assert_snapshot!(provenance(&sandbox, "linear.mapping"), @r"
    mapping DIGEST
      the chain ends here: its provenance.json is damaged
    ");
}

#[test]
fn an_artifact_that_was_cleared_is_remembered_by_the_log() {
    let sandbox = ran();
    let shown: Value = serde_json::from_str(&sandbox.stdout(&["show", "--json", "program"])).unwrap();
    let digest = shown["digest"].as_str().unwrap();
    std::fs::remove_dir_all(sandbox.path().join(".hopmap/artifacts").join(digest)).unwrap();
    std::fs::remove_dir_all(sandbox.path().join(".hopmap/runs")).unwrap();
    assert_snapshot!(provenance(&sandbox, "placement"), @r#"
    mapping DIGEST placement
      map/annealing revision 7, hopmap VERSION, run unknown
      evaluations = 20000
      system: system-graph DIGEST machine
        topology/synthetic revision 2, hopmap VERSION, run unknown
        costs = [1.0,10.0]
        shape = "tree:2x4"
      task-graph: task-graph DIGEST program
        trace/import revision 7, run unknown
        format = "csv"
        file matrix.csv DIGEST
    "#);
}

#[test]
fn a_chain_is_a_graph_for_programs() {
    let sandbox = ran();
    let value: Value =
        serde_json::from_str(&sandbox.stdout(&["show", "--provenance", "quality", "--json"])).unwrap();
    let (nodes, edges) = (value["nodes"].as_array().unwrap(), value["edges"].as_array().unwrap());
    assert_eq!((nodes.len(), edges.len()), (4, 5));
    assert_eq!(nodes[0]["digest"], value["root"]);
    let program = nodes.iter().find(|node| node["made"]["cell"] == "program").unwrap();
    let hash = blake3::hash(sandbox.read("ring.csv").as_bytes()).to_hex();
    assert_eq!(program["made"]["files"][0]["blake3"], hash.as_str());
    assert_eq!(program["made"]["run"]["pipeline"], "ring");
    let dot = sandbox.stdout(&["show", "--provenance", "quality", "--format", "dot"]);
    assert_eq!(dot.matches(" -> ").count(), 6);
    assert_snapshot!(sandbox.seen(&["show", "--provenance", "quality", "--format", "csv"]), @r"
    ------- stderr -------
    error[command::mistake]: provenance is not a table
      help: --format json or --format dot
    [exit code 2]
    ");
    assert_snapshot!(sandbox.seen(&["show", "quality", "--format", "dot"]), @r"
    ------- stderr -------
    error[command::mistake]: a table cannot be written as DOT
      help: `hopmap show --provenance ARTIFACT --format dot` draws where it comes from
    [exit code 2]
    ");
}

#[test]
fn exported_texts_name_what_they_were_made_from() {
    let sandbox = Sandbox::with_ring();
    let stage = |name: &str, kind: &str, with: &str, port: &str, from: &str| {
        format!(
            "\n[stages.{name}]\nuses = \"{kind}\"\nwith = {{ {with} }}\nneeds = {{ {port} = \"{from}\" }}\nsave = {{ file = \"{name}\" }}\n"
        )
    };
    let stages = [
        stage("slurm", "topology/export", "format = \"slurm-conf\"", "system", "machine"),
        stage("simgrid", "topology/export", "format = \"simgrid\"", "system", "machine"),
        stage("dot", "topology/export", "format = \"dot\"", "system", "machine"),
        stage("matrix", "trace/export", "format = \"matrix-market\"", "task-graph", "program"),
    ];
    sandbox.write("ring.toml", sandbox.read("ring.toml") + &stages.concat());
    sandbox.stdout(&["run", "ring.toml"]);
    for (name, kind) in [
        ("slurm", "system-graph"),
        ("simgrid", "system-graph"),
        ("dot", "system-graph"),
        ("matrix", "task-graph"),
    ] {
        sandbox.write(name, sandbox.read(name) + "\n");
        let said = provenance(&sandbox, name);
        assert!(said.starts_with(kind), "{name}: {said}");
    }
}
