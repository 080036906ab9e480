//! Fuzzes the readers: reading must return names or an error for any bytes.
//!
//! `HOPMAP_SOAK=1` runs thousands of cases instead of some hundred; `HOPMAP_SEED=N` repeats one.

use hopmap_test_support::{Random, damage, has_little_memory, seeds, with_extreme_numbers};

use crate::support::body;

const SAMPLES: &[&str] = &[
    "node[001-128,200-210],r[1-2]n[01-03]x login1\n",
    "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\nall*  up  infinite  2  down* n[1-2]\nall*  up  infinite  3  idle n[4-6]\n",
    "n1 idle\nn[2-3] mixed*\n",
    "me@n[1-3] slots = 4 max-slots=8\nn4:2,::1\nn5 2 all.q@n5 UNDEFINED\nn6 2 n7 3\n",
];
const TELLING: &[u8] = b"0129[],-\n *~=:@";

#[test]
fn damaged_lists_end_in_names_or_an_error() {
    for sample in SAMPLES {
        body::hosts(sample.as_bytes());
    }
    for seed in seeds(1000, 200_000) {
        let mut random = Random(seed);
        let mut bytes = SAMPLES[random.below(SAMPLES.len())].as_bytes().to_vec();
        damage(&mut bytes, &mut random, TELLING);
        body::hosts(&bytes);
    }
}

#[test]
fn extreme_numbers_end_in_names_or_an_error_in_little_memory() {
    if has_little_memory() {
        let samples = SAMPLES.iter().flat_map(|sample| with_extreme_numbers(sample.as_bytes()));
        samples.for_each(|bytes| body::hosts(&bytes));
    }
}
