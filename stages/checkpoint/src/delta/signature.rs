//! What is kept of a checkpoint to tell which of its blocks another one has changed: a hash of each.

use std::collections::BTreeMap;
use std::path::PathBuf;

use twox_hash::XxHash3_128;

/// Hashes of all blocks of a checkpoint: 16 bytes for each, however long blocks are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signature {
    /// Files by their place in the checkpoint.
    pub files: BTreeMap<PathBuf, FileSignature>,
}

impl Signature {
    /// Number of blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.files.values().map(|file| file.hashes.len() as u64).sum()
    }

    /// Bytes of all files, S(K).
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.values().map(FileSignature::bytes).sum()
    }

    /// Everything, as if there were no base.
    #[must_use]
    pub fn whole(&self) -> Difference {
        self.difference(&Self::default())
    }

    /// Fixed-size compare-by-hash: the blocks of this checkpoint that are not at the same place of the same file of a base.
    #[must_use]
    pub fn difference(&self, base: &Self) -> Difference {
        let of_file = |(place, file): (&PathBuf, &FileSignature)| file.difference(base.files.get(place));
        self.files.iter().map(of_file).fold(Difference::default(), Difference::and)
    }
}

/// What a checkpoint has that its base has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Difference {
    /// Changed blocks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that belong to no block and are always stored: records of images.
    pub records: u64,
}

impl Difference {
    /// Bytes of the delta, with so many for each block that say where it belongs.
    #[must_use]
    pub fn size(self, block_overhead: u64) -> u64 {
        self.bytes + self.records + self.blocks * block_overhead
    }

    fn and(self, other: Self) -> Self {
        Self {
            blocks: self.blocks + other.blocks,
            bytes: self.bytes + other.bytes,
            records: self.records + other.records,
        }
    }
}

/// Hashes of the blocks of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileSignature {
    /// Bytes of a block.
    block: u64,
    /// Stretches of addresses; in their order when the signature is finished.
    runs: Vec<Run>,
    /// Hashes of the blocks of all runs.
    hashes: Vec<u128>,
    /// Bytes that belong to no block.
    records: u64,
}

/// Bytes at addresses that follow each other. Its blocks end at multiples of the block length, the last one with the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    address: u64,
    length: u64,
    /// Where its hashes begin.
    first: usize,
}

impl FileSignature {
    /// A file without blocks.
    #[must_use]
    pub fn new(block: u64) -> Self {
        Self { block: block.max(1), ..Self::default() }
    }

    /// Counts bytes that belong to no block.
    pub fn add_records(&mut self, bytes: u64) {
        self.records += bytes;
    }

    /// Begins a run.
    pub fn begin(&mut self, address: u64) {
        self.runs.push(Run { address, length: 0, first: self.hashes.len() });
    }

    /// Adds bytes to the run that was begun last. They end where a block ends, or with the run.
    pub fn add(&mut self, mut bytes: &[u8]) {
        let Some(run) = self.runs.last_mut() else { return };
        while !bytes.is_empty() {
            let room = self.block - (run.address + run.length) % self.block;
            let (block, rest) = bytes.split_at(bytes.len().min(room as usize));
            self.hashes.push(XxHash3_128::oneshot(block));
            run.length += block.len() as u64;
            bytes = rest;
        }
    }

    /// Ends the file.
    pub fn finish(&mut self) {
        self.runs.retain(|run| run.length > 0);
        self.runs.sort_by_key(|run| (run.address, run.first));
        self.hashes.shrink_to_fit();
    }

    fn bytes(&self) -> u64 {
        self.records + self.runs.iter().map(|run| run.length).sum::<u64>()
    }

    fn difference(&self, base: Option<&Self>) -> Difference {
        let mut difference = Difference { records: self.records, ..Difference::default() };
        for run in &self.runs {
            let mut address = run.address;
            let end = run.address.saturating_add(run.length);
            for hash in self.hashes.iter().skip(run.first) {
                if address >= end {
                    break;
                }
                let next = end.min((address - address % self.block).saturating_add(self.block));
                if base.and_then(|base| base.at(address)) != Some(*hash) {
                    difference.blocks += 1;
                    difference.bytes += next - address;
                }
                address = next;
            }
        }
        difference
    }

    /// Hash of the block that begins at an address.
    fn at(&self, address: u64) -> Option<u128> {
        let after = self.runs.partition_point(|run| run.address <= address);
        let run = self.runs.get(after.checked_sub(1)?)?;
        let whole = address / self.block - run.address / self.block;
        let begins_here = address == run.address || address.is_multiple_of(self.block);
        match begins_here && address < run.address + run.length {
            true => self.hashes.get(run.first + whole as usize).copied(),
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
    fn blocks_that_differ_are_counted_with_their_bytes() {
        let base = signature(4, &[(0, b"aaaabbbbccccdd")]);
        let difference = |bytes: &[u8]| {
            let found = signature(4, &[(0, bytes)]).difference(&base);
            (found.blocks, found.bytes)
        };
        assert_eq!(difference(b"aaaabbbbccccdd"), (0, 0));
        assert_eq!(difference(b"aaaaBbbbccccdd"), (1, 4));
        assert_eq!(difference(b"aaaabbbbccccde"), (1, 2));
        // A block that became longer or shorter is another one.
        assert_eq!(difference(b"aaaabbbbccccddd"), (1, 3));
        assert_eq!(difference(b"aaaabbbbccc"), (1, 3));
        assert_eq!(difference(b""), (0, 0));
        // Fragments that moved are not found.
        assert_eq!(difference(b"Xaaaabbbbccccdd"), (4, 15));
    }

    #[test]
    fn runs_are_compared_at_their_addresses_in_whatever_order() {
        let base = signature(4, &[(100, b"bbbbcc"), (6, b"aaaaaa")]);
        let other = signature(4, &[(6, b"aaaaaa"), (40, b"zz"), (100, b"bbbbcc")]);
        assert_eq!(other.blocks(), 5);
        assert_eq!(other.difference(&base), Difference { blocks: 1, bytes: 2, records: 0 });
        // The first block of a run that begins earlier now is another one.
        let longer = signature(4, &[(5, b"aaaaaaa")]);
        assert_eq!(longer.difference(&base), Difference { blocks: 1, bytes: 3, records: 0 });
    }

    #[test]
    fn a_file_without_a_base_and_records_are_stored_whole() {
        let mut only = signature(4, &[(0, b"aaaabb")]);
        only.files.values_mut().for_each(|file| file.add_records(7));
        let found = only.difference(&Signature::default());
        assert_eq!(found, Difference { blocks: 2, bytes: 6, records: 7 });
        assert_eq!(found.size(24), 6 + 7 + 48);
    }
}
