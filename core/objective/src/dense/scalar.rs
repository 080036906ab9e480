//! The twins of the vector kernels, one value after the other. Tests compare the two.

use super::element::Pair;

/// Sums products of differences in a wider type.
macro_rules! dot {
    ($name:ident, $element:ty, $sum:ty) => {
        pub(super) fn $name(weights: Pair<'_, $element>, costs: Pair<'_, $element>) -> i64 {
            let rows = weights[0].iter().zip(weights[1]).zip(costs[0].iter().zip(costs[1]));
            let sum: $sum = rows
                .map(|((&from, &to), (&here, &there))| {
                    (<$sum>::from(to) - <$sum>::from(from)) * (<$sum>::from(here) - <$sum>::from(there))
                })
                .sum();
            sum.into()
        }
    };
}

dot!(dot_i8, i8, i32);
dot!(dot_i16, i16, i32);
dot!(dot_i32, i32, i64);
dot!(dot_i64, i64, i64);
