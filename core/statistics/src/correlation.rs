//! Rank correlation coefficients: how well one quantity puts things in the order of another.

/// Spearman's ρ: Pearson's correlation of the ranks, where equal values share the mean of their ranks. `None` if all
/// values of either side are equal.
#[must_use]
pub fn spearman(x: &[f64], y: &[f64]) -> Option<f64> {
    let (x, y) = (ranks(x), ranks(y));
    let middle = f64::midpoint(x.len().min(y.len()) as f64, 1.0);
    let sum =
        |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum() };
    let variances = sum(&x, &x) * sum(&y, &y);
    (variances > 0.0).then(|| (sum(&x, &y) / variances.sqrt()).clamp(-1.0, 1.0))
}

/// Ranks from 1; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    for equal in order.chunk_by(|&lower, &upper| values[lower] >= values[upper]) {
        let mean = below as f64 + f64::midpoint(equal.len() as f64, 1.0);
        equal.iter().for_each(|&index| ranks[index] = mean);
        below += equal.len();
    }
    ranks
}

/// Kendall's τ-b over the pairs of positions that count: (C − D) / √((P − X)(P − Y)) of P pairs, of which C are in the
/// same order on both sides, D in opposite order, and X and Y equal on one side (Kendall, Biometrika 33, 1945). `None`
/// if no pair differs on both sides. All pairs are examined.
#[must_use]
pub fn kendall(x: &[f64], y: &[f64], counts: impl Fn(usize, usize) -> bool) -> Option<f64> {
    let (mut balance, mut different_x, mut different_y) = (0_i64, 0_u64, 0_u64);
    for second in 0..x.len().min(y.len()) {
        for first in (0..second).filter(|&first| counts(first, second)) {
            let (by_x, by_y) = (order(x[first], x[second]), order(y[first], y[second]));
            balance += by_x * by_y;
            different_x += by_x.unsigned_abs();
            different_y += by_y.unsigned_abs();
        }
    }
    let pairs = (different_x as f64 * different_y as f64).sqrt();
    (pairs > 0.0).then(|| (balance as f64 / pairs).clamp(-1.0, 1.0))
}

/// -1, 0 or 1.
fn order(a: f64, b: f64) -> i64 {
    i64::from(a > b) - i64::from(a < b)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const X: [f64; 10] = [3.1, 1.2, 5.5, 2.2, 9.7, 4.4, 8.8, 7.3, 6.6, 0.5];
    const Y: [f64; 10] = [2.0, 1.0, 6.0, 3.5, 9.0, 4.0, 7.0, 10.0, 5.0, 0.1];
    /// With ties on both sides.
    const U: [f64; 8] = [1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0, 5.0];
    const V: [f64; 8] = [2.0, 1.0, 3.0, 3.0, 5.0, 4.0, 4.0, 4.0];

    fn near(found: Option<f64>, expected: f64) {
        assert!(found.is_some_and(|found| (found - expected).abs() < 1e-12), "{found:?}, not {expected}");
    }

    /// Values of `scipy.stats.spearmanr` and `kendalltau` (`SciPy` 1.17.1).
    #[test]
    fn coefficients_equal_those_of_scipy() {
        near(spearman(&X, &Y), 0.939_393_939_393_939);
        near(kendall(&X, &Y, |_, _| true), 0.822_222_222_222_222);
        near(spearman(&U, &V), 0.727_848_101_265_823);
        near(kendall(&U, &V, |_, _| true), 0.583_333_333_333_333);
        let reversed = Y.map(|y| -y);
        near(spearman(&Y, &reversed), -1.0);
        near(kendall(&Y, &reversed, |_, _| true), -1.0);
    }

    #[test]
    fn values_without_an_order_have_no_correlation() {
        for (x, y) in [(&[][..], &[][..]), (&[1.0], &[2.0]), (&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0])] {
            assert_eq!((spearman(x, y), kendall(x, y, |_, _| true)), (None, None));
        }
        assert_eq!(kendall(&X, &Y, |_, _| false), None);
    }

    #[test]
    fn pairs_that_do_not_count_change_nothing() {
        let (x, y) = ([1.0, 2.0, 3.0, 2.9], [1.0, 2.0, 3.0, 3.1]);
        near(kendall(&x, &y, |_, _| true), 4.0 / 6.0);
        near(kendall(&x, &y, |a, b| (y[a] - y[b]).abs() > 0.5), 1.0);
    }

    proptest! {
        #[test]
        fn both_sides_are_alike_and_only_the_order_counts(pairs in prop::collection::vec((0_u8..9, 0_u8..9), 2..30)) {
            let (x, y): (Vec<f64>, Vec<f64>) = pairs.iter().map(|&(x, y)| (f64::from(x), f64::from(y))).unzip();
            let stretched: Vec<f64> = x.iter().map(|x| x.exp()).collect();
            for (one, other, third) in [
                (spearman(&x, &y), spearman(&y, &x), spearman(&stretched, &y)),
                (kendall(&x, &y, |_, _| true), kendall(&y, &x, |_, _| true), kendall(&stretched, &y, |_, _| true)),
            ] {
                prop_assert_eq!(one.is_some(), other.is_some());
                prop_assert!((one.unwrap_or(0.0) - other.unwrap_or(0.0)).abs() < 1e-12);
                prop_assert!((one.unwrap_or(0.0) - third.unwrap_or(0.0)).abs() < 1e-12);
                prop_assert!(one.is_none_or(|one| (-1.0..=1.0).contains(&one)));
            }
        }
    }
}
