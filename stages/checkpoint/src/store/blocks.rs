//! Decoded blocks, the last ones kept.

mod buffers;
mod files;
mod kept;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::buffers::Buffers;
use self::files::Files;
use self::kept::{Kept, Key};
use super::Store;
use super::pack::{BlockEntry, Pack};
use crate::CheckpointError;
use crate::chunk::ChunkId;
use crate::codec;

/// Most blocks that are decoded for one. By default a block of 80 chunks, told by as many blocks of as many chunks each, takes
/// 6481 at the worst, and those of real series some dozens; a store that was made to keep us busy may lead to any number.
const MOST_DECODED: u32 = 1 << 14;

/// Decodes blocks of a store and keeps those that were used last. Blocks that others are told by are decoded with them.
#[derive(Debug)]
pub struct Blocks<'a> {
    store: &'a Store,
    kept: Mutex<Kept>,
    decoding: Mutex<HashMap<Key, Slot>>,
    buffers: Buffers,
    files: Files,
}

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
        Self {
            store,
            kept: Mutex::new(Kept::new(most)),
            decoding: Mutex::default(),
            buffers: Buffers::default(),
            files: Files::default(),
        }
    }

    /// Keeps the files of some packs open, none of which is deleted meanwhile.
    #[must_use]
    pub(super) fn with_open_files(mut self) -> Self {
        self.files.stay_open = true;
        self
    }

    /// The bytes of all chunks of a block.
    pub fn block(&self, pack: u32, block: u32) -> Result<Arc<Vec<u8>>, CheckpointError> {
        self.block_of((pack, block), &mut MOST_DECODED.clone())
    }

    /// The bytes of a chunk.
    pub fn chunk(&self, id: ChunkId) -> Result<ChunkBytes, CheckpointError> {
        let pack = self.store.pack(id.pack)?;
        let range = range(&pack, id)?;
        Ok(ChunkBytes { block: self.block(id.pack, id.block)?, range })
    }

    /// Compares the payload of a block with its checksum.
    pub(super) fn check(&self, number: u32, block: u32) -> Result<(), CheckpointError> {
        let pack = self.store.pack(number)?;
        let entry = pack.block(block).ok_or_else(|| pack.damaged_block(block, "it is missing"))?;
        let mut payload = self.buffers.take(entry.payload as usize);
        let read = pack.read_payload(&*self.files.of(&pack)?, block, entry, &mut payload);
        self.buffers.give(payload);
        read
    }

    /// Takes back a block that is needed no more, for its memory to be used again.
    pub(super) fn give_back(&self, block: Arc<Vec<u8>>) {
        if let Some(buffer) = Arc::into_inner(block) {
            self.buffers.give(buffer);
        }
    }

    /// By which the chunks of the store are hashed.
    pub(crate) fn seed(&self) -> u64 {
        self.store.settings().seed
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

    /// A block, for which so many others may yet be decoded.
    fn block_of(&self, key: Key, left: &mut u32) -> Result<Arc<Vec<u8>>, CheckpointError> {
        if let Some(bytes) = lock(&self.kept).get(key) {
            return Ok(bytes);
        }
        // Blocks wait only for blocks of less depth, so nobody waits for whoever waits for him.
        let slot = Arc::clone(lock(&self.decoding).entry(key).or_default());
        let _turn = lock(&slot);
        if let Some(bytes) = lock(&self.kept).get(key) {
            return Ok(bytes);
        }
        let decoded = self.decode(key, left).map(Arc::new);
        if let Ok(bytes) = &decoded {
            lock(&self.kept).insert(key, Arc::clone(bytes));
        }
        lock(&self.decoding).remove(&key);
        decoded
    }

    fn decode(&self, (number, block): Key, left: &mut u32) -> Result<Vec<u8>, CheckpointError> {
        let pack = self.store.pack(number)?;
        let entry = pack.block(block).ok_or_else(|| pack.damaged_block(block, "it is missing"))?;
        *left =
            left.checked_sub(1).ok_or_else(|| pack.damaged_block(block, "it is told by too many others"))?;
        let bases = self.bases(&pack, block, entry, left)?;
        let bases: Vec<Option<&[u8]>> = bases.iter().map(|base| base.as_ref().map(AsRef::as_ref)).collect();
        let mut payload = self.buffers.take(entry.payload as usize);
        pack.read_payload(&*self.files.of(&pack)?, block, entry, &mut payload)?;
        let mut bytes = self.room(entry.bytes());
        let decoded = codec::decode_into(entry.codec, &payload, &entry.lengths, &bases, &mut bytes);
        self.buffers.give(payload);
        decoded.map_err(|_| pack.damaged_block(block, "it cannot be decoded"))?;
        Ok(bytes)
    }

    /// The chunks by which a block is told, one after the other mostly of one block.
    fn bases(
        &self,
        pack: &Pack,
        block: u32,
        entry: &BlockEntry,
        left: &mut u32,
    ) -> Result<Vec<Option<ChunkBytes>>, CheckpointError> {
        let mut last: Option<(Key, Arc<Pack>, Arc<Vec<u8>>)> = None;
        let mut bases = Vec::with_capacity(entry.bases.len());
        for base in &entry.bases {
            let Some(base) = *base else {
                bases.push(None);
                continue;
            };
            let key = (base.pack, base.block);
            let (_, below, bytes) = match last.take().filter(|(last, ..)| *last == key) {
                Some(last) => last,
                None => {
                    let below = self.store.pack(base.pack)?;
                    // Every step leads to a block of less depth, so this comes to an end.
                    if below.block(base.block).is_some_and(|below| below.depth >= entry.depth) {
                        return Err(pack.damaged_block(block, "its chain is longer than it says"));
                    }
                    let bytes = self.block_of(key, left)?;
                    (key, below, bytes)
                }
            };
            bases.push(Some(ChunkBytes { block: Arc::clone(&bytes), range: range(&below, base)? }));
            last = Some((key, below, bytes));
        }
        Ok(bases)
    }

    /// Memory for a block: that of the blocks that have to go, if these are as long.
    fn room(&self, bytes: usize) -> Vec<u8> {
        loop {
            let gone = lock(&self.kept).make_room(bytes);
            match gone {
                Some(gone) => self.give_back(gone),
                None => return self.buffers.take(bytes),
            }
        }
    }
}

fn range(pack: &Pack, id: ChunkId) -> Result<Range<usize>, CheckpointError> {
    let range = pack.block(id.block).and_then(|entry| entry.range(id.chunk));
    range.ok_or_else(|| pack.damaged_block(id.block, "it is missing"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
