//! Series of checkpoints.

mod find;

pub use find::{Checkpoint, CheckpointFile, SeriesError, find};
