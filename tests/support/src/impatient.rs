//! Somebody who does not wait for long.

use std::sync::atomic::{AtomicU64, Ordering};

use hopmap_model::Observer;

/// Stops a computation after so many looks.
#[derive(Debug)]
pub struct Impatient {
    looks: AtomicU64,
    patience: u64,
}

impl Impatient {
    /// After so many.
    #[must_use]
    pub fn new(patience: u64) -> Self {
        Self { looks: AtomicU64::new(0), patience }
    }
}

impl Observer for Impatient {
    fn progress(&self, _: u64, _: u64) {}
    fn log(&self, _: &str) {}
    fn cancelled(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed) >= self.patience
    }
}
