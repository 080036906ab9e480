//! Words of a block: differences between them, prediction from previous words (small residuals for numbers on
//! a smooth curve), and byte planes.

/// An unsigned integer of 4 or 8 bytes; sums and differences wrap.
pub(super) trait Word: Copy + Default + Into<u64> {
    /// Its bytes.
    const BYTES: usize;
    /// From its bytes, little-endian; zero if their number is wrong.
    fn of(bytes: &[u8]) -> Self;
    /// Writes its bytes, little-endian.
    fn put(self, bytes: &mut [u8]);
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    /// Zigzag encoding: 0, -1, 1, -2, … become 0, 1, 2, 3, …
    fn fold(self) -> Self;
    /// The inverse of `fold`.
    fn unfold(self) -> Self;
    /// Joins at most [`TILE`] words from planes of the same length.
    fn join(planes: &[&[u8]], words: &mut [Self]);
}

/// Number of words that are joined at once: they fit the fastest cache.
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

/// Joins words of two bytes from two planes.
fn join_pairs(planes: &[&[u8]], words: &mut [u16]) {
    let [low, high] = planes else { return };
    for ((word, &low), &high) in words.iter_mut().zip(*low).zip(*high) {
        *word = u16::from(low) | u16::from(high) << 8;
    }
}

/// The words of a byte string, without an incomplete last word.
pub(super) fn words<W: Word>(bytes: &[u8], words: &mut Vec<W>) {
    words.clear();
    words.extend(bytes.chunks_exact(W::BYTES).map(W::of));
}

/// Each word minus the one `stride` before it; the first `stride` words are unchanged.
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

/// Keeps sums in registers, because a word just written cannot be read back at once.
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

/// Transposes the bytes of eight words: byte `i` of word `j` becomes byte `j` of word `i`. Its own inverse.
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

/// Byte planes of words: plane `i` has byte `i` of each word and begins at `i` times the number of words.
pub(super) fn split<W: Word>(words: &[W], planes: &mut Vec<u8>) {
    let count = words.len();
    planes.clear();
    planes.resize(count * W::BYTES, 0);
    let aligned = count / 8 * 8;
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
    for (at, &word) in words.iter().enumerate().skip(aligned) {
        let word: u64 = word.into();
        for (plane, byte) in planes.chunks_exact_mut(count).zip(word.to_le_bytes()) {
            plane[at] = byte;
        }
    }
}

/// The inverse of [`split`]: joins the words of planes of equal length.
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

/// Predicts words by the polynomial of degree `order - 1` through `order` previous words, `stride` apart;
/// order 0 predicts zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Predictor {
    pub(super) order: u8,
    /// In words; ignored for order 0.
    pub(super) stride: u8,
}

impl Predictor {
    /// Whether the predictor is supported.
    pub(super) fn is_valid(self) -> bool {
        self.order <= MOST_ORDER && (self.order == 0 || self.stride > 0)
    }
}

const MOST_ORDER: u8 = 5;

/// Candidate strides: components of grid points, small matrices, records of programs, cache lines.
const STRIDES: [u8; 13] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 16, 24, 25];

/// Number of words in a sampled run, and number of runs.
const RUN: usize = 192;
const RUNS: usize = 6;

/// The predictor with the smallest residuals for a sample of words.
pub(super) fn predictor<W: Word>(words: &[W]) -> Predictor {
    least(words).1
}

/// Approximate size of words with the best predictor: Huffman coding of byte planes.
pub(super) fn estimate<W: Word>(words: &[W]) -> usize {
    (least(words).0 * words.len() as u64 / (8 * 4096)) as usize
}

/// The best predictor and its residual, in 1/4096 bit per word.
fn least<W: Word>(words: &[W]) -> (u64, Predictor) {
    let mut runs = runs(words);
    let mut best = (entropy(&runs, |word| word), Predictor::default());
    let stride = STRIDES.into_iter().map(|stride| (bits(&runs, stride), stride)).min();
    let stride = stride.map_or(1, |(_, stride)| stride);
    let mut before = u64::MAX;
    for order in 1..=MOST_ORDER {
        difference(&mut runs, stride);
        let cost = entropy(&runs, Word::fold);
        best = best.min((cost, Predictor { order, stride }));
        // Polynomials of higher degree follow noise.
        if cost > before {
            break;
        }
        before = cost;
    }
    best
}

