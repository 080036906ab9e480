//! Decimal times without binary rounding noise in differences.

use std::fmt::{Display, Formatter, Result};

use hopmap_model::Schedule;

/// A time in units of 10⁻¹², the finest ticks of schedulers; saturates at 10²⁵ units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Exact(i128);

const DIGITS: i32 = 12;
const UNIT: i128 = 1_000_000_000_000;

impl Exact {
    /// The decimal number that a double is written as, to twelve places.
    pub(super) fn of(time: f64) -> Self {
        let text = format!("{time:e}");
        let (number, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let places = number.split_once('.').map_or(0, |(_, places)| places.chars().map(|_| 1).sum());
        let digits: i128 = number.replace('.', "").parse().unwrap_or(0);
        let shift = exponent.parse().unwrap_or(0) - places + DIGITS;
        match 10i128.checked_pow(shift.unsigned_abs()) {
            Some(power) if shift >= 0 => Self(digits.saturating_mul(power)),
            Some(power) => Self((digits + power / 2).div_euclid(power)),
            None if shift >= 0 && digits != 0 => Self(i128::MAX),
            None => Self(0),
        }
    }

    /// The difference of two times.
    pub(super) fn since(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The nearest double.
    pub(super) fn real(self) -> f64 {
        self.0 as f64 / UNIT as f64
    }

    /// Integer billionths, rounded down.
    pub(super) fn nanoseconds(self) -> i128 {
        self.0.div_euclid(1000)
    }
}

impl Display for Exact {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let size = self.0.unsigned_abs();
        let unit = UNIT.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        let places = format!("{:012}", size % unit);
        match places.trim_end_matches('0') {
            "" => write!(f, "{sign}{}", size / unit),
            places => write!(f, "{sign}{}.{places}", size / unit),
        }
    }
}

/// For every task whether the makespan follows from it.
pub(super) fn critical_tasks(schedule: &Schedule) -> Vec<bool> {
    let mut critical = vec![false; schedule.tasks.len()];
    schedule.critical_path().into_iter().for_each(|task| critical[task as usize] = true);
    critical
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_exact_decimals() {
        let texts =
            [0.0, 57.0, 0.1, 2.3, 1e-12, 4e-13, 1.25e-7, 1e20].map(|time| Exact::of(time).to_string());
        assert_eq!(
            texts,
            ["0", "57", "0.1", "2.3", "0.000000000001", "0", "0.000000125", "100000000000000000000"]
        );
        assert_eq!(Exact::of(0.3).since(Exact::of(0.1)).to_string(), "0.2");
        assert_eq!(Exact::of(1e300), Exact(i128::MAX));
        assert_eq!(Exact::of(1.000_000_002_5).nanoseconds(), 1_000_000_002);
    }

    proptest! {
        #[test]
        fn ticks_come_back(ticks in 0u64..1 << 52, digits in 0i32..=12) {
            let time = ticks as f64 / f64::from(10u32).powi(digits);
            prop_assert_eq!(Exact::of(time), Exact(i128::from(ticks) * 10i128.pow(12 - digits.unsigned_abs())));
        }
    }
}
