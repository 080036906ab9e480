//! The folder of an artifact.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hopmap_model::{open_input, read_input};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::codec::Source;
use crate::{ArtifactError, Codec, Columns, Contents, TableReader};

/// Name of the file that describes an artifact; its BLAKE3 is the digest of the artifact.
pub const DESCRIPTION: &str = "artifact.json";

/// Name of the file that says how an artifact was made; not part of the digest.
pub const PROVENANCE: &str = "provenance.json";

/// Bytes of a description.
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

/// What `artifact.json` says of a table.
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
    path: PathBuf,
    description: Description,
    digest: String,
}

impl Folder {
    /// Writes a value into an empty folder.
    pub fn write<C: Codec>(path: &Path, value: &C) -> Result<Self, ArtifactError> {
        let Contents { tables, written, files, metrics, attributes } = value.encode();
        let mut description = Description {
            kind: C::KIND.into(),
            schema: C::SCHEMA,
            tables: BTreeMap::new(),
            files: BTreeMap::new(),
            metrics,
            attributes,
        };
        for table in tables {
            let (name, rows) = (table.name().to_owned(), table.rows() as u64);
            let place = path.join(format!("{name}.parquet"));
            let bytes = table
                .encode()
                .map_err(|error| ArtifactError::Damaged { path: place.clone(), reason: error.to_string() })?;
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
            .map_err(|error| ArtifactError::Damaged { path: path.into(), reason: error.to_string() })?;
        text.push('\n');
        write_file(&path.join(DESCRIPTION), text.as_bytes())?;
        Ok(Self { path: path.into(), description, digest: hash(text.as_bytes()) })
    }

    /// Opens an artifact. Tables and files are only looked at when they are read.
    pub fn open(path: &Path) -> Result<Self, ArtifactError> {
        let place = path.join(DESCRIPTION);
        let not = |reason: String| ArtifactError::NotAnArtifact { path: path.into(), reason };
        let text = read_input(&place, MOST_BYTES)
            .map_err(|error| not(format!("cannot read {DESCRIPTION}: {error}")))?;
        let description = serde_json::from_slice(&text)
            .map_err(|error| not(format!("{DESCRIPTION} is malformed: {error}")))?;
        Ok(Self { path: path.into(), description, digest: hash(&text) })
    }

    /// Opens an artifact, checks its bytes and reads the value.
    pub fn read<C: Codec>(path: &Path) -> Result<C, ArtifactError> {
        let folder = Self::open(path)?;
        let Description { kind, schema, .. } = &folder.description;
        if kind != C::KIND {
            return Err(ArtifactError::WrongKind {
                path: path.into(),
                expected: C::KIND,
                found: kind.clone(),
            });
        }
        if *schema != C::SCHEMA {
            let (kind, found) = (kind.clone(), *schema);
            return Err(ArtifactError::WrongSchema { path: path.into(), kind, expected: C::SCHEMA, found });
        }
        folder.verify()?;
        C::decode(&folder)
    }

    /// The text of one of its files.
    pub(crate) fn read_text(&self, name: &str) -> Result<String, ArtifactError> {
        let path = self.file_path(name);
        let text = open_input(&path).and_then(std::io::read_to_string);
        text.map_err(|source| ArtifactError::Io { action: "read", path, source })
    }

    /// Checks every table and file against its BLAKE3.
    pub fn verify(&self) -> Result<(), ArtifactError> {
        self.hashes().try_for_each(|(path, expected)| check_file(path, expected))
    }

    /// Checks a table against its BLAKE3.
    pub fn verify_table(&self, name: &str) -> Result<(), ArtifactError> {
        let table = self.expect_table(name)?;
        check_file(self.table_path(name), &table.blake3)
    }

    /// Its tables and files, each with the BLAKE3 that it should have.
    pub fn hashes(&self) -> impl Iterator<Item = (PathBuf, &str)> {
        let Description { tables, files, .. } = &self.description;
        let tables = tables.iter().map(move |(name, table)| (self.table_path(name), table.blake3.as_str()));
        let files = files.iter().map(move |(name, blake3)| (self.file_path(name), blake3.as_str()));
        tables.chain(files)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What `artifact.json` says.
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

    /// Reads a table that is there only where there is something in it.
    pub fn optional_table(&self, name: &str) -> Result<Option<Columns>, ArtifactError> {
        self.description.tables.contains_key(name).then(|| self.table(name)).transpose()
    }

    /// A table batch by batch, for those that do not fit into memory.
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

    /// An attribute as the type it should have.
    pub fn attribute<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, ArtifactError> {
        let value = self.description.attributes.get(name).cloned().unwrap_or(Json::Null);
        serde_json::from_value(value).map_err(|error| ArtifactError::Damaged {
            path: self.path.join(DESCRIPTION),
            reason: format!("attribute `{name}`: {error}"),
        })
    }

    /// A contradiction between the tables.
    pub fn invalid(&self, source: impl std::error::Error + Send + Sync + 'static) -> ArtifactError {
        ArtifactError::Invalid { path: self.path.clone(), source: Box::new(source) }
    }
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Checks a file against its BLAKE3.
fn check_file(path: PathBuf, expected: &str) -> Result<(), ArtifactError> {
    if hash_file(&path)? == expected {
        return Ok(());
    }
    let reason = format!("its bytes are not those that {DESCRIPTION} names");
    Err(ArtifactError::Damaged { path, reason })
}

/// BLAKE3 of a file, which need not fit into memory.
fn hash_file(path: &Path) -> Result<String, ArtifactError> {
    let mut hasher = blake3::Hasher::new();
    let done = open_input(path).and_then(|file| hasher.update_reader(file).map(drop));
    done.map_err(|source| ArtifactError::Io { action: "read", path: path.into(), source })?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Copies the contents of a file; gives their BLAKE3.
fn copy_file(from: &Path, to: &Path) -> Result<String, ArtifactError> {
    let copy = || {
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        // Not `fs::copy`: that would copy the permissions as well.
        std::io::copy(&mut fs::File::open(from)?, &mut fs::File::create(to)?)
    };
    copy().map_err(|source| ArtifactError::Io { action: "write", path: to.into(), source })?;
    hash_file(to)
}

/// Gives a file that nobody changes any more a second name, or copies it where that is not possible; gives its BLAKE3.
fn link_or_copy(from: &Path, to: &Path) -> Result<String, ArtifactError> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(|source| ArtifactError::Io {
            action: "write",
            path: parent.into(),
            source,
        })?;
    }
    match fs::hard_link(from, to) {
        Ok(()) => hash_file(to),
        Err(_) => copy_file(from, to),
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), ArtifactError> {
    let write = || {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, bytes)
    };
    write().map_err(|source| ArtifactError::Io { action: "write", path: path.into(), source })
}
