//! Skips in a process of their own, where the environment is what CI has or what it has not.

use std::process::{Command, Output};

/// Runs `skips` of this file with nothing set but what is given.
fn run(variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("a test knows where it is"));
    command.args(["--exact", "skips", "--ignored", "--nocapture"]);
    for variable in ["CI", "HOPMAP_DATA", "HOPMAP_SKIPPED", "HOPMAP_SYSTEM_TESTS", "HOPMAP_SOAK"] {
        command.env_remove(variable);
    }
    command.env("CARGO_PKG_NAME", "here").envs(variables.iter().copied()).output().expect("it runs")
}

#[test]
#[ignore = "what the others start"]
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
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("skipped where CI=true: HOPMAP_DATA is not set"), "{said}");
    let output = run(&[("CI", "true"), ("HOPMAP_DATA", "there")]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("skipped where CI=true: there is no no such program"), "{said}");
}

#[test]
fn skips_are_listed() {
    let folder = tempfile::tempdir().expect("there is room");
    let list = folder.path().join("list");
    for _ in 0..2 {
        assert!(run(&[("HOPMAP_SKIPPED", list.to_str().expect("a name"))]).status.success());
    }
    let expected = "here skips\tHOPMAP_SOAK is not set\nhere skips\tHOPMAP_DATA is not set\n\
                    here skips\tthere is no no such program\n";
    assert_eq!(std::fs::read_to_string(list).expect("it was written"), expected.repeat(2));
}
