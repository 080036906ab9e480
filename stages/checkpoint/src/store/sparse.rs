//! Sparse blocks: unneeded chunks (dead ones) are replaced by zeros, which take almost no space. Number,
//! lengths and offsets of all chunks stay.
//!
//! A store has no other chunks of zeros, so the hash of zeros identifies a dead chunk.

use super::blocks::{Blocks, ChunkBytes};
use super::live::ChunkSet;
use super::pack::{BlockEntry, Hashes, NewBlock, Pack};
use crate::chunk::{ChunkHash, ChunkId, KeptHash, LONGEST_CHUNK};
use crate::codec::{self, Block, Codec};
use crate::error::CheckpointError;

/// The kept hashes of chunks of zeros, computed on first use.
#[derive(Debug)]
pub(crate) struct ZeroHashes {
    /// Seed of the chunk hashes of the store.
    seed: u64,
    by_length: Vec<Option<KeptHash>>,
}

impl ZeroHashes {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, by_length: Vec::new() }
    }

    /// The kept hash of this many zeros; `None` if no chunk can be as long.
    fn of(&mut self, length: u32) -> Option<KeptHash> {
        let length = usize::try_from(length).ok().filter(|&length| length <= LONGEST_CHUNK)?;
        if self.by_length.len() <= length {
            self.by_length.resize(length + 1, None);
        }
        let (seed, hash) = (self.seed, self.by_length.get_mut(length)?);
        Some(*hash.get_or_insert_with(|| ChunkHash::seeded(seed, &vec![0; length]).kept()))
    }

    /// Whether a chunk with this length and kept hash is dead.
    pub(crate) fn is_dead(&mut self, length: u32, hash: KeptHash) -> bool {
        self.of(length) == Some(hash)
    }

    /// The dead chunks of a block.
    fn dead_chunks(&mut self, hashes: &Hashes, entry: &BlockEntry) -> Vec<bool> {
        let of_chunk = |(chunk, &length): (u16, &u32)| {
            hashes.of(entry, chunk).is_some_and(|hash| self.is_dead(length, hash))
        };
        (0..).zip(&entry.lengths).map(of_chunk).collect()
    }

    /// Approximate bytes that zeroing dead chunks saves in the payload of a block, assuming equal compression
    /// of all chunks. 0 if it is not worthwhile.
    pub(crate) fn estimate(&mut self, hashes: Option<&Hashes>, entry: &BlockEntry, live: &ChunkSet) -> u64 {
        let dead = hashes.map(|hashes| self.dead_chunks(hashes, entry)).unwrap_or_default();
        let (mut needed, mut all) = (0, 0);
        for (place, &length) in entry.lengths.iter().enumerate() {
            let is_live = live.contains(place as u16);
            let counts = is_live || !dead.get(place).copied().unwrap_or(false);
            needed += if is_live { u64::from(length) } else { 0 };
            all += if counts { u64::from(length) } else { 0 };
        }
        let payload = u64::from(entry.payload);
        let freed = payload - (payload * needed).checked_div(all).unwrap_or(0).min(payload);
        if freed * 10 >= payload { freed } else { 0 }
    }
}

/// Makes blocks of a pack sparse.
pub(crate) struct SparseWriter<'a> {
    blocks: &'a Blocks<'a>,
    pack: &'a Pack,
    hashes: &'a Hashes,
}

impl<'a> SparseWriter<'a> {
    /// For the blocks of a pack, with their original bases.
    pub(crate) fn new(blocks: &'a Blocks<'a>, pack: &'a Pack, hashes: &'a Hashes) -> Self {
        Self { blocks, pack, hashes }
    }

    /// A block to be rewritten: sparse, or unchanged if that saves little or its needed chunks are damaged.
    pub(crate) fn block(&self, number: u32, live: &ChunkSet) -> Result<NewBlock, CheckpointError> {
        let entry = self.pack.block(number);
        let entry = entry.ok_or_else(|| self.pack.damaged_block(number, "it is missing"))?;
        let payload = self.pack.payload(number)?;
        let sparse = self.sparse(number, entry, live);
        Ok(match sparse.filter(|sparse| sparse.payload.len() * 10 <= payload.len() * 9) {
            Some(sparse) => sparse,
            None => copied(entry, self.hashes, payload),
        })
    }

