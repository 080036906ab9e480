//! Islands spread over processes, and the state of a search in a file, so that it goes on after a kill.

use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use hopmap_durable::replace_file;
use hopmap_model::{Communicator, Error};
use miette::Diagnostic;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Islands over processes: each has a run of them, as equal as possible.
pub(crate) struct Spread<'c> {
    islands: u32,
    communicator: Option<&'c dyn Communicator>,
}

impl<'c> Spread<'c> {
    pub(crate) fn new(islands: u32, communicator: Option<&'c dyn Communicator>) -> Self {
        Self { islands, communicator }
    }

    /// The islands of this process.
    pub(crate) fn own(&self) -> Range<u32> {
        let Some(communicator) = self.communicator else { return 0..self.islands };
        let process = u64::from(communicator.process());
        let begin =
            |process| (process * u64::from(self.islands) / u64::from(communicator.processes())) as u32;
        begin(process)..begin(process + 1)
    }

    /// Whether this process speaks for all.
    pub(crate) fn is_first(&self) -> bool {
        self.communicator.is_none_or(|communicator| communicator.process() == 0)
    }

    /// Whether there are processes beside this one.
    pub(crate) fn is_shared(&self) -> bool {
        self.communicator.is_some()
    }

    /// The values of all processes in their order; of islands, in the order of the islands.
    pub(crate) fn gather<V: Serialize + DeserializeOwned>(&self, own: Vec<V>) -> Result<Vec<V>, Error> {
        let Some(communicator) = self.communicator else { return Ok(own) };
        let mut all = Vec::new();
        for (process, bytes) in (0..).zip(communicator.all_gather(write(&own)?)?) {
            all.extend(read::<V>(process, &bytes)?);
        }
        Ok(all)
    }

    /// What every own island hears from the one before it in the ring.
    pub(crate) fn rotate<V: Clone + Serialize + DeserializeOwned>(
        &self,
        own: Vec<V>,
    ) -> Result<Vec<V>, Error> {
        let before = match self.communicator {
            None => own.last().cloned().into_iter().collect(),
            // Some processes have no island to pass on what they hear.
            Some(communicator) if self.islands < communicator.processes() => {
                let all = self.gather(own.clone())?;
                let first = self.own().start as usize;
                vec![all[(first + all.len() - 1) % all.len()].clone()]
            }
            Some(communicator) => {
                let processes = communicator.processes();
                let heard = communicator.shift(write(&own[own.len() - 1..])?)?;
                read((communicator.process() + processes - 1) % processes, &heard)?
            }
        };
        Ok(before.into_iter().chain(own).take(self.own().len()).collect())
    }
}

fn write<V: Serialize>(values: &[V]) -> Result<Vec<u8>, DistributedError> {
    serde_json::to_vec(values).map_err(unwritable)
}

fn read<V: DeserializeOwned>(process: u32, bytes: &[u8]) -> Result<Vec<V>, DistributedError> {
    serde_json::from_slice(bytes)
        .map_err(|error| DistributedError::Message { process, problem: error.to_string() })
}

/// A search between two epochs, its islands as they were written down or as they are.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct State<I> {
    /// Seconds that it took so far.
    pub(crate) seconds: f64,
    /// All islands.
    pub(crate) islands: Vec<I>,
}

/// An island between two epochs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct IslandState<I> {
    pub(crate) island: I,
    /// Its next epoch.
    pub(crate) epoch: u64,
    /// Whether it has to hear from the others before that.
    pub(crate) waits: bool,
    pub(crate) evaluations: u64,
    pub(crate) is_finished: bool,
    pub(crate) convergence: Vec<(u64, i64)>,
}

impl State<Box<RawValue>> {
    /// Replaces the file, whole or not at all.
    pub(crate) fn save(&self, file: &Path) -> Result<(), Error> {
        let text = serde_json::to_vec(self).map_err(unwritable)?;
        Ok(replace_file(file, &text)?)
    }
}

/// An island as it is written down.
pub(crate) fn written<I: Serialize>(island: &IslandState<I>) -> Result<Box<RawValue>, DistributedError> {
    serde_json::value::to_raw_value(island).map_err(unwritable)
}

pub(crate) fn unwritable(error: impl Display) -> DistributedError {
    DistributedError::Unwritable { problem: error.to_string() }
}

/// The text of a file that holds a state; `None` without one.
pub(crate) fn load(file: &Path) -> Option<String> {
    std::fs::read_to_string(file).ok()
}

/// The state in a text, if it is one of so many islands.
pub(crate) fn parse<I: DeserializeOwned>(text: &str, islands: u32) -> Option<State<IslandState<I>>> {
    let state: State<IslandState<I>> = serde_json::from_str(text).ok()?;
    (state.islands.len() == islands as usize).then_some(state)
}

/// Processes that do not understand each other.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum DistributedError {
    /// A message that is none.
    #[error("process {process} sent something else than was expected: {problem}")]
    #[diagnostic(help("start the same version of hopmap-ranks everywhere"))]
    Message {
        /// Who sent it.
        process: u32,
        /// What is wrong with it.
        problem: String,
    },
    /// What is to be sent cannot be written down.
    #[error("the state of a search cannot be written down: {problem}")]
    Unwritable {
        /// Why.
        problem: String,
    },
}
