//! A cache of recently used decoded blocks and open packs, which recycles memory.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Store;
use super::pack::{BlockEntry, Pack};
use crate::chunk::ChunkId;
use crate::codec;
use crate::error::CheckpointError;

/// Maximum number of blocks that are decoded for one. By default a block of 80 chunks, each with a base in
/// another block of 80 chunks, takes at most 6481, and blocks of real series take some dozens; a malicious
/// store could require any number.
const MOST_DECODED: u32 = 1 << 14;

/// Decodes blocks of a store and caches those used last. Bases are decoded with them.
#[derive(Debug)]
pub struct Blocks<'a> {
    store: &'a Store,
    kept: Mutex<BlockCache>,
    decoding: Mutex<HashMap<Key, Slot>>,
    buffers: BufferPool,
    files: OpenFiles,
}

/// A block that is being decoded; other threads that need it wait.
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
    /// A cache of about this many bytes.
    #[must_use]
    pub fn new(store: &'a Store, most: usize) -> Self {
        Self {
            store,
            kept: Mutex::new(BlockCache::new(most)),
            decoding: Mutex::default(),
            buffers: BufferPool::default(),
            files: OpenFiles::default(),
        }
    }

    /// Also keeps some packs open. None of them may be deleted meanwhile.
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

    /// Verifies the checksum of the payload of a block.
    pub(super) fn check(&self, number: u32, block: u32) -> Result<(), CheckpointError> {
        let pack = self.store.pack(number)?;
        let entry = pack.block(block).ok_or_else(|| pack.damaged_block(block, "it is missing"))?;
        let mut payload = self.buffers.take(entry.payload as usize);
        let read = pack.read_payload(&*self.files.of(&pack)?, block, entry, &mut payload);
        self.buffers.give(payload);
        read
    }

    /// Takes back an unused block to recycle its memory.
    pub(super) fn give_back(&self, block: Arc<Vec<u8>>) {
        if let Some(buffer) = Arc::into_inner(block) {
            self.buffers.give(buffer);
        }
    }

    /// Seed of the chunk hashes of the store.
    pub(crate) fn seed(&self) -> u64 {
        self.store.settings().seed
    }

    /// The depth of a block with these base chunks.
    pub(crate) fn depth(&self, bases: &[Option<ChunkId>]) -> Result<u8, CheckpointError> {
        let mut depth = 0;
        for base in bases.iter().flatten() {
            let below = self.store.pack(base.pack)?.block(base.block).map_or(0, |block| block.depth);
            depth = depth.max(below.saturating_add(1));
        }
        Ok(depth)
    }

    /// A block, for which a number of other blocks may still be decoded.
    fn block_of(&self, key: Key, left: &mut u32) -> Result<Arc<Vec<u8>>, CheckpointError> {
        if let Some(bytes) = lock(&self.kept).get(key) {
            return Ok(bytes);
        }
        // Threads only wait for blocks of smaller depth, so there is no deadlock.
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
        *left = left
            .checked_sub(1)
            .ok_or_else(|| pack.damaged_block(block, "it depends on too many other blocks"))?;
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

    /// The base chunks of a block, mostly successive chunks of one block.
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
                    // Every step leads to a smaller depth, so this terminates.
                    if below.block(base.block).is_some_and(|below| below.depth >= entry.depth) {
                        return Err(pack.damaged_block(block, "its chain is longer than declared"));
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

    /// Memory for a block: recycled from evicted blocks if large enough.
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

/// Splits items into portions of about this many bytes.
pub(super) fn in_portions<T>(
    things: impl IntoIterator<Item = T>,
    most: u64,
    bytes_of: impl Fn(&T) -> u64,
) -> Vec<Vec<T>> {
    let (mut portions, mut portion, mut bytes) = (Vec::new(), Vec::new(), 0);
    for thing in things {
        bytes += bytes_of(&thing);
        portion.push(thing);
        if bytes >= most {
            portions.push(std::mem::take(&mut portion));
            bytes = 0;
        }
    }
    portions.push(portion);
    portions
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Maximum amount of recycled memory, in bytes.
const MOST_BUFFERS: usize = 6 << 20;

/// Unused memory, the most recent at the end.
#[derive(Debug, Default)]
struct BufferPool {
    spare: Mutex<Vec<Vec<u8>>>,
}

impl BufferPool {
    /// A buffer of this length with unspecified contents.
    fn take(&self, length: usize) -> Vec<u8> {
        let fits = |buffer: &Vec<u8>| (length..=length.saturating_mul(2)).contains(&buffer.capacity());
        let mut spare = lock(&self.spare);
        let found = spare.iter().rposition(fits).map(|place| spare.remove(place));
        drop(spare);
        match found {
            Some(mut buffer) => {
                buffer.resize(length, 0);
                buffer
            }
            None => vec![0; length],
        }
    }

    fn give(&self, buffer: Vec<u8>) {
        let mut spare = lock(&self.spare);
        spare.push(buffer);
        let mut bytes: usize = spare.iter().map(Vec::capacity).sum();
        let old = spare.iter().take_while(|buffer| {
            let is_too_much = bytes > MOST_BUFFERS;
            bytes -= buffer.capacity();
            is_too_much
        });
        let old = old.count();
        spare.drain(..old);
    }
}

/// Maximum number of open files: a store may have more packs than a process may open files.
const MOST_FILES: usize = 8;

/// Open pack files, the most recently used at the end.
#[derive(Debug, Default)]
struct OpenFiles {
    open: Mutex<Vec<(u32, Arc<File>)>>,
    /// Whether files stay open: an open pack would still take space after its deletion.
    stay_open: bool,
}

impl OpenFiles {
    fn of(&self, pack: &Pack) -> Result<Arc<File>, CheckpointError> {
        if !self.stay_open {
            return Ok(Arc::new(pack.file()?));
        }
        let mut open = lock(&self.open);
        let found = open.iter().position(|(number, _)| *number == pack.number());
        let entry = match found.map(|place| open.remove(place)) {
            Some(entry) => entry,
            None => (pack.number(), Arc::new(pack.file()?)),
        };
        if open.len() >= MOST_FILES {
            open.remove(0);
        }
        let file = Arc::clone(&entry.1);
        open.push(entry);
        Ok(file)
    }
}

/// A block: its pack, and its number in it.
type Key = (u32, u32);

/// Overhead of a cached block.
const OVERHEAD: usize = 256;

/// Recently used blocks of limited total size.
#[derive(Debug)]
struct BlockCache {
    /// The turn of the last use of each, and its bytes.
    blocks: HashMap<Key, (u64, Arc<Vec<u8>>)>,
    /// The block used in a turn.
    turns: BTreeMap<u64, Key>,
    bytes: usize,
    most: usize,
    turn: u64,
}

impl BlockCache {
    fn new(most: usize) -> Self {
        Self { blocks: HashMap::new(), turns: BTreeMap::new(), bytes: 0, most, turn: 0 }
    }

    fn get(&mut self, key: Key) -> Option<Arc<Vec<u8>>> {
        let (turn, bytes) = self.blocks.get_mut(&key)?;
        self.turns.remove(turn);
        self.turn += 1;
        *turn = self.turn;
        self.turns.insert(self.turn, key);
        Some(Arc::clone(bytes))
    }

    fn insert(&mut self, key: Key, bytes: Arc<Vec<u8>>) {
        self.turn += 1;
        self.bytes += bytes.len() + OVERHEAD;
        self.turns.insert(self.turn, key);
        if let Some((turn, old)) = self.blocks.insert(key, (self.turn, bytes)) {
            self.turns.remove(&turn);
            self.bytes -= old.len() + OVERHEAD;
        }
    }

    /// Evicts the least recently used block, if there is no room for more bytes.
    fn make_room(&mut self, bytes: usize) -> Option<Arc<Vec<u8>>> {
        if self.bytes + bytes <= self.most {
            return None;
        }
        let (_, key) = self.turns.pop_first()?;
        let (_, gone) = self.blocks.remove(&key)?;
        self.bytes -= gone.len() + OVERHEAD;
        Some(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recycled_memory_is_reused_if_it_fits_and_bounded() {
        let buffers = BufferPool::default();
        let long = buffers.take(1000);
        let place = long.as_ptr();
        buffers.give(long);
        assert_eq!(buffers.take(100).len(), 100, "a short one does not take it");
        let again = buffers.take(700);
        assert_eq!((again.as_ptr(), again.len()), (place, 700));
        for _ in 0..5 {
            buffers.give(vec![0; MOST_BUFFERS / 3]);
        }
        assert_eq!(lock(&buffers.spare).len(), 3);
    }

    #[test]
    fn the_least_recently_used_block_is_evicted() {
        let mut kept = BlockCache::new(3 * (100 + OVERHEAD));
        for block in 0..3 {
            assert!(kept.make_room(100).is_none());
            kept.insert((1, block), Arc::new(vec![block as u8; 100]));
        }
        assert!(kept.get((1, 0)).is_some());
        assert_eq!(kept.make_room(100).as_deref(), Some(&vec![1; 100]));
        assert!(kept.make_room(100).is_none());
        assert!(kept.get((1, 1)).is_none() && kept.get((1, 0)).is_some() && kept.get((1, 2)).is_some());
        // A block larger than the cache evicts all others, and stays until the next one.
        assert_eq!(std::iter::from_fn(|| kept.make_room(1 << 20)).count(), 2);
        kept.insert((2, 0), Arc::new(vec![0; 1 << 20]));
        assert_eq!(kept.make_room(1).map(|gone| gone.len()), Some(1 << 20));
        assert_eq!((kept.bytes, kept.turns.len(), kept.blocks.len()), (0, 0, 0));
    }

    #[test]
    fn a_block_inserted_twice_counts_once() {
        let mut kept = BlockCache::new(10_000);
        for length in [10, 20] {
            kept.insert((1, 1), Arc::new(vec![0; length]));
        }
        assert_eq!((kept.bytes, kept.turns.len()), (20 + OVERHEAD, 1));
    }
}
