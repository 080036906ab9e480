//! Fuzzes archives: reading must return a graph or an error for any bytes. Both readers must return the same
//! graph.
//!
//! `HOPMAP_SOAK=1` runs thousands of cases instead of some hundred, also on the traces of `HOPMAP_DATA`;
//! `HOPMAP_SEED=N` repeats one. If libotf2 crashes, the last seed on standard error (`-- --nocapture`)
//! caused it.

use std::fs;
use std::path::PathBuf;

use crate::support::{Copy, data, read_otf2, sample};
use hopmap_model::Context;
use hopmap_test_support::{Random, damage};

/// Bytes with a meaning in archives.
const TELLING: &[u8] = &[0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 14, 15, 18, 254, 255];

/// Damages one or two files, reads the archive and repairs it.
fn fuzz_archive(archive: &Copy, seed: u64) {
    let mut random = Random(seed);
    let files = archive.files();
    // Half of the cases damage the anchor file or the definitions, although these are few files.
    let shared: Vec<_> = files.iter().filter(|file| file.parent() == Some(archive.path())).collect();
    let mut originals = Vec::new();
    for _ in 0..=random.below(2) {
        let file = if random.below(2) == 0 {
            shared[random.below(shared.len())]
        } else {
            &files[random.below(files.len())]
        };
        let original = fs::read(file).unwrap();
        let mut bytes = original.clone();
        damage(&mut bytes, &mut random, TELLING);
        fs::write(file, bytes).unwrap();
        originals.push((file, original));
    }
    eprintln!("seed {seed}");
    crate::support::body::otf2(archive.path());
    for (file, original) in originals.into_iter().rev() {
        fs::write(file, original).unwrap();
    }
}

#[test]
fn damaged_archives_end_in_an_error_or_a_graph() {
    let soak = hopmap_test_support::soak();
    let only = std::env::var("HOPMAP_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let mut archives: Vec<PathBuf> = vec![sample("rows-columns-16")];
    if let Some(data) = data().filter(|_| soak) {
        archives.extend(
            ["synth-4x4", "pipit-ping-pong", "pipit-ping-pong-papi", "eztrace-is.W.16"]
                .map(|name| data.join(name)),
        );
    }
    let cases = if soak { 4000 } else { 250 };
    for (number, archive) in archives.iter().enumerate() {
        let copy = Copy::of(archive);
        for case in 0..cases {
            let seed = number as u64 * 1_000_000 + case;
            if only.is_none_or(|only| only == seed) {
                fuzz_archive(&copy, seed);
            }
        }
        read_otf2(copy.path(), &Context::detached()).unwrap();
    }
}
