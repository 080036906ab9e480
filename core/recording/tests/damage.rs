//! Damaged recordings end in an error or a recording, never in a panic.

use std::fs;
use std::path::Path;

use hopmap_recording::RankFile;
use hopmap_test_support::{Random, damage, has_little_memory, seeds, with_extreme_numbers};
use proptest::prelude::*;

use crate::support::{body, file, recorded};

#[test]
fn damaged_recordings_are_read_or_refused() {
    let folder = recorded(4);
    for seed in seeds(2000, 100_000) {
        let mut random = Random(seed);
        let names = ["record.json", "rank-0.bin", "rank-1.bin", "rank-3.bin"];
        let path = folder.path().join(names[random.below(names.len())]);
        let original = fs::read(&path).unwrap();
        let mut bytes = original.clone();
        damage(&mut bytes, &mut random, &[0, 1, 2, 3, 4, 17, 22, 64, 255, b'"', b'0', b',', b'}']);
        fs::write(&path, bytes).unwrap();
        body::recording(folder.path());
        fs::write(path, original).unwrap();
    }
}

#[test]
fn extreme_numbers_are_read_or_refused_in_little_memory() {
    if !has_little_memory() {
        return;
    }
    let folder = recorded(4);
    for name in ["record.json", "rank-1.bin"] {
        let path = folder.path().join(name);
        let original = fs::read(&path).unwrap();
        for bytes in with_extreme_numbers(&original) {
            fs::write(&path, bytes).unwrap();
            body::recording(folder.path());
        }
        fs::write(path, original).unwrap();
    }
    for bytes in with_extreme_numbers(PROFILE.as_bytes()) {
        fs::write(folder.path().join("x.0.prof"), bytes).unwrap();
        body::profiles(folder.path());
    }
}

const PROFILE: &str = "# POINT TO POINT\nE\t0\t1\t10000 bytes\t100 msgs sent\t5,0,0,15\nR\t0\t2\t32 bytes\t1 msgs sent\n# COLLECTIVES\n";

#[test]
fn damaged_profiles_are_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    for seed in seeds(2000, 100_000) {
        let mut random = Random(seed);
        let mut bytes = PROFILE.as_bytes().to_vec();
        damage(&mut bytes, &mut random, b"0129\t\n, bytesmgCDR#");
        fs::write(folder.path().join("x.0.prof"), bytes).unwrap();
        body::profiles(folder.path());
    }
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        from in 0usize..300,
    ) {
        let mut all = file(1, 3).encode();
        let from = from.min(all.len());
        let to = (from + bytes.len()).min(all.len());
        all.splice(from..to, bytes);
        let _ = RankFile::parse(&all, Path::new("rank-1.bin"), 1, 3);
    }
}
