//! An observer that stops a stage early.

use std::sync::atomic::{AtomicU64, Ordering};

use hopmap_model::Observer;

/// Requests a stop after a number of polls.
#[derive(Debug)]
pub struct Impatient {
    polls: AtomicU64,
    patience: u64,
}

impl Impatient {
    /// Stops after `patience` polls.
    #[must_use]
    pub fn new(patience: u64) -> Self {
        Self { polls: AtomicU64::new(0), patience }
    }
}

impl Observer for Impatient {
    fn progress(&self, _: u64, _: u64) {}
    fn log(&self, _: &str) {}
    fn cancelled(&self) -> bool {
        self.polls.fetch_add(1, Ordering::Relaxed) >= self.patience
    }
}
