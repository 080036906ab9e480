//! Integration tests of the crate: one binary with a module per subject.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
#![allow(clippy::float_cmp, reason = "the compared values are exact")]

mod machines;
mod programs;
mod replays;
mod simgrid;
