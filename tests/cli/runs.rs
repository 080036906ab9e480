//! `hopmap runs`.

use crate::sandbox::Sandbox;

#[test]
fn runs_that_did_something_are_listed() {
    let sandbox = Sandbox::with_ring();
    insta::assert_snapshot!(sandbox.seen(&["runs"]), @r#"
    ------- stderr -------
    error: there is no store at DIR/.hopmap
      help: `hopmap run` makes one; --store names one elsewhere
    [exit code 2]
    "#);
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.edit("ring.toml", "tree:2x4", "tree:2x2");
    assert_eq!(sandbox.output(&["run", "ring.toml"]).status.code(), Some(1));
    insta::assert_snapshot!(sandbox.seen(&["runs"]), @r#"
    TIME  ring                 5 ran, 0 cached, exit 0 after N.NN s
    TIME  ring                 1 ran, 1 cached, 1 failed, exit 1 after N.NN s
    "#);
}
