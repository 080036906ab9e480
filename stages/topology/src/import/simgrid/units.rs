//! Numbers with the units that SimGrid knows (`xbt_parse_units` of its sources, and its DTD).

/// Bytes per second: `125MBps`, `1Gbps`, `1GiBps`, `1e9`.
pub(super) fn bandwidth(text: &str) -> Option<f64> {
    let (number, unit) = split(text)?;
    let (prefix, bytes) = match unit {
        "" => ("", 1.0),
        _ => match unit.strip_suffix("Bps") {
            Some(prefix) => (prefix, 1.0),
            None => (unit.strip_suffix("bps")?, 0.125),
        },
    };
    let prefixes = ["k", "M", "G", "T", "P", "E", "Z", "Y"];
    let binary = prefix.strip_suffix('i');
    let name = binary.map_or(prefix, |name| if name == "K" { "k" } else { name });
    let power = match name {
        "" if binary.is_none() => 0,
        _ => prefixes.iter().position(|known| *known == name)? + 1,
    };
    let base: f64 = if binary.is_some() { 1024.0 } else { 1000.0 };
    // As SimGrid multiplies, so that the last bit is the same.
    let scale = (0..power).fold(bytes, |scale, _| scale * base);
    Some(number * scale).filter(|value| value.is_finite() && *value >= 0.0)
}

/// Seconds: `50us`, `1ms`, `1e-6`.
pub(super) fn time(text: &str) -> Option<f64> {
    let (number, unit) = split(text)?;
    let scale = match unit {
        "w" => 604_800.0,
        "d" => 86_400.0,
        "h" => 3600.0,
        "m" => 60.0,
        "s" | "" => 1.0,
        // A quotient is rounded once: 50us are 5e-5 s and not 4.9999999999999996e-5.
        "ms" => return small(number, 1e3),
        "us" => return small(number, 1e6),
        "ns" => return small(number, 1e9),
        "ps" => return small(number, 1e12),
        _ => return None,
    };
    small(number * scale, 1.0)
}

fn small(number: f64, per_second: f64) -> Option<f64> {
    Some(number / per_second).filter(|value| value.is_finite() && *value >= 0.0)
}

/// A number and the unit behind it.
fn split(text: &str) -> Option<(f64, &str)> {
    let bytes = text.as_bytes();
    let is_digit = |place: usize| bytes.get(place).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.');
    let mut end = 0;
    while is_digit(end) {
        end += 1;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let mut exponent = end + 1 + sign;
        if is_digit(exponent) {
            while is_digit(exponent) {
                exponent += 1;
            }
            end = exponent;
        }
    }
    Some((text.get(..end)?.parse().ok()?, text.get(end..)?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_simgrid() {
        let rates = ["125MBps", "1Gbps", "1e9", "10GBps", "1KiBps", "8kbps", "1Gibps"].map(bandwidth);
        assert_eq!(rates, [125e6, 125e6, 1e9, 1e10, 1024.0, 1e3, 134_217_728.0].map(Some));
        let times = ["50us", "24us", "0", "1.5ms", "2e-6", "3ns", "1m"].map(time);
        assert_eq!(times, [50e-6, 24e-6, 0.0, 1.5e-3, 2e-6, 3e-9, 60.0].map(Some));
        for text in ["", "fast", "1Xbps", "1Gf", "-1Bps", "1e999Bps", "1iBps"] {
            assert_eq!(bandwidth(text), None, "{text}");
        }
        assert_eq!([time("1x"), time("us"), time("-1s")], [None; 3]);
    }
}
