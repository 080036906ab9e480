//! Stores with several checkpoints of a few small files, and the expected contents.
#![allow(dead_code, reason = "not every test needs all of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hopmap_checkpoint::CheckpointError;
use hopmap_checkpoint::store::{AddOptions, Keep, Pruned, Settings, Source, Store, Verified};
use hopmap_model::Context;

/// How long to wait for a lock: a process started by another test inherits all locks until it runs its
/// program.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reproducible pseudorandom numbers.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub(crate) fn below(&mut self, sides: usize) -> usize {
        (self.next() % sides.max(1) as u64) as usize
    }
}

/// Incompressible bytes, except every fourth page.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    let mut bytes: Vec<u8> = words.flatten().take(length).collect();
    bytes.chunks_mut(4096).skip(1).step_by(4).for_each(|page| page.iter_mut().for_each(|byte| *byte &= 3));
    bytes
}

pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// The files of the first checkpoint.
pub(crate) fn first(seed: u64) -> Files {
    let mut image = noise(seed, 90_000);
    image[20_480..40_960].fill(0);
    Files::from([
        ("image".into(), image),
        ("part/restart.sh".into(), b"#!/bin/sh\nexec restart image\n".to_vec()),
        ("part/table".into(), noise(seed + 1, 40_000)),
        ("empty".into(), Vec::new()),
    ])
}

/// The files of the next checkpoint: some words change, a page is new, one file grows.
pub(crate) fn step(files: &mut Files, seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(77).wrapping_add(5));
    let image = files.get_mut(Path::new("image")).unwrap();
    for _ in 0..12 {
        let at = dice.below(image.len());
        image[at] ^= 1 + dice.below(255) as u8;
    }
    let page = dice.below(image.len() / 4096) * 4096;
    image[page..page + 4096].copy_from_slice(&noise(dice.next(), 4096));
    let table = files.get_mut(Path::new("part/table")).unwrap();
    table.extend(noise(dice.next(), 3000));
}

pub(crate) fn plant(folder: &Path, files: &Files) {
    let _ = fs::remove_dir_all(folder);
    for (path, bytes) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// A store in a temporary folder, and the contents of its checkpoints.
pub(crate) struct Sample {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) versions: BTreeMap<u32, Files>,
    pub(crate) last: Files,
}

impl Sample {
    /// A store without checkpoints.
    pub(crate) fn empty() -> Self {
        // As usual: chunks are hashed with a seed.
        Self::of(Settings { seed: 20_261_124, ..Settings::default() })
    }

    /// An empty store with these settings.
    pub(crate) fn of(settings: Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Store::init(&folder.path().join("store"), settings).unwrap();
        Self { folder, versions: BTreeMap::new(), last: Files::new() }
    }

    /// A store with this number of checkpoints; another seed gives other contents.
    pub(crate) fn new(checkpoints: u32, seed: u64) -> Self {
        let mut sample = Self { last: first(seed), ..Self::empty() };
        (0..checkpoints).for_each(|number| sample.add(seed + u64::from(number)));
        sample
    }

    /// Adds one more checkpoint.
    pub(crate) fn add(&mut self, seed: u64) {
        if !self.versions.is_empty() {
            step(&mut self.last, seed);
        }
        self.add_last();
    }

    /// Adds a checkpoint of these files.
    pub(crate) fn add_files(&mut self, files: Files) {
        self.last = files;
        self.add_last();
    }

    fn add_last(&mut self) {
        let from = self.folder.path().join("from");
        plant(&from, &self.last);
        let store = self.store();
        let lock = store.lock("a test", PATIENCE).unwrap();
        let added = store.add(&lock, Source::Folder(&from), &AddOptions::default(), &Context::detached());
        self.versions.insert(added.unwrap().manifest.number, self.last.clone());
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.path()).unwrap()
    }

    pub(crate) fn verify(&self, deep: bool) -> Verified {
        verify(&self.store(), deep)
    }

    pub(crate) fn prune(&self, keep: &Keep) -> Result<Pruned, CheckpointError> {
        let store = self.store();
        let lock = store.lock("a test", Duration::ZERO)?;
        store.prune(&lock, keep, false, &Context::detached())
    }

    /// Restores every existing checkpoint to folders; panics if anything differs.
    pub(crate) fn assert_restores(&self, numbers: &[u32]) {
        let store = self.store();
        for &number in numbers {
            restore_folder(&store, number, self.folder.path(), &self.versions[&number]).unwrap();
        }
    }

    /// All files of the store.
    pub(crate) fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        for part in ["", "packs", "checkpoints"] {
            for entry in fs::read_dir(self.path().join(part)).unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() {
                    files.push((path.clone(), fs::read(&path).unwrap()));
                }
            }
        }
        files.sort();
        files
    }
}

pub(crate) fn verify(store: &Store, deep: bool) -> Verified {
    let lock = store.read_lock(PATIENCE).unwrap();
    store.verify(&lock, deep, None, &Context::detached()).unwrap()
}

/// Restores a checkpoint to a folder and compares it. Panics on wrong contents; returns errors.
pub(crate) fn restore_folder(
    store: &Store,
    number: u32,
    parent: &Path,
    expected: &Files,
) -> Result<(), CheckpointError> {
    let lock = store.read_lock(PATIENCE)?;
    let to = parent.join("restored");
    let _ = fs::remove_dir_all(&to);
    let options = hopmap_checkpoint::store::RestoreOptions { unsynced: true };
    let result = store.restore(&lock, number, &to, options, &Context::detached());
    if result.is_err() {
        assert!(!to.exists(), "a restore that failed left something");
    }
    result?;
    for (path, bytes) in expected {
        assert!(fs::read(to.join(path)).unwrap() == *bytes, "{} of {number} is wrong", path.display());
    }
    fs::remove_dir_all(&to).unwrap();
    Ok(())
}

/// Restores the files of a checkpoint one by one to memory and compares them.
pub(crate) fn restore_files(store: &Store, number: u32, expected: &Files) -> Result<(), CheckpointError> {
    let lock = store.read_lock(PATIENCE)?;
    let mut failed = Ok(());
    for (path, bytes) in expected {
        let mut out = Vec::new();
        match store.restore_file(&lock, number, Some(path), &mut out, &Context::detached()) {
            Ok(_) => assert!(out == *bytes, "{} of {number} is wrong", path.display()),
            Err(error) => failed = Err(error),
        }
    }
    failed
}
