//! Pruned stores: the remaining checkpoints are restored exactly, and space is freed.

use std::fs;
use std::time::Duration;

use hopmap_checkpoint::CheckpointError;
use hopmap_checkpoint::store::{AddOptions, Keep, Settings, Source, Store};
use hopmap_model::Context;

use crate::support::store::{self, Sample};

fn assert_intact(sample: &Sample, numbers: &[u32]) {
    let found = sample.verify(true);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!(found.intact(), numbers);
    assert!(found.unneeded.is_empty(), "{:?}", found.unneeded);
    sample.assert_restores(numbers);
}

#[test]
fn the_union_of_the_rules_is_kept_and_restorable() {
    let mut sample = Sample::new(10, 100);
    let store = sample.store();
    let lock = store.lock("a test", Duration::ZERO).unwrap();
    store.pin(&lock, 3).unwrap();
    drop(lock);
    let keep = Keep { last: Some(2), every: Some(4), pinned: vec![1], remove: vec![4], ..Keep::default() };
    let lock = store.lock("a test", Duration::ZERO).unwrap();
    let planned = store.prune(&lock, &keep, true, &Context::detached()).unwrap();
    drop(lock);
    assert_intact(&sample, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let done = sample.prune(&keep).unwrap();
    assert_eq!((&done.removed, &done.kept), (&vec![2, 4, 5, 6, 7], &vec![1, 3, 8, 9, 10]));
    assert_eq!((&planned.removed, &planned.deleted), (&done.removed, &done.deleted));
    // Only rewriting shows whether a pack gets smaller; otherwise it is unchanged.
    assert!(done.rewritten.iter().all(|pack| planned.rewritten.contains(pack)), "{planned:?} {done:?}");
    assert!(done.freed > 0 && done.notes.is_empty(), "{done:?}");
    assert_intact(&sample, &[1, 3, 8, 9, 10]);
    sample.add(7);
    assert_intact(&sample, &[1, 3, 8, 9, 10, 11]);
}

#[test]
fn a_store_pruned_to_the_last_checkpoint_takes_little_more_than_it() {
    let sample = Sample::new(12, 300);
    sample.prune(&Keep { last: Some(1), ..Keep::default() }).unwrap();
    assert_intact(&sample, &[12]);
    let store = sample.store();
    let lock = store.read_lock(Duration::ZERO).unwrap();
    let statistics = store.statistics(&lock).unwrap();
    let unneeded = statistics.unneeded.unwrap();
    assert!(statistics.prunable == Some(0) && unneeded * 4 < statistics.packs, "{statistics:?}");
}

#[test]
fn numbers_are_never_reused() {
    let mut sample = Sample::new(3, 1);
    for expected in 4..7 {
        sample.prune(&Keep { remove: vec![expected - 1], ..Keep::default() }).unwrap();
        sample.add(u64::from(expected));
        assert_eq!(sample.store().latest().unwrap(), Some(expected));
    }
    assert_intact(&sample, &[1, 2, 6]);
}

#[test]
fn a_store_notices_prunes_by_other_processes() {
    let folder = tempfile::tempdir().unwrap();
    let before = Store::init(&folder.path().join("store"), Settings::default()).unwrap();
    let bytes = store::noise(55, 6_000_000);
    // The end is in a separate block; its first chunk has no base if the name differs.
    let add = |store: &Store, begin: usize| {
        let lock = store.lock("a test", Duration::ZERO).unwrap();
        let source = Source::Stream(begin.to_string(), Box::new(&bytes[begin..]));
        store.add(&lock, source, &AddOptions::default(), &Context::detached()).unwrap().manifest.number
    };
    add(&before, 0);
    add(&before, 5_000_000);
    assert!(store::verify(&before, true).problems.is_empty());
    let other = Store::open(before.folder()).unwrap();
    let lock = other.lock("a test", Duration::ZERO).unwrap();
    let done = other.prune(&lock, &Keep { last: Some(1), ..Keep::default() }, false, &Context::detached());
    drop(lock);
    let done = done.unwrap();
    assert!(done.rewritten == [1] && done.freed > 2_000_000, "{done:?}");
    // Removed blocks, which had the first version, must not be referenced.
    assert_eq!(add(&before, 0), 3);
    let found = store::verify(&before, true);
    assert!(found.problems.is_empty() && found.intact() == [2, 3], "{found:?}");
    for (number, begin) in [(2, 5_000_000), (3, 0)] {
        let expected = [(begin.to_string().into(), bytes[begin..].to_vec())].into();
        store::restore_files(&before, number, &expected).unwrap();
    }
}

#[test]
fn forbidden_removals_are_rejected() {
    let sample = Sample::new(4, 2);
    let refused = |keep: Keep| sample.prune(&keep).unwrap_err();
    assert!(matches!(refused(Keep { last: Some(0), ..Keep::default() }), CheckpointError::Setting { .. }));
    assert!(matches!(refused(Keep { every: Some(0), ..Keep::default() }), CheckpointError::Setting { .. }));
    assert!(matches!(refused(Keep { every: Some(9), ..Keep::default() }), CheckpointError::NothingKept));
    let all = Keep { remove: vec![1, 2, 3, 4], ..Keep::default() };
    assert!(matches!(refused(all), CheckpointError::NothingKept));
    let missing = Keep { remove: vec![7], ..Keep::default() };
    assert!(matches!(refused(missing), CheckpointError::NoCheckpoint { number: 7, .. }));
    let store = sample.store();
    let lock = store.lock("a test", Duration::ZERO).unwrap();
    store.pin(&lock, 2).unwrap();
    assert!(store.pin(&lock, 8).is_err());
    drop(lock);
    let pinned = Keep { remove: vec![2], ..Keep::default() };
    assert!(matches!(refused(pinned), CheckpointError::Pinned(2)));
    let reading = store.read_lock(Duration::ZERO).unwrap();
    let busy = Keep { last: Some(1), ..Keep::default() };
    assert!(matches!(refused(busy.clone()), CheckpointError::Busy { .. }));
    drop(reading);
    assert_intact(&sample, &[1, 2, 3, 4]);
    let lock = store.lock("a test", Duration::ZERO).unwrap();
    assert!(store.unpin(&lock, 2).unwrap() && !store.unpin(&lock, 2).unwrap());
    drop(lock);
    sample.prune(&busy).unwrap();
    assert_intact(&sample, &[4]);
}

#[test]
fn an_unreadable_checkpoint_keeps_all_data_until_it_is_removed() {
    let sample = Sample::new(5, 9);
    let path = sample.store().manifest_path(4);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let keep = Keep { remove: vec![1], ..Keep::default() };
    let error = sample.prune(&keep).unwrap_err();
    assert!(
        matches!(&error, CheckpointError::NeedsUnknown(what) if what.contains("checkpoints/4")),
        "{error}"
    );
    assert_eq!(sample.store().numbers().unwrap(), [1, 2, 3, 4, 5]);
    let keep = Keep { remove: vec![4], ..Keep::default() };
    sample.prune(&keep).unwrap();
    assert_intact(&sample, &[1, 2, 3, 5]);
}

#[test]
fn leftovers_of_killed_writers_are_removed() {
    let mut sample = Sample::new(4, 77);
    let packs = sample.path().join("packs");
    fs::copy(packs.join("3.pack"), packs.join("5.pack")).unwrap();
    fs::write(packs.join(".2.pack.tmp"), "half").unwrap();
    fs::write(sample.path().join("checkpoints/.5.0123abcd-12-0.tmp"), "half").unwrap();
    // As if a prune had been killed after renaming manifests to markers: that of the last one, and an earlier
    // one.
    let checkpoints = sample.path().join("checkpoints");
    for number in [2, 4] {
        fs::rename(checkpoints.join(number.to_string()), checkpoints.join(format!("{number}.gone"))).unwrap();
    }
    assert!(sample.verify(true).problems.is_empty());
    sample.prune(&Keep::default()).unwrap();
    assert!(!packs.join("4.pack").exists() && !packs.join("5.pack").exists());
    assert_intact(&sample, &[1, 3]);
    assert_eq!(fs::read_dir(&checkpoints).unwrap().count(), 2);
    sample.add(3);
    assert_intact(&sample, &[1, 3, 5]);
    let hidden = |part: &str| {
        let names = fs::read_dir(sample.path().join(part)).unwrap();
        names.filter(|name| name.as_ref().unwrap().file_name().to_string_lossy().starts_with('.')).count()
    };
    assert_eq!((hidden("packs"), hidden("checkpoints")), (0, 0));
}

#[test]
fn packs_stay_while_their_manifests_are_lost() {
    let mut sample = Sample::new(4, 6);
    let (manifests, last) = (sample.path().join("checkpoints"), sample.path().join("checkpoints/4"));
    let aside = sample.folder.path().join("aside");
    let packs = || sample.store().pack_numbers().unwrap();
    let refused = || {
        let error = sample.store().lock("a test", Duration::ZERO).unwrap_err();
        assert!(matches!(error, CheckpointError::NotTogether { .. }), "{error}");
        error.to_string()
    };
    // The folder is not mounted.
    fs::rename(&manifests, &aside).unwrap();
    fs::create_dir(&manifests).unwrap();
    assert!(refused().starts_with("the manifests of checkpoints 1-4 are missing"));
    assert_eq!(sample.verify(false).damaged(), [1, 2, 3, 4]);
    fs::remove_dir(&manifests).unwrap();
    fs::rename(&aside, &manifests).unwrap();
    // Packs were copied before the manifests and the settings.
    let settings = fs::read(sample.path().join("store.json")).unwrap();
    for number in [3, 4] {
        fs::rename(manifests.join(number.to_string()), sample.folder.path().join(number.to_string()))
            .unwrap();
    }
    let before = String::from_utf8(settings.clone()).unwrap().replace("\"next\": 5", "\"next\": 3");
    fs::write(sample.path().join("store.json"), before).unwrap();
    assert!(refused().starts_with("the manifests of checkpoints 3-4 are missing"));
    fs::write(sample.path().join("store.json"), settings).unwrap();
    fs::rename(sample.folder.path().join("3"), manifests.join("3")).unwrap();
    // One is lost without being recorded as pruned.
    assert_eq!(packs(), [1, 2, 3, 4]);
    drop(sample.store().lock("a test", Duration::ZERO).unwrap());
    for keep in [Keep::default(), Keep { last: Some(1), ..Keep::default() }] {
        let error = sample.prune(&keep).unwrap_err();
        assert!(
            matches!(&error, CheckpointError::NeedsUnknown(what) if what.ends_with("checkpoints/4: it is missing")),
            "{error}"
        );
    }
    assert_eq!(packs(), [1, 2, 3, 4]);
    sample.add(5);
    assert_eq!(sample.verify(true).damaged(), [4]);
    fs::rename(sample.folder.path().join("4"), &last).unwrap();
    assert_intact(&sample, &[1, 2, 3, 4, 5]);
    fs::remove_file(&last).unwrap();
    sample.prune(&Keep { remove: vec![4], ..Keep::default() }).unwrap();
    assert_intact(&sample, &[1, 2, 3, 5]);
}

#[test]
fn a_store_of_format_1_is_read_and_upgraded_to_format_2() {
    let sample = Sample::new(5, 61);
    let path = sample.path().join("store.json");
    sample.prune(&Keep { remove: vec![2], ..Keep::default() }).unwrap();
    sample.prune(&Keep { remove: vec![5], ..Keep::default() }).unwrap();
    let old = r#"{"format": 1, "depth": 2, "epsilon": 0.2, "next": 6, "seed": SEED}"#;
    let old = old.replace("SEED", &sample.store().settings().seed.to_string());
    fs::write(&path, &old).unwrap();
    assert_intact(&sample, &[1, 3, 4]);
    drop(sample.store().lock("a test", Duration::ZERO).unwrap());
    let settings = sample.store().settings().clone();
    assert_eq!((settings.format, settings.next, settings.removed), (2, 6, Some(vec![(2, 2), (5, 5)])));
    assert_intact(&sample, &[1, 3, 4]);
    // Gaps that no prune can have left are not taken for pruned checkpoints.
    fs::write(&path, old.replace("\"next\": 6", "\"next\": 1")).unwrap();
    fs::rename(sample.path().join("checkpoints"), sample.folder.path().join("aside")).unwrap();
    fs::create_dir(sample.path().join("checkpoints")).unwrap();
    let packs = sample.store().pack_numbers().unwrap();
    assert!(matches!(
        sample.store().lock("a test", Duration::ZERO),
        Err(CheckpointError::NotTogether { .. })
    ));
    assert_eq!(sample.store().pack_numbers().unwrap(), packs);
}

#[test]
fn series_of_a_store_do_not_displace_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::init(&folder.path().join("store"), Settings::default()).unwrap();
    let lock = store.lock("a test", Duration::ZERO).unwrap();
    for (version, name) in ["one", "two", "two", "one", "two", "two"].into_iter().enumerate() {
        let bytes = vec![version as u8 + 1; 10_000];
        let source = Source::Stream(name.into(), Box::new(&bytes[..]));
        let options = AddOptions { name: name.into(), ..AddOptions::default() };
        store.add(&lock, source, &options, &Context::detached()).unwrap();
    }
    assert_eq!(store.latest_named("one").unwrap(), Some(4));
    assert_eq!(store.latest_named("three").unwrap(), None);
    let keep = Keep { last: Some(1), ..Keep::default() };
    let pruned = store.prune(&lock, &keep, false, &Context::detached()).unwrap();
    assert_eq!((pruned.kept, pruned.removed), (vec![4, 6], vec![1, 2, 3, 5]));
}
