//! Signatures: hashes of all blocks of a checkpoint, to find the blocks that another one has changed.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use crate::chunk::{ChunkHash, KeptHash};
use crate::params::Matching;

/// Hashes of all blocks of a checkpoint: 12 bytes per block of any length.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signature {
    /// Files by their path in the checkpoint.
    pub files: BTreeMap<PathBuf, FileSignature>,
}

impl Signature {
    /// Number of blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.files.values().map(|file| file.hashes.len() as u64).sum()
    }

    /// Total size of all files, S(K).
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.values().map(FileSignature::bytes).sum()
    }

    /// Everything, as if there were no base.
    #[must_use]
    pub fn full(&self, matching: Matching) -> Difference {
        self.difference(&Self::default(), matching)
    }

    /// Fixed-size compare-by-hash: the blocks of this checkpoint that a base lacks, at the same place of the
    /// same file or anywhere. With `Anywhere`, equal blocks of the checkpoint are stored once.
    #[must_use]
    pub fn difference(&self, base: &Self, matching: Matching) -> Difference {
        let mut known: HashSet<KeptHash> = match matching {
            Matching::Address => HashSet::new(),
            Matching::Anywhere => base.files.values().flat_map(|file| &file.hashes).copied().collect(),
        };
        let mut difference = Difference::default();
        for (place, file) in &self.files {
            let before = base.files.get(place);
            difference.records += file.records;
            for block in file.blocks() {
                let is_new = match matching {
                    Matching::Address => before.and_then(|file| file.at(block.address)) != Some(block.hash),
                    Matching::Anywhere => known.insert(block.hash),
                };
                if is_new {
                    difference.blocks += 1;
                    difference.bytes += block.length;
                }
            }
        }
        difference
    }
}

/// The delta of a checkpoint against its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Difference {
    /// Changed blocks.
    pub blocks: u64,
    /// Their size.
    pub bytes: u64,
    /// Bytes that belong to no block and are always stored: records of images.
    pub records: u64,
}

impl Difference {
    /// Size of the delta, with an overhead per block.
    #[must_use]
    pub fn size(self, block_overhead: u64) -> u64 {
        self.bytes + self.records + self.blocks * block_overhead
    }
}

/// Hashes of the blocks of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileSignature {
    /// Block length in bytes.
    block: u64,
    /// Seed of the block hashes.
    seed: u64,
    /// Runs of addresses; sorted when the signature is finished.
    runs: Vec<Run>,
    /// Hashes of the blocks of all runs.
    hashes: Vec<KeptHash>,
    /// Bytes that belong to no block.
    records: u64,
}

/// A block of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Block {
    address: u64,
    length: u64,
    hash: KeptHash,
}

/// Bytes at consecutive addresses. Its blocks end at multiples of the block length, the last one with the
/// run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    address: u64,
    length: u64,
    /// Index of its first hash.
    first: usize,
}

impl FileSignature {
    /// A file without blocks.
    #[must_use]
    pub fn new(block: u64) -> Self {
        Self::seeded(block, 0)
    }

    /// A file without blocks, with a seed for hashes.
    #[must_use]
    pub fn seeded(block: u64, seed: u64) -> Self {
        Self { block: block.max(1), seed, ..Self::default() }
    }

    /// Counts bytes that belong to no block.
    pub fn add_records(&mut self, bytes: u64) {
        self.records += bytes;
    }

    /// Begins a run.
    pub fn begin(&mut self, address: u64) {
        self.runs.push(Run { address, length: 0, first: self.hashes.len() });
    }

    /// Adds bytes to the current run. They end at the end of a block or of the run.
    pub fn add(&mut self, mut bytes: &[u8]) {
        let Some(run) = self.runs.last_mut() else { return };
        while !bytes.is_empty() {
            let room = self.block - (run.address + run.length) % self.block;
            let (block, rest) = bytes.split_at(bytes.len().min(room as usize));
            self.hashes.push(ChunkHash::seeded(self.seed, block).kept());
            run.length += block.len() as u64;
            bytes = rest;
        }
    }

    /// Adds a block with a known hash to the current run.
    pub fn add_hash(&mut self, length: u64, hash: KeptHash) {
        if let Some(run) = self.runs.last_mut() {
            self.hashes.push(hash);
            run.length += length;
        }
    }

    /// Finishes the file.
    pub fn finish(&mut self) {
        self.runs.retain(|run| run.length > 0);
        self.runs.sort_by_key(|run| (run.address, run.first));
        self.hashes.shrink_to_fit();
    }

