//! `hopmap runs`.

use crate::sandbox::Sandbox;

#[test]
fn runs_that_did_something_are_listed() {
    let sandbox = Sandbox::with_ring();
    insta::assert_snapshot!(sandbox.seen(&["runs"]), @r"
    ------- stderr -------
    error[engine::missing]: there is no store at DIR/.hopmap
      help: `hopmap run` creates one; --store names another
    [exit code 2]
    ");
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.edit("ring.toml", "tree:2x4", "tree:2x2");
    assert_eq!(sandbox.output(&["run", "ring.toml"]).status.code(), Some(1));
    // A second run within a second has a longer name, so that less space follows it.
    let seen = sandbox.seen(&["runs"]);
    let lines: Vec<String> =
        seen.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    RUN ring 5 ran, 0 cached, exit 0 after N.NN s
    RUN ring 1 ran, 1 cached, 1 failed, exit 1 after N.NN s
    "#);
}

#[test]
fn runs_have_the_names_that_other_commands_take() {
    let sandbox = Sandbox::with_ring();
    for bytes in ["1000", "2000", "3000"] {
        sandbox.edit("ring.csv", "10,1000", &format!("10,{bytes}"));
        sandbox.stdout(&["run", "ring.toml", "--no-report"]);
        sandbox.edit("ring.csv", &format!("10,{bytes}"), "10,1000");
    }
    let listed = sandbox.stdout(&["runs"]);
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names.len(), 3, "{listed}");
    for pair in names.windows(2) {
        assert_ne!(pair[0], pair[1]);
        let output = sandbox.output(&["diff", pair[0], pair[1], "--exit-code"]);
        assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
