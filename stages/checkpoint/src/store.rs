//! A store of checkpoints: a folder with
//!
//! - `store.json`: its format and settings,
//! - `packs/N.pack`: the blocks that checkpoint N added,
//! - `checkpoints/N`: the manifest of checkpoint N,
//! - `lock` and `readers`: who writes, and who reads what must not go away.
//!
//! Every file is written beside its place, synced and renamed; a checkpoint is there when its manifest is. `kill -9` at any moment leaves
//! only files whose names say that they are unfinished, and packs of the next number or of checkpoints that were pruned; the next writer
//! removes them. Every number that was given and is not known as pruned belongs to a manifest: where that is lost, its data stay.
//!
//! # How the store works
//!
//! `stages/checkpoint` has two halves. `delta/` is the published system: signatures of fixed blocks, a rule for the base, sizes and times; it
//! stores nothing. `store/` is the tool. They share the series they read, what reads images (`cut/dmtcp.rs`, `cut/criu.rs`), and, where a store
//! has a rule for whole checkpoints (`deltas` in `store.json`, format 3), signatures and rules: `store/add/decide.rs` hashes the checkpoint, takes
//! the signatures of its two possible bases from manifests and packs, and asks the same `Walk`. Files are then cut into blocks of equal length (`cut/plain.rs`), blocks that
//! differ from the base's go into the pack as they are, and the manifest (format 4) keeps the base, the one that ADCA holds on to, S(C) and the depth. It names for
//! every block the delta of the chain that has it, so that Δ⁻¹ along a chain is one step for each block, however long the chain is.
//!
//! Without a rule, a file is cut into chunks (`cut/`): images at the pages of the
//! process's memory, which have the same place in the next image wherever they are in the file; other files where they were cut before or their
//! contents say. A chunk is zeros, or the one at its place in the version before (its *base chunk*), or known from anywhere, or new. New ones are grouped into
//! blocks, 64 KiB of those whose base chunks are equally deep and 4 MiB of those that have none, which `codec/` encodes by whatever is best for a
//! sample. A checkpoint that is stored whole (`whole_every` in `store.json`, `add --whole`) knows no chunk
//! of any before, and those after it, up to the next, none of the packs before it. A pack holds the blocks that one checkpoint added and is written once; a manifest says which chunks a checkpoint's files are, and keeps a
//! fingerprint of those it takes of each pack (`store/live.rs`), by which a pack of another store is told before anything is restored.
//!
//! Which version a block is a delta against is ADCA's decision (`store/base.rs`), taken for one block in eight, or in 32 while that comes to the same, and followed by those after it whose base chunks are equally deep. Chains are bounded by
//! the depth of the store: a version at the bound is no base, but what it was a delta against is; where such patches grow, ADCA comes back to a base that is near.
//!
//! Restoring (`store/restore.rs`) takes portions of files in order, as many at once as there are threads up to eight: each is decoded, compared
//! with its hashes and written where it belongs; digests, streams and the ends of files wait for their turn. Decoded blocks of 24 MiB are kept
//! (`store/blocks.rs`), the last used, and their memory is used again. A block for which more than 16,384 others would be decoded is damaged.
//!
//! Files are read by reader pipelines, several at once; what is looked up, which number a block gets and what a chooser learns happens in the order of
//! the files, in rounds of 4 MiB, so that threads change no byte and memory is bounded. Two chunks are the same when 96 bits of XXH3 and the lengths are; a file's
//! digest is BLAKE3 over the whole hashes of its chunks.

mod add;
mod base;
mod blocks;
mod index;
mod live;
mod manifest;
mod numbers;
mod pack;
mod prune;
mod restore;
mod settings;
mod sparse;
mod statistics;
#[cfg(test)]
mod tests;
mod verify;
mod wire;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::CheckpointError;
use crate::params::StoreRule;
use hopmap_durable::{DurableError, Lock, is_leftover, lock_within, replace_file, sync_folder};
use settings::FORMAT_OF_DELTAS;

pub use add::{AddOptions, Added, Source};
pub use blocks::Blocks;
pub use manifest::{Delta, Figures, Fingerprints, Manifest, Recipe, Run};
pub use pack::{BlockEntry, Hashes, Pack};
pub use prune::{Keep, Mended, Pruned};
pub use restore::{RestoreOptions, Restored};
pub use settings::{DeltaSettings, Settings, in_words};
pub use statistics::{CodecShare, Explained, ExplainedFile, Listed, Statistics};
pub use verify::{Affected, CheckpointState, Damage, Verified};

/// A store of checkpoints.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    settings: Settings,
    packs: Mutex<BTreeMap<u32, Arc<Pack>>>,
    hashes: Mutex<BTreeMap<u32, Arc<Hashes>>>,
}

/// The lock of whoever adds or prunes; nobody else writes meanwhile.
#[derive(Debug)]
pub struct WriteLock {
    _lock: Lock,
    /// How long its holder waits for readers where they are in the way.
    wait: Duration,
}

