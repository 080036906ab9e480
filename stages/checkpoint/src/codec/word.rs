//! Words of a block: differences between them, and the bytes of the same significance put together.

/// An unsigned integer of 4 or 8 bytes; sums and differences wrap.
pub(super) trait Word: Copy + Default + Into<u64> {
    /// Its bytes.
    const BYTES: usize;
    /// From its bytes, least significant first; zero when their number is another.
    fn of(bytes: &[u8]) -> Self;
    /// Puts its bytes down, least significant first.
    fn put(self, bytes: &mut [u8]);
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    /// Small numbers of both signs as small numbers: 0, -1, 1, -2, … as 0, 1, 2, 3, …
    fn fold(self) -> Self;
    /// The inverse of `fold`.
    fn unfold(self) -> Self;
    /// At most [`TILE`] words of planes that are as long as they.
    fn join(planes: &[&[u8]], words: &mut [Self]);
}

/// Words that are joined at once: few enough for the fastest cache.
const TILE: usize = 512;

macro_rules! word {
    ($word:ty, $bits:expr, $join:path) => {
        impl Word for $word {
            const BYTES: usize = $bits / 8;
            #[inline]
            fn of(bytes: &[u8]) -> Self {
                bytes.try_into().map_or(0, <$word>::from_le_bytes)
            }
            #[inline]
            fn put(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline]
            fn fold(self) -> Self {
                (self << 1) ^ (self >> ($bits - 1)).wrapping_neg()
            }
            #[inline]
            fn unfold(self) -> Self {
                (self >> 1) ^ (self & 1).wrapping_neg()
            }
            fn join(planes: &[&[u8]], words: &mut [Self]) {
                let (low, high) = planes.split_at(planes.len() / 2);
                let mut halves = [[0; TILE]; 2];
                let [lows, highs] = halves.each_mut().map(|half| &mut half[..words.len()]);
                $join(low, lows);
                $join(high, highs);
                for ((word, &low), &high) in words.iter_mut().zip(&*lows).zip(&*highs) {
                    *word = Self::from(low) | Self::from(high) << ($bits / 2);
                }
            }
        }
    };
}

word!(u32, 32, join_pairs);
word!(u64, 64, u32::join);

/// Words of two bytes of two planes.
fn join_pairs(planes: &[&[u8]], words: &mut [u16]) {
    let [low, high] = planes else { return };
    for ((word, &low), &high) in words.iter_mut().zip(*low).zip(*high) {
        *word = u16::from(low) | u16::from(high) << 8;
    }
}

/// The words of some bytes; what is left of less than a word is not among them.
pub(super) fn words<W: Word>(bytes: &[u8], words: &mut Vec<W>) {
    words.clear();
    words.extend(bytes.chunks_exact(W::BYTES).map(W::of));
}

/// Each word less the one `stride` before it; the first ones stay.
pub(super) fn differences<W: Word>(words: &[W], stride: usize, target: &mut Vec<W>) {
    target.clear();
    let stride = stride.min(words.len());
    target.extend_from_slice(&words[..stride]);
    target.extend(words[stride..].iter().zip(words).map(|(&word, &before)| word.minus(before)));
}

/// The inverse of [`differences`], in place.
pub(super) fn sums<W: Word>(words: &mut [W], stride: usize) {
    match stride {
        1 => sums_of::<W, 1>(words),
        2 => sums_of::<W, 2>(words),
        3 => sums_of::<W, 3>(words),
        4 => sums_of::<W, 4>(words),
        5 => sums_of::<W, 5>(words),
        6 => sums_of::<W, 6>(words),
        _ => {
            for at in (stride..words.len()).step_by(stride.max(1)) {
                let (before, words) = words.split_at_mut(at);
                for (word, &before) in words.iter_mut().zip(&before[at - stride..]) {
                    *word = word.plus(before);
                }
            }
        }
    }
}

/// With the sums kept in registers: a word just written cannot be read back at once.
fn sums_of<W: Word, const STRIDE: usize>(words: &mut [W]) {
    let mut sums = [W::default(); STRIDE];
    let mut groups = words.chunks_exact_mut(STRIDE);
    for group in groups.by_ref() {
        for (sum, word) in sums.iter_mut().zip(group) {
            *sum = sum.plus(*word);
            *word = *sum;
        }
    }
    for (sum, word) in sums.iter_mut().zip(groups.into_remainder()) {
        *word = sum.plus(*word);
    }
}

/// Puts the bytes of eight words together by their significance: byte `i` of word `j` becomes byte `j` of word `i`.
/// Its own inverse.
#[inline]
fn transpose(rows: &mut [u64; 8]) {
    for (half, mask) in
        [(4, 0x0000_0000_ffff_ffff), (2, 0x0000_ffff_0000_ffff), (1, 0x00ff_00ff_00ff_00ff_u64)]
    {
        let shift = 8 * half;
        for row in (0..8).filter(|row| row & half == 0) {
            let swapped = ((rows[row] >> shift) ^ rows[row + half]) & mask;
            rows[row + half] ^= swapped;
            rows[row] ^= swapped << shift;
        }
    }
}

/// The bytes of words by their significance: plane `i` has byte `i` of each word, and begins at `i` times their number.
pub(super) fn split<W: Word>(words: &[W], planes: &mut Vec<u8>) {
    let count = words.len();
    planes.clear();
    planes.resize(count * W::BYTES, 0);
    let whole = count / 8 * 8;
    for (at, group) in words.chunks_exact(8).enumerate() {
        let mut rows = [0; 8];
        for (row, &word) in rows.iter_mut().zip(group) {
            *row = word.into();
        }
        transpose(&mut rows);
        for (plane, row) in planes.chunks_exact_mut(count).zip(rows) {
            plane[at * 8..at * 8 + 8].copy_from_slice(&row.to_le_bytes());
        }
    }
    for (at, &word) in words.iter().enumerate().skip(whole) {
        let word: u64 = word.into();
        for (plane, byte) in planes.chunks_exact_mut(count).zip(word.to_le_bytes()) {
            plane[at] = byte;
        }
    }
}

/// The inverse of [`split`]: the words of planes of one length.
pub(super) fn join<W: Word>(planes: &[&[u8]], words: &mut Vec<W>) {
    let count = planes.first().map_or(0, |plane| plane.len());
    words.clear();
    words.reserve(count);
    let mut tile = [W::default(); TILE];
    for begin in (0..count).step_by(TILE) {
        let end = count.min(begin + TILE);
        let mut parts: [&[u8]; 8] = [&[]; 8];
        for (part, plane) in parts.iter_mut().zip(planes) {
            *part = &plane[begin..end];
        }
        let tile = &mut tile[..end - begin];
        W::join(&parts[..W::BYTES], tile);
        words.extend_from_slice(tile);
    }
}
