//! Integration tests of the crate: one binary with a module per subject.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
#![allow(clippy::float_cmp, reason = "the compared values are exact")]

mod agree;
mod checker;
mod damage;
mod given;
mod optima;
mod replay;
mod searches;
mod support {
    pub(crate) mod body;
}
