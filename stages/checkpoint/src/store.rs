//! A store of checkpoints.
