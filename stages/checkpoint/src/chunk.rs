//! Chunks of files: pages of memory, or content-defined chunks; their hashes, and the digest of a file over
//! them.

use std::sync::OnceLock;

use twox_hash::XxHash3_128;

/// Size of a memory page.
pub const PAGE: usize = 4096;

/// Maximum chunk size, in bytes.
pub const LONGEST_CHUNK: usize = 16 * 1024;

/// Identifies a chunk: XXH3 with 128 bits and a random seed per store, so that collisions cannot be
/// constructed without knowing the seed. A store keeps 96 bits of it for each chunk; the digest of a file is
/// BLAKE3 over all bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ChunkHash(u128);

impl ChunkHash {
    /// Bits that a store keeps.
    const KEPT: u32 = 96;

    /// Hashes a chunk with seed 0.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::seeded(0, bytes)
    }

    /// Hashes a chunk.
    #[must_use]
    pub fn seeded(seed: u64, bytes: &[u8]) -> Self {
        Self(XxHash3_128::oneshot_with_seed(seed, bytes))
    }

    /// Joins the kept part of a hash and the rest.
    pub(crate) fn of_parts(kept: KeptHash, rest: [u8; 4]) -> Self {
        let mut bytes = [0; 16];
        bytes[..12].copy_from_slice(&kept.0);
        bytes[12..].copy_from_slice(&rest);
        Self(u128::from_le_bytes(bytes))
    }

    /// The part that a store does not keep.
    pub(crate) fn rest(self) -> [u8; 4] {
        let bytes = self.0.to_le_bytes();
        [bytes[12], bytes[13], bytes[14], bytes[15]]
    }

    /// All bits.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// The bits that a store keeps. Two chunks are equal if these bits and their lengths are.
    #[must_use]
    pub fn kept(self) -> KeptHash {
        let bytes = self.0.to_le_bytes();
        let mut kept = [0; Self::KEPT as usize / 8];
        kept.copy_from_slice(&bytes[..Self::KEPT as usize / 8]);
        KeptHash(kept)
    }
}

/// The part of a [`ChunkHash`] that a store keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct KeptHash(pub [u8; 12]);

/// Location of a chunk in a store: pack, block in the pack, index in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId {
    /// Number of the pack: that of the checkpoint it was written for.
    pub pack: u32,
    /// Number of the block in the pack, from 0.
    pub block: u32,
    /// Index among the chunks of the block, from 0.
    pub chunk: u16,
}

/// The address space of a [`Position`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Space {
    /// Byte offsets in the file.
    #[default]
    File,
    /// Memory addresses of the process whose image the file is.
    Memory,
    /// The record of the area that begins at this memory address; plus one for the record of an area whose
    /// parts have their own records, because the first part begins at the same address. Bytes after the
    /// fields of a record are addressed by their offset in the record.
    Record,
}

/// The position of a chunk. Two versions of a file are compared at equal positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// The address space.
    pub space: Space,
    /// The address, in bytes.
    pub address: u64,
}

/// A chunk of a file that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Offset of its bytes in the batch.
    pub start: usize,
    /// Its length: 1 to [`LONGEST_CHUNK`] bytes, or any length for zeros.
    pub length: usize,
    /// Whether all its bytes are zero. Such chunks have no bytes in the batch, and no hash.
    pub zero: bool,
    /// Its hash.
    pub hash: ChunkHash,
    /// Its position.
    pub place: Position,
    /// The chunk of the earlier version that is equal, or at the same position.
    pub base_chunk: Option<u32>,
}

/// Chunks in file order, and their bytes.
#[derive(Debug, Default)]
pub struct Batch {
    /// The bytes of all nonzero chunks.
    pub bytes: Vec<u8>,
    /// The chunks.
    pub chunks: Vec<Chunk>,
}

impl Batch {
    /// The bytes of a chunk; empty for zeros.
    #[must_use]
    pub fn bytes_of(&self, chunk: &Chunk) -> &[u8] {
        match chunk.zero {
            true => &[],
            false => &self.bytes[chunk.start..chunk.start + chunk.length],
        }
    }

