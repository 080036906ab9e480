//! Randomly damaged answers of other programs: reading returns a permutation or an error for any bytes.
//!
//! `HOPMAP_SOAK=1` runs many thousands of cases; `HOPMAP_SEED=N` repeats one.

use hopmap_test_support::{Random, damage, has_little_memory, seeds, with_extreme_numbers};

use crate::support::body;

const ANSWERS: [(&str, usize); 4] = [
    ("6 1234\n 3 1 2\n 6 5 4\n", 6),
    ("best 17 after 0.5 s\n[2, 0, 1, 3]\n", 4),
    ("1\n0\n", 2),
    ("12 578\n12 7 9 3 4 8 11 1 5 6 10 2\n", 12),
];
const TELLING: &[u8] = b"0123456789 \n,;-+.e[]\xff";

#[test]
fn damaged_answers_give_an_error_or_a_permutation() {
    for seed in seeds(5000, 1_000_000) {
        let mut random = Random(seed);
        let (text, n) = ANSWERS[random.below(ANSWERS.len())];
        let mut bytes = text.as_bytes().to_vec();
        damage(&mut bytes, &mut random, TELLING);
        body::answer(&bytes, n);
    }
}

#[test]
fn intact_answers_are_read() {
    for (text, n) in ANSWERS {
        hopmap_map::Answer::read(text.as_bytes(), n, hopmap_map::Numbering::Auto, "rank").unwrap();
    }
    body::answer(b"", 0);
}

#[test]
fn extreme_numbers_give_an_error_or_a_permutation_in_little_memory() {
    if !has_little_memory() {
        return;
    }
    for (text, n) in ANSWERS {
        with_extreme_numbers(text.as_bytes()).iter().for_each(|bytes| body::answer(bytes, n));
    }
}
