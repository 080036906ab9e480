//! What the engine lends a stage while it runs: threads, deadline, log and state, the processes it runs on, and seeds.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What a stage fails with: any diagnostic, so that a message keeps its place and its hint up to the user.
pub type Error = miette::Report;

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
        Context::new(1, None, &Nobody)
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

/// The processes that a distributed stage runs on, numbered from zero. All call the same functions in the same order.
///
/// What a search does with it must not show in its result: a fixed number of islands gives the same answer on any number of
/// processes. MPI implements it in the binary `hopmap-ranks`; a stage without a launcher runs without one.
pub trait Communicator: Sync {
    /// Number of this process.
    fn process(&self) -> u32;

    /// Number of processes.
    fn processes(&self) -> u32;

    /// Sends bytes to the next process of the ring and gives what the one before sent.
    fn shift(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Error>;

    /// What every process gives, in their order, on every process.
    fn all_gather(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Error>;

    /// Sends bytes to one process, which calls [`receive`](Self::receive).
    fn send(&self, process: u32, bytes: Vec<u8>) -> Result<(), Error>;

    /// The next bytes that one process sends.
    fn receive(&self, process: u32) -> Result<Vec<u8>, Error>;

    /// Sends so many messages of so many bytes to a process, each after the answer of one byte to the one before, and gives
    /// how many seconds each took with its answer. The other process calls [`answer`](Self::answer) at the same time.
    fn time(&self, process: u32, bytes: u64, messages: u32) -> Result<Vec<f64>, Error>;

    /// The other side of [`time`](Self::time).
    fn answer(&self, process: u32, bytes: u64, messages: u32) -> Result<(), Error>;
}

/// The seed of one random stream: BLAKE3 over the kind of the stage, its `seed` parameter and the island.
///
/// Streams of different stages, seeds or islands are independent, and none depends on the number of threads.
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
    fn every_part_gives_another_stream() {
        let streams: BTreeSet<_> = [("a", 1, 0), ("b", 1, 0), ("a", 2, 0), ("a", 1, 1)]
            .map(|(kind, seed, island)| seed_stream(kind, seed, island))
            .into();
        assert_eq!(streams.len(), 4);
    }
}
