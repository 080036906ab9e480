//! `kill -9` at any moment of adding and pruning, two concurrent writers, and full or read-only disks.
//!
//! Kills need `HOPMAP_SOAK=1`; `tests/cli/crash_points.rs` kills at every step. Separate disks need
//! `HOPMAP_SYSTEM_TESTS=1` and permission to mount.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hopmap_checkpoint::CheckpointError;
use hopmap_checkpoint::store::{AddOptions, Added, Keep, Settings, Source, Store};
use hopmap_model::Context;
use hopmap_test_support::{only_in_a_soak, system_tests};

use crate::support::store::{Dice, noise, restore_files, verify};

/// The working folder of a child process of this test.
const WORK: &str = "HOPMAP_TEST_CHECKPOINT_WORK";

/// The stream of a seed: pages that change like those of a program, some that are always new, and some that
/// the next three checkpoints share, so that packs become mostly unneeded.
fn contents(seed: u64) -> Vec<u8> {
    let mut bytes = noise(5, 200_000);
    let mut dice = Dice(1);
    for step in 0..seed % 50 {
        let page = dice.below(45) * 4096;
        bytes[page..page + 1000].copy_from_slice(&noise(step, 1000));
    }
    bytes.extend(noise(seed + 1000, 1_200_000));
    (seed.saturating_sub(3)..=seed).rev().for_each(|part| bytes.extend(noise(part + 1_000_000, 100_000)));
    bytes
}

fn add(store: &Store, seed: u64) -> Result<Added, CheckpointError> {
    let bytes = contents(seed);
    let lock = store.lock("a test", Duration::from_secs(20))?;
    let source = Source::Stream("image".into(), Box::new(&bytes[..]));
    store.add(&lock, source, &AddOptions::default(), &Context::detached())
}

fn keep(last: usize) -> Keep {
    Keep { last: Some(last), every: Some(7), ..Keep::default() }
}

/// In a child process of this test: adds and prunes until killed, and logs the start and end of each step.
#[test]
fn a_child_adds_and_prunes() {
    let Some(work) = std::env::var_os(WORK) else { return };
    let work = Path::new(&work);
    let mut log = OpenOptions::new().append(true).create(true).open(work.join("log")).unwrap();
    let lines = fs::read_to_string(work.join("log")).unwrap().lines().count() as u64;
    let store = Store::open(&work.join("store")).unwrap();
    for seed in lines * 100.. {
        let added = add(&store, seed).unwrap();
        writeln!(log, "added {} {seed}", added.manifest.number).unwrap();
        if seed % 3 == 2 {
            let lock = store.lock("a test", Duration::from_secs(20)).unwrap();
            let planned = store.prune(&lock, &keep(4), true, &Context::detached()).unwrap();
            writeln!(log, "removes {:?}", planned.removed).unwrap();
            let done = store.prune(&lock, &keep(4), false, &Context::detached()).unwrap();
            writeln!(log, "rewrote {:?}", done.rewritten).unwrap();
        }
    }
}

fn child(work: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "crash::a_child_adds_and_prunes", "--nocapture"]).env(WORK, work);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Parses the logs of children: the seeds of completed checkpoints, and the checkpoints that may be removed.
fn logged(work: &Path) -> (BTreeMap<u32, u64>, BTreeSet<u32>) {
    let log = fs::read_to_string(work.join("log")).unwrap_or_default();
    let (mut added, mut gone) = (BTreeMap::new(), BTreeSet::new());
    for line in log.lines() {
        if let Some(("added", rest)) = line.split_once(' ') {
            let (number, seed) = rest.split_once(' ').unwrap();
            let twice = added.insert(number.parse().unwrap(), seed.parse().unwrap());
            assert!(twice.is_none(), "{number} was assigned twice");
        } else if let Some(("removes", numbers)) = line.split_once(' ') {
            let numbers = numbers.trim_matches(['[', ']']).split(", ").filter(|number| !number.is_empty());
            gone.extend(numbers.map(|number| number.parse::<u32>().unwrap()));
        }
    }
    (added, gone)
}

/// The store is intact and has all completed checkpoints.
fn check(work: &Path) {
    let store = Store::open(&work.join("store")).unwrap();
    drop(store.lock("a test", Duration::from_secs(5)).unwrap());
    let found = verify(&store, true);
    let (added, gone) = logged(work);
    // An interrupted prune leaves packs of removed manifests; no other warnings are expected.
    let left = found.unneeded.iter().filter(|number| gone.contains(number)).count();
    assert!(found.problems.is_empty() && found.warnings.len() <= left, "{found:?}");
    let there = store.numbers().unwrap();
    for (number, seed) in added.iter().filter(|(number, _)| !gone.contains(number)) {
        assert!(there.contains(number), "{number} is lost");
        let expected = [("image".into(), contents(*seed))].into();
        restore_files(&store, *number, &expected).unwrap();
    }
}

