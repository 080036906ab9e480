//! Statistics of a store, and of a checkpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::live::Live;
use super::manifest::Delta;
use super::{Pack, ReadLock, Store};
use crate::error::CheckpointError;

/// A checkpoint in a list.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Listed {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// When it was added: seconds since 1970.
    pub created: i64,
    /// Number of files.
    pub files: usize,
    /// Total size of the files.
    pub bytes: u64,
    /// Current size of its pack and manifest.
    pub stored: u64,
    /// Whether it is pinned.
    pub pinned: bool,
    /// Why it cannot be read; `None` if it can.
    pub damaged: Option<String>,
}

/// Statistics of a store.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Statistics {
    /// Number of checkpoints.
    pub checkpoints: usize,
    /// Total size of all their files.
    pub bytes: u64,
    /// Total size of all packs.
    pub packs: u64,
    /// Total size of all manifests.
    pub manifests: u64,
    /// Size of tables and hashes in the packs.
    pub index: u64,
    /// Bytes of files per byte of the store.
    pub ratio: f64,
    /// Number of chunks in the packs.
    pub chunks: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Statistics by codec.
    pub codecs: Vec<CodecShare>,
    /// Number of blocks by length of their chains.
    pub depths: BTreeMap<u8, u64>,
    /// Approximate bytes that a prune without removals would free now; `None` if damage hides it.
    pub prunable: Option<u64>,
    /// Approximate unneeded bytes that such a prune would leave: less than a quarter of their packs.
    pub unneeded: Option<u64>,
    /// Files that cannot be read.
    pub damaged: Vec<String>,
}

/// Statistics of a codec.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CodecShare {
    /// Its name.
    pub codec: String,
    /// Number of blocks.
    pub blocks: u64,
    /// Total size of their chunks.
    pub bytes: u64,
    /// Total size of their payloads.
    pub stored: u64,
}

/// Statistics of a checkpoint.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Explained {
    /// Its number.
    pub number: u32,
    /// The checkpoint that it is encoded against; 0 if there is none.
    pub earlier: u32,
    /// Total size of all files.
    pub bytes: u64,
    /// Zero bytes.
    pub zero: u64,
    /// Bytes equal to the previous version at the same positions.
    pub unchanged: u64,
    /// Bytes known from elsewhere.
    pub known: u64,
    /// New bytes.
    pub new: u64,
    /// Size of its manifest and of its new payloads: S in the model of Seed 002.
    pub stored: u64,
    /// Bytes by the checkpoint that added them.
    pub brought: BTreeMap<u32, u64>,
    /// New bytes encoded against an earlier checkpoint: its number, bytes, encoded bytes.
    pub bases: Vec<(u32, u64, u64)>,
    /// Bytes by length of their chains.
    pub depths: BTreeMap<u8, u64>,
    /// Bytes by codec.
    pub codecs: BTreeMap<String, u64>,
    /// How often ADCA compared the current base with the previous checkpoint, and how often it changed it.
    pub comparisons: (u64, u64),
    /// Its delta, in stores with a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<Delta>,
    /// Its files.
    pub files: Vec<ExplainedFile>,
}

/// Statistics of a file of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ExplainedFile {
    /// Its path in the checkpoint.
    #[serde(serialize_with = "in_text")]
    pub path: PathBuf,
    /// The format that it was read as.
    pub format: String,
    /// Its size.
    pub bytes: u64,
    /// Zero bytes.
    pub zero: u64,
    /// Bytes that this checkpoint added.
    pub own: u64,
    /// Bytes that existed before.
    pub before: u64,
    /// Number of runs of chunks in its manifest.
    pub runs: usize,
}

impl Store {
    /// All checkpoints, including unreadable ones.
    pub fn list(&self) -> Result<Vec<Listed>, CheckpointError> {
        // Damage of the pins must not prevent listing.
        let pins = self.pins().unwrap_or_default();
        let numbers = self.numbers()?.into_iter();
        // A checkpoint that a prune removed meanwhile is skipped, not reported as damaged.
        let listed = numbers.filter(|&number| self.manifest_path(number).exists());
        Ok(listed.map(|number| self.listed(number, &pins)).collect())
    }

    fn listed(&self, number: u32, pins: &BTreeSet<u32>) -> Listed {
        let stored = length_of(self.pack_path(number)) + length_of(self.manifest_path(number));
        let listed = Listed { number, stored, pinned: pins.contains(&number), ..Listed::default() };
        match self.manifest(number) {
            Ok(manifest) => Listed {
                bytes: manifest.bytes(),
                created: manifest.created.seconds,
                files: manifest.recipes.len(),
                name: manifest.name,
                ..listed
            },
            Err(error) => Listed { damaged: Some(error.to_string()), ..listed },
        }
    }

