//! The messages of a program one by one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Artifact, Keeper};

/// The messages of a program, one row each, in a Parquet file. There may be more than fit into memory, so they stay on
/// disk.
///
/// Columns of the table `messages`: `time_s` (after the first event of the trace; missing if the trace has no clock),
/// `source` and `destination` (ranks), `tag`, `bytes`, `communicator` (its name or else its number), `operation` (the
/// call that sent it) and `region` (the function that called it), the last two as far as they are known. Rows stand
/// location by location; those of one location are in the order in which it recorded them.
#[derive(Debug, Clone)]
pub struct Events {
    table: PathBuf,
    rows: u64,
    /// Held, never looked at.
    _keeper: Option<Arc<dyn Keeper>>,
}

impl Events {
    /// The messages in a Parquet file that others keep.
    #[must_use]
    pub fn new(table: PathBuf, rows: u64) -> Self {
        Self { table, rows, _keeper: None }
    }

    /// Lets something live as long as the messages do, such as the folder of the file.
    #[must_use]
    pub fn kept_by(self, keeper: impl Keeper) -> Self {
        Self { _keeper: Some(Arc::new(keeper)), ..self }
    }

    /// The Parquet file.
    #[must_use]
    pub fn table(&self) -> &Path {
        &self.table
    }

    /// Number of messages.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

impl Artifact for Events {
    const KIND: &'static str = "events";
}
