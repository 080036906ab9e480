//! `hopmap verify` of pipelines.

use serde_json::Value;

use crate::lock::SWEEP;
use crate::sandbox::Sandbox;

#[test]
fn everything_is_made_again_and_is_the_same() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "-j1"]);
    std::fs::remove_file(sandbox.path().join("out/rankfile")).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["verify", "ring.toml", "-j1"]), @r#"
      same           5 artifacts of 5 stages
    ring: 5 the same in N.NN s
    ------- stderr -------
    -j1, 1 last time
      ran        program  N.NN s
      ran        machine  N.NN s
      placement: 8 solvers on every island, 50000 iterations, an exchange after every 1000
      placement: warning: the search ended before its first exchange (`exchange_interval`)
      ran        placement  N.NN s
      ran        quality  N.NN s
      ran        rankfile  N.NN s
    "#);
    assert!(!sandbox.path().join("out/rankfile").exists(), "copies for people are not touched");
    let left = std::fs::read_dir(sandbox.path().join(".hopmap")).unwrap();
    let left =
        left.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("verify"));
    assert_eq!(left.count(), 0, "the second store stays behind");
}

#[test]
fn artifacts_that_are_the_same_take_one_line() {
    let sandbox = Sandbox::with_ring();
    sandbox.write("sweep.toml", SWEEP);
    sandbox.stdout(&["run", "sweep.toml", "-j1"]);
    let output = sandbox.output(&["verify", "sweep.toml", "-j2"]);
    let seen = String::from_utf8(output.stdout).unwrap();
    assert_eq!(seen.matches("  same ").count(), 1, "{seen}");
    assert!(seen.contains(" artifacts of "), "{seen}");
}

#[test]
fn one_stage_is_made_again_from_what_is_stored() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "-j1"]);
    insta::assert_snapshot!(sandbox.seen(&["verify", "ring.toml", "--stage", "quality", "-j1"]), @r#"
      same           quality                  metrics DIGEST
    ring: 1 the same in N.NN s
    ------- stderr -------
    -j1, 1 last time
      ran        quality  N.NN s
    "#);
    insta::assert_snapshot!(sandbox.seen(&["verify", "ring.toml", "--stage", "qualty", "-j1"]), @r"
    ------- stderr -------
    error[command::mistake]: `ring` has no stage `qualty`
      help: did you mean `quality`? stages: program, machine, placement, quality, rankfile
    [exit code 2]
    ");
}

#[test]
fn a_result_that_is_another_one_is_shown_with_its_first_row() {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 1");
    sandbox.stdout(&["run", "ring.toml", "-j1"]);
    sandbox.edit("ring.toml", "evaluations = 1", "evaluations = 20000");
    sandbox.stdout(&["run", "ring.toml", "-j1"]);
    swap_results(&sandbox, "map/annealing");
    insta::assert_snapshot!(sandbox.seen(&["verify", "ring.toml", "--stage", "placement", "-j1"]), @r"
      different      placement                mapping DIGEST  table convergence: row 1: evaluations 2, was 1; cost 71000.0, was 62000.0
                     table ranks: row 0: slot 2, was 7; host host1, was host3; core 0, was 1
                     evaluations 80016, was 38
    ring: 1 different in N.NN s
    ------- stderr -------
    -j1, 1 last time
      placement: 8 solvers on every island, 50000 iterations, an exchange after every 1000
      placement: warning: the search ended before its first exchange (`exchange_interval`)
      ran        placement  N.NN s
    [exit code 3]
    ");
}

/// Gives the last result of a kind the outputs of the first.
fn swap_results(sandbox: &Sandbox, kind: &str) {
    let text = sandbox.read(".hopmap/state.log");
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_kind = |line: &Value| line["result"]["manifest"]["kind"] == kind;
    let first = lines.iter().position(of_kind).unwrap();
    let last = lines.iter().rposition(of_kind).unwrap();
    assert_ne!(first, last);
    lines[last]["result"]["outputs"] = lines[first]["result"]["outputs"].clone();
    sandbox.write(
        ".hopmap/state.log",
        lines.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat(),
    );
}

#[test]
fn a_damaged_table_in_the_store_is_found() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "-j1"]);
    let machine: Value = serde_json::from_str(&sandbox.stdout(&["show", "machine", "--json"])).unwrap();
    let table = std::path::Path::new(machine["path"].as_str().unwrap()).join("slots.parquet");
    let mut bytes = std::fs::read(&table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["verify", "ring.toml", "-j1"]), @r"
      same           4 artifacts of 4 stages
      different      machine                  system-graph DIGEST  slots.parquet in the store is damaged
    ring: 4 the same, 1 different in N.NN s
    ------- stderr -------
    -j1, 1 last time
      ran        program  N.NN s
      ran        machine  N.NN s
      placement: 8 solvers on every island, 50000 iterations, an exchange after every 1000
      placement: warning: the search ended before its first exchange (`exchange_interval`)
      ran        placement  N.NN s
      ran        quality  N.NN s
      ran        rankfile  N.NN s
    [exit code 3]
    ");
}

