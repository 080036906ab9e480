//! The earlier version of a file, and where in it the file that is being cut has come to.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::chunk::{ChunkHash, Earlier, EarlierChunk, KeptHash, Place};

/// An earlier version, or none.
#[derive(Default)]
pub(super) struct Past {
    earlier: Option<Arc<Earlier>>,
    seed: u64,
    by_hash: OnceLock<HashMap<KeptHash, u32>>,
    next: u32,
}

impl Past {
    pub(super) fn new(earlier: Option<Arc<Earlier>>, seed: u64) -> Self {
        Self { earlier, seed, ..Self::default() }
    }

    /// The hash of a chunk.
    pub(super) fn hash(&self, bytes: &[u8]) -> ChunkHash {
        ChunkHash::seeded(self.seed, bytes)
    }

    /// A chunk by its number.
    pub(super) fn get(&self, index: u32) -> Option<&EarlierChunk> {
        self.earlier.as_ref()?.get(index)
    }

    /// The chunk at a place. Files are in the same order as before for the most part: the one after that which was found last
    /// is looked at first.
    pub(super) fn at(&mut self, place: Place) -> Option<u32> {
        let earlier = self.earlier.as_ref()?;
        let found = match earlier.get(self.next) {
            Some(chunk) if chunk.place == place => self.next,
            _ => earlier.at(place)?,
        };
        self.next = found + 1;
        Some(found)
    }

    /// The first chunk with this hash and length.
    pub(super) fn find(&self, hash: KeptHash, length: usize) -> Option<u32> {
        let earlier = self.earlier.as_ref()?;
        let by_hash = self.by_hash.get_or_init(|| index(earlier));
        let found = *by_hash.get(&hash)?;
        (earlier.get(found)?.length == length).then_some(found)
    }
}

fn index(earlier: &Earlier) -> HashMap<KeptHash, u32> {
    let mut by_hash = HashMap::with_capacity(earlier.chunks().len());
    for (index, chunk) in (0..).zip(earlier.chunks()) {
        if chunk.id.is_some() {
            by_hash.entry(chunk.hash).or_insert(index);
        }
    }
    by_hash
}

/// A byte of the earlier version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cursor {
    /// The chunk it is in.
    pub(super) chunk: u32,
    /// How many bytes of that chunk come before it.
    pub(super) inside: usize,
}

impl Cursor {
    /// The first byte of a chunk.
    pub(super) fn start(chunk: u32) -> Self {
        Self { chunk, inside: 0 }
    }

    /// Goes on by some bytes.
    pub(super) fn advance(&mut self, past: &Past, length: usize) {
        self.inside = self.inside.saturating_add(length);
        while let Some(chunk) = past.get(self.chunk)
            && self.inside >= chunk.length
        {
            self.inside -= chunk.length;
            self.chunk += 1;
        }
    }

    /// The chunk that begins here, if it is one of data.
    pub(super) fn begins<'p>(&self, past: &'p Past) -> Option<&'p EarlierChunk> {
        past.get(self.chunk).filter(|chunk| self.inside == 0 && chunk.id.is_some())
    }
}
