//! Throughput of codecs, and of a store: adding the second checkpoint of a generated series, and restoring
//! it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use hopmap_checkpoint::codec::{BASED_BLOCK, BLOCK, Block, Codec, decode_into, encode_by};
use hopmap_checkpoint::store::{AddOptions, RestoreOptions, Settings, Source, Store};
use hopmap_checkpoint::{Change, CheckpointError, Generate, GenerateParams, Layout, Width};
use hopmap_model::{CheckpointSeries, Context, Inputs, Outcome, Stage};
use tempfile::TempDir;

fn main() {
    divan::main();
}

const PAGE: usize = 4096;

const ALONE: [Codec; 4] = [Codec::Zstd, Codec::Words, Codec::Halves, Codec::Mixed];
const BASED: [Codec; 3] = [Codec::Prefix, Codec::Changes, Codec::HalfChanges];

/// A block typical of programs: a smooth field of numbers, whose base is the previous step.
struct Field {
    bytes: Vec<u8>,
    base: Vec<u8>,
    lengths: Vec<u32>,
}

impl Field {
    fn new(bytes: usize) -> Self {
        let field = |step: f64| {
            let value = |word: usize| ((word as f64) * 1e-3 + step).sin() + (word % 7) as f64 * 1e-9;
            (0..bytes / 8).flat_map(|word| value(word).to_le_bytes()).collect()
        };
        Self { bytes: field(0.0), base: field(1e-6), lengths: vec![PAGE as u32; bytes / PAGE] }
    }

    fn bases(&self) -> Vec<Option<&[u8]>> {
        self.base.chunks(PAGE).map(Some).collect()
    }

    fn encode(&self, bencher: Bencher<'_, '_>, codec: Codec) {
        let bases = self.bases();
        let block = Block { bytes: &self.bytes, lengths: &self.lengths, bases: &bases };
        let counted = bencher.counter(BytesCount::new(self.bytes.len()));
        counted.bench(|| encode_by(black_box(&block), codec, false));
    }

    fn decode(&self, bencher: Bencher<'_, '_>, codec: Codec) {
        let bases = self.bases();
        let block = Block { bytes: &self.bytes, lengths: &self.lengths, bases: &bases };
        let Ok(encoded) = encode_by(&block, codec, false) else { return };
        let bases = if encoded.uses_bases { bases } else { Vec::new() };
        let mut bytes = vec![0; self.bytes.len()];
        bencher.counter(BytesCount::new(self.bytes.len())).bench_local(|| {
            decode_into(encoded.codec, black_box(&encoded.payload), &self.lengths, &bases, &mut bytes)
        });
        assert!(bytes == self.bytes, "{codec:?} does not round-trip");
    }
}

#[divan::bench(args = ALONE)]
fn encode_new(bencher: Bencher<'_, '_>, codec: Codec) {
    Field::new(BLOCK).encode(bencher, codec);
}

#[divan::bench(args = ALONE)]
fn decode_new(bencher: Bencher<'_, '_>, codec: Codec) {
    Field::new(BLOCK).decode(bencher, codec);
}

#[divan::bench(args = BASED)]
fn encode_based(bencher: Bencher<'_, '_>, codec: Codec) {
    Field::new(BASED_BLOCK).encode(bencher, codec);
}

#[divan::bench(args = BASED)]
fn decode_based(bencher: Bencher<'_, '_>, codec: Codec) {
    Field::new(BASED_BLOCK).decode(bencher, codec);
}

/// A store, and two checkpoints of a 64 MB image as folders.
struct Site {
    folder: TempDir,
    checkpoints: Vec<PathBuf>,
    bytes: u64,
}

impl Site {
    fn new() -> Option<Self> {
        let params = GenerateParams {
            checkpoints: 2,
            ranks: 1,
            bytes: 64 << 20,
            layout: Layout::Dmtcp,
            shared: 0.2,
            changes: vec![
                Change::Moves { pages: 0.02, areas: 1 },
                Change::Words { pages: 0.2, words: 0.1 },
                Change::Drift { share: 0.3, step: 1e-4, width: Width::Double },
            ],
            seed: 7,
        };
        let Ok(Outcome::Done(outputs)) = Generate::run(params, Inputs::new(), &Context::detached()) else {
            return None;
        };
        let series = outputs.get("checkpoints")?.downcast_ref::<CheckpointSeries>()?;
        let folder = tempfile::tempdir().ok()?;
        let mut site = Self { folder, checkpoints: Vec::new(), bytes: 0 };
        for (name, path) in series.files() {
            let place = site.folder.path().join(name);
            let checkpoint = place.parent()?.to_owned();
            std::fs::create_dir_all(&checkpoint).ok()?;
            site.bytes = std::fs::copy(path, &place).ok()?;
            site.checkpoints.push(checkpoint);
        }
        Some(site)
    }

    /// A store with the first checkpoint only.
    fn store(&self) -> Result<(TempDir, Store), CheckpointError> {
        let folder = tempfile::tempdir_in(self.folder.path()).map_err(|source| {
            hopmap_durable::DurableError::Io { action: "create", path: self.folder.path().to_owned(), source }
        })?;
        let store = Store::init(&folder.path().join("store"), Settings::default())?;
        add(&store, &self.checkpoints[0])?;
        Ok((folder, store))
    }
}

fn add(store: &Store, checkpoint: &Path) -> Result<(), CheckpointError> {
    let lock = store.lock("a benchmark", Duration::ZERO)?;
    store.add(&lock, Source::Folder(checkpoint), &AddOptions::default(), &Context::detached())?;
    Ok(())
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn add_the_second(bencher: Bencher<'_, '_>) {
    let Some(site) = Site::new() else { return };
    let counted = bencher.counter(BytesCount::new(site.bytes)).with_inputs(|| site.store());
    counted
        .bench_refs(|store| store.as_ref().map(|(_, store)| add(store, &site.checkpoints[1]).is_ok()).ok());
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn restore_the_second(bencher: Bencher<'_, '_>) {
    let Some(site) = Site::new() else { return };
    let Ok((folder, store)) = site.store() else { return };
    if add(&store, &site.checkpoints[1]).is_err() {
        return;
    }
    let Ok(lock) = store.read_lock(Duration::ZERO) else { return };
    let to = folder.path().join("back");
    let counted =
        bencher.counter(BytesCount::new(site.bytes)).with_inputs(|| _ = std::fs::remove_dir_all(&to));
    counted.bench_refs(|()| {
        let options = RestoreOptions { unsynced: true };
        store.restore(&lock, 2, &to, options, &Context::detached()).is_ok()
    });
}
