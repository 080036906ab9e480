//! The state of a search in a file, so that it goes on after a kill.

use std::fmt::Display;
use std::path::Path;

use hopmap_durable::replace_file;
use hopmap_model::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::DistributedError;

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
pub(crate) struct Settled<I> {
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
pub(crate) fn written<I: Serialize>(island: &Settled<I>) -> Result<Box<RawValue>, DistributedError> {
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
pub(crate) fn parse<I: DeserializeOwned>(text: &str, islands: u32) -> Option<State<Settled<I>>> {
    let state: State<Settled<I>> = serde_json::from_str(text).ok()?;
    (state.islands.len() == islands as usize).then_some(state)
}
