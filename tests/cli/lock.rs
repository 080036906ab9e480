//! `hopmap lock`, `run --lock`, `run --locked`.

use crate::sandbox::{Sandbox, ring};
use hopmap_test_support::{Random, seeds};

/// A sweep of six placements.
pub(crate) const SWEEP: &str = r#"
[params]
ranks = "ring.csv"
seeds = "1..3"

[stages.program]
uses = "trace/import"
with = { path = "${params.ranks}", format = "csv" }

[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x4", costs = [1, 10] }

[stages.placement]
uses   = "map/${matrix.mapper}"
needs  = { task-graph = "program", system = "machine" }
matrix = { mapper = ["linear", "random"], seed = "${params.seeds}" }

[stages.best]
uses  = "launch/rankfile"
needs = { mapping = "placement[min F]" }
save  = { rankfile = "best" }
"#;

fn sweep() -> Sandbox {
    let sandbox = Sandbox::with_ring();
    sandbox.write("sweep.toml", SWEEP);
    sandbox
}

/// A lock file with its digests shortened, without the version.
fn shortened(text: &str) -> String {
    let word = |word: &str| {
        let is_digest = word.len() == 64 && word.chars().all(|letter| letter.is_ascii_hexdigit());
        let word = if is_digest { "DIGEST" } else { word };
        if word == env!("CARGO_PKG_VERSION") { "VERSION".to_owned() } else { word.to_owned() }
    };
    text.split('"').map(word).collect::<Vec<_>>().join("\"")
}

#[test]
fn a_lock_file_lists_inputs_and_outputs() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "sweep.toml", "-j1"]);
    insta::assert_snapshot!(sandbox.seen(&["lock", "sweep.toml"]), @"locked: 9 cells of sweep in sweep.lock");
    insta::assert_snapshot!(shortened(&sandbox.read("sweep.lock")), @r#"
    # What the results of this pipeline were made of, and what they are. Made by `hopmap lock`; `hopmap run --locked` and
    # `hopmap verify --lock` hold results against it. Digests are BLAKE3. Keep it in version control, do not edit it.

    format = 1
    hopmap = "VERSION"
    pipeline = "sweep"
    text = "DIGEST"

    [stages.best]
    uses = "launch/rankfile"
    revision = 1
    needs = { mapping = "min F of placement[*]" }
    outputs = { rankfile = "DIGEST" }

    [stages.best.parameters]
    open_mpi = 4

    [stages.machine]
    uses = "topology/synthetic"
    revision = 2
    outputs = { system-graph = "DIGEST" }

    [stages.machine.parameters]
    bandwidth_bytes_per_s = []
    cores = []
    costs = [1.0, 10.0]
    host_prefix = "host"
    hosts = []
    intra_node_costs = []
    link_latency_s = []
    shape = "tree:2x4"
    slots = 0

    [stages.placement]
    revision = 3
    needs = { system = "machine", task-graph = "program" }

    [stages.placement.parameters]
    borders = {}
    devices_per_rank = {}
    forbidden = []
    ignore_performance = false
    objective = "F"
    pinned = []
    weight = "auto"

    [stages.placement.cells]
    "mapper=linear,seed=1" = { uses = "map/linear", outputs = { mapping = "DIGEST" } }
    "mapper=linear,seed=2" = { uses = "map/linear", outputs = { mapping = "DIGEST" } }
    "mapper=linear,seed=3" = { uses = "map/linear", outputs = { mapping = "DIGEST" } }
    "mapper=random,seed=1" = { uses = "map/random", outputs = { mapping = "DIGEST" }, parameters = { seed = 1 } }
    "mapper=random,seed=2" = { uses = "map/random", outputs = { mapping = "DIGEST" }, parameters = { seed = 2 } }
    "mapper=random,seed=3" = { uses = "map/random", outputs = { mapping = "DIGEST" }, parameters = { seed = 3 } }

    [stages.program]
    uses = "trace/import"
    revision = 7
    files = [
      { name = "matrix.csv", bytes = 130, blake3 = "DIGEST" },
    ]
    outputs = { task-graph = "DIGEST" }

    [stages.program.parameters]
    algorithms = { rules = "mpich" }
    allow_truncated = false
    collectives = "expand"
    format = "csv"
    path = "(path)"
    "#);
    insta::assert_snapshot!(sandbox.seen(&["lock", "sweep.toml"]), @"locked already: 9 cells of sweep in sweep.lock");
}

