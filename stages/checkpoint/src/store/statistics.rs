//! What a store holds, and what a checkpoint consists of, in numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::live::Live;
use super::manifest::Delta;
use super::{Pack, ReadLock, Store};
use crate::CheckpointError;

/// A checkpoint in a list.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Listed {
    /// Its number.
    pub number: u32,
    /// What it was called.
    pub name: String,
    /// When it was added: seconds since 1970.
    pub created: i64,
    /// How many files it has.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of its pack and manifest: what adding it took, or what is left of that.
    pub stored: u64,
    /// Whether it is kept by every prune.
    pub pinned: bool,
    /// Why it cannot be read; none if it can.
    pub damaged: Option<String>,
}

/// What a store holds.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Statistics {
    /// How many checkpoints.
    pub checkpoints: usize,
    /// Bytes of all their files.
    pub bytes: u64,
    /// Bytes of all packs.
    pub packs: u64,
    /// Bytes of all manifests.
    pub manifests: u64,
    /// Of the bytes of packs, tables and hashes.
    pub index: u64,
    /// Bytes of files for each byte of the store.
    pub ratio: f64,
    /// How many chunks the packs have.
    pub chunks: u64,
    /// How many blocks.
    pub blocks: u64,
    /// What each codec did.
    pub codecs: Vec<CodecShare>,
    /// Blocks by how many others have to be decoded before them, one after the other.
    pub depths: BTreeMap<u8, u64>,
    /// Bytes that a prune would free now that removes no checkpoint, about; none if something damaged hides it.
    pub prunable: Option<u64>,
    /// Bytes that no checkpoint needs and that such a prune would leave, about: less than a quarter of the packs they are in.
    pub unneeded: Option<u64>,
    /// What cannot be read.
    pub damaged: Vec<String>,
}

/// What a codec did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CodecShare {
    /// Its name.
    pub codec: String,
    /// Blocks.
    pub blocks: u64,
    /// Bytes of their chunks.
    pub bytes: u64,
    /// Bytes of their payloads.
    pub stored: u64,
}

/// What a checkpoint consists of.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Explained {
    /// Its number.
    pub number: u32,
    /// The checkpoint it was compared with; 0 if there was none.
    pub earlier: u32,
    /// Bytes of all files.
    pub bytes: u64,
    /// Of these, zeros.
    pub zero: u64,
    /// Of these, as in the checkpoint before at the same places.
    pub unchanged: u64,
    /// Of these, known from elsewhere.
    pub known: u64,
    /// Of these, new.
    pub new: u64,
    /// Bytes of its manifest and of the payloads that were new: S in the model of Seed 002.
    pub stored: u64,
    /// Bytes by the checkpoint that brought them.
    pub brought: BTreeMap<u32, u64>,
    /// New bytes that are deltas against chunks of an earlier checkpoint: its number, bytes, bytes that they take.
    pub bases: Vec<(u32, u64, u64)>,
    /// Bytes by how many blocks have to be decoded, one after the other, before them.
    pub depths: BTreeMap<u8, u64>,
    /// Bytes by the codec of the block they are in.
    pub codecs: BTreeMap<String, u64>,
    /// How often ADCA compared the base kept with the checkpoint before, and how often it took the latter.
    pub comparisons: (u64, u64),
    /// What is stored of it, in stores with a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<Delta>,
    /// Its files.
    pub files: Vec<ExplainedFile>,
}

/// What a file of a checkpoint consists of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ExplainedFile {
    /// Where it is in the checkpoint.
    #[serde(serialize_with = "in_text")]
    pub path: PathBuf,
    /// As what it was read.
    pub format: String,
    /// Its bytes.
    pub bytes: u64,
    /// Of these, zeros.
    pub zero: u64,
    /// Of these, that came with this checkpoint.
    pub own: u64,
    /// Of these, that were there before.
    pub before: u64,
    /// How many runs of chunks its manifest has.
    pub runs: usize,
}

impl Store {
    /// All checkpoints, also those that cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, CheckpointError> {
        // A list is worth more than a whole list of pins.
        let pins = self.pins().unwrap_or_default();
        let numbers = self.numbers()?.into_iter();
        // What a prune has taken away meanwhile is not there, and not damaged.
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

    /// What the store holds.
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

    /// What a checkpoint consists of.
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
                // What a damaged pack says of it is not known; verifying tells of that.
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

/// The name of a codec or a format, in small letters.
fn name_of(of: impl Debug) -> String {
    format!("{of:?}").to_lowercase()
}

/// Bytes of a file; 0 if it is not there.
pub(super) fn length_of(path: impl AsRef<Path>) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// A path in JSON, which knows only Unicode: what is none of it is replaced.
pub(super) fn in_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

pub(super) fn all_in_text<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}
