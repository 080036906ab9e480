//! Arbitrary files of other tools.
#![no_main]

#[path = "../../stages/trace/tests/support/body.rs"]
mod body;

use std::fs;
use std::sync::LazyLock;

use hopmap_trace::Format;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

// The first byte selects the format.
fuzz_target!(|data: &[u8]| {
    let Some((format, bytes)) = data.split_first() else { return };
    let format = Format::ALL[usize::from(*format) % Format::ALL.len()];
    let file = FOLDER.path().join("trace");
    fs::write(&file, bytes).unwrap();
    body::import(&file, format);
    body::csv(&file);
});
