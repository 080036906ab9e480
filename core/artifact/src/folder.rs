//! The folder of an artifact.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hopmap_model::{open_input, read_input};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::error::ArtifactError;
use crate::form::TableForm;
use crate::rows::Rows;
use crate::table::{Columns, TableReader};

/// Name of the file that describes an artifact; its BLAKE3 is the digest of the artifact.
pub const DESCRIPTION: &str = "artifact.json";

/// Name of the file that records how an artifact was computed; not part of the digest.
pub const PROVENANCE: &str = "provenance.json";

/// Maximum size of a description.
const MOST_BYTES: u64 = 1 << 28;

/// The contents of `artifact.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Kind of the artifact.
    pub kind: String,
    /// Schema version of the kind.
    pub schema: u32,
    /// Tables by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<String, TableDescription>,
    /// BLAKE3 of the files below `files/`, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Metrics by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    /// Other facts by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Json>,
}

/// Description of a table in `artifact.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDescription {
    /// Number of rows.
    pub rows: u64,
    /// BLAKE3 of the Parquet file.
    pub blake3: String,
}

/// An artifact on disk.
#[derive(Debug, Clone)]
pub struct Folder {
    pub(crate) path: PathBuf,
    pub(crate) description: Description,
    pub(crate) digest: String,
}

impl Folder {
    /// Opens an artifact. Tables and files are not checked until they are read.
    pub fn open(path: &Path) -> Result<Self, ArtifactError> {
        let place = path.join(DESCRIPTION);
        let not = |reason: String| ArtifactError::NotAnArtifact { path: path.into(), reason };
        let text = read_input(&place, MOST_BYTES)
            .map_err(|error| not(format!("cannot read {DESCRIPTION}: {error}")))?;
        let description = serde_json::from_slice(&text)
            .map_err(|error| not(format!("{DESCRIPTION} is malformed: {error}")))?;
        Ok(Self { path: path.into(), description, digest: hash(&text) })
    }

    /// Contents of one of its files as text.
    pub(crate) fn read_text(&self, name: &str) -> Result<String, ArtifactError> {
        let path = self.file_path(name);
        let text = open_input(&path).and_then(std::io::read_to_string);
        text.map_err(ArtifactError::io("read", &path))
    }

    /// Checks every table and file against its BLAKE3.
    pub fn verify(&self) -> Result<(), ArtifactError> {
        self.hashes().try_for_each(|(path, expected)| check_file(&path, expected))
    }

    /// Checks a table against its BLAKE3.
    pub fn verify_table(&self, name: &str) -> Result<(), ArtifactError> {
        let table = self.expect_table(name)?;
        check_file(&self.table_path(name), &table.blake3)
    }

    /// Its tables and files, each with the expected BLAKE3.
    pub fn hashes(&self) -> impl Iterator<Item = (PathBuf, &str)> {
        let Description { tables, files, .. } = &self.description;
        let tables = tables.iter().map(move |(name, table)| (self.table_path(name), table.blake3.as_str()));
        let files = files.iter().map(move |(name, blake3)| (self.file_path(name), blake3.as_str()));
        tables.chain(files)
    }

    /// Path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Contents of `artifact.json`.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// BLAKE3 of `artifact.json` in hexadecimal.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Path of a table that may or may not exist.
    #[must_use]
    pub fn table_path(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.parquet"))
    }

    /// Path of a file that may or may not exist.
    #[must_use]
    pub fn file_path(&self, name: &str) -> PathBuf {
        self.path.join("files").join(name)
    }

    /// Reads a table.
    pub fn table(&self, name: &str) -> Result<Columns, ArtifactError> {
        self.expect_table(name)?;
        Columns::read(&self.table_path(name))
    }

    /// Reads a table that is written only if it has rows.
    pub fn optional_table(&self, name: &str) -> Result<Option<Columns>, ArtifactError> {
        self.description.tables.contains_key(name).then(|| self.table(name)).transpose()
    }

