//! Fuzzes OTF 1 archives: reading must return a graph or an error for any bytes.
//!
//! `HOPMAP_SOAK=1` runs thousands of cases instead of some hundred.

use std::fs;

use crate::support::{Copy, read_otf, sample};
use hopmap_model::Context;
use hopmap_test_support::{Random, damage, has_little_memory, with_extreme_numbers};

/// Bytes with a meaning in archives.
const TELLING: &[u8] = b"\n\n0f9*SELRDPGMNC\",:#XT \0\xff";

#[test]
fn damaged_archives_end_in_an_error_or_a_graph() {
    let cases = if hopmap_test_support::soak() { 20_000 } else { 300 };
    for kind in ["plain", "compressed"] {
        let copy = Copy::of(&sample("otf-ring-4").join(kind));
        let files = copy.files();
        for seed in 0..cases {
            let mut random = Random(seed);
            let file = &files[random.below(files.len())];
            let original = fs::read(file).unwrap();
            let mut bytes = original.clone();
            damage(&mut bytes, &mut random, TELLING);
            fs::write(file, bytes).unwrap();
            eprintln!("seed {seed}");
            crate::support::body::otf(copy.path());
            fs::write(file, original).unwrap();
        }
        read_otf(copy.path(), &Context::detached()).unwrap();
    }
}

#[test]
fn extreme_numbers_end_in_an_error_or_a_graph_in_little_memory() {
    if !has_little_memory() {
        return;
    }
    let copy = Copy::of(&sample("otf-ring-4").join("plain"));
    for file in copy.files() {
        let original = fs::read(&file).unwrap();
        for bytes in with_extreme_numbers(&original) {
            fs::write(&file, bytes).unwrap();
            crate::support::body::otf(copy.path());
        }
        fs::write(file, original).unwrap();
    }
}
