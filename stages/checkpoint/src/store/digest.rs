//! The digest of a file.

use crate::chunk::ChunkHash;

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