#[test]
fn a_lock_file_names_no_folder_and_is_the_same_everywhere() {
    let texts = [1, 2].map(|jobs| {
        let sandbox = sweep();
        sandbox.stdout(&["run", "sweep.toml", "--lock", &format!("-j{jobs}")]);
        assert!(!sandbox.read("sweep.lock").contains(sandbox.path().to_str().unwrap()));
        sandbox.read("sweep.lock")
    });
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn an_unfinished_pipeline_is_not_locked() {
    let sandbox = sweep();
    insta::assert_snapshot!(sandbox.seen(&["lock", "sweep.toml"]), @r"
    ------- stderr -------
    error[lock::unfinished]: 9 of 9 cells of `sweep` have no result: program, machine, placement[mapper=linear,seed=1] and 6 more
      help: `hopmap run` computes them; `hopmap plan` lists why each has to run
    [exit code 2]
    ");
    assert!(!sandbox.path().join("sweep.lock").exists());
}

#[test]
fn a_locked_run_runs_what_is_locked() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "sweep.toml", "--lock", "-j1"]);
    std::fs::remove_dir_all(sandbox.path().join(".hopmap")).unwrap();
    let seen = sandbox.seen(&["run", "sweep.toml", "--locked", "-j1", "--no-report"]);
    assert!(seen.contains("all results match the lock file\n"), "{seen}");
    assert!(!seen.contains("exit code"), "{seen}");
}

#[test]
fn all_differences_are_reported_before_anything_runs() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "sweep.toml", "--lock", "-j1"]);
    std::fs::remove_dir_all(sandbox.path().join(".hopmap")).unwrap();
    sandbox.write("ring.csv", ring(7));
    sandbox.edit("sweep.toml", "[1, 10]", "[1, 20]");
    sandbox.edit("sweep.toml", "[min F]", "[max F]");
    insta::assert_snapshot!(sandbox.seen(&["run", "sweep.toml", "--locked", "-p", "seeds=2..4"]), @r"
    ------- stderr -------
    error[command::mistake]: nothing ran: the pipeline differs from sweep.lock
      |   program: file matrix.csv: DIGEST of 130 bytes → DIGEST of 118 bytes
      |   machine: costs: [1.0, 10.0] → [1.0, 20.0]
      |   placement[mapper=linear,seed=4], placement[mapper=random,seed=4]: is not in the lock
      |   best: input mapping: min F of placement[*] → max F of placement[*]
      |   placement[mapper=linear,seed=1], placement[mapper=random,seed=1]: is in the lock, but not in the pipeline
      |   note: the text of the pipeline has changed since it was locked
      |   note: -p seeds: not given → 2..4
      help: undo the change, or run without --locked, check the results, and pin them with `hopmap lock`
    [exit code 2]
    ");
    assert!(!sandbox.path().join(".hopmap").exists(), "nothing may have run");
}

#[test]
fn another_version_of_hopmap_or_text_is_a_note_where_nothing_else_differs() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "sweep.toml", "--lock", "-j1"]);
    sandbox.edit("sweep.lock", "hopmap = \"", "hopmap = \"0.0.");
    sandbox.edit("sweep.toml", "[stages.machine]", "# a comment\n[stages.machine]");
    let seen = sandbox.seen(&["run", "sweep.toml", "--locked", "--no-report"]);
    insta::assert_snapshot!(seen.replace(env!("CARGO_PKG_VERSION"), "VERSION"), @r"
    sweep: nothing to do, 9 of 9 up to date
      best         best
      run with     mpirun -n 8 --rankfile best PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
    all results match the lock file
    ------- stderr -------
    note: the lock was written by hopmap 0.0.VERSION, this is VERSION
    note: the text of the pipeline has changed since it was locked
    ");
}

#[test]
fn another_revision_is_refused() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "sweep.toml", "--lock", "-j1"]);
    let text = sandbox.read("sweep.lock");
    let place = text.find("uses = \"topology/synthetic\"\nrevision = ").unwrap();
    let end = place + text[place..].find("\noutputs").unwrap();
    let line = text[place..end].lines().last().unwrap();
    sandbox.write(
        "sweep.lock",
        format!("{}{}{}", &text[..place], text[place..end].replace(line, "revision = 99"), &text[end..]),
    );
    let seen = sandbox.seen(&["run", "sweep.toml", "--locked"]);
    assert!(seen.contains("machine: revision of topology/synthetic: 99 → "), "{seen}");
    assert!(seen.ends_with("[exit code 2]\n"), "{seen}");
}

#[test]
fn a_different_result_exits_with_three_and_lists_its_inputs() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "sweep.toml", "--lock", "-j1"]);
    let text = sandbox.read("sweep.lock");
    let line = text.lines().find(|line| line.starts_with("\"mapper=random,seed=2\"")).unwrap();
    let digest = line.split('"').find(|word| word.len() == 64).unwrap();
    sandbox.write("sweep.lock", text.replace(digest, &"0".repeat(64)));
    insta::assert_snapshot!(sandbox.seen(&["run", "sweep.toml", "--locked", "--no-report"]), @r"
    sweep: nothing to do, 9 of 9 up to date
      best         best
      run with     mpirun -n 8 --rankfile best PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
    ------- stderr -------
    error[command::mistake]: a result differs from the lock file
      |   placement[mapper=random,seed=2]: mapping is DIGEST and not DIGEST
      |     inputs: program: as locked, machine: as locked
      help: `hopmap verify` recomputes everything and shows where bytes differ; `hopmap lock` pins the new results
    [exit code 3]
    ");
}

