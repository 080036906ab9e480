//! Which chunks a store knows, by their hashes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::Store;
use crate::CheckpointError;
use crate::chunk::{ChunkId, KeptHash};

/// All chunks that can be referred to.
#[derive(Debug, Default)]
pub(crate) struct Index {
    chunks: HashMap<KeptHash, ChunkId, BuildHasherDefault<Taken>>,
}

/// Takes the first bytes of a hash as they are: they are as good as any.
#[derive(Debug, Default)]
pub(crate) struct Taken(u64);

impl Hasher for Taken {
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
    /// The chunks of all packs of a store that can be read. Those of others cannot be referred to.
    pub(crate) fn load(store: &Store) -> Result<(Self, Vec<CheckpointError>), CheckpointError> {
        let mut index = Self::default();
        let mut damaged = Vec::new();
        for number in store.pack_numbers()? {
            if let Err(error) = index.load_pack(store, number) {
                damaged.push(error);
            }
        }
        Ok((index, damaged))
    }

    fn load_pack(&mut self, store: &Store, number: u32) -> Result<(), CheckpointError> {
        let pack = store.pack(number)?;
        let hashes = pack.hashes()?;
        for (block, entry) in (0..).zip(pack.blocks()) {
            let Some(entry) = entry else { continue };
            for chunk in 0..entry.lengths.len() as u16 {
                if let Some(hash) = hashes.of(entry, chunk) {
                    self.insert(hash, ChunkId { pack: number, block, chunk });
                }
            }
        }
        Ok(())
    }

    pub(crate) fn get(&self, hash: KeptHash) -> Option<ChunkId> {
        self.chunks.get(&hash).copied()
    }

    pub(crate) fn insert(&mut self, hash: KeptHash, id: ChunkId) {
        self.chunks.entry(hash).or_insert(id);
    }
}