#[test]
fn a_killed_writer_leaves_an_intact_store() {
    if !only_in_a_soak() {
        return;
    }
    let times = 100;
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path();
    Store::init(&work.join("store"), Settings::default()).unwrap();
    let mut dice = Dice(20_261_122);
    for _ in 0..times {
        let before = fs::read_to_string(work.join("log")).unwrap_or_default().lines().count();
        let mut child = child(work);
        // Kills are spread over several additions and prunes, independent of the speed of the machine.
        let steps = dice.below(12);
        while fs::read_to_string(work.join("log")).unwrap_or_default().lines().count() < before + steps {
            assert!(child.try_wait().unwrap().is_none(), "the child exited");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(dice.below(60_000) as u64));
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().code(), None, "the child exited");
        check(work);
    }
    let (added, gone) = logged(work);
    let log = fs::read_to_string(work.join("log")).unwrap();
    let rewrote = log.lines().filter(|line| line.starts_with("rewrote [") && !line.ends_with("[]")).count();
    eprintln!("{times} killed; {} added, {} removed, {rewrote} prunes that rewrote", added.len(), gone.len());
    assert!(added.len() > times && !gone.is_empty() && rewrote > 0, "too little happened");
    let store = Store::open(&work.join("store")).unwrap();
    let next = add(&store, 1).unwrap().manifest.number;
    assert!(added.keys().all(|number| *number < next));
}

#[test]
fn the_second_writer_waits_or_gets_the_holder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::init(&path, Settings::default()).unwrap();
    let lock = store.lock("process 7", Duration::ZERO).unwrap();
    let other = Store::open(&path).unwrap();
    let error = other.lock("process 8", Duration::ZERO).unwrap_err();
    assert!(
        matches!(&error, CheckpointError::Busy { holder, .. } if holder.contains("process 7")),
        "{error}"
    );
    let waits = std::thread::spawn(move || add(&other, 4).unwrap().manifest.number);
    let bytes = contents(3);
    let source = Source::Stream("image".into(), Box::new(&bytes[..]));
    let first = store.add(&lock, source, &AddOptions::default(), &Context::detached()).unwrap();
    drop(lock);
    assert_eq!((first.manifest.number, waits.join().unwrap()), (1, 2));
    assert_eq!(verify(&store, true).intact(), [1, 2]);
}

/// Runs a test of this file in a separate mount namespace, where a script has prepared the folder `disk`.
fn on_a_disk(test: &str, before: &str) {
    if !system_tests() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = format!("set -e\n{before}\nexec \"$0\" --exact crash::{test} --nocapture");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &script]).arg(std::env::current_exe().unwrap());
    let output = command.env(WORK, folder.path()).current_dir(folder.path()).output().unwrap();
    let errors =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("ran on a separate disk"), "{errors}");
}

fn on_its_own() -> Option<std::path::PathBuf> {
    let disk = Path::new(&std::env::var_os(WORK)?).join("disk");
    eprintln!("ran on a separate disk");
    Some(disk)
}

#[test]
fn pruning_removes_packs_on_a_full_disk() {
    on_a_disk("full_disk", "mkdir disk\nmount -t tmpfs -o size=8m tmpfs disk");
}

/// Fills the remaining space.
fn fill(disk: &Path) {
    let mut filler = OpenOptions::new().append(true).create(true).open(disk.join("filler")).unwrap();
    while filler.write(&[7; 4096]).is_ok_and(|written| written > 0) {}
}

