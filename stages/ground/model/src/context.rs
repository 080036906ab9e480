//! What the engine lends a stage while it runs.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Receives what a running stage has to say and tells it when to stop. The engine implements it.
pub trait Observer: Sync {
    /// `done` of `total` units of work are finished; `total` is zero when it is not known.
    fn progress(&self, done: u64, total: u64);
    /// One line for the log of the stage.
    fn log(&self, line: &str);
    /// Whether the user asked to stop.
    fn cancelled(&self) -> bool;
}

/// What the engine lends a stage while it runs.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    threads: usize,
    deadline: Option<Instant>,
    scratch: Option<&'a Path>,
    observer: &'a dyn Observer,
}

impl<'a> Context<'a> {
    /// A context for a stage that may use `threads` cores until `deadline`.
    #[must_use]
    pub fn new(threads: usize, deadline: Option<Instant>, observer: &'a dyn Observer) -> Self {
        Self { threads, deadline, scratch: None, observer }
    }

    /// The same context with a folder for files that are too large for memory, on the file system of the results.
    #[must_use]
    pub fn with_scratch(self, folder: &'a Path) -> Self {
        Self { scratch: Some(folder), ..self }
    }

    /// The same context for work that may use `threads` cores.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// A context without an observer, for tests and benches.
    #[must_use]
    pub fn detached() -> Context<'static> {
        struct Nobody;
        impl Observer for Nobody {
            fn progress(&self, _: u64, _: u64) {}
            fn log(&self, _: &str) {}
            fn cancelled(&self) -> bool {
                false
            }
        }
        Context { threads: 1, deadline: None, scratch: None, observer: &Nobody }
    }

    /// Cores the stage may use. Never changes a result; a stage runs inside a rayon pool of at least this size.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// When the stage has to deliver what it has.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Where files go that are too large for memory. Whoever puts one there removes it; after a crash the engine does.
    #[must_use]
    pub fn scratch(&self) -> PathBuf {
        self.scratch.map_or_else(std::env::temp_dir, Path::to_owned)
    }

    /// Whether to stop now, because of an interrupt or a deadline.
    #[must_use]
    pub fn should_stop(&self) -> bool {
        self.observer.cancelled() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Reports `done` of `total` units; `total` is zero when it is not known.
    pub fn progress(&self, done: u64, total: u64) {
        self.observer.progress(done, total);
    }

    /// Writes one line to the log of the stage.
    pub fn log(&self, line: impl Display) {
        self.observer.log(&line.to_string());
    }
}
