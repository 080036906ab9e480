//! Distribution of islands over processes, and the state file that lets a search resume.

use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use hopmap_durable::replace_file;
use hopmap_model::{Communicator, Error};
use miette::Diagnostic;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::curve::Curve;

/// Islands distributed over processes in contiguous blocks of nearly equal size.
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

    /// Whether this is the first process, which reads and writes files for all.
    pub(crate) fn is_first(&self) -> bool {
        self.communicator.is_none_or(|communicator| communicator.process() == 0)
    }

    /// Whether there are other processes.
    pub(crate) fn is_shared(&self) -> bool {
        self.communicator.is_some()
    }

    /// Gathers values of all processes in process order; values of islands are thus in island order.
    pub(crate) fn gather<V: Serialize + DeserializeOwned>(&self, own: Vec<V>) -> Result<Vec<V>, Error> {
        let Some(communicator) = self.communicator else { return Ok(own) };
        let mut all = Vec::new();
        for (process, bytes) in (0..).zip(communicator.all_gather(write(&own)?)?) {
            all.extend(read::<V>(process, &bytes)?);
        }
        Ok(all)
    }

    /// The value that each island of this process receives from its predecessor in the ring.
    pub(crate) fn rotate<V: Clone + Serialize + DeserializeOwned>(
        &self,
        own: Vec<V>,
    ) -> Result<Vec<V>, Error> {
        let before = match self.communicator {
            None => own.last().cloned().into_iter().collect(),
            // Processes without islands do not forward messages.
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

/// A search between two epochs; its islands are serialized or live.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct State<I> {
    /// Seconds spent so far.
    pub(crate) seconds: f64,
    pub(crate) islands: Vec<I>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct IslandState<I> {
    pub(crate) island: I,
    /// The next epoch.
    pub(crate) epoch: u64,
    /// Whether it waits for an exchange before that epoch.
    pub(crate) waits: bool,
    pub(crate) evaluations: u64,
    pub(crate) is_finished: bool,
    pub(crate) convergence: Curve,
}

impl State<Box<RawValue>> {
    /// Replaces the file atomically.
    pub(crate) fn save(&self, file: &Path) -> Result<(), Error> {
        let text = serde_json::to_vec(self).map_err(unwritable)?;
        Ok(replace_file(file, &text)?)
    }
}

/// Serializes an island.
pub(crate) fn written<I: Serialize>(island: &IslandState<I>) -> Result<Box<RawValue>, DistributedError> {
    serde_json::value::to_raw_value(island).map_err(unwritable)
}

pub(crate) fn unwritable(error: impl Display) -> DistributedError {
    DistributedError::Unwritable { problem: error.to_string() }
}

/// Reads a state file; `None` if there is none.
pub(crate) fn load(file: &Path) -> Option<String> {
    std::fs::read_to_string(file).ok()
}

/// The epoch after which a search goes on from its state in a file; `None` if there is none.
#[must_use]
pub fn saved_epoch(file: &Path) -> Option<u64> {
    #[derive(Deserialize)]
    struct OnlyEpoch {
        epoch: u64,
    }
    let state: State<OnlyEpoch> = serde_json::from_str(&load(file)?).ok()?;
    state.islands.iter().map(|island| island.epoch).max()
}

/// The islands of a search in a file, or a part of their state; `None` if there is none.
#[must_use]
pub fn saved_islands<I: DeserializeOwned>(file: &Path) -> Option<Vec<I>> {
    #[derive(Deserialize)]
    struct OnlyIsland<I> {
        island: I,
    }
    let state: State<OnlyIsland<I>> = serde_json::from_str(&load(file)?).ok()?;
    Some(state.islands.into_iter().map(|state| state.island).collect())
}

/// Parses a state; `None` unless it has `islands` islands.
pub(crate) fn parse<I: DeserializeOwned>(text: &str, islands: u32) -> Option<State<IslandState<I>>> {
    let state: State<IslandState<I>> = serde_json::from_str(text).ok()?;
    (state.islands.len() == islands as usize).then_some(state)
}

/// Errors in messages between processes of a search.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum DistributedError {
    /// A malformed message.
    #[error("unexpected message from process {process}: {problem}")]
    #[diagnostic(code(islands::message), help("start the same version of hopmap-ranks on all hosts"))]
    Message {
        /// The sender.
        process: u32,
        /// What is malformed.
        problem: String,
    },
    /// The message cannot be serialized.
    #[error("cannot serialize the state of a search: {problem}")]
    #[diagnostic(code(islands::unwritable))]
    Unwritable {
        /// The cause.
        problem: String,
    },
}
