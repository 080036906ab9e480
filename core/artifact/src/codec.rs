//! How a model type becomes an artifact and back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hopmap_model::Artifact;
use serde_json::Value as Json;

use crate::{ArtifactError, Folder, Table};

/// A model type that has a form as tables.
pub trait Codec: Artifact + Sized {
    /// Version of the tables; raised when their columns change.
    const SCHEMA: u32;

    /// The value as tables, metrics and files.
    fn encode(&self) -> Contents;

    /// Reads the value and checks its invariants.
    fn decode(folder: &Folder) -> Result<Self, ArtifactError>;
}

/// What a file of an artifact consists of.
#[derive(Debug)]
pub(crate) enum Source {
    Bytes(Vec<u8>),
    File(PathBuf),
    /// A file that nobody changes any more.
    Settled(PathBuf),
}

/// What an artifact holds.
#[derive(Debug, Default)]
pub struct Contents {
    pub(crate) tables: Vec<Table>,
    /// Tables that are written already: name, Parquet file, rows.
    pub(crate) written: Vec<(String, PathBuf, u64)>,
    pub(crate) files: BTreeMap<String, Source>,
    pub(crate) metrics: BTreeMap<String, f64>,
    pub(crate) attributes: BTreeMap<String, Json>,
}

impl Contents {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a table.
    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        self.tables.push(table);
        self
    }

    /// Adds a table that a [`TableWriter`](crate::TableWriter) has written, as a copy or another name of its file.
    #[must_use]
    pub fn written_table(mut self, name: &str, path: &Path, rows: u64) -> Self {
        self.written.push((name.into(), path.into(), rows));
        self
    }

    /// Adds a file below `files/`.
    #[must_use]
    pub fn file(mut self, name: &str, contents: Vec<u8>) -> Self {
        self.files.insert(name.into(), Source::Bytes(contents));
        self
    }

    /// Adds a file below `files/` as a copy of one that is there already.
    #[must_use]
    pub fn copy(mut self, name: &str, path: &Path) -> Self {
        self.files.insert(name.into(), Source::File(path.into()));
        self
    }

    /// Adds a file below `files/` that nobody changes any more, under another name or as a copy.
    #[must_use]
    pub fn adopt(mut self, name: &str, path: &Path) -> Self {
        self.files.insert(name.into(), Source::Settled(path.into()));
        self
    }

    /// Adds a metric; one that is not finite is left out, for JSON has no form for it.
    #[must_use]
    pub fn metric(mut self, name: &str, value: f64) -> Self {
        if value.is_finite() {
            self.metrics.insert(name.into(), value);
        }
        self
    }

    /// Adds the metrics of a map.
    #[must_use]
    pub fn metrics(self, metrics: &BTreeMap<String, f64>) -> Self {
        metrics.iter().fold(self, |contents, (name, &value)| contents.metric(name, value))
    }

    /// Adds a fact that is not a number, such as the command that uses a file.
    #[must_use]
    pub fn attribute(mut self, name: &str, value: Json) -> Self {
        self.attributes.insert(name.into(), value);
        self
    }
}