/// Runs of words from all over a block.
fn runs<W: Word>(words: &[W]) -> Vec<Vec<W>> {
    if words.len() <= RUN * RUNS {
        return vec![words.to_vec()];
    }
    let apart = (words.len() - RUN) / (RUNS - 1);
    (0..RUNS).map(|run| words[run * apart..run * apart + RUN].to_vec()).collect()
}

fn difference<W: Word>(runs: &mut [Vec<W>], stride: u8) {
    for run in runs {
        let mut target = Vec::with_capacity(run.len());
        differences(run, stride.into(), &mut target);
        // Words without predecessors are equal for all predictors; counting them would hide the differences.
        target.drain(..usize::from(stride).min(target.len()));
        *run = target;
    }
}

/// Bits of the differences of words `stride` apart without leading zeros, per 4096 words.
fn bits<W: Word>(runs: &[Vec<W>], stride: u8) -> u64 {
    let (mut bits, mut count) = (0_u64, 0_u64);
    for run in runs {
        let later = run.get(stride.into()..).unwrap_or_default();
        count += later.len() as u64;
        bits += later
            .iter()
            .zip(run)
            .map(|(&word, &before)| {
                let left: u64 = word.minus(before).fold().into();
                u64::from(64 - left.leading_zeros())
            })
            .sum::<u64>();
    }
    bits * 4096 / count.max(1)
}

/// Approximate entropy of the byte planes of words, in 1/4096 bit per word.
fn entropy<W: Word>(runs: &[Vec<W>], map: impl Fn(W) -> W) -> u64 {
    let count: usize = runs.iter().map(Vec::len).sum();
    let mut counts = [[0_u32; 256]; 8];
    for &word in runs.iter().flatten() {
        let word: u64 = map(word).into();
        for (counts, byte) in counts.iter_mut().zip(word.to_le_bytes()).take(W::BYTES) {
            counts[usize::from(byte)] += 1;
        }
    }
    let total = count as u64;
    let of_plane = |counts: &[u32; 256]| {
        let sum: u64 = counts.iter().map(|&count| u64::from(count) * logarithm(count)).sum();
        (total * logarithm(count as u32)).saturating_sub(sum)
    };
    counts.iter().take(W::BYTES).map(of_plane).sum::<u64>() / total.max(1)
}

/// Logarithms of all counts that a sample can have.
const LOGARITHMS: [u16; RUN * RUNS + 1] = {
    let mut table = [0; RUN * RUNS + 1];
    let mut number = 1;
    while number < table.len() {
        let exponent = number.ilog2();
        table[number] = (exponent as usize * 4096 + (((number - (1 << exponent)) * 4096) >> exponent)) as u16;
        number += 1;
    }
    table
};

/// 4096 times the binary logarithm, linear between powers of two; 0 for 0.
fn logarithm(number: u32) -> u64 {
    LOGARITHMS.get(number as usize).copied().map_or(0, u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of 11 words, as in restart files of LAMMPS: each word is close to the same one of the previous
    /// record.
    #[test]
    fn records_of_eleven_words_are_recognised() {
        let state = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
        let words: Vec<u64> = (0..4096).map(|at| ((at % 11) << 40) * 7919 + state(at)).collect();
        assert_eq!(predictor(&words).stride, 11);
        let bytes = words.len() * 8;
        assert!(estimate(&words) < bytes / 3, "{} of {bytes}", estimate(&words));
    }

    #[test]
    fn noise_is_estimated_at_its_length_and_zeros_at_nothing() {
        let mut state = 1_u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ (state >> 29)
        };
        let words: Vec<u64> = (0..4096).map(|_| noise()).collect();
        assert!(estimate(&words) > words.len() * 8 * 9 / 10, "{}", estimate(&words));
        assert_eq!(estimate(&vec![0_u64; 4096]), 0);
    }
}