/// The lock of whoever reads; nothing is taken away meanwhile.
#[derive(Debug)]
pub struct ReadLock {
    _lock: Option<Lock>,
}

impl Store {
    /// Makes an empty store in a folder that is missing or empty.
    pub fn init(folder: &Path, settings: Settings) -> Result<Self, CheckpointError> {
        settings.check()?;
        let settings = Settings { format: settings.newest_format(), ..settings };
        match fs::read_dir(folder) {
            Ok(mut entries) => {
                if folder.join("store.json").exists() {
                    return Err(CheckpointError::IsStore(folder.to_owned()));
                }
                // What an init that was killed has made is as good as nothing.
                let ours = ["packs", "checkpoints", "lock", "readers"];
                let is_ours = |entry: std::io::Result<fs::DirEntry>| {
                    let name = entry.map(|entry| entry.file_name()).unwrap_or_default();
                    name.to_str().is_some_and(|name| ours.contains(&name) || is_leftover(name))
                };
                if !entries.all(is_ours) {
                    return Err(CheckpointError::NotEmpty(folder.to_owned()));
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(DurableError::io("read", folder)(error).into()),
        }
        for part in ["packs", "checkpoints"] {
            let part = folder.join(part);
            fs::create_dir_all(&part).map_err(DurableError::io("create", &part))?;
        }
        for lock in ["lock", "readers"] {
            let lock = folder.join(lock);
            fs::write(&lock, "").map_err(DurableError::io("create", &lock))?;
        }
        let store = Self::at(folder, settings);
        store.write_settings(&store.settings)?;
        // The name of the folder has to last as long as what is in it.
        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        sync_folder(parent.unwrap_or(Path::new(".")))?;
        Ok(store)
    }

    /// Opens a store.
    pub fn open(folder: &Path) -> Result<Self, CheckpointError> {
        let path = folder.join("store.json");
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Err(CheckpointError::NoStore(folder.to_owned()));
            }
            Err(error) => return Err(DurableError::io("read", &path)(error).into()),
        };
        let settings: Settings = serde_json::from_slice(&text).map_err(|error| {
            CheckpointError::DamagedSettings { path: path.clone(), reason: error.to_string() }
        })?;
        if !(1..=FORMAT_OF_DELTAS).contains(&settings.format) {
            let reason =
                format!("its format is {}, and this hopmap knows 1 to {FORMAT_OF_DELTAS}", settings.format);
            return Err(CheckpointError::DamagedSettings { path, reason });
        }
        settings
            .check()
            .map_err(|error| CheckpointError::DamagedSettings { path, reason: error.to_string() })?;
        Ok(Self::at(folder, settings))
    }

