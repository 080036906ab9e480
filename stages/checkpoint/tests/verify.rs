//! Verification of complete stores.

use std::time::Duration;

use hopmap_checkpoint::CheckpointError;
use hopmap_checkpoint::store::{AddOptions, RestoreOptions, Settings, Source, Store};
use hopmap_model::Context;

use crate::support::store::Sample;

#[test]
fn an_intact_store_has_no_problems() {
    let sample = Sample::new(6, 42);
    for deep in [false, true] {
        let found = sample.verify(deep);
        assert!(found.problems.is_empty() && found.warnings.is_empty(), "{found:?}");
        assert_eq!(found.intact(), [1, 2, 3, 4, 5, 6]);
        assert!(found.unneeded.is_empty() && found.blocks > 0);
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(json["checkpoints"][5]["whole"], true);
    }
}

#[test]
fn some_checkpoints_can_be_verified() {
    let sample = Sample::new(4, 5);
    let store = sample.store();
    let lock = store.read_lock(Duration::ZERO).unwrap();
    let found = store.verify(&lock, true, Some(&[2, 3]), &Context::detached()).unwrap();
    assert_eq!(found.intact(), [2, 3]);
    let missing = store.verify(&lock, true, Some(&[9]), &Context::detached());
    assert!(matches!(missing, Err(CheckpointError::NoCheckpoint { number: 9, .. })));
}

#[test]
fn statistics_of_a_store_add_up() {
    let sample = Sample::new(5, 8);
    let store = sample.store();
    let lock = store.read_lock(Duration::ZERO).unwrap();
    let statistics = store.statistics(&lock).unwrap();
    let bytes: usize = sample.versions.values().flat_map(|files| files.values()).map(Vec::len).sum();
    assert_eq!((statistics.checkpoints, statistics.bytes), (5, bytes as u64));
    let on_disk = |part: &str| -> u64 {
        let files = std::fs::read_dir(sample.path().join(part)).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    };
    assert_eq!(statistics.packs, on_disk("packs"));
    assert_eq!(statistics.manifests, on_disk("checkpoints"));
    let payloads: u64 = statistics.codecs.iter().map(|share| share.stored).sum();
    assert_eq!(payloads + statistics.index, statistics.packs);
    assert_eq!(statistics.depths.values().sum::<u64>(), statistics.blocks);
    assert_eq!((statistics.prunable, statistics.unneeded), (Some(0), Some(0)));
    assert!(statistics.ratio > 2.0, "{statistics:?}");
    let explained = store.explain(&lock, 4).unwrap();
    assert_eq!(explained.zero + explained.unchanged + explained.known + explained.new, explained.bytes);
    assert_eq!(explained.brought.values().sum::<u64>() + explained.zero, explained.bytes);
    assert_eq!(explained.depths.values().sum::<u64>() + explained.zero, explained.bytes);
    assert_eq!(explained.files.iter().map(|file| file.bytes).sum::<u64>(), explained.bytes);
    assert_eq!(store.list().unwrap().iter().map(|listed| listed.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}

#[test]
fn a_folder_with_links_and_pipes_is_restored_and_synced() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    std::fs::create_dir(&from).unwrap();
    std::fs::write(from.join("file"), "contents").unwrap();
    for (name, target) in [("nowhere", "missing"), ("up", ".."), ("script", "file")] {
        std::os::unix::fs::symlink(target, from.join(name)).unwrap();
    }
    assert!(std::process::Command::new("mkfifo").arg(from.join("pipe")).status().unwrap().success());
    let store = Store::init(&folder.path().join("store"), Settings::default()).unwrap();
    let lock = store.lock("a test", Duration::ZERO).unwrap();
    store.add(&lock, Source::Folder(&from), &AddOptions::default(), &Context::detached()).unwrap();
    let lock = store.read_lock(Duration::ZERO).unwrap();
    let to = folder.path().join("to");
    store.restore(&lock, 1, &to, RestoreOptions { unsynced: false }, &Context::detached()).unwrap();
    assert_eq!(std::fs::read_to_string(to.join("script")).unwrap(), "contents");
    assert_eq!(std::fs::read_link(to.join("nowhere")).unwrap(), std::path::Path::new("missing"));
    assert_eq!(std::fs::read_dir(&to).unwrap().count(), 5);
}