    fn bytes(&self) -> u64 {
        self.records + self.runs.iter().map(|run| run.length).sum::<u64>()
    }

    /// All blocks, run by run.
    fn blocks(&self) -> impl Iterator<Item = Block> {
        self.runs.iter().flat_map(move |run| {
            let end = run.address.saturating_add(run.length);
            let mut address = run.address;
            self.hashes.iter().skip(run.first).map_while(move |&hash| {
                let next = end.min((address - address % self.block).saturating_add(self.block));
                let block = Block { address, length: next - address, hash };
                address = next;
                (block.length > 0).then_some(block)
            })
        })
    }

    /// Hash of the block that begins at an address.
    fn at(&self, address: u64) -> Option<KeptHash> {
        let after = self.runs.partition_point(|run| run.address <= address);
        let run = self.runs.get(after.checked_sub(1)?)?;
        let index = address / self.block - run.address / self.block;
        let begins_here = address == run.address || address.is_multiple_of(self.block);
        match begins_here && address < run.address + run.length {
            true => self.hashes.get(run.first + index as usize).copied(),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(block: u64, runs: &[(u64, &[u8])]) -> Signature {
        let mut file = FileSignature::new(block);
        for (address, bytes) in runs {
            file.begin(*address);
            file.add(bytes);
        }
        file.finish();
        Signature { files: BTreeMap::from([(PathBuf::from("image"), file)]) }
    }

    #[test]
    fn changed_blocks_are_counted_with_their_bytes() {
        let base = signature(4, &[(0, b"aaaabbbbccccdd")]);
        let difference = |bytes: &[u8]| {
            let found = signature(4, &[(0, bytes)]).difference(&base, Matching::Address);
            (found.blocks, found.bytes)
        };
        assert_eq!(difference(b"aaaabbbbccccdd"), (0, 0));
        assert_eq!(difference(b"aaaaBbbbccccdd"), (1, 4));
        assert_eq!(difference(b"aaaabbbbccccde"), (1, 2));
        // A block of another length counts as changed.
        assert_eq!(difference(b"aaaabbbbccccddd"), (1, 3));
        assert_eq!(difference(b"aaaabbbbccc"), (1, 3));
        assert_eq!(difference(b""), (0, 0));
        // Moved fragments are not found.
        assert_eq!(difference(b"Xaaaabbbbccccdd"), (4, 15));
    }

    #[test]
    fn equal_blocks_are_stored_once_if_matched_anywhere() {
        let base = signature(4, &[(0, b"aaaabbbbccccdd")]);
        let difference = |bytes: &[u8]| {
            let found = signature(4, &[(0, bytes)]).difference(&base, Matching::Anywhere);
            (found.blocks, found.bytes)
        };
        assert_eq!(difference(b"ccccaaaabbbbdd"), (0, 0));
        assert_eq!(difference(b"xxxxaaaaxxxxyy"), (2, 6));
        // Blocks are aligned: data that moved by less than a block is not found.
        assert_eq!(difference(b"Xaaaabbbbccccdd"), (4, 15));
        let full = signature(4, &[(0, b"aaaabbbbaaaaaa")]).full(Matching::Anywhere);
        assert_eq!((full.blocks, full.bytes), (3, 10));
    }

    #[test]
    fn runs_are_compared_at_their_addresses_in_any_order() {
        let base = signature(4, &[(100, b"bbbbcc"), (6, b"aaaaaa")]);
        let other = signature(4, &[(6, b"aaaaaa"), (40, b"zz"), (100, b"bbbbcc")]);
        assert_eq!(other.blocks(), 5);
        assert_eq!(
            other.difference(&base, Matching::Address),
            Difference { blocks: 1, bytes: 2, records: 0 }
        );
        // The first block of a run that now begins earlier has changed.
        let longer = signature(4, &[(5, b"aaaaaaa")]);
        assert_eq!(
            longer.difference(&base, Matching::Address),
            Difference { blocks: 1, bytes: 3, records: 0 }
        );
    }

    #[test]
    fn new_files_and_records_are_stored_in_full() {
        let mut only = signature(4, &[(0, b"aaaabb")]);
        only.files.values_mut().for_each(|file| file.add_records(7));
        let found = only.full(Matching::Address);
        assert_eq!(found, Difference { blocks: 2, bytes: 6, records: 7 });
        assert_eq!(found.size(24), 6 + 7 + 48);
    }
}
