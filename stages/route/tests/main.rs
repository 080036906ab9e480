//! Integration tests of the crate: one binary with a module per subject.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
#![allow(clippy::print_stderr, reason = "results are printed with `--nocapture`")]
#![allow(clippy::float_cmp, reason = "the compared values are exact")]

mod boards;
mod build;
mod compact;
mod compact_given;
mod damage;
mod diagnosis;
mod example;
mod exports;
mod fabric;
mod failures;
mod given;
mod goals;
mod highs;
mod lft;
mod opensm;
mod optima;
mod pictures;
mod regressions;
mod router;
mod rules;
mod search;
mod solvers;
mod support {
    pub(crate) mod body;
    pub(crate) mod ring;
    pub(crate) mod samples;
}

#[cfg(not(feature = "highs"))]
#[test]
fn exact_solutions() {
    hopmap_test_support::skipped("built without the feature highs");
}
