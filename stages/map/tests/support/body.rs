//! Checks that reading any answer returns a permutation or an error.
//!
//! Called by a test with damaged answers and by a fuzz target in `fuzz/`.
#![allow(clippy::unwrap_used, reason = "faults are reported by panicking")]

use hopmap_map::{Answer, Numbering};

/// Reads an answer of `n` numbers with every numbering.
pub(crate) fn answer(text: &[u8], n: usize) {
    let [auto, from_zero, from_one] = [Numbering::Auto, Numbering::FromZero, Numbering::FromOne]
        .map(|numbering| Answer::read(text, n, numbering, "rank"));
    for read in [&auto, &from_zero, &from_one] {
        match read {
            Ok(answer) => {
                let mut sorted = answer.permutation.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..n as u32));
                let inverted = answer.inverted();
                assert!((0..n).all(|at| inverted[answer.permutation[at] as usize] as usize == at));
            }
            Err(error) => assert!((1..1000).contains(&error.to_string().len())),
        }
    }
    // At most one numbering is valid.
    match (from_zero, from_one) {
        (Ok(_), Ok(_)) => assert_eq!(n, 0),
        (Ok(one), Err(_)) | (Err(_), Ok(one)) => assert_eq!(auto.unwrap(), one),
        (Err(_), Err(_)) => assert!(auto.is_err()),
    }
}
