//! What many numbers say: their middle, how far they are apart, and how sure the middle is.

/// Numbers in rising order; what is not finite is left out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    pub(crate) fn new(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn least(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn largest(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }

    /// Lower quartile, median and upper quartile.
    pub(crate) fn quartiles(&self) -> [f64; 3] {
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
    pub(crate) fn median_interval(&self) -> Option<(f64, f64)> {
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

/// Which points no other one beats: one that is as good in both and better in one.
pub(crate) fn front(points: &[(f64, f64)]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| {
        points[a].0.total_cmp(&points[b].0).then_with(|| points[a].1.total_cmp(&points[b].1))
    });
    let mut is_on_front = vec![false; points.len()];
    let mut best: Option<(f64, f64)> = None;
    for index in order {
        let point = points[index];
        let is_beaten = best.is_some_and(|best| best.1 <= point.1 && best != point);
        if !is_beaten && point.0.is_finite() && point.1.is_finite() {
            is_on_front[index] = true;
            best = Some(point);
        }
    }
    is_on_front
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        fn the_front_is_what_nothing_beats(points in prop::collection::vec((0_u8..20, 0_u8..20), 0..40)) {
            let points: Vec<(f64, f64)> = points.into_iter().map(|(x, y)| (f64::from(x), f64::from(y))).collect();
            let beats = |a: (f64, f64), b: (f64, f64)| a.0 <= b.0 && a.1 <= b.1 && a != b;
            let expected: Vec<bool> =
                points.iter().map(|&point| !points.iter().any(|&other| beats(other, point))).collect();
            prop_assert_eq!(front(&points), expected);
        }

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
