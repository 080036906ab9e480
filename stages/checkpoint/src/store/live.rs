//! Which blocks checkpoints need: those their chunks are in, and those by which these are told. And which chunks of them: a block may be
//! needed for a few.

use std::collections::{BTreeMap, BTreeSet};

use super::Store;
use super::manifest::Manifest;
use super::pack::MOST_CHUNKS;
use crate::CheckpointError;
use crate::chunk::ChunkId;

/// Blocks that are needed, by their packs.
#[derive(Debug, Default)]
pub(crate) struct Live {
    packs: BTreeMap<u32, BTreeSet<u32>>,
}

impl Live {
    /// The blocks that some checkpoints need, and what cannot be read and hides which others they need.
    pub(crate) fn of(store: &Store, numbers: &[u32]) -> (Self, Vec<CheckpointError>) {
        let mut live = Self::default();
        let mut hidden = Vec::new();
        for &number in numbers {
            match store.manifest(number) {
                Ok(manifest) => {
                    live.take(&manifest);
                    let others = store.other_packs(&manifest, |_| true);
                    hidden.extend(others.into_iter().map(|pack| store.other_pack(pack)));
                }
                Err(error) => hidden.push(error),
            }
        }
        hidden.extend(live.close(store));
        (live, hidden)
    }

    /// Adds the blocks that the chunks of a checkpoint are in.
    pub(crate) fn take(&mut self, manifest: &Manifest) {
        for run in manifest.recipes.values().flat_map(|recipe| &recipe.runs) {
            if let Some(first) = run.first {
                self.insert(first.pack, first.block);
            }
        }
    }

    fn insert(&mut self, pack: u32, block: u32) {
        self.packs.entry(pack).or_default().insert(block);
    }

    /// Adds the blocks by which others are told. The packs that cannot be read come back: what they need is not known.
    pub(crate) fn close(&mut self, store: &Store) -> Vec<CheckpointError> {
        let mut hidden = Vec::new();
        let mut below = Some(u32::MAX);
        // Packs only lead to packs before them, so one way through from the last to the first finds everything.
        while let Some((&number, blocks)) = below.and_then(|last| self.packs.range(..=last).next_back()) {
            match store.pack(number) {
                Ok(pack) => {
                    let entries = blocks.iter().filter_map(|&block| pack.block(block));
                    let bases = entries.flat_map(|entry| entry.bases.iter().flatten());
                    let bases: BTreeSet<(u32, u32)> = bases.map(|base| (base.pack, base.block)).collect();
                    bases.into_iter().for_each(|(pack, block)| self.insert(pack, block));
                }
                Err(error) => hidden.push(error),
            }
            below = number.checked_sub(1);
        }
        hidden
    }

    /// The packs of which something is needed, ascending, and the needed blocks of each.
    pub(crate) fn packs(&self) -> impl Iterator<Item = (u32, &BTreeSet<u32>)> {
        self.packs.iter().map(|(&pack, blocks)| (pack, blocks))
    }

    /// The needed blocks of a pack.
    pub(crate) fn blocks(&self, pack: u32) -> Option<&BTreeSet<u32>> {
        self.packs.get(&pack)
    }
}

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
