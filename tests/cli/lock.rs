//! `hopmap lock`, `run --lock`, `run --locked`.

use crate::sandbox::{Sandbox, ring};

/// A sweep of six placements.
pub(crate) const SWEEP: &str = r#"
[params]
ranks = "ring.csv"
seeds = "1..3"

[stages.program]
uses = "trace/csv"
with = { file = "${params.ranks}" }

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

/// A lock file with its digests shortened.
fn shortened(text: &str) -> String {
    let word = |word: &str| {
        let is_digest = word.len() == 64 && word.chars().all(|letter| letter.is_ascii_hexdigit());
        if is_digest { "DIGEST".to_owned() } else { word.to_owned() }
    };
    text.split('"').map(word).collect::<Vec<_>>().join("\"")
}

#[test]
fn a_lock_file_says_what_went_in_and_what_came_out() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "sweep.toml", "-j1"]);
    insta::assert_snapshot!(sandbox.seen(&["lock", "sweep.toml"]), @"");
    insta::assert_snapshot!(shortened(&sandbox.read("sweep.lock")), @"");
    insta::assert_snapshot!(sandbox.seen(&["lock", "sweep.toml"]), @"");
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
    insta::assert_snapshot!(sandbox.seen(&["lock", "sweep.toml"]), @"");
    assert!(!sandbox.path().join("sweep.lock").exists());
}

#[test]
fn a_locked_run_runs_what_is_locked() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "sweep.toml", "--lock", "-j1"]);
    std::fs::remove_dir_all(sandbox.path().join(".hopmap")).unwrap();
    let seen = sandbox.seen(&["run", "sweep.toml", "--locked", "-j1", "--no-report"]);
    assert!(seen.contains("every result is as it is locked\n"), "{seen}");
    assert!(!seen.contains("exit code"), "{seen}");
}

#[test]
fn everything_that_differs_is_said_before_anything_runs() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "sweep.toml", "--lock", "-j1"]);
    std::fs::remove_dir_all(sandbox.path().join(".hopmap")).unwrap();
    sandbox.write("ring.csv", ring(7));
    sandbox.edit("sweep.toml", "[1, 10]", "[1, 20]");
    sandbox.edit("sweep.toml", "[min F]", "[max F]");
    insta::assert_snapshot!(sandbox.seen(&["run", "sweep.toml", "--locked", "-p", "seeds=2..4"]), @"");
    assert!(!sandbox.path().join(".hopmap").exists(), "nothing may have run");
}

#[test]
fn another_version_of_hopmap_or_text_is_a_note_where_nothing_else_differs() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "sweep.toml", "--lock", "-j1"]);
    sandbox.edit("sweep.lock", "hopmap = \"", "hopmap = \"0.0.");
    sandbox.edit("sweep.toml", "[stages.machine]", "# a comment\n[stages.machine]");
    let seen = sandbox.seen(&["run", "sweep.toml", "--locked", "--no-report"]);
    insta::assert_snapshot!(seen.replace(env!("CARGO_PKG_VERSION"), "VERSION"), @"");
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
fn a_result_that_differs_ends_with_three_and_says_what_went_in() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "sweep.toml", "--lock", "-j1"]);
    let text = sandbox.read("sweep.lock");
    let line = text.lines().find(|line| line.starts_with("\"mapper=random,seed=2\"")).unwrap();
    let digest = line.split('"').find(|word| word.len() == 64).unwrap();
    sandbox.write("sweep.lock", text.replace(digest, &"0".repeat(64)));
    insta::assert_snapshot!(sandbox.seen(&["run", "sweep.toml", "--locked", "--no-report"]), @"");
}

#[test]
fn what_a_budget_in_seconds_shaped_is_held_only_strictly() {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "evaluations = 20000", "seconds = 0.05");
    sandbox.stdout(&["run", "ring.toml", "--lock", "-j1"]);
    let text = sandbox.read("ring.lock");
    assert!(text.contains("timed = true"), "{text}");
    let of_stage = text.split("[stages.placement]").nth(1).unwrap();
    let digest = of_stage.split("outputs = ").nth(1).unwrap().split('"').nth(1).unwrap();
    sandbox.write("ring.lock", text.replace(digest, &"0".repeat(64)));
    insta::assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--locked", "--no-report", "-j1"]), @"");
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
    insta::assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--locked"]), @"");
    insta::assert_snapshot!(locked("format = 7\n"), @"");
    insta::assert_snapshot!(locked("format = 1\nhopmap = \n"), @"");
    insta::assert_snapshot!(locked("format = 1\nhopmap = \"0\"\npipeline = \"other\"\ntext = \"\"\n"), @"");
    insta::assert_snapshot!(locked("format = 1\nhopmap = \"0\"\npipeline = \"ring\"\ntext = \"\"\n[stages.a]\nuses = 3\n"), @"");
    insta::assert_snapshot!(locked("[x]\n"), @"");
}

/// Whatever bytes are in the place of a lock file, there is an error or an answer.
#[test]
fn damaged_lock_files_end_in_an_error_or_an_answer() {
    let sandbox = sweep();
    sandbox.stdout(&["run", "sweep.toml", "--lock", "-j1"]);
    let whole = std::fs::read(sandbox.path().join("sweep.lock")).unwrap();
    let count = if std::env::var_os("HOPMAP_SOAK").is_some() { 2000 } else { 30 };
    let mut random = crate::export::Random(7);
    for _ in 0..count {
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
