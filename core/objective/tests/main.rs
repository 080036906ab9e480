//! Tests of the crate from outside: one binary with a module per subject.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod constraints;
mod delta;
mod deltas;
mod dense;
mod directed;
mod objectives;
