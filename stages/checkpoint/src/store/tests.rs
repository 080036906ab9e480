//! Manifests and packs with valid checksums and impossible contents: crafted, or randomly damaged and sealed
//! again, since checksums hide such damage from other checks. `HOPMAP_SOAK=1` runs thousands of random cases
//! instead of a hundred; `HOPMAP_SEED=N` repeats one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hopmap_model::Context;
use hopmap_test_support::{Random, damage};
use twox_hash::XxHash3_128;

use super::manifest::{Manifest, Recipe, Run};
use super::pack::{NewBlock, PackWriter};
use super::wire::{Writer, compress, decompress};
use super::{AddOptions, RestoreOptions, Settings, Source, Store};
use crate::chunk::{ChunkHash, ChunkId, Digest, Position};
use crate::codec::Codec;
use crate::error::CheckpointError;
use crate::tree::{Entry, EntryKind, Time};

struct Site {
    folder: tempfile::TempDir,
    store: Store,
}

const CONTENTS: &[u8] = b"what is in the file";

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::init(&folder.path().join("store"), Settings::default()).unwrap();
        Self { folder, store }
    }

    /// A store with one checkpoint, and its manifest.
    fn with_one() -> (Self, Manifest) {
        let site = Self::new();
        let lock = site.store.lock("a test", Duration::ZERO).unwrap();
        let source = Source::Stream("file".into(), Box::new(CONTENTS));
        let added = site.store.add(&lock, source, &AddOptions::default(), &Context::detached()).unwrap();
        (site, added.manifest)
    }

    fn put(&self, manifest: &Manifest) {
        let bytes = manifest.encode().unwrap();
        fs::write(self.store.manifest_path(manifest.number), bytes).unwrap();
    }

    /// Writes a pack of blocks of one-byte chunks, one for each base, with these depths.
    fn pack(&self, number: u32, blocks: &[(u8, Vec<Option<ChunkId>>)]) {
        let path = self.folder.path().join("pack");
        let mut writer = PackWriter::create(path, number).unwrap();
        for (place, (depth, bases)) in (0..).zip(blocks) {
            let payload = vec![number as u8; bases.len().max(1)];
            let hashes = vec![ChunkHash::of(&payload[..1]).kept(); payload.len()];
            let (codec, lengths, bases) = (Codec::Raw, vec![1; payload.len()], bases.clone());
            writer.put(place, NewBlock { codec, depth: *depth, lengths, bases, hashes, payload }).unwrap();
        }
        let (path, _) = writer.finish().unwrap();
        fs::rename(path, self.store.pack_path(number)).unwrap();
    }

    /// Nothing is restored or written outside, and verifying reports the reason. The checkpoint can be
    /// pruned.
    fn refuses(&self, number: u32) {
        let store = Store::open(self.store.folder()).unwrap();
        let lock = store.read_lock(Duration::ZERO).unwrap();
        let to = self.folder.path().join("to");
        let options = RestoreOptions { unsynced: true };
        store.restore(&lock, number, &to, options, &Context::detached()).unwrap_err();
        assert!(!to.exists());
        for deep in [false, true] {
            let found = store.verify(&lock, deep, None, &Context::detached()).unwrap();
            if deep {
                assert!(found.damaged().contains(&number), "{found:?}");
            }
        }
        let siblings: Vec<PathBuf> =
            fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(siblings, [self.store.folder().to_owned()]);
        store.statistics(&lock).unwrap();
        let _ = store.explain(&lock, number);
    }
}

fn entry(path: &str, kind: EntryKind) -> Entry {
    Entry { path: path.into(), kind, mode: 0o755, owner: 0, group: 0, modified: Time::default() }
}

fn file(length: u64) -> EntryKind {
    EntryKind::File { length, holes: Vec::new() }
}

fn zeros(length: u64) -> Recipe {
    let runs = match length {
        0 => Vec::new(),
        _ => vec![Run { first: None, chunks: 1, length, place: Position::default() }],
    };
    Recipe { runs, ..Recipe::default() }
}

