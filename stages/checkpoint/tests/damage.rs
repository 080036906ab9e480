//! Damaged stores: verifying reports the damage, and no restore returns wrong bytes.
//!
//! `HOPMAP_SOAK=1` runs 10,000 cases instead of some hundred; `HOPMAP_SEED=N` repeats one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hopmap_checkpoint::store::{AddOptions, Manifest, Mended, Settings, Source, Store};
use hopmap_test_support::seeds;

use crate::support::store::{self, Dice, Files, Sample, restore_files, restore_folder, verify};

type Contents = Vec<(PathBuf, Vec<u8>)>;

/// Stores whose files are exchanged.
struct Site {
    sample: Sample,
    original: Contents,
    /// The same numbers with other contents; and the same four checkpoints followed by others.
    strangers: [Contents; 2],
}

impl Site {
    fn new() -> Self {
        let sample = Sample::new(8, 1000);
        let other = Sample::new(8, 2000);
        let mut fork = Sample::new(4, 1000);
        (0..4).for_each(|step| fork.add(3000 + step));
        let strangers = [&other, &fork].map(|stranger| {
            let move_to = |(path, bytes): (PathBuf, Vec<u8>)| {
                (sample.path().join(path.strip_prefix(stranger.path()).unwrap()), bytes)
            };
            stranger.files().into_iter().map(move_to).collect()
        });
        let original = sample.files();
        Self { sample, original, strangers }
    }

    fn heal(&self) {
        for (path, bytes) in &self.original {
            if fs::read(path).ok().as_ref() != Some(bytes) {
                fs::write(path, bytes).unwrap();
            }
        }
    }

    /// Damages some file; returns a description.
    fn damage(&self, dice: &mut Dice) -> String {
        let (path, bytes) = &self.original[dice.below(self.original.len())];
        let name = path.strip_prefix(self.sample.path()).unwrap().display();
        let (begin, end) = range(dice, bytes.len());
        let mut changed = bytes.clone();
        let how = match dice.below(10) {
            0 | 1 if !bytes.is_empty() => {
                let at = begin.min(bytes.len() - 1);
                changed[at] ^= 1 << dice.below(8);
                format!("bit at {at}")
            }
            2 => {
                changed.truncate(begin);
                format!("cut at {begin}")
            }
            3 => {
                changed[begin..end].fill(0);
                format!("zeros {begin}-{end}")
            }
            4 => {
                changed[begin..end].iter_mut().for_each(|byte| *byte = dice.next() as u8);
                format!("noise {begin}-{end}")
            }
            5 => {
                changed.extend(store::noise(dice.next(), 1 + dice.below(300)));
                "longer".to_owned()
            }
            6 => {
                let copy = bytes[begin..end].to_vec();
                let to = dice.below(bytes.len() - copy.len() + 1);
                changed[to..to + copy.len()].copy_from_slice(&copy);
                format!("{begin}-{end} again at {to}")
            }
            7 => {
                // Earlier damage may have removed it.
                let _ = fs::remove_file(path);
                return format!("{name} missing");
            }
            8 => {
                let stranger = &self.strangers[dice.below(2)];
                let found = stranger.iter().find(|(other, _)| other == path);
                changed.clone_from(&found.unwrap().1);
                "another store's".to_owned()
            }
            _ => {
                let alike: Vec<_> =
                    self.original.iter().filter(|(other, _)| other.parent() == path.parent()).collect();
                let (other, others) = alike[dice.below(alike.len())];
                changed.clone_from(others);
                fs::write(other, bytes).unwrap();
                format!("swapped with {}", other.display())
            }
        };
        fs::write(path, &changed).unwrap();
        format!("{name}: {how}")
    }
}

/// A range that is often short, and often at an end.
fn range(dice: &mut Dice, length: usize) -> (usize, usize) {
    let begin = match dice.below(3) {
        0 => length.saturating_sub(1 + dice.below(400)),
        1 => dice.below(100).min(length),
        _ => dice.below(length + 1),
    };
    let most = if dice.below(2) == 0 { 16 } else { length };
    (begin, (begin + 1 + dice.below(most)).min(length))
}

