//! Axes: where a value lies between two ends, and at which values to put ticks.

/// An axis from `low` to `high`, equal or logarithmic steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Axis {
    /// Equal steps. An axis without extent is widened.
    pub(crate) fn linear(low: f64, high: f64) -> Self {
        let (low, high) = if low < high { (low, high) } else { (low - 0.5, low + 0.5) };
        Self { low, high, logarithmic: false }
    }

    /// Equal factors; both ends are positive. An axis without extent is widened.
    pub(crate) fn logarithmic(low: f64, high: f64) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        let (low, high) = if low < high { (low, high) } else { (low / 2.0, low * 2.0) };
        Self { low, high, logarithmic: true }
    }

    /// Where a value lies: 0 at the low end, 1 at the high end, kept in between.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            let low = libm::log10(self.low);
            (libm::log10(value.max(self.low)) - low) / (libm::log10(self.high) - low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }

    /// About `target` round values on the axis in rising order.
    pub(crate) fn ticks(&self, target: usize) -> Vec<f64> {
        let inside = |tick: &f64| *tick >= self.low * (1.0 - 1e-9) && *tick <= self.high * (1.0 + 1e-9);
        if self.logarithmic {
            let decades: Vec<f64> = self.decades(&[1.0]).into_iter().filter(inside).collect();
            let thinned: Vec<f64> =
                decades.iter().copied().step_by(decades.len().div_ceil(target.max(1)).max(1)).collect();
            if thinned.len() > 2 {
                return thinned;
            }
            let finer: Vec<f64> = self.decades(&[1.0, 2.0, 5.0]).into_iter().filter(inside).collect();
            if finer.len() > 1 {
                return finer;
            }
        }
        linear_ticks(self.low, self.high, target)
    }

    fn decades(&self, factors: &[f64]) -> Vec<f64> {
        let first = libm::floor(libm::log10(self.low)) as i32;
        let last = libm::ceil(libm::log10(self.high)) as i32;
        (first..=last)
            .flat_map(|decade| factors.iter().map(move |factor| factor * libm::exp10(f64::from(decade))))
            .collect()
    }
}

fn linear_ticks(low: f64, high: f64, target: usize) -> Vec<f64> {
    let step = nice_step((high - low) / target.max(1) as f64);
    let first = libm::ceil(low / step - 1e-9);
    let last = libm::floor(high / step + 1e-9);
    let count = (last - first).clamp(0.0, 1000.0) as usize;
    (0..=count).map(|index| (first + index as f64) * step).collect()
}

/// The smallest of 1, 2 and 5 times a power of ten that is not below `step`.
pub(crate) fn nice_step(step: f64) -> f64 {
    if !(step.is_finite() && step > 0.0) {
        return 1.0;
    }
    let power = libm::exp10(libm::floor(libm::log10(step)));
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= step * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(Axis::linear(0.0, 100.0).ticks(5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(Axis::logarithmic(5.0, 20_000.0).ticks(6), [10.0, 100.0, 1000.0, 10_000.0]);
        assert_eq!(Axis::logarithmic(0.4, 6.0).ticks(6), [0.5, 1.0, 2.0, 5.0]);
        assert!((Axis::linear(3.0, 3.0).at(3.0) - 0.5).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn places_and_ticks_stay_on_the_axis(low in 1e-9_f64..1e9, factor in 1.0_f64..1e6, value in -1e12_f64..1e12) {
            for axis in [Axis::linear(low, low * factor), Axis::logarithmic(low, low * factor)] {
                prop_assert!((0.0..=1.0).contains(&axis.at(value)));
                let ticks = axis.ticks(6);
                prop_assert!(ticks.len() < 40, "{} ticks", ticks.len());
                prop_assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }
}
