//! `hopmap check`.

use crate::sandbox::{Sandbox, project};

#[test]
fn a_sound_pipeline_is_said_to_be_sound() {
    let sandbox = Sandbox::with_ring();
    insta::assert_snapshot!(sandbox.seen(&["check", "ring.toml"]), @r#"ring.toml is sound: 5 stages"#);
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
        if path.extension().is_some_and(|extension| extension == "toml") {
            sandbox.stdout(&["check", path.to_str().unwrap()]);
        }
    }
}
