//! Bytes and times as people read them.

use jiff::Timestamp;

use crate::tree::Time;

/// Bytes with three digits, such as `1.25 MB`.
pub(super) fn bytes(bytes: u64) -> String {
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

/// How often one number of bytes goes into another, such as `12.3 ×`.
pub(super) fn times(whole: u64, part: u64) -> String {
    match part {
        0 => "–".to_owned(),
        _ => format!("{:.1} ×", whole as f64 / part as f64),
    }
}

/// A time in UTC, to the second.
pub(super) fn time(time: Time) -> String {
    match Timestamp::from_second(time.seconds) {
        Ok(time) => time.to_string(),
        Err(_) => "–".to_owned(),
    }
}

/// A time now.
pub(super) fn now() -> Time {
    let now = Timestamp::now();
    let (seconds, nanoseconds) = (now.as_second(), now.subsec_nanosecond());
    Time { seconds, nanoseconds: nanoseconds.unsigned_abs() }
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn bytes_have_three_digits() {
        let texts = [0, 999, 1000, 9_994, 9_996, 99_949, 999_499, 999_501, u64::MAX].map(bytes);
        let wanted =
            ["0 B", "999 B", "1.00 kB", "9.99 kB", "10.0 kB", "99.9 kB", "999 kB", "1.00 MB", "18.4 EB"];
        assert_eq!(texts, wanted);
    }
}