#[test]
fn paths_that_lead_out_are_rejected() {
    let link = || EntryKind::Symlink("/tmp".into());
    let folder = || entry("", EntryKind::Folder);
    let cases: Vec<Vec<Entry>> = vec![
        vec![folder(), entry("../file", file(0))],
        vec![folder(), entry("/tmp/hopmap-crafted", file(0))],
        vec![folder(), entry("one/../../file", file(0))],
        vec![folder(), entry("file", file(0)), entry("file", file(0))],
        vec![folder(), entry("link", link()), entry("link/file", file(0))],
        vec![folder(), entry("link", link()), entry("link", file(0))],
        vec![folder(), entry("other", EntryKind::HardLink(7))],
        vec![folder(), entry("missing/file", file(0))],
        vec![entry("", file(0))],
    ];
    for entries in cases {
        let (site, mut manifest) = Site::with_one();
        let files = (0..).zip(&entries).filter(|(_, entry)| matches!(entry.kind, EntryKind::File { .. }));
        manifest.recipes = files.map(|(number, _)| (number, Recipe::default())).collect();
        manifest.entries = entries;
        site.put(&manifest);
        site.refuses(1);
    }
    assert!(!Path::new("/tmp/hopmap-crafted").exists());
}

#[test]
fn more_bytes_than_any_disk_has_are_rejected() {
    let (site, mut manifest) = Site::with_one();
    for lengths in [vec![1 << 60], vec![1 << 62, 1 << 62, 1 << 62, 1 << 62, 1 << 62]] {
        manifest.entries = vec![entry("", EntryKind::Folder)];
        manifest.recipes = BTreeMap::new();
        for (place, &length) in (1..).zip(&lengths) {
            manifest.entries.push(entry(&format!("file{place}"), file(length)));
            manifest.recipes.insert(place, zeros(length));
        }
        site.put(&manifest);
        site.refuses(1);
    }
}

#[test]
fn a_large_number_of_runs_takes_no_memory() {
    let mut out = Writer::default();
    out.number(1 << 32);
    let bytes = compress(&out.finish()).unwrap();
    assert!(decompress(&bytes).is_ok());
    // A small file that decompresses to a large one.
    let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 1).unwrap();
    let claim = |length: u64| [&length.to_le_bytes()[..], &bomb].concat();
    assert!(decompress(&claim(64 << 20)).is_err());
    assert!(decompress(&claim(1 << 60)).is_err());
    // Our own files are read, even if they compress extremely well.
    let long = vec![1; 40 << 20];
    assert!(decompress(&compress(&long).unwrap()).unwrap() == long);
}

#[test]
fn missing_chunks_are_rejected() {
    let (site, intact) = Site::with_one();
    let first = intact.recipes[&1].runs[0].first.unwrap();
    let ids = [
        ChunkId { pack: 7, ..first },
        ChunkId { pack: u32::MAX, ..first },
        ChunkId { block: 1, ..first },
        ChunkId { block: u32::MAX, ..first },
        ChunkId { chunk: 1, ..first },
        ChunkId { chunk: u16::MAX, ..first },
    ];
    for id in ids {
        let mut manifest = intact.clone();
        manifest.recipes.get_mut(&1).unwrap().runs[0].first = Some(id);
        site.put(&manifest);
        site.refuses(1);
    }
    // A run that extends beyond its block, and one with other chunk lengths.
    let length = CONTENTS.len() as u64;
    for (chunks, length) in [(2, length), (1024, length), (1, length - 1)] {
        let mut manifest = intact.clone();
        let run = &mut manifest.recipes.get_mut(&1).unwrap().runs[0];
        (run.chunks, run.length) = (chunks, length);
        manifest.entries[1].kind = file(length * u64::from(chunks));
        site.put(&manifest);
        site.refuses(1);
    }
    site.put(&intact);
    let lock = site.store.read_lock(Duration::ZERO).unwrap();
    let mut out = Vec::new();
    site.store.restore_file(&lock, 1, None, &mut out, &Context::detached()).unwrap();
    assert_eq!(out, CONTENTS);
}

/// A manifest of a one-byte file, the chunk of this pack.
fn one_byte(intact: &Manifest, number: u32) -> Manifest {
    let mut manifest = intact.clone();
    manifest.number = number;
    manifest.entries[1].kind = file(1);
    let run = &mut manifest.recipes.get_mut(&1).unwrap().runs[0];
    run.length = 1;
    run.first = Some(ChunkId { pack: number, block: 0, chunk: 0 });
    manifest
}

