//! Which chunks are needed: a block may be needed for a few of its chunks.

use std::collections::BTreeMap;

use super::super::Store;
use super::super::manifest::Manifest;
use super::super::pack::MOST_CHUNKS;
use crate::CheckpointError;
use crate::chunk::ChunkId;

/// Some of the chunks of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ChunkSet([u64; MOST_CHUNKS / 64]);

impl ChunkSet {
    fn insert(&mut self, chunk: u16) {
        // No block has chunks beyond: a manifest that tells of such is not this store's.
        if let Some(word) = self.0.get_mut(usize::from(chunk / 64)) {
            *word |= 1 << (chunk % 64);
        }
    }

    /// Whether a chunk is one of them.
    pub(crate) fn contains(&self, chunk: u16) -> bool {
        self.0.get(usize::from(chunk / 64)).is_some_and(|word| word >> (chunk % 64) & 1 == 1)
    }
}

/// Chunks that are needed, by their packs and blocks.
#[derive(Debug, Default)]
pub(crate) struct LiveChunks {
    packs: BTreeMap<u32, BTreeMap<u32, ChunkSet>>,
}

impl LiveChunks {
    /// The chunks that the files of some checkpoints consist of; not those by which these are told.
    pub(crate) fn of(store: &Store, numbers: &[u32]) -> Result<Self, CheckpointError> {
        let mut live = Self::default();
        for &number in numbers {
            live.take(&store.manifest(number)?);
        }
        Ok(live)
    }

    fn take(&mut self, manifest: &Manifest) {
        for run in manifest.recipes.values().flat_map(|recipe| &recipe.runs) {
            let Some(first) = run.first else { continue };
            let block = self.packs.entry(first.pack).or_default().entry(first.block).or_default();
            (0..run.chunks).for_each(|step| block.insert(first.chunk.saturating_add(step)));
        }
    }

    /// Adds a chunk.
    pub(crate) fn insert(&mut self, id: ChunkId) {
        self.packs.entry(id.pack).or_default().entry(id.block).or_default().insert(id.chunk);
    }

    /// The needed chunks of a pack by their blocks; none if nothing of it is needed.
    pub(crate) fn blocks(&self, pack: u32) -> Option<&BTreeMap<u32, ChunkSet>> {
        self.packs.get(&pack)
    }
}
