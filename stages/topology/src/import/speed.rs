//! The bandwidth of InfiniBand and Omni-Path links.

/// What one lane carries in one direction, in gigabits per second of data: the signalling rate less the line code (8b/10b up to
/// QDR, 64b/66b from FDR10 on; InfiniBand Architecture Specification, volume 2). With PAM4, from HDR on, the code and the error
/// correction come on top of the nominal rate.
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

/// Bytes per second of a link of some lanes, such as `4x`, of a speed such as `QDR`; `None` of a width or a speed that is not known.
pub(super) fn bandwidth(width: &str, speed: &str) -> Option<f64> {
    let lanes: u32 = width.trim().trim_end_matches(['x', 'X']).parse().ok()?;
    let speed = speed.trim();
    let (_, gigabits) = LANES.iter().find(|(name, _)| name.eq_ignore_ascii_case(speed))?;
    (1..=12).contains(&lanes).then(|| f64::from(lanes) * gigabits * 1e9 / 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_times_speed() {
        let gigabits =
            |width, speed| bandwidth(width, speed).map(|bytes| (bytes * 8.0 / 1e7).round() / 100.0);
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
}