#[test]
fn full_disk() {
    let Some(disk) = on_its_own() else { return };
    let store = Store::init(&disk.join("store"), Settings::default()).unwrap();
    let mut added = 0u64;
    // Unrelated contents, until the disk is full.
    let error = loop {
        let bytes = noise(added + 1, 700_000);
        let lock = store.lock("a test", Duration::ZERO).unwrap();
        let source = Source::Stream("image".into(), Box::new(&bytes[..]));
        match store.add(&lock, source, &AddOptions::default(), &Context::detached()) {
            Ok(_) => added += 1,
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("cannot write"), "{error}");
    let last = added as u32;
    fill(&disk);
    assert!(verify(&store, true).problems.is_empty());
    // The last one, whose number cannot be recorded while nothing else is removed.
    let prune = |keep: Keep| {
        let lock = store.lock("a test", Duration::ZERO).unwrap();
        store.prune(&lock, &keep, false, &Context::detached()).unwrap()
    };
    let pruned = prune(Keep { remove: vec![last], ..Keep::default() });
    assert!(pruned.freed > 100_000, "{pruned:?}");
    fill(&disk);
    let pruned = prune(Keep { remove: vec![1, 2, 3], ..Keep::default() });
    assert!(pruned.freed > 300_000, "{pruned:?}");
    let kept: Vec<u32> = (4..last).collect();
    let found = verify(&store, true);
    assert!(found.problems.is_empty(), "{found:?}");
    assert_eq!(found.intact(), kept);
    for &number in &kept {
        let expected = [("image".into(), noise(u64::from(number), 700_000))].into();
        restore_files(&store, number, &expected).unwrap();
    }
    let lock = store.lock("a test", Duration::ZERO).unwrap();
    let source = Source::Stream("image".into(), Box::new(&b"small"[..]));
    let next = store.add(&lock, source, &AddOptions::default(), &Context::detached()).unwrap();
    assert_eq!(next.manifest.number, last + 1);
}

#[test]
fn pruning_punches_holes_into_packs_on_a_full_disk() {
    on_a_disk("full_disk_without_an_unneeded_pack", "mkdir disk\nmount -t tmpfs -o size=16m tmpfs disk");
}

#[test]
fn full_disk_without_an_unneeded_pack() {
    let Some(disk) = on_its_own() else { return };
    let store = Store::init(&disk.join("store"), Settings::default()).unwrap();
    let bytes = noise(3, 6_000_000);
    // The end is in a separate block; its first chunk has no base if the name differs.
    for begin in [0, 5_000_000] {
        let lock = store.lock("a test", Duration::ZERO).unwrap();
        let source = Source::Stream(begin.to_string(), Box::new(&bytes[begin..]));
        store.add(&lock, source, &AddOptions::default(), &Context::detached()).unwrap();
    }
    fill(&disk);
    let prune = || {
        let lock = store.lock("a test", Duration::ZERO).unwrap();
        store.prune(&lock, &Keep { last: Some(1), ..Keep::default() }, false, &Context::detached()).unwrap()
    };
    let length = || fs::metadata(store.pack_path(1)).unwrap().len();
    let before = length();
    let pruned = prune();
    assert!(pruned.rewritten == [1] && pruned.left.is_empty() && pruned.notes.is_empty(), "{pruned:?}");
    assert!(pruned.freed > 2_000_000 && pruned.freed.abs_diff(before - length()) < 10_000, "{pruned:?}");
    let expected = [("5000000".into(), bytes[5_000_000..].to_vec())].into();
    restore_files(&store, 2, &expected).unwrap();
    let found = verify(&store, true);
    assert!(found.problems.is_empty() && found.warnings.is_empty(), "{found:?}");
}

#[test]
fn space_freed_in_one_pack_allows_rewriting_another() {
    on_a_disk("full_disk_with_two_packs", "mkdir disk\nmount -t tmpfs -o size=20m tmpfs disk");
}

#[test]
fn full_disk_with_two_packs() {
    let Some(disk) = on_its_own() else { return };
    let store = Store::init(&disk.join("store"), Settings::default()).unwrap();
    let (first, second) = (noise(3, 6_000_000), noise(4, 2_000_000));
    // All but one block of the first pack can be punched out, but not the only block of the second.
    let parts = second.chunks(100_000).step_by(2).flatten().copied();
    let third: Vec<u8> = first[5_000_000..].iter().copied().chain(parts).collect();
    for (name, bytes) in [("1", &first), ("2", &second), ("3", &third)] {
        let lock = store.lock("a test", Duration::ZERO).unwrap();
        let source = Source::Stream(name.into(), Box::new(&bytes[..]));
        let options = AddOptions { name: name.into(), ..AddOptions::default() };
        store.add(&lock, source, &options, &Context::detached()).unwrap();
    }
    fill(&disk);
    let lock = store.lock("a test", Duration::ZERO).unwrap();
    let keep = Keep { remove: vec![1, 2], ..Keep::default() };
    let pruned = store.prune(&lock, &keep, false, &Context::detached()).unwrap();
    drop(lock);
    assert!(pruned.rewritten == [1, 2] && pruned.left.is_empty() && pruned.notes.is_empty(), "{pruned:?}");
    restore_files(&store, 3, &[("3".into(), third)].into()).unwrap();
    assert!(verify(&store, true).problems.is_empty());
}

#[test]
fn a_store_on_a_read_only_disk_can_be_read() {
    on_a_disk("read_only", "mkdir disk\nmount -t tmpfs -o size=8m tmpfs disk");
}

#[test]
fn read_only() {
    let Some(disk) = on_its_own() else { return };
    let path = disk.join("store");
    let store = Store::init(&path, Settings::default()).unwrap();
    add(&store, 1).unwrap();
    add(&store, 2).unwrap();
    let mounted = Command::new("mount").args(["-o", "remount,ro"]).arg(&disk).status().unwrap();
    assert!(mounted.success());
    let store = Store::open(&path).unwrap();
    assert_eq!(verify(&store, true).intact(), [1, 2]);
    assert_eq!(store.list().unwrap().len(), 2);
    restore_files(&store, 2, &[("image".into(), contents(2))].into()).unwrap();
    let error = add(&store, 3).unwrap_err();
    let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert!(error.to_string().contains("lock") && source.contains("Read-only"), "{error}: {source}");
}
