//! A checkpoint store: a folder with
//!
//! - `store.json`: its format and settings,
//! - `packs/N.pack`: the blocks that checkpoint N added,
//! - `checkpoints/N`: the manifest of checkpoint N,
//! - `lock` and `readers`: locks of the writer, and of readers, which protect data from removal.
//!
//! Every file is written under a temporary name, synced and renamed; a checkpoint exists when its manifest
//! does. `kill -9` at any moment leaves only temporary files, and packs of the next number or of pruned
//! checkpoints; the next writer removes them. Every number that was assigned and is not recorded as pruned
//! belongs to a manifest; if it is lost, its data stay.
//!
//! # How the store works
//!
//! `stages/checkpoint` has two halves. `delta/` is the published system: signatures of fixed blocks, a rule
//! for the base, sizes and times; it stores nothing. `store/` is the tool. They share the series that they
//! read and the image readers (`cut/dmtcp.rs`, `cut/criu.rs`). If a store has a rule for whole checkpoints
//! (`deltas` in `store.json`, format 3), they also share signatures and rules: `store/add/decide.rs` hashes
//! the checkpoint, takes the signatures of its two possible bases from manifests and packs, and calls the
//! same `Walk`. Files are then cut into blocks of equal length (`cut/plain.rs`), blocks that differ from the
//! base go into the pack uncompressed, and the manifest (format 4) keeps the base, the base that ADCA keeps,
//! S(C) and the depth. It names for every block the delta in the chain that has it, so Δ⁻¹ along a chain is
//! one step per block, regardless of the length of the chain.
//!
//! Without a rule, a file is cut into chunks (`cut/`): images at the pages of process memory, which keep
//! their address in the next image wherever they are in the file; other files at the previous cuts or by
//! content. A chunk is zeros, or equal to the chunk at its position in the previous version (its *base
//! chunk*), or known from elsewhere, or new. New chunks are grouped into blocks, 64 KiB of chunks whose base
//! chunks have equal depth or 4 MiB of chunks without bases, which `codec/` encodes with the best codec for a
//! sample. A checkpoint that is stored in full (`whole_every` in `store.json`, `add --whole`) uses no earlier
//! chunk, and those after it, up to the next, use no earlier pack. A pack holds the blocks that one
//! checkpoint added and is written once. A manifest lists the chunks of a checkpoint's files, and keeps a
//! fingerprint of its chunks in each pack (`store/live.rs`), so that packs of another store are detected
//! before anything is restored.
//!
//! ADCA decides which version a block is encoded against (`store/base.rs`): for one block in eight, or in 32
//! while the choice is stable; later blocks whose base chunks have equal depth follow it. Chains are bounded
//! by the depth of the store: a version at the limit cannot be a base, but its own base can; when such
//! patches grow, ADCA returns to a near base.
//!
//! Restoring (`store/restore.rs`) processes portions of files in order, in up to eight threads: each is
//! decoded, verified by its hashes and written to its position; digests, streams and the ends of files wait
//! for their turn. A cache holds 24 MiB of recently used decoded blocks (`store/blocks.rs`) and recycles
//! their memory. A block that would require more than 16,384 others to be decoded is damaged.
//!
//! Several reader pipelines read files in parallel; lookups, block numbers and the learning of choosers
//! happen in file order, in rounds of 4 MiB, so that results do not depend on threads and memory is bounded.
//! Two chunks are equal if 96 bits of XXH3 and the lengths are; a file's digest is BLAKE3 over the full
//! hashes of its chunks.

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

use crate::error::CheckpointError;
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

/// A checkpoint store.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    settings: Settings,
    packs: Mutex<BTreeMap<u32, Arc<Pack>>>,
    hashes: Mutex<BTreeMap<u32, Arc<Hashes>>>,
}

/// The write lock: it excludes other writers.
#[derive(Debug)]
pub struct WriteLock {
    _lock: Lock,
    /// How long its holder waits for readers that are in the way.
    wait: Duration,
}

/// The read lock: nothing is removed meanwhile.
#[derive(Debug)]
pub struct ReadLock {
    _lock: Option<Lock>,
}

