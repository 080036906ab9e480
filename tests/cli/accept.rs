//! `hopmap accept`: the right artifact as a small file.

use insta::assert_snapshot;
use serde_json::Value;

use crate::sandbox::Sandbox;

fn with_machines() -> Sandbox {
    let sandbox = Sandbox::new();
    for (out, shape) in [("machine", "shape=tree:2x4"), ("other", "shape=tree:2x3")] {
        let with = ["-p", shape, "-p", "costs=[1, 10]", "--out", out];
        sandbox.stdout(&[&["exec", "topology/synthetic"], &with[..]].concat());
    }
    sandbox
}

#[test]
fn an_artifact_is_accepted_and_another_one_is_not() {
    let sandbox = with_machines();
    let accept = ["accept", "machine", "--out", "gates/machine.json", "--note", "after the move"];
    assert_snapshot!(sandbox.seen(&accept), @"accepted: system-graph DIGEST in gates/machine.json");
    let text = sandbox.read("gates/machine.json");
    let accepted: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(accepted["artifact"], "../machine");
    assert_eq!(accepted["note"], "after the move");
    assert_eq!(accepted["tables"]["slots"], 8);
    assert_snapshot!(sandbox.seen(&accept), @"accepted already: system-graph DIGEST in gates/machine.json");
    assert_eq!(sandbox.read("gates/machine.json"), text);
    let check =
        |artifact: &str| sandbox.seen(&["accept", "--check", artifact, "--out", "gates/machine.json"]);
    assert_snapshot!(check("machine"), @"system-graph DIGEST is the accepted one");
    assert_snapshot!(check("other"), @r"
    other is not what gates/machine.json accepts
      digest DIGEST instead of DIGEST
      rows of groups 12, accepted 16
      rows of links 6, accepted 8
      rows of nodes 4, accepted 5
      rows of slots 6, accepted 8
      hosts 3, accepted 4
      links 6, accepted 8
      slots 6, accepted 8
    [exit code 3]
    ");
}

#[test]
fn what_is_damaged_is_neither_accepted_nor_compared() {
    let sandbox = with_machines();
    sandbox.stdout(&["accept", "machine", "--out", "machine.json"]);
    std::fs::write(sandbox.path().join("machine/links.parquet"), "damaged").unwrap();
    assert_eq!(sandbox.output(&["accept", "machine", "--out", "new.json"]).status.code(), Some(1));
    assert!(!sandbox.path().join("new.json").exists());
    assert_eq!(
        sandbox.output(&["accept", "--check", "machine", "--out", "machine.json"]).status.code(),
        Some(1)
    );
    let check = |file: &str| sandbox.seen(&["accept", "--check", "other", "--out", file]);
    assert_snapshot!(check("none.json"), @r"
    ------- stderr -------
    error[accepted::missing]: nothing is accepted yet: DIR/none.json does not exist
      help: accept an artifact with `hopmap accept ARTIFACT --out DIR/none.json`
    [exit code 2]
    ");
    sandbox.write("torn.json", &sandbox.read("machine.json")[..80]);
    let said = check("torn.json");
    assert!(said.contains("torn.json is not an accepted state: EOF while parsing"), "{said}");
    assert!(said.ends_with("[exit code 2]\n"), "{said}");
}

#[test]
fn what_is_not_accepted_is_said_even_when_quiet() {
    let sandbox = with_machines();
    sandbox.stdout(&["accept", "machine", "--out", "machine.json"]);
    let check =
        |artifact: &str| sandbox.seen(&["accept", "--check", artifact, "--out", "machine.json", "--quiet"]);
    assert_eq!(check("machine"), "");
    assert_snapshot!(check("other"), @"
    ------- stderr -------
    other is not what machine.json accepts
      digest DIGEST instead of DIGEST
      rows of groups 12, accepted 16
      rows of links 6, accepted 8
      rows of nodes 4, accepted 5
      rows of slots 6, accepted 8
      hosts 3, accepted 4
      links 6, accepted 8
      slots 6, accepted 8
    [exit code 3]
    ");
}

#[test]
fn accept_without_gates_or_a_pipeline_is_an_error() {
    let sandbox = Sandbox::with_ring();
    assert_snapshot!(sandbox.seen(&["accept", "ring.toml"]), @r#"
    ------- stderr -------
    error[command::mistake]: ring.toml has no gates, so there is nothing to accept
      help: a gate is a line below [gates], such as quality = "placement.F <= N.NN * accepted"
    [exit code 2]
    "#);
    assert_snapshot!(sandbox.seen(&["accept", "placement"]), @r"
    ------- stderr -------
    error[command::mistake]: `placement` is not a pipeline file: name a file with --out FILE
      help: without --out, and with -p, name a pipeline file
    [exit code 2]
    ");
    assert_snapshot!(sandbox.seen(&["accept", "placement", "--out", "x.json", "-p", "a=1"]), @r"
    ------- stderr -------
    error[command::mistake]: `placement` is not a pipeline file: an artifact takes no -p
      help: without --out, and with -p, name a pipeline file
    [exit code 2]
    ");
}
