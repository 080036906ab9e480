//! `hopmap graph`.

use crate::sandbox::Sandbox;

#[test]
fn a_pipeline_in_dot() {
    insta::assert_snapshot!(Sandbox::with_ring().seen(&["graph", "ring.toml"]), @r#"
    digraph "ring" {
      rankdir=LR
      node [shape=box, fontname="sans-serif"]
      "program" [label="program\ntrace/import"]
      "machine" [label="machine\ntopology/synthetic"]
      "placement" [label="placement\nmap/annealing"]
      "quality" [label="quality\nevaluate/mapping"]
      "rankfile" [label="rankfile\nlaunch/rankfile"]
      "program" -> "placement" [label="task-graph"]
      "machine" -> "placement" [label="system"]
      "program" -> "quality" [label="task-graph"]
      "machine" -> "quality" [label="system"]
      "placement" -> "quality" [label="mapping"]
      "placement" -> "rankfile" [label="mapping"]
    }
    "#);
}
