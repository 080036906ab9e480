//! Tests of the crate from outside: one binary with a module per subject.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod foreign;
mod partition;

#[cfg(not(feature = "metis"))]
#[test]
fn partitions_of_metis() {
    hopmap_test_support::skipped("built without the feature metis");
}
