//! Convergence curves: the best cost over evaluations, in a limited number of points.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// Points of a curve at most; half of them are left when it is thinned out.
const MOST_POINTS: usize = 512;
/// Leading binary digits in which the evaluations of an interval agree: 64 to 4 intervals between two powers of two. With 4 there
/// are 252 in all.
const DIGITS: RangeInclusive<u32> = 3..=7;

/// Every improvement of an island, thinned out when there are many.
///
/// The points depend on the improvements alone, hence not on the number of threads or processes, nor on interruptions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Curve {
    points: Vec<(u64, i64)>,
}

impl Curve {
    /// Records a cost found after `evaluations` if it is the best so far.
    pub(crate) fn record(&mut self, evaluations: u64, cost: i64) {
        if self.points.last().is_none_or(|&(_, best)| cost < best) {
            self.points.push((evaluations, cost));
            if self.points.len() > MOST_POINTS {
                self.thin_out();
            }
        }
    }

    /// Keeps the first point, and the last one of every interval. Intervals are equally long on a logarithmic axis, and as short as
    /// the number of points permits.
    fn thin_out(&mut self) {
        let Some((&first, later)) = self.points.split_first() else { return };
        for digits in DIGITS.rev() {
            let intervals = later.chunk_by(|a, b| leading(a.0, digits) == leading(b.0, digits));
            let kept: Vec<_> =
                std::iter::once(first).chain(intervals.filter_map(<[_]>::last).copied()).collect();
            if kept.len() <= MOST_POINTS / 2 {
                self.points = kept;
                return;
            }
        }
    }

    /// The improvements: evaluations and cost.
    pub(crate) fn into_points(self) -> Vec<(u64, i64)> {
        self.points
    }
}

/// A number with all but its first binary digits set to zero.
fn leading(number: u64, digits: u32) -> u64 {
    let rest = (u64::BITS - number.leading_zeros()).saturating_sub(digits);
    number >> rest << rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn curve(points: impl IntoIterator<Item = (u64, i64)>) -> Curve {
        let mut curve = Curve::default();
        points.into_iter().for_each(|(evaluations, cost)| curve.record(evaluations, cost));
        curve
    }

    #[test]
    fn a_curve_has_every_improvement() {
        let points = curve([(0, 9), (3, 9), (4, 7), (5, 8), (5, 2)]).into_points();
        assert_eq!(points, [(0, 9), (4, 7), (5, 2)]);
    }

    #[test]
    fn a_long_curve_is_thinned_out_evenly_on_a_logarithmic_axis() {
        let points = curve((0..1_000_000_u64).map(|step| (step, -step.cast_signed()))).into_points();
        assert!((MOST_POINTS / 4..=MOST_POINTS).contains(&points.len()), "{} points", points.len());
        assert_eq!((points[0], points[points.len() - 1]), ((0, 0), (999_999, -999_999)));
        let gaps = points.windows(2).skip_while(|pair| pair[0].0 < 100);
        let widest = gaps.map(|pair| pair[1].0 as f64 / pair[0].0 as f64).fold(0.0, f64::max);
        assert!(widest < 1.15, "{widest}");
    }

    proptest! {
        #[test]
        fn a_curve_is_short_falls_and_ends_with_the_best(
            steps in prop::collection::vec((0_u32..50, 0_i64..3), 1..3000),
            far in prop::bool::ANY,
        ) {
            let (mut evaluations, mut cost) = (0_u64, 0);
            let steps: Vec<(u64, i64)> = steps.into_iter().map(|(bits, fall)| {
                let step = if far { 1_u64 << bits } else { u64::from(bits) };
                evaluations = evaluations.saturating_add(step);
                cost -= fall;
                (evaluations, cost)
            }).collect();
            let points = curve(steps.iter().copied()).into_points();
            prop_assert!(points.len() <= MOST_POINTS);
            prop_assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 > pair[1].1));
            prop_assert_eq!(points[0], steps[0]);
            prop_assert_eq!(points[points.len() - 1].1, cost);
            prop_assert!(points.iter().all(|point| steps.contains(point)));
        }
    }
}
