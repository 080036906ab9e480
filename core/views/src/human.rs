//! Formatting of numbers.

use hopmap_text::{grouped, noun_of, significant};
use jiff::Timestamp;

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Seconds,
    /// A number of things, or a product without a unit name.
    Count,
}

/// Significant digits of a quantity at most; a 64-bit number has 15.
pub(crate) const MOST_DIGITS: usize = 12;

/// A quantity with three significant digits and an SI prefix, such as `1.25 MB`.
pub(crate) fn quantity(value: f64, unit: Unit) -> String {
    quantity_of(value, unit, 3)
}

/// A quantity with some number of significant digits and an SI prefix.
pub(crate) fn quantity_of(value: f64, unit: Unit, digits: usize) -> String {
    let symbol = match unit {
        Unit::Bytes => "B",
        Unit::Seconds => "s",
        Unit::Count => "",
    };
    if !value.is_finite() {
        return "–".into();
    }
    if value == 0.0 || (unit == Unit::Count && value.fract() == 0.0 && value.abs() < 10_000.0) {
        return join(&format!("{value:.0}"), "", symbol);
    }
    let smallest = if unit == Unit::Seconds { -3 } else { 0 };
    let mut thousands = (libm::floor(libm::log10(value.abs()) / 3.0) as i32).clamp(smallest, 6);
    let mut text = rounded(value / scale(thousands), digits);
    if text.trim_start_matches('-') == "1000" && thousands < 6 {
        thousands += 1;
        text = rounded(value / scale(thousands), digits);
    }
    let prefix = ["n", "µ", "m", "", "k", "M", "G", "T", "P", "E"][(thousands + 3) as usize];
    join(&text, prefix, symbol)
}

/// `1 host`, `2 hosts`.
pub(crate) fn count_of(value: usize, thing: &str) -> String {
    format!("{} {}", grouped(value), noun_of(value, thing))
}

/// Sorted numbers as ranges, such as `0–3, 7`.
pub(crate) fn ranges(numbers: &[u32]) -> Vec<String> {
    numbers
        .chunk_by(|a, b| a + 1 == *b)
        .flat_map(|run| match run {
            [] => Vec::new(),
            [one] => vec![one.to_string()],
            [one, other] => vec![one.to_string(), other.to_string()],
            [first, .., last] => vec![format!("{first}–{last}")],
        })
        .collect()
}

/// A number with up to six significant digits.
pub(crate) fn six_digits(value: f64) -> String {
    significant(value, 6)
}

/// A time with four digits, so that parts add up to their total but for rounding: `16.54 ms`.
#[must_use]
pub fn seconds(value: f64) -> String {
    quantity_of(value, Unit::Seconds, 4)
}

fn scale(thousands: i32) -> f64 {
    libm::exp10(f64::from(3 * thousands))
}

pub(crate) fn three_digits(value: f64) -> String {
    rounded(value, 3)
}

/// A number of at least 1 with `digits` significant digits; smaller ones have no more decimals.
fn rounded(value: f64, digits: usize) -> String {
    let before_point = match value.abs() * (1.0 + 0.5 * libm::exp10(-(digits as f64))) {
        size if size >= 100.0 => 3,
        size if size >= 10.0 => 2,
        _ => 1,
    };
    let decimals = digits.saturating_sub(before_point);
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn join(digits: &str, prefix: &str, symbol: &str) -> String {
    if prefix.is_empty() && symbol.is_empty() {
        return digits.to_owned();
    }
    format!("{digits} {prefix}{symbol}")
}

/// Steps between ticks, in seconds.
const STEPS: [f64; 17] = [
    1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 10.8e3, 21.6e3, 43.2e3, 86.4e3, 172.8e3, 604.8e3,
    2.592e6, 7.776e6, 31.536e6,
];
const DAY: f64 = 86_400.0;

/// About `target` round points between two, in seconds since the epoch.
pub(crate) fn ticks(begin: f64, end: f64, target: usize) -> Vec<f64> {
    let wanted = (end - begin) / target.max(1) as f64;
    let longest = STEPS[STEPS.len() - 1];
    let step = STEPS.into_iter().find(|step| *step >= wanted).unwrap_or(longest * (wanted / longest).ceil());
    let first = (begin / step).ceil();
    let count = ((end / step).floor() - first).clamp(-1.0, 100.0) + 1.0;
    (0..count as usize).map(|index| (first + index as f64) * step).collect()
}

/// A day, a minute or a second, as exactly as ticks of this distance need it.
pub(crate) fn label(time: f64, step: f64) -> String {
    let format = match step {
        step if step >= DAY => "%m-%d",
        step if step >= 43_200.0 => "%m-%d %H:%M",
        step if step >= 60.0 => "%H:%M",
        _ => "%H:%M:%S",
    };
    printed(time, format)
}

/// A day and a minute.
pub(crate) fn moment(time: f64) -> String {
    printed(time, "%Y-%m-%d %H:%M")
}

/// A time in UTC.
fn printed(time: f64, format: &str) -> String {
    Timestamp::from_second(time.floor() as i64).unwrap_or_default().strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_three_digits_and_a_prefix() {
        let bytes = |value| quantity(value, Unit::Bytes);
        assert_eq!(
            [0.0, 1.0, 999.0, 1000.0, 1_234_567.0].map(bytes),
            ["0 B", "1 B", "999 B", "1 kB", "1.23 MB"]
        );
        assert_eq!([999_999.0, 12_345.0, 123_456.0].map(bytes), ["1 MB", "12.3 kB", "123 kB"]);
        assert_eq!([1e21, f64::NAN].map(bytes), ["1000 EB", "–"]);
        assert_eq!(
            [2.5e-6, 0.0123, 90.0].map(|value| quantity(value, Unit::Seconds)),
            ["2.5 µs", "12.3 ms", "90 s"]
        );
        assert_eq!(
            [5.0, 9999.0, 12_345.0, 1.5].map(|value| quantity(value, Unit::Count)),
            ["5", "9999", "12.3 k", "1.5"]
        );
        assert_eq!(quantity(-1500.0, Unit::Count), "-1500");
    }

    #[test]
    fn numbers_of_any_size_are_short() {
        let texts = [0.0, 57.0, 0.1 + 0.2, 1234.5678, 2.5e-6, 1e-9, 3e20].map(six_digits);
        assert_eq!(texts, ["0", "57", "0.3", "1234.57", "0.0000025", "1e-9", "3e20"]);
    }

    #[test]
    fn numbers_in_a_row_become_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 3, 7, 9, 10]), ["0–3", "7", "9", "10"]);
        assert!(ranges(&[]).is_empty());
    }

    #[test]
    fn moments_are_those_of_the_calendar() {
        assert_eq!(moment(0.0), "1970-01-01 00:00");
        assert_eq!(moment(951_782_400.0), "2000-02-29 00:00");
        assert_eq!(moment(1_700_000_000.0), "2023-11-14 22:13");
        assert_eq!(moment(-60.0), "1969-12-31 23:59");
        assert_eq!(label(1_700_000_000.0, 10_800.0), "22:13");
        assert_eq!(label(1_700_000_000.0, DAY), "11-14");
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(10.0, 7200.0, 4), [1800.0, 3600.0, 5400.0, 7200.0]);
        for span in [0.0, 1.0, 1e3, 1e6, 1e9, 1e12] {
            assert!(ticks(1.7e9, 1.7e9 + span, 6).len() <= 8, "{span}");
        }
    }
}
