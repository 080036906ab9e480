//! Which chunks a store knows, by their hashes.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::Store;
use super::pack::{BlockEntry, Pack};
use super::sparse::ZeroHashes;
use crate::CheckpointError;
use crate::chunk::{ChunkId, KeptHash};

/// All chunks that can be referred to.
#[derive(Debug, Default)]
pub(crate) struct Index {
    chunks: HashMap<KeptHash, ChunkId, BuildHasherDefault<FirstBytes>>,
    /// Blocks that cannot be decoded, because one that they are deltas against is not there, or dead where they need it.
    unusable: HashSet<(u32, u32)>,
    /// Chunks of which a prune left zeros.
    dead: HashSet<ChunkId>,
}

/// Takes the first bytes of a hash as they are: they are as good as any.
#[derive(Debug, Default)]
pub(crate) struct FirstBytes(u64);

impl Hasher for FirstBytes {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for (place, &byte) in bytes.iter().take(8).enumerate() {
            self.0 ^= u64::from(byte) << (8 * place);
        }
    }

    fn write_usize(&mut self, _: usize) {
        // The length of a hash tells nothing.
    }
}

impl Index {
    /// The chunks of all packs of a store from a number on that can be read, and that are deltas against nothing before. Those of others
    /// cannot be referred to.
    pub(crate) fn load(store: &Store, first: u32) -> Result<(Self, Vec<CheckpointError>), CheckpointError> {
        let mut index = Self::default();
        let mut damaged = Vec::new();
        let mut packs = HashMap::new();
        let mut zeros = ZeroHashes::new(store.settings().seed);
        for number in store.pack_numbers()?.into_iter().filter(|&number| number >= first) {
            if let Err(error) = index.load_pack(store, number, &mut packs, &mut zeros) {
                damaged.push(error);
            }
        }
        Ok((index, damaged))
    }

    fn load_pack(
        &mut self,
        store: &Store,
        number: u32,
        packs: &mut HashMap<u32, Arc<Pack>>,
        zeros: &mut ZeroHashes,
    ) -> Result<(), CheckpointError> {
        let pack = store.pack(number)?;
        // Without its hashes it is not known which of its chunks are dead; nothing can be a delta against it then.
        let hashes = pack.hashes()?;
        packs.insert(number, Arc::clone(&pack));
        for (block, entry) in (0..).zip(pack.blocks()) {
            if entry.as_ref().is_some_and(|entry| !self.has_bases(entry, packs)) {
                self.unusable.insert((number, block));
            }
        }
        for (block, entry) in (0..).zip(pack.blocks()) {
            let Some(entry) = entry.as_ref().filter(|_| self.is_usable(number, block)) else { continue };
            for (chunk, &length) in (0..).zip(&entry.lengths) {
                let Some(hash) = hashes.of(entry, chunk) else { continue };
                let id = ChunkId { pack: number, block, chunk };
                match zeros.is_dead(length, hash) {
                    true => drop(self.dead.insert(id)),
                    false => self.insert(hash, id),
                }
            }
        }
        Ok(())
    }

    /// Whether all chunks are there that a block is a delta against; they are in packs before.
    fn has_bases(&self, entry: &BlockEntry, packs: &HashMap<u32, Arc<Pack>>) -> bool {
        if !self.dead.is_empty() && entry.bases.iter().flatten().any(|base| self.dead.contains(base)) {
            return false;
        }
        let mut last = None;
        entry.bases.iter().flatten().all(|base| {
            let id = (base.pack, base.block);
            // Neighbours are mostly deltas against neighbours.
            last.replace(id) == Some(id)
                || packs.get(&base.pack).is_some_and(|pack| pack.block(base.block).is_some())
                    && self.is_usable(base.pack, base.block)
        })
    }

    /// Whether a block can be decoded, as far as tables tell.
    pub(crate) fn is_usable(&self, pack: u32, block: u32) -> bool {
        self.unusable.is_empty() || !self.unusable.contains(&(pack, block))
    }

    pub(crate) fn get(&self, hash: KeptHash) -> Option<ChunkId> {
        self.chunks.get(&hash).copied()
    }

    fn insert(&mut self, hash: KeptHash, id: ChunkId) {
        self.chunks.entry(hash).or_insert(id);
    }

    /// Makes a chunk the one to refer to, whatever it was before.
    pub(crate) fn replace(&mut self, hash: KeptHash, id: ChunkId) {
        self.chunks.insert(hash, id);
    }
}