#[test]
fn chains_longer_than_declared_terminate() {
    let (site, intact) = Site::with_one();
    let base = |pack| vec![Some(ChunkId { pack, block: 0, chunk: 0 })];
    // A chain of 100 packs that all declare depth 1.
    site.pack(2, &[(0, Vec::new())]);
    for number in 3..100 {
        site.pack(number, &[(1, base(number - 1))]);
    }
    site.put(&one_byte(&intact, 99));
    site.refuses(99);
    let store = Store::open(site.store.folder()).unwrap();
    let lock = store.read_lock(Duration::ZERO).unwrap();
    let error = store.restore_file(&lock, 99, None, &mut Vec::new(), &Context::detached()).unwrap_err();
    assert!(matches!(error, CheckpointError::DamagedBlock { .. }), "{error}");
}

#[test]
fn a_block_that_depends_on_too_many_blocks_is_rejected() {
    let (site, intact) = Site::with_one();
    let bases = |pack, blocks: std::ops::Range<u32>| -> Vec<Option<ChunkId>> {
        blocks.map(|block| Some(ChunkId { pack, block, chunk: 0 })).collect()
    };
    let restore = |number| {
        let store = Store::open(site.store.folder()).unwrap();
        let lock = store.read_lock(Duration::ZERO).unwrap();
        let mut out = Vec::new();
        store.restore_file(&lock, number, None, &mut out, &Context::detached()).map(|_| out)
    };
    // Blocks of 1024 chunks, each with a base in another block: 15 of them depend on 15,360 blocks, 17 on
    // 17,408.
    site.pack(2, &vec![(0, Vec::new()); 17 * 1024]);
    let wide: Vec<_> = (0..17).map(|block| (1, bases(2, block * 1024..block * 1024 + 1024))).collect();
    site.pack(3, &wide);
    site.pack(4, &[(2, bases(3, 0..15))]);
    site.pack(5, &[(2, bases(3, 0..17))]);
    for number in [4, 5] {
        let mut manifest = one_byte(&intact, number);
        let recipe = manifest.recipes.get_mut(&1).unwrap();
        let mut digest = Digest::default();
        digest.chunk(1, ChunkHash::of(&[number as u8]));
        recipe.digest = digest.finish();
        site.put(&manifest);
    }
    assert_eq!(restore(4).unwrap(), [4]);
    let error = restore(5).unwrap_err();
    assert!(error.to_string().contains("depends on too many other blocks"), "{error}");
    assert!(matches!(error, CheckpointError::DamagedBlock { .. }), "{error}");
}

#[test]
fn a_block_with_a_missing_base_is_rejected() {
    let (site, intact) = Site::with_one();
    let at = |pack, block, chunk| vec![Some(ChunkId { pack, block, chunk })];
    for bases in [at(1, 9, 0), at(1, 0, 900), at(2, 0, 0)] {
        site.pack(3, &[(1, bases)]);
        site.put(&one_byte(&intact, 3));
        site.refuses(3);
    }
}

#[test]
fn a_pack_that_depends_on_itself_is_rejected() {
    let (site, intact) = Site::with_one();
    site.pack(3, &[(1, vec![Some(ChunkId { pack: 3, block: 0, chunk: 0 })])]);
    site.put(&one_byte(&intact, 3));
    let error = Store::open(site.store.folder()).unwrap().pack(3).unwrap_err();
    assert!(error.to_string().contains("inconsistent"), "{error}");
    site.refuses(3);
}

#[test]
fn the_largest_number_has_no_successor() {
    let (site, intact) = Site::with_one();
    site.put(&one_byte(&intact, u32::MAX));
    let lock = site.store.lock("a test", Duration::ZERO).unwrap();
    let source = Source::Stream("file".into(), Box::new(CONTENTS));
    let error = site.store.add(&lock, source, &AddOptions::default(), &Context::detached()).unwrap_err();
    assert!(matches!(error, CheckpointError::Setting { .. }), "{error}");
}

/// Bytes with a meaning in numbers of any length.
const TELLING: &[u8] = b"\0\x01\x02\x03\x7f\x80\x81\xff/.";

const TRAILER: usize = 80;

