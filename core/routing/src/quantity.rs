//! Amounts in messages.

/// A bandwidth with a prefix, exact to six digits.
#[must_use]
pub fn rate(bytes_per_s: f64) -> String {
    let (unit, scale) = [("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)]
        .into_iter()
        .find(|(_, scale)| bytes_per_s.abs() >= *scale * (1.0 - 5e-7))
        .unwrap_or(("B/s", 1.0));
    format!("{} {unit}", digits(bytes_per_s / scale, 6))
}

/// A number without its last digits, which are rounding.
#[must_use]
pub fn amount(value: f64) -> String {
    digits(value, 9)
}

fn digits(value: f64, count: usize) -> String {
    format!("{value:.*e}", count - 1).parse::<f64>().unwrap_or(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidths_have_a_unit_and_six_digits() {
        for (value, text) in [
            (5.0, "5 B/s"),
            (999.999_9, "1 kB/s"),
            (3_040_832.52, "3.04083 MB/s"),
            (12.5e9, "12.5 GB/s"),
            (1e16, "10000 TB/s"),
            (0.0, "0 B/s"),
        ] {
            assert_eq!(rate(value), text);
        }
        assert_eq!(amount(0.1 + 0.2), "0.3");
    }
}
