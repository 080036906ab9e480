//! Medians, quantiles and distribution-free confidence intervals of small samples.

/// The middle value, or the mean of the two in the middle; none of no values.
#[must_use]
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(values[values.len() / 2 - 1], upper) })
}

/// The middle value, or the lower of the two in the middle, so that it is one of them; none of no values.
/// For what was measured, where the mean of two measurements is none itself; [`median`] is for summaries of results.
#[must_use]
pub fn lower_median(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// Numbers in rising order; what is not finite is left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// A sample of the finite ones among some numbers.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// Their number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The smallest; `NaN` if there are none.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    /// The largest; `NaN` if there are none.
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

    /// An interval that holds the median of where the numbers come from with a probability of 95 % or more, whatever their
    /// distribution: from the k-th smallest to the k-th largest number. Fewer than six numbers have none.
    #[must_use]
    pub fn median_interval(&self) -> Option<(f64, f64)> {
        let rank = interval_rank(self.0.len())?;
        Some((self.0[rank - 1], self.0[self.0.len() - rank]))
    }
}

/// The largest k for which at most 2.5 % of all samples of this size have fewer than k numbers below the median: the binomial
/// distribution of `size` throws of a coin, exactly.
fn interval_rank(size: usize) -> Option<usize> {
    const TAIL: f64 = 0.025;
    // Logarithms, since 2⁻ⁿ is no double from n = 1075 on.
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
    fn a_median_is_the_middle_or_the_mean_of_the_two_in_the_middle() {
        assert_eq!((median(vec![]), lower_median(vec![])), (None, None));
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(lower_median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.0));
    }

    #[test]
    fn quartiles_are_those_of_numpy() {
        let shown = |values: [f64; 3]| values.map(|value| value.to_string());
        assert_eq!(shown(Sample::new([3.0, 1.0, 2.0, 4.0]).quartiles()), ["1.75", "2.5", "3.25"]);
        assert_eq!(shown(Sample::new([7.0, f64::NAN]).quartiles()), ["7", "7", "7"]);
        assert!(Sample::new([]).quartiles()[1].is_nan());
    }

    /// Critical values of the two-sided sign test at 5 % (Conover, Practical Nonparametric Statistics), plus one.
    #[test]
    fn intervals_of_the_median_are_those_of_the_tables() {
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
        // Far from where 2⁻ⁿ is a double; 1.96 standard deviations below the middle.
        assert_eq!(interval_rank(10_000), Some(4902));
        let ten = Sample::new((1..=10).map(f64::from));
        assert_eq!(ten.median_interval(), Some((2.0, 9.0)));
    }

    proptest! {
        #[test]
        fn quartiles_and_intervals_are_in_order(values in prop::collection::vec(-1e9_f64..1e9, 6..80)) {
            let sample = Sample::new(values);
            let [lower, median, upper] = sample.quartiles();
            prop_assert!(sample.least() <= lower && lower <= median && median <= upper && upper <= sample.largest());
            let (low, high) = sample.median_interval().unwrap_or((f64::NAN, f64::NAN));
            prop_assert!(low <= median && median <= high);
        }
    }
}
