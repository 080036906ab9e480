//! Checkpoints are restored exactly from a store.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hopmap_checkpoint::store::{AddOptions, RestoreOptions, Settings, Source, Store};
use hopmap_model::{Context, Observer};

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let bytes = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    bytes.flatten().take(length).collect()
}

#[expect(clippy::unwrap_used, reason = "a test fails here")]
fn add(store: &Store, folder: &Path) -> hopmap_checkpoint::store::Added {
    let lock = store.lock("a test", Duration::ZERO).unwrap();
    store.add(&lock, Source::Folder(folder), &AddOptions::default(), &Context::detached()).unwrap()
}

#[test]
fn a_stream_is_restored_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::init(&folder.path().join("store"), Settings::default()).unwrap();
    let mut contents = noise(1, 3_000_000);
    contents.extend(vec![0; 70_000]);
    contents.extend(noise(2, 12_345));
    let mut versions = Vec::new();
    for version in 0..6u8 {
        for step in 0..100 {
            contents[(step * 29_000 + usize::from(version) * 4099) % 3_000_000] ^= 1 + version;
        }
        let lock = store.lock("a test", Duration::ZERO).unwrap();
        let source = Source::Stream("image".into(), Box::new(&contents[..]));
        let added = store.add(&lock, source, &AddOptions::default(), &Context::detached()).unwrap();
        assert_eq!(added.manifest.number, u32::from(version) + 1);
        versions.push(contents.clone());
    }
    let store = Store::open(&folder.path().join("store")).unwrap();
    let lock = store.read_lock(Duration::ZERO).unwrap();
    for (number, version) in (1..).zip(&versions) {
        let mut out = Vec::new();
        store.restore_file(&lock, number, None, &mut out, &Context::detached()).unwrap();
        assert!(out == *version);
    }
    for pack in 1..=6 {
        let pack = store.pack(pack).unwrap();
        assert!(pack.blocks().iter().flatten().all(|block| block.depth <= 2));
    }
}

#[test]
fn an_unchanged_checkpoint_adds_no_pack() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::init(&folder.path().join("store"), Settings::default()).unwrap();
    let input = folder.path().join("input");
    fs::create_dir(&input).unwrap();
    fs::write(input.join("a"), noise(3, 100_000)).unwrap();
    let first = add(&store, &input);
    let second = add(&store, &input);
    assert!(first.pack_bytes > 0);
    assert_eq!(second.pack_bytes, 0);
    let to = folder.path().join("back");
    let lock = store.read_lock(Duration::ZERO).unwrap();
    store.restore(&lock, 2, &to, RestoreOptions::default(), &Context::detached()).unwrap();
    assert!(fs::read(to.join("a")).unwrap() == noise(3, 100_000));
}

/// Runs an action during an operation.
struct Meanwhile<P, C> {
    progress: P,
    cancelled: C,
}

impl<P: Fn() + Sync, C: Fn() -> bool + Sync> Observer for Meanwhile<P, C> {
    fn progress(&self, _: u64, _: u64) {
        (self.progress)();
    }

    fn log(&self, _: &str) {}

    fn cancelled(&self) -> bool {
        (self.cancelled)()
    }
}

/// A reader with an action at its end.
struct Ending<F: FnMut() + Send>(u64, F);

impl<F: FnMut() + Send> std::io::Read for Ending<F> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let step = bytes.len().min(self.0 as usize);
        bytes[..step].fill(9);
        self.0 -= step as u64;
        if step == 0 {
            self.1();
        }
        Ok(step)
    }
}

#[test]
fn a_stream_that_ends_by_an_interrupt_is_not_added() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::init(&folder.path().join("store"), Settings::default()).unwrap();
    let stopped = AtomicBool::new(false);
    let observer = Meanwhile { progress: || {}, cancelled: || stopped.load(Ordering::Relaxed) };
    let reader = Ending(1000, || stopped.store(true, Ordering::Relaxed));
    let lock = store.lock("a test", Duration::ZERO).unwrap();
    let source = Source::Stream("state".into(), Box::new(reader));
    let error =
        store.add(&lock, source, &AddOptions::default(), &Context::new(1, None, &observer)).unwrap_err();
    assert!(matches!(error, hopmap_checkpoint::CheckpointError::Interrupted));
    let empty = Source::Stream("state".into(), Box::new(std::io::empty()));
    let error = store.add(&lock, empty, &AddOptions::default(), &Context::detached()).unwrap_err();
    assert!(matches!(error, hopmap_checkpoint::CheckpointError::EmptyStream));
    assert!(store.numbers().unwrap().is_empty());
    assert!(store.pack_numbers().unwrap().is_empty());
}

#[test]
fn a_file_that_appears_during_a_restore_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::init(&folder.path().join("store"), Settings::default()).unwrap();
    let to = folder.path().join("back");
    fs::create_dir(&to).unwrap();
    let late = to.join("results");
    let lock = store.lock("a test", Duration::ZERO).unwrap();
    let source = Source::Stream("state".into(), Box::new(&[1, 2, 3][..]));
    store.add(&lock, source, &AddOptions::default(), &Context::detached()).unwrap();
    let write = || {
        fs::write(&late, "of a job").unwrap();
        false
    };
    let observer = Meanwhile { progress: || {}, cancelled: write };
    let read = store.read_lock(Duration::ZERO).unwrap();
    let cx = Context::new(1, None, &observer);
    let error = store.restore(&read, 1, &to, RestoreOptions::default(), &cx).unwrap_err();
    assert!(matches!(error, hopmap_checkpoint::CheckpointError::NotEmpty(..)));
    assert_eq!(fs::read_to_string(&late).unwrap(), "of a job");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_file_that_changes_after_listing_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::init(&folder.path().join("store"), Settings::default()).unwrap();
    let input = folder.path().join("input");
    fs::create_dir(&input).unwrap();
    for name in ["a", "b", "c", "z.log"] {
        fs::write(input.join(name), noise(3, 100_000)).unwrap();
    }
    for late in ["z.log", "new"] {
        let write = || fs::write(input.join(late), "one line more").unwrap();
        let observer = Meanwhile { progress: write, cancelled: || false };
        let lock = store.lock("a test", Duration::ZERO).unwrap();
        let cx = Context::new(1, None, &observer);
        let error = store.add(&lock, Source::Folder(&input), &AddOptions::default(), &cx).unwrap_err();
        assert!(matches!(error, hopmap_checkpoint::CheckpointError::Changed(..)), "{late}: {error}");
    }
    assert!(store.numbers().unwrap().is_empty());
}

#[test]
fn a_killed_init_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("store");
    Store::init(&place, Settings::default()).unwrap();
    fs::remove_file(place.join("store.json")).unwrap();
    Store::init(&place, Settings::default()).unwrap();
}

#[test]
fn hard_links_are_restored_by_any_of_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::init(&folder.path().join("store"), Settings::default()).unwrap();
    let input = folder.path().join("input");
    fs::create_dir(&input).unwrap();
    fs::write(input.join("a"), "bytes").unwrap();
    fs::hard_link(input.join("a"), input.join("b")).unwrap();
    add(&store, &input);
    let lock = store.read_lock(Duration::ZERO).unwrap();
    for name in ["a", "b", "./b"] {
        let mut out = Vec::new();
        store.restore_file(&lock, 1, Some(Path::new(name)), &mut out, &Context::detached()).unwrap();
        assert_eq!(out, b"bytes");
    }
}
