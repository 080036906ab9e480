//! What the engine lends a stage while it runs.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::Communicator;

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
    state: Option<&'a Path>,
    communicator: Option<&'a dyn Communicator>,
    observer: &'a dyn Observer,
}

impl<'a> Context<'a> {
    /// A context for a stage that may use `threads` cores until `deadline`.
    #[must_use]
    pub fn new(threads: usize, deadline: Option<Instant>, observer: &'a dyn Observer) -> Self {
        Self { threads, deadline, scratch: None, state: None, communicator: None, observer }
    }

    /// The same context with a folder for files that are too large for memory, on the file system of the results.
    #[must_use]
    pub fn with_scratch(self, folder: &'a Path) -> Self {
        Self { scratch: Some(folder), ..self }
    }

    /// The same context with a file in which the stage may keep the state of a search.
    #[must_use]
    pub fn with_state(self, file: &'a Path) -> Self {
        Self { state: Some(file), ..self }
    }

    /// The same context without that file, for work on the side.
    #[must_use]
    pub fn without_state(self) -> Self {
        Self { state: None, ..self }
    }

    /// The same context for one of several processes that run the stage together.
    #[must_use]
    pub fn with_communicator(self, communicator: &'a dyn Communicator) -> Self {
        Self { communicator: Some(communicator), ..self }
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
        Context {
            threads: 1,
            deadline: None,
            scratch: None,
            state: None,
            communicator: None,
            observer: &Nobody,
        }
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

    /// The file in which the stage may keep the state of a search, so that a run that was killed goes on where it was. It
    /// belongs to this very stage with these very parameters and inputs; whoever lends it removes it when the stage is done.
    #[must_use]
    pub fn state(&self) -> Option<&'a Path> {
        self.state
    }

    /// The processes that run the stage together, if there are several.
    #[must_use]
    pub fn communicator(&self) -> Option<&'a dyn Communicator> {
        self.communicator
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
