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
    assert_snapshot!(provenance(&sandbox, "out/rankfile"), @"");
    assert_eq!(provenance(&sandbox, "out/rankfile"), provenance(&sandbox, "rankfile"));
    // What goes into several stages is told once.
    assert_snapshot!(provenance(&sandbox, "quality"), @"");
}

#[test]
fn a_changed_launch_file_is_known_by_its_comment() {
    let sandbox = ran();
    sandbox.write("mine", sandbox.read("out/rankfile") + "\n");
    assert_snapshot!(provenance(&sandbox, "mine"), @"");
    sandbox.write("strange", "n01\nn02\n");
    assert_snapshot!(provenance(&sandbox, "strange"), @"");
    let digest = "0".repeat(64);
    sandbox.write("other", format!("# hopmap mapping {digest}\nn01\n"));
    assert_snapshot!(provenance(&sandbox, "other"), @"");
}

#[test]
fn any_saved_file_is_known_by_its_bytes() {
    let sandbox = Sandbox::with_ring();
    let save = "\n[stages.matrix]\nuses = \"trace/export\"\nneeds = { task-graph = \"program\" }\nsave = { file = \"matrix.csv\" }\n";
    sandbox.write("ring.toml", sandbox.read("ring.toml") + save);
    sandbox.stdout(&["run", "ring.toml"]);
    assert_snapshot!(provenance(&sandbox, "matrix.csv"), @"");
}

#[test]
fn an_artifact_outside_a_store_is_followed_as_far_as_it_goes() {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "save  = { rankfile = \"out/rankfile\" }", "save  = { rankfile = \"out/rankfile\" }\n\n[stages.copy]\nuses = \"map/linear\"\nneeds = { task-graph = \"program\", system = \"machine\" }\nsave = { mapping = \"linear.mapping\" }");
    sandbox.stdout(&["run", "ring.toml"]);
    std::fs::remove_dir_all(sandbox.path().join(".hopmap")).unwrap();
    assert_snapshot!(provenance(&sandbox, "linear.mapping"), @"");
    sandbox.stdout(&["exec", "topology/synthetic", "--with", "shape=tree:2x4", "--out", "machine"]);
    assert_snapshot!(provenance(&sandbox, "machine"), @"");
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.edit("linear.mapping/provenance.json", "\"cell\": \"copy\"", "\"cell\": \"other\"");
    std::fs::remove_dir_all(sandbox.path().join("machine")).unwrap();
    let said = provenance(&sandbox, "linear.mapping");
    assert!(said.contains("other\n") && said.contains("trace/csv"), "{said}");
    sandbox.edit("linear.mapping/provenance.json", "\"revision\": ", "\"revision\": 1");
    std::fs::remove_dir_all(sandbox.path().join(".hopmap")).unwrap();
    assert_snapshot!(provenance(&sandbox, "linear.mapping"), @"");
}

#[test]
fn an_artifact_that_was_cleared_is_remembered_by_the_log() {
    let sandbox = ran();
    let shown: Value = serde_json::from_str(&sandbox.stdout(&["show", "--json", "program"])).unwrap();
    let digest = shown["digest"].as_str().unwrap();
    std::fs::remove_dir_all(sandbox.path().join(".hopmap/artifacts").join(digest)).unwrap();
    std::fs::remove_dir_all(sandbox.path().join(".hopmap/runs")).unwrap();
    assert_snapshot!(provenance(&sandbox, "placement"), @"");
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
    assert_snapshot!(sandbox.seen(&["show", "--provenance", "quality", "--format", "csv"]), @"");
    assert_snapshot!(sandbox.seen(&["show", "quality", "--format", "dot"]), @"");
}
