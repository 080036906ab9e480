//! What hopmap 0.2.0 wrote is read: `kept` has a store, a lock file and an archive of `ring.toml`.
//!
//! Who raises a revision of one of its stages, or a schema version of their results, lets a new version write these files.

use crate::archives::copy;
use crate::sandbox::{Sandbox, project};

fn kept() -> Sandbox {
    let sandbox = Sandbox::new();
    copy(&project().join("tests/cli/kept"), &sandbox.path());
    sandbox
}

#[test]
fn a_store_of_an_older_version_is_up_to_date() {
    let sandbox = kept();
    let with = ["ring.toml", "--store", "store"];
    let planned = sandbox.seen(&[&["plan"], &with[..]].concat());
    assert!(planned.contains("ring: nothing to do"), "{planned}");
    let ran = sandbox.seen(&[&["run", "--locked"], &with[..]].concat());
    assert!(ran.contains("4 of 4 up to date"), "{ran}");
    let shown =
        sandbox.stdout(&["show", "linear", "--store", "store", "--table", "ranks", "--format", "csv"]);
    assert_eq!(shown.lines().count(), 17, "{shown}");
}

#[test]
fn an_older_version_is_recomputed_to_the_same_bytes() {
    let sandbox = kept();
    for what in [&["ring.toml", "--store", "store"][..], &["ring.zip", "--rerun"]] {
        let seen = sandbox.seen(&[&["verify"], what].concat());
        assert!(seen.contains("same           4 artifacts of 4 stages"), "{seen}");
    }
}

#[test]
fn an_archive_of_an_older_version_becomes_a_project() {
    let sandbox = kept();
    sandbox.seen(&["import", "ring.zip", "project"]);
    let planned = sandbox.seen(&["plan", "project/ring.toml"]);
    assert!(planned.contains("ring: nothing to do"), "{planned}");
}