#[test]
fn results_of_time_limits_are_not_compared() {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "evaluations = 20000", "time_limit_s = 0.05");
    sandbox.stdout(&["run", "ring.toml", "-j1"]);
    insta::assert_snapshot!(sandbox.seen(&["verify", "ring.toml", "-j1"]), @r"
      same           4 artifacts of 4 stages
      not comparable placement                mapping DIGEST  it depends on a time limit; not compared
    ring: 4 the same, 1 not comparable in N.NN s
    ------- stderr -------
    -j1, 1 last time
      ran        program  N.NN s
      ran        machine  N.NN s
      ran        quality  N.NN s
      ran        rankfile  N.NN s
    ");
}

#[test]
fn what_has_no_result_cannot_be_compared() {
    let sandbox = Sandbox::with_ring();
    insta::assert_snapshot!(sandbox.seen(&["verify", "ring.toml", "-j1"]), @r"
    ------- stderr -------
    error[engine::missing]: there is no store at DIR/.hopmap
      help: `hopmap run` creates one; --store names another
    [exit code 2]
    ");
    sandbox.stdout(&["run", "ring.toml", "-j1"]);
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 20001");
    insta::assert_snapshot!(sandbox.seen(&["verify", "ring.toml", "-j1"]), @r"
      same           2 artifacts of 2 stages
      not comparable placement                  it has no result that is up to date: evaluations: 20000 → 20001
      not comparable quality                    it has no result, and neither has placement
      not comparable rankfile                   it has no result, and neither has placement
    ring: 2 the same, 3 not comparable in N.NN s
    ------- stderr -------
    -j1, 1 last time
      ran        program  N.NN s
      ran        machine  N.NN s
    ");
}

/// A result that the store had lost was not comparable, with exit 0.
#[test]
fn a_result_that_is_lost_is_different() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "-j1"]);
    std::fs::remove_file(sandbox.artifact("placement").join("ranks.parquet")).unwrap();
    let seen = sandbox.seen(&["verify", "ring.toml", "-j1"]);
    assert!(seen.contains("different      placement") && seen.contains("[exit code 3]"), "{seen}");
}

#[test]
fn a_lock_file_is_enough_to_verify() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "--lock", "-j1"]);
    std::fs::remove_dir_all(sandbox.path().join(".hopmap")).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["verify", "ring.toml", "--lock", "-j1"]), @r"
      same           5 artifacts of 5 stages
    ring: 5 the same in N.NN s
    ------- stderr -------
    -j1
      ran        program  N.NN s
      ran        machine  N.NN s
      placement: 8 solvers on every island, 50000 iterations, an exchange after every 1000
      placement: warning: the search ended before its first exchange (`exchange_interval`)
      ran        placement  N.NN s
      ran        quality  N.NN s
      ran        rankfile  N.NN s
    ");
    assert!(!sandbox.path().join(".hopmap").exists(), "nothing stays behind");
    let text = sandbox.read("ring.lock");
    let digest = text.split("system-graph = \"").nth(1).unwrap().split('"').next().unwrap();
    sandbox.write("ring.lock", text.replace(digest, &"0".repeat(64)));
    let output = sandbox.output(&["verify", "ring.toml", "--lock", "-j1"]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn another_number_of_threads_is_used() {
    let sandbox = Sandbox::with_ring();
    let cores = std::thread::available_parallelism().unwrap().get();
    sandbox.stdout(&["run", "ring.toml", "-j", &cores.to_string()]);
    let output = sandbox.output(&["verify", "ring.toml", "--stage", "machine"]);
    let said = String::from_utf8(output.stderr).unwrap();
    let other = (cores / 2).max(1);
    assert!(said.contains(&format!("-j{other}, {cores} last time")), "{said}");
}

#[test]
fn a_second_store_is_kept_on_request() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "-j1"]);
    let output = sandbox.output(&["verify", "ring.toml", "--keep", "-j1"]);
    let said = String::from_utf8(output.stderr).unwrap();
    let place = said.lines().find_map(|line| line.strip_prefix("the second store is in ")).unwrap();
    assert!(sandbox.stdout(&["show", "machine", "--store", place]).contains("system-graph"));
}

