//! Integer types of dense problems, and cache-aligned rows of them.

use std::fmt::Debug;

use super::avx2::{self, Pair};

/// Kernel for sums over rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernel {
    /// Scalar.
    Scalar,
    /// 256-bit vectors; created only if the processor supports them.
    Avx2(avx2::Token),
}

impl Kernel {
    /// The fastest kernel of this processor.
    pub(super) fn detect() -> Self {
        avx2::Token::detect().map_or(Self::Scalar, Self::Avx2)
    }
}

/// An integer type of weights and costs.
pub(super) trait Element: Copy + Default + Debug + Into<i64> + TryFrom<i64> + Send + Sync {
    /// `Σ_k (weights[1][k] − weights[0][k]) · (costs[0][k] − costs[1][k])` over rows of equal length.
    ///
    /// [`fits`](Self::fits) holds for the differences.
    fn dot(kernel: Kernel, weights: Pair<'_, Self>, costs: Pair<'_, Self>) -> i64;

    /// Whether sums over this many columns fit, given the ranges of weights and costs.
    fn fits(weights: u64, costs: u64, columns: usize) -> bool;
}

/// Whether every sum of this many products fits a bound.
fn sums_below(bound: i64, weights: u64, costs: u64, columns: usize) -> bool {
    u128::from(weights) * u128::from(costs) * (columns as u128) <= u128::from(bound.unsigned_abs())
}

macro_rules! element {
    ($type:ty, $largest:expr, $scalar:path $(, $vectors:path)?) => {
        impl Element for $type {
            fn dot(kernel: Kernel, weights: Pair<'_, Self>, costs: Pair<'_, Self>) -> i64 {
                match kernel {
                    $(Kernel::Avx2(token) => $vectors(token, weights, costs),)?
                    _ => $scalar(weights, costs),
                }
            }

            fn fits(weights: u64, costs: u64, columns: usize) -> bool {
                Self::try_from(weights.max(costs)).is_ok() && sums_below($largest, weights, costs, columns)
            }
        }
    };
}
element!(i8, i32::MAX.into(), avx2::scalar_i8, avx2::dot_i8);
element!(i16, i32::MAX.into(), avx2::scalar_i16, avx2::dot_i16);
element!(i32, i64::MAX, avx2::scalar_i32, avx2::dot_i32);
element!(i64, i64::MAX, avx2::scalar_i64);

/// Bytes of a cache line. Rows start on one, so that no vector crosses a line.
const LINE: usize = 64;
/// Cache alias distance in bytes: row lengths must not be multiples of it.
const ALIAS: usize = 2048;

/// Rows of a square matrix, padded with zeros so that vector loops need no remainder.
pub(super) struct Rows<E> {
    values: Vec<E>,
    /// Offset of the first row.
    start: usize,
    stride: usize,
    size: usize,
}

impl<E: Element> Rows<E> {
    /// Fills a matrix from a function of row and column.
    pub(super) fn new(size: usize, value: impl Fn(usize, usize) -> E) -> Self {
        let mut rows = Self::zero(size);
        for row in 0..size {
            for column in 0..size {
                *rows.at_mut(row, column) = value(row, column);
            }
        }
        rows
    }

    fn zero(size: usize) -> Self {
        let width = size_of::<E>();
        let mut bytes = (size * width).next_multiple_of(LINE);
        if bytes.is_multiple_of(ALIAS) {
            bytes += LINE;
        }
        let stride = bytes / width;
        let values = vec![E::default(); size * stride + LINE / width];
        let start = values.as_ptr().align_offset(LINE).min(LINE / width);
        Self { values, start, stride, size }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// A row and its padding.
    #[inline]
    pub(super) fn row(&self, row: usize) -> &[E] {
        &self.values[self.start + row * self.stride..][..self.stride]
    }

    #[inline]
    pub(super) fn at(&self, row: usize, column: usize) -> E {
        self.values[self.start + row * self.stride + column]
    }

    fn at_mut(&mut self, row: usize, column: usize) -> &mut E {
        &mut self.values[self.start + row * self.stride + column]
    }

    /// Exchanges two rows and the columns of the same indices.
    pub(super) fn exchange(&mut self, first: usize, second: usize) {
        let (low, high) = (first.min(second), first.max(second));
        if low == high {
            return;
        }
        let stride = self.stride;
        let rows = &mut self.values[self.start..][..self.size * stride];
        let (before, after) = rows.split_at_mut(high * stride);
        before[low * stride..][..stride].swap_with_slice(&mut after[..stride]);
        for row in rows.chunks_exact_mut(stride) {
            row.swap(low, high);
        }
    }
}

impl<E: Element> Clone for Rows<E> {
    /// Copies to a newly aligned allocation.
    fn clone(&self) -> Self {
        let mut copy = Self::zero(self.size);
        let length = self.size * self.stride;
        copy.values[copy.start..][..length].copy_from_slice(&self.values[self.start..][..length]);
        copy
    }
}
