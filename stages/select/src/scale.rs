//! Distances as integers, so that sums are the same in any order.

use crate::SelectError;

/// Largest relative error that rounding a distance to an integer may make, where the integers have room for it.
const PRECISION: f64 = 1e-9;
/// Bound of every sum of distances, well inside 64 bits.
const LIMIT: f64 = (1u64 << 59) as f64;
/// Powers of ten above this one do not fit a float together with a value near one.
const LARGEST_EXPONENT: u32 = 300;

/// The smallest power of ten at which no distance changes by more than 1e-9 of itself when it is rounded, which is 1 for
/// whole numbers; less where the sum over all ordered pairs of `free` hosts would not fit.
pub(crate) fn scale(distances: &[f64], free: usize) -> Result<f64, SelectError> {
    let power = |exponent: u32| (0..exponent).fold(1.0, |power, _| power * 10.0);
    let precise = |exponent: &u32| {
        let scale = power(*exponent);
        distances.iter().all(|&distance| {
            let scaled = distance * scale;
            (scaled.round() - scaled).abs() <= PRECISION * scaled
        })
    };
    let largest = distances.iter().copied().fold(0.0, f64::max);
    let pairs = (free as f64) * (free as f64);
    let fits = |exponent: &u32| pairs * largest * power(*exponent) <= LIMIT;
    let Some(most) = (0..=LARGEST_EXPONENT).take_while(fits).last() else {
        return Err(SelectError::Overflow { largest, free });
    };
    Ok(power((0..most).find(precise).unwrap_or(most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_stay_and_decimals_become_whole() {
        let scaled = |distances: &[f64], free| scale(distances, free).unwrap() as u64;
        assert_eq!(scaled(&[0.0, 1.0, 100.0], 10_000), 1);
        assert_eq!(scaled(&[1.28e-7, 2.5e-7], 100), 1_000_000_000);
        assert_eq!(scaled(&[1.0 / 3.0], 10), 1_000_000_000);
        assert_eq!(scaled(&[1.0 / 3.0], 1_000_000), 1_000_000);
        assert_eq!(scaled(&[], 3), 1);
    }

    #[test]
    fn distances_beyond_64_bits_are_refused() {
        assert!(matches!(scale(&[1e18], 10), Err(SelectError::Overflow { .. })));
        assert!(matches!(scale(&[1e300], 2), Err(SelectError::Overflow { .. })));
    }
}
