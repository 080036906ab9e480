//! `hopmap why`.

use crate::sandbox::Sandbox;

#[test]
fn each_reason_has_old_and_new() {
    let sandbox = Sandbox::with_ring();
    insta::assert_snapshot!(sandbox.seen(&["why", "machine", "ring.toml"]), @r#"
    machine (topology/synthetic) would run:
      never ran here
      key DIGEST
    "#);
    sandbox.stdout(&["run", "ring.toml"]);
    insta::assert_snapshot!(sandbox.seen(&["why", "placement", "ring.toml"]), @r#"
    placement (map/annealing) would not run: nothing it depends on has changed
      key DIGEST
      output mapping DIGEST
    "#);
    sandbox.edit("ring.toml", "[1, 10]", "[1, 20]");
    sandbox.edit("ring.csv", "1000", "2000");
    insta::assert_snapshot!(sandbox.seen(&["why", "machine", "ring.toml"]), @r#"
    machine (topology/synthetic) would run:
      costs: [1.0,10.0] → [1.0,20.0]
      key DIGEST
    "#);
    insta::assert_snapshot!(sandbox.seen(&["why", "program", "ring.toml"]), @r#"
    program (trace/csv) would run:
      file matrix.csv: DIGEST → DIGEST
      key DIGEST
    "#);
    insta::assert_snapshot!(sandbox.seen(&["why", "placement", "ring.toml"]), @r#"placement (map/annealing) is decided when `program` has run"#);
    insta::assert_snapshot!(sandbox.seen(&["why", "placemnt", "ring.toml"]), @r#"
    ------- stderr -------
    error: ring.toml has no stage `placemnt`
      help: did you mean `placement`? stages: program, machine, placement, quality, rankfile
    [exit code 2]
    "#);
}
