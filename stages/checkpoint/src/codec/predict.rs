//! Prediction of words from those before them: of numbers that lie on a smooth curve little is left.

use super::word::{self, Word};

/// Words are predicted by the polynomial of degree `order - 1` through the `order` words before them, each `stride` apart; by
/// nothing when the order is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Predictor {
    pub(super) order: u8,
    /// In words; anything when the order is 0.
    pub(super) stride: u8,
}

impl Predictor {
    /// Whether it is one of those that there are.
    pub(super) fn is_valid(self) -> bool {
        self.order <= MOST_ORDER && (self.order == 0 || self.stride > 0)
    }
}

const MOST_ORDER: u8 = 5;

/// Distances tried: components of the points of a grid, small matrices, lines of caches.
const STRIDES: [u8; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 16, 24, 25];

/// Words of a run that are looked at, and runs.
const RUN: usize = 192;
const RUNS: usize = 6;

/// The predictor that leaves least of a sample of words.
pub(super) fn predictor<W: Word>(words: &[W]) -> Predictor {
    let runs = runs(words);
    let mut best = (entropy(&runs, |word| word), Predictor::default());
    let stride = STRIDES
        .into_iter()
        .map(|stride| {
            let mut left = runs.clone();
            difference(&mut left, stride);
            (bits(&left), stride)
        })
        .min()
        .map_or(1, |(_, stride)| stride);
    let mut left = runs;
    for order in 1..=MOST_ORDER {
        difference(&mut left, stride);
        let cost = entropy(&left, Word::fold);
        if cost < best.0 {
            best = (cost, Predictor { order, stride });
        }
    }
    best.1
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
        word::differences(run, stride.into(), &mut target);
        // What has nothing before it is the same in any way; counting it would hide what differs.
        target.drain(..usize::from(stride).min(target.len()));
        *run = target;
    }
}

/// Bits that hold the words of runs without their leading zeros, for each 4096 words.
fn bits<W: Word>(runs: &[Vec<W>]) -> u64 {
    let count: usize = runs.iter().map(Vec::len).sum();
    let bits: u64 = runs
        .iter()
        .flatten()
        .map(|&word| {
            let word: u64 = word.fold().into();
            u64::from(64 - word.leading_zeros())
        })
        .sum();
    bits * 4096 / (count as u64).max(1)
}

/// The entropy of the bytes of words by their significance, about: in parts of 4096 of a bit for each word.
fn entropy<W: Word>(runs: &[Vec<W>], map: impl Fn(W) -> W) -> u64 {
    let count: usize = runs.iter().map(Vec::len).sum();
    let mut counts = [[0_u32; 256]; 8];
    for &word in runs.iter().flatten() {
        let word: u64 = map(word).into();
        for (counts, byte) in counts.iter_mut().zip(word.to_le_bytes()) {
            counts[usize::from(byte)] += 1;
        }
    }
    let total = count as u64;
    let of_plane = |counts: &[u32; 256]| {
        let sum: u64 = counts.iter().map(|&count| u64::from(count) * logarithm(count.into())).sum();
        (total * logarithm(total)).saturating_sub(sum)
    };
    counts.iter().take(W::BYTES).map(of_plane).sum::<u64>() / total.max(1)
}

/// 4096 times the binary logarithm, with straight lines between powers of two; 0 of 0.
fn logarithm(number: u64) -> u64 {
    match number {
        0 => 0,
        _ => {
            let whole = number.ilog2();
            u64::from(whole) * 4096 + (((number - (1 << whole)) * 4096) >> whole)
        }
    }
}