    fn at(folder: &Path, settings: Settings) -> Self {
        Self { folder: folder.to_owned(), settings, packs: Mutex::default(), hashes: Mutex::default() }
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it was made with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The rule that chooses the base.
    #[must_use]
    pub fn rule(&self) -> StoreRule {
        self.settings.deltas.map(|deltas| deltas.rule).unwrap_or_default()
    }

    pub(crate) fn write_settings(&self, settings: &Settings) -> Result<(), CheckpointError> {
        let mut text = serde_json::to_vec_pretty(settings).unwrap_or_default();
        text.push(b'\n');
        Ok(replace_file(&self.folder.join("store.json"), &text)?)
    }

    /// Keeps other writers away, waiting for them so long, and removes what killed ones left.
    pub fn lock(&self, holder: &str, wait: Duration) -> Result<WriteLock, CheckpointError> {
        self.lock_unless(&|| false, holder, wait)
    }

    /// As [`Store::lock`], but nobody waits any longer when `stop` says so.
    pub fn lock_unless(
        &self,
        stop: &dyn Fn() -> bool,
        holder: &str,
        wait: Duration,
    ) -> Result<WriteLock, CheckpointError> {
        let lock = until(wait, stop, || Lock::try_exclusive(&self.folder.join("lock"), holder))?;
        let given = self.given()?;
        given.check(&self.folder)?;
        for part in ["", "packs", "checkpoints"] {
            remove_leftovers(&self.folder.join(part))?;
        }
        self.settle(&given)?;
        self.remove_unfinished(&given)?;
        // Somebody else may have pruned since packs were read.
        self.forget_packs();
        Ok(WriteLock { _lock: lock, wait })
    }

    /// Keeps what is there from being taken away. A store that cannot be written to needs no lock.
    pub fn read_lock(&self, wait: Duration) -> Result<ReadLock, CheckpointError> {
        self.read_lock_unless(&|| false, wait)
    }

    /// As [`Store::read_lock`], but nobody waits any longer when `stop` says so.
    pub fn read_lock_unless(
        &self,
        stop: &dyn Fn() -> bool,
        wait: Duration,
    ) -> Result<ReadLock, CheckpointError> {
        let path = self.folder.join("readers");
        let lock = until(wait, stop, || Lock::try_shared(&path))?;
        // Somebody else may have pruned since packs were read.
        self.forget_packs();
        Ok(ReadLock { _lock: lock })
    }

    /// The numbers of all checkpoints, ascending; also of those whose manifests are damaged.
    pub fn numbers(&self) -> Result<Vec<u32>, CheckpointError> {
        numbers(&self.folder.join("checkpoints"), "")
    }

    /// The numbers of all packs, ascending.
    pub fn pack_numbers(&self) -> Result<Vec<u32>, CheckpointError> {
        numbers(&self.folder.join("packs"), ".pack")
    }

    /// Where the manifest of a checkpoint is.
    #[must_use]
    pub fn manifest_path(&self, number: u32) -> PathBuf {
        self.folder.join("checkpoints").join(number.to_string())
    }

    /// Where a pack is.
    #[must_use]
    pub fn pack_path(&self, number: u32) -> PathBuf {
        self.folder.join("packs").join(format!("{number}.pack"))
    }

    /// A checkpoint.
    pub fn manifest(&self, number: u32) -> Result<Manifest, CheckpointError> {
        let path = self.manifest_path(number);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(self.no_manifest(number)?);
            }
            Err(error) => return Err(DurableError::io("read", &path)(error).into()),
        };
        let damaged = |reason| CheckpointError::DamagedManifest { path: path.clone(), number, reason };
        let manifest = Manifest::decode(&bytes).map_err(damaged)?;
        if manifest.number == number {
            Ok(manifest)
        } else {
            Err(damaged("it is that of another checkpoint"))
        }
    }

    /// The number of the last checkpoint.
    pub fn latest(&self) -> Result<Option<u32>, CheckpointError> {
        Ok(self.numbers()?.last().copied())
    }

    /// The number of the last checkpoint of a name that can be read.
    pub fn latest_named(&self, name: &str) -> Result<Option<u32>, CheckpointError> {
        let named = |number: &u32| self.manifest(*number).is_ok_and(|manifest| manifest.name == name);
        Ok(self.numbers()?.into_iter().rev().find(named))
    }

    /// A pack; opened once.
    pub fn pack(&self, number: u32) -> Result<Arc<Pack>, CheckpointError> {
        cached(&self.packs, number, || Pack::open(&self.pack_path(number), number))
    }

    /// The hashes of the chunks of a pack; read once.
    pub fn hashes(&self, number: u32) -> Result<Arc<Hashes>, CheckpointError> {
        cached(&self.hashes, number, || self.pack(number)?.hashes())
    }

    /// Forgets packs that are open, because they have changed.
    pub fn forget_packs(&self) {
        self.packs.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.hashes.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// What is kept under a number, made when it is first asked for. Nothing is locked meanwhile.
fn cached<T>(
    kept: &Mutex<BTreeMap<u32, Arc<T>>>,
    number: u32,
    make: impl FnOnce() -> Result<T, CheckpointError>,
) -> Result<Arc<T>, CheckpointError> {
    let lock = || kept.lock().unwrap_or_else(PoisonError::into_inner);
    let found = lock().get(&number).map(Arc::clone);
    match found {
        Some(found) => Ok(found),
        None => {
            let value = Arc::new(make()?);
            lock().insert(number, Arc::clone(&value));
            Ok(value)
        }
    }
}

/// Tries again for so long while somebody else has the lock, unless somebody asks to stop.
fn until<L>(
    wait: Duration,
    stop: &dyn Fn() -> bool,
    lock: impl Fn() -> Result<L, DurableError>,
) -> Result<L, CheckpointError> {
    match lock_within(wait, stop, lock) {
        Err(DurableError::Busy { .. }) if stop() => Err(CheckpointError::Interrupted),
        Err(DurableError::Busy { path, holder }) => Err(CheckpointError::Busy { path, holder }),
        result => Ok(result?),
    }
}

fn remove_leftovers(folder: &Path) -> Result<(), CheckpointError> {
    let entries = fs::read_dir(folder).map_err(DurableError::io("read", folder))?;
    for entry in entries {
        let entry = entry.map_err(DurableError::io("read", folder))?;
        if entry.file_name().to_str().is_some_and(is_leftover) {
            fs::remove_file(entry.path()).map_err(DurableError::io("remove", &entry.path()))?;
        }
    }
    Ok(())
}

fn numbers(folder: &Path, ending: &str) -> Result<Vec<u32>, CheckpointError> {
    let entries = fs::read_dir(folder).map_err(DurableError::io("read", folder))?;
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry.map_err(DurableError::io("read", folder))?.file_name();
        let stem = name.to_str().and_then(|name| name.strip_suffix(ending));
        let number =
            stem.and_then(|stem| stem.parse().ok().filter(|number: &u32| number.to_string() == stem));
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}