    /// Statistics of the store.
    pub fn statistics(&self, _lock: &ReadLock) -> Result<Statistics, CheckpointError> {
        let numbers = self.numbers()?;
        let bytes = |number: &u32| self.manifest(*number).map_or(0, |manifest| manifest.bytes());
        let bytes = numbers.iter().map(bytes).fold(0, u64::saturating_add);
        let known = [&numbers[..], &self.given()?.lost[..]].concat();
        let (_, hidden) = Live::of(self, &known);
        let prunable = if hidden.is_empty() { Some(self.prunable(&numbers)?) } else { None };
        let mut found = Statistics {
            checkpoints: numbers.len(),
            bytes,
            manifests: numbers.iter().map(|&number| length_of(self.manifest_path(number))).sum(),
            prunable: prunable.map(|(freed, _)| freed),
            unneeded: prunable.map(|(_, stay)| stay),
            damaged: hidden.iter().map(ToString::to_string).collect(),
            ..Statistics::default()
        };
        let mut codecs = BTreeMap::new();
        for number in self.pack_numbers()? {
            found.packs += length_of(self.pack_path(number));
            match self.pack(number) {
                Ok(pack) => found.add(&pack, &mut codecs),
                Err(error) => found.damaged.push(error.to_string()),
            }
        }
        found.damaged.sort_unstable();
        found.damaged.dedup();
        found.codecs = codecs.into_values().collect();
        let stored = found.packs + found.manifests;
        found.ratio = if stored == 0 { 0.0 } else { bytes as f64 / stored as f64 };
        Ok(found)
    }

    /// Statistics of a checkpoint.
    pub fn explain(&self, _lock: &ReadLock, number: u32) -> Result<Explained, CheckpointError> {
        let manifest = self.manifest(number)?;
        let figures = &manifest.figures;
        let mut explained = Explained {
            number,
            earlier: manifest.earlier,
            bytes: manifest.bytes(),
            zero: figures.zero,
            unchanged: figures.unchanged,
            known: figures.known,
            new: figures.new,
            stored: figures.stored.saturating_add(length_of(self.manifest_path(number))),
            bases: figures.bases.clone(),
            comparisons: figures.comparisons,
            delta: manifest.delta,
            ..Explained::default()
        };
        for (&entry, recipe) in &manifest.recipes {
            let path = manifest.entries.get(entry as usize).map(|entry| entry.path.clone());
            let mut file = ExplainedFile {
                path: path.unwrap_or_default(),
                format: name_of(recipe.format),
                bytes: recipe.bytes(),
                runs: recipe.runs.len(),
                ..ExplainedFile::default()
            };
            for run in &recipe.runs {
                let bytes = run.bytes();
                let Some(first) = run.first else {
                    file.zero += bytes;
                    continue;
                };
                *if first.pack == number { &mut file.own } else { &mut file.before } += bytes;
                *explained.brought.entry(first.pack).or_default() += bytes;
                // Data of a damaged pack is unknown; verifying reports it.
                let Ok(pack) = self.pack(first.pack) else { continue };
                let Some(block) = pack.block(first.block) else { continue };
                *explained.depths.entry(block.depth).or_default() += bytes;
                *explained.codecs.entry(name_of(block.codec)).or_default() += bytes;
            }
            explained.files.push(file);
        }
        Ok(explained)
    }
}

impl Statistics {
    fn add(&mut self, pack: &Pack, codecs: &mut BTreeMap<u8, CodecShare>) {
        let payloads = pack.blocks().iter().flatten().map(|entry| u64::from(entry.payload)).sum();
        self.index += pack.length().saturating_sub(payloads);
        self.chunks += pack.chunks() as u64;
        for entry in pack.blocks().iter().flatten() {
            self.blocks += 1;
            *self.depths.entry(entry.depth).or_default() += 1;
            let codec = name_of(entry.codec);
            let share = codecs.entry(entry.codec as u8).or_default();
            *share = CodecShare {
                codec,
                blocks: share.blocks + 1,
                bytes: share.bytes + entry.bytes() as u64,
                stored: share.stored + u64::from(entry.payload),
            };
        }
    }
}

/// The name of a codec or a format, in lower case.
fn name_of(of: impl Debug) -> String {
    format!("{of:?}").to_lowercase()
}

/// Size of a file; 0 if it does not exist.
pub(super) fn length_of(path: impl AsRef<Path>) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// A path in JSON; invalid Unicode is replaced.
pub(super) fn in_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

pub(super) fn all_in_text<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}
