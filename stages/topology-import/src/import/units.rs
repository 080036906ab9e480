//! Numbers in the formats of various tools: with units, as speed and lanes of links, and GUIDs of
//! `InfiniBand` and Omni-Path.

/// Bytes per second: `25G`, `100 Gb/s`, `12.5GB/s`, `4xHDR`. A prefix only, or a unit without `B`, means
/// bits.
pub(super) fn bandwidth(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Some((width, lanes)) = text.split_once(['x', 'X'])
        && let Some(found) = lanes_bandwidth(width, lanes)
    {
        return Some(found);
    }
    let (number, unit) = split(text)?;
    let (scale, rest) = match unit.chars().next() {
        Some('k' | 'K') => (1e3, unit.get(1..)?),
        Some('M' | 'm') => (1e6, unit.get(1..)?),
        Some('G' | 'g') => (1e9, unit.get(1..)?),
        Some('T' | 't') => (1e12, unit.get(1..)?),
        Some(_) => (1.0, unit),
        None => return None,
    };
    let bytes = match rest {
        "B/s" | "Bps" | "B" => 1.0,
        _ => match rest.to_ascii_lowercase().as_str() {
            "" | "b" | "bps" | "b/s" | "bit" | "bits" | "bit/s" | "bits/s" | "bitps" | "be" => 0.125,
            "byte/s" | "bytes/s" | "bytes" => 1.0,
            _ => return None,
        },
    };
    Some(number * scale * bytes).filter(|value| value.is_finite() && *value > 0.0)
}

/// Seconds: `500ns`, `1.5 us`, `2ms`, `1s`.
pub(super) fn latency(text: &str) -> Option<f64> {
    let (number, unit) = split(text.trim())?;
    // A quotient is rounded once: 50e-6 is not exactly 50 · 1e-6.
    let per_second = match unit {
        "s" => 1.0,
        "ms" => 1e3,
        "us" | "µs" | "μs" => 1e6,
        "ns" => 1e9,
        "ps" => 1e12,
        _ => return None,
    };
    Some(number / per_second).filter(|value| value.is_finite() && *value >= 0.0)
}

/// Splits the unit suffix of a column or key name: the name without it, and the factor to seconds or bytes
/// per second.
pub(super) fn unit_of_name(name: &str) -> (&str, Option<f64>) {
    let units = [
        ("_bytes_per_s", 1.0),
        ("_gbytes_per_s", 1e9),
        ("_mbps", 1e6 / 8.0),
        ("_gbps", 1e9 / 8.0),
        ("_kbps", 1e3 / 8.0),
        ("_gbit", 1e9 / 8.0),
        ("_mbit", 1e6 / 8.0),
        ("_bps", 1.0 / 8.0),
        ("_ns", 1e-9),
        ("_us", 1e-6),
        ("_ms", 1e-3),
        ("_s", 1.0),
    ];
    let found = units.iter().find_map(|(ending, scale)| Some((name.strip_suffix(ending)?, *scale)));
    found.map_or((name, None), |(name, scale)| (name, Some(scale)))
}

/// Scales a number to seconds or bytes per second. Small units divide, since a quotient is rounded once: 50 ·
/// 1e-6 is not exactly 50e-6.
pub(super) fn scaled(number: f64, scale: f64) -> f64 {
    if scale < 1.0 { number / (1.0 / scale).round() } else { number * scale }
}

/// Splits a number and the text after it.
fn split(text: &str) -> Option<(f64, &str)> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut end = text.find(|c: char| !is_number(c)).unwrap_or(text.len());
    // An exponent, unless the letter begins a unit.
    let rest = text.get(end..)?;
    if rest.starts_with(['e', 'E']) {
        let sign = usize::from(rest.get(1..)?.starts_with(['+', '-']));
        let digits = rest.get(1 + sign..)?;
        let count = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        if count > 0 {
            end += 1 + sign + count;
        }
    }
    Some((text.get(..end)?.parse().ok()?, text.get(end..)?.trim()))
}

/// Data rate of one lane in one direction, in gigabits per second: the signalling rate minus the line code
/// (8b/10b up to QDR, 64b/66b from FDR10 on; InfiniBand Architecture Specification, volume 2). With PAM4,
/// from HDR on, code and error correction are added to the nominal rate.
const LANES: [(&str, f64); 10] = [
    ("SDR", 2.0),
    ("DDR", 4.0),
    ("QDR", 8.0),
    ("FDR10", 10.0),
    ("FDR", 14.0625 * 64.0 / 66.0),
    ("EDR", 25.0),
    ("HDR", 50.0),
    ("NDR", 100.0),
    ("XDR", 200.0),
    ("GDR", 400.0),
];

/// Bytes per second of a link with a width such as `4x` and a speed such as `QDR`; `None` if one is unknown.
pub(super) fn lanes_bandwidth(width: &str, speed: &str) -> Option<f64> {
    let lanes: u32 = width.trim().trim_end_matches(['x', 'X']).parse().ok()?;
    let speed = speed.trim();
    let (_, gigabits) = LANES.iter().find(|(name, _)| name.eq_ignore_ascii_case(speed))?;
    (1..=12).contains(&lanes).then(|| f64::from(lanes) * gigabits * 1e9 / 8.0)
}

