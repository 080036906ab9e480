//! Index of the chunks of a store by hash.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::Store;
use super::pack::{BlockEntry, Pack};
use super::sparse::ZeroHashes;
use crate::chunk::{ChunkId, KeptHash};
use crate::error::CheckpointError;

/// All chunks that can be referenced.
#[derive(Debug, Default)]
pub(crate) struct Index {
    chunks: HashMap<KeptHash, ChunkId, BuildHasherDefault<FirstBytes>>,
    /// Blocks that cannot be decoded, because a base is missing or was pruned.
    unusable: HashSet<(u32, u32)>,
    /// Chunks that a prune replaced by zeros.
    dead: HashSet<ChunkId>,
}

/// Uses the first bytes of a hash without hashing them again.
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
        // The length of a hash has no information.
    }
}

impl Index {
    /// Indexes the chunks of all readable packs of a store from a number on whose bases exist. Others cannot
    /// be referenced.
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
        // Without hashes it is unknown which chunks are dead; nothing can be encoded against such a pack.
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

    /// Whether all bases of a block exist; they are in earlier packs.
    fn has_bases(&self, entry: &BlockEntry, packs: &HashMap<u32, Arc<Pack>>) -> bool {
        if !self.dead.is_empty() && entry.bases.iter().flatten().any(|base| self.dead.contains(base)) {
            return false;
        }
        let mut last = None;
        entry.bases.iter().flatten().all(|base| {
            let id = (base.pack, base.block);
            // The bases of neighbours are mostly neighbours.
            last.replace(id) == Some(id)
                || packs.get(&base.pack).is_some_and(|pack| pack.block(base.block).is_some())
                    && self.is_usable(base.pack, base.block)
        })
    }

    /// Whether a block can be decoded, according to the tables.
    pub(crate) fn is_usable(&self, pack: u32, block: u32) -> bool {
        self.unusable.is_empty() || !self.unusable.contains(&(pack, block))
    }

    pub(crate) fn get(&self, hash: KeptHash) -> Option<ChunkId> {
        self.chunks.get(&hash).copied()
    }

    fn insert(&mut self, hash: KeptHash, id: ChunkId) {
        self.chunks.entry(hash).or_insert(id);
    }

    /// Makes a chunk the one to reference, replacing any other.
    pub(crate) fn replace(&mut self, hash: KeptHash, id: ChunkId) {
        self.chunks.insert(hash, id);
    }
}
