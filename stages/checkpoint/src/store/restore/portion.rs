//! A part of a file: its chunks decoded, and compared with their hashes.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use crate::CheckpointError;
use crate::chunk::{ChunkHash, ChunkId};
use crate::store::Store;
use crate::store::blocks::Blocks;
use crate::store::digest::Digest;
use crate::store::manifest::Run;
use crate::store::pack::{Hashes, Pack};

/// Bytes of the blocks of a portion, unless it is of one block, however few of their chunks are needed.
const WINDOW: usize = 2 << 20;

/// Runs one after the other in a file, and what is in them.
pub(super) struct Portion {
    blocks: Vec<Arc<Vec<u8>>>,
    /// The block and the place in it of the bytes of each run, or how many zeros it is.
    places: Vec<Place>,
    /// Of all chunks that are not zeros.
    hashes: Vec<ChunkHash>,
}

enum Place {
    Zeros(u64),
    Bytes(usize, Range<usize>),
}

/// What stands in a portion.
pub(super) enum Part<'p> {
    Zeros(u64),
    Bytes(&'p [u8]),
}

/// A block of which chunks are needed.
struct Source {
    /// Which of the blocks of the portion it is.
    number: usize,
    pack: Arc<Pack>,
    hashes: Arc<Hashes>,
}

/// The runs that are a portion together, and the others.
pub(super) fn split<'r>(store: &Store, runs: &'r [Run]) -> (&'r [Run], &'r [Run]) {
    let mut blocks = BTreeSet::new();
    let mut bytes = 0;
    let full = runs.iter().position(|run| {
        let new = run.first.filter(|first| blocks.insert((first.pack, first.block)));
        bytes += new.map_or(0, |first| block_bytes(store, first));
        bytes > WINDOW && blocks.len() > 1
    });
    runs.split_at(full.unwrap_or(runs.len()))
}

/// Bytes of the block of a chunk. Decoding tells why there is none.
fn block_bytes(store: &Store, chunk: ChunkId) -> usize {
    let pack = store.pack(chunk.pack).ok();
    pack.and_then(|pack| Some(pack.block(chunk.block)?.bytes())).unwrap_or(0)
}

impl Portion {
    pub(super) fn read(store: &Store, blocks: &Blocks<'_>, runs: &[Run]) -> Result<Self, CheckpointError> {
        let mut portion =
            Self { blocks: Vec::new(), places: Vec::with_capacity(runs.len()), hashes: Vec::new() };
        let mut sources = HashMap::new();
        for run in runs {
            let Some(first) = run.first else {
                portion.places.push(Place::Zeros(run.length));
                continue;
            };
            let source = match sources.entry((first.pack, first.block)) {
                Entry::Occupied(source) => source.into_mut(),
                Entry::Vacant(place) => {
                    let (pack, hashes) = (store.pack(first.pack)?, store.hashes(first.pack)?);
                    portion.blocks.push(blocks.block(first.pack, first.block)?);
                    place.insert(Source { number: portion.blocks.len() - 1, pack, hashes })
                }
            };
            portion.add(source, run, first, blocks.seed())?;
        }
        Ok(portion)
    }

    /// Compares every chunk of a run with its hash.
    fn add(&mut self, source: &Source, run: &Run, first: ChunkId, seed: u64) -> Result<(), CheckpointError> {
        let pack = &source.pack;
        let missing = || pack.damaged_block(first.block, "a chunk is missing");
        let block = pack.block(first.block).ok_or_else(missing)?;
        let chunks = usize::from(first.chunk)..usize::from(first.chunk) + usize::from(run.chunks);
        let lengths = block.lengths.get(chunks).ok_or_else(missing)?;
        if lengths.iter().any(|&length| u64::from(length) != run.length) {
            return Err(missing());
        }
        let begin = block.range(first.chunk).ok_or_else(missing)?.start;
        let range = begin..begin + lengths.len() * run.length as usize;
        let bytes = self.blocks.get(source.number).and_then(|bytes| bytes.get(range.clone()));
        let contents = bytes.ok_or_else(missing)?.chunks_exact(run.length.max(1) as usize);
        for (chunk, content) in (first.chunk..).zip(contents) {
            let hash = ChunkHash::seeded(seed, content);
            if source.hashes.of(block, chunk) != Some(hash.kept()) {
                return Err(pack.damaged_block(first.block, "a chunk has another hash"));
            }
            self.hashes.push(hash);
        }
        self.places.push(Place::Bytes(source.number, range));
        Ok(())
    }

    /// What stands in it, in order.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.places.iter().map(|place| match place {
            Place::Zeros(bytes) => Part::Zeros(*bytes),
            Place::Bytes(block, range) => {
                let bytes = self.blocks.get(*block).and_then(|block| block.get(range.clone()));
                Part::Bytes(bytes.unwrap_or_default())
            }
        })
    }

    /// Adds its chunks to the digest of its file.
    pub(super) fn digest(&self, runs: &[Run], digest: &mut Digest) {
        let mut hashes = self.hashes.iter();
        for run in runs {
            match run.first {
                None => digest.zeros(run.length),
                Some(_) => {
                    let mine = hashes.by_ref().take(run.chunks.into());
                    mine.for_each(|&hash| digest.chunk(run.length, hash));
                }
            }
        }
    }

    pub(super) fn give_back(self, blocks: &Blocks<'_>) {
        self.blocks.into_iter().for_each(|block| blocks.give_back(block));
    }
}
