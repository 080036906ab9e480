//! Which islands lie on which process.

use std::ops::Range;

use hopmap_model::{Communicator, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::DistributedError;
use crate::state::unwritable;

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
