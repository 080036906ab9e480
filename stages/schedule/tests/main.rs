//! Tests of the crate from outside: one binary with a module per subject.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
#![allow(clippy::float_cmp, reason = "what is exact stays exact")]

mod agree;
mod checker;
mod damage;
mod given;
mod optima;
mod searches;
mod support {
    pub(crate) mod body;
}
