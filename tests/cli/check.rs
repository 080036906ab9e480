//! `hopmap check`.

use hopmap_test_support::skipped;

use crate::sandbox::{Sandbox, project, query_program};

#[test]
fn a_sound_pipeline_is_said_to_be_sound() {
    let sandbox = Sandbox::with_ring();
    insta::assert_snapshot!(sandbox.seen(&["check", "ring.toml"]), @r#"ring.toml is valid: 5 stages"#);
    insta::assert_snapshot!(sandbox.seen(&["check", "ring.toml", "--json"]), @r#"
    {
      "cells": 5,
      "gates": 0,
      "pipeline": "ring",
      "stages": 5
    }
    "#);
}

#[test]
fn every_pipeline_of_the_project_is_sound() {
    let sandbox = Sandbox::new();
    for entry in std::fs::read_dir(project().join("pipelines")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if path.extension().is_none_or(|extension| extension != "toml")
            || (text.contains("[tables.") && query_program().is_none())
        {
            continue;
        }
        if text.contains("\"metis\"") && !cfg!(feature = "metis") {
            skipped(format_args!("{} needs the feature metis", path.display()));
        } else {
            sandbox.stdout(&["check", path.to_str().unwrap()]);
        }
    }
}
