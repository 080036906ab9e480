//! Skips in a separate process, with and without the environment of CI.

use std::process::{Command, Output};

/// Runs `skips` of this file with only the given variables set.
fn run(variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("test executable found"));
    command.args(["--exact", "skips", "--ignored", "--nocapture"]);
    for variable in ["CI", "HOPMAP_DATA", "HOPMAP_SKIPPED", "HOPMAP_SYSTEM_TESTS", "HOPMAP_SOAK"] {
        command.env_remove(variable);
    }
    command
        .env("CARGO_PKG_NAME", "here")
        .envs(variables.iter().copied())
        .output()
        .expect("test executable runs")
}

#[test]
#[ignore = "started by the other tests"]
fn skips() {
    assert!(!hopmap_test_support::only_in_a_soak());
    assert_eq!(hopmap_test_support::program("sh").map(|path| path.is_absolute()), Some(true));
    if let Some(data) = hopmap_test_support::given_data() {
        assert_eq!(data.to_str(), Some("there"));
    }
    assert_eq!(hopmap_test_support::program("no such program"), None);
}

#[test]
fn a_skip_fails_in_ci() {
    assert!(run(&[]).status.success());
    assert!(run(&[("CI", "false")]).status.success());
    let output = run(&[("CI", "true")]);
    assert!(!output.status.success());
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("skipped where CI=true: HOPMAP_DATA is not set"), "{stderr}");
    let output = run(&[("CI", "true"), ("HOPMAP_DATA", "there")]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("skipped where CI=true: no such program not found"), "{stderr}");
}

#[test]
fn skips_are_listed() {
    let folder = tempfile::tempdir().expect("temporary folder created");
    let list = folder.path().join("list");
    for _ in 0..2 {
        assert!(run(&[("HOPMAP_SKIPPED", list.to_str().expect("a name"))]).status.success());
    }
    let expected = "here skips\tHOPMAP_SOAK is not set\nhere skips\tHOPMAP_DATA is not set\n\
                    here skips\tno such program not found\n";
    assert_eq!(std::fs::read_to_string(list).expect("list written"), expected.repeat(2));
}
