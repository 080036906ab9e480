//! Manifests and tables of packs that are damaged at random under checksums that are right: behind those nobody else looks.
//!
//! `HOPMAP_SOAK=1` does thousands of cases in place of a hundred; `HOPMAP_SEED=N` repeats one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hopmap_model::Context;
use hopmap_test_support::{Random, damage};
use twox_hash::XxHash3_128;

use super::whole::{compress, decompress};
use super::{AddOptions, RestoreOptions, Settings, Source, Store};

/// Bytes that mean something in numbers of any length.
const TELLING: &[u8] = b"\0\x01\x02\x03\x7f\x80\x81\xff/.";

const TRAILER: usize = 80;

/// A store with three checkpoints of a small folder, the second and the third told by those before.
fn store(folder: &Path) -> Store {
    let store = Store::init(&folder.join("store"), Settings::default()).unwrap();
    for version in 1..=3_u32 {
        let source = folder.join("source");
        fs::create_dir_all(source.join("below")).unwrap();
        let mut random = Random(7);
        let mut bytes: Vec<u8> = (0..20_000).map(|_| random.next() as u8).collect();
        (0..version as usize * 3).for_each(|place| bytes[place * 1000] ^= 0x55);
        fs::write(source.join("below/image"), &bytes).unwrap();
        fs::write(source.join("note"), format!("version {version}")).unwrap();
        let lock = store.lock("a test", Duration::ZERO).unwrap();
        store.add(&lock, Source::Folder(&source), &AddOptions::default(), &Context::detached()).unwrap();
    }
    store
}

/// Damages what a manifest says, and seals it again.
fn damage_manifest(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let (head, rest) = bytes[..bytes.len() - 32].split_at(12);
    let mut said = decompress(rest).unwrap_or_else(|_| panic!("a manifest is whole"));
    damage(&mut said, random, TELLING);
    let mut bytes = [head, &compress(&said).unwrap()].concat();
    bytes.extend_from_slice(blake3::hash(&bytes).as_bytes());
    bytes
}

/// Damages what the table of a pack says, and seals it again.
fn damage_pack(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut trailer = bytes[bytes.len() - TRAILER..].to_vec();
    let length = u64::from_le_bytes(trailer[40..48].try_into().unwrap()) as usize;
    let before = bytes.len() - 2 * TRAILER - 2 * length;
    let mut said = decompress(&bytes[before..before + length]).unwrap_or_else(|_| panic!("a table is whole"));
    damage(&mut said, random, TELLING);
    let table = compress(&said).unwrap();
    trailer[40..48].copy_from_slice(&(table.len() as u64).to_le_bytes());
    trailer[48..64].copy_from_slice(&XxHash3_128::oneshot(&table).to_le_bytes());
    let checksum = XxHash3_128::oneshot(&trailer[..64]);
    trailer[64..].copy_from_slice(&checksum.to_le_bytes());
    [&bytes[..before], &table, &table, &trailer, &trailer].concat()
}

/// Restores and verifies everything; returns what is in the folder beside the store.
fn use_all(folder: &Path) -> Vec<PathBuf> {
    let Ok(store) = Store::open(&folder.join("store")) else { return Vec::new() };
    let Ok(lock) = store.read_lock(Duration::ZERO) else { return Vec::new() };
    for number in 1..=3 {
        let to = folder.join("to");
        let options = RestoreOptions { unsynced: true };
        if store.restore(&lock, number, &to, options, &Context::detached()).is_ok() {
            // A manifest that was changed may give other modes.
            let _ = fs::remove_dir_all(&to);
        }
    }
    // What they say is not asked for here, but that they come to an end.
    let _ = store.verify(&lock, true, None, &Context::detached());
    let _ = store.statistics(&lock);
    drop(lock);
    if let Ok(lock) = store.lock("a test", Duration::ZERO) {
        let source = folder.join("source");
        let _ = store.add(&lock, Source::Folder(&source), &AddOptions::default(), &Context::detached());
    }
    let mut beside: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into()).collect();
    beside.sort();
    beside
}

fn one(seed: u64, whole: &Path, folder: &Path) {
    let mut random = Random(seed);
    let number = 1 + random.below(3);
    let (path, bytes) = match random.below(2) {
        0 => {
            let path = format!("store/checkpoints/{number}");
            (path.clone(), damage_manifest(&fs::read(whole.join(&path)).unwrap(), &mut random))
        }
        _ => {
            let path = format!("store/packs/{number}.pack");
            (path.clone(), damage_pack(&fs::read(whole.join(&path)).unwrap(), &mut random))
        }
    };
    for part in ["store/checkpoints", "store/packs"] {
        fs::create_dir_all(folder.join(part)).unwrap();
        for entry in fs::read_dir(whole.join(part)).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder.join(part).join(entry.file_name())).unwrap();
        }
    }
    fs::write(folder.join(path), bytes).unwrap();
    let begin = Instant::now();
    let beside = use_all(folder);
    let known = ["source", "store", "to"].map(PathBuf::from);
    assert!(beside.iter().all(|path| known.contains(path)), "seed {seed}: {beside:?}");
    assert!(begin.elapsed() < Duration::from_secs(20), "seed {seed} took {:?}", begin.elapsed());
}

#[test]
fn damage_behind_right_checksums_ends_in_an_error_or_in_files_where_they_belong() {
    let whole = tempfile::tempdir().unwrap();
    drop(store(whole.path()));
    for seed in hopmap_test_support::seeds(100, 5_000) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("store")).unwrap();
        for entry in fs::read_dir(whole.path().join("store")).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                fs::copy(entry.path(), folder.path().join("store").join(entry.file_name())).unwrap();
            }
        }
        fs::create_dir_all(folder.path().join("source")).unwrap();
        fs::write(folder.path().join("source/note"), "another").unwrap();
        one(seed, whole.path(), folder.path());
    }
}
