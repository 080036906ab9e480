//! Series of checkpoints: finding those of a folder, and making them.

pub mod dmtcp;
mod find;
pub(crate) mod generate;

pub use find::{Checkpoint, CheckpointFile, SeriesError, all, find, given};
