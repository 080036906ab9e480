//! Sparse blocks, from which a prune removed chunks: remaining data is right, also after more additions, and
//! space is freed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use hopmap_checkpoint::store::{Keep, Pruned, Store};
use hopmap_model::Context;
use hopmap_test_support::soak;
use proptest::prelude::*;

use crate::support::store::{Dice, Files, Sample, noise};

const PAGE: usize = 4096;

fn assert_intact(sample: &Sample, numbers: &[u32]) {
    let found = sample.verify(true);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!(found.intact(), numbers);
    assert!(found.unneeded.is_empty(), "{:?}", found.unneeded);
    sample.assert_restores(numbers);
}

fn keep_last(sample: &Sample, last: usize) -> Pruned {
    sample.prune(&Keep { last: Some(last), ..Keep::default() }).unwrap()
}

fn dry_run(sample: &Sample, keep: &Keep) -> Pruned {
    let store = sample.store();
    let lock = store.lock("a test", Duration::ZERO).unwrap();
    store.prune(&lock, keep, true, &Context::detached()).unwrap()
}

fn stored(sample: &Sample) -> u64 {
    sample.files().iter().map(|(_, bytes)| bytes.len() as u64).sum()
}

fn image(bytes: Vec<u8>) -> Files {
    Files::from([("image".into(), bytes)])
}

/// Three checkpoints of a large image; the last one needs little of the first one's pack.
fn large() -> Sample {
    let mut sample = Sample::empty();
    let mut bytes = noise(5, 700 * PAGE);
    sample.add_files(image(bytes.clone()));
    for (page, content) in bytes.chunks_mut(PAGE).enumerate().filter(|(page, _)| page % 50 != 0) {
        content.copy_from_slice(&noise(10_000 + page as u64, PAGE));
    }
    sample.add_files(image(bytes.clone()));
    bytes[..PAGE].fill(7);
    sample.add_files(image(bytes));
    sample
}

#[test]
fn statistics_predict_the_bytes_that_a_prune_frees() {
    let sample = large();
    let store = sample.store();
    let lock = store.read_lock(Duration::ZERO).unwrap();
    let nothing = store.statistics(&lock).unwrap();
    assert_eq!((nothing.prunable, nothing.unneeded), (Some(0), Some(0)));
    // As a killed prune leaves it.
    for path in [1, 2].map(|number| store.manifest_path(number)) {
        fs::rename(&path, path.with_extension("gone")).unwrap();
    }
    let predicted = store.statistics(&lock).unwrap();
    drop(lock);
    let done = sample.prune(&Keep::default()).unwrap();
    let (freed, predicted) = (done.freed as f64, predicted.prunable.unwrap() as f64);
    assert!(freed > 1.5e6 && (predicted / freed - 1.0).abs() < 0.2, "{predicted} {freed}");
    let lock = store.read_lock(Duration::ZERO).unwrap();
    assert_eq!(store.statistics(&lock).unwrap().prunable, Some(0));
}

#[test]
fn a_large_block_with_few_needed_chunks_gets_small() {
    let mut sample = large();
    let before = stored(&sample);
    let predicted = dry_run(&sample, &Keep { last: Some(1), ..Keep::default() });
    assert_eq!(stored(&sample), before);
    let done = keep_last(&sample, 1);
    assert_eq!((&predicted.deleted, &predicted.rewritten), (&done.deleted, &done.rewritten));
    assert_eq!(done.rewritten, [1]);
    let (freed, predicted) = (done.freed as f64, predicted.freed as f64);
    assert!(freed > 1.5e6 && (predicted / freed - 1.0).abs() < 0.2, "{predicted} {freed}");
    assert!(done.freed.abs_diff(before - stored(&sample)) < 300, "{done:?}");
    assert_intact(&sample, &[3]);
    // Sparse blocks are not rewritten again.
    let again = keep_last(&sample, 1);
    assert!(again.rewritten.is_empty() && again.freed == 0, "{again:?}");
    // Removed data is stored again, existing data is not.
    let before = stored(&sample);
    sample.add_files(sample.versions[&3].clone());
    assert!(stored(&sample) - before < 2000);
    sample.add_files(sample.versions[&1].clone());
    assert!(stored(&sample) - before > 1_500_000);
    assert_intact(&sample, &[3, 4, 5]);
}

