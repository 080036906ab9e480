//! `hopmap plan`.

use crate::sandbox::Sandbox;

#[test]
fn a_plan_lists_what_would_run_and_writes_nothing() {
    let sandbox = Sandbox::with_ring();
    insta::assert_snapshot!(sandbox.seen(&["plan", "ring.toml"]), @r#"
      would run  program                  no result in this store yet
      would run  machine                  no result in this store yet
      waits      placement                for program
      waits      quality                  for program
      waits      rankfile                 for placement
    ring: 2 of 5 would run, 3 depend on their results
    "#);
    assert!(!sandbox.path().join(".hopmap").exists());
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.edit("ring.csv", "1000", "2000");
    insta::assert_snapshot!(sandbox.seen(&["plan", "ring.toml"]), @r#"
      would run  program                  file matrix.csv: DIGEST → DIGEST
      cached     machine
      waits      placement                for program
      waits      quality                  for program
      waits      rankfile                 for placement
    ring: 1 of 5 would run, 3 depend on their results
    "#);
}
