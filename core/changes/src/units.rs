//! Numbers for people.

/// Seconds in the unit that suits them, with three digits: `412 µs`, `1.2 ms`.
#[must_use]
pub fn seconds(seconds: f64) -> String {
    let (scale, unit) = match seconds.abs() {
        size if size >= 1.0 => (1.0, "s"),
        size if size >= 1e-3 => (1e3, "ms"),
        size if size >= 1e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    };
    format!("{} {unit}", number(seconds * scale))
}

/// Bytes per second: `12.5 GB/s`.
pub(crate) fn bandwidth(bytes_per_s: f64) -> String {
    let (scale, unit) = match bytes_per_s {
        size if size >= 1e9 => (1e-9, "GB/s"),
        size if size >= 1e6 => (1e-6, "MB/s"),
        size if size >= 1e3 => (1e-3, "kB/s"),
        _ => (1.0, "B/s"),
    };
    format!("{} {unit}", number(bytes_per_s * scale))
}

/// A number with three digits, or all before the point.
#[must_use]
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// How much a number has changed: `+35 %`; nothing where it was zero.
pub(crate) fn percent(before: f64, after: f64) -> String {
    match before == 0.0 {
        true => String::new(),
        false => format!(" ({:+.0} %)", (after / before - 1.0) * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!([412e-6, 1.25e-3, 2.0, 95e-9].map(seconds), ["412 µs", "1.25 ms", "2 s", "95 ns"]);
        assert_eq!([12.5e9, 1e6, 3.0].map(bandwidth), ["12.5 GB/s", "1 MB/s", "3 B/s"]);
        assert_eq!([1e6, 100.0, 10.05, 0.0].map(number), ["1000000", "100", "10.1", "0"]);
        assert_eq!(percent(305.0, 412.0), " (+35 %)");
        assert_eq!(percent(0.0, 1.0), "");
    }
}