#[test]
fn blocks_with_dead_bases_are_never_referenced() {
    let mut sample = Sample::empty();
    let old = noise(3, 64 * PAGE);
    sample.add_files(image(old.clone()));
    let mut changed = old.clone();
    changed.chunks_mut(PAGE).for_each(|page| page[100] ^= 1);
    // Prevents rewriting of the second pack.
    let ballast = noise(4, 256 * PAGE);
    let mut second = image(changed);
    second.insert("ballast".into(), ballast.clone());
    sample.add_files(second.clone());
    let mut third = image(old[..PAGE].to_vec());
    third.insert("ballast".into(), ballast);
    sample.add_files(third);
    let done = keep_last(&sample, 1);
    assert_eq!(done.rewritten, [1]);
    assert_intact(&sample, &[3]);
    sample.add_files(second);
    assert_intact(&sample, &[3, 4]);
}

#[test]
fn any_number_of_threads_writes_the_same_packs() {
    let mut sample = Sample::empty();
    let mut dice = Dice(77);
    sample.add_files(image(noise(8, 300 * PAGE)));
    for _ in 0..3 {
        let files = next(&sample, &mut dice, 60);
        sample.add_files(files);
    }
    let other = sample.folder.path().join("other");
    for (path, bytes) in sample.files() {
        let path = other.join(path.strip_prefix(sample.path()).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let prune = |store: &Path, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let store = Store::open(store).unwrap();
        let lock = store.lock("a test", Duration::ZERO).unwrap();
        let keep = Keep { last: Some(1), ..Keep::default() };
        let done = pool.install(|| store.prune(&lock, &keep, false, &Context::detached())).unwrap();
        assert!(!done.rewritten.is_empty());
        let packs = store.pack_numbers().unwrap();
        packs.iter().map(|&pack| fs::read(store.pack_path(pack)).unwrap()).collect::<Vec<_>>()
    };
    assert!(prune(&sample.path(), 1) == prune(&other, 4));
    assert_intact(&sample, &[4]);
}

/// Changes some pages completely, some in a word, and takes some from an earlier version.
fn next(sample: &Sample, dice: &mut Dice, part: usize) -> Files {
    let mut files = sample.last.clone();
    let numbers: Vec<u32> = sample.versions.keys().copied().collect();
    let earlier = &sample.versions[&numbers[dice.below(numbers.len())]];
    for (path, bytes) in &mut files {
        let old = &earlier[Path::new(path)];
        for (page, content) in bytes.chunks_exact_mut(PAGE).enumerate() {
            if dice.below(100) >= part {
                continue;
            }
            match dice.below(4) {
                0 => content.copy_from_slice(&noise(dice.next(), PAGE)),
                1 => content.copy_from_slice(old.chunks_exact(PAGE).nth(page).unwrap_or(&[9; PAGE])),
                2 if dice.below(4) == 0 => content.fill(0),
                _ => content[dice.below(PAGE)] ^= 1 + dice.below(255) as u8,
            }
        }
    }
    files
}

/// Random checkpoints and prunes. Returns the bytes that all prunes freed.
fn random_series(seed: u64, steps: usize) -> u64 {
    let mut dice = Dice(seed);
    let mut sample = Sample::empty();
    let text: Vec<u8> = (0..30_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
    sample.add_files(Files::from([("a".into(), noise(seed, 150 * PAGE)), ("b".into(), text)]));
    let mut freed = 0;
    for _ in 0..steps {
        let part = [5, 40, 90][dice.below(3)];
        let files = next(&sample, &mut dice, part);
        sample.add_files(files);
        let mut numbers: Vec<u32> = sample.store().numbers().unwrap();
        if dice.below(2) == 0 && numbers.len() > 1 {
            let remove: Vec<u32> =
                numbers[..numbers.len() - 1].iter().copied().filter(|_| dice.below(3) > 0).collect();
            numbers.retain(|number| !remove.contains(number));
            let done = sample.prune(&Keep { remove, ..Keep::default() }).unwrap();
            assert!(done.notes.is_empty(), "{done:?}");
            freed += done.freed;
            assert_intact(&sample, &numbers);
        }
    }
    let numbers = sample.store().numbers().unwrap();
    assert_intact(&sample, &numbers);
    freed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_prunes_keep_needed_data(seed in any::<u64>()) {
        random_series(seed, 8);
    }
}

#[test]
fn many_random_prunes_in_a_soak_test() {
    let series = if soak() { 60 } else { 2 };
    let freed: u64 = (0..series).map(|seed| random_series(seed * 31 + 7, 16)).sum();
    assert!(freed > 0);
}
