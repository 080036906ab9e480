//! Integration tests: one binary with a module per subject.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod damage;
mod round_trip;
mod scontrol;
mod support {
    pub(crate) mod body;
}