#[test]
fn what_is_different_is_said_even_when_quiet() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "-j1"]);
    assert_eq!(sandbox.seen(&["verify", "ring.toml", "-j1", "--quiet"]), "");
    sandbox.damage(sandbox.artifact("machine").join("slots.parquet"));
    insta::assert_snapshot!(sandbox.seen(&["verify", "ring.toml", "-j1", "--quiet"]), @"
    ------- stderr -------
      different      machine                  system-graph DIGEST  slots.parquet in the store is damaged
    ring: 4 the same, 1 different in N.NN s
    [exit code 3]
    ");
}

#[test]
fn a_cell_is_made_again_whatever_the_order_of_its_keys() {
    let sandbox = Sandbox::with_ring();
    sandbox.write("sweep.toml", SWEEP);
    sandbox.stdout(&["run", "sweep.toml", "-j1"]);
    let verified = |name: &str| sandbox.seen(&["verify", "sweep.toml", "--stage", name, "-j1"]);
    insta::assert_snapshot!(verified("placement[seed=2, mapper=random]"), @"
      same           placement[mapper=random,seed=2] mapping DIGEST
    sweep: 1 the same in N.NN s
    ------- stderr -------
    -j1, 1 last time
      ran        placement[mapper=random,seed=2]  N.NN s
    ");
    insta::assert_snapshot!(verified("placement[seed=2]"), @r"
    ------- stderr -------
    error[command::mistake]: `placement[seed=2]` matches 2 cells
      help: name one: placement[mapper=linear,seed=2], placement[mapper=random,seed=2]
    [exit code 2]
    ");
}

#[test]
fn a_lock_file_is_named_behind_an_equals_sign() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "--lock", "-j1"]);
    std::fs::rename(sandbox.path().join("ring.lock"), sandbox.path().join("other.lock")).unwrap();
    sandbox.stdout(&["verify", "--lock=other.lock", "ring.toml", "-j1"]);
    insta::assert_snapshot!(sandbox.seen(&["verify", "--lock", "ring.toml", "-j1"]), @r"
    ------- stderr -------
    error[lock::missing]: there is no lock file DIR/ring.lock
      help: `hopmap lock` writes one from what is in the store, `hopmap run --lock` after a run
    [exit code 2]
    ");
}

#[test]
fn what_goes_in_otherwise_than_it_is_locked_is_said_though_results_are_the_same() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "--lock", "-j1"]);
    sandbox.edit("ring.lock", "shape = \"tree:2x4\"", "shape = \"tree:2x5\"");
    insta::assert_snapshot!(sandbox.seen(&["verify", "ring.toml", "--lock", "-j1"]), @r#"
      same           5 artifacts of 5 stages
    ring: 5 the same in N.NN s
    ------- stderr -------
    note: differs from the lock file: machine: shape: "tree:2x5" → "tree:2x4"
    -j1, 1 last time
      ran        program  N.NN s
      ran        machine  N.NN s
      placement: 8 solvers on every island, 50000 iterations, an exchange after every 1000
      placement: warning: the search ended before its first exchange (`exchange_interval`)
      ran        placement  N.NN s
      ran        quality  N.NN s
      ran        rankfile  N.NN s
    "#);
}

#[test]
fn an_artifact_known_only_to_the_lock_is_reported_by_digest() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "--lock", "-j1"]);
    let text = sandbox.read("ring.lock");
    let digest = text.split("system-graph = \"").nth(1).unwrap().split('"').next().unwrap();
    sandbox.write("ring.lock", text.replace(digest, &"0".repeat(64)));
    insta::assert_snapshot!(sandbox.seen(&["verify", "ring.toml", "--lock", "--stage", "machine", "-j1"]), @r"
      different      machine                  system-graph DIGEST  is DIGEST now; of what was expected only the digest is known
    ring: 1 different in N.NN s
    ------- stderr -------
    -j1, 1 last time
      ran        machine  N.NN s
    [exit code 3]
    ");
}
