//! Powers of ten that turn weights and costs into integers.

use hopmap_model::{OutOfRange, Weight};

use crate::error::ObjectiveError;

/// Largest relative rounding error of a value, if the integers have room.
const PRECISION: f64 = 1e-9;
/// Bound of the cost of any mapping, well inside 64 bits.
const LIMIT: f64 = (1u64 << 61) as f64;
/// Bound of values that are added to other metrics.
const SHARED_LIMIT: f64 = (1u64 << 42) as f64;
/// Bound of the times of links if nothing else counts: room for twelve bits that break ties.
const LINKS_LIMIT: f64 = (1u64 << 48) as f64;
/// Higher powers of ten exceed the precision of a float near one.
const LARGEST_EXPONENT: u32 = 300;

/// Allowed range of costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// The full integer range.
    All,
    /// Small enough for sums with other metrics, if integers are.
    Shared,
    /// Small enough for ties of link times, if nothing else counts.
    Links,
}

impl Room {
    fn bound(self) -> f64 {
        match self {
            Self::All => LIMIT,
            Self::Shared => SHARED_LIMIT,
            Self::Links => LINKS_LIMIT,
        }
    }
}

/// Factors of weights and costs before rounding to integers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scales {
    pub(crate) weight: f64,
    pub(crate) cost: f64,
}

impl Scales {
    /// The smallest powers of ten with a relative rounding error of at most 1e-9, which is 1 for integers.
    /// While the total does not fit `room`, the side that loses less gives up a digit.
    pub(crate) fn new(weights: &[f64], costs: &[f64], room: Room) -> Result<Self, ObjectiveError> {
        let total: f64 = weights.iter().sum();
        let largest = costs.iter().copied().fold(0.0, f64::max);
        let (mut weight, mut cost) = (Digits::needed(weights), Digits::needed(costs));
        let bound = |weight: &Digits, cost: &Digits| total * weight.scale() * largest * cost.scale();
        while bound(&weight, &cost) > room.bound() {
            let loser = match weight.error() <= cost.error() {
                true if weight.exponent > 0 => &mut weight,
                false if cost.exponent == 0 => &mut weight,
                _ => &mut cost,
            };
            match loser.exponent.checked_sub(1) {
                Some(exponent) => loser.exponent = exponent,
                None if bound(&weight, &cost) <= LIMIT => break,
                None => {
                    let problem = format!(
                        "a total weight of {total:e} at a largest cost of {largest:e} does not fit the 64-bit integers of the search"
                    );
                    return Err(ObjectiveError::new(
                        problem,
                        "use a larger unit for the costs of the machine",
                    ));
                }
            }
        }
        Ok(Self { weight: weight.scale(), cost: cost.scale() })
    }
}

/// Number of decimal digits kept.
struct Digits {
    smallest: f64,
    exponent: u32,
}

impl Digits {
    fn needed(values: &[f64]) -> Self {
        let positive = || values.iter().copied().filter(|&value| value > 0.0);
        let precise = |exponent: &u32| {
            let scale = power_of_ten(*exponent);
            positive()
                .all(|value| ((value * scale).round() - value * scale).abs() <= PRECISION * value * scale)
        };
        Self {
            smallest: positive().fold(f64::INFINITY, f64::min),
            exponent: (0..LARGEST_EXPONENT).find(precise).unwrap_or(LARGEST_EXPONENT),
        }
    }

    fn scale(&self) -> f64 {
        power_of_ten(self.exponent)
    }

    /// Bound of the relative rounding error of the smallest value with one digit less.
    fn error(&self) -> f64 {
        5.0 / (self.smallest * self.scale())
    }
}

/// Power of ten by repeated multiplication, identical on every machine.
fn power_of_ten(exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |power, _| power * 10.0)
}

/// Checks the parameters of a weight.
pub fn check_weight(weight: Weight) -> Result<(), OutOfRange> {
    let Weight::Time { latency_s, bandwidth_bytes_per_s } = weight else { return Ok(()) };
    let is_bandwidth = bandwidth_bytes_per_s.is_finite() && bandwidth_bytes_per_s > 0.0;
    let (parameter, value) = match latency_s.is_finite() && latency_s >= 0.0 {
        true if is_bandwidth => return Ok(()),
        true => ("bandwidth_bytes_per_s", bandwidth_bytes_per_s),
        false => ("latency_s", latency_s),
    };
    let allowed = "`latency_s` 0 or more, `bandwidth_bytes_per_s` above 0, both finite";
    Err(OutOfRange::new(&format!("weight.time.{parameter}"), value, allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scales(weights: &[f64], costs: &[f64]) -> (f64, f64) {
        let scales = Scales::new(weights, costs, Room::All).unwrap();
        (scales.weight, scales.cost)
    }

    #[test]
    fn integers_are_unchanged() {
        assert_eq!(scales(&[1.0, 3_000_000.0], &[0.0, 1.0, 100.0]), (1.0, 1.0));
    }

    #[test]
    fn decimals_become_whole() {
        assert_eq!(scales(&[1.5, 20.0], &[1.28e-7, 2.61e-7]), (10.0, 1e9));
    }

    #[test]
    fn periodic_fractions_keep_nine_digits_or_what_fits() {
        let (weight, cost) = scales(&[1.0 / 3.0], &[2.0 / 3.0]);
        assert!(weight >= 1e8 && cost >= 1e8);
        let (weight, cost) = scales(&[1e15 + 0.0], &[1.0 / 3.0]);
        assert_eq!((weight, cost), (1.0, 1000.0));
    }

    #[test]
    fn integers_too_large_for_64_bits_are_refused() {
        assert!(Scales::new(&[1e18], &[1.0, 100.0], Room::All).is_err());
    }

    #[test]
    fn invalid_times_are_refused() {
        let bad = |latency_s, bandwidth_bytes_per_s| {
            check_weight(Weight::Time { latency_s, bandwidth_bytes_per_s }).unwrap_err().to_string()
        };
        assert_eq!(bad(1e-6, 0.0), "`weight.time.bandwidth_bytes_per_s` = 0 is out of range");
        assert_eq!(bad(-1.0, 1e9), "`weight.time.latency_s` = -1 is out of range");
        assert_eq!(bad(1e-6, f64::NAN), "`weight.time.bandwidth_bytes_per_s` = NaN is out of range");
        assert_eq!(bad(f64::INFINITY, 1e9), "`weight.time.latency_s` = inf is out of range");
    }
}
