//! `hopmap why`.

use crate::lock::SWEEP;
use crate::sandbox::Sandbox;

#[test]
fn each_reason_has_old_and_new() {
    let sandbox = Sandbox::with_ring();
    insta::assert_snapshot!(sandbox.seen(&["why", "machine", "ring.toml"]), @r#"
    machine (topology/synthetic) would run:
      no result in this store yet
      key DIGEST
    "#);
    sandbox.stdout(&["run", "ring.toml"]);
    insta::assert_snapshot!(sandbox.seen(&["why", "placement", "ring.toml"]), @r#"
    placement (map/annealing) up to date: nothing it depends on has changed
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
    program (trace/import) would run:
      file matrix.csv: DIGEST → DIGEST
      key DIGEST
    "#);
    insta::assert_snapshot!(sandbox.seen(&["why", "placement", "ring.toml"]), @r"placement (map/annealing) depends on the result of `program`");
    insta::assert_snapshot!(sandbox.seen(&["why", "placemnt", "ring.toml"]), @r"
    ------- stderr -------
    error[command::mistake]: ring.toml has no stage `placemnt`
      help: did you mean `placement`? stages: program, machine, placement, quality, rankfile
    [exit code 2]
    ");
}

#[test]
fn a_missing_input_is_why_a_stage_cannot_run() {
    let sandbox = Sandbox::with_ring();
    std::fs::remove_file(sandbox.path().join("ring.csv")).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["why", "program", "ring.toml"]), @r"
    program (trace/import) cannot run
    ------- stderr -------
    error[engine::unreadable]: stage `program` (ring.toml:8)
      |-> cannot read DIR/ring.csv
      `-> No such file or directory (os error 2)
      help: paths in a pipeline file are relative to that file, values of -p to the working directory
    [exit code 1]
    ");
    assert_eq!(sandbox.output(&["why", "program", "ring.toml", "--json"]).status.code(), Some(1));
}

#[test]
fn a_cell_is_named_by_as_many_keys_as_leave_it_alone() {
    let sandbox = Sandbox::with_ring();
    sandbox.write("sweep.toml", SWEEP);
    let whole = sandbox.stdout(&["why", "placement[mapper=random,seed=2]", "sweep.toml"]);
    for name in ["placement[seed=2,mapper=random]", "placement[mapper = random, seed = 2]"] {
        assert_eq!(sandbox.stdout(&["why", name, "sweep.toml"]), whole, "{name}");
    }
    sandbox.edit("sweep.toml", "\"linear\", ", "");
    // A key that is the same for all cells is not part of the name that is shown.
    let short = whole.replace("mapper=random,", "");
    assert_eq!(sandbox.stdout(&["why", "placement[seed=2]", "sweep.toml"]), short);
}

#[test]
fn a_name_of_several_cells_or_of_none_is_refused() {
    let sandbox = Sandbox::with_ring();
    sandbox.write("sweep.toml", SWEEP);
    sandbox.edit("sweep.toml", "1..3", "1..12");
    insta::assert_snapshot!(sandbox.seen(&["why", "placement[mapper=random]", "sweep.toml"]), @r"
    ------- stderr -------
    error[command::mistake]: `placement[mapper=random]` matches 12 cells
      help: name one: placement[mapper=random,seed=1], placement[mapper=random,seed=2], placement[mapper=random,seed=3], …
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["why", "placement[seed=13]", "sweep.toml"]), @r"
    ------- stderr -------
    error[command::mistake]: `placement` has no cell `placement[seed=13]`
      help: its cells: placement[mapper=linear,seed=1], placement[mapper=linear,seed=2], placement[mapper=linear,seed=3], …
    [exit code 2]
    ");
}
