//! Blocks of bytes, one per process.

use std::ops::Range;

/// The sizes of the blocks of a buffer, one per process and in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// Where the blocks begin, and the end of the last one. 2³² sizes of 64 bits add up to less than 128.
    starts: Vec<u128>,
}

impl Blocks {
    /// Blocks of the given sizes.
    pub(crate) fn of(sizes: impl Iterator<Item = u64>) -> Self {
        let mut end = 0;
        let ends = sizes.map(|size| {
            end += u128::from(size);
            end
        });
        Self { starts: std::iter::once(0).chain(ends).collect() }
    }

    /// So many blocks of the same size.
    pub(crate) fn equal(size: u64, count: u32) -> Self {
        Self::of((0..count).map(|_| size))
    }

    /// A buffer in one or more blocks that differ by one byte at most, the larger ones first.
    pub(crate) fn even(bytes: u64, count: u32) -> Self {
        let (size, larger) = (bytes / u64::from(count), bytes % u64::from(count));
        Self::of((0..count).map(|block| size + u64::from(u64::from(block) < larger)))
    }

    /// A buffer in one or more blocks of the same size, rounded up, so that the last ones may be short or empty.
    pub(crate) fn rounded_up(bytes: u64, count: u32) -> Self {
        let size = bytes.div_ceil(u64::from(count));
        let start = |block: u32| u64::from(block).saturating_mul(size).min(bytes);
        Self::of((0..count).map(|block| start(block + 1) - start(block)))
    }

    /// How many blocks there are.
    pub(crate) fn count(&self) -> u32 {
        (self.starts.len() - 1) as u32
    }

    /// How many blocks are not empty.
    pub(crate) fn filled(&self) -> u64 {
        self.starts.windows(2).filter(|ends| ends[0] < ends[1]).count() as u64
    }

    /// Bytes of all blocks.
    pub(crate) fn total(&self) -> u128 {
        self.starts[self.starts.len() - 1]
    }

    /// Bytes of one block.
    pub(crate) fn one(&self, block: u32) -> u64 {
        self.several(block..block + 1)
    }

    /// Bytes of a range of blocks.
    pub(crate) fn several(&self, blocks: Range<u32>) -> u64 {
        saturate(self.starts[blocks.end as usize] - self.starts[blocks.start as usize])
    }

    /// Bytes of so many blocks from one on, around.
    pub(crate) fn around(&self, first: u32, count: u32) -> u64 {
        let room = self.count() - first;
        match count <= room {
            true => self.several(first..first + count),
            false => self.several(first..self.count()).saturating_add(self.several(0..count - room)),
        }
    }

    /// The part of so many bytes that the blocks before `end` have in all blocks, rounded down; all for the last end.
    pub(crate) fn portion(&self, bytes: u64, end: u32) -> u64 {
        if end == self.count() {
            return bytes;
        }
        // Sums of more than 64 bits lose their last bits, so that the product fits into 128.
        let excess = (u128::BITS - self.total().leading_zeros()).saturating_sub(u64::BITS);
        let (part, whole) = (self.starts[end as usize] >> excess, self.total() >> excess);
        saturate(u128::from(bytes) * part / whole.max(1))
    }

    /// Bytes of all blocks but one.
    pub(crate) fn all_but(&self, block: u32) -> u64 {
        saturate(self.total() - u128::from(self.one(block)))
    }
}

/// As many bytes as 64 bits can tell.
pub(crate) fn saturate(bytes: u128) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(blocks: &Blocks) -> Vec<u64> {
        (0..blocks.count()).map(|block| blocks.one(block)).collect()
    }

    #[test]
    fn a_buffer_is_cut_evenly_or_rounded_up() {
        assert_eq!(sizes(&Blocks::even(10, 4)), [3, 3, 2, 2]);
        assert_eq!(sizes(&Blocks::rounded_up(10, 4)), [3, 3, 3, 1]);
        assert_eq!(sizes(&Blocks::rounded_up(9, 8)), [2, 2, 2, 2, 1, 0, 0, 0]);
        assert_eq!(sizes(&Blocks::even(1, 3)), [1, 0, 0]);
        assert_eq!(sizes(&Blocks::equal(7, 2)), [7, 7]);
    }

    #[test]
    fn ranges_of_blocks_go_around() {
        let blocks = Blocks::of([1, 2, 4, 8].into_iter());
        assert_eq!(blocks.several(1..3), 6);
        assert_eq!(blocks.around(3, 2), 9);
        assert_eq!(blocks.around(2, 4), 15);
        assert_eq!(blocks.all_but(2), 11);
        assert_eq!(Blocks::of([0, 5, 0].into_iter()).filled(), 1);
    }

    #[test]
    fn sizes_beyond_64_bits_stay_at_the_largest() {
        let blocks = Blocks::equal(1 << 63, 4);
        assert_eq!(blocks.several(0..2), u64::MAX);
        assert_eq!(blocks.all_but(0), u64::MAX);
        assert_eq!(blocks.total(), 1 << 65);
        assert_eq!(sizes(&Blocks::rounded_up(u64::MAX, 3)), [u64::MAX / 3; 3]);
    }
}
