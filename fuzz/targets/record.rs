//! Recordings with one arbitrary file, of the ranks, of their events or of Open MPI's monitoring.
#![no_main]

#[path = "../../core/recording/tests/support/body.rs"]
mod body;

use std::fs;
use std::sync::LazyLock;

use hopmap_recording::{Description, EventCommunicator, Method, RankFile, encode_events};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

/// Files of a recording of two ranks, the events of rank 2 of 5, and a profile of Open MPI's monitoring.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files() {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
});

fn files() -> [(&'static str, Vec<u8>); 5] {
    let description = serde_json::to_vec(&Description::new(Method::Preload, 2)).unwrap();
    let rank = |rank| RankFile { rank, ranks: 2, ..RankFile::default() }.encode();
    let profile = b"E\t0\t1\t10 bytes\t1 msgs sent\n".to_vec();
    let events = encode_events(2, 5, &[EventCommunicator::new(7, (0..5).collect())], &[]);
    let [first, second] = [("rank-0.bin", rank(0)), ("rank-1.bin", rank(1))];
    [("record.json", description), first, second, ("x.0.prof", profile), ("events-2.bin", events)]
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
    body::events(&FOLDER.path().join("events-2.bin"));
    fs::write(path, original).unwrap();
});