#[test]
fn what_a_budget_in_seconds_shaped_is_held_only_strictly() {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "evaluations = 20000", "time_limit_s = 0.05");
    sandbox.stdout(&["run", "ring.toml", "--lock", "-j1"]);
    let text = sandbox.read("ring.lock");
    assert!(text.contains("timed = true"), "{text}");
    let of_stage = text.split("[stages.placement]").nth(1).unwrap();
    let digest = of_stage.split("outputs = ").nth(1).unwrap().split('"').nth(1).unwrap();
    sandbox.write("ring.lock", text.replace(digest, &"0".repeat(64)));
    insta::assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--locked", "--no-report", "-j1"]), @r#"
    ring: nothing to do, 5 of 5 up to date
      result       F 0.550 × linear, 0.550 × round-robin (`--map-by node`)
      quality      F 0.550 × linear, F 0.620 × random, T 0.550 × linear, max_link_load_bytes 0.500 × linear
      rankfile     out/rankfile
      run with     mpirun -n 8 --rankfile out/rankfile PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
    all results match the lock file
    ------- stderr -------
    note: placement: it depends on a time limit: mapping is DIGEST and not DIGEST
    "#);
    let strict = sandbox.output(&["run", "ring.toml", "--locked", "--strict", "--no-report"]);
    assert_eq!(strict.status.code(), Some(3));
}

#[test]
fn lock_files_that_cannot_be_used_are_named_with_the_reason() {
    let sandbox = Sandbox::with_ring();
    let locked = |text: &str| {
        sandbox.write("ring.lock", text);
        sandbox.seen(&["run", "ring.toml", "--locked"])
    };
    insta::assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--locked"]), @r"
    ------- stderr -------
    error[lock::missing]: there is no lock file DIR/ring.lock
      help: `hopmap lock` writes one from what is in the store, `hopmap run --lock` after a run
    [exit code 2]
    ");
    insta::assert_snapshot!(locked("format = 7\n"), @r"
    ------- stderr -------
    error[lock::format]: DIR/ring.lock has format 7, this hopmap reads format 1
      help: use the hopmap that wrote it, or write it again with `hopmap lock`
    [exit code 2]
    ");
    insta::assert_snapshot!(locked("format = 1\nhopmap = \n"), @r"
    ------- stderr -------
    error[lock::malformed]: DIR/ring.lock is not a lock file, or is damaged: string values must be quoted, expected literal string
       ,-[DIR/ring.lock:2:10]
     1 | format = 1
     2 | hopmap = 
       :          ^
       :          `-- here
       `----
      help: take it from version control, or write it again with `hopmap lock`
    [exit code 2]
    ");
    insta::assert_snapshot!(locked("format = 1\nhopmap = \"0\"\npipeline = \"other\"\ntext = \"\"\n"), @r"
    ------- stderr -------
    error[lock::foreign]: DIR/ring.lock is the lock file of the pipeline `other`, not of `ring`
      help: name the right one with `=FILE`, or write it with `hopmap lock`
    [exit code 2]
    ");
    insta::assert_snapshot!(locked("format = 1\nhopmap = \"0\"\npipeline = \"ring\"\ntext = \"\"\n[stages.a]\nuses = 3\n"), @r"
    ------- stderr -------
    error[lock::malformed]: DIR/ring.lock is not a lock file, or is damaged: stage `a`: invalid type: integer `3`, expected a string
      help: take it from version control, or write it again with `hopmap lock`
    [exit code 2]
    ");
    insta::assert_snapshot!(locked("[x]\n"), @r"
    ------- stderr -------
    error[lock::malformed]: DIR/ring.lock is not a lock file, or is damaged: it has no `format`
      help: take it from version control, or write it again with `hopmap lock`
    [exit code 2]
    ");
}

/// Whatever bytes are in the place of a lock file, there is an error or an answer.
#[test]
fn damaged_lock_files_end_in_an_error_or_an_answer() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "sweep.toml", "--lock", "-j1"]);
    let whole = std::fs::read(sandbox.path().join("sweep.lock")).unwrap();
    for seed in seeds(30, 2000) {
        let mut random = Random(seed);
        let mut bytes = whole.clone();
        let place = random.below(bytes.len());
        match random.below(3) {
            0 => bytes[place] ^= 1 << random.below(8),
            1 => bytes.truncate(place),
            _ => drop(bytes.splice(place..place, *b"[\"")),
        }
        sandbox.write("sweep.lock", &bytes);
        let output = sandbox.output(&["run", "sweep.toml", "--locked", "--no-report", "-q"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 2 | 3)), "{said}");
    }
}

#[test]
fn nothing_is_said_of_inputs_where_there_are_none() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "sweep.toml", "--lock", "-j1"]);
    let text = sandbox.read("sweep.lock");
    let digest = text.split("system-graph = \"").nth(1).unwrap().split('"').next().unwrap();
    sandbox.write("sweep.lock", text.replace(digest, &"0".repeat(64)));
    let seen = sandbox.seen(&["run", "sweep.toml", "--locked", "--no-report"]);
    assert!(seen.contains("machine: system-graph is DIGEST and not DIGEST"), "{seen}");
    assert!(!seen.contains("went in"), "{seen}");
}
