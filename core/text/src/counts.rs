//! Counts with their nouns, bytes with their units, and numbers as people read them.

use std::fmt::Display;

/// A count and its noun in singular or plural: `1 host`, `2 hosts`, `3 switches`.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {}", noun_of(count, noun))
}

/// A noun in the number of its count: `host`, `hosts`, `switches`, `topologies`.
#[must_use]
pub fn noun_of(count: usize, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if count == 1 => noun.to_owned(),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if noun.ends_with("ch") => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

/// Bytes with three significant digits, such as `1.25 MB`.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let decimals = match value {
        _ if unit == 0 => 0,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// A time with three significant digits: `1.09 s`, `343 ms`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    let units = [("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)];
    let unit = units.into_iter().find(|(_, size)| seconds.abs() >= 0.9995 * size);
    let (unit, size) = unit.unwrap_or(("ns", 1e-9));
    format!("{} {unit}", significant(seconds / size, 3))
}

/// A number with its thousands apart, as `1,000,000.5`.
pub fn grouped(number: impl Display) -> String {
    let text = number.to_string();
    let start = usize::from(text.starts_with('-'));
    let end =
        text[start..].find(|letter: char| !letter.is_ascii_digit()).map_or(text.len(), |end| start + end);
    let threes = text.as_bytes()[start..end].rchunks(3).rev().map(String::from_utf8_lossy);
    text[..start].to_owned() + &threes.collect::<Vec<_>>().join(",") + &text[end..]
}

/// A number with up to twelve significant digits, which hides the rounding of sums: `7945.078`, not `7945.078000000001`.
#[must_use]
pub fn decimal(value: f64) -> String {
    significant(value, 12)
}

/// A number with up to `digits` significant digits, without a prefix.
#[must_use]
pub fn significant(value: f64, digits: usize) -> String {
    let decimals = digits.saturating_sub(1);
    let rounded: f64 = format!("{value:.decimals$e}").parse().unwrap_or(value);
    match rounded.abs() {
        size if size != 0.0 && !(1e-6..1e15).contains(&size) => format!("{rounded:e}"),
        _ => rounded.to_string(),
    }
}

/// Maximum number of characters that messages show of a text.
const SHOWN: usize = 40;

/// The beginning of a text for a message: on one line, with control characters escaped.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut shown = String::new();
    for (count, letter) in text.chars().enumerate() {
        match letter {
            _ if count == SHOWN => {
                shown.push('…');
                break;
            }
            letter if letter.is_control() => shown.extend(letter.escape_debug()),
            letter => shown.push(letter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_have_the_number_of_their_count() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "host")), ["0 hosts", "1 host", "2 hosts"]);
        assert_eq!(counted(2, "switch"), "2 switches");
        assert_eq!(["topology", "delay"].map(|noun| noun_of(0, noun)), ["topologies", "delays"]);
    }

    #[test]
    fn decimals_do_not_show_the_rounding_of_sums() {
        let texts = [7_945.078_000_000_001, 0.015_225_414_400_000_001, 1e14, 66.0].map(decimal);
        assert_eq!(texts, ["7945.078", "0.0152254144", "100000000000000", "66"]);
    }

    #[test]
    fn thousands_are_apart() {
        assert_eq!([7, 100, 1000, -1_234_567].map(grouped), ["7", "100", "1,000", "-1,234,567"]);
        assert_eq!(["12345.6789", "-100", "NaN"].map(grouped), ["12,345.6789", "-100", "NaN"]);
    }

    #[test]
    fn bytes_have_three_digits() {
        let texts = [0, 999, 1000, 9_994, 9_996, 99_949, 999_499, 999_501, u64::MAX].map(bytes);
        let wanted =
            ["0 B", "999 B", "1.00 kB", "9.99 kB", "10.0 kB", "99.9 kB", "999 kB", "1.00 MB", "18.4 EB"];
        assert_eq!(texts, wanted);
    }
}