    /// Removes all chunks and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.chunks.clear();
    }
}

/// A chunk of the stored version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlierChunk {
    /// Its location; `None` for zeros.
    pub id: Option<ChunkId>,
    /// Its bytes.
    pub length: usize,
    /// Its hash; nothing of a chunk of zeros.
    pub hash: KeptHash,
    /// Where it belongs.
    pub place: Position,
}

/// The stored version of a file: its chunks in order.
#[derive(Debug, Default)]
pub struct Earlier {
    chunks: Vec<EarlierChunk>,
    /// Chunk numbers by position, built on first use: unchanged chunks are found without it.
    by_place: OnceLock<Vec<u32>>,
}

impl Earlier {
    /// A version that consists of these chunks.
    #[must_use]
    pub fn new(chunks: Vec<EarlierChunk>) -> Self {
        Self { chunks, by_place: OnceLock::new() }
    }

    /// All chunks.
    #[must_use]
    pub fn chunks(&self) -> &[EarlierChunk] {
        &self.chunks
    }

    /// The chunk that begins at a position.
    #[must_use]
    pub fn at(&self, place: Position) -> Option<u32> {
        let by_place = self.by_place.get_or_init(|| self.sorted());
        let found = by_place.binary_search_by_key(&Some(place), |&index| self.place(index));
        found.ok().and_then(|position| by_place.get(position).copied())
    }

    /// A chunk by its number.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<&EarlierChunk> {
        self.chunks.get(index as usize)
    }

    fn place(&self, index: u32) -> Option<Position> {
        self.get(index).map(|chunk| chunk.place)
    }

    fn sorted(&self) -> Vec<u32> {
        let mut by_place: Vec<u32> = (0..self.chunks.len() as u32).collect();
        // Files are mostly sorted by position already.
        by_place.sort_by_key(|&index| self.place(index));
        by_place
    }
}

/// BLAKE3 over length and hash of all chunks of a file, in order; runs of zeros count by total length,
/// however they are split.
#[derive(Debug, Default)]
pub(crate) struct Digest {
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
    zeros: u64,
}

/// Size of the buffer that is hashed at once.
const PORTION: usize = 1 << 14;

impl Digest {
    pub(crate) fn zeros(&mut self, length: u64) {
        self.zeros = self.zeros.wrapping_add(length);
    }

    pub(crate) fn chunk(&mut self, length: u64, hash: ChunkHash) {
        self.end_zeros();
        self.buffer.push(1);
        self.buffer.extend_from_slice(&length.to_le_bytes());
        self.buffer.extend_from_slice(&hash.to_bytes());
        if self.buffer.len() >= PORTION {
            self.hasher.update(&self.buffer);
            self.buffer.clear();
        }
    }

    pub(crate) fn finish(mut self) -> [u8; 32] {
        self.end_zeros();
        *self.hasher.update(&self.buffer).finalize().as_bytes()
    }

    fn end_zeros(&mut self) {
        if self.zeros > 0 {
            self.buffer.push(0);
            self.buffer.extend_from_slice(&self.zeros.to_le_bytes());
            self.zeros = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two words that cancel the first constants of XXH3 are partly exchanged: without a seed the sums are
    /// equal.
    #[test]
    fn pages_constructed_to_collide_differ_with_a_seed() {
        const SECRETS: [u64; 2] = [0x396c_feb8, 0x2c81_017c];
        let page = |high: [u64; 2]| {
            let mut page = [7; PAGE];
            for (stripe, (secret, high)) in SECRETS.into_iter().zip(high).enumerate() {
                page[stripe * 64..stripe * 64 + 8].copy_from_slice(&(secret | high << 32).to_le_bytes());
            }
            page
        };
        let (one, other) = (page([5, 7]), page([4, 8]));
        assert_eq!(ChunkHash::of(&one), ChunkHash::of(&other));
        assert_ne!(ChunkHash::seeded(12_345, &one).kept(), ChunkHash::seeded(12_345, &other).kept());
    }
}
