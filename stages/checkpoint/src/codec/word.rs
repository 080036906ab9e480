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
}

macro_rules! word {
    ($word:ty, $bits:expr) => {
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
        }
    };
}

word!(u32, 32);
word!(u64, 64);

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
            for at in stride..words.len() {
                words[at] = words[at].plus(words[at - stride]);
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

/// The inverse of [`split`]: the words of planes.
pub(super) fn join<W: Word>(planes: &[u8], words: &mut Vec<W>) {
    let count = planes.len() / W::BYTES;
    words.clear();
    words.reserve(count);
    let whole = count / 8 * 8;
    for at in (0..whole).step_by(8) {
        let mut rows = [0; 8];
        for (row, plane) in rows.iter_mut().zip(planes.chunks_exact(count)) {
            *row = u64::of(&plane[at..at + 8]);
        }
        transpose(&mut rows);
        words.extend(rows.iter().map(|row| W::of(&row.to_le_bytes()[..W::BYTES])));
    }
    for at in whole..count {
        let mut row = [0; 8];
        for (byte, plane) in row.iter_mut().zip(planes.chunks_exact(count)) {
            *byte = plane[at];
        }
        words.push(W::of(&row[..W::BYTES]));
    }
}