    /// The block without unneeded chunks; `None` if nothing was added to the dead ones, or it cannot be
    /// decoded.
    fn sparse(&self, number: u32, entry: &BlockEntry, live: &ChunkSet) -> Option<NewBlock> {
        let seed = self.blocks.seed();
        let mut zeros = ZeroHashes::new(seed);
        let was_dead = zeros.dead_chunks(self.hashes, entry);
        let is_dead = |(place, was_dead): (usize, &bool)| !was_dead && !live.contains(place as u16);
        if !was_dead.iter().enumerate().any(is_dead) {
            return None;
        }
        let mut bytes = self.blocks.block(self.pack.number(), number).ok()?.as_ref().clone();
        let mut hashes = Vec::with_capacity(entry.lengths.len());
        let mut rest = bytes.as_mut_slice();
        for (chunk, &length) in (0..).zip(&entry.lengths) {
            let (content, behind) = rest.split_at_mut_checked(length as usize)?;
            let kept = self.hashes.of(entry, chunk)?;
            match live.contains(chunk) {
                // Damaged blocks are kept, so that verifying still reports them.
                true if ChunkHash::seeded(seed, content).kept() != kept => return None,
                true => hashes.push(kept),
                false => {
                    content.fill(0);
                    hashes.push(zeros.of(length)?);
                }
            }
            rest = behind;
        }
        let is_live = |place: usize| live.contains(place as u16);
        let bases = entry.bases.iter().enumerate();
        let bases = bases.map(|(place, base)| base.filter(|_| is_live(place))).collect();
        self.encode(entry, &bytes, bases, hashes)
    }

    /// Encodes these bytes as a block, if decoding reproduces them.
    fn encode(
        &self,
        entry: &BlockEntry,
        bytes: &[u8],
        bases: Vec<Option<ChunkId>>,
        hashes: Vec<KeptHash>,
    ) -> Option<NewBlock> {
        let base_bytes: Vec<Option<ChunkBytes>> = bases
            .iter()
            .map(|base| base.map(|base| self.blocks.chunk(base)).transpose())
            .collect::<Result<_, _>>()
            .ok()?;
        let base_bytes: Vec<Option<&[u8]>> =
            base_bytes.iter().map(|base| base.as_ref().map(AsRef::as_ref)).collect();
        // A block that was incompressible before may be compressible now.
        let codec = if entry.codec == Codec::Raw { Codec::Mixed } else { entry.codec };
        let block = Block { bytes, lengths: &entry.lengths, bases: &base_bytes };
        let encoded = codec::encode_by(&block, codec, true).ok()?;
        let (bases, base_bytes) = if encoded.uses_bases { (bases, base_bytes) } else { Default::default() };
        let mut again = Vec::with_capacity(bytes.len());
        codec::decode(encoded.codec, &encoded.payload, &entry.lengths, &base_bytes, &mut again).ok()?;
        let depth = self.blocks.depth(&bases).ok()?;
        (again == bytes && depth <= entry.depth).then(|| NewBlock {
            codec: encoded.codec,
            depth,
            lengths: entry.lengths.clone(),
            bases,
            hashes,
            payload: encoded.payload,
        })
    }
}

/// An unchanged block.
pub(crate) fn copied(entry: &BlockEntry, hashes: &Hashes, payload: Vec<u8>) -> NewBlock {
    NewBlock {
        codec: entry.codec,
        depth: entry.depth,
        lengths: entry.lengths.clone(),
        bases: entry.bases.clone(),
        hashes: (0..entry.lengths.len() as u16).map_while(|chunk| hashes.of(entry, chunk)).collect(),
        payload,
    }
}