impl Store {
    /// Creates an empty store in a folder that is missing or empty.
    pub fn init(folder: &Path, settings: Settings) -> Result<Self, CheckpointError> {
        settings.check()?;
        let settings = Settings { format: settings.newest_format(), ..settings };
        match fs::read_dir(folder) {
            Ok(mut entries) => {
                if folder.join("store.json").exists() {
                    return Err(CheckpointError::IsStore(folder.to_owned()));
                }
                // A killed `init` leaves a folder that counts as empty.
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
        // The folder entry has to be as durable as its contents.
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
            let reason = format!(
                "its format is {}, but this hopmap supports 1 to {FORMAT_OF_DELTAS}",
                settings.format
            );
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

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its settings.
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

    /// Locks the store for writing, waiting up to some time, and removes what killed writers left.
    pub fn lock(&self, holder: &str, wait: Duration) -> Result<WriteLock, CheckpointError> {
        self.lock_unless(&|| false, holder, wait)
    }

    /// As [`Store::lock`], but stops waiting when `stop` is true.
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
        // Another process may have pruned since packs were read.
        self.forget_packs();
        Ok(WriteLock { _lock: lock, wait })
    }

    /// Protects data from removal. A read-only store needs no lock.
    pub fn read_lock(&self, wait: Duration) -> Result<ReadLock, CheckpointError> {
        self.read_lock_unless(&|| false, wait)
    }

    /// As [`Store::read_lock`], but stops waiting when `stop` is true.
    pub fn read_lock_unless(
        &self,
        stop: &dyn Fn() -> bool,
        wait: Duration,
    ) -> Result<ReadLock, CheckpointError> {
        let path = self.folder.join("readers");
        let lock = until(wait, stop, || Lock::try_shared(&path))?;
        // Another process may have pruned since packs were read.
        self.forget_packs();
        Ok(ReadLock { _lock: lock })
    }

    /// The numbers of all checkpoints, ascending, including those with damaged manifests.
    pub fn numbers(&self) -> Result<Vec<u32>, CheckpointError> {
        numbers(&self.folder.join("checkpoints"), "")
    }

    /// The numbers of all packs, ascending.
    pub fn pack_numbers(&self) -> Result<Vec<u32>, CheckpointError> {
        numbers(&self.folder.join("packs"), ".pack")
    }

    /// Path of the manifest of a checkpoint.
    #[must_use]
    pub fn manifest_path(&self, number: u32) -> PathBuf {
        self.folder.join("checkpoints").join(number.to_string())
    }

    /// Path of a pack.
    #[must_use]
    pub fn pack_path(&self, number: u32) -> PathBuf {
        self.folder.join("packs").join(format!("{number}.pack"))
    }

    /// Reads the manifest of a checkpoint.
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
            Err(damaged("it belongs to another checkpoint"))
        }
    }

    /// The number of the last checkpoint.
    pub fn latest(&self) -> Result<Option<u32>, CheckpointError> {
        Ok(self.numbers()?.last().copied())
    }

    /// The number of the last readable checkpoint with a name.
    pub fn latest_named(&self, name: &str) -> Result<Option<u32>, CheckpointError> {
        let named = |number: &u32| self.manifest(*number).is_ok_and(|manifest| manifest.name == name);
        Ok(self.numbers()?.into_iter().rev().find(named))
    }

    /// A pack, opened on first use.
    pub fn pack(&self, number: u32) -> Result<Arc<Pack>, CheckpointError> {
        cached(&self.packs, number, || Pack::open(&self.pack_path(number), number))
    }

    /// The hashes of the chunks of a pack, read on first use.
    pub fn hashes(&self, number: u32) -> Result<Arc<Hashes>, CheckpointError> {
        cached(&self.hashes, number, || self.pack(number)?.hashes())
    }

    /// Closes open packs, because they have changed.
    pub fn forget_packs(&self) {
        self.packs.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.hashes.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// A cached value, created on first use without holding the lock.
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

/// Retries while another process has the lock, up to some time or until `stop` is true.
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

/// The end of the name of a pack that is being written, after a point and its number.
const PACK_BEGUN: &str = ".pack.tmp";

/// The path of a pack while it is written.
fn begun_pack(folder: &Path, number: u32) -> PathBuf {
    folder.join("packs").join(format!(".{number}{PACK_BEGUN}"))
}

fn remove_leftovers(folder: &Path) -> Result<(), CheckpointError> {
    let entries = fs::read_dir(folder).map_err(DurableError::io("read", folder))?;
    for entry in entries {
        let entry = entry.map_err(DurableError::io("read", folder))?;
        let is_pack = |name: &str| name.starts_with('.') && name.ends_with(PACK_BEGUN);
        if entry.file_name().to_str().is_some_and(|name| is_leftover(name) || is_pack(name)) {
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
