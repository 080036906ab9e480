//! Medians, quantiles and distribution-free confidence intervals of small samples, and rank correlation.

mod correlation;

pub use correlation::{kendall, spearman};

mod looks;

pub use looks::Looks;

mod paired;

pub use paired::{PairedGain, gain_at_end, gain_at_look, paired_gain};

/// The middle value, or the mean of the two middle ones; `None` if empty.
#[must_use]
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(values[values.len() / 2 - 1], upper) })
}

/// The middle value, or the lower of the two middle ones, so that it is always an observed value; `None` if
/// empty. Use it for measurements, and [`median`] for summaries of results.
#[must_use]
pub fn lower_median(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// Sorted finite numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// Creates a sample of the finite numbers; others are dropped.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// Sample size.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The smallest; `NaN` if empty.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    /// The largest; `NaN` if empty.
    #[must_use]
    pub fn largest(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }

    /// Lower quartile, median and upper quartile.
    #[must_use]
    pub fn quartiles(&self) -> [f64; 3] {
        [0.25, 0.5, 0.75].map(|share| self.quantile(share))
    }

    /// Interpolated between neighbours, as R's type 7 and `NumPy` do.
    fn quantile(&self, share: f64) -> f64 {
        let Some(last) = self.0.len().checked_sub(1) else { return f64::NAN };
        let place = share * last as f64;
        let (below, rest) = (place.floor() as usize, place.fract());
        let above = (below + 1).min(last);
        self.0[below] + rest * (self.0[above] - self.0[below])
    }

    /// Distribution-free confidence interval of the median at 95 % or more: from the k-th smallest to the
    /// k-th largest number. `None` for fewer than six numbers.
    #[must_use]
    pub fn median_interval(&self) -> Option<(f64, f64)> {
        interval_rank(self.0.len()).map(|rank| self.interval(rank))
    }

    /// From the k-th smallest to the k-th largest number; k is at least 1 and at most half the size.
    fn interval(&self, rank: usize) -> (f64, f64) {
        (self.0[rank - 1], self.0[self.0.len() - rank])
    }
}

/// Probability with which an interval of 95 % may miss at each side.
const TAIL: f64 = 0.025;

/// The largest k for which at most 2.5 % of all samples of this size have fewer than k numbers below the
/// median, from the exact binomial distribution with p = ½.
fn interval_rank(size: usize) -> Option<usize> {
    // Logarithms, because 2⁻ⁿ underflows from n = 1075 on.
    let mut logarithm = -(size as f64) * std::f64::consts::LN_2;
    let mut sum = 0.0;
    let mut rank = 0;
    while rank < size {
        sum += logarithm.exp();
        if sum > TAIL {
            break;
        }
        logarithm += ((size - rank) as f64).ln() - ((rank + 1) as f64).ln();
        rank += 1;
    }
    (rank > 0).then_some(rank)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_median_is_the_middle_value_or_the_mean_of_the_two_middle_ones() {
        assert_eq!((median(vec![]), lower_median(vec![])), (None, None));
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(lower_median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.0));
    }

    #[test]
    fn quartiles_equal_those_of_numpy() {
        let shown = |values: [f64; 3]| values.map(|value| value.to_string());
        assert_eq!(shown(Sample::new([3.0, 1.0, 2.0, 4.0]).quartiles()), ["1.75", "2.5", "3.25"]);
        assert_eq!(shown(Sample::new([7.0, f64::NAN]).quartiles()), ["7", "7", "7"]);
        assert!(Sample::new([]).quartiles()[1].is_nan());
    }

    /// Critical values of the two-sided sign test at 5 % (Conover, Practical Nonparametric Statistics), plus one.
    #[test]
    fn intervals_of_the_median_match_published_tables() {
        let known = [
            (5, None),
            (6, Some(1)),
            (8, Some(1)),
            (9, Some(2)),
            (11, Some(2)),
            (12, Some(3)),
            (15, Some(4)),
            (17, Some(5)),
            (20, Some(6)),
            (25, Some(8)),
            (30, Some(10)),
            (40, Some(14)),
            (50, Some(18)),
            (100, Some(40)),
        ];
        for (size, rank) in known {
            assert_eq!(interval_rank(size), rank, "{size}");
        }
        assert_eq!(interval_rank(0), None);
        // Far beyond the underflow of 2⁻ⁿ; 1.96 standard deviations below the middle.
        assert_eq!(interval_rank(10_000), Some(4902));
        let ten = Sample::new((1..=10).map(f64::from));
        assert_eq!(ten.median_interval(), Some((2.0, 9.0)));
    }

    proptest! {
        #[test]
        fn quartiles_and_intervals_are_ordered(values in prop::collection::vec(-1e9_f64..1e9, 6..80)) {
            let sample = Sample::new(values);
            let [lower, median, upper] = sample.quartiles();
            prop_assert!(sample.least() <= lower && lower <= median && median <= upper && upper <= sample.largest());
            let (low, high) = sample.median_interval().unwrap_or((f64::NAN, f64::NAN));
            prop_assert!(low <= median && median <= high);
        }
    }
}
