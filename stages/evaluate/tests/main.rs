//! Tests of the crate from outside: one binary with a module per subject.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod accuracy;
mod collectives;
mod correlation;
mod mapping;
