//! Series of checkpoints: finding those of a folder, and making them.

pub mod dmtcp;
pub(crate) mod generate;
