//! What a store holds, and what a checkpoint consists of, in numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::chain::Delta;
use super::live::Live;
use super::{ReadLock, Store};
use crate::CheckpointError;
use crate::cut::Format;

/// A checkpoint in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    /// New bytes that are told by chunks of an earlier checkpoint: its number, bytes, bytes that they take.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedFile {
    /// Where it is in the checkpoint.
    #[serde(serialize_with = "in_text")]
    pub path: PathBuf,
    /// As what it was read.
    pub format: &'static str,
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
        let mut listed = Listed {
            number,
            name: String::new(),
            created: 0,
            files: 0,
            bytes: 0,
            stored,
            pinned: pins.contains(&number),
            damaged: None,
        };
        match self.manifest(number) {
            Ok(manifest) => {
                listed.bytes = manifest.bytes();
                listed.created = manifest.created.seconds;
                listed.files = manifest.recipes.len();
                listed.name = manifest.name;
            }
            Err(error) => listed.damaged = Some(error.to_string()),
        }
        listed
    }

    /// What the store holds.
    pub fn statistics(&self, _lock: &ReadLock) -> Result<Statistics, CheckpointError> {
        let numbers = self.numbers()?;
        let bytes = |number: &u32| self.manifest(*number).map_or(0, |manifest| manifest.bytes());
        let bytes = numbers.iter().map(bytes).fold(0, u64::saturating_add);
        let known = [&numbers[..], &self.given()?.lost[..]].concat();
        let (_, hidden) = Live::of(self, &known);
        let prunable = if hidden.is_empty() { Some(self.prunable(&numbers)?) } else { None };
        let mut damaged: Vec<String> = hidden.iter().map(ToString::to_string).collect();
        let mut tally = Tally::default();
        for number in self.pack_numbers()? {
            tally.packs += length_of(self.pack_path(number));
            match self.pack(number) {
                Ok(pack) => tally.add(&pack),
                Err(error) => damaged.push(error.to_string()),
            }
        }
        damaged.sort_unstable();
        damaged.dedup();
        let manifests: u64 = numbers.iter().map(|&number| length_of(self.manifest_path(number))).sum();
        let stored = tally.packs + manifests;
        Ok(Statistics {
            checkpoints: numbers.len(),
            bytes,
            packs: tally.packs,
            manifests,
            index: tally.index,
            ratio: if stored == 0 { 0.0 } else { bytes as f64 / stored as f64 },
            chunks: tally.chunks,
            blocks: tally.blocks,
            codecs: tally.codecs.into_values().collect(),
            depths: tally.depths,
            prunable: prunable.map(|(freed, _)| freed),
            unneeded: prunable.map(|(_, stay)| stay),
            damaged,
        })
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
            brought: BTreeMap::new(),
            bases: figures.bases.clone(),
            depths: BTreeMap::new(),
            codecs: BTreeMap::new(),
            comparisons: figures.comparisons,
            delta: manifest.delta,
            files: Vec::new(),
        };
        for (&entry, recipe) in &manifest.recipes {
            let path = manifest.entries.get(entry as usize).map(|entry| entry.path.clone());
            let mut file = ExplainedFile {
                path: path.unwrap_or_default(),
                format: name_of(recipe.format),
                bytes: recipe.bytes(),
                zero: 0,
                own: 0,
                before: 0,
                runs: recipe.runs.len(),
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
                *explained.codecs.entry(format!("{:?}", block.codec).to_lowercase()).or_default() += bytes;
            }
            explained.files.push(file);
        }
        Ok(explained)
    }
}

#[derive(Debug, Default)]
struct Tally {
    packs: u64,
    index: u64,
    chunks: u64,
    blocks: u64,
    codecs: BTreeMap<u8, CodecShare>,
    depths: BTreeMap<u8, u64>,
}

impl Tally {
    fn add(&mut self, pack: &super::Pack) {
        let payloads = pack.blocks().iter().flatten().map(|entry| u64::from(entry.payload)).sum();
        self.index += pack.length().saturating_sub(payloads);
        self.chunks += pack.chunks() as u64;
        for entry in pack.blocks().iter().flatten() {
            self.blocks += 1;
            *self.depths.entry(entry.depth).or_default() += 1;
            let share = self.codecs.entry(entry.codec as u8).or_insert_with(|| CodecShare {
                codec: format!("{:?}", entry.codec).to_lowercase(),
                blocks: 0,
                bytes: 0,
                stored: 0,
            });
            share.blocks += 1;
            share.bytes += entry.bytes() as u64;
            share.stored += u64::from(entry.payload);
        }
    }
}

fn name_of(format: Format) -> &'static str {
    match format {
        Format::Plain => "plain",
        Format::Dmtcp => "dmtcp",
        Format::Criu => "criu",
        Format::Gzip => "gzip",
    }
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
