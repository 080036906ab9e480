//! `hopmap-query` missing, of another version, killed, and how often it is started.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use super::SWEEP;
use crate::sandbox::{Sandbox, query_program};

const TABLES: &str = r#"
[tables.a]
sql = "SELECT mapper FROM placement"
[tables.b]
sql = "SELECT cell FROM cells"
"#;

/// A folder with a pipeline that asks two questions, and a script that plays the program.
fn played(script: &str) -> Sandbox {
    let sandbox = Sandbox::with_ring();
    sandbox.write("sweep.toml", format!("{SWEEP}{TABLES}"));
    sandbox.write("program", format!("#!/bin/sh\n{script}"));
    let program = sandbox.path().join("program");
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
    sandbox
}

/// The command, which starts the script.
fn command(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = sandbox.command(arguments);
    command.env("HOPMAP_QUERY", sandbox.path().join("program"));
    command
}

/// What a person sees of a command that fails.
fn complaint(sandbox: &Sandbox, output: &Output) -> String {
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    let stderr = stderr.replace(sandbox.path().to_str().unwrap(), "DIR");
    let stderr = stderr.replace(concat!("hopmap ", env!("CARGO_PKG_VERSION")), "hopmap VERSION");
    format!("{stderr}[exit code {}]\n", output.status.code().unwrap())
}

fn refused(script: &str, arguments: &[&str]) -> String {
    let sandbox = played(script);
    let output = command(&sandbox, arguments).output().unwrap();
    complaint(&sandbox, &output)
}

