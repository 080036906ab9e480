//! Series of checkpoints: finding those of a folder, and making them.
