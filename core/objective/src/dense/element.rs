//! The integers that a dense problem is stored in.

use std::fmt::Debug;

use super::{avx2, scalar};

/// How sums over rows are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// One value after the other.
    Scalar,
    /// 256-bit vectors; only made where the processor has them.
    Avx2(avx2::Token),
}

impl Way {
    /// The fastest way of this processor.
    pub(super) fn detect() -> Self {
        avx2::Token::detect().map_or(Self::Scalar, Self::Avx2)
    }
}

/// Two rows of the same length.
pub(super) type Pair<'r, E> = [&'r [E]; 2];

/// An integer type of weights and costs.
pub(super) trait Element: Copy + Default + Debug + Into<i64> + TryFrom<i64> + Send + Sync {
    /// `Σ_k (weights[1][k] − weights[0][k]) · (costs[0][k] − costs[1][k])` over rows of equal length.
    ///
    /// [`fits`](Self::fits) holds for the differences.
    fn dot(way: Way, weights: Pair<'_, Self>, costs: Pair<'_, Self>) -> i64;

    /// Whether weights and costs whose largest differences within a matrix are these can be summed over so many columns.
    fn fits(weights: u64, costs: u64, columns: usize) -> bool;
}

/// Whether every sum of so many products fits a bound.
fn sums_below(bound: i64, weights: u64, costs: u64, columns: usize) -> bool {
    u128::from(weights) * u128::from(costs) * (columns as u128) <= u128::from(bound.unsigned_abs())
}

impl Element for i8 {
    fn dot(way: Way, weights: Pair<'_, Self>, costs: Pair<'_, Self>) -> i64 {
        match way {
            Way::Scalar => scalar::dot_i8(weights, costs),
            Way::Avx2(token) => avx2::dot_i8(token, weights, costs),
        }
    }

    fn fits(weights: u64, costs: u64, columns: usize) -> bool {
        weights.max(costs) <= 127 && sums_below(i32::MAX.into(), weights, costs, columns)
    }
}

impl Element for i16 {
    fn dot(way: Way, weights: Pair<'_, Self>, costs: Pair<'_, Self>) -> i64 {
        match way {
            Way::Scalar => scalar::dot_i16(weights, costs),
            Way::Avx2(token) => avx2::dot_i16(token, weights, costs),
        }
    }

    fn fits(weights: u64, costs: u64, columns: usize) -> bool {
        weights.max(costs) <= 32_767 && sums_below(i32::MAX.into(), weights, costs, columns)
    }
}

impl Element for i32 {
    fn dot(way: Way, weights: Pair<'_, Self>, costs: Pair<'_, Self>) -> i64 {
        match way {
            Way::Scalar => scalar::dot_i32(weights, costs),
            Way::Avx2(token) => avx2::dot_i32(token, weights, costs),
        }
    }

    fn fits(weights: u64, costs: u64, columns: usize) -> bool {
        Self::try_from(weights.max(costs)).is_ok() && sums_below(i64::MAX, weights, costs, columns)
    }
}

impl Element for i64 {
    fn dot(_: Way, weights: Pair<'_, Self>, costs: Pair<'_, Self>) -> i64 {
        scalar::dot_i64(weights, costs)
    }

    fn fits(weights: u64, costs: u64, columns: usize) -> bool {
        Self::try_from(weights.max(costs)).is_ok() && sums_below(Self::MAX, weights, costs, columns)
    }
}
