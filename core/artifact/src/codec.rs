//! Encoding of model types as artifacts, and decoding.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hopmap_model::Artifact;
use parquet::errors::ParquetError;
use serde_json::Value as Json;

use crate::error::ArtifactError;
use crate::folder::{DESCRIPTION, Description, Folder, TableDescription};
use crate::folder::{copy_file, hash, link_or_copy, write_file};
use crate::form::TableForm;
use crate::table::Table;

/// A model type that is stored as tables.
pub trait Codec: Artifact + Sized {
    /// Version of the tables; raised when their columns change.
    const SCHEMA: u32;

    /// Its contents, in a sentence.
    const CONTENTS: &'static str;

    /// Its tables.
    const TABLES: &'static [TableForm] = &[];

    /// Its metrics with their meanings.
    const METRICS: &'static [(&'static str, &'static str)] = &[];

    /// What the metrics of an artifact say, in one line of the summary of a run.
    #[must_use]
    fn headline(metrics: &BTreeMap<String, f64>) -> Option<String> {
        let _ = metrics;
        None
    }

    /// Encodes the value as tables, metrics and files.
    fn encode(&self) -> Contents;

    /// Reads the value and checks its invariants.
    fn decode(folder: &Folder) -> Result<Self, ArtifactError>;
}

/// The parts of a headline that there are.
pub(crate) fn joined<const N: usize>(parts: [Option<String>; N]) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Source of a file of an artifact.
#[derive(Debug)]
pub(crate) enum Source {
    Bytes(Vec<u8>),
    File(PathBuf),
    /// A file that no longer changes.
    Settled(PathBuf),
}

/// Contents of an artifact.
#[derive(Debug, Default)]
pub struct Contents {
    pub(crate) tables: Vec<Table>,
    /// Tables that are Parquet already: name, bytes, rows.
    pub(crate) encoded: Vec<(String, Result<Vec<u8>, ParquetError>, u64)>,
    /// Tables that are already on disk: name, Parquet file, rows.
    pub(crate) written: Vec<(String, PathBuf, u64)>,
    pub(crate) files: BTreeMap<String, Source>,
    pub(crate) metrics: BTreeMap<String, f64>,
    pub(crate) attributes: BTreeMap<String, Json>,
}

impl Contents {
    /// Empty contents.
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

    /// Adds a table if it has rows.
    #[must_use]
    pub(crate) fn given(self, table: Table) -> Self {
        if table.rows() == 0 { self } else { self.table(table) }
    }

    /// Adds a table in parts with the same columns, the first of which names it. One part is in memory at a
    /// time, and the table itself as Parquet.
    #[must_use]
    pub(crate) fn table_in_parts(mut self, first: Table, others: impl IntoIterator<Item = Table>) -> Self {
        let name = first.name().to_owned();
        let mut rows = first.rows() as u64;
        let others = others.into_iter().inspect(|part| rows += part.rows() as u64);
        let bytes = Table::encode_parts(first, others);
        self.encoded.push((name, bytes, rows));
        self
    }

    /// Adds a table that a [`TableWriter`](crate::TableWriter) has written, as a hard link or a copy.
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

    /// Adds a file below `files/` as a copy of an existing file.
    #[must_use]
    pub fn copy(mut self, name: &str, path: &Path) -> Self {
        self.files.insert(name.into(), Source::File(path.into()));
        self
    }

    /// Adds a file below `files/` that no longer changes, as a hard link or a copy.
    #[must_use]
    pub fn adopt(mut self, name: &str, path: &Path) -> Self {
        self.files.insert(name.into(), Source::Settled(path.into()));
        self
    }

    /// Adds a metric. Skips values that are not finite, because JSON cannot represent them.
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

    /// Adds a value that is not a number, such as the command that uses a file.
    #[must_use]
    pub fn attribute(mut self, name: &str, value: Json) -> Self {
        self.attributes.insert(name.into(), value);
        self
    }
}

impl Folder {
    /// Writes a value into an empty folder.
    pub fn write<C: Codec>(path: &Path, value: &C) -> Result<Self, ArtifactError> {
        let Contents { tables, encoded, written, files, metrics, attributes } = value.encode();
        let mut description = Description {
            kind: C::KIND.into(),
            schema: C::SCHEMA,
            tables: BTreeMap::new(),
            files: BTreeMap::new(),
            metrics,
            attributes,
        };
        let tables = tables.into_iter().map(|table| {
            let (name, rows) = (table.name().to_owned(), table.rows() as u64);
            (name, table.encode(), rows)
        });
        for (name, bytes, rows) in tables.chain(encoded) {
            let place = path.join(format!("{name}.parquet"));
            let bytes = bytes.map_err(|error| ArtifactError::damaged(&place, &error))?;
            write_file(&place, &bytes)?;
            description.tables.insert(name, TableDescription { rows, blake3: hash(&bytes) });
        }
        for (name, source, rows) in written {
            let blake3 = link_or_copy(&source, &path.join(format!("{name}.parquet")))?;
            description.tables.insert(name, TableDescription { rows, blake3 });
        }
        for (name, source) in files {
            let place = path.join("files").join(&name);
            let blake3 = match source {
                Source::Bytes(bytes) => write_file(&place, &bytes).map(|()| hash(&bytes)),
                Source::File(source) => copy_file(&source, &place),
                Source::Settled(source) => link_or_copy(&source, &place),
            };
            description.files.insert(name, blake3?);
        }
        let mut text = serde_json::to_string_pretty(&description)
            .map_err(|error| ArtifactError::damaged(path, &error))?;
        text.push('\n');
        write_file(&path.join(DESCRIPTION), text.as_bytes())?;
        Ok(Self { path: path.into(), description, digest: hash(text.as_bytes()) })
    }

    /// Opens an artifact, verifies its hashes and decodes the value.
    pub fn read<C: Codec>(path: &Path) -> Result<C, ArtifactError> {
        let folder = Self::open(path)?;
        let Description { kind, schema, .. } = &folder.description;
        if kind != C::KIND {
            let (path, found) = (path.into(), kind.clone());
            return Err(ArtifactError::WrongKind { path, expected: C::KIND, found });
        }
        if *schema != C::SCHEMA {
            let (kind, found) = (kind.clone(), *schema);
            return Err(ArtifactError::WrongSchema { path: path.into(), kind, expected: C::SCHEMA, found });
        }
        folder.verify()?;
        C::decode(&folder)
    }
}