    /// Reads the rows of a table.
    pub(crate) fn rows<R: Rows>(&self) -> Result<Vec<R>, ArtifactError> {
        Ok(R::read(&self.table(R::TABLE.name)?)?.collect())
    }

    /// Reads the rows of a table that is written only if it has any.
    pub(crate) fn given_rows<R: Rows>(&self) -> Result<Vec<R>, ArtifactError> {
        let is_written = self.description.tables.contains_key(R::TABLE.name);
        if is_written { self.rows() } else { Ok(Vec::new()) }
    }

    /// What a row refers to by its first column.
    pub(crate) fn owner<'a, R: Rows, T>(
        &self,
        owners: &'a mut [T],
        id: u32,
    ) -> Result<&'a mut T, ArtifactError> {
        let TableForm { name, columns, .. } = R::TABLE;
        owners.get_mut(id as usize).ok_or_else(|| ArtifactError::Column {
            path: self.table_path(name),
            column: columns[0][0].name.into(),
            reason: format!("names {id}, which does not exist"),
        })
    }

    /// Reads a table batch by batch, for tables that do not fit into memory.
    pub fn stream(&self, name: &str) -> Result<TableReader, ArtifactError> {
        self.expect_table(name)?;
        TableReader::open(&self.table_path(name))
    }

    fn expect_table(&self, name: &str) -> Result<&TableDescription, ArtifactError> {
        if let Some(table) = self.description.tables.get(name) {
            return Ok(table);
        }
        let tables = self.description.tables.keys().cloned().collect::<Vec<_>>().join(", ");
        Err(ArtifactError::NoTable { path: self.path.clone(), table: name.into(), tables })
    }

    /// Reads an attribute as the expected type.
    pub fn attribute<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, ArtifactError> {
        let value = self.description.attributes.get(name).cloned().unwrap_or(Json::Null);
        let path = self.path.join(DESCRIPTION);
        let wrong = |error| ArtifactError::damaged(&path, &format!("attribute `{name}`: {error}"));
        serde_json::from_value(value).map_err(wrong)
    }

    /// An error for inconsistent tables.
    pub fn invalid(&self, source: impl std::error::Error + Send + Sync + 'static) -> ArtifactError {
        ArtifactError::Invalid { path: self.path.clone(), source: Box::new(source) }
    }
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Checks a file against its BLAKE3.
fn check_file(path: &Path, expected: &str) -> Result<(), ArtifactError> {
    if hash_file(path)? == expected {
        return Ok(());
    }
    Err(ArtifactError::damaged(path, &format!("its hash differs from the one in {DESCRIPTION}")))
}

/// BLAKE3 of a file; reads it in pieces.
fn hash_file(path: &Path) -> Result<String, ArtifactError> {
    let mut hasher = blake3::Hasher::new();
    let done = open_input(path).and_then(|file| hasher.update_reader(file).map(drop));
    done.map_err(ArtifactError::io("read", path))?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Creates the folder of a file and writes the file.
fn fill<T>(path: &Path, fill: impl FnOnce() -> std::io::Result<T>) -> Result<T, ArtifactError> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder.and_then(|()| fill()).map_err(ArtifactError::io("write", path))
}

/// Copies the contents of a file and returns their BLAKE3.
pub(crate) fn copy_file(from: &Path, to: &Path) -> Result<String, ArtifactError> {
    // `fs::copy` would also copy the permissions.
    fill(to, || std::io::copy(&mut fs::File::open(from)?, &mut fs::File::create(to)?))?;
    hash_file(to)
}

/// Hard-links a file that no longer changes, or copies it where links are not possible. Returns its BLAKE3.
pub(crate) fn link_or_copy(from: &Path, to: &Path) -> Result<String, ArtifactError> {
    match fill(to, || fs::hard_link(from, to)) {
        Ok(()) => hash_file(to),
        Err(_) => copy_file(from, to),
    }
}

pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), ArtifactError> {
    fill(path, || fs::write(path, bytes))
}
