//! Arbitrary graphs in METIS format.
#![no_main]

#[path = "../../stages/instance/tests/support/body.rs"]
mod body;

use std::fs;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

fuzz_target!(|data: &[u8]| {
    let file = FOLDER.path().join("graph");
    fs::write(&file, data).unwrap();
    body::graph(&file);
});
