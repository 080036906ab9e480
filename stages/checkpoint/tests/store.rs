//! Checkpoints go into a store and come back as they were.

use std::fs;
use std::path::Path;
use std::time::Duration;

use hopmap_checkpoint::store::{AddOptions, RestoreOptions, Settings, Source, Store};
use hopmap_model::Context;

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
fn a_stream_comes_back_as_it_was() {
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
