//! Values of options.

/// A part of one, from 0 to 1.
pub(super) fn part(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("it is a number from 0 to 1, such as 0.95".to_owned()),
    }
}

/// A drift: a part that may be more than one.
pub(super) fn drift(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("it is a number of zero or more, such as 0.3 for 30 %".to_owned()),
    }
}