/// Checkpoints reported as intact are restored exactly; others are rejected; none is restored wrongly.
fn check(site: &Site, versions: &BTreeMap<u32, Files>, folders: bool) {
    // Unreadable settings are reported.
    let Ok(store) = Store::open(&site.sample.path()) else { return };
    let lock = store.read_lock(std::time::Duration::ZERO);
    if lock.is_err() {
        assert!(!site.sample.path().join("readers").exists());
        return;
    }
    drop(lock);
    let shallow = verify(&store, false);
    let deep = verify(&store, true);
    for state in &deep.checkpoints {
        let Some(expected) = versions.get(&state.number) else { continue };
        let result = match folders {
            true => restore_folder(&store, state.number, site.sample.folder.path(), expected),
            false => restore_files(&store, state.number, expected),
        };
        assert_eq!(result.is_ok(), state.whole, "{}: {:?} {:?}", state.number, result, deep.problems);
        let named = deep.problems.iter().flat_map(|problem| &problem.checkpoints);
        assert_eq!(named.filter(|affected| affected.number == state.number).count() == 0, state.whole);
    }
    for number in shallow.damaged() {
        assert!(deep.damaged().contains(&number), "{number} is damaged only in a shallow verification");
    }
    assert_eq!(deep.problems.is_empty(), deep.damaged().is_empty());
}