/// Parses up to sixteen hexadecimal digits, such as `2c9030002da23`.
pub(super) fn hex_guid(text: &str) -> Option<u64> {
    let is_digits = (1..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_digits { u64::from_str_radix(text, 16).ok() } else { None }
}

/// The same after `0x`.
pub(super) fn prefixed_guid(text: &str) -> Option<u64> {
    hex_guid(text.strip_prefix("0x")?)
}

/// A GUID in netloc's format: `0002:c903:0002:da23`.
pub(super) fn grouped_guid(text: &str) -> Option<u64> {
    let (mut guid, mut groups) = (0, 0);
    for group in text.split(':') {
        groups += 1;
        if group.len() != 4 || groups > 4 {
            return None;
        }
        guid = guid << 16 | hex_guid(group)?;
    }
    (groups == 4).then_some(guid)
}

/// Sixteen hexadecimal digits in lower case.
pub(super) fn guid_address(guid: u64) -> String {
    format!("{guid:016x}")
}

/// Splits off the next word.
pub(super) fn word<'a>(rest: &mut &'a str) -> &'a str {
    let text = rest.trim_start();
    let end = text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len());
    let (word, behind) = text.split_at(end);
    *rest = behind;
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bytes_per_second() {
        for (text, gigabits) in [
            ("25G", 25.0),
            ("100g", 100.0),
            ("100 Gb/s", 100.0),
            ("10Gbps", 10.0),
            ("1.25GB/s", 10.0),
            ("1000 Mbit/s", 1.0),
            ("1e9 bps", 1.0),
            ("4xHDR", 200.0),
            ("4X EDR", 100.0),
        ] {
            let found = bandwidth(text).unwrap_or_default() * 8.0 / 1e9;
            assert!((found - gigabits).abs() < 1e-9, "{text}: {found}");
        }
        for text in ["", "25", "fast", "-1G", "0G", "1e999G", "G", "10Gfoo"] {
            assert_eq!(bandwidth(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_seconds() {
        assert_eq!(
            [latency("500 ns"), latency("1.5us"), latency("2e-3s")],
            [Some(500e-9), Some(1.5e-6), Some(2e-3)]
        );
        assert_eq!([latency("5"), latency("us"), latency("-1us")], [None, None, None]);
        assert_eq!(unit_of_name("latency_us"), ("latency", Some(1e-6)));
        let of_column = |name, number| scaled(number, unit_of_name(name).1.unwrap());
        let found = [
            ("l_us", 50.0),
            ("l_ns", 700.0),
            ("l_ms", 0.3),
            ("l_s", 2e-6),
            ("r_bps", 12.0),
            ("r_gbps", 10.0),
        ]
        .map(|(name, number)| Some(of_column(name, number)));
        assert_eq!(found, [50e-6, 700e-9, 0.3e-3, 2e-6, 1.5, 1.25e9].map(Some));
        assert_eq!(unit_of_name("bandwidth"), ("bandwidth", None));
    }

    #[test]
    fn width_times_speed() {
        let gigabits =
            |width, speed| lanes_bandwidth(width, speed).map(|bytes| (bytes * 8.0 / 1e7).round() / 100.0);
        let expected = [
            ("4x", "SDR", 8.0),
            ("4x", "DDR", 16.0),
            ("4x", "QDR", 32.0),
            ("4x", "FDR10", 40.0),
            ("4x", "FDR", 54.55),
            ("4x", "EDR", 100.0),
            ("4x", "HDR", 200.0),
            ("2x", "HDR", 100.0),
            ("4x", "NDR", 400.0),
            ("4x", "XDR", 800.0),
            ("12x", "qdr", 96.0),
        ];
        for (width, speed, value) in expected {
            assert_eq!(gigabits(width, speed), Some(value), "{width} {speed}");
        }
        for (width, speed) in [("", "QDR"), ("4x", "???"), ("0x", "QDR"), ("999999999999x", "QDR")] {
            assert_eq!(gigabits(width, speed), None);
        }
    }

    #[test]
    fn all_notations_of_a_guid_are_parsed() {
        let number = 0x0002_c903_0002_da23;
        let guid = Some(number);
        assert_eq!(grouped_guid("0002:c903:0002:da23"), guid);
        assert_eq!(prefixed_guid("0x0002c9030002da23"), guid);
        assert_eq!(hex_guid("2c9030002da23"), guid);
        assert_eq!(guid_address(number), "0002c9030002da23");
        for wrong in
            ["", "0002:c903:0002", "0002:c903:0002:da23:1", "0002:c903:0002:da2", "0002:c903:0002:da2g"]
        {
            assert_eq!(grouped_guid(wrong), None, "{wrong}");
        }
        for wrong in ["", "+1", "0x1", "00002c9030002da23", "é"] {
            assert_eq!(hex_guid(wrong), None, "{wrong}");
        }
    }
}
