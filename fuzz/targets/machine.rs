//! Arbitrary descriptions of machines.
#![no_main]

#[path = "../../stages/topology-import/tests/support/description.rs"]
mod description;

use std::fs;
use std::sync::LazyLock;

use hopmap_topology_import::import::Format;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

// The first byte selects the format.
fuzz_target!(|data: &[u8]| {
    let Some((format, bytes)) = data.split_first() else { return };
    let format = Format::ALL[usize::from(*format) % Format::ALL.len()];
    let file = FOLDER.path().join("machine");
    fs::write(&file, bytes).unwrap();
    description::description(&file, format);
});
