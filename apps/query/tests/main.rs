//! Tests of the crate from outside: one binary with a module per subject.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod properties;
mod questions;