/// A store with three checkpoints of a small folder; the second and the third are deltas against earlier
/// ones.
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

/// Damages the contents of a manifest, and seals it again.
fn damage_manifest(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let (head, rest) = bytes[..bytes.len() - 32].split_at(12);
    let mut content = decompress(rest).unwrap_or_else(|_| panic!("a manifest decompresses"));
    damage(&mut content, random, TELLING);
    let mut bytes = [head, &compress(&content).unwrap()].concat();
    bytes.extend_from_slice(blake3::hash(&bytes).as_bytes());
    bytes
}

/// Damages the table of a pack, and seals it again.
fn damage_pack(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut trailer = bytes[bytes.len() - TRAILER..].to_vec();
    let length = u64::from_le_bytes(trailer[40..48].try_into().unwrap()) as usize;
    let before = bytes.len() - 2 * TRAILER - 2 * length;
    let mut content =
        decompress(&bytes[before..before + length]).unwrap_or_else(|_| panic!("a table decompresses"));
    damage(&mut content, random, TELLING);
    let table = compress(&content).unwrap();
    trailer[40..48].copy_from_slice(&(table.len() as u64).to_le_bytes());
    trailer[48..64].copy_from_slice(&XxHash3_128::oneshot(&table).to_le_bytes());
    let checksum = XxHash3_128::oneshot(&trailer[..64]);
    trailer[64..].copy_from_slice(&checksum.to_le_bytes());
    [&bytes[..before], &table, &table, &trailer, &trailer].concat()
}

/// Restores and verifies everything; returns the contents of the parent folder of the store.
fn use_all(folder: &Path) -> Vec<PathBuf> {
    let Ok(store) = Store::open(&folder.join("store")) else { return Vec::new() };
    let Ok(lock) = store.read_lock(Duration::ZERO) else { return Vec::new() };
    for number in 1..=3 {
        let to = folder.join("to");
        let options = RestoreOptions { unsynced: true };
        if store.restore(&lock, number, &to, options, &Context::detached()).is_ok() {
            // A modified manifest may contain other modes.
            let _ = fs::remove_dir_all(&to);
        }
    }
    // Only termination is checked here.
    let _ = store.verify(&lock, true, None, &Context::detached());
    let _ = store.statistics(&lock);
    drop(lock);
    if let Ok(lock) = store.lock("a test", Duration::ZERO) {
        let source = folder.join("source");
        let _ = store.add(&lock, Source::Folder(&source), &AddOptions::default(), &Context::detached());
    }
    let mut siblings: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into()).collect();
    siblings.sort();
    siblings
}

fn one(seed: u64, intact: &Path, folder: &Path) {
    let mut random = Random(seed);
    let number = 1 + random.below(3);
    let (path, bytes) = match random.below(2) {
        0 => {
            let path = format!("store/checkpoints/{number}");
            (path.clone(), damage_manifest(&fs::read(intact.join(&path)).unwrap(), &mut random))
        }
        _ => {
            let path = format!("store/packs/{number}.pack");
            (path.clone(), damage_pack(&fs::read(intact.join(&path)).unwrap(), &mut random))
        }
    };
    for part in ["store/checkpoints", "store/packs"] {
        fs::create_dir_all(folder.join(part)).unwrap();
        for entry in fs::read_dir(intact.join(part)).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder.join(part).join(entry.file_name())).unwrap();
        }
    }
    fs::write(folder.join(path), bytes).unwrap();
    let siblings = use_all(folder);
    let known = ["source", "store", "to"].map(PathBuf::from);
    assert!(siblings.iter().all(|path| known.contains(path)), "seed {seed}: {siblings:?}");
}

#[test]
fn damage_with_valid_checksums_gives_an_error_or_files_inside_the_folder() {
    let intact = tempfile::tempdir().unwrap();
    drop(store(intact.path()));
    for seed in hopmap_test_support::seeds(100, 5_000) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("store")).unwrap();
        for entry in fs::read_dir(intact.path().join("store")).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                fs::copy(entry.path(), folder.path().join("store").join(entry.file_name())).unwrap();
            }
        }
        fs::create_dir_all(folder.path().join("source")).unwrap();
        fs::write(folder.path().join("source/note"), "another").unwrap();
        one(seed, intact.path(), folder.path());
    }
}
