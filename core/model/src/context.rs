//! The runtime environment of a stage: threads, deadline, log, search state, communicator and seeds.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The error type of stages: any diagnostic, so that source position and hint reach the user.
pub type Error = miette::Report;

/// Receives progress and log lines of a running stage and requests its cancellation. The engine implements
/// it.
pub trait Observer: Sync {
    /// `done` of `total` units of work are finished; `total` is zero if unknown.
    fn progress(&self, done: u64, total: u64);
    /// One line for the log of the stage.
    fn log(&self, line: &str);
    /// Whether the user requested cancellation.
    fn cancelled(&self) -> bool;
}

/// The runtime environment that the engine provides to a stage.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    threads: usize,
    deadline: Option<Instant>,
    scratch: Option<&'a Path>,
    state: Option<&'a Path>,
    communicator: Option<&'a dyn Communicator>,
    launcher: Option<&'a dyn Launcher>,
    observer: &'a dyn Observer,
}

impl<'a> Context<'a> {
    /// A context for a stage that may use `threads` cores until `deadline`.
    #[must_use]
    pub fn new(threads: usize, deadline: Option<Instant>, observer: &'a dyn Observer) -> Self {
        Self { threads, deadline, scratch: None, state: None, communicator: None, launcher: None, observer }
    }

    /// Sets the folder for files that are too large for memory, on the file system of the results.
    #[must_use]
    pub fn with_scratch(self, folder: &'a Path) -> Self {
        Self { scratch: Some(folder), ..self }
    }

    /// Sets the file in which the stage may save the state of a search.
    #[must_use]
    pub fn with_state(self, file: &'a Path) -> Self {
        Self { state: Some(file), ..self }
    }

    /// Removes the state file, for secondary work.
    #[must_use]
    pub fn without_state(self) -> Self {
        Self { state: None, ..self }
    }

    /// Sets the communicator, for one of several processes that run the stage together.
    #[must_use]
    pub fn with_communicator(self, communicator: &'a dyn Communicator) -> Self {
        Self { communicator: Some(communicator), ..self }
    }

    /// Sets the launcher, for a stage that [directs ranks](crate::Stage::directs_ranks).
    #[must_use]
    pub fn with_launcher(self, launcher: &'a dyn Launcher) -> Self {
        Self { launcher: Some(launcher), ..self }
    }

    /// Sets the number of cores.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// A context without an observer, for tests and benchmarks.
    #[must_use]
    pub fn detached() -> Context<'static> {
        struct NoObserver;
        impl Observer for NoObserver {
            fn progress(&self, _: u64, _: u64) {}
            fn log(&self, _: &str) {}
            fn cancelled(&self) -> bool {
                false
            }
        }
        Context::new(1, None, &NoObserver)
    }

    /// Number of cores the stage may use. It never changes a result. A stage runs inside a rayon pool of at
    /// least this size.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// When the stage must return its best result so far.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Folder for files that are too large for memory. The stage removes its files; after a crash the engine
    /// does.
    #[must_use]
    pub fn scratch(&self) -> PathBuf {
        self.scratch.map_or_else(std::env::temp_dir, Path::to_owned)
    }

    /// The file in which the stage may save the state of a search, so that a killed run can resume. The file
    /// is specific to the stage, its parameters and its inputs; the engine removes it when the stage is done.
    #[must_use]
    pub fn state(&self) -> Option<&'a Path> {
        self.state
    }

    /// The processes that run the stage together, if there are several.
    #[must_use]
    pub fn communicator(&self) -> Option<&'a dyn Communicator> {
        self.communicator
    }

    /// The launcher, if the stage has one and [directs ranks](crate::Stage::directs_ranks).
    #[must_use]
    pub fn launcher(&self) -> Option<&'a dyn Launcher> {
        self.launcher
    }

    /// Whether to stop now because of an interrupt or a deadline.
    #[must_use]
    pub fn should_stop(&self) -> bool {
        self.observer.cancelled() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Reports `done` of `total` units; `total` is zero if unknown.
    pub fn progress(&self, done: u64, total: u64) {
        self.observer.progress(done, total);
    }

    /// Writes one line to the log of the stage.
    pub fn log(&self, line: impl Display) {
        self.observer.log(&line.to_string());
    }
}

/// The processes of a distributed stage, numbered from zero. All processes call the same functions in the
/// same order.
///
/// The result of a search must not depend on it: a fixed number of islands gives the same result on any
/// number of processes. The binary `hopmap-ranks` implements it with MPI; a stage without a launcher has no
/// communicator.
pub trait Communicator: Sync {
    /// Rank of this process.
    fn process(&self) -> u32;

    /// Number of processes.
    fn processes(&self) -> u32;

    /// Sends bytes to the next process of the ring; returns those of the previous one.
    fn shift(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Error>;

    /// Gathers the bytes of all processes, in process order, on every process.
    fn all_gather(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Error>;
}

/// A launcher, for a stage that measures or searches by a program of its own on several processes and directs it from
/// here. It is never part of a key.
pub trait Launcher: Sync {
    /// Its words, such as `mpirun -n 4`.
    fn words(&self) -> &[String];

    /// A folder of this run that all processes reach. `stop` in it asks them for what they have; the first of them
    /// creates `begun` once it has started.
    fn folder(&self) -> &Path;

    /// Starts `LAUNCHER PROGRAM FOLDER` and returns when the launcher has ended without a failure; until then it calls
    /// `look` about fifty times a second. An error of `look` ends all processes.
    fn run(&self, program: &Path, look: &mut dyn FnMut() -> Result<(), Error>) -> Result<(), Error>;
}

/// The seed of a random stream: BLAKE3 over the stage kind, its `seed` parameter and the island.
///
/// Streams of different stages, seeds or islands are independent. They do not depend on the number of
/// threads.
#[must_use]
pub fn seed_stream(kind: &str, seed: u64, island: u64) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(kind.len() as u64).to_le_bytes());
    hasher.update(kind.as_bytes());
    hasher.update(&seed.to_le_bytes());
    hasher.update(&island.to_le_bytes());
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_part_changes_the_stream() {
        let streams: BTreeSet<_> = [("a", 1, 0), ("b", 1, 0), ("a", 2, 0), ("a", 1, 1)]
            .map(|(kind, seed, island)| seed_stream(kind, seed, island))
            .into();
        assert_eq!(streams.len(), 4);
    }
}
