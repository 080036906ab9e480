//! Pieces of files: pages of memory, or parts that their contents delimit; their hashes, and the digest of a file over them.

use std::sync::OnceLock;

use twox_hash::XxHash3_128;

/// Bytes of a page of memory.
pub const PAGE: usize = 4096;

/// Longest chunk, in bytes.
pub const LONGEST_CHUNK: usize = 16 * 1024;

/// What tells chunks apart: XXH3 of 128 bits, with a seed that every store draws for itself, so that nobody can make two chunks of
/// one hash without knowing it. A store keeps 96 of them for each chunk; the digest of a file is BLAKE3 over
/// whole ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ChunkHash(u128);

impl ChunkHash {
    /// Bits that a store keeps.
    const KEPT: u32 = 96;

    /// The hash of a chunk, by the seed 0.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::seeded(0, bytes)
    }

    /// The hash of a chunk.
    #[must_use]
    pub fn seeded(seed: u64, bytes: &[u8]) -> Self {
        Self(XxHash3_128::oneshot_with_seed(seed, bytes))
    }

    /// The hash of its kept part and the rest, which follows it.
    pub(crate) fn of_parts(kept: KeptHash, rest: [u8; 4]) -> Self {
        let mut whole = [0; 16];
        whole[..12].copy_from_slice(&kept.0);
        whole[12..].copy_from_slice(&rest);
        Self(u128::from_le_bytes(whole))
    }

    /// The part that a store does not keep.
    pub(crate) fn rest(self) -> [u8; 4] {
        let bytes = self.0.to_le_bytes();
        [bytes[12], bytes[13], bytes[14], bytes[15]]
    }

    /// All bits.
    #[must_use]
    pub fn whole(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// The bits that a store keeps; two chunks are the same when these and their lengths are.
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

/// A chunk of a store: its pack, its block in the pack, its place in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId {
    /// Number of the pack: that of the checkpoint it was written for.
    pub pack: u32,
    /// Number of the block in the pack, from 0.
    pub block: u32,
    /// Place among the chunks of the block, from 0.
    pub chunk: u16,
}

/// In what an address counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Space {
    /// Bytes of the file.
    #[default]
    File,
    /// Bytes of the memory of the process whose image the file is.
    Memory,
    /// The record that describes the area which begins at this address of memory; one more for the record of an area whose
    /// parts have records of their own, of which the first begins at the same address. What is behind the fields of a record
    /// is as many bytes further.
    Record,
}

/// Where a chunk belongs: two versions of a file are compared at the same places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Place {
    /// What the address counts in.
    pub space: Space,
    /// The address, in bytes.
    pub address: u64,
}

/// A chunk of a file that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Where its bytes begin in those of its batch.
    pub start: usize,
    /// How many bytes it has: 1 to [`LONGEST_CHUNK`], or any number of a chunk of zeros.
    pub length: usize,
    /// Whether all its bytes are zero. Such chunks have no bytes in their batch, and no hash.
    pub zero: bool,
    /// Its hash.
    pub hash: ChunkHash,
    /// Where it belongs.
    pub place: Place,
    /// The chunk of the earlier version of the file that it is like, or would be if nothing had changed.
    pub base_chunk: Option<u32>,
}

/// Chunks in the order of the file, and their bytes.
#[derive(Debug, Default)]
pub struct Batch {
    /// The bytes of all chunks that are not zero.
    pub bytes: Vec<u8>,
    /// The chunks.
    pub chunks: Vec<Chunk>,
}

impl Batch {
    /// The bytes of a chunk; none of one of zeros.
    #[must_use]
    pub fn bytes_of(&self, chunk: &Chunk) -> &[u8] {
        match chunk.zero {
            true => &[],
            false => &self.bytes[chunk.start..chunk.start + chunk.length],
        }
    }

    /// Forgets all chunks and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.chunks.clear();
    }
}

/// A chunk of the version of a file that a store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlierChunk {
    /// Which chunk it is; none when it is of zeros.
    pub id: Option<ChunkId>,
    /// Its bytes.
    pub length: usize,
    /// Its hash; nothing of a chunk of zeros.
    pub hash: KeptHash,
    /// Where it belongs.
    pub place: Place,
}

/// The version of a file that a store has: its chunks in their order.
#[derive(Debug, Default)]
pub struct Earlier {
    chunks: Vec<EarlierChunk>,
    /// Their numbers by their places, made when it is first needed: what did not change is found without.
    by_place: OnceLock<Vec<u32>>,
}

impl Earlier {
    /// A version of these chunks.
    #[must_use]
    pub fn new(chunks: Vec<EarlierChunk>) -> Self {
        Self { chunks, by_place: OnceLock::new() }
    }

    /// All chunks.
    #[must_use]
    pub fn chunks(&self) -> &[EarlierChunk] {
        &self.chunks
    }

    /// The chunk that begins at a place.
    #[must_use]
    pub fn at(&self, place: Place) -> Option<u32> {
        let by_place = self.by_place.get_or_init(|| self.sorted());
        let found = by_place.binary_search_by_key(&Some(place), |&index| self.place(index));
        found.ok().and_then(|position| by_place.get(position).copied())
    }

    /// A chunk by its number.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<&EarlierChunk> {
        self.chunks.get(index as usize)
    }

    fn place(&self, index: u32) -> Option<Place> {
        self.get(index).map(|chunk| chunk.place)
    }

    fn sorted(&self) -> Vec<u32> {
        let mut by_place: Vec<u32> = (0..self.chunks.len() as u32).collect();
        // Files are mostly in the order of their places already.
        by_place.sort_by_key(|&index| self.place(index));
        by_place
    }
}

/// BLAKE3 over length and hash of all chunks of a file, in order; of zeros, however they are cut, over their length alone.
#[derive(Debug, Default)]
pub(crate) struct Digest {
    hasher: blake3::Hasher,
    told: Vec<u8>,
    zeros: u64,
}

/// Bytes that are hashed at once.
const PORTION: usize = 1 << 14;

impl Digest {
    pub(crate) fn zeros(&mut self, length: u64) {
        self.zeros = self.zeros.wrapping_add(length);
    }

    pub(crate) fn chunk(&mut self, length: u64, hash: ChunkHash) {
        self.end_zeros();
        self.told.push(1);
        self.told.extend_from_slice(&length.to_le_bytes());
        self.told.extend_from_slice(&hash.whole());
        if self.told.len() >= PORTION {
            self.hasher.update(&self.told);
            self.told.clear();
        }
    }

    pub(crate) fn finish(mut self) -> [u8; 32] {
        self.end_zeros();
        *self.hasher.update(&self.told).finalize().as_bytes()
    }

    fn end_zeros(&mut self) {
        if self.zeros > 0 {
            self.told.push(0);
            self.told.extend_from_slice(&self.zeros.to_le_bytes());
            self.zeros = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two words that hide the beginnings of what XXH3 multiplies by are exchanged in part: without a seed the sums stay.
    #[test]
    fn pages_that_were_made_to_have_one_hash_have_two_by_a_seed() {
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
