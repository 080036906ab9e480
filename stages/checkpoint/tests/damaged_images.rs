//! Randomly damaged images, page maps and other files: cutting returns chunks that reproduce the file, or an
//! error.
//!
//! `HOPMAP_SOAK=1` runs many thousands of cases instead of some hundred; `HOPMAP_SEED=N` repeats one.

use hopmap_checkpoint::chunk::PAGE;
use hopmap_test_support::{Random, damage, seeds};

use crate::support::images;

/// Values with a meaning in records and page maps.
const TELLING: &[u8] = b"\0\x01\x02\x04\x05\x08\x10\x7f\x80\xff/H";

/// A page map with its magic numbers.
fn page_map() -> Vec<u8> {
    let head = b"\x19\x43\x56\x54\x25\x40\x08\x56\x02\0\0\0\x08\x01";
    let entries = b"\x08\0\0\0\x08\x80\x80\x01\x10\x03\x20\x04\x08\0\0\0\x08\x80\x80\x04\x10\x09\x18\x01";
    [&head[..], entries].concat()
}

/// Overwrites part of a field of a record, at offsets of records even where there is none.
fn damage_record(bytes: &mut [u8], random: &mut Random) {
    let place = random.below(bytes.len() / PAGE) * PAGE + random.below(96);
    let length = 1 + random.below(8);
    for byte in bytes.iter_mut().skip(place).take(length) {
        *byte = TELLING[random.below(TELLING.len())];
    }
}

fn one(seed: u64) {
    let mut random = Random(seed);
    let sample = images::sample();
    let mut bytes = match random.below(4) {
        0 => page_map(),
        1 => images::noise(seed, 50_000),
        _ => sample.clone(),
    };
    if bytes.len() == sample.len() && random.below(4) > 0 {
        (0..=random.below(3)).for_each(|_| damage_record(&mut bytes, &mut random));
    } else {
        damage(&mut bytes, &mut random, TELLING);
    }
    let method = if bytes.starts_with(&page_map()[..4]) { 2 } else { random.next() as u8 };
    images::anything(&[&[method, random.next() as u8], bytes.as_slice()].concat());
    let intact = images::cut_all(&sample, None).unwrap().earlier();
    match images::cut_all(&bytes, Some(&intact)) {
        Ok(_) => {}
        Err(error) => assert!((1..1000).contains(&error.to_string().len())),
    }
}

#[test]
fn damaged_files_give_an_error_or_their_exact_bytes() {
    seeds(500, 100_000).for_each(one);
}

#[test]
fn truncated_images_are_never_accepted() {
    let sample = images::sample();
    let mut random = Random(1);
    for _ in 0..300 {
        let end = 28 + random.below(sample.len() - 28);
        assert!(images::cut_all(&sample[..end], None).is_err(), "{end}");
    }
}