#[test]
fn without_the_program_it_is_said_how_to_get_it() {
    let sandbox = played("");
    let seen = |arguments: &[&str]| {
        let output = sandbox.command(arguments).env("HOPMAP_QUERY", "nowhere/hopmap-query").output().unwrap();
        (String::from_utf8(output.stdout.clone()).unwrap(), complaint(&sandbox, &output))
    };
    insta::assert_snapshot!(seen(&["query", "SELECT 1"]).1, @r"
    error[query::missing]: hopmap-query, which runs SQL queries, is missing: HOPMAP_QUERY names nowhere/hopmap-query
      help: `make install FEATURES=full` builds it from the sources of hopmap, and so does `cargo install --locked --path apps/query`; HOPMAP_QUERY may name it
    [exit code 2]
    ");
    // Stages run without it.
    insta::assert_snapshot!(seen(&["check", "sweep.toml"]).1, @r"
    warning: sweep.toml:17: no tables `a`, `b`: hopmap-query, which runs SQL queries, is missing: HOPMAP_QUERY names nowhere/hopmap-query (`make install FEATURES=full` builds it from the sources of hopmap, and so does `cargo install --locked --path apps/query`; HOPMAP_QUERY may name it; then `hopmap run` makes what is missing)
    [exit code 0]
    ");
    let (ran, said) = seen(&["run", "sweep.toml", "--no-report"]);
    let end = said.find("warning: sweep.toml").unwrap();
    insta::assert_snapshot!(said[end..], @r"
    warning: sweep.toml:17: no tables `a`, `b`: hopmap-query, which runs SQL queries, is missing: HOPMAP_QUERY names nowhere/hopmap-query (`make install FEATURES=full` builds it from the sources of hopmap, and so does `cargo install --locked --path apps/query`; HOPMAP_QUERY may name it; then `hopmap run` makes what is missing)
    [exit code 0]
    ");
    // A file is what somebody waits for.
    sandbox.write("sweep.toml", format!("{SWEEP}{TABLES}save = \"b.csv\"\n"));
    let saved = seen(&["run", "sweep.toml", "--no-report"]).1;
    insta::assert_snapshot!(saved, @r#"
    error[pipeline::invalid]: no tables `a`, `b`: hopmap-query, which runs SQL queries, is missing: HOPMAP_QUERY names nowhere/hopmap-query
        ,-[sweep.toml:17:7]
     16 | [tables.a]
     17 | sql = "SELECT mapper FROM placement"
        :       ^^^^^^^^^^^^^^^|^^^^^^^^^^^^^^
        :                      `-- here
     18 | [tables.b]
        `----
      help: `make install FEATURES=full` builds it from the sources of hopmap, and so does `cargo install --locked --path apps/query`; HOPMAP_QUERY may name it; then `hopmap run` makes what is missing
    [exit code 2]
    "#);
    assert!(ran.starts_with("sweep: 6 ran, 2 cached in"), "{ran}");
    assert!(sandbox.stdout(&["query", "--help"]).contains("SHOW TABLES"));
}

#[test]
fn it_takes_over_with_the_arguments_and_the_input() {
    let sandbox = played("shift; echo \"$@\"; cat; echo bad >&2; exit 7\n");
    let mut child = command(&sandbox, &["-q", "query", "--file", "-", "sweep"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"SELECT 1\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "-q query --file - sweep\nSELECT 1\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "bad\n");
    assert_eq!(output.status.code(), Some(7));
    // hopmap itself reports a mistake in the arguments.
    let wrong = command(&sandbox, &["query", "--frobnicate"]).output().unwrap();
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("--frobnicate"));
}

#[test]
fn one_of_another_version_is_refused() {
    let Some(program) = query_program() else { return };
    let other = format!("shift; exec {} 9.9.9 \"$@\"\n", program.display());
    insta::assert_snapshot!(refused(&other, &["query", "SELECT 1"]), @r#"
    error[query::version]: this hopmap-query is of hopmap VERSION and cannot answer hopmap 9.9.9: install both from the same sources
    [exit code 2]
    "#);
    insta::assert_snapshot!(refused(&other, &["check", "sweep.toml"]), @r#"
    error[pipeline::invalid]: hopmap-query failed: this hopmap-query is of hopmap VERSION and cannot answer hopmap 9.9.9: install both from the same sources
        ,-[sweep.toml:17:8]
     16 | [tables.a]
     17 | sql = "SELECT mapper FROM placement"
        :        ^
        :        `-- here
     18 | [tables.b]
        `----
    error[pipeline::invalid]: hopmap-query failed: this hopmap-query is of hopmap VERSION and cannot answer hopmap 9.9.9: install both from the same sources
        ,-[sweep.toml:19:8]
     18 | [tables.b]
     19 | sql = "SELECT cell FROM cells"
        :        ^
        :        `-- here
        `----
    2 errors
    [exit code 2]
    "#);
}

#[test]
fn a_query_program_that_is_killed_or_prints_garbage_is_an_error() {
    let killed = played("kill -9 $$\n");
    assert_eq!(command(&killed, &["query", "SELECT 1"]).output().unwrap().status.signal(), Some(9));
    insta::assert_snapshot!(refused("kill -9 $$\n", &["check", "sweep.toml"]), @r#"
    error[pipeline::invalid]: hopmap-query failed: signal: 9 (SIGKILL)
        ,-[sweep.toml:17:8]
     16 | [tables.a]
     17 | sql = "SELECT mapper FROM placement"
        :        ^
        :        `-- here
     18 | [tables.b]
        `----
    error[pipeline::invalid]: hopmap-query failed: signal: 9 (SIGKILL)
        ,-[sweep.toml:19:8]
     18 | [tables.b]
     19 | sql = "SELECT cell FROM cells"
        :        ^
        :        `-- here
        `----
    2 errors
    [exit code 2]
    "#);
    for nonsense in ["echo no\n", "echo '[]'\n", "true\n", "echo '[{\"Ok\":null}]'\n"] {
        let said = refused(nonsense, &["check", "sweep.toml"]);
        assert!(said.contains("hopmap-query failed: its output is not valid\n"), "{said}");
        assert!(said.ends_with("2 errors\n[exit code 2]\n"), "{said}");
    }
    let sandbox = played("");
    let program = sandbox.path().join("program");
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o644)).unwrap();
    let output = command(&sandbox, &["query", "SELECT 1"]).output().unwrap();
    insta::assert_snapshot!(complaint(&sandbox, &output), @r"
    error[query::not_started]: DIR/program cannot be started: Permission denied (os error 13)
      help: HOPMAP_QUERY and PATH say which hopmap-query is started
    [exit code 2]
    ");
}

/// Results stay, and the run reports the query that failed.
#[test]
fn one_that_is_killed_after_the_run_fails_no_stage() {
    let sandbox = played(
        "asked=$(cat)\ncase $asked in *Check*) echo '[{\"Ok\":null},{\"Ok\":null}]';; *) kill -9 $$;; esac\n",
    );
    let output = command(&sandbox, &["run", "sweep.toml", "--no-report", "-j", "1"]).output().unwrap();
    assert!(String::from_utf8(output.stdout.clone()).unwrap().starts_with("sweep: 6 ran, 2 cached in"));
    let said = complaint(&sandbox, &output);
    assert!(said.contains("hopmap-query failed: signal: 9 (SIGKILL)\n"), "{said}");
    assert!(said.ends_with("2 errors\n[exit code 2]\n"), "{said}");
}

#[test]
fn it_is_started_once_to_check_a_pipeline_and_once_to_answer() {
    let Some(program) = query_program() else { return };
    let sandbox = played(&format!("echo >> starts; exec {} \"$@\"\n", program.display()));
    let starts = |arguments: &[&str]| {
        let output = command(&sandbox, arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let starts: PathBuf = sandbox.path().join("starts");
        let count = std::fs::read_to_string(&starts).map_or(0, |lines| lines.lines().count());
        let _ = std::fs::remove_file(starts);
        count
    };
    assert_eq!(starts(&["check", "sweep.toml"]), 1);
    assert_eq!(starts(&["run", "sweep.toml", "--no-report"]), 2);
    // It reads the pipeline file, whose tables are checked.
    assert_eq!(starts(&["query", "SELECT 1 AS one"]), 2);
    assert_eq!(starts(&["run", "ring.toml", "--no-report"]), 0);
}
