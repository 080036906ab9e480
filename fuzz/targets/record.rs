//! Recordings with one arbitrary file.
#![no_main]

#[path = "../../core/recording/tests/support/body.rs"]
mod body;

use std::fs;
use std::sync::LazyLock;

use hopmap_recording::{Description, Method, RankFile};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

/// Files of a recording of two ranks, and a profile of Open MPI's monitoring.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files() {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
});

fn files() -> [(&'static str, Vec<u8>); 4] {
    let description = serde_json::to_vec(&Description::new(Method::Preload, 2)).unwrap();
    let rank = |rank| RankFile { rank, ranks: 2, ..RankFile::default() }.encode();
    let profile = b"E\t0\t1\t10 bytes\t1 msgs sent\n".to_vec();
    [("record.json", description), ("rank-0.bin", rank(0)), ("rank-1.bin", rank(1)), ("x.0.prof", profile)]
}

// The first byte selects the file that the rest replaces.
fuzz_target!(|data: &[u8]| {
    let Some((file, bytes)) = data.split_first() else { return };
    let files = files();
    let (name, original) = &files[usize::from(*file) % files.len()];
    let path = FOLDER.path().join(name);
    fs::write(&path, bytes).unwrap();
    body::recording(FOLDER.path());
    body::profiles(FOLDER.path());
    fs::write(path, original).unwrap();
});
