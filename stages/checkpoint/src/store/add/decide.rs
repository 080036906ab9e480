//! Chooses the base of a whole checkpoint before any of it is stored.

use std::io::Read;
use std::path::{Path, PathBuf};

use hopmap_durable::DurableError;
use hopmap_model::DeltaRule;

use super::pipeline;
use crate::delta::{FileSignature, Signature, Walk, read};
use crate::error::CheckpointError;
use crate::params::{Align, Matching};
use crate::series::{Checkpoint, CheckpointFile};
use crate::store::index::Index;
use crate::store::manifest::Manifest;
use crate::store::{DeltaSettings, Store};
use crate::tree::{self, EntryKind};

/// What is added.
pub enum Source<'a> {
    /// A folder with all its contents.
    Folder(&'a Path),
    /// Files with their names in the checkpoint; only their contents are stored.
    Files(Vec<(PathBuf, PathBuf)>),
    /// A stream as one file with a name.
    Stream(String, Box<dyn Read + Send + 'a>),
}

/// The decision for a checkpoint.
pub(super) struct Decision {
    /// The base; `None` if the checkpoint is stored in full.
    pub(super) base: Option<Manifest>,
    /// The base that the rule keeps from now on.
    pub(super) held: u32,
    /// Known blocks, regardless of their position.
    pub(super) index: Index,
}

/// Chooses the base of checkpoint `number`, which follows `previous` in its series.
pub(super) fn decide(
    store: &Store,
    deltas: &DeltaSettings,
    number: u32,
    previous: Option<Manifest>,
    source: &Source<'_>,
    notes: &mut Vec<String>,
) -> Result<Decision, CheckpointError> {
    let (Some(previous), Some(rule)) = (previous, deltas.rule.of_deltas()) else {
        return Ok(Decision { base: None, held: number, index: Index::default() });
    };
    let held = match previous.delta.map_or(previous.number, |delta| delta.held) {
        held if held == previous.number => None,
        held => match store.manifest(held) {
            Ok(manifest) => Some(manifest),
            Err(error) => {
                notes.push(format!("{error}; checkpoint {} is the new base", previous.number));
                None
            }
        },
    };
    let base_of = |number: u32| held.as_ref().filter(|held| held.number == number).unwrap_or(&previous);
    let mut walk = Walk::resume(rule, store.settings().epsilon, held.as_ref().unwrap_or(&previous).number);
    let choice = if matches!(rule, DeltaRule::AdcaLiteral | DeltaRule::AdcaImmediate) {
        let signature = signature_of(store, deltas.block, source)?;
        walk.step(previous.number, |base| {
            let base = recorded(store, deltas.block, base_of(base));
            signature.difference(&base, deltas.matching).size(deltas.block_overhead.into())
        })
    } else {
        // The other rules do not need sizes.
        walk.step(previous.number, |_| 0)
    };
    let base = base_of(choice.base).clone();
    let index = match deltas.matching {
        Matching::Address => Index::default(),
        Matching::Anywhere => blocks_of(store, &base),
    };
    Ok(Decision { base: Some(base), held: walk.held(), index })
}

/// The signature of the checkpoint to be added, which is read for it.
fn signature_of(store: &Store, block: u32, source: &Source<'_>) -> Result<Signature, CheckpointError> {
    let files: Vec<(PathBuf, PathBuf)> = match source {
        Source::Folder(folder) => {
            let entries = tree::walk(folder)?.entries.into_iter();
            let files = entries.filter(|entry| matches!(entry.kind, EntryKind::File { .. }));
            files.map(|entry| (entry.path.clone(), folder.join(entry.path))).collect()
        }
        Source::Files(files) => files.clone(),
        Source::Stream(..) => return Err(CheckpointError::ReadTwice),
    };
    let file = |(place, path): (PathBuf, PathBuf)| -> Result<CheckpointFile, CheckpointError> {
        let bytes = std::fs::metadata(&path).map_err(DurableError::io("read", &path))?.len();
        Ok(CheckpointFile { place, path, bytes })
    };
    let files = files.into_iter().map(file).collect::<Result<_, _>>()?;
    let checkpoint = Checkpoint { name: String::new(), files };
    let found = read::signatures(&checkpoint, &[block], Align::Position, store.settings().seed);
    let mut found = found.map_err(Box::new)?;
    Ok(found.pop().unwrap_or_default())
}

/// The signature of a stored checkpoint. It excludes lost blocks, so that they are stored again.
fn recorded(store: &Store, block: u32, manifest: &Manifest) -> Signature {
    let mut signature = Signature::default();
    for &number in manifest.recipes.keys() {
        let mut file = FileSignature::seeded(block.into(), store.settings().seed);
        let mut end = None;
        let earlier = pipeline::earlier(store, Some(manifest), Some(number));
        for chunk in earlier.iter().flat_map(|earlier| earlier.chunks()) {
            let (address, length) = (chunk.place.address, chunk.length as u64);
            if end != Some(address) {
                file.begin(address);
            }
            file.add_hash(length, chunk.hash);
            end = Some(address.saturating_add(length));
        }
        file.finish();
        let path = manifest.entries.get(number as usize).map(|entry| entry.path.clone());
        signature.files.insert(path.unwrap_or_default(), file);
    }
    signature
}

/// All blocks of a checkpoint by hash.
fn blocks_of(store: &Store, manifest: &Manifest) -> Index {
    let mut index = Index::default();
    for &number in manifest.recipes.keys() {
        let earlier = pipeline::earlier(store, Some(manifest), Some(number));
        for chunk in earlier.iter().flat_map(|earlier| earlier.chunks()) {
            if let Some(id) = chunk.id {
                index.replace(chunk.hash, id);
            }
        }
    }
    index
}
