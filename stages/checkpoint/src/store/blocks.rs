//! Decoded blocks, the last ones kept.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::Store;
use crate::CheckpointError;
use crate::chunk::ChunkId;
use crate::codec;

/// Decodes blocks of a store and keeps those that were used last. Blocks that others are told by are decoded with them.
#[derive(Debug)]
pub struct Blocks<'a> {
    store: &'a Store,
    kept: Mutex<Kept>,
    decoding: Mutex<HashMap<(u32, u32), Slot>>,
}

#[derive(Debug)]
struct Kept {
    /// The turn in which each was used last, and its bytes.
    blocks: HashMap<(u32, u32), Used>,
    bytes: usize,
    most: usize,
    turn: u64,
}

type Used = (u64, Arc<Vec<u8>>);

/// A block that is being decoded; whoever else needs it waits for it.
type Slot = Arc<Mutex<()>>;

/// A chunk in its decoded block.
#[derive(Debug, Clone)]
pub struct ChunkBytes {
    block: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl AsRef<[u8]> for ChunkBytes {
    fn as_ref(&self) -> &[u8] {
        self.block.get(self.range.clone()).unwrap_or_default()
    }
}

impl<'a> Blocks<'a> {
    /// Keeps blocks of about so many bytes.
    #[must_use]
    pub fn new(store: &'a Store, most: usize) -> Self {
        let kept = Kept { blocks: HashMap::new(), bytes: 0, most, turn: 0 };
        Self { store, kept: Mutex::new(kept), decoding: Mutex::default() }
    }

    /// The bytes of all chunks of a block.
    pub fn block(&self, pack: u32, block: u32) -> Result<Arc<Vec<u8>>, CheckpointError> {
        if let Some(bytes) = self.kept().get((pack, block)) {
            return Ok(bytes);
        }
        // Blocks wait only for blocks of less depth, so nobody waits for whoever waits for him.
        let slot = Arc::clone(lock(&self.decoding).entry((pack, block)).or_default());
        let _turn = lock(&slot);
        if let Some(bytes) = self.kept().get((pack, block)) {
            return Ok(bytes);
        }
        let decoded = self.decode(pack, block).map(Arc::new);
        if let Ok(bytes) = &decoded {
            self.kept().insert((pack, block), Arc::clone(bytes));
        }
        lock(&self.decoding).remove(&(pack, block));
        decoded
    }

    /// By which the chunks of the store are hashed.
    pub(crate) fn seed(&self) -> u64 {
        self.store.settings().seed
    }

    /// The bytes of a chunk.
    pub fn chunk(&self, id: ChunkId) -> Result<ChunkBytes, CheckpointError> {
        let pack = self.store.pack(id.pack)?;
        let range = pack.block(id.block).and_then(|entry| entry.range(id.chunk));
        let range = range.ok_or_else(|| pack.damaged_block(id.block, "it is missing"))?;
        Ok(ChunkBytes { block: self.block(id.pack, id.block)?, range })
    }

    /// How deep a block is that is told by these chunks.
    pub(crate) fn depth(&self, bases: &[Option<ChunkId>]) -> Result<u8, CheckpointError> {
        let mut depth = 0;
        for base in bases.iter().flatten() {
            let below = self.store.pack(base.pack)?.block(base.block).map_or(0, |block| block.depth);
            depth = depth.max(below.saturating_add(1));
        }
        Ok(depth)
    }

    fn decode(&self, number: u32, block: u32) -> Result<Vec<u8>, CheckpointError> {
        let pack = self.store.pack(number)?;
        let payload = pack.payload(block)?;
        let entry = pack.block(block).ok_or_else(|| pack.damaged_block(block, "it is missing"))?;
        // Every step leads to a block of less depth, so this comes to an end, and soon.
        let base = |base: ChunkId| {
            let below = self.store.pack(base.pack)?.block(base.block).map(|below| below.depth);
            if below.is_some_and(|below| below >= entry.depth) {
                return Err(pack.damaged_block(block, "its chain is longer than it says"));
            }
            self.chunk(base)
        };
        let bases = entry.bases.iter().map(|id| id.map(base).transpose());
        let bases: Vec<Option<ChunkBytes>> = bases.collect::<Result<_, _>>()?;
        let bases: Vec<Option<&[u8]>> = bases.iter().map(|base| base.as_ref().map(AsRef::as_ref)).collect();
        let mut bytes = Vec::with_capacity(entry.bytes());
        codec::decode(entry.codec, &payload, &entry.lengths, &bases, &mut bytes)
            .map_err(|_| pack.damaged_block(block, "it cannot be decoded"))?;
        if bytes.len() != entry.bytes() {
            return Err(pack.damaged_block(block, "its length is another"));
        }
        Ok(bytes)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        lock(&self.kept)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kept {
    fn get(&mut self, key: (u32, u32)) -> Option<Arc<Vec<u8>>> {
        self.turn += 1;
        let (turn, bytes) = self.blocks.get_mut(&key)?;
        *turn = self.turn;
        Some(Arc::clone(bytes))
    }

    fn insert(&mut self, key: (u32, u32), bytes: Arc<Vec<u8>>) {
        self.turn += 1;
        self.bytes += bytes.len();
        if let Some((_, old)) = self.blocks.insert(key, (self.turn, bytes)) {
            self.bytes -= old.len();
        }
        while self.bytes > self.most && self.blocks.len() > 1 {
            let oldest = self.blocks.iter().min_by_key(|(_, (turn, _))| *turn).map(|(key, _)| *key);
            let Some((_, gone)) = oldest.and_then(|key| self.blocks.remove(&key)) else { return };
            self.bytes -= gone.len();
        }
    }
}
