//! Tests of the crate from outside: one binary with a module per subject.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
#![allow(clippy::print_stderr, reason = "results are printed with `--nocapture`")]

mod damage;
mod given;
mod support {
    pub(crate) mod body;
}
