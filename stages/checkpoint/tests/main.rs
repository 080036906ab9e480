//! Tests of the crate from outside: one binary with a module per subject.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
#![allow(clippy::print_stderr, reason = "results are printed with `--nocapture`")]

mod chain;
mod codec;
mod crash;
mod cut;
mod damage;
mod damaged_images;
mod delta;
mod dmtcp_gzip;
mod dumps;
mod generate;
mod image_records;
mod prune;
mod series;
mod sparse;
mod stage;
mod store;
mod support {
    pub(crate) mod images;
    pub(crate) mod store;
}
mod tree;
mod verify;
