//! Counts with their nouns, and bytes with their units.

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
    fn bytes_have_three_digits() {
        let texts = [0, 999, 1000, 9_994, 9_996, 99_949, 999_499, 999_501, u64::MAX].map(bytes);
        let wanted =
            ["0 B", "999 B", "1.00 kB", "9.99 kB", "10.0 kB", "99.9 kB", "999 kB", "1.00 MB", "18.4 EB"];
        assert_eq!(texts, wanted);
    }
}