#[test]
fn damage_is_found_and_never_restored() {
    let site = Site::new();
    for seed in seeds(250, 10_000) {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut how = vec![site.damage(&mut dice)];
        if dice.below(5) == 0 {
            how.push(site.damage(&mut dice));
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            check(&site, &site.sample.versions, seed % 8 == 0);
        }));
        assert!(result.is_ok(), "HOPMAP_SEED={seed}: {how:?}");
        site.heal();
    }
    assert!(verify(&site.sample.store(), true).problems.is_empty());
    site.sample.assert_restores(&[1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_damaged_block_is_reported_with_exactly_the_affected_files() {
    let sample = Sample::new(5, 7);
    let store = sample.store();
    let pack = store.pack(3).unwrap();
    let (block, entry) =
        pack.blocks().iter().enumerate().find_map(|(block, entry)| Some((block, entry.as_ref()?))).unwrap();
    let path = store.pack_path(3);
    let mut bytes = fs::read(&path).unwrap();
    bytes[entry.offset as usize] ^= 1;
    fs::write(&path, bytes).unwrap();
    for deep in [false, true] {
        let found = sample.verify(deep);
        assert_eq!(found.problems.len(), 1, "{:?}", found.problems);
        let problem = &found.problems[0];
        assert_eq!((problem.pack, problem.block), (Some(3), Some(block as u32)));
        assert_eq!(problem.offset, Some(entry.offset));
        assert!(problem.checkpoints.iter().any(|affected| affected.number == 3));
        assert!(problem.checkpoints.iter().all(|affected| affected.number >= 3 && affected.bytes > 0));
        assert!(problem.checkpoints.iter().all(|affected| affected.files.contains(&"image".into())
            || affected.files.contains(&"part/table".into())));
        assert!([1, 2].iter().all(|number| found.intact().contains(number)), "{:?}", found.intact());
        sample.assert_restores(&found.intact());
    }
}

#[test]
fn a_pack_of_a_modified_copy_is_detected_before_restoring() {
    let (mut sample, mut copy) = (Sample::new(2, 1000), Sample::new(2, 1000));
    sample.add(1);
    copy.add(2);
    fs::copy(copy.store().pack_path(3), sample.store().pack_path(3)).unwrap();
    for deep in [false, true] {
        let found = sample.verify(deep);
        assert_eq!((found.damaged(), found.problems.len()), (vec![3], 1), "{:?}", found.problems);
        assert_eq!(found.problems[0].pack, Some(3));
        assert!(found.problems[0].what.starts_with("it belongs to another store"), "{:?}", found.problems);
        assert_eq!(found.problems[0].checkpoints[0].files, [Path::new("image"), Path::new("part/table")]);
    }
    let store = sample.store();
    let lock = store.read_lock(std::time::Duration::ZERO).unwrap();
    let context = hopmap_model::Context::detached();
    let mut out = Vec::new();
    let error = store.restore_file(&lock, 3, Some(Path::new("image")), &mut out, &context).unwrap_err();
    assert!(error.to_string().contains("it belongs to another store") && out.is_empty(), "{error}");
    // Files that do not need the pack are restored.
    store.restore_file(&lock, 3, Some(Path::new("part/restart.sh")), &mut out, &context).unwrap();
    assert!(out == sample.last[Path::new("part/restart.sh")]);
    drop(lock);
    let keep = hopmap_checkpoint::store::Keep { last: Some(2), ..Default::default() };
    let refused = sample.prune(&keep).unwrap_err();
    assert!(refused.to_string().contains("it belongs to another store"), "{refused}");
    sample.assert_restores(&[1, 2]);
}

#[test]
fn a_lost_manifest_is_reported() {
    let sample = Sample::new(3, 31);
    let store = sample.store();
    // The third shares parts with the second, or nothing; the last number is recorded as well.
    let alone = Manifest { number: 3, ..store.manifest(1).unwrap() }.encode().unwrap();
    let intact = fs::read(store.manifest_path(3)).unwrap();
    for (third, lost) in [(Some(intact), 2), (Some(alone), 2), (None, 3)] {
        let before = fs::read(store.manifest_path(lost)).unwrap();
        third.inspect(|third| fs::write(store.manifest_path(3), third).unwrap());
        fs::remove_file(store.manifest_path(lost)).unwrap();
        let found = sample.verify(false);
        assert_eq!((found.damaged(), found.problems.len()), (vec![lost], 1), "{found:?}");
        assert_eq!(
            (&found.problems[0].path, &*found.problems[0].what),
            (&store.manifest_path(lost), "it is missing")
        );
        assert!(found.warnings.is_empty() && !found.unneeded.contains(&lost), "{found:?}");
        let lock = store.read_lock(std::time::Duration::ZERO).unwrap();
        assert_eq!(store.statistics(&lock).unwrap().damaged.len(), 1);
        fs::write(store.manifest_path(lost), before).unwrap();
    }
    // A prune removes both.
    let sample = Sample::new(3, 31);
    sample.prune(&hopmap_checkpoint::store::Keep { remove: vec![2], ..Default::default() }).unwrap();
    let found = sample.verify(false);
    assert!(found.problems.is_empty() && found.warnings.is_empty(), "{found:?}");
}

#[test]
fn duplicated_data_survives_the_loss_of_one_copy_and_is_repaired() {
    let sample = Sample::new(3, 11);
    let path = sample.store().pack_path(2);
    let intact = fs::read(&path).unwrap();
    // The last trailer, the first table, the header.
    for at in [intact.len() - 10, intact.len() - 90, 3] {
        let mut bytes = intact.clone();
        bytes[at] ^= 16;
        fs::write(&path, bytes).unwrap();
        let found = sample.verify(true);
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        assert_eq!((found.warnings.len(), &*found.worn), (1, &[2][..]), "{:?}", found.warnings);
        sample.assert_restores(&[1, 2, 3]);
        let store = sample.store();
        let lock = store.lock("a test", std::time::Duration::ZERO).unwrap();
        let mended = store.discard_damaged(&lock, &hopmap_model::Context::detached()).unwrap();
        assert_eq!((mended.discarded, mended.repaired), (vec![], vec![2]));
        assert!(fs::read(&path).unwrap() == intact);
        assert!(sample.verify(true).worn.is_empty());
    }
}

#[test]
fn checkpoints_added_after_discarding_damaged_blocks_are_intact() {
    let mut sample = Sample::new(2, 31);
    let store = sample.store();
    let block = store.pack(1).unwrap().blocks().iter().flatten().next().unwrap().clone();
    let path = store.pack_path(1);
    let mut bytes = fs::read(&path).unwrap();
    bytes[block.offset as usize] ^= 1;
    fs::write(&path, bytes).unwrap();
    let lock = store.lock("a test", std::time::Duration::ZERO).unwrap();
    let mended = store.discard_damaged(&lock, &hopmap_model::Context::detached()).unwrap();
    assert_eq!((mended.discarded, mended.repaired), (vec![(1, 0)], vec![]));
    assert_eq!(store.discard_damaged(&lock, &hopmap_model::Context::detached()).unwrap(), Mended::default());
    drop(lock);
    let before = sample.verify(true);
    assert_eq!(before.damaged(), [1, 2]);
    assert!(before.problems.iter().all(|problem| problem.what == "it is missing"), "{before:?}");
    sample.add(99);
    assert_eq!(sample.verify(true).intact(), [3]);
    sample.assert_restores(&[3]);
}

/// Without a previous `verify --discard`: nothing is built on a damaged block.
#[test]
fn checkpoints_added_after_a_damaged_block_are_intact() {
    for pack in 1..=2 {
        let mut sample = Sample::new(2, 31);
        let store = sample.store();
        let block = store.pack(pack).unwrap().blocks().iter().flatten().next().unwrap().clone();
        let path = store.pack_path(pack);
        let mut bytes = fs::read(&path).unwrap();
        bytes[block.offset as usize] ^= 1;
        fs::write(&path, bytes).unwrap();
        // The same contents again, and the next checkpoint.
        sample.add_files(sample.last.clone());
        sample.add(99);
        assert_eq!(
            sample.verify(true).intact(),
            (1..=4).filter(|&it| it > 2 || it < pack).collect::<Vec<_>>()
        );
        sample.assert_restores(&[3, 4]);
    }
}

#[test]
fn damage_ends_at_a_checkpoint_that_is_stored_in_full() {
    let mut sample = Sample::of(Settings { whole_every: 3, ..Settings::default() });
    sample.add_files(store::first(5));
    (0..6).for_each(|step| sample.add(step));
    // Data of the second checkpoint that the sixth lacks.
    sample.add_files(sample.versions[&2].clone());
    let store = sample.store();
    let manifests: Vec<_> = (1..=8).map(|number| store.manifest(number).unwrap()).collect();
    let built: Vec<_> = manifests.iter().map(|manifest| (manifest.whole, manifest.since)).collect();
    assert_eq!(built, [(1, 0), (1, 1), (1, 2), (4, 0), (4, 1), (4, 2), (7, 0), (7, 1)]);
    assert_eq!(sample.verify(true).intact(), [1, 2, 3, 4, 5, 6, 7, 8]);
    for full in [1, 4, 7] {
        let path = store.pack_path(full);
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let touched: Vec<u32> = (full..full + 3).filter(|&number| number <= 8).collect();
        assert_eq!(sample.verify(true).damaged(), touched);
        fs::write(&path, bytes).unwrap();
    }
    let lock = store.lock("a test", std::time::Duration::ZERO).unwrap();
    let (bytes, context) = (sample.last[Path::new("image")].clone(), hopmap_model::Context::detached());
    let source = || Source::Stream("image".into(), Box::new(&bytes[..]));
    let options = AddOptions { whole: true, ..AddOptions::default() };
    let added = store.add(&lock, source(), &options, &context).unwrap();
    assert_eq!((added.manifest.whole, added.manifest.earlier, added.manifest.figures.known), (9, 0, 0));
    assert_eq!(store.add(&lock, source(), &AddOptions::default(), &context).unwrap().manifest.figures.new, 0);
    drop(lock);
    (1..9).for_each(|number| fs::remove_file(store.pack_path(number)).unwrap());
    assert_eq!(sample.verify(true).intact(), [9, 10]);
}

#[test]
fn checkpoints_added_after_packs_were_lost_are_intact() {
    for missing in 1..=3 {
        let mut sample = Sample::new(3, 31);
        fs::remove_file(sample.store().pack_path(missing)).unwrap();
        assert!(sample.verify(true).damaged().contains(&missing));
        sample.add(99);
        assert!(sample.verify(true).intact().contains(&4), "{missing}");
        sample.assert_restores(&[4]);
    }
}

#[test]
fn damage_of_unneeded_data_is_reported_and_affects_nothing() {
    let sample = Sample::new(3, 31);
    let store = sample.store();
    let block = store.pack(3).unwrap().blocks().iter().flatten().next().unwrap().clone();
    let path = store.pack_path(3);
    let mut bytes = fs::read(&path).unwrap();
    bytes[block.offset as usize] ^= 1;
    fs::write(&path, bytes).unwrap();
    // As a killed prune leaves it: a later checkpoint has no pack.
    let mut manifest = store.manifest(2).unwrap();
    manifest.number = 3;
    fs::write(store.manifest_path(3), manifest.encode().unwrap()).unwrap();
    let found = sample.verify(true);
    assert!(found.problems.is_empty() && found.unneeded == [3], "{found:?}");
    assert!(found.warnings.iter().any(|warning| warning.contains("checksum")), "{found:?}");
    assert_eq!(found.intact(), [1, 2, 3]);
}
