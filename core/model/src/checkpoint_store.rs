//! Stores of checkpoints as artifacts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{Artifact, Keeper};

/// A store of the checkpoints of a series: its files, which stay on disk, and what each checkpoint took.
#[derive(Debug, Clone, Default)]
pub struct CheckpointStore {
    /// The checkpoints by their numbers, from 1.
    pub checkpoints: Vec<StoredCheckpoint>,
    files: BTreeMap<String, PathBuf>,
    /// Held for what it does when it goes.
    keeper: Option<Arc<dyn Keeper>>,
}

/// What a checkpoint took.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredCheckpoint {
    /// Its number, from 1.
    pub checkpoint: u32,
    /// Its name in the series.
    pub name: String,
    /// How many files it has.
    pub files: u32,
    /// Bytes of all files.
    pub bytes: u64,
    /// Of these, zeros.
    pub zero_bytes: u64,
    /// Of these, as in the checkpoint before at the same places.
    pub unchanged_bytes: u64,
    /// Of these, known from elsewhere.
    pub known_bytes: u64,
    /// Of these, new.
    pub new_bytes: u64,
    /// Bytes it took on disk, with everything that is needed to find them.
    pub stored_bytes: u64,
}

impl CheckpointStore {
    /// A store of files, by their names within it, that others keep.
    #[must_use]
    pub fn new(checkpoints: Vec<StoredCheckpoint>, files: BTreeMap<String, PathBuf>) -> Self {
        Self { checkpoints, files, keeper: None }
    }

    /// Lets something live as long as the store does.
    #[must_use]
    pub fn kept_by(self, keeper: impl Keeper) -> Self {
        Self { keeper: Some(Arc::new(keeper)), ..self }
    }

    /// Whether the files were made for this store, so that nobody else changes them.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.keeper.is_some()
    }

    /// Where the files are, by their names within the store.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<String, PathBuf> {
        &self.files
    }
}

impl Artifact for CheckpointStore {
    const KIND: &'static str = "checkpoint-store";
}
