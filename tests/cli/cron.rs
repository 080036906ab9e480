//! Runs that nobody watches: silence, locks, and logs that do not grow for ever.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use crate::sandbox::Sandbox;

/// Standard output and standard error.
fn said(sandbox: &Sandbox, arguments: &[&str]) -> (Option<i32>, String) {
    let output = sandbox.output(arguments);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

/// The lock of a store, as another run has it.
fn busy(sandbox: &Sandbox) -> File {
    std::fs::create_dir_all(sandbox.path().join(".hopmap")).unwrap();
    let lock = File::create(sandbox.path().join(".hopmap/lock")).unwrap();
    std::fs::write(sandbox.path().join(".hopmap/lock"), "process 7 on login1: hopmap run ring").unwrap();
    lock.lock().unwrap();
    lock
}

fn runs(sandbox: &Sandbox) -> usize {
    std::fs::read_dir(sandbox.path().join(".hopmap/runs")).unwrap().count()
}

#[test]
fn a_quiet_run_prints_nothing_unless_it_fails() {
    let sandbox = Sandbox::with_ring();
    for _ in 0..2 {
        assert_eq!(said(&sandbox, &["run", "ring.toml", "--quiet"]), (Some(0), String::new()));
    }
    sandbox.write("ring.csv", "source,destination,messages,bytes\n0,1,1\n");
    insta::assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--quiet"]), @r"
    ------- stderr -------
    error[text::file]: stage `program` (ring.toml:8)
      `-> DIR/ring.csv:2: 3 values, but the header has 4
      help: ranks, messages and bytes are non-negative integers; delete the line if it is a sum, or a message of another program
    [exit code 1]
    ");
}

#[test]
fn a_busy_store_is_reported_at_once_or_waited_for() {
    let sandbox = Sandbox::with_ring();
    let lock = busy(&sandbox);
    insta::assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--quiet"]), @r"
    ------- stderr -------
    error[durable::busy]: DIR/.hopmap/lock is locked by process 7 on login1: hopmap run ring
      help: wait until it ends (`hopmap run --wait 10m` waits up to 10 minutes), or use another store with --store
    [exit code 75]
    ");
    assert_eq!(sandbox.output(&["run", "ring.toml", "--wait", "1ms"]).status.code(), Some(75));
    assert_eq!(sandbox.output(&["gc", "--wait", "1ms"]).status.code(), Some(75));
    let mut waiting = sandbox
        .command(&["run", "ring.toml", "--quiet", "--wait", "1h"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(waiting.try_wait().unwrap().is_none());
    drop(lock);
    assert!(waiting.wait().unwrap().success());
    assert_eq!(runs(&sandbox), 1);
}

#[test]
fn an_interrupt_ends_the_waiting() {
    let sandbox = Sandbox::with_ring();
    let _lock = busy(&sandbox);
    let mut waiting = sandbox
        .command(&["run", "ring.toml", "--wait", "1h"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let process = waiting.id().to_string();
    // Until it listens, an interrupt ends it by the signal itself.
    let listens = || {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 0b10 != 0
    };
    while !listens() {
        std::thread::yield_now();
    }
    hopmap_test_support::signal(&process, "INT");
    assert_eq!(waiting.wait().unwrap().code(), Some(130));
}

#[test]
fn old_runs_go_and_results_stay() {
    let sandbox = Sandbox::with_ring();
    for bytes in 1..=4 {
        sandbox.write("ring.csv", format!("source,destination,messages,bytes\n0,1,1,{bytes}\n"));
        sandbox.stdout(&["run", "ring.toml", "--quiet", "--keep-runs", "2"]);
    }
    assert_eq!(runs(&sandbox), 2);
    sandbox.write("ring.csv", "source,destination,messages,bytes\n0,1,1,1\n");
    let again: serde_json::Value =
        serde_json::from_str(&sandbox.stdout(&["run", "ring.toml", "--json"])).unwrap();
    let states: Vec<&str> =
        again["cells"].as_array().unwrap().iter().map(|cell| cell["state"].as_str().unwrap()).collect();
    assert!(!states.contains(&"ran"), "{states:?}");
}

#[test]
fn what_only_reads_needs_no_lock() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml"]);
    let _lock = busy(&sandbox);
    let again = sandbox.stdout(&["run", "ring.toml"]);
    assert!(again.starts_with("ring: nothing to do, 5 of 5 up to date\n"), "{again}");
    assert!(again.contains("  report       .hopmap/reports/ring.html"), "{again}");
    // A report that is missing cannot be written now, so it is not named either.
    std::fs::remove_file(sandbox.path().join(".hopmap/reports/ring.html")).unwrap();
    assert!(!sandbox.stdout(&["run", "ring.toml"]).contains("report"));
    assert!(sandbox.stdout(&["gc", "--dry-run"]).contains("nothing to remove"));
    assert_eq!(sandbox.output(&["gc"]).status.code(), Some(75));
    std::fs::remove_file(sandbox.path().join("out/rankfile")).unwrap();
    assert_eq!(sandbox.output(&["run", "ring.toml"]).status.code(), Some(75));
}

#[test]
fn a_run_with_nothing_to_do_works_on_a_store_that_cannot_be_written() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "--no-report"]);
    let mode = |mode: u32| {
        for name in [".hopmap", ".hopmap/artifacts", ".hopmap/states", ".hopmap/runs"] {
            std::fs::set_permissions(sandbox.path().join(name), Permissions::from_mode(mode)).unwrap();
        }
        for name in [".hopmap/lock", ".hopmap/state.log", ".hopmap/hashes.log"] {
            let mode = Permissions::from_mode(mode & 0o666);
            // Files younger than two seconds leave no log of hashes.
            let _ = std::fs::set_permissions(sandbox.path().join(name), mode);
        }
    };
    mode(0o555);
    let run = |arguments: &[&str]| sandbox.unprivileged(arguments).output().unwrap();
    let outputs = [run(&["run", "ring.toml"]), run(&["gc", "--dry-run"]), run(&["plan", "ring.toml"])];
    std::fs::remove_file(sandbox.path().join("out/rankfile")).unwrap();
    let missing = run(&["run", "ring.toml"]);
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 20001");
    let changed = run(&["run", "ring.toml"]);
    mode(0o755);
    for output in outputs {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(changed.status.code(), Some(1));
    let said = String::from_utf8(missing.stderr).unwrap();
    assert!(
        said.contains("error[command::read_only_store]: out/rankfile cannot be saved again")
            && said.contains("make it writable, or name another one with --store"),
        "{said}"
    );
}

#[test]
fn a_deadline_of_nothing_is_refused() {
    let sandbox = Sandbox::with_ring();
    let refused = sandbox.seen(&["run", "ring.toml", "--deadline", "0"]);
    assert!(
        refused.contains("error[command::arguments]: ") && refused.contains("must be longer than 0 s"),
        "{refused}"
    );
    assert!(refused.ends_with("[exit code 2]\n"), "{refused}");
}
